//! Planning (RANK-4): who takes part, and how many requests each, so that the whole request ends early.
//!
//! The one idea: a request is as slow as its slowest range. With the amount of work known there is a least time within which everyone together can deliver it,
//! each peer behind what it already owes and judged at its tail; whoever delivers nothing by then is left out, and the others get what they can deliver. A peer
//! without room counts too: near the end it can be better to wait for it than to hand a range to a slow one.

use alloc::vec::Vec;

use crate::rank::quote::{Class, Quote};
use crate::table::Slot;
use crate::units::Bytes;

/// The work to be placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Size of one range.
    pub range: Bytes,
    /// How many ranges are left to place, where known.
    pub ranges: Option<u32>,
    /// At most this many peers.
    pub sources: usize,
    /// Names the work for incumbency: equal for all decisions about one content.
    pub scope: u64,
    /// How many decisions were made about this content before.
    pub decision: u64,
    /// Ranges of it known to be in flight: only then does waiting for an end make sense.
    pub in_flight: u32,
    /// How many requests the host can send now, where known.
    pub wanted: Option<u32>,
}

/// One chosen peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Who.
    pub slot: Slot,
    /// How many more requests it may have in flight, at least 1.
    pub requests: u32,
    /// Whether it is tried rather than trusted.
    pub exploratory: bool,
}

/// The chosen peers, best first.
pub type Advice = Vec<Pick>;

/// Halvings of the interval in which the end is searched: to a thousandth of it.
const BISECTIONS: u32 = 12;
/// Requests to one peer are kept apart where the work lasts for so many of their spaces. Fewer lets slower peers have the last ranges of short work, more leaves paths idle for a
/// round trip each time. Found in drawn worlds.
const SPACES: f32 = 12.0;
/// And for so many waits for another's end, where that is further away than one space: once they are apart they stay so, and until then the peer has one request less. Fewer
/// loses that for long in short work. Found in drawn worlds.
const WAITS: f32 = 25.0;
/// What is delivered this little after the end is delivered in time; less leaves out peers over noise.
const SLACK: f32 = 1.02;

/// Where nobody has room, whoever ends a request within this multiple of the soonest's time may get it. Less herds on whoever was not seen to slow down, more queues at the slow.
const HERDED: f32 = 2.0;

/// The first of `quotes`, so many that `sources` of them have room.
pub fn leading(quotes: &[Quote], sources: usize) -> &[Quote] {
    let mut with_room = 0;
    let at = quotes.iter().position(|quote| {
        with_room += usize::from(quote.room > 0);
        with_room > sources
    });
    &quotes[..at.unwrap_or(quotes.len())]
}

/// The least time, in seconds, within which `quotes` together deliver `ranges` ranges of `range` bytes; infinite where there is nobody.
pub fn end_s(quotes: &[Quote], ranges: u32, range: Bytes) -> f32 {
    // Searched between the soonest first range and the soonest end at one peer alone.
    let soonest = quotes.iter().map(|quote| quote.tail_s).fold(f32::INFINITY, f32::min);
    let more = ranges.saturating_sub(1) as f32 * range.get() as f32;
    let latest = quotes.iter().map(|quote| quote.tail_s + more / quote.pace.max(1.0)).fold(f32::INFINITY, f32::min);
    if !latest.is_finite() {
        return f32::INFINITY;
    }
    let enough = |by_s: f32| {
        let mut left = ranges;
        quotes.iter().any(|quote| {
            left = left.saturating_sub(quote.delivers(by_s, range));
            left == 0
        })
    };
    let (mut low, mut high) = (soonest, latest * SLACK);
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Takes the leading `quotes` (in order, saturated ones too) into the plan that ends at `end_s`, with at most `most` requests in all.
///
/// A host gives its requests to the first peers of the answer, so the answer must not name more for them than is good when it stops there. Each peer has a share of
/// the whole work, what it delivers until the end; the requests that are wanted now go where most of a share is left for each request in flight (the rule
/// of d'Hondt), so that no peer that is needed later stays idle now.
pub fn place(quotes: &[Quote], end_s: f32, work: &Work, most: u32, into: &mut Advice) {
    let Some(ranges) = work.ranges else {
        let picks = quotes.iter().filter(|quote| quote.room > 0);
        into.extend(picks.map(|quote| Pick {
            slot: quote.slot,
            requests: quote.room,
            exploratory: !quote.is_proven(),
        }));
        return;
    };
    let mut left = ranges.max(1).min(most);
    let guess = quotes.first().map_or(0, |quote| quote.room).max(u32::try_from(work.sources).unwrap_or(u32::MAX));
    let share = |quote: &Quote| quote.delivers(end_s * SLACK, work.range);
    let mut shares: Vec<Share> = quotes.iter().map(|quote| Share::of(quote, share(quote))).collect();
    let busy = quotes.iter().filter(|quote| quote.in_flight > 0);
    let pace = busy.fold(0.0, |sum, quote| sum + quote.pace);
    for share in &mut shares {
        if is_too_soon(share.quote, pace, end_s, work) {
            share.most = 0;
        }
    }
    let room = shares.iter().fold(0_u32, |sum, share| sum.saturating_add(share.most));
    let quota = quota(&shares, work.wanted.unwrap_or(guess).min(left).min(room));
    shares.retain(|share| share.most > 0);
    shares.sort_by(|a, b| b.per_request().total_cmp(&a.per_request()));
    for share in &shares {
        // Who is not among those wanted now is for a host that has more requests to give.
        let requests = share.at(quota).max(1).min(left);
        if requests > 0 {
            left -= requests;
            into.push(Pick { slot: share.quote.slot, requests, exploratory: !share.quote.is_proven() });
        }
    }
}

/// Whether the next request to a peer is to wait for the end of another peer's, all those in flight having a `pace` of so many bytes per second: where it would come too soon
/// after its last one, and the work is long enough for the wait and its gain.
fn is_too_soon(quote: &Quote, pace: f32, end_s: f32, work: &Work) -> bool {
    let next_s = work.range.get() as f32 / (pace - quote.pace).max(1.0);
    let is_worth_it = |spacing_s: f32| end_s > SPACES * spacing_s && (next_s < spacing_s || end_s > WAITS * next_s);
    work.in_flight > quote.in_flight && quote.spacing_s(work.range).is_some_and(is_worth_it)
}

/// One peer's part of the work.
struct Share<'a> {
    quote: &'a Quote,
    /// Ranges until the end, those in flight among them.
    ranges: f32,
    /// Requests that it may get now.
    most: u32,
}

impl<'a> Share<'a> {
    fn of(quote: &'a Quote, delivers: u32) -> Self {
        let ranges = delivers as f32 + quote.in_flight as f32;
        Share { quote, ranges, most: delivers.min(quote.room) }
    }

    /// Ranges for each request in flight, if it got one more. What was just sent counts twice: two sent together come together, and leave the path idle for a round trip
    /// each time.
    fn per_request(&self) -> f32 {
        self.ranges / ((self.quote.in_flight + self.quote.fresh) as f32 + 1.0)
    }

    /// Requests that it gets where each stands for `quota` ranges at least.
    fn at(&self, quota: f32) -> u32 {
        ((self.ranges / quota) as u32).saturating_sub(self.quote.in_flight).min(self.most)
    }
}

/// The most ranges for which one request can stand so that `wanted` requests are given out.
fn quota(shares: &[Share<'_>], wanted: u32) -> f32 {
    let (mut low, mut high) = (0.0, shares.iter().map(|share| share.ranges).fold(0.0, f32::max));
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        let given = shares.iter().fold(0_u32, |sum, share| sum.saturating_add(share.at(middle)));
        if given >= wanted { low = middle } else { high = middle }
    }
    low
}

/// Who gets a request beyond its room, where `soonest` seems to end it soonest of all `quotes`. Who has much to do ends little, so it keeps looking as fast as it was, and would
/// get all the rest: of those that are not much later, whoever has least.
pub fn beyond_room<'a>(soonest: &'a Quote, quotes: &'a [Quote]) -> &'a Quote {
    let is_near = |quote: &&Quote| {
        quote.class == soonest.class
            && quote.is_proven()
            && !quote.is_suspect
            && quote.cost_s <= HERDED * soonest.cost_s
    };
    quotes.iter().filter(is_near).min_by_key(|quote| (quote.in_flight, quote.key(), quote.slot)).unwrap_or(soonest)
}

/// Cuts an answer down to `most` requests in all, from its end.
pub fn at_most(most: u32, advice: &mut Advice) {
    let mut left = most;
    advice.retain_mut(|pick| {
        pick.requests = pick.requests.min(left);
        left -= pick.requests;
        pick.requests > 0
    });
}

/// Nobody was ever measured: the caller's whole parallelism, in the order drawn (RANK-3, scenario C28). As many requests as sources, or as one peer takes, are
/// dealt in rounds: nobody unknown gets a second one before everybody has one, and a set of unknown peers is not flooded before the first of them answered.
pub fn spread(quotes: &[Quote], work: &Work, into: &mut Advice) {
    let chosen = &quotes[..quotes.len().min(work.sources)];
    let first = into.len();
    let most = chosen.iter().map(|quote| quote.room as usize).max().unwrap_or(0).max(work.sources);
    let mut left = work.ranges.map_or(usize::MAX, |ranges| ranges.max(1) as usize).min(most);
    let picks = chosen.iter().map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true });
    into.extend(picks.take(left));
    left -= into.len() - first;
    let mut dealt = true;
    while dealt && left > 0 {
        dealt = false;
        for (pick, quote) in into[first..].iter_mut().zip(chosen) {
            if left > 0 && pick.requests < quote.room {
                pick.requests += 1;
                left -= 1;
                dealt = true;
            }
        }
    }
}

/// Whether a quote may carry ordinary work: open or on probation.
pub fn is_admissible(quote: &Quote) -> bool {
    quote.class <= Class::Probation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Basis;
    use crate::seed::Seed;
    use crate::table::Table;

    const WORK: Work = Work {
        range: Bytes::new(1_000_000),
        ranges: Some(1000),
        sources: 8,
        scope: 0,
        decision: 0,
        in_flight: 0,
        wanted: None,
    };

    fn quotes(paces: &[f32]) -> Vec<Quote> {
        let mut table = Table::<usize, u8>::new(64, Seed::new(0));
        let mut quotes: Vec<Quote> = paces
            .iter()
            .enumerate()
            .map(|(key, &pace)| Quote {
                basis: Basis::Measured,
                cost_s: 0.01 + 1e6 * 2.0 / pace,
                tail_s: 0.01 + 1.2e6 * 2.0 / pace,
                usual_s: 0.01 + 1e6 * 2.0 / pace,
                pace,
                room: 2,
                last_tried: 1,
                ..Quote::sample(table.admit(key).slot().unwrap())
            })
            .collect();
        quotes.sort_by_key(Quote::key);
        quotes
    }

    fn planned(paces: &[f32], ranges: Option<u32>) -> Vec<(usize, u32)> {
        let mut advice = Advice::new();
        let work = Work { ranges, ..WORK };
        let quotes = quotes(paces);
        let end_s = ranges.map_or(f32::INFINITY, |ranges| end_s(&quotes, ranges, work.range));
        place(&quotes, end_s, &work, u32::MAX, &mut advice);
        advice.iter().map(|pick| (pick.slot.index(), pick.requests)).collect()
    }

    #[test]
    fn a_straggler_gets_no_range_of_a_short_request_and_its_share_of_a_long_one() {
        let paces = [20e6, 10e6, 0.1e6];
        assert_eq!(planned(&paces, Some(8)), [(0, 2), (1, 2)]);
        assert_eq!(planned(&paces, Some(5_000)), [(0, 2), (1, 2), (2, 2)]);
    }

    #[test]
    fn equals_share_what_is_wanted_now() {
        // Eight sources, each with room for eight: nobody is flooded while others are idle.
        let mut quotes = quotes(&[10e6; 5]);
        quotes.iter_mut().for_each(|quote| quote.room = 8);
        let work = WORK;
        let mut advice = Advice::new();
        place(&quotes, end_s(&quotes, 1000, work.range), &work, u32::MAX, &mut advice);
        assert!(advice.len() == 5 && advice.iter().all(|pick| pick.requests == 2), "{advice:?}");
    }

    #[test]
    fn what_is_in_flight_counts_against_a_share() {
        let mut quotes = quotes(&[10e6; 2]);
        (quotes[0].in_flight, quotes[0].room, quotes[1].room) = (3, 5, 8);
        let wanted = Some(4);
        let work = Work { sources: 2, decision: 1, in_flight: 3, wanted, ..WORK };
        let mut advice = Advice::new();
        place(&quotes, end_s(&quotes, 1000, work.range), &work, u32::MAX, &mut advice);
        let given: Vec<_> = advice.iter().map(|pick| (pick.slot, pick.requests)).collect();
        assert_eq!(given, [(quotes[1].slot, 3), (quotes[0].slot, 1)], "the idle one leads and catches up");
    }

    #[test]
    fn requests_to_one_of_several_equals_are_sent_one_after_the_other() {
        let mut quotes = quotes(&[10e6; 2]);
        // The first has one that was just sent, the second two that are half done.
        (quotes[0].in_flight, quotes[1].in_flight) = (1, 2);
        let mut leads = |fresh| {
            quotes[0].fresh = fresh;
            // Too short for waiting.
            let work = Work { ranges: Some(16), sources: 2, decision: 1, in_flight: 3, wanted: Some(1), ..WORK };
            let mut advice = Advice::new();
            place(&quotes, end_s(&quotes, 16, work.range), &work, u32::MAX, &mut advice);
            advice[0].slot
        };
        let (once_sent, just_sent) = (leads(0), leads(1));
        assert_eq!([once_sent, just_sent], [quotes[0].slot, quotes[1].slot]);
    }

    #[test]
    fn what_would_run_in_step_waits_for_the_end_of_another() {
        // 10 MB/s and 50 ms each: of two in flight to one peer, the second is best sent 125 ms after the first.
        let mut quotes = quotes(&[10e6; 3]);
        quotes.iter_mut().for_each(|quote| (quote.in_flight, quote.room, quote.first_byte_s) = (2, 0, 0.05));
        (quotes[0].in_flight, quotes[0].fresh, quotes[0].room) = (1, 1, 1);
        let asked = |quotes: &[Quote], ranges, in_flight| {
            let work = Work { ranges: Some(ranges), sources: 3, decision: 1, in_flight, wanted: Some(1), ..WORK };
            let mut advice = Advice::new();
            place(quotes, end_s(quotes, ranges, work.range), &work, u32::MAX, &mut advice);
            !advice.is_empty()
        };
        assert!(!asked(&quotes, 1000, 5));
        assert!(asked(&quotes, 20, 5), "short work");
        assert!(asked(&quotes, 1000, 1), "nothing else of it will end");
        let mut slow_others = quotes.clone();
        slow_others[1..].iter_mut().for_each(|quote| quote.pace = 1e6);
        assert!(!asked(&slow_others, 1000, 5) && asked(&slow_others, 100, 5), "half a second to the next end");
        quotes[0].fresh = 0;
        assert!(asked(&quotes, 1000, 5), "the first is well on its way");
    }

    #[test]
    fn the_last_range_waits_for_a_fast_peer_without_room() {
        let mut quotes = quotes(&[20e6, 0.1e6]);
        quotes[0].room = 0;
        let work = Work { ranges: Some(1), in_flight: 1, ..WORK };
        let mut advice = Advice::new();
        place(&quotes, end_s(&quotes, 1, work.range), &work, u32::MAX, &mut advice);
        assert!(advice.is_empty());
    }

    #[test]
    fn beyond_their_room_peers_are_filled_evenly_unless_one_is_much_later() {
        // A11: the first ended nothing since all became slow, and looks as fast as ever behind eight requests.
        let mut quotes = quotes(&[20e6, 4e6, 0.1e6]);
        let [fast, usual, slow] = [0, 1, 2].map(|at| quotes[at].slot);
        quotes.iter_mut().for_each(|quote| (quote.room, quote.in_flight) = (0, 2));
        let chosen = |quotes: &[Quote]| beyond_room(&quotes[0], quotes).slot;
        assert_eq!(chosen(&quotes), fast, "all as full: the soonest");
        (quotes[0].in_flight, quotes[0].cost_s, quotes[1].cost_s) = (8, 0.6, 1.0);
        assert_eq!(chosen(&quotes), usual);
        quotes[1].cost_s = 1.3;
        assert_eq!(chosen(&quotes), fast, "{usual:?} and {slow:?} are much later");
        (quotes[1].cost_s, quotes[1].is_suspect) = (0.5, true);
        assert_eq!(chosen(&quotes), fast, "nobody who failed with most");
        (quotes[1].is_suspect, quotes[1].basis) = (false, Basis::Prior);
        assert_eq!(chosen(&quotes), fast, "nobody unknown");
    }

    #[test]
    fn the_end_is_the_least_time_that_suffices() {
        let quotes = quotes(&[20e6, 10e6, 1e6]);
        let range = Bytes::new(1_000_000);
        let mut last = 0.0;
        for ranges in [1, 2, 3, 10, 100, 10_000, u32::MAX] {
            let end = end_s(&quotes, ranges, range);
            let sum = |by_s: f32| quotes.iter().map(|quote| u64::from(quote.delivers(by_s, range))).sum::<u64>();
            assert!(end >= last && sum(end) >= u64::from(ranges), "{ranges}: {end}");
            assert!(sum(end * 0.98) < u64::from(ranges), "{ranges}: {end}");
            last = end;
        }
        assert_eq!(end_s(&[], 3, range), f32::INFINITY);
    }

    #[test]
    fn no_more_requests_are_planned_than_ranges_are_left() {
        let plan = planned(&[20e6, 20e6, 20e6], Some(3));
        assert_eq!(plan.iter().map(|&(_, requests)| requests).sum::<u32>(), 3);
    }

    #[test]
    fn unknown_work_takes_the_leading_peers_with_all_their_room() {
        assert_eq!(planned(&[20e6, 10e6], None), [(0, 2), (1, 2)]);
        assert_eq!(planned(&[], Some(3)), []);
    }
}
