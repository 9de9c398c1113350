//! go-ethereum's `p2p/msgrate` and its downloader (facts: prior-art §1.1).
//!
//! One request per peer at a time, as large as the peer is thought to deliver within the target round trip: ⌈1 + 1.01 · rate · target⌉ items, an item being a
//! range here. Rate and round trip follow each answer with weight 0.1; an answer without items sets the rate to 0 and leaves the round trip alone. Idle peers
//! are asked in order of capacity. A newcomer starts with the mean rate and the "median" round trip, which is the √n-th smallest.
//!
//! A timeout of at most two items drops the peer, one of more blocks it for two minutes; a broken connection or a proven lie drops it too. A dropped peer is
//! dialled again later, as a newcomer: nothing is remembered of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::allotment::Allotment;
use super::stream::Stream;
use super::{Ask, Grant, Opinion, PeerIndex, Policy};

/// Weight of an answer.
const IMPACT: f64 = 0.1;
/// Overshoot of the capacity, which leaves a local minimum again.
const OVERESTIMATE: f64 = 1.01;
/// Bounds of the target round trip, seconds.
const TARGET_S: (f64, f64) = (2.0, 20.0);
/// Weight of a tuning of the target.
const TUNING: f64 = 0.25;
/// Share of the tuned round trip that is aimed at, so that it is pushed down: from memory.
const PUSHDOWN: f64 = 0.9;
/// Most items of a timed-out request that drop the peer at once.
const DROP_ITEMS: u32 = 2;
/// How long a peer stays busy with a request that timed out.
const STALE: Span = Span::from_secs(120);
/// From dropping a peer to dialling it again: from memory.
const REDIAL: Span = Span::from_secs(35);

/// A request under way: several ranges granted together.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: Time,
    items: u32,
    ended: u32,
    delivered: u32,
    cancelled: u32,
    /// What a failure calls for, the gravest of its ranges.
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
struct Tracker {
    /// Items per second.
    rate: f64,
    rtt_s: f64,
    request: Option<Request>,
    stale_until: Time,
    /// Bytes of an item, for reports.
    item: Bytes,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Msgrate {
    peers: BTreeMap<PeerIndex, Tracker>,
    away: BTreeMap<PeerIndex, Time>,
    rtt_s: f64,
    tuned: Time,
    draws: Stream,
}

impl Msgrate {
    /// With the draws of `seed`, which break ties as the original's map order does.
    pub fn new(seed: u64) -> Self {
        Msgrate {
            peers: BTreeMap::new(),
            away: BTreeMap::new(),
            rtt_s: TARGET_S.1,
            tuned: Time::ZERO,
            draws: Stream::new(seed, "msgrate"),
        }
    }

    /// The √n-th smallest round trip, within bounds.
    fn median_s(&self) -> f64 {
        let mut rtts: Vec<f64> = self.peers.values().map(|peer| peer.rtt_s).collect();
        if rtts.is_empty() {
            return TARGET_S.1;
        }
        rtts.sort_by(f64::total_cmp);
        let at = (rtts.len() as f64).sqrt() as usize;
        rtts[at.clamp(1, rtts.len()) - 1].clamp(TARGET_S.0, TARGET_S.1)
    }

    fn tune(&mut self, now: Time) {
        if !self.peers.is_empty() && now.since(self.tuned).as_secs_f64() >= self.rtt_s {
            self.rtt_s = (1.0 - TUNING) * self.rtt_s + TUNING * self.median_s();
            self.tuned = now;
        }
    }

    fn meet(&mut self, peer: PeerIndex) {
        if !self.peers.contains_key(&peer) {
            let count = self.peers.len().max(1) as f64;
            let rate = self.peers.values().map(|one| one.rate).sum::<f64>() / count;
            let rtt_s = self.median_s();
            let fresh = Tracker { rate, rtt_s, request: None, stale_until: Time::ZERO, item: Bytes::ZERO };
            self.peers.insert(peer, fresh);
        }
    }

    fn capacity(&self, tracker: &Tracker) -> u32 {
        // A float cast saturates.
        (1.0 + OVERESTIMATE * tracker.rate * PUSHDOWN * self.rtt_s).ceil() as u32
    }

    fn settle(&mut self, peer: PeerIndex, request: Request, now: Time) {
        let Some(tracker) = self.peers.get_mut(&peer) else { return };
        tracker.request = None;
        if request.delivered > 0 {
            // "elapsed <= 0 becomes 1 ns".
            let elapsed_s = now.since(request.at).as_secs_f64().max(1e-9);
            tracker.rate += IMPACT * (f64::from(request.delivered) / elapsed_s - tracker.rate);
            tracker.rtt_s += IMPACT * (elapsed_s - tracker.rtt_s);
            return;
        }
        if request.cancelled == request.items {
            return;
        }
        tracker.rate = 0.0;
        match request.fault {
            Some(Fault::Timeout) if request.items > DROP_ITEMS => tracker.stale_until = now + STALE,
            Some(Fault::Timeout | Fault::Transport | Fault::Verification) => {
                self.peers.remove(&peer);
                self.away.insert(peer, now + REDIAL);
            }
            _ => {}
        }
    }
}

impl Policy for Msgrate {
    fn name(&self) -> &'static str {
        "msgrate"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.away.retain(|_, until| ask.now < *until);
        for candidate in ask.candidates {
            if !self.away.contains_key(&candidate.peer) {
                self.meet(candidate.peer);
            }
        }
        self.tune(ask.now);
        let mut idle: Vec<(Reverse<u32>, u64, PeerIndex)> = Vec::new();
        for candidate in ask.candidates {
            let draw = self.draws.bits();
            if let Some(tracker) = self.peers.get(&candidate.peer)
                && tracker.request.is_none()
                && ask.now >= tracker.stale_until
            {
                idle.push((Reverse(self.capacity(tracker)), draw, candidate.peer));
            }
        }
        idle.sort_unstable();
        let mut allotment = Allotment::new(ask);
        for (Reverse(capacity), _, peer) in idle {
            let items = allotment.give(peer, capacity.max(1));
            if items > 0
                && let Some(tracker) = self.peers.get_mut(&peer)
            {
                tracker.item = ask.range;
                tracker.request =
                    Some(Request { at: ask.now, items, ended: 0, delivered: 0, cancelled: 0, fault: None });
            }
        }
        allotment.grants()
    }

    fn sent(&mut self, _peer: PeerIndex, _range: Bytes, _now: Time) {}

    fn ended(&mut self, peer: PeerIndex, _content: u64, range: Bytes, delivery: &Delivery, now: Time) {
        self.meet(peer);
        let Some(tracker) = self.peers.get_mut(&peer) else { return };
        // An end without a request is history: a request of one item that took that long.
        let began = Time::from_micros(now.as_micros().saturating_sub(delivery.elapsed.as_micros()));
        let lone = Request { at: began, items: 1, ended: 0, delivered: 0, cancelled: 0, fault: None };
        let mut request = tracker.request.unwrap_or(lone);
        tracker.item = range;
        request.ended += 1;
        match delivery.end {
            End::Completed => request.delivered += 1,
            End::Cancelled => request.cancelled += 1,
            End::Interrupted => request.fault = graver(request.fault, Fault::Transport),
            End::Failed(fault) => request.fault = graver(request.fault, fault),
        }
        tracker.request = Some(request);
        if request.ended >= request.items {
            self.settle(peer, request, now);
        }
    }

    fn opinion(&self, peer: PeerIndex, now: Time) -> Opinion {
        let Some(tracker) = self.peers.get(&peer) else {
            return Opinion { demoted: self.away.get(&peer).is_some_and(|until| now < *until), credited_rate: None };
        };
        let credited = tracker.rate * tracker.item.as_f64();
        Opinion { demoted: now < tracker.stale_until, credited_rate: (credited > 0.0).then_some(credited) }
    }
}

/// The graver of two faults, as far as it matters here.
fn graver(known: Option<Fault>, other: Fault) -> Option<Fault> {
    let gravity = |fault: Fault| match fault {
        Fault::Verification => 4,
        Fault::Transport => 3,
        Fault::Timeout => 2,
        Fault::Unavailable => 1,
        Fault::Unknown => 0,
    };
    known.into_iter().chain([other]).max_by_key(|fault| gravity(*fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{Bench, completed, failed};

    fn tracker(policy: &Msgrate, peer: u32) -> Tracker {
        policy.peers[&PeerIndex(peer)]
    }

    #[test]
    fn one_request_per_peer_and_it_grows_with_what_is_delivered() {
        let mut bench = Bench::new(1);
        let mut policy = Msgrate::new(1);
        assert_eq!(bench.ask(&mut policy, 100, 100), [(0, 1)]);
        assert_eq!(bench.ask(&mut policy, 100, 100), [], "one request at a time");
        bench.end_all(&mut policy, 1, 100);
        // 10 items/s at weight 0.1 is 1 item/s; the target is 0.9 · 20 s.
        assert!((tracker(&policy, 0).rate - 1.0).abs() < 1e-9);
        assert_eq!(bench.ask(&mut policy, 100, 100), [(0, (1.0_f64 + 1.01 * 18.0).ceil() as u32)]);
    }

    #[test]
    fn nothing_delivered_sets_the_capacity_to_zero_and_keeps_the_round_trip() {
        let mut bench = Bench::new(1);
        let mut policy = Msgrate::new(1);
        bench.alternate(&mut policy, 30, |_, _| completed(1, 100));
        let before = tracker(&policy, 0);
        bench.alternate(&mut policy, 1, |_, _| failed(Fault::Unavailable, 3_000));
        assert_eq!((tracker(&policy, 0).rate, tracker(&policy, 0).rtt_s), (0.0, before.rtt_s));
        // Of ten items a second, 22 good answers regain 90 %.
        bench.alternate(&mut policy, 21, |_, _| completed(1, 100));
        assert!(tracker(&policy, 0).rate < 9.0);
        bench.alternate(&mut policy, 1, |_, _| completed(1, 100));
        assert!(tracker(&policy, 0).rate > 9.0);
    }

    #[test]
    fn a_timeout_of_a_small_request_drops_the_peer_and_it_returns_as_a_newcomer() {
        let mut bench = Bench::new(2);
        let mut policy = Msgrate::new(1);
        bench.ask(&mut policy, 2, 2);
        bench.end(&mut policy, 0, &failed(Fault::Timeout, 1_000));
        assert!(policy.opinion(PeerIndex(0), bench.now).demoted);
        bench.end_all(&mut policy, 1, 100);
        assert!(bench.ask(&mut policy, 50, 50).iter().all(|(peer, _)| *peer == 1));
        bench.advance_ms(35_000);
        assert_eq!(bench.ask(&mut policy, 50, 50).first().map(|(peer, _)| *peer), Some(0));
        assert_eq!(tracker(&policy, 0).rate, tracker(&policy, 1).rate, "the mean of the others");
    }

    #[test]
    fn hostile_ends_leave_it_finite() {
        let mut bench = Bench::new(1);
        let mut policy = Msgrate::new(1);
        for elapsed in [0, u64::MAX] {
            let delivery = Delivery {
                bytes: Bytes::new(u64::MAX),
                elapsed: Span::from_micros(elapsed),
                first_byte: None,
                end: End::Completed,
            };
            policy.ended(PeerIndex(0), 0, Bytes::new(u64::MAX), &delivery, bench.now);
            assert!(tracker(&policy, 0).rate.is_finite());
            assert!(!bench.ask(&mut policy, 10, 10).is_empty());
            bench.end_all(&mut policy, 1, 1);
        }
    }
}
