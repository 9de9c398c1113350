//! Exploration (RANK-3, spec §4.4-E): who is tried besides those who are proven, bounded from both sides.
//!
//! Nobody unproven is optimistic; instead a bounded share of decisions tries the admissible peer that was longest left out. Everyone is tried
//! again within a bounded number of decisions, a trial carries one request, and trials never take the place of the bulk of a transfer.

use alloc::vec::Vec;

use crate::rank::quote::{Class, Quote};

/// With one source asked for, one decision in this many goes to a trial: rarely enough that the best keeps 85 % (scenario C27),
/// often enough that a recovered peer is found within 25 decisions.
const SINGLE_SOURCE_PERIOD: u64 = 8;
/// The same while there are unmeasured peers: more often, since one of them may be the best, and bounded all the same.
const SINGLE_SOURCE_PERIOD_COLD: u64 = 4;
/// With a few sources, one decision in this many gives its last place to a trial.
const FEW_SOURCES_PERIOD: u64 = 4;
/// Fewer sources than this are few.
const FEW: usize = 4;

/// How many of `sources` places the decision numbered `decision` (for its content) gives to trials, when `proven` proven peers and `cold` unmeasured ones are at hand.
pub fn places(sources: usize, decision: u64, proven: usize, cold: usize) -> usize {
    let due = |period: u64| usize::from(decision % period == period - 1);
    match sources {
        0 => 0,
        1 if cold > 0 => due(SINGLE_SOURCE_PERIOD_COLD),
        1 => due(SINGLE_SOURCE_PERIOD),
        2..FEW => due(FEW_SOURCES_PERIOD).max(usize::from(proven < sources && cold > 0)),
        _ if cold == 0 => due(FEW_SOURCES_PERIOD),
        _ if proven < sources => (sources / 3).min(cold),
        _ => (sources / 8).max(1),
    }
}

/// The quotes to try, longest untried first: at most `places`, none of `chosen`, nobody saturated or still at rest, the condemned last.
pub fn candidates(quotes: &[Quote], places: usize, chosen: impl Fn(&Quote) -> bool) -> Vec<Quote> {
    let mut open: Vec<Quote> =
        quotes.iter().filter(|quote| quote.room > 0 && quote.may_be_tried && !chosen(quote)).copied().collect();
    let waits = |quote: &Quote| (quote.class == Class::Condemned, quote.last_tried, quote.key());
    if open.len() > places {
        open.select_nth_unstable_by_key(places, waits);
        open.truncate(places);
    }
    open.sort_unstable_by_key(waits);
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_bounded_and_never_absent() {
        for sources in 1..40 {
            for (proven, cold) in [(1, 30), (40, 30), (40, 0), (3, 1)] {
                let tried: usize = (0..800).map(|decision| places(sources, decision, proven, cold)).sum();
                assert!(tried >= 100, "{sources} {proven} {cold}: {tried}");
                let share = tried as f64 / (800 * sources) as f64;
                let bound = if proven < sources { 0.5 } else { 0.26 };
                assert!(share <= bound, "{sources} sources, {proven} proven, {cold} cold: {share}");
            }
        }
        assert_eq!(places(0, 7, 1, 1), 0);
    }

    #[test]
    fn one_source_keeps_seven_of_eight_decisions() {
        assert_eq!((0..80).map(|decision| places(1, decision, 5, 0)).sum::<usize>(), 10);
        assert_eq!((0..80).map(|decision| places(1, decision, 5, 1)).sum::<usize>(), 20);
    }
}
