//! What the client does about ranges under way that come too late: shows them to a policy that reviews them, and does what it says (HEDGE).
//!
//! A client that can drop a request gives a late range up, and it goes back to the others; one that cannot asks a second peer for it as well. Whichever comes first
//! counts, and the other is waste.

use std::collections::BTreeMap;

use peer_quality::measure::{End, Fault};
use peer_quality::units::{Bytes, Span, Time};

use super::Run;
use super::guard::caught;
use crate::policy::{Held, Move, PeerIndex, Policy, Review};
use crate::sim::queue::{Event, Micros, TransferId};

/// The shortest time between two reviews of a job.
const SOONEST: Micros = 1_000;

/// A range that two peers were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Twice {
    /// Who of them has not ended.
    holders: u32,
    delivered: bool,
}

impl Twice {
    /// Its requests in flight besides one, or besides what came.
    pub(super) fn second_requests(&self) -> u32 {
        self.holders.saturating_sub(u32::from(!self.delivered))
    }
}

/// The ranges of a job that two peers were asked for.
pub(crate) type Doubled = BTreeMap<u32, Twice>;

/// What the end of one of its requests means for a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is as if nobody else had been asked.
    Alone,
    /// Another peer still has it.
    Awaited,
    /// It had come before.
    Late,
}

/// Notes that one of a range's requests ended.
pub(super) fn one_ended(doubled: &mut Doubled, range: u32, completed: bool) -> Part {
    let Some(twice) = doubled.get_mut(&range) else { return Part::Alone };
    twice.holders -= 1;
    if twice.delivered {
        return Part::Late;
    }
    twice.delivered = completed;
    if completed {
        Part::Alone
    } else if twice.holders > 0 {
        Part::Awaited
    } else {
        doubled.remove(&range);
        Part::Alone
    }
}

impl<P: Policy + ?Sized> Run<'_, P> {
    /// Has what is under way for a job reviewed, if the policy does that, and plans the next time.
    pub(super) fn review(&mut self, index: u32) {
        if self.reviewing || !self.policy.reviews() || self.jobs[index].closed {
            return;
        }
        self.look(None);
        let places = self.jobs[index].in_flight.clone();
        let held: Vec<Held> = places.iter().map(|place| self.held(index, *place)).collect();
        let ids: Vec<TransferId> = places.iter().map(|place| self.network.transfers.id(*place)).collect();
        let job = &self.jobs[index];
        let can_drop = self.work.deadline_s.is_none();
        let review = Review {
            now: self.time(),
            content: index.into(),
            range: Bytes::new(self.work.range_bytes),
            ranges_left: job.pending.len() as u32,
            // A second request takes no slot from other ranges; there are as many of them at most.
            free: self.work.in_flight.saturating_sub(if can_drop {
                job.ranges_in_flight()
            } else {
                job.second_requests()
            }),
            sources: self.work.sources,
            can_drop,
            held: &held,
            candidates: &self.candidates,
        };
        let policy = &mut *self.policy;
        let answer = caught(|| policy.review(&review));
        let now = self.network.queue.now();
        self.panics += u32::from(answer.is_none());
        let answer = answer.unwrap_or_default();
        self.reviewing = true;
        for Move { range, to, is_late } in answer.moves {
            // What one move led to may have ended another piece.
            let Some(&id) = ids.get(range).filter(|id| self.network.transfers.get(**id).is_some()) else { continue };
            if can_drop {
                let range = self.network.transfers.at(id.place).range;
                *self.jobs[index].given_up.entry(range).or_default() += 1;
                self.end(id.place, if is_late { End::Failed(Fault::Timeout) } else { End::Cancelled });
            } else {
                self.ask_as_well(index, id.place, to);
            }
        }
        self.reviewing = false;
        if let Some(again) = answer.again {
            let at = now.saturating_add(again.as_micros().max(SOONEST));
            let job = &mut self.jobs[index];
            if !job.closed && job.review_at.is_none_or(|planned| planned <= now || at < planned) {
                job.review_at = Some(at);
                self.network.queue.plan(at, Event::Reviews { job: index });
            }
        }
    }

    /// The planned time of a review has come, unless another was planned instead.
    pub(super) fn reviews(&mut self, index: u32) {
        if self.jobs[index].review_at == Some(self.network.queue.now()) {
            self.jobs[index].review_at = None;
            self.review(index);
        }
    }

    fn held(&mut self, index: u32, place: u32) -> Held {
        let arrived = self.network.arrived(place);
        let now = self.network.queue.now();
        let transfer = self.network.transfers.at(place);
        let twice = self.jobs[index].doubled.get(&transfer.range).copied().unwrap_or_default();
        Held {
            peer: PeerIndex(transfer.identity),
            bytes: Bytes::new(transfer.bytes),
            sent: Time::from_micros(transfer.sent_at),
            arrived: Bytes::new(arrived),
            first_byte: transfer.first_byte.filter(|at| *at <= now).map(|at| Span::from_micros(at - transfer.sent_at)),
            // Nobody has to bring what is there already.
            holders: if twice.delivered { u32::MAX } else { twice.holders.max(1) },
            given_up: self.jobs[index].given_up.get(&transfer.range).copied().unwrap_or(0),
        }
    }

    fn ask_as_well(&mut self, index: u32, place: u32, to: PeerIndex) {
        let holder = PeerIndex(self.network.transfers.at(place).identity);
        let range = self.network.transfers.at(place).range;
        let is_candidate = self.candidates.binary_search_by_key(&to, |candidate| candidate.peer).is_ok();
        let job = &mut self.jobs[index];
        let has_slot = job.second_requests() < self.work.in_flight;
        if !is_candidate || !has_slot || to == holder || job.closed || job.doubled.contains_key(&range) {
            return;
        }
        job.doubled.insert(range, Twice { holders: 2, delivered: false });
        self.send(index, range, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_request_takes_no_slot_from_other_ranges() {
        let besides = |holders, delivered| Twice { holders, delivered }.second_requests();
        assert_eq!([(2, false), (1, false), (1, true), (0, true)].map(|(n, came)| besides(n, came)), [1, 0, 1, 0]);
    }

    #[test]
    fn the_first_to_come_counts_and_a_range_is_lost_only_with_both() {
        let doubled = || Doubled::from([(7, Twice { holders: 2, delivered: false })]);
        let ends = |first: bool, second: bool| {
            let mut doubled = doubled();
            [first, second].map(|completed| one_ended(&mut doubled, 7, completed))
        };
        assert_eq!(ends(true, true), [Part::Alone, Part::Late]);
        assert_eq!(ends(true, false), [Part::Alone, Part::Late]);
        assert_eq!(ends(false, true), [Part::Awaited, Part::Alone]);
        assert_eq!(ends(false, false), [Part::Awaited, Part::Alone]);
        assert_eq!(one_ended(&mut doubled(), 8, false), Part::Alone);
    }
}
