//! Transfers: the requests under way, in places that are used again.

use crate::behaviour::{Answer, Segment};
use crate::sim::queue::{Event, Micros, TransferId};

/// Where a transfer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The request, or an answer without data, travels; or the peer works on it, or is silent.
    Away,
    /// Its bytes flow, or wait for the connection's window.
    Sending,
    /// The peer pauses before this stretch.
    Pausing(Segment),
    /// All bytes arrived; the client sees that when nothing before them is missing.
    Whole,
}

/// One request under way.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) generation: u32,
    /// Whether the place is taken.
    pub(crate) live: bool,
    pub(crate) peer: u32,
    /// Whom the client takes the peer for.
    pub(crate) identity: u32,
    pub(crate) job: u32,
    /// How many requests for the same job went to the peer before it.
    pub(crate) nth: u32,
    pub(crate) range: u32,
    pub(crate) bytes: u64,
    pub(crate) sent_at: Micros,
    pub(crate) first_byte: Option<Micros>,
    pub(crate) answer: Answer,
    /// Whether the peer counts it among those it serves.
    pub(crate) served: bool,
    pub(crate) phase: Phase,
    /// Bytes that arrived.
    pub(crate) got: f64,
    /// Where the present stretch ends, bytes of the body.
    pub(crate) stretch_end: f64,
    /// Bytes per second the present stretch may have.
    pub(crate) cap: f64,
    /// Bytes per second it has.
    pub(crate) rate: f64,
    /// Seconds that the policy expected it to take.
    pub(crate) predicted_s: Option<f64>,
}

impl Transfer {
    /// Byte at which something happens to the reply besides its end.
    pub(crate) fn hitch(&self) -> Option<f64> {
        let half = (self.bytes as f64 / 2.0).max(1.0);
        let hitched = matches!(self.answer, Answer::Stalls { .. } | Answer::Cuts) && half < self.bytes as f64;
        (hitched && self.got < half).then_some(half)
    }
}

/// What is asked of whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) peer: u32,
    pub(crate) identity: u32,
    pub(crate) job: u32,
    /// How many requests for the same job went to the peer before it.
    pub(crate) nth: u32,
    pub(crate) range: u32,
    pub(crate) bytes: u64,
}

/// All transfers.
#[derive(Clone, Default)]
pub(crate) struct Transfers {
    places: Vec<Transfer>,
    free: Vec<u32>,
}

impl Transfers {
    /// A place for a new transfer.
    pub(crate) fn open(&mut self, order: Order, now: Micros) -> TransferId {
        let fresh = Transfer {
            generation: 0,
            live: true,
            peer: order.peer,
            identity: order.identity,
            job: order.job,
            nth: order.nth,
            range: order.range,
            bytes: order.bytes,
            sent_at: now,
            first_byte: None,
            answer: Answer::Silent,
            served: false,
            phase: Phase::Away,
            got: 0.0,
            stretch_end: 0.0,
            cap: 0.0,
            rate: 0.0,
            predicted_s: None,
        };
        match self.free.pop() {
            Some(place) => {
                let old = &mut self.places[place as usize];
                let generation = old.generation.wrapping_add(1);
                *old = Transfer { generation, ..fresh };
                TransferId { place, generation }
            }
            None => {
                self.places.push(fresh);
                TransferId { place: self.places.len() as u32 - 1, generation: 0 }
            }
        }
    }

    /// The transfer of this id, unless it is over.
    pub(crate) fn get(&self, id: TransferId) -> Option<&Transfer> {
        self.places.get(id.place as usize).filter(|transfer| transfer.live && transfer.generation == id.generation)
    }

    /// The transfer at a place that is known to be taken.
    pub(crate) fn at(&mut self, place: u32) -> &mut Transfer {
        &mut self.places[place as usize]
    }

    /// Its id.
    pub(crate) fn id(&self, place: u32) -> TransferId {
        TransferId { place, generation: self.places[place as usize].generation }
    }

    /// Gives a place back.
    pub(crate) fn close(&mut self, place: u32) {
        self.places[place as usize].live = false;
        self.free.push(place);
    }
}

/// Whether an event concerns a transfer that is over.
pub(crate) fn is_stale(transfers: &Transfers, event: Event) -> bool {
    match event {
        Event::Arrives(id) | Event::Ready(id) | Event::Refused(id) | Event::Seen(id) | Event::GivenUp(id) => {
            transfers.get(id).is_none()
        }
        _ => false,
    }
}
