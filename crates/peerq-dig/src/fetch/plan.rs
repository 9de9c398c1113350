//! Which peer gets the next ranges (HOST-D1).
//!
//! The selector says whom to use, in which order and with how many ranges each. This file turns that into assignments:
//! peers in rank order up to their caps, with one exception. dig-download never takes a range back, so the last ranges
//! decide when a download ends; a peer that would need longer for one range than the others need for everything left is
//! passed over, as long as something is in flight elsewhere. Pure.

use dig_nat::PeerId;

/// A peer's place in the plan, in rank order within a slice of sources.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The peer.
    pub(super) peer: PeerId,
    /// Most ranges at once, from the selector.
    pub(super) cap: usize,
    /// Ranges in flight at it for this download.
    pub(super) in_flight: usize,
    /// Time that one range takes there, first byte included, seconds; `None` while unproven.
    pub(super) range_s: Option<f64>,
}

/// What is left to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Ranges that wait.
    pub(super) pending: usize,
    /// Ranges that may be added now.
    pub(super) free: usize,
    /// Assumed of an unproven peer when the end is near, seconds for one range.
    pub(super) unproven_s: Option<f64>,
}

/// Assigns up to `work.free` ranges and counts them in `sources`. The result lists a peer once per range; it is empty
/// only if nothing can be assigned, or if waiting is better and something is in flight (`in_flight_elsewhere` counts
/// ranges at peers that are not in `sources`).
pub(super) fn assign(sources: &mut [Source], work: Work, in_flight_elsewhere: usize) -> Vec<PeerId> {
    let mut assigned = Vec::new();
    while assigned.len() < work.free.min(work.pending) {
        let left = work.pending - assigned.len();
        let next = (0..sources.len())
            .find(|i| sources[*i].in_flight < sources[*i].cap && !finishes_last(sources, *i, left, work));
        let in_flight = in_flight_elsewhere + sources.iter().map(|s| s.in_flight).sum::<usize>();
        let Some(chosen) = next.or_else(|| (in_flight == 0 && !sources.is_empty()).then_some(0)) else {
            break;
        };
        sources[chosen].in_flight += 1;
        assigned.push(sources[chosen].peer);
    }
    assigned
}

/// Whether peer `i` would still be busy with one range when the others have done all `left` ranges.
fn finishes_last(sources: &[Source], i: usize, left: usize, work: Work) -> bool {
    let others = || sources.iter().enumerate().filter(|(j, s)| *j != i && s.in_flight > 0);
    let their_pace: f64 = others().filter_map(|(_, s)| Some(s.in_flight as f64 / s.range_s?)).sum();
    let Some(own_s) = sources[i].range_s.or(work.unproven_s) else {
        return false;
    };
    let their_ranges = left + others().map(|(_, s)| s.in_flight).sum::<usize>();
    their_pace > 0.0 && own_s > their_ranges as f64 / their_pace
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(byte: u8, cap: usize, range_s: Option<f64>) -> Source {
        Source { peer: PeerId::from_bytes([byte; 32]), cap, in_flight: 0, range_s }
    }

    fn work(pending: usize, free: usize) -> Work {
        Work { pending, free, unproven_s: Some(10.0) }
    }

    fn bytes(peers: &[PeerId]) -> Vec<u8> {
        peers.iter().map(|p| p.as_bytes()[0]).collect()
    }

    #[test]
    fn caps_are_kept_exactly_in_rank_order() {
        let mut s = [source(1, 3, Some(1.0)), source(2, 1, Some(1.1)), source(3, 2, Some(1.2))];
        assert_eq!(bytes(&assign(&mut s, work(100, 8), 0)), [1, 1, 1, 2, 3, 3]);
        assert!(assign(&mut s, work(94, 2), 0).is_empty(), "everyone is at the cap");
    }

    #[test]
    fn no_more_than_the_free_slots_or_the_pending_ranges_are_assigned() {
        let mut s = [source(1, 9, None)];
        assert_eq!(assign(&mut s, work(100, 2), 0).len(), 2);
        assert_eq!(assign(&mut s, work(1, 5), 0).len(), 1);
    }

    #[test]
    fn the_last_range_is_withheld_from_a_peer_slower_than_waiting_for_the_fast_one() {
        let mut s = [source(1, 1, Some(1.0)), source(2, 4, Some(10.0))];
        s[0].in_flight = 1;
        assert!(assign(&mut s, work(1, 4), 0).is_empty());
        assert_eq!(bytes(&assign(&mut s, work(50, 4), 0)), [2, 2, 2, 2], "with much left to do it helps");
    }

    #[test]
    fn an_unproven_peer_is_not_tried_out_with_the_last_range() {
        let mut s = [source(1, 1, Some(1.0)), source(2, 4, None)];
        s[0].in_flight = 1;
        assert!(assign(&mut s, work(1, 1), 0).is_empty());
    }

    #[test]
    fn with_nothing_in_flight_something_is_always_assigned() {
        let mut s = [source(1, 0, Some(1e6))];
        assert_eq!(assign(&mut s, work(5, 5), 0).len(), 1, "the cap gives way, once");
        let mut s = [source(1, 0, None)];
        assert!(assign(&mut s, work(5, 5), 1).is_empty(), "something is in flight elsewhere");
        assert!(assign(&mut [], work(5, 5), 0).is_empty());
    }
}
