//! The decision itself: a function of the quotes and the work alone (RANK-1 to RANK-4).
//!
//! The one idea: proven peers are planned for the end of the work; a trial and the places of the unmeasured are added within their bounds; an answer is
//! empty only where waiting for an end is better than any peer, or nobody may be asked; and while it may be our own link, those that failed with most come last.

use alloc::vec::Vec;

use crate::rank::explore::{self, Turns};
use crate::rank::plan::{self, Advice, Pick, Work};
use crate::rank::quote::Quote;
use crate::table::Slot;

/// Quotes that are sorted beyond the number of sources at first: some of the first have no room.
const MARGIN: usize = 8;

/// Decides who should do `work`, out of `quotes` in any order; `decisions` were made, this one among them.
pub(crate) fn decide(quotes: &[Quote], work: &Work, decisions: u64, turns: &mut Turns, into: &mut Advice) {
    let few = work.sources.saturating_add(MARGIN);
    let mut proven =
        Order::new(quotes, few, |quote| plan::is_admissible(quote) && quote.is_proven() && !quote.is_suspect);
    let mut cold = Order::new(quotes, few, |quote| plan::is_admissible(quote) && !quote.is_proven() && quote.room > 0);
    let mut suspects = Order::new(quotes, few, |quote| {
        plan::is_admissible(quote) && quote.is_proven() && quote.is_suspect && quote.room > 0
    });
    let mut open = 0_usize;
    for quote in quotes.iter().filter(|quote| plan::is_admissible(quote)) {
        open += 1;
        match (quote.is_proven(), quote.room > 0) {
            (true, _) if !quote.is_suspect => proven.push(quote),
            (true, true) => suspects.push(quote),
            (false, true) => cold.push(quote),
            (_, false) => {}
        }
    }
    if proven.is_empty() {
        // Who is known and fails comes after everybody unknown: if it is our own link, nothing is lost by asking these.
        let mut chosen: Vec<Quote> = cold.first(work.sources).to_vec();
        chosen.extend(suspects.first(work.sources - chosen.len()));
        plan::spread(&chosen, work, into);
    } else {
        trust(quotes, &mut proven, &mut cold, work, decisions, turns, into);
    }
    if !into.is_empty() || work.sources == 0 {
        return;
    }
    if open == 0 {
        // Better a peer of bad repute, one request at a time, than none; but not because the good ones are busy.
        let mut last_resort = Order::new(quotes, few, |quote| quote.room > 0);
        quotes.iter().filter(|quote| quote.room > 0).for_each(|quote| last_resort.push(quote));
        let picks = last_resort.first(work.sources).iter();
        into.extend(picks.map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true }));
    } else if work.in_flight == 0 && open > 1 {
        // Nothing of this work would end by itself, so waiting for the others' ends would be up to chance: one request goes beyond somebody's room.
        let open = quotes.iter().filter(|quote| plan::is_admissible(quote));
        let soonest = proven.first(1).first().or(open.min_by_key(|quote| quote.key()));
        let chosen = soonest.map(|soonest| plan::beyond_room(soonest, quotes));
        into.extend(chosen.map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: !quote.is_proven() }));
    }
}

/// The answer where anybody is proven.
fn trust(
    quotes: &[Quote],
    proven: &mut Order<'_, impl Fn(&Quote) -> bool>,
    cold: &mut Order<'_, impl Fn(&Quote) -> bool>,
    work: &Work,
    decisions: u64,
    turns: &mut Turns,
    into: &mut Advice,
) {
    let known = proven.len();
    let leading = proven.with_room(work.sources);
    let end_s = work.ranges.map_or(f32::INFINITY, |ranges| plan::end_s(leading, ranges, work.range));
    // A content of one request has a first decision only: its place among all decisions decides.
    let alone = work.ranges == Some(1) && work.decision == 0;
    let schedule = explore::Schedule {
        sources: work.sources,
        proven: known,
        decisions,
        best_s: leading.iter().map(|quote| quote.usual_s).fold(f32::INFINITY, f32::min),
        end_s: if alone { f32::INFINITY } else { end_s },
    };
    let best = leading.first().map(|quote| quote.slot);
    // Where one source does many ranges, whoever is asked first warms its connection and keeps them: a trial can wait for the next decision.
    let begins = work.sources == 1 && work.decision == 0 && work.ranges.is_some_and(|ranges| ranges > 1);
    let others = quotes.iter().filter(|quote| Some(quote.slot) != best);
    let tried = if begins { None } else { explore::due(others, &schedule, turns) };
    let is_tried = |quote: &Quote| tried.is_some_and(|tried| tried.slot == quote.slot);
    // The best of an answer with several is the best, unless the host is known to have one request to give: then whoever is unmeasured leads, or would never be tried.
    let is_unmeasured = tried.is_some_and(|quote| !quote.is_proven());
    let leads = work.sources == 1 || (is_unmeasured && work.wanted == Some(1));
    // Where fewer are proven than wanted, some places are for the unmeasured, and the proven leave the host requests for them. Whom the host has no request for would
    // count as tried and never be asked.
    let askable = work.wanted.map_or(usize::MAX, |wanted| wanted.saturating_sub(1) as usize);
    let places = explore::places(work.sources, known).saturating_sub(usize::from(is_unmeasured)).min(askable);
    let fits = |quote: &&Quote| {
        quote.may_be_tried && explore::is_idle(quote) && explore::in_time(quote, end_s) && !is_tried(quote)
    };
    let unmeasured = cold.first_fit(places, fits);
    let without_tried: Vec<Quote>;
    let rest = if leading.iter().any(is_tried) {
        without_tried = leading.iter().filter(|quote| !is_tried(quote)).copied().collect();
        &without_tried
    } else {
        leading
    };
    let half = u32::try_from(work.sources.div_ceil(2)).unwrap_or(u32::MAX);
    plan::place(rest, end_s, work, if unmeasured.is_empty() { u32::MAX } else { half }, into);
    if let Some(quote) = tried {
        into.insert(usize::from(!leads).min(into.len()), Pick { slot: quote.slot, requests: 1, exploratory: true });
    }
    into.truncate(work.sources - unmeasured.len());
    into.extend(unmeasured.iter().map(|quote| Pick { slot: quote.slot, requests: 1, exploratory: true }));
    let named = into.iter().fold(0_u32, |sum, pick| sum.saturating_add(pick.requests));
    let sources = u32::try_from(work.sources).unwrap_or(u32::MAX);
    turns.pass(named.min(work.wanted.unwrap_or(sources)).max(1), &schedule);
}

/// The first of some quotes by their keys. Only those are kept and sorted that may be among the first few: a decision needs no more of thousands.
struct Order<'a, F> {
    quotes: &'a [Quote],
    belongs: F,
    /// How many are pushed.
    len: usize,
    /// So many of the first are kept.
    most: usize,
    /// No key above is among them.
    bound: u64,
    /// Those that may be among them, in any order.
    kept: Vec<(u64, &'a Quote)>,
    /// The first quotes, in order.
    sorted: Vec<Quote>,
}

impl<'a, F: Fn(&Quote) -> bool> Order<'a, F> {
    /// An order of those of `quotes` that `belong` to it, all of which are to be pushed; at first for its first `most`.
    fn new(quotes: &'a [Quote], most: usize, belongs: F) -> Self {
        Order { quotes, belongs, len: 0, most, bound: u64::MAX, kept: Vec::new(), sorted: Vec::new() }
    }

    #[inline]
    fn push(&mut self, quote: &'a Quote) {
        self.len += 1;
        self.keep(quote);
    }

    #[inline]
    fn keep(&mut self, quote: &'a Quote) {
        let key = quote.key();
        if key <= self.bound {
            if self.kept.len() == self.kept.capacity() {
                self.make_room();
            }
            self.kept.push((key, quote));
        }
    }

    /// Drops who is not among the first, once there are twice as many.
    #[cold]
    fn make_room(&mut self) {
        let twice = self.most.saturating_mul(2).min(self.quotes.len());
        if self.kept.len() < twice {
            self.kept.reserve_exact(twice - self.kept.len());
            return;
        }
        self.kept.select_nth_unstable_by_key(self.most, place);
        self.kept.truncate(self.most);
        self.bound = self.kept.iter().map(|(key, _)| *key).max().unwrap_or(u64::MAX);
    }

    fn len(&self) -> usize {
        self.len
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `count`, or all if they are fewer.
    fn first(&mut self, count: usize) -> &[Quote] {
        let count = count.min(self.len);
        if count > self.sorted.len() {
            if count > self.most && self.kept.len() < self.len {
                (self.most, self.bound) = (count, u64::MAX);
                self.kept.clear();
                let quotes = self.quotes;
                for quote in quotes {
                    if (self.belongs)(quote) {
                        self.keep(quote);
                    }
                }
            }
            self.kept.sort_unstable_by_key(place);
            // Where some were dropped, what is kept beyond the first is not all that there is.
            let sound = if self.kept.len() < self.len { self.most } else { self.len };
            self.sorted.clear();
            self.sorted.extend(self.kept.iter().take(sound).map(|(_, quote)| **quote));
        }
        &self.sorted[..count]
    }

    /// The first of them, so many that `sources` have room.
    fn with_room(&mut self, sources: usize) -> &[Quote] {
        let mut count = sources.saturating_add(MARGIN);
        while count < self.len() && self.first(count).iter().filter(|quote| quote.room > 0).count() < sources {
            count = count.saturating_mul(2);
        }
        plan::leading(self.first(count), sources)
    }

    /// The first `count` of those that are `fit`.
    fn first_fit(&mut self, count: usize, fit: impl Fn(&&Quote) -> bool) -> Vec<Quote> {
        let mut among = if count == 0 { 0 } else { count.saturating_add(MARGIN) };
        while among < self.len() && self.first(among).iter().filter(&fit).count() < count {
            among = among.saturating_mul(4);
        }
        self.first(among).iter().filter(fit).take(count).copied().collect()
    }
}

/// Equal keys are told apart by the slot, so that the order is one of the quotes and not of how they came.
fn place(&(key, quote): &(u64, &Quote)) -> (u64, Slot) {
    (key, quote.slot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::Basis;
    use crate::seed::Seed;
    use crate::table::Table;

    fn quotes(costs: &[(u8, u32)]) -> Vec<Quote> {
        let mut table = Table::<usize, u8>::new(512, Seed::new(0));
        let quote = |(key, &(cost, room)): (usize, &(u8, u32))| Quote {
            basis: Basis::Measured,
            cost_s: f32::from(cost),
            room,
            ..Quote::sample(table.admit(key).slot().unwrap())
        };
        costs.iter().enumerate().map(quote).collect()
    }

    proptest! {
        /// Costs are drawn from few, so that keys are equal and slots decide.
        #[test]
        fn the_first_are_those_of_a_sort(
            costs in proptest::collection::vec((0..20_u8, 0..3_u32), 0..300),
            most in 1..40_usize,
            counts in proptest::collection::vec(0..400_usize, 1..6),
        ) {
            let quotes = quotes(&costs);
            let belongs = |quote: &Quote| quote.room > 0;
            let mut order = Order::new(&quotes, most, belongs);
            let mut sorted: Vec<&Quote> = quotes.iter().filter(|quote| belongs(quote)).collect();
            sorted.iter().for_each(|quote| order.push(quote));
            sorted.sort_by_key(|quote| (quote.key(), quote.slot));
            let slots: Vec<Slot> = sorted.iter().map(|quote| quote.slot).collect();
            for count in counts {
                let first: Vec<Slot> = order.first(count).iter().map(|quote| quote.slot).collect();
                prop_assert_eq!(&first[..], &slots[..count.min(slots.len())]);
                let fit = |quote: &&Quote| quote.room > 1;
                let found: Vec<Slot> = order.first_fit(count, fit).iter().map(|quote| quote.slot).collect();
                let expected: Vec<Slot> = sorted.iter().copied().filter(fit).take(count).map(|quote| quote.slot).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
