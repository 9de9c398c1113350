//! Cookies sent and not yet echoed: a ring in send order, and an index from cookie to ring slot (MEAS-1, MEAS-2).
//!
//! The one idea: the peer receives in order, so an echo of one cookie settles it and every older one. All removal is from the old end of the
//! ring; the index only has to find how far. Each cookie enters and leaves once, so a match costs O(1) amortised.
//!
//! Bounds: at most [`MAX_OUTSTANDING`] cookies, the oldest leaves first; ten bytes each and four for the index, in a power of two that grows
//! with need and falls back once all are gone. The index hashes a cookie by its low bits: cookies are uniform by construction.

use alloc::vec;
use alloc::vec::Vec;

use crate::units::{Span, Time};

/// How long a cookie waits for its echo.
/// Too long keeps rows for peers that never echo and widens the target of guessing; too short loses the round trips of stalled links.
/// The Haskell multiplexer's value, and its timeout for one SDU.
pub const HOLD: Span = Span::from_secs(30);

/// The most cookies that wait at once.
/// Too many cost memory and widen the target of guessing; too few forget what an honest, congested peer will still echo. At one cookie
/// a millisecond this is four seconds of sending without any echo. The Haskell multiplexer's value.
pub const MAX_OUTSTANDING: usize = 4096;

const INITIAL: usize = 64;
/// An emptied ring above this is given back.
const KEPT: usize = 512;

/// A cookie that an echo settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) sent: Time,
    /// Whether an answer was expected at once, so that its round trip times the path.
    pub(super) is_prompt: bool,
}

/// The cookies of one connection.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    cookies: Vec<u16>,
    /// Microseconds shifted left by one; the low bit says that the answer may come whenever.
    sent: Vec<u64>,
    /// Ring slot plus one, 0 where free; twice as long as the ring.
    index: Vec<u16>,
    head: usize,
    len: usize,
}

impl Outstanding {
    pub(super) fn new() -> Self {
        Self::with_capacity(INITIAL)
    }

    fn with_capacity(capacity: usize) -> Self {
        Outstanding {
            cookies: vec![0; capacity],
            sent: vec![0; capacity],
            index: vec![0; 2 * capacity],
            head: 0,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        2 * self.cookies.capacity() + 8 * self.sent.capacity() + 2 * self.index.capacity()
    }

    pub(super) fn contains(&self, cookie: u16) -> bool {
        self.find(cookie).is_some()
    }

    /// Adds a cookie that is not in it. At the bound the oldest leaves and is returned.
    pub(super) fn push(&mut self, cookie: u16, sent: Time, is_prompt: bool) -> Option<u16> {
        let evicted = if self.len == MAX_OUTSTANDING { self.pop() } else { None };
        if self.len == self.cookies.len() {
            self.grow();
        }
        self.place(cookie, sent.as_micros() << 1 | u64::from(!is_prompt));
        evicted
    }

    /// Notes that the newest cookie, if it is `cookie`, was also sent with something that is answered at once.
    pub(super) fn mark_prompt(&mut self, cookie: u16) {
        let Some(last) = self.len.checked_sub(1) else { return };
        let slot = (self.head + last) & self.ring_mask();
        if self.cookies[slot] == cookie {
            self.sent[slot] &= !1;
        }
    }

    /// Settles `cookie` and drops every older one; none where it is not outstanding.
    pub(super) fn settle(&mut self, cookie: u16) -> Option<Settled> {
        let slot = self.find(cookie)?;
        let word = self.sent[slot];
        let older = (slot.wrapping_sub(self.head)) & self.ring_mask();
        for _ in 0..=older {
            self.pop();
        }
        Some(Settled { sent: Time::from_micros(word >> 1), is_prompt: word & 1 == 0 })
    }

    /// Forgets the oldest cookie if it was sent more than [`HOLD`] ago, and returns it.
    pub(super) fn expire(&mut self, now: Time) -> Option<u16> {
        let is_due = self.len > 0 && now.since(Time::from_micros(self.sent[self.head] >> 1)) > HOLD;
        if is_due { self.pop() } else { None }
    }

    fn ring_mask(&self) -> usize {
        self.cookies.len() - 1
    }

    fn find_entry(&self, cookie: u16) -> Option<(usize, usize)> {
        let mask = self.index.len() - 1;
        let mut at = usize::from(cookie) & mask;
        loop {
            let slot = usize::from(self.index[at]).checked_sub(1)?;
            if self.cookies[slot] == cookie {
                return Some((at, slot));
            }
            at = (at + 1) & mask;
        }
    }

    fn find(&self, cookie: u16) -> Option<usize> {
        self.find_entry(cookie).map(|(_, slot)| slot)
    }

    fn place(&mut self, cookie: u16, word: u64) {
        let slot = (self.head + self.len) & self.ring_mask();
        self.cookies[slot] = cookie;
        self.sent[slot] = word;
        self.len += 1;
        let mask = self.index.len() - 1;
        let mut at = usize::from(cookie) & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = slot as u16 + 1;
    }

    fn pop(&mut self) -> Option<u16> {
        if self.len == 0 {
            return None;
        }
        let cookie = self.cookies[self.head];
        if let Some((at, _)) = self.find_entry(cookie) {
            self.unindex(at);
        }
        self.head = (self.head + 1) & self.ring_mask();
        self.len -= 1;
        if self.len == 0 && self.cookies.len() > KEPT {
            *self = Self::new();
        }
        Some(cookie)
    }

    /// Frees an entry of the index and moves up those that had to step over it.
    fn unindex(&mut self, at: usize) {
        let mask = self.index.len() - 1;
        let (mut hole, mut next) = (at, at);
        loop {
            next = (next + 1) & mask;
            let Some(slot) = usize::from(self.index[next]).checked_sub(1) else { break };
            let home = usize::from(self.cookies[slot]) & mask;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[next];
                hole = next;
            }
        }
        self.index[hole] = 0;
    }

    fn grow(&mut self) {
        let mut larger = Self::with_capacity(2 * self.cookies.len());
        for nth in 0..self.len {
            let slot = (self.head + nth) & self.ring_mask();
            larger.place(self.cookies[slot], self.sent[slot]);
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn beyond_the_bound_the_oldest_leaves_first() {
        let mut outstanding = Outstanding::new();
        for cookie in 1..=MAX_OUTSTANDING as u16 {
            assert_eq!(outstanding.push(cookie, micros(0), true), None);
        }
        assert_eq!(outstanding.push(9000, micros(1), true), Some(1));
        assert_eq!(outstanding.len(), MAX_OUTSTANDING);
        assert!(!outstanding.contains(1) && outstanding.contains(2) && outstanding.contains(9000));
        assert!(outstanding.heap_bytes() <= 14 * MAX_OUTSTANDING);
        assert!(outstanding.settle(9000).is_some());
        assert!(outstanding.is_empty() && outstanding.heap_bytes() <= 14 * INITIAL, "given back");
    }

    #[test]
    fn a_cookie_is_forgotten_after_the_hold_and_not_before() {
        let mut outstanding = Outstanding::new();
        outstanding.push(5, micros(10), true);
        assert_eq!(outstanding.expire(micros(10) + HOLD), None);
        assert_eq!(outstanding.expire(micros(11) + HOLD), Some(5));
        assert_eq!(outstanding.settle(5), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list(ops in prop::collection::vec((0u8..4, 1u16..600), 0..2000)) {
            // Cookies below 600 in an index of 128 and more: long probe runs and wrap-around.
            let (mut outstanding, mut list) = (Outstanding::new(), Vec::new());
            for (clock, (op, cookie)) in ops.into_iter().enumerate() {
                let found = list.iter().position(|(listed, _)| *listed == cookie);
                prop_assert_eq!(outstanding.contains(cookie), found.is_some());
                match (op, found) {
                    (0..=2, None) => {
                        outstanding.push(cookie, micros(clock as u64), true);
                        list.push((cookie, micros(clock as u64)));
                    }
                    (3, _) if found.is_none_or(|at| at < 50) => {
                        let settled = outstanding.settle(cookie).map(|settled| settled.sent);
                        prop_assert_eq!(settled, found.map(|at| list[at].1));
                        list.drain(..found.map_or(0, |at| at + 1));
                    }
                    _ => {}
                }
                prop_assert_eq!(outstanding.len(), list.len());
            }
        }
    }
}
