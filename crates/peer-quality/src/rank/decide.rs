//! The decision itself: a function of the quotes and the work alone (RANK-1 to RANK-4).
//!
//! The one idea: proven peers are planned for the end of the work; a trial and the places of the unmeasured are added within their bounds; and an answer is
//! empty only where waiting for an end is better than any peer, or nobody may be asked.

use alloc::vec::Vec;

use crate::rank::explore;
use crate::rank::plan::{self, Advice, Pick, Work};
use crate::rank::quote::Quote;

/// Decides who should do `work`, out of `quotes`; `decisions` were made before, this one among them. Sorts the quotes.
pub(crate) fn decide(quotes: &mut [Quote], work: &Work, decisions: u64, into: &mut Advice) {
    quotes.sort_unstable_by_key(Quote::key);
    let (open, _) = quotes.split_at(quotes.partition_point(plan::is_admissible));
    let proven: Vec<Quote> = open.iter().filter(|quote| quote.is_proven()).copied().collect();
    let cold = open.iter().filter(|quote| !quote.is_proven() && quote.room > 0);
    if proven.is_empty() {
        plan::spread(&cold.copied().collect::<Vec<_>>(), work, into);
    } else {
        let leading = plan::leading(&proven, work.sources);
        let end_s = work.ranges.map_or(f32::INFINITY, |ranges| plan::end_s(leading, ranges, work.range));
        // A content of one request has a first decision only: its place among all decisions decides.
        let alone = work.ranges == Some(1) && work.decision == 0;
        let schedule = explore::Schedule {
            sources: work.sources,
            proven: proven.len(),
            decision: if alone { decisions } else { work.decision },
            decisions,
            best_s: leading.iter().map(|quote| quote.usual_s).fold(f32::INFINITY, f32::min),
            end_s: if alone { f32::INFINITY } else { end_s },
        };
        let others = quotes.iter().filter(|quote| Some(quote.slot) != leading.first().map(|quote| quote.slot));
        let tried = explore::due(others, &schedule);
        // An unmeasured peer leads, so that it is tried however few requests the host has to give. One that was found slow does so only where it is the only one:
        // the best of an answer with several is the best.
        let tried_at = usize::from(work.sources > 1 && tried.is_some_and(|quote| quote.is_proven()));
        let is_free = |quote: &Quote| explore::is_idle(quote) && explore::in_time(quote, end_s);
        let fits = |quote: &&Quote| is_free(quote) && tried.is_none_or(|tried| tried.slot != quote.slot);
        // Where fewer are proven than wanted, some places are for the unmeasured, and the proven leave the host requests for them.
        let places = explore::places(work.sources, proven.len());
        let unmeasured: Vec<Quote> = cold.filter(fits).take(places).copied().collect();
        let rest = leading.iter().filter(|quote| tried.is_none_or(|tried| tried.slot != quote.slot)).copied();
        let most =
            if unmeasured.is_empty() { u32::MAX } else { u32::try_from(work.sources.div_ceil(2)).unwrap_or(u32::MAX) };
        plan::place(&rest.collect::<Vec<_>>(), end_s, work, most, into);
        if let Some(quote) = tried {
            into.insert(tried_at.min(into.len()), Pick { slot: quote.slot, requests: 1, exploratory: true });
        }
        into.truncate(work.sources - unmeasured.len());
        into.extend(unmeasured.iter().map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true }));
    }
    if !into.is_empty() || work.sources == 0 {
        return;
    }
    if open.is_empty() {
        // Better a peer of bad repute, one request at a time, than none; but not because the good ones are busy.
        let last_resort = quotes.iter().filter(|quote| quote.room > 0).take(work.sources);
        into.extend(last_resort.map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true }));
    } else if work.in_flight == 0 && open.len() > 1 {
        // Nothing of this work would end by itself, so waiting for the others' ends would be up to chance: one request goes beyond the room of the soonest.
        let soonest = open.iter().find(|quote| quote.is_proven()).unwrap_or(&open[0]);
        into.push(Pick { slot: soonest.slot, requests: 1, exploratory: !soonest.is_proven() });
    }
}
