//! Cookies sent and not yet echoed: a ring in send order, and hash chains from cookie to place (MEAS-1, MEAS-2).
//!
//! The one idea: the peer receives in order, so an echo of one cookie settles it and every older one. All removal is from the old end of the ring, by moving one
//! number; nothing is taken out of the chains, since an entry is dead as soon as its sequence number lies outside the ring, as in the window of an
//! LZ77 compressor. Adding, finding and settling any number are O(1).
//!
//! Bounds: at most [`MAX_OUTSTANDING`] cookies, the oldest leaves first; 14 bytes each, in a power of two that grows with need and falls back once all are
//! gone. Chains hash a cookie by its low bits: cookies are uniform by construction.

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

/// The cookies of one connection. Sequence numbers wrap; an entry's slot is its number modulo the capacity.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    ring: Vec<Entry>,
    /// By the low bits of a cookie, the number of the newest entry with them; meaningless where that is not live.
    newest: Vec<u16>,
    oldest: u16,
    len: u16,
}

/// Twelve bytes: the time is cut in two halves so that it needs no alignment.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    cookie: u16,
    /// The number of the entry before it in its chain.
    older: u16,
    /// Microseconds shifted left by one; the low bit says that the answer may come whenever.
    sent: [u32; 2],
}

const _: () =
    assert!(MAX_OUTSTANDING.is_power_of_two() && size_of::<Entry>() == 12 && MAX_OUTSTANDING < u16::MAX as usize / 2);

impl Entry {
    fn word(self) -> u64 {
        u64::from(self.sent[1]) << 32 | u64::from(self.sent[0])
    }

    fn sent(self) -> Time {
        Time::from_micros(self.word() >> 1)
    }
}

impl Outstanding {
    pub(super) fn new() -> Self {
        Self::with_capacity(INITIAL)
    }

    fn with_capacity(capacity: usize) -> Self {
        Outstanding { ring: vec![Entry::default(); capacity], newest: vec![0; capacity], oldest: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Entry>() * self.ring.capacity() + 2 * self.newest.capacity()
    }

    #[inline]
    pub(super) fn contains(&self, cookie: u16) -> bool {
        self.find(cookie).is_some()
    }

    /// When the oldest was sent.
    pub(super) fn oldest(&self) -> Option<Time> {
        (self.len > 0).then(|| self.entry(self.oldest).sent())
    }

    /// Adds a cookie that is not in it. At the bound the oldest leaves and is returned.
    #[inline]
    pub(super) fn push(&mut self, cookie: u16, sent: Time, is_prompt: bool) -> Option<u16> {
        let evicted = if self.len() == self.ring.len() { self.make_room() } else { None };
        let word = sent.as_micros() << 1 | u64::from(!is_prompt);
        self.place(Entry { cookie, older: 0, sent: [word as u32, (word >> 32) as u32] });
        evicted
    }

    /// Notes that the newest cookie, if it is `cookie`, was also sent with something that is answered at once.
    pub(super) fn mark_prompt(&mut self, cookie: u16) {
        let Some(last) = self.len.checked_sub(1) else { return };
        let slot = self.slot(self.oldest.wrapping_add(last));
        if self.ring[slot].cookie == cookie {
            self.ring[slot].sent[0] &= !1;
        }
    }

    /// Settles `cookie` and drops every older one; none where it is not outstanding.
    #[inline]
    pub(super) fn settle(&mut self, cookie: u16) -> Option<Settled> {
        let number = self.find(cookie)?;
        let entry = self.entry(number);
        self.drop_oldest(number.wrapping_sub(self.oldest) + 1);
        Some(Settled { sent: entry.sent(), is_prompt: entry.sent[0] & 1 == 0 })
    }

    /// Forgets the oldest cookie if it was sent more than [`HOLD`] ago, and returns it.
    pub(super) fn expire(&mut self, now: Time) -> Option<u16> {
        let is_due = self.oldest().is_some_and(|sent| now.since(sent) > HOLD);
        if is_due { self.pop() } else { None }
    }

    fn slot(&self, number: u16) -> usize {
        usize::from(number) & (self.ring.len() - 1)
    }

    fn entry(&self, number: u16) -> Entry {
        self.ring[self.slot(number)]
    }

    fn chain(&self, cookie: u16) -> usize {
        usize::from(cookie) & (self.newest.len() - 1)
    }

    /// The number of a cookie.
    fn find(&self, cookie: u16) -> Option<u16> {
        let mut number = self.newest[self.chain(cookie)];
        // Places counted from the old end. A link that is dead may, after a wrap, seem live and lead into another chain; places that only fall end that
        // walk, and it finds nothing, since whatever is live in the right chain comes before any dead link.
        let mut below = self.len;
        loop {
            let place = number.wrapping_sub(self.oldest);
            if place >= below {
                return None;
            }
            let entry = self.entry(number);
            if entry.cookie == cookie {
                return Some(number);
            }
            (below, number) = (place, entry.older);
        }
    }

    fn place(&mut self, entry: Entry) {
        let number = self.oldest.wrapping_add(self.len);
        let (slot, chain) = (self.slot(number), self.chain(entry.cookie));
        self.ring[slot] = Entry { older: self.newest[chain], ..entry };
        self.newest[chain] = number;
        self.len += 1;
    }

    fn pop(&mut self) -> Option<u16> {
        let cookie = (self.len > 0).then(|| self.entry(self.oldest).cookie)?;
        self.drop_oldest(1);
        Some(cookie)
    }

    fn drop_oldest(&mut self, count: u16) {
        self.oldest = self.oldest.wrapping_add(count);
        self.len -= count;
        if self.len == 0 && self.ring.len() > KEPT {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        *self = Self::new();
    }

    /// Room for one more; what had to leave for it.
    #[cold]
    fn make_room(&mut self) -> Option<u16> {
        if self.len() == MAX_OUTSTANDING {
            return self.pop();
        }
        let mut larger = Self::with_capacity(2 * self.ring.len());
        for nth in 0..self.len {
            larger.place(self.entry(self.oldest.wrapping_add(nth)));
        }
        *self = larger;
        None
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
        fn it_agrees_with_a_list(start in any::<u16>(), ops in prop::collection::vec((0u8..4, 1u16..600), 0..2000)) {
            // Cookies below 600 in 64 chains and more, from any sequence number: long chains and wrap-around.
            let (mut outstanding, mut list) = (Outstanding::new(), Vec::new());
            outstanding.oldest = start;
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
