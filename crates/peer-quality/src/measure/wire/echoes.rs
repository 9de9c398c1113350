//! The echo channel: which cookies go out, and what to make of those that come back (MEAS-1 to MEAS-3).
//!
//! The peer receives in order and echoes what it received last. An honest echo therefore names an outstanding cookie, repeats the one that matched last, or
//! names the newest one forgotten. Everything else is unknown, and counted.

use super::connection::{MINT_INTERVAL, Options};
use super::cookie::{CookieSeed, Mint};
use super::guessing::Guessing;
use super::header::Stamp;
use super::observation::{Counters, Echo, Reply};
use super::outstanding::{HOLD, Outstanding, Settled};
use crate::units::{Span, Time};

/// Cookies of one connection, both ways.
#[derive(Debug)]
pub(super) struct Echoes {
    mint: Mint,
    outstanding: Outstanding,
    /// The newest cookie and when it was minted.
    minted: (u16, Time),
    /// The peer's freshest cookie.
    freshest: u16,
    /// The cookie that matched last.
    matched: u16,
    /// The newest cookie that was forgotten.
    forgotten: u16,
    /// Since when a match is waited for: the last match, or the cookie that ended an empty queue.
    clock: Time,
    /// Cookies minted before this met a pause of ours.
    tainted_before: Time,
    rtt_floor: Span,
    guessing: Guessing,
    is_guesser_news: bool,
    counters: Counters,
}

impl Echoes {
    pub(super) fn new(seed: CookieSeed, options: Options, now: Time) -> Self {
        Echoes {
            mint: Mint::new(seed),
            outstanding: Outstanding::new(),
            minted: (0, now),
            freshest: 0,
            matched: 0,
            forgotten: 0,
            clock: now,
            tainted_before: Time::ZERO,
            rtt_floor: options.rtt_floor.unwrap_or(Span::ZERO),
            guessing: Guessing::default(),
            is_guesser_news: false,
            counters: Counters::default(),
        }
    }

    /// The cookies of an outgoing SDU.
    #[inline]
    pub(super) fn stamp(&mut self, reply: Reply, now: Time) -> Stamp {
        let (cookie, minted) = self.minted;
        let is_prompt = reply == Reply::Prompt;
        if cookie == 0 || now.since(minted) >= MINT_INTERVAL {
            self.add(is_prompt, now);
        } else if is_prompt {
            self.outstanding.mark_prompt(cookie);
        }
        Stamp { send: self.minted.0, echo: self.freshest }
    }

    #[inline]
    fn add(&mut self, is_prompt: bool, now: Time) {
        // What the peer may still repeat must not be taken for the echo of something new.
        let (matched, forgotten, outstanding) = (self.matched, self.forgotten, &self.outstanding);
        let cookie = self.mint.draw(|drawn| drawn == matched || drawn == forgotten || outstanding.contains(drawn));
        if self.outstanding.is_empty() {
            self.clock = now;
        }
        if let Some(evicted) = self.outstanding.push(cookie, now, is_prompt) {
            self.forgotten = evicted;
            self.counters.evicted += 1;
        }
        self.minted = (cookie, now);
    }

    /// Judges the cookies of an incoming SDU.
    #[inline]
    pub(super) fn receive(&mut self, stamp: Stamp, is_paused: bool, now: Time) -> Echo {
        if stamp.send != 0 {
            self.freshest = stamp.send;
        }
        let settled = if stamp.echo == 0 { None } else { self.outstanding.settle(stamp.echo) };
        let echo = match settled {
            Some(settled) => {
                self.matched = stamp.echo;
                self.judge(settled, is_paused, now)
            }
            None if stamp.echo == 0 => Echo::Absent,
            None if stamp.echo == self.matched => Echo::Repeated,
            None if stamp.echo == self.forgotten => Echo::Forgotten,
            None => Echo::Unknown,
        };
        if let Echo::Matched(_) | Echo::Unsampled(_) = echo {
            self.clock = now;
        }
        if self.guessing.count(echo == Echo::Unknown) {
            self.is_guesser_news = true;
        }
        self.counters.count(echo);
        echo
    }

    /// Counts an SDU of a peer that has no cookies.
    #[cold]
    pub(super) fn ignore(&mut self) -> Echo {
        self.counters.count(Echo::Absent);
        Echo::Absent
    }

    fn judge(&self, settled: Settled, is_paused: bool, now: Time) -> Echo {
        let rtt = now.since(settled.sent);
        let times_the_path = settled.is_prompt && !is_paused && settled.sent >= self.tainted_before;
        match () {
            () if rtt < self.rtt_floor => Echo::TooEarly(rtt),
            () if self.guessing.is_active() => Echo::Disbelieved(rtt),
            () if !times_the_path => Echo::Unsampled(rtt),
            () => Echo::Matched(rtt),
        }
    }

    /// Forgets old cookies; true when that left none.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let had_some = !self.outstanding.is_empty();
        while let Some(cookie) = self.outstanding.expire(now) {
            self.forgotten = cookie;
            self.counters.expired += 1;
        }
        had_some && self.outstanding.is_empty()
    }

    /// A pause of ours ended, or began, at `now`.
    pub(super) fn taint(&mut self, now: Time) {
        (self.tainted_before, self.clock) = (now, now);
    }

    pub(super) fn set_floor(&mut self, floor: Span) {
        self.rtt_floor = floor;
    }

    /// Since when a match is waited for; none while no cookie is outstanding.
    pub(super) fn waiting_since(&self) -> Option<Time> {
        (!self.outstanding.is_empty()).then_some(self.clock)
    }

    /// When the next cookie is forgotten.
    pub(super) fn expires_after(&self) -> Option<Time> {
        self.outstanding.oldest().map(|sent| sent + HOLD)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    pub(super) fn is_guessing(&self) -> bool {
        self.guessing.is_active()
    }

    pub(super) fn take_guesser_news(&mut self) -> bool {
        core::mem::take(&mut self.is_guesser_news)
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.outstanding.heap_bytes()
    }
}
