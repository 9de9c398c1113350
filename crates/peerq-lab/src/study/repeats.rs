//! Whether runs repeat (invariant F of the specification: the same configuration, state and outcomes give the same ranking).
//!
//! Two figures. Whole runs are run a second time, and their results compared to the byte. And two fresh selectors are told the same and asked for a replacement
//! (`rebalance`), which the driver of the published one avoids because its answer follows the order of a randomly keyed hash table.

use std::collections::BTreeMap;

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Bytes, Span, Time};

use crate::policy::driver::{Question, Selector};
use crate::policy::{Candidate, PeerIndex, PolicyKind, peerq, published};
use crate::report::Lines;

/// Peers that a selector chooses a replacement from.
const PEERS: u32 = 24;

/// One in this many has delivered before: fewer than are wanted, so that the unknown are chosen from too.
const KNOWN_EVERY: usize = 12;

/// Bytes of a range.
const RANGE: u64 = 1 << 20;

/// Share of the policy's runs in `again` which are the same there as in `lines`; none without any.
pub(super) fn share(lines: &Lines, again: &Lines, policy: &str) -> Option<f64> {
    let known: BTreeMap<_, _> = lines.runs.iter().map(|run| ((&run.plan, run.run), run)).collect();
    let (mut same, mut all) = (0_u32, 0_u32);
    for run in again.runs.iter().filter(|run| run.policy == policy) {
        let Some(first) = known.get(&(&run.plan, run.run)) else { continue };
        all += 1;
        same += u32::from(**first == *run);
    }
    (all > 0).then(|| f64::from(same) / f64::from(all))
}

/// Share of the seeds 1 to `seeds` with which two selectors that were told the same name the same replacements; none for policies that are no selectors.
pub(super) fn replacements(policy: &str, seeds: u32) -> Option<f64> {
    match PolicyKind::named(policy)? {
        PolicyKind::Peerq => Some(alike(peerq::Bound::new, seeds)),
        PolicyKind::Published => Some(alike(published::Bound::new, seeds)),
        _ => None,
    }
}

fn alike<S: Selector>(make: impl Fn(u64) -> S, seeds: u32) -> f64 {
    let same = (1..=u64::from(seeds)).filter(|seed| replaced(make(*seed)) == replaced(make(*seed))).count();
    same as f64 / f64::from(seeds.max(1))
}

/// Whom it names after few have delivered a range, equally well, and the rest is unknown.
fn replaced<S: Selector>(mut selector: S) -> Vec<PeerIndex> {
    let candidate = |index| Candidate { peer: PeerIndex(index), group: index, relayed: false, handshake_rtt_s: 0.05 };
    let candidates: Vec<Candidate> = (0..PEERS).map(candidate).collect();
    let mut question = Question {
        content: 1,
        range: Bytes::new(RANGE),
        ranges: 16,
        sources: 4,
        decision: 0,
        in_flight: 0,
        free: 4,
        candidates: &candidates,
        now: Time::from_secs(1),
    };
    selector.set_clock(question.now);
    let cancelled = Delivery { bytes: Bytes::ZERO, elapsed: Span::ZERO, first_byte: None, end: End::Cancelled };
    // All that are named are asked at once, so that the host has room for as many as are wanted.
    let named = selector.select(&question);
    named.iter().for_each(|choice| selector.dispatched(choice.peer, question.now));
    for choice in named {
        selector.record(choice.peer, question.content, question.range, &cancelled, question.now);
    }
    let delivery = Delivery {
        bytes: Bytes::new(RANGE),
        elapsed: Span::from_millis(100),
        first_byte: Some(Span::from_millis(50)),
        end: End::Completed,
    };
    for one in candidates.iter().step_by(KNOWN_EVERY) {
        selector.dispatched(one.peer, question.now);
    }
    question.now = Time::from_secs(2);
    selector.set_clock(question.now);
    for one in candidates.iter().step_by(KNOWN_EVERY) {
        selector.record(one.peer, question.content, question.range, &delivery, question.now);
    }
    question.decision = 1;
    selector.rebalance(&question, &[PeerIndex(0)]).into_iter().map(|choice| choice.peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::RunLine;

    fn lines(seconds: &[f64]) -> Lines {
        let run = |(run, seconds): (usize, &f64)| RunLine {
            plan: "p".to_owned(),
            policy: "peerq".to_owned(),
            run: run as u32,
            seconds: *seconds,
            ..RunLine::default()
        };
        Lines { plans: Vec::new(), runs: seconds.iter().enumerate().map(run).collect() }
    }

    #[test]
    fn a_run_that_differs_in_anything_is_not_repeated() {
        assert_eq!(share(&lines(&[1.0, 2.0, 3.0, 4.0]), &lines(&[1.0, 2.0, 3.0, 5.0]), "peerq"), Some(0.75));
        assert_eq!(share(&lines(&[1.0]), &lines(&[1.0]), "haskell"), None);
    }

    #[test]
    fn ours_replaces_alike_and_only_selectors_are_asked() {
        assert_eq!(replacements("peerq", 5), Some(1.0));
        assert_eq!(replacements("clairvoyant", 5), None);
    }

    #[test]
    fn a_selector_asked_for_replacements_names_some_of_the_unknown() {
        let is_unknown = |peer: &PeerIndex| !(peer.0 as usize).is_multiple_of(KNOWN_EVERY);
        for seed in 1..6 {
            assert!(replaced(peerq::Bound::new(seed)).iter().any(is_unknown));
            assert!(replaced(published::Bound::new(seed)).iter().any(is_unknown));
        }
    }

    #[test]
    fn the_order_of_a_hash_table_shows() {
        assert!(replacements("published", 20).is_some_and(|share| share < 1.0));
    }
}
