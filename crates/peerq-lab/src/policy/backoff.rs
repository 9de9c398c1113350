//! The downloader's own pause after failures, which protects policies that do not learn (facts: dig-stack §1.2, §7 "backoff amplification").
//!
//! In dig-download a source that failed is not offered for 200 ms, doubled per failure in a row up to 10 s; every failing range doubles it, also those that
//! were under way together. It belongs to the host, not to the policy; policies that bring their own judgement are asked without it.

use std::collections::BTreeMap;

use peer_quality::measure::{Delivery, End};
use peer_quality::units::{Span, Time};

use super::PeerIndex;

const BASE: Span = Span::from_millis(200);
const LONGEST: Span = Span::from_secs(10);

/// Failures in a row and the end of the pause; a success removes the entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff(BTreeMap<PeerIndex, (u32, Time)>);

impl Backoff {
    /// Notes how a range ended.
    pub(crate) fn ended(&mut self, peer: PeerIndex, delivery: &Delivery, now: Time) {
        match delivery.end {
            End::Completed => {
                self.0.remove(&peer);
            }
            End::Cancelled => {}
            End::Failed(_) | End::Interrupted => {
                let (failures, until) = self.0.entry(peer).or_insert((0, now));
                *failures = failures.saturating_add(1);
                let doublings = (*failures - 1).min(16);
                *until = now + Span::from_micros(BASE.as_micros() << doublings).min(LONGEST);
            }
        }
    }

    /// Whether a peer is left alone at `now`.
    pub(crate) fn is_on(&self, peer: PeerIndex, now: Time) -> bool {
        self.0.get(&peer).is_some_and(|(_, until)| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{completed, failed};
    use peer_quality::measure::Fault;

    #[test]
    fn the_pause_doubles_up_to_ten_seconds_and_a_success_ends_it() {
        let (peer, mut backoff) = (PeerIndex(1), Backoff::default());
        let at = Time::from_secs(100);
        for pause_ms in [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            backoff.ended(peer, &failed(Fault::Transport, 1), at);
            assert!(backoff.is_on(peer, at + Span::from_millis(pause_ms - 1)));
            assert!(!backoff.is_on(peer, at + Span::from_millis(pause_ms)));
        }
        backoff.ended(peer, &completed(1, 1), at);
        assert!(!backoff.is_on(peer, at));
    }
}
