//! Planning (RANK-4, first layer): who takes part, and how many requests each, so that the whole request ends early.
//!
//! The one idea: a request is as slow as its slowest range. With the amount of work known, the time at which everyone together would be done (as if work
//! were fluid) is compared with the time that one range needs at each peer's tail; whoever would still be busy by then is left out, and the others get
//! shares by their rates.

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
    /// How many decisions were made about this content before: the schedule of trials.
    pub decision: u64,
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

/// A peer may finish its range this much later than everyone would be done; less leaves out peers over noise. Unmeasured heuristic.
const SLACK: f32 = 1.25;
/// Rounds of leaving out stragglers; each leaves out at least one peer or ends.
const MAX_ROUNDS: usize = 16;

/// Takes the leading `quotes` (sorted, all with room) into the plan: at most `sources` of them, without those that would straggle.
pub fn place(quotes: &[Quote], sources: usize, work: &Work, into: &mut Advice) {
    let mut chosen: Vec<Quote> = quotes.iter().take(sources).copied().collect();
    let Some(ranges) = work.ranges else {
        into.extend(chosen.iter().map(|quote| Pick {
            slot: quote.slot,
            requests: quote.room,
            exploratory: !quote.is_proven(),
        }));
        return;
    };
    let total = work.range.get() as f32 * ranges.max(1) as f32;
    let mut done_s = finish_s(&chosen, total);
    for _ in 0..MAX_ROUNDS {
        let before = chosen.len();
        let first = chosen.first().map(|quote| quote.slot);
        chosen.retain(|quote| {
            Some(quote.slot) == first || quote.tail_s <= done_s * SLACK || quote.tail_s <= quotes[0].tail_s * SLACK
        });
        if chosen.len() == before {
            break;
        }
        done_s = finish_s(&chosen, total);
    }
    let mut left = ranges.max(1);
    for quote in &chosen {
        let share = (done_s - quote.first_byte_s).max(0.0) * quote.rate / work.range.get().max(1) as f32;
        let requests = (share as u32).saturating_add(1).min(quote.room).min(left);
        if requests > 0 {
            left -= requests;
            into.push(Pick { slot: quote.slot, requests, exploratory: !quote.is_proven() });
        }
    }
}

/// Nobody was ever measured: the caller's whole parallelism, in the order drawn (RANK-3, scenario C28). With the work known, the requests are dealt in rounds,
/// so that nobody unknown gets a second one before everybody has one.
pub fn spread(quotes: &[Quote], work: &Work, into: &mut Advice) {
    let chosen = &quotes[..quotes.len().min(work.sources)];
    let picks = chosen.iter().map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true });
    let first = into.len();
    into.extend(picks.take(work.ranges.map_or(usize::MAX, |ranges| ranges.max(1) as usize)));
    let mut left = work.ranges.map_or(u32::MAX, |ranges| ranges.saturating_sub((into.len() - first) as u32));
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

/// When all of `quotes` together have delivered `total` bytes, each starting after its first byte: the least T with Σ rate·(T − first byte) = total.
fn finish_s(quotes: &[Quote], total: f32) -> f32 {
    let rate: f32 = quotes.iter().map(|quote| quote.rate).sum();
    let late: f32 = quotes.iter().map(|quote| quote.rate * quote.first_byte_s).sum();
    if rate > 0.0 { (total + late) / rate } else { f32::INFINITY }
}

/// Whether a quote may carry ordinary work: open or on probation, with room.
pub fn is_admissible(quote: &Quote) -> bool {
    quote.room > 0 && quote.class <= Class::Probation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Basis;
    use crate::seed::Seed;
    use crate::table::Table;

    fn quotes(rates: &[f32]) -> Vec<Quote> {
        let mut table = Table::<usize, u8>::new(64, Seed::new(0));
        let mut quotes: Vec<Quote> = rates
            .iter()
            .enumerate()
            .map(|(key, &rate)| Quote {
                slot: table.admit(key).slot().unwrap(),
                class: Class::Open,
                basis: Basis::Measured,
                cost_s: 0.01 + 1e6 * 2.0 / rate,
                tail_s: 0.01 + 1.2e6 * 2.0 / rate,
                first_byte_s: 0.01,
                rate,
                room: 2,
                last_tried: 1,
                may_be_tried: true,
                salt: 0,
            })
            .collect();
        quotes.sort_by_key(Quote::key);
        quotes
    }

    fn planned(rates: &[f32], ranges: Option<u32>) -> Vec<(usize, u32)> {
        let mut advice = Advice::new();
        let work = Work { range: Bytes::new(1_000_000), ranges, sources: 8, scope: 0, decision: 0 };
        place(&quotes(rates), 8, &work, &mut advice);
        advice.iter().map(|pick| (pick.slot.index(), pick.requests)).collect()
    }

    #[test]
    fn a_straggler_gets_no_range_of_a_short_request_and_its_share_of_a_long_one() {
        let rates = [20e6, 10e6, 0.1e6];
        assert_eq!(planned(&rates, Some(8)), [(0, 2), (1, 2)]);
        assert_eq!(planned(&rates, Some(5_000)), [(0, 2), (1, 2), (2, 2)]);
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
