//! Exploration (RANK-3, spec §4.4-E): who is tried besides those who are proven, bounded from both sides.
//!
//! Nobody unproven is optimistic; instead a bounded share of decisions tries an admissible peer that was left out. A trial carries one request and never takes part in
//! the end of a request. What a trial of a slow peer costs decides how rarely it is tried: all trials of measured peers together cost a fixed share of the time,
//! and a peer a hundred times slower waits a hundred times longer. Only a peer that was better before is tried again soon, then ever later; and one that was
//! surprisingly fast is tried once more at once; where some deliveries take many times as long as the rest, neither means much.

use crate::rank::quote::{Class, Quote};

/// While few peers are proven, one request in this many tries an unmeasured peer, which may be the best. Higher settles on the first that answered, lower lets strangers
/// take the bulk. Unmeasured heuristic.
const PERIOD_FEW: u64 = 4;
/// The same when many are proven: the best of them is unlikely to be beaten by much.
const PERIOD_MANY: u64 = 16;
/// This many proven peers for each one wanted are many.
const MANY: usize = 4;
/// Trials of measured peers are at least this many decisions apart: with one source, the best keeps seven of eight (scenario C27).
const PERIOD_PROVEN: u64 = 8;
/// Share of the time that trials of measured peers cost together. Higher finds a recovered peer sooner, lower costs less. Unmeasured heuristic (RANK-3: about 5 %).
const SHARE: f32 = 0.04;
/// The longest wait between two trials of a measured peer, in decisions for each peer that waits: the bound within which everyone is tried again. Higher forgets the very
/// slow, lower pays for them. Unmeasured heuristic.
const MAX_TURNS: f32 = 4096.0;
/// An unmeasured peer is assumed to need this many times the average, when the end of a request is at stake. Higher tries nobody in short requests, lower lets one slow
/// stranger hold up the end. Unmeasured heuristic.
const UNPROVEN_FACTOR: f32 = 4.0;
/// Where so many trials of unmeasured peers were due and none was in time, the next assumes no more than the average: where those that were measured are
/// slow, or requests short, nobody else would ever be tried. Higher leaves strangers waiting longer, lower risks the end of more requests. Unmeasured heuristic.
const TRUSTING: u64 = 4;
/// A trial that is due, in parts that divide by all periods.
const TURN: u64 = 16;

/// What exploration needs to know of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Peers wanted.
    pub sources: usize,
    /// Peers proven and fit for ordinary work.
    pub proven: usize,
    /// All decisions made.
    pub decisions: u64,
    /// Expected seconds of one request at the best peer.
    pub best_s: f32,
    /// Seconds until the others have done everything; a trial must not outlast them. Infinite where that is unknown.
    pub end_s: f32,
}

/// Trials that are due. Each request given out brings the next one nearer, so that it does not matter how many are in one answer; a trial that was due and not in time is
/// made up for later, whatever downloads look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Of unmeasured peers, in parts of a [`TURN`].
    unmeasured: u64,
    /// Of measured ones.
    measured: u64,
}

impl Default for Turns {
    /// The first trial of an unmeasured peer is half due: there is most to be found at the beginning.
    fn default() -> Self {
        Turns { unmeasured: TURN / 2, measured: 0 }
    }
}

impl Turns {
    /// So many requests were given out.
    pub fn pass(&mut self, requests: u32, schedule: &Schedule) {
        let few = schedule.proven < schedule.sources.saturating_mul(MANY);
        let period = if few { PERIOD_FEW } else { PERIOD_MANY };
        self.unmeasured = (self.unmeasured + u64::from(requests) * TURN / period).min(TRUSTING * TURN);
        self.measured = (self.measured + TURN / PERIOD_PROVEN).min(TURN);
    }
}

/// The peer to try in this decision, if one is due: unmeasured ones first, then whoever is most overdue.
pub fn due<'a>(
    quotes: impl Iterator<Item = &'a Quote> + Clone,
    schedule: &Schedule,
    turns: &mut Turns,
) -> Option<Quote> {
    let may = |quote: &Quote| is_idle(quote) && quote.may_be_tried;
    let is_open = |quote: &Quote| may(quote) && in_time(quote, schedule.end_s);
    if turns.unmeasured >= TURN {
        let trusts = turns.unmeasured >= TRUSTING * TURN;
        let trusted = |quote: &Quote| trusts && may(quote) && quote.cost_s <= schedule.end_s;
        let fits = |quote: &Quote| is_open(quote) || trusted(quote);
        let cold = |quote: &&Quote| !quote.is_proven() && quote.class <= Class::Probation && fits(quote);
        if let Some(cold) = quotes.clone().filter(cold).min_by_key(|quote| (quote.last_tried, quote.key())) {
            turns.unmeasured = 0;
            return Some(*cold);
        }
    }
    let open = quotes.filter(|quote| is_open(quote));
    let (mut count, mut promising) = (0_u32, None::<&Quote>);
    for quote in open.clone() {
        count += 1;
        let leads = quote.is_promising && !quote.is_fitful;
        if leads && promising.is_none_or(|other| quote.key() < other.key()) {
            promising = Some(quote);
        }
    }
    if promising.is_some() || turns.measured < TURN {
        return promising.copied();
    }
    let (count, each) = (count as f32, 1.0 / (schedule.best_s.max(1e-6) * SHARE));
    let overdue = |quote: &&Quote| {
        let waited = schedule.decisions.saturating_sub(quote.last_tried) as f32;
        let by_cost = (quote.usual_s * each).clamp(PERIOD_PROVEN as f32, MAX_TURNS) * count;
        waited >= by_cost || !quote.is_fitful && waited >= comeback(quote.trials_since_change)
    };
    let overdue = open.filter(overdue);
    let tried = overdue.min_by_key(|quote| (quote.class == Class::Condemned, quote.last_tried, quote.key())).copied();
    turns.measured -= if tried.is_some() { TURN } else { 0 };
    tried
}

/// Decisions after which a peer that was among the best is tried again, so many `trials` after its rate changed.
fn comeback(trials: u8) -> f32 {
    // 40 doublings are as good as never.
    (PERIOD_PROVEN << u32::from(trials / 2).min(40)) as f32
}

/// Of the places of a decision that wants more peers than are proven, how many go to unmeasured ones: those left over, at most a third, and never the only one.
pub fn places(sources: usize, proven: usize) -> usize {
    if sources < 2 { 0 } else { sources.saturating_sub(proven).min((sources / 3).max(1)) }
}

/// Whether a peer has nothing in flight: a second trial beside the first would tell nothing new.
pub fn is_idle(quote: &Quote) -> bool {
    quote.room > 0 && quote.in_flight == 0
}

/// Whether a trial of a peer would be over when the others have done everything.
pub fn in_time(quote: &Quote, end_s: f32) -> bool {
    let factor = if quote.is_proven() { 1.0 } else { UNPROVEN_FACTOR };
    end_s.is_infinite() || quote.usual_s * factor <= end_s
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::estimate::Basis;
    use crate::seed::Seed;
    use crate::table::Table;

    fn quotes(costs: &[(f32, bool)]) -> Vec<Quote> {
        let mut table = Table::<usize, u8>::new(256, Seed::new(0));
        let quote = |(key, &(cost_s, proven)): (usize, &(f32, bool))| Quote {
            basis: if proven { Basis::Measured } else { Basis::Prior },
            cost_s,
            tail_s: cost_s,
            usual_s: cost_s,
            ..Quote::sample(table.admit(key).slot().unwrap())
        };
        costs.iter().enumerate().map(quote).collect()
    }

    /// The trial of one more decision with one request.
    fn next(quotes: &[Quote], schedule: &Schedule, turns: &mut Turns) -> Option<Quote> {
        turns.pass(1, schedule);
        due(quotes[1..].iter(), schedule, turns)
    }

    /// How often each peer but the first is tried in so many decisions; the unmeasured stay so.
    fn tried(costs: &[(f32, bool)], sources: usize, decisions: u64) -> Vec<u64> {
        let mut quotes = quotes(costs);
        let proven = costs.iter().filter(|(_, proven)| *proven).count();
        let mut counts = alloc::vec![0; costs.len()];
        let mut turns = Turns::default();
        for decision in 0..decisions {
            let best_s = costs[0].0;
            let schedule = Schedule { sources, proven, decisions: decision + 1, best_s, end_s: f32::INFINITY };
            quotes[0].last_tried = decision + 1;
            if let Some(tried) = next(&quotes, &schedule, &mut turns) {
                quotes[tried.slot.index()].last_tried = decision + 1;
                counts[tried.slot.index()] += 1;
            }
        }
        counts
    }

    #[test]
    fn unmeasured_peers_get_a_bounded_share_and_everyone_a_turn() {
        for sources in [1, 2, 8, 40] {
            let costs: Vec<(f32, bool)> = (0..30).map(|key| (1.0, key < 2)).collect();
            let counts = tried(&costs, sources, 800);
            let cold: u64 = counts[2..].iter().sum();
            assert!((90..=220).contains(&cold), "{sources}: {cold}");
            assert!(counts[2..].iter().all(|count| *count >= 2), "{counts:?}");
        }
    }

    #[test]
    fn what_trials_of_measured_peers_cost_is_bounded_however_slow_they_are() {
        for slow in [1.1, 3.0, 10.0, 100.0] {
            for count in [1, 9, 29] {
                let costs: Vec<(f32, bool)> =
                    core::iter::once((1.0, true)).chain((0..count).map(|_| (slow, true))).collect();
                let counts = tried(&costs, 1, 120_000);
                let spent = counts[1..].iter().sum::<u64>() as f32 * slow / 120_000.0;
                assert!(
                    spent <= 1.2 * SHARE.max(slow / PERIOD_PROVEN as f32 / 2.0).min(SHARE * 3.0),
                    "{slow} {count}: {spent}"
                );
                assert!(counts[1..].iter().all(|count| *count > 0), "{slow} {count}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_peer_that_was_better_before_is_tried_soon_and_then_ever_later() {
        let mut quotes = quotes(&[(1.0, true), (100.0, true)]);
        let (mut tried, mut turns) = (Vec::new(), Turns::default());
        for decision in 0..400 {
            let schedule = Schedule { sources: 1, proven: 2, decisions: decision, best_s: 1.0, end_s: f32::INFINITY };
            quotes[1].trials_since_change = tried.len() as u8;
            if next(&quotes, &schedule, &mut turns).is_some() {
                quotes[1].last_tried = decision;
                tried.push(decision);
            }
        }
        assert_eq!(tried, [8, 16, 32, 48, 80, 112, 176, 240, 368]);
    }

    #[test]
    fn the_wait_for_a_peer_that_was_better_before_never_gets_shorter() {
        assert_eq!([0, 1, 2, 5].map(comeback), [8.0, 8.0, 16.0, 32.0]);
        assert!((1..=u8::MAX).all(|trials| comeback(trials - 1) <= comeback(trials)));
    }

    #[test]
    fn nothing_unproven_is_tried_at_the_end_of_a_request_unless_it_waited_for_long() {
        let mut quotes = quotes(&[(1.0, true), (1.0, false)]);
        let tried = |quotes: &[Quote], unmeasured, end_s| {
            let schedule = Schedule { sources: 4, proven: 1, decisions: 9, best_s: 1.0, end_s };
            due(quotes[1..].iter(), &schedule, &mut Turns { unmeasured, measured: 0 }).is_some()
        };
        let (a_turn, a_long_wait) = (TURN, TRUSTING * TURN);
        assert!(!tried(&quotes, 0, 4.0), "no turn");
        // Four times the average; after a long wait the average, unless it failed.
        assert!(!tried(&quotes, a_turn, 3.9) && tried(&quotes, a_turn, 4.0));
        assert!(!tried(&quotes, a_long_wait, 0.9) && tried(&quotes, a_long_wait, 1.0));
        quotes[1].cost_s = 3.0;
        assert!(!tried(&quotes, a_long_wait, 2.9));
    }

    #[test]
    fn it_does_not_matter_how_many_requests_are_in_one_answer() {
        let schedule = Schedule { sources: 4, proven: 1, decisions: 9, best_s: 1.0, end_s: 1.0 };
        let (mut one_by_one, mut at_once) = (Turns::default(), Turns::default());
        (0..8).for_each(|_| one_by_one.pass(1, &schedule));
        at_once.pass(8, &schedule);
        assert_eq!(at_once.unmeasured, one_by_one.unmeasured);
        at_once.pass(u32::MAX, &schedule);
        assert_eq!(at_once.unmeasured, TRUSTING * TURN, "no more is saved up");
    }

    #[test]
    fn the_first_stranger_is_tried_after_two_requests() {
        let quotes = quotes(&[(1.0, true), (1.0, false)]);
        let schedule = Schedule { sources: 4, proven: 1, decisions: 1, best_s: 1.0, end_s: f32::INFINITY };
        let mut turns = Turns::default();
        let tried = [(); 8].map(|()| next(&quotes, &schedule, &mut turns).is_some());
        assert_eq!(tried, [false, true, false, false, false, true, false, false]);
    }

    #[test]
    fn a_turn_that_was_not_in_time_is_made_up_for_in_the_next_request() {
        // Requests of three decisions each, of which the first has time for a trial: whatever the period, nobody is overlooked.
        let quotes = quotes(&[(1.0, true), (1.0, false)]);
        let mut turns = Turns::default();
        let tried = (0..300).filter(|decision| {
            let end_s = if decision % 3 == 0 { 4.0 } else { 0.5 };
            let schedule = Schedule { sources: 4, proven: 1, decisions: *decision, best_s: 1.0, end_s };
            next(&quotes, &schedule, &mut turns).is_some()
        });
        assert!((50..=75).contains(&tried.count()));
    }
}
