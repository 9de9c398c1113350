//! Which peer gets the next ranges (HOST-D1).
//!
//! The selector says whom to use, in which order and how many ranges more each may have; it plans for the end of the request and schedules trials. This file turns
//! that into assignments: in rounds in the order of rank, so that no peer gets a second range before everybody named has one. Pure.

use dig_nat::PeerId;
use dig_peer_selector::SelectedPeer;

/// Assigns up to `ranges` ranges to the peers of an answer, within the concurrency recommended of each. The result lists a peer once per range.
pub(super) fn assign(answer: &[SelectedPeer], ranges: usize) -> Vec<PeerId> {
    let mut assigned = Vec::new();
    let deepest = answer.iter().map(|peer| peer.max_concurrency).max().unwrap_or(0);
    for round in 0..deepest {
        let takes = answer.iter().filter(|peer| peer.max_concurrency > round);
        assigned.extend(takes.map(|peer| peer.peer_id).take(ranges - assigned.len()));
        if assigned.len() == ranges {
            break;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rooms: &[u32]) -> Vec<SelectedPeer> {
        let peer = |(at, &max_concurrency): (usize, &u32)| SelectedPeer {
            peer_id: PeerId::from_bytes([at as u8; 32]),
            rank: at as u32,
            max_concurrency,
            exploratory: false,
        };
        rooms.iter().enumerate().map(peer).collect()
    }

    fn bytes(peers: &[PeerId]) -> Vec<u8> {
        peers.iter().map(|p| p.as_bytes()[0]).collect()
    }

    #[test]
    fn caps_are_kept_exactly_and_ranges_dealt_in_rounds() {
        assert_eq!(bytes(&assign(&answer(&[3, 1, 2]), 8)), [0, 1, 2, 0, 2, 0]);
        assert_eq!(bytes(&assign(&answer(&[3, 1, 2]), 4)), [0, 1, 2, 0]);
    }

    #[test]
    fn nobody_and_nothing_are_no_assignment() {
        assert!(assign(&[], 5).is_empty());
        assert!(assign(&answer(&[4, 4]), 0).is_empty());
        assert_eq!(assign(&answer(&[u32::MAX]), 3).len(), 3);
    }
}
