//! The wire as a client sees it that measures there: single SDUs, when each is read, and which cookie each one echoes (LAB-1; the text's "SDU granularity").
//!
//! The one idea: the flows stay fluid. While a rate is constant its SDUs end at evenly spaced moments, so they are computed when a connection is counted, from what
//! was counted anyway, and only for policies that ask for them ([`Policy::sight`](crate::policy::Policy::sight)).
//!
//! # What is simulated
//! - SDUs of [`SDU_BYTES`] payload, the last of a reply shorter; those of several replies in the order in which they are whole
//! - echoes: each SDU carries the freshest cookie that had reached the peer when its first byte left, half a round trip, with its jitter, each way
//! - reads: what arrives behind a hole, or while the client does not read, is read at once when that is over
//! - what a hostile peer does below its replies ([`act`])
//!
//! # What is not
//! Answers without data bring no SDU, nor does a cookie that was sent with something small: the next SDU of a reply echoes it. Headers, and the SDUs of other
//! protocols, take nothing from the rate of replies.

mod act;
mod cookies;
mod cut;

pub(crate) use self::act::Act;
use self::cookies::Cookies;
use self::cut::{Cut, Sdu};
use super::queue::Micros;
use super::random::Stream;
use crate::model::Wire;

/// Payload of a full SDU on a socket (facts on the Leios stack, the multiplexer).
pub(crate) const SDU_BYTES: u32 = 12_288;

/// Something that a client sees on the wire of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) peer: u32,
    /// When it was read.
    pub(crate) at: Micros,
    pub(crate) what: What,
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The SDU that follows is the first of a reply.
    Opens,
    /// An SDU.
    Sdu { echo: u16, payload: u32 },
}

/// An SDU that arrived and waits to be read.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Micros,
    echo: u16,
    payload: u32,
    /// The reply that it begins.
    begins: Option<(u32, u32)>,
}

/// One peer's side of the wire.
#[derive(Clone, Debug)]
struct Line {
    cookies: Cookies,
    act: Option<Act>,
    unread: Vec<Arrived>,
    /// When the client wrote last.
    written_at: Micros,
    /// Whether it is planned to look whether a cookie is due.
    is_watched: bool,
}

/// How a connection is while it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) peer: u32,
    pub(crate) from: Micros,
    pub(crate) to: Micros,
    /// From the peer to the client.
    pub(crate) back: Micros,
}

/// A reply's flow at a constant rate during an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) place: u32,
    /// Bytes of it that had arrived before.
    pub(crate) before: f64,
    /// Bytes of it that have arrived now.
    pub(crate) after: f64,
    /// Bytes per second.
    pub(crate) rate: f64,
}

/// The wires of all peers.
#[derive(Clone, Debug)]
pub(crate) struct Wires {
    lines: Vec<Line>,
    /// The cutting of the transfer at each place.
    cuts: Vec<Cut>,
    /// What was seen and not told yet, of each peer in order of time.
    pub(crate) seen: Vec<Seen>,
    /// SDUs that became whole in the present interval.
    whole: Vec<Sdu>,
}

impl Wires {
    /// Wires to peers that do these things on them.
    pub(crate) fn new(acts: impl Iterator<Item = Option<Wire>>, seed: u64) -> Self {
        let line = |(peer, wire): (usize, Option<Wire>)| Line {
            cookies: Cookies::default(),
            act: wire.and_then(|wire| Act::of(&wire, Stream::new(seed, "wire", "peer", peer as u64))),
            unread: Vec::new(),
            written_at: 0,
            is_watched: false,
        };
        Wires { lines: acts.enumerate().map(line).collect(), cuts: Vec::new(), seen: Vec::new(), whole: Vec::new() }
    }

    /// The client writes a cookie that reaches the peer at `reaches_at`.
    pub(crate) fn write(&mut self, peer: u32, cookie: u16, now: Micros, reaches_at: Micros) {
        let line = &mut self.lines[peer as usize];
        line.written_at = now;
        line.cookies.send(cookie, reaches_at);
    }

    /// A transfer of these bytes begins with a request that reaches the peer at `asked_at`.
    pub(crate) fn open(&mut self, place: u32, bytes: u64, asked_at: Micros) {
        let place = place as usize;
        if self.cuts.len() <= place {
            self.cuts.resize(place + 1, Cut::default());
        }
        self.cuts[place].begin(bytes, asked_at);
    }

    /// It is over; whether the client saw it begin.
    pub(crate) fn close(&mut self, place: u32) -> bool {
        self.cuts[place as usize].end()
    }

    /// What flowed of one reply.
    pub(crate) fn flows(&mut self, interval: Interval, flow: Flow) {
        let act = &mut self.lines[interval.peer as usize].act;
        self.cuts[flow.place as usize].pass(flow, interval, |nth| Act::payload(act, nth), &mut self.whole);
    }

    /// What flowed besides: `link` bytes per second are the peer's own, `used` of them its replies', `lulls` says that one of these pauses.
    pub(crate) fn flows_besides(&mut self, interval: Interval, link: f64, used: f64, lulls: bool) {
        if let Some(act) = &mut self.lines[interval.peer as usize].act {
            act.besides(interval, link, used, lulls, &mut self.whole);
        }
    }

    /// The interval is over: what became whole in it leaves with its echo, and what can be read is. Nothing can before `held_until`.
    pub(crate) fn settle(&mut self, interval: Interval, held_until: Micros) {
        let Interval { peer, to, back, .. } = interval;
        let line = &mut self.lines[peer as usize];
        // Stable: SDUs of one moment keep the order of their replies.
        self.whole.sort_by_key(|sdu| sdu.at);
        for sdu in self.whole.drain(..) {
            let left = sdu.began.saturating_sub(back).max(sdu.asked_at);
            let echo = Act::echo(&mut line.act, &mut line.cookies, left);
            line.unread.push(Arrived { at: sdu.at, echo, payload: sdu.payload, begins: sdu.begins });
        }
        if to < held_until {
            return;
        }
        for arrived in line.unread.drain(..) {
            let at = arrived.at.max(held_until);
            if let Some((place, serial)) = arrived.begins
                && self.cuts[place as usize].is_seen_first(serial)
            {
                self.seen.push(Seen { peer, at, what: What::Opens });
            }
            self.seen.push(Seen { peer, at, what: What::Sdu { echo: arrived.echo, payload: arrived.payload } });
        }
    }

    /// Whether SDUs of a peer arrived that the client could not read.
    pub(crate) fn has_unread(&self, peer: u32) -> bool {
        !self.lines[peer as usize].unread.is_empty()
    }

    /// The connection broke, and what was under way on it is lost.
    pub(crate) fn reset(&mut self, peer: u32) {
        let line = &mut self.lines[peer as usize];
        line.cookies = Cookies::default();
        line.unread.clear();
    }

    /// When the client wrote last.
    pub(crate) fn written_at(&self, peer: u32) -> Micros {
        self.lines[peer as usize].written_at
    }

    /// Sets whether it is planned to look whether a cookie is due; whether it was.
    pub(crate) fn watch(&mut self, peer: u32, is_watched: bool) -> bool {
        std::mem::replace(&mut self.lines[peer as usize].is_watched, is_watched)
    }
}
