//! The two selectors under one set of measurements: this crate and the published one.
//!
//! Both crates have the same public names, so one macro writes the same driver for each; a bench then
//! compares equal work. Every driver is seeded and uses the manual clock: only the timing differs from
//! run to run.
#![allow(dead_code, reason = "each bench uses its own half of the drivers")]

/// Writes the driver module for the crate `$krate`.
macro_rules! subject {
    ($name:ident, $krate:ident) => {
        pub(crate) mod $name {
            use std::hint::black_box;
            use std::panic::{AssertUnwindSafe, catch_unwind};
            use std::time::{Duration, Instant};

            use dig_dht::{CandidateAddr, ContentId};
            use dig_nat::PeerId;
            use $krate::{
                Candidate, ContentRequest, FailureReason, OutcomeKind, OutcomeResult, PeerSelector, SelectorConfig,
                TransferOutcome,
            };

            const START: u64 = 1_000_000;
            const RANGE_BYTES: u64 = 256 * 1024;

            fn candidate(number: u64) -> Candidate {
                let mut id = [0u8; 32];
                id[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
                id[24..].copy_from_slice(&number.to_be_bytes());
                Candidate::new(PeerId::from_bytes(id), vec![CandidateAddr::direct("10.0.0.1", 9444)])
            }

            fn selector(capacity: usize) -> PeerSelector {
                let config = SelectorConfig { registry_capacity: capacity, ..SelectorConfig::deterministic(START, 7) };
                PeerSelector::new(config)
            }

            /// A selector that has measured every one of its candidates.
            pub(crate) struct Warm {
                selector: PeerSelector,
                candidates: Vec<Candidate>,
                request: ContentRequest,
                turn: u64,
                /// Selections that panicked; the selector was rebuilt each time.
                pub(crate) panics: u32,
            }

            impl Warm {
                pub(crate) fn new(count: usize) -> Self {
                    let request = ContentRequest::new(ContentId::store([0x42; 32]), 8);
                    let candidates = (0..count as u64).map(candidate).collect();
                    let mut warm = Self { selector: selector(4096), candidates, request, turn: 0, panics: 0 };
                    warm.teach();
                    warm
                }

                fn teach(&mut self) {
                    for candidate in &self.candidates {
                        self.selector.upsert_candidate(candidate);
                    }
                    for _ in 0..6 {
                        self.record(self.candidates.len());
                    }
                }

                fn outcome(&self, number: usize, result: OutcomeResult, bytes: u64) -> TransferOutcome {
                    TransferOutcome {
                        peer_id: self.candidates[number % self.candidates.len()].peer_id,
                        content: self.request.content,
                        kind: OutcomeKind::Range { index: number, offset: 0, length: RANGE_BYTES },
                        result,
                        bytes,
                        // Peers differ by up to 200 to 1, and each varies a little from range to range.
                        duration_ms: 5 + (number as u64 * 7919) % 997 + self.turn % 3,
                        rtt_ms: Some(1 + (number as u64 * 31) % 80),
                        at: START,
                    }
                }

                /// Records `count` successes, the peers in turn; returns the time inside the selector.
                pub(crate) fn record(&mut self, count: usize) -> Duration {
                    let outcomes: Vec<TransferOutcome> = (0..count)
                        .map(|step| {
                            self.turn += 1;
                            self.outcome(step + self.turn as usize, OutcomeResult::Success, RANGE_BYTES)
                        })
                        .collect();
                    let begun = Instant::now();
                    for outcome in &outcomes {
                        self.selector.record_outcome(black_box(outcome));
                    }
                    begun.elapsed()
                }

                /// Selects once, then settles what was selected outside the measured time so that the next
                /// selection starts from the same load. `None` when the selection panicked.
                pub(crate) fn select(&mut self) -> Option<Duration> {
                    let loud = std::panic::take_hook();
                    std::panic::set_hook(Box::new(|_| {}));
                    let begun = Instant::now();
                    let selection = catch_unwind(AssertUnwindSafe(|| {
                        black_box(self.selector.select(black_box(&self.request), black_box(&self.candidates)))
                    }));
                    let elapsed = begun.elapsed();
                    std::panic::set_hook(loud);
                    let Ok(selection) = selection else {
                        self.panics += 1;
                        self.selector = selector(4096);
                        self.teach();
                        return None;
                    };
                    let cancelled = OutcomeResult::Failure { reason: FailureReason::Cancelled };
                    for peer in &selection.peers {
                        for _ in 0..peer.max_concurrency {
                            let settle = TransferOutcome { peer_id: peer.peer_id, ..self.outcome(0, cancelled, 0) };
                            self.selector.record_outcome(&settle);
                        }
                    }
                    Some(elapsed)
                }
            }

            /// A selector with measured peers, shared by threads.
            pub(crate) struct Shared {
                warm: Warm,
                outcomes: Vec<TransferOutcome>,
            }

            impl Shared {
                pub(crate) fn new(count: usize) -> Self {
                    let warm = Warm::new(count);
                    let outcomes =
                        (0..count).map(|nth| warm.outcome(nth, OutcomeResult::Success, RANGE_BYTES)).collect();
                    Self { warm, outcomes }
                }

                /// Records `count` successes, beginning with the peer `from`; returns the time inside the selector.
                pub(crate) fn record(&self, from: usize, count: usize) -> Duration {
                    let begun = Instant::now();
                    for outcome in self.outcomes.iter().cycle().skip(from % self.outcomes.len()).take(count) {
                        self.warm.selector.record_outcome(black_box(outcome));
                    }
                    begun.elapsed()
                }

                /// Selects once for a content of its own. The published selector panics now and then, by its order of costs; that ends the selection and poisons
                /// its lock, so `None` ends the measurement.
                pub(crate) fn select(&self) -> Option<()> {
                    let request = ContentRequest::new(ContentId::store([0x43; 32]), 8);
                    let select =
                        || drop(black_box(self.warm.selector.select(black_box(&request), &self.warm.candidates)));
                    catch_unwind(AssertUnwindSafe(select)).ok()
                }
            }

            /// A selector whose registry is at capacity with unmeasured peers.
            pub(crate) struct Full {
                selector: PeerSelector,
                capacity: usize,
                next: u64,
            }

            impl Full {
                pub(crate) fn new(capacity: usize) -> Self {
                    let mut full = Self { selector: selector(capacity), capacity, next: 0 };
                    let mut left = capacity;
                    while left > 0 {
                        let some = left.min(4096);
                        full.fill(some);
                        left -= some;
                    }
                    full
                }

                /// Inserts `count` peers never seen before; returns the time inside the selector.
                pub(crate) fn insert(&mut self, count: usize) -> Duration {
                    let elapsed = self.fill(count);
                    assert_eq!(self.selector.registry_size(), self.capacity, "the registry keeps its bound");
                    elapsed
                }

                fn fill(&mut self, count: usize) -> Duration {
                    let fresh: Vec<Candidate> = (self.next..).take(count).map(candidate).collect();
                    self.next += count as u64;
                    let begun = Instant::now();
                    for candidate in &fresh {
                        self.selector.upsert_candidate(black_box(candidate));
                    }
                    begun.elapsed()
                }

                /// Selects among `count` peers never seen before; returns the time inside the selector.
                pub(crate) fn select_fresh(&mut self, count: usize) -> Duration {
                    let fresh: Vec<Candidate> = (self.next..).take(count).map(candidate).collect();
                    self.next += count as u64;
                    let mut id = [0; 32];
                    id[..8].copy_from_slice(&self.next.to_be_bytes());
                    let request = ContentRequest::new(ContentId::store(id), 8);
                    let begun = Instant::now();
                    black_box(self.selector.select(black_box(&request), black_box(&fresh)));
                    begun.elapsed()
                }

                /// Records one success of each of the peers that it was filled with.
                pub(crate) fn measure_all(&mut self) {
                    for number in 0..self.capacity as u64 {
                        self.selector.record_outcome(&TransferOutcome {
                            peer_id: candidate(number).peer_id,
                            content: ContentId::store([0x42; 32]),
                            kind: OutcomeKind::Range { index: 0, offset: 0, length: RANGE_BYTES },
                            result: OutcomeResult::Success,
                            bytes: RANGE_BYTES,
                            duration_ms: 5 + (number * 7919) % 997,
                            rtt_ms: Some(1 + (number * 31) % 80),
                            at: START,
                        });
                    }
                }
            }
        }
    };
}

subject!(ours, dig_peer_selector);
subject!(theirs, published);
