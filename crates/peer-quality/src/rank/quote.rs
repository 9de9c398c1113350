//! What one more request to a peer would cost, and the key by which quotes are ordered (RANK-1, RANK-2).
//!
//! Cost is the time to deliver *this* size behind *this* peer's queue, made dearer by the share of requests that fail and by requests already overdue.
//! Costs within about 3 % are equal, and equals are ordered by a salt that depends on the seed, so that many nodes do not all
//! pick the same peer (RANK-1); the size of the body decides whether distance or rate leads (RANK-2).

use crate::audit::Standing;
use crate::estimate::{Basis, Forecast, Opening};
use crate::table::Slot;
use crate::units::Bytes;

/// The class of a quote: costs are compared within a class only. Best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing speaks against it, measured or not.
    Open,
    /// One proven offence.
    Probation,
    /// Left alone after failures in a row.
    Cooling,
    /// Proven offences, repeated.
    Condemned,
}

/// One peer's offer for one more request.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// Whose.
    pub slot: Slot,
    /// Where it may compete.
    pub class: Class,
    /// What the times rest on.
    pub basis: Basis,
    /// Expected seconds until one more request is delivered.
    pub cost_s: f32,
    /// The same at p95.
    pub tail_s: f32,
    /// Expected seconds of one request without a queue and without what speaks against it: what a trial costs.
    pub usual_s: f32,
    /// Expected seconds to its first byte.
    pub first_byte_s: f32,
    /// Bytes per second of all its requests together.
    pub pace: f32,
    /// How its connection opens, if it is cold.
    pub opening: Opening,
    /// Seconds until its body starts, where its connection is cold; 0 elsewhere.
    pub start_s: f32,
    /// How many more requests it may have in flight.
    pub room: u32,
    /// Requests in flight, reservations included.
    pub in_flight: u32,
    /// Those of them sent so lately that nothing of them can have come.
    pub fresh: u32,
    /// When it was last tried, in decisions; 0 is never.
    pub last_tried: u64,
    /// Ends since its rate changed; the highest value stands for never.
    pub trials_since_change: u8,
    /// Whether it failed since anybody delivered, as most did.
    pub is_suspect: bool,
    /// Whether its latest body was surprisingly fast.
    pub is_promising: bool,
    /// How many unproven peers of its address group come before it: 0 for most.
    pub crowd: u8,
    /// Whether some of its deliveries take many times as long as the rest.
    pub is_fitful: bool,
    /// Whether a trial may go to it: not while it cools off, and to the condemned only after a long rest.
    pub may_be_tried: bool,
    /// Order among equals.
    pub salt: u32,
}

/// What a quote is made of.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Time to deliver without a queue.
    pub forecast: Forecast,
    /// Share of requests that end well, 0..=1, cautious.
    pub reliability: f32,
    /// Seconds that a request takes which does not end well; less than one that does counts like that.
    pub lost_s: f32,
    /// Requests in flight, reservations included.
    pub in_flight: u32,
    /// Recommended most in flight.
    pub limit: u32,
    /// The most that it serves at once, where it refused more.
    pub ceiling: Option<u32>,
    /// How long the oldest request has been running, seconds.
    pub oldest_pending_s: f32,
    /// Requests in flight sent so lately that nothing of them can have come.
    pub fresh: u32,
    /// The standing by proof.
    pub standing: Standing,
    /// Whether it is cooling off.
    pub cooling: bool,
    /// Whether its last request failed: until one succeeds it gets one at a time.
    pub failing: bool,
    /// Whether it failed since anybody delivered, as most did.
    pub suspect: bool,
    /// Whether it has rested long enough for a trial in spite of what is proven.
    pub rested: bool,
    /// Ends since its rate changed; the highest value stands for never.
    pub trials_since_change: u8,
    /// Whether its latest body was surprisingly fast.
    pub is_promising: bool,
    /// Whether some of its deliveries take many times as long as the rest.
    pub is_fitful: bool,
    /// Whether it served the same work last: a small advantage against flapping.
    pub incumbent: bool,
    /// Whether its bytes come without the echoes they should carry.
    pub withholds_echoes: bool,
    /// What its requests together achieved, where the host reports what it dispatches.
    pub capacity: Option<Capacity>,
}

/// What requests to one peer achieve together (EST-10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Best total rate, bytes per second.
    pub total: f32,
    /// Rate of one request alone, bytes per second, where it was seen alone; at most the total.
    pub single: Option<f32>,
}

/// The incumbent's cost is multiplied by this. Lower clings to a slower peer, 1 flaps between near equals; one step of the order is 3 %.
const INCUMBENT_FACTOR: f32 = 0.95;
/// The cost of a peer whose round trip cannot be read because it withholds echoes is multiplied by this: it loses to its equals, and what it delivered still decides
/// among others. Higher punishes a peer that does not know cookies well, lower is lost in one step of the order. Unmeasured heuristic.
const WITHHOLDING_FACTOR: f32 = 1.1;
/// The least reliability that is counted with: below it a peer is cooling off anyway.
const MIN_RELIABILITY: f32 = 0.05;
/// What a p95 leaves out.
const TAIL_SHARE: f32 = 0.05;
/// Most that a request already running may be late, as a multiple of its tail, before its lateness counts.
const OVERDUE_TAILS: f32 = 1.0;

/// The most that a late first byte alone may ask for: a peer that is slow to answer must not draw requests by it.
const FILL_MAX: u32 = 4;

impl Terms {
    /// The quote for a request of `size` bytes; none for a banned peer.
    #[inline]
    pub fn quote(&self, slot: Slot, size: Bytes, last_tried: u64, salt: u32) -> Option<Quote> {
        let class = match (self.standing, self.cooling) {
            (Standing::Banned, _) => return None,
            (Standing::Condemned, _) => Class::Condemned,
            (_, true) => Class::Cooling,
            (Standing::Probation, _) => Class::Probation,
            (Standing::Fine, _) => Class::Open,
        };
        let limit =
            if class == Class::Open && !self.failing { self.limit.max(self.fills_with(size)).max(1) } else { 1 };
        let room = limit.saturating_sub(self.in_flight);
        let ramp_s = self.forecast.ramp_s(size);
        let (usual, usual_tail) = (self.forecast.warm_s(size) + ramp_s, self.forecast.tail_s(size));
        let mean = self.capacity.map_or(usual, |capacity| self.behind_queue_s(size, &capacity) + ramp_s);
        let tail = mean * (usual_tail / usual.max(1e-6)).max(1.0);
        let overdue = if self.oldest_pending_s > OVERDUE_TAILS * usual_tail { self.oldest_pending_s } else { 0.0 };
        let factor = if self.incumbent { INCUMBENT_FACTOR } else { 1.0 }
            * if self.withholds_echoes { WITHHOLDING_FACTOR } else { 1.0 };
        let lost_s = self.lost_s.max(mean);
        let alone = size.get() as f32 / usual.max(1e-6);
        let capacity = self.capacity.map_or(alone * limit as f32, |capacity| capacity.total.max(alone));
        let opening = self.forecast.ramp.opening(capacity);
        Some(Quote {
            slot,
            class,
            basis: self.forecast.basis,
            cost_s: (mean.max(overdue) + times(self.failures(), lost_s)) * factor,
            tail_s: (tail.max(overdue) + times(self.failures_tail(), lost_s)) * factor,
            usual_s: usual,
            first_byte_s: self.forecast.first_byte_s,
            pace: capacity,
            opening,
            start_s: match opening.is_open() {
                true => 0.0,
                false => tail - (ramp_s + size.get() as f32 / capacity.max(1.0)),
            },
            room,
            in_flight: self.in_flight,
            fresh: self.fresh,
            last_tried,
            trials_since_change: self.trials_since_change,
            is_suspect: self.suspect,
            is_promising: self.is_promising,
            crowd: 0,
            is_fitful: self.is_fitful,
            may_be_tried: match class {
                Class::Open | Class::Probation => true,
                Class::Cooling => false,
                Class::Condemned => self.rested,
            },
            salt,
        })
    }
}

/// So many of what takes so long, which may be for ever.
#[inline]
fn times(count: f32, each_s: f32) -> f32 {
    if count > 0.0 { count * each_s } else { 0.0 }
}

impl Terms {
    /// Failures to be expected before the first success.
    #[inline]
    fn failures(&self) -> f32 {
        let reliability = self.reliability.max(MIN_RELIABILITY);
        (1.0 - reliability) / reliability
    }

    /// The same at p95: of one request in twenty the first n fail where (1 − reliability)^n is a twentieth.
    #[inline]
    fn failures_tail(&self) -> f32 {
        let failing = 1.0 - self.reliability.max(MIN_RELIABILITY);
        if failing <= TAIL_SHARE { 0.0 } else { libm::logf(TAIL_SHARE) / libm::logf(failing) - 1.0 }
    }

    /// [`quote`](Self::quote) where it is not called for each of thousands.
    #[inline(never)]
    pub fn quoted(&self, slot: Slot, size: Bytes, last_tried: u64, salt: u32) -> Option<Quote> {
        self.quote(slot, size, last_tried, salt)
    }

    /// Requests of `size` that keep the path busy while each waits for its first byte, as the record of single requests has it (algorithms: useful concurrency
    /// n*). Judging by experiment alone can settle below it, since every experiment costs requests.
    #[inline]
    fn fills_with(&self, size: Bytes) -> u32 {
        let Some(capacity) = self.capacity.filter(|_| self.forecast.basis == Basis::Measured) else { return 1 };
        let (first_byte_s, size) = (self.forecast.first_byte_s, size.get() as f32);
        // Bodies that were sent together took each other's time; what is left of a request's share of the total, less its share of the wait, is its own.
        let own_s = size / capacity.total.max(1.0) - first_byte_s / self.limit.max(1) as f32;
        let body_s = (self.forecast.secs_per_byte * size).min(own_s).max(1e-6);
        let fill = (libm::ceilf(first_byte_s / body_s) as u32).saturating_add(1);
        fill.min(FILL_MAX).min(self.ceiling.unwrap_or(u32::MAX))
    }

    /// Seconds within which a request in flight should end at p95, behind the others that the peer has.
    pub fn due_s(&self, size: Bytes) -> f32 {
        let usual = self.forecast.mean_s(size);
        self.served_s(size) * (self.forecast.tail_s(size) / usual.max(1e-6)).max(1.0)
    }

    /// Seconds within which a request in flight usually ends, behind the others that the peer has.
    pub fn served_s(&self, size: Bytes) -> f32 {
        let ramp_s = self.forecast.ramp_s(size);
        let others = Terms { in_flight: self.in_flight.saturating_sub(1), ..*self };
        match &self.capacity {
            Some(capacity) => others.behind_queue_s(size, capacity) + ramp_s,
            None => (self.forecast.warm_s(size) + ramp_s) * self.in_flight.max(1) as f32,
        }
    }

    /// Seconds for one more request behind those in flight: its own pace, or its turn in the total rate, whichever is later (RANK-1).
    fn behind_queue_s(&self, size: Bytes, capacity: &Capacity) -> f32 {
        let usual_s = self.forecast.warm_s(size);
        let size = size.get() as f32;
        // Together they move at least what one body did after its first byte: a total of tiny requests shows how far a peer is, and not how much it bears.
        let total = capacity.total.max(1.0 / self.forecast.secs_per_byte.max(1e-12));
        let turn = size * (self.in_flight as f32 + 1.0) / total.max(1.0);
        // Neither the rate of requests of another size nor the time of those that had others beside them is less than one takes alone.
        let alone = (size / capacity.single.unwrap_or(capacity.total).max(1.0)).min(usual_s);
        // The total counts whole waits, so the first byte is in it already when requests queue; alone it comes on top.
        turn.max(alone).max(self.forecast.first_byte_s)
    }
}

impl Quote {
    /// Requests of `size` bytes that it delivers within `by_s`, besides what it owes already. A cold connection opens for all of them together, so that a second
    /// request to it is not as good as free.
    pub fn delivers(&self, by_s: f32, size: Bytes) -> u32 {
        if by_s < self.tail_s {
            return 0;
        }
        let size = size.get().max(1) as f32;
        if self.opening.is_open() {
            return (((by_s - self.tail_s) * self.pace / size) as u32).saturating_add(1);
        }
        ((self.opening.bytes_within(by_s - self.start_s, self.pace) / size) as u32).max(1)
    }

    /// Seconds to the next request to it that keeps its requests apart, where one more now would be too soon after the last: requests that are sent together end
    /// together, and its path is idle for a round trip each time.
    pub fn spacing_s(&self, size: Bytes) -> Option<f32> {
        let requests = self.in_flight.saturating_add(self.room) as f32;
        let cycle_s = self.first_byte_s + requests * size.get() as f32 / self.pace.max(1.0);
        let together = libm::roundf(requests * self.first_byte_s / cycle_s).max(1.0);
        (self.fresh as f32 >= together).then_some(cycle_s / requests)
    }

    /// Whether it rests on completed bodies of this peer.
    pub fn is_proven(&self) -> bool {
        self.basis == Basis::Measured
    }

    /// Ascending order: class, then cost in steps of about 3 %, then measured before guessed, then one of each address group, then the salt.
    /// A total order of plain integers: equal costs, infinities and hash order cannot upset it (scenario C22).
    #[inline]
    pub fn key(&self) -> u64 {
        // The bits of a positive float grow with it; 5 bits of fraction are steps of 1/32 of a power of two.
        const STEP_BITS: u32 = 23 - 5;
        let step = u64::from(self.cost_s.max(0.0).to_bits() >> STEP_BITS);
        let crowd = u64::from(self.crowd.min(7)) << 32;
        (self.class as u64) << 60 | step << 40 | u64::from(!self.is_proven()) << 36 | crowd | u64::from(self.salt)
    }
}

#[cfg(test)]
impl Quote {
    /// What tests start from: idle, open, unproven, a second away.
    pub(crate) fn sample(slot: Slot) -> Quote {
        Quote {
            slot,
            class: Class::Open,
            basis: Basis::Prior,
            cost_s: 1.0,
            tail_s: 1.0,
            usual_s: 1.0,
            first_byte_s: 0.0,
            pace: 1e6,
            opening: Opening::default(),
            start_s: 0.0,
            room: 4,
            in_flight: 0,
            fresh: 0,
            last_tried: 0,
            trials_since_change: u8::MAX,
            is_suspect: false,
            is_promising: false,
            is_fitful: false,
            may_be_tried: true,
            crowd: 0,
            salt: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            forecast: Forecast {
                first_byte_s: 0.02,
                secs_per_byte: 1e-6,
                first_byte_tail_s: 0.03,
                secs_per_byte_tail: 1.2e-6,
                first_byte_error_s: 0.0,
                secs_per_byte_error: 0.0,
                ramp: crate::estimate::Ramp::default(),
                basis: Basis::Measured,
            },
            reliability: 1.0,
            lost_s: 0.0,
            in_flight: 0,
            limit: 4,
            ceiling: None,
            oldest_pending_s: 0.0,
            fresh: 0,
            standing: Standing::Fine,
            cooling: false,
            failing: false,
            suspect: false,
            rested: false,
            incumbent: false,
            withholds_echoes: false,
            is_fitful: false,
            trials_since_change: u8::MAX,
            is_promising: false,
            capacity: None,
        }
    }

    fn quote(terms: Terms) -> Quote {
        let mut table = crate::table::Table::<u8, u8>::new(1, crate::seed::Seed::new(0));
        terms.quote(table.admit(0).slot().unwrap(), Bytes::new(1_000_000), 0, 0).unwrap()
    }

    #[test]
    fn every_burden_makes_a_peer_dearer() {
        let base = quote(terms()).key();
        let burdened = [
            Terms { reliability: 0.5, ..terms() },
            Terms { oldest_pending_s: 30.0, ..terms() },
            Terms { cooling: true, ..terms() },
            Terms { withholds_echoes: true, ..terms() },
            Terms { standing: Standing::Probation, ..terms() },
            Terms { standing: Standing::Condemned, ..terms() },
        ];
        for terms in burdened {
            assert!(quote(terms).key() > base, "{terms:?}");
        }
    }

    #[test]
    fn a_fast_peer_with_a_queue_is_compared_by_its_turn() {
        // C12: 10 MB/s in all against 3 MB/s idle. Up to three ranges ahead the fast one is still the better place to wait.
        let fast = Capacity { total: 10e6, single: Some(9e6) };
        let idle = quote(Terms { capacity: Some(Capacity { total: 3e6, single: Some(3e6) }), ..terms() }).key();
        let behind = |in_flight| quote(Terms { in_flight, capacity: Some(fast), ..terms() }).key();
        assert!(behind(0) < idle && behind(1) < idle && behind(3) > idle);
    }

    #[test]
    fn tiny_requests_do_not_queue_behind_each_other() {
        // A13: 1 KB each, 50 ms away; another peer is 80 ms away. One in flight leaves the near one near.
        let near = Forecast { first_byte_s: 0.05, secs_per_byte: 1e-6, ..terms().forecast };
        let capacity = Some(Capacity { total: 20e3, single: Some(20e3) });
        let tiny = |terms: Terms| {
            let mut table = crate::table::Table::<u8, u8>::new(1, crate::seed::Seed::new(0));
            terms.quote(table.admit(0).slot().unwrap(), Bytes::new(1_000), 0, 0).unwrap().cost_s
        };
        let far = Forecast { first_byte_s: 0.08, ..near };
        let far =
            tiny(Terms { forecast: far, capacity: Some(Capacity { total: 12e3, single: Some(12e3) }), ..terms() });
        assert!(tiny(Terms { forecast: near, capacity, in_flight: 1, ..terms() }) < far);
    }

    #[test]
    fn a_history_of_tiny_requests_does_not_make_large_ones_slow() {
        // 4 KB in 14 ms each is 300 KB/s in all; one body of a megabyte after the first byte takes 40 ms here.
        let forecast = Forecast { first_byte_s: 0.014, secs_per_byte: 4e-8, ..terms().forecast };
        for single in [None, Some(3e5)] {
            let capacity = Some(Capacity { total: 3e5, single });
            assert!(quote(Terms { forecast, capacity, ..terms() }).cost_s < 0.1, "{single:?}");
        }
    }

    #[test]
    fn a_path_that_idles_between_single_requests_gets_as_many_as_fill_it() {
        // 50 ms to the first byte and 25 ms of body: three at once, whatever experiments said; a refusal still counts.
        let forecast = Forecast { first_byte_s: 0.05, secs_per_byte: 2.5e-8, ..terms().forecast };
        let capacity = Some(Capacity { total: 13.3e6, single: Some(13.3e6) });
        let room = |terms: Terms| quote(terms).room;
        assert_eq!(room(Terms { forecast, capacity, limit: 1, ..terms() }), 3);
        assert_eq!(room(Terms { forecast, capacity, limit: 1, ceiling: Some(2), ..terms() }), 2);
        assert_eq!(room(Terms { forecast, capacity: None, limit: 1, ..terms() }), 1, "a host that reports nothing");
        // S1: two together, each of which takes the other's time. A peer at half the rate is full with them.
        let together = Forecast { secs_per_byte: 6.6e-8, ..forecast };
        let with = |total| Terms { forecast: together, capacity: Some(Capacity { total, single: None }), ..terms() };
        assert_eq!((room(Terms { limit: 2, ..with(17e6) }), room(Terms { limit: 2, ..with(10e6) })), (3, 2));
        let late = Forecast { first_byte_s: 60.0, ..forecast };
        assert_eq!(room(Terms { forecast: late, capacity, limit: 1, ..terms() }), FILL_MAX);
    }

    #[test]
    fn room_ends_at_the_limit() {
        for (in_flight, room) in [(0, 4), (3, 1), (4, 0), (u32::MAX, 0)] {
            assert_eq!(quote(Terms { in_flight, ..terms() }).room, room);
        }
    }

    #[test]
    fn infinite_and_tiny_costs_stay_ordered() {
        let mut last = 0;
        for secs in [0.0, 1e-30, 1e-6, 1.0, 1e6, f32::MAX, f32::INFINITY] {
            let key = quote(Terms {
                forecast: Forecast { first_byte_s: secs, secs_per_byte: 0.0, ..terms().forecast },
                ..terms()
            })
            .key();
            assert!(key >= last);
            last = key;
        }
    }
}
