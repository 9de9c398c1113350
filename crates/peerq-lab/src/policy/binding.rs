//! Binds a selector crate to the [driver](super::driver): the same code over ours and over the published one, which have the same public names.

/// Names of the lab's world in a selector's terms.
pub(crate) mod names {
    use dig_dht::{CandidateAddr, ContentId};
    use dig_nat::PeerId;

    use crate::policy::{Candidate, PeerIndex};

    pub(crate) fn peer_id(peer: PeerIndex) -> PeerId {
        let mut id = [0; 32];
        // Spread like hashes are, with the index at the end.
        id[..8].copy_from_slice(&u64::from(peer.0).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        id[28..].copy_from_slice(&peer.0.to_be_bytes());
        PeerId::from_bytes(id)
    }

    pub(crate) fn peer_index(peer: &PeerId) -> PeerIndex {
        let [.., a, b, c, d] = *peer.as_bytes();
        PeerIndex(u32::from_be_bytes([a, b, c, d]))
    }

    pub(crate) fn content_id(content: u64) -> ContentId {
        let mut id = [0; 32];
        id[24..].copy_from_slice(&content.to_be_bytes());
        ContentId::store(id)
    }

    /// An address in the candidate's group: a /16 each.
    pub(crate) fn address(candidate: &Candidate) -> CandidateAddr {
        let [.., high, low] = candidate.group.to_be_bytes();
        let [.., third, fourth] = candidate.peer.0.to_be_bytes();
        CandidateAddr::direct(format!("{}.{low}.{third}.{fourth}", 1 + high % 126), 9444)
    }
}

/// Writes a [`Selector`](crate::policy::driver::Selector) over the `PeerSelector` of `$krate`: two crates have the same public names, and so do the hooks that
/// the calling file defines for what differs: `make`, `set_clock`, `CONFIRMS_DISPATCHES`, `REBALANCES`, `REVIEWS`, `reviewed` and `is_demoted`.
macro_rules! bind_selector {
    ($krate:ident) => {
        /// The crate's selector in the lab's terms.
        pub(crate) struct Bound {
            seed: u64,
            selector: $krate::PeerSelector,
            clock: $krate::ClockSource,
            /// The latest candidates, as they were asked about and as the selector wants them.
            candidates: (Vec<PeerIndex>, Vec<$krate::Candidate>),
            failed: std::collections::BTreeSet<PeerIndex>,
            /// Whether a call into the selector is under way. Still set at the next one, it was left by a panic that somebody caught.
            calling: std::cell::Cell<bool>,
        }

        impl Bound {
            pub(crate) fn new(seed: u64) -> Self {
                let (selector, clock) = make(seed);
                Bound {
                    seed,
                    selector,
                    clock,
                    candidates: Default::default(),
                    failed: Default::default(),
                    calling: Default::default(),
                }
            }

            /// Calls the selector.
            fn call<T>(&self, what: impl FnOnce(&$krate::PeerSelector) -> T) -> T {
                self.calling.set(true);
                let answer = what(&self.selector);
                self.calling.set(false);
                answer
            }

            /// What it knows of a peer; nothing after a panic.
            fn snapshot(&self, peer: PeerIndex) -> Option<$krate::PeerSnapshot> {
                if self.calling.get() {
                    return None;
                }
                self.call(|selector| selector.peer_snapshot(&names::peer_id(peer)))
            }

            fn request(question: &Question<'_>) -> $krate::ContentRequest {
                $krate::ContentRequest {
                    content: names::content_id(question.content),
                    total_length: Some(question.range.get().saturating_mul(u64::from(question.ranges))),
                    range_count: Some(question.ranges as usize),
                    parallelism: question.sources as usize,
                }
            }

            fn name_candidates(&mut self, candidates: &[Candidate]) {
                let same = self.candidates.0.iter().copied().eq(candidates.iter().map(|one| one.peer));
                if !same {
                    let given = |one: &Candidate| {
                        let mut given = $krate::Candidate::new(names::peer_id(one.peer), vec![names::address(one)]);
                        let relayed = dig_nat::TraversalKind::Relayed;
                        given.class = Some(if one.relayed { relayed } else { dig_nat::TraversalKind::Direct });
                        given
                    };
                    self.candidates.0 = candidates.iter().map(|one| one.peer).collect();
                    self.candidates.1 = candidates.iter().map(given).collect();
                }
            }

            fn choices(selection: &$krate::Selection) -> Vec<Choice> {
                let choice = |one: &$krate::SelectedPeer| Choice {
                    peer: names::peer_index(&one.peer_id),
                    room: one.max_concurrency,
                };
                selection.peers.iter().map(choice).collect()
            }
        }

        impl Selector for Bound {
            const REBALANCES: bool = REBALANCES;
            const REVIEWS: bool = REVIEWS;

            fn review(&mut self, review: &Review<'_>) -> Reviewed {
                self.name_candidates(review.candidates);
                reviewed(self, review)
            }

            fn set_clock(&mut self, now: Time) {
                if self.calling.get() {
                    // Its lock is poisoned; a fresh one starts with nothing remembered.
                    *self = Bound::new(self.seed);
                }
                set_clock(&self.clock, now);
            }

            fn select(&mut self, question: &Question<'_>) -> Vec<Choice> {
                self.name_candidates(question.candidates);
                let request = Self::request(question);
                Self::choices(&self.call(|selector| selector.select(&request, &self.candidates.1)))
            }

            fn rebalance(&mut self, question: &Question<'_>, active: &[PeerIndex]) -> Vec<Choice> {
                let active: Vec<_> = active.iter().map(|peer| names::peer_id(*peer)).collect();
                let need = $krate::RangePlanDelta::of_count(question.ranges.min(MAX_NEED) as usize);
                let request = Self::request(question);
                Self::choices(&self.call(|selector| selector.rebalance(&request, &active, &need)))
            }

            fn finished(&mut self, question: &Question<'_>) {
                if CONFIRMS_DISPATCHES {
                    // What was promised for it and never dispatched is promised no longer.
                    let request = Self::request(&Question { ranges: 0, ..*question });
                    self.call(|selector| selector.select(&request, &[]));
                }
            }

            fn dispatched(&mut self, peer: PeerIndex, _now: Time) {
                if CONFIRMS_DISPATCHES {
                    self.call(|selector| selector.on_dispatch(&names::peer_id(peer), 1));
                }
            }

            fn record(&mut self, peer: PeerIndex, content: u64, range: Bytes, delivery: &Delivery, _now: Time) {
                use $krate::{FailureReason, OutcomeResult};
                let failure = |reason| OutcomeResult::Failure { reason };
                let result = match delivery.end {
                    End::Completed => OutcomeResult::Success,
                    End::Interrupted => OutcomeResult::Interrupted { bytes_before: delivery.bytes.get() },
                    End::Cancelled => failure(FailureReason::Cancelled),
                    End::Failed(Fault::Timeout) => failure(FailureReason::Timeout),
                    End::Failed(Fault::Transport) => failure(FailureReason::Transport),
                    End::Failed(Fault::Unavailable) => failure(FailureReason::Unavailable),
                    End::Failed(Fault::Verification) => failure(FailureReason::VerificationFailed),
                    End::Failed(Fault::Unknown) => failure(FailureReason::Other),
                };
                // Rounded up: a delivery that took time took at least a millisecond.
                let millis = |span: Span| span.as_micros().div_ceil(1_000).max(1);
                let outcome = $krate::TransferOutcome {
                    peer_id: names::peer_id(peer),
                    content: names::content_id(content),
                    kind: $krate::OutcomeKind::Range { index: 0, offset: 0, length: range.get() },
                    result,
                    bytes: delivery.bytes.get(),
                    duration_ms: millis(delivery.elapsed),
                    rtt_ms: delivery.first_byte.map(millis),
                    at: self.clock.now(),
                };
                self.call(|selector| selector.record_outcome(&outcome));
                if delivery.end == End::Completed {
                    self.failed.remove(&peer);
                } else {
                    self.failed.insert(peer);
                }
            }

            fn connected(&mut self, peer: PeerIndex, up: bool, _now: Time) {
                let peer_id = names::peer_id(peer);
                let event = if up {
                    let addr = std::net::SocketAddr::from(([10, 0, 0, 1], 9444));
                    $krate::PoolEvent::PeerAdded { peer_id, addr }
                } else {
                    let reason = $krate::PoolRemovalReason::Disconnected;
                    $krate::PoolEvent::PeerRemoved { peer_id, reason }
                };
                self.call(|selector| selector.on_pool_event(&event));
            }

            fn learned(&self, peer: PeerIndex, _now: Time) -> Learned {
                let Some(snapshot) = self.snapshot(peer) else { return Learned::default() };
                Learned { rate: snapshot.throughput_bps, first_byte_s: snapshot.rtt_ms.map(|rtt_ms| rtt_ms / 1_000.0) }
            }

            fn is_demoted(&self, peer: PeerIndex, _now: Time) -> bool {
                // Nobody is kept out who did not fail last, unless for what was proven; and asking is dear.
                self.snapshot(peer).is_some_and(|snapshot| {
                    let suspect = snapshot.hard_failures > 0 || self.failed.contains(&peer);
                    snapshot.banned || (suspect && is_demoted(self, &snapshot, peer))
                })
            }
        }
    };
}
pub(crate) use bind_selector;
