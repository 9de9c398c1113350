//! What goes into and comes out of a connection's measurement, as plain data.

use super::burst::Burst;
use super::stall::Stall;
use crate::units::Span;

/// When the peer answers what is being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    /// As soon as it can: the round trip times the path.
    #[default]
    Prompt,
    /// When it has something (a blocking request), or not at all (our own answer to it). The round trip would time the waiting, so it is kept out of the distribution
    /// (MEAS-4). A cookie shared with something prompt counts as prompt.
    Whenever,
}

/// What became of the echo of one SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// None was sent: zero.
    Absent,
    /// It settled an outstanding cookie; the round trip is a sample.
    Matched(Span),
    /// It settled one whose round trip does not time the path: a blocking request, or a pause of ours lay in between.
    Unsampled(Span),
    /// It settled one faster than the path can (MEAS-3). Not a match for the gate.
    TooEarly(Span),
    /// It settled one, but the peer is guessing. Not a match for the gate.
    Disbelieved(Span),
    /// The cookie that matched last, once more: an honest peer repeats it until it receives a newer one.
    Repeated,
    /// The newest of the cookies that were forgotten for age or number: an honest peer that was slow.
    Forgotten,
    /// Never sent, or settled by a newer one: an honest peer names no such cookie.
    Unknown,
}

/// What one incoming SDU showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Its echo.
    pub echo: Echo,
    /// Time since the SDU before it, where both lie in one window or ramp; zero within one read. None for an SDU that opens one, for
    /// payloads of zero, and while nothing counts.
    pub gap: Option<Span>,
}

/// What a host forwards to the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// One or more windows closed.
    Burst(Burst),
    /// A stall is over.
    Stall(Stall),
    /// Too many unknown echoes (MEAS-3): evidence to weigh, not proof. Told once until the peer behaves again.
    EchoGuessing,
}

/// Totals since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Echoes by [`Echo::Absent`].
    pub absent: u64,
    /// Echoes by [`Echo::Matched`]: samples of the distribution.
    pub matched: u64,
    /// Echoes by [`Echo::Unsampled`].
    pub unsampled: u64,
    /// Echoes by [`Echo::TooEarly`].
    pub too_early: u64,
    /// Echoes by [`Echo::Disbelieved`].
    pub disbelieved: u64,
    /// Echoes by [`Echo::Repeated`].
    pub repeated: u64,
    /// Echoes by [`Echo::Forgotten`].
    pub forgotten: u64,
    /// Echoes by [`Echo::Unknown`].
    pub unknown: u64,
    /// Our cookies that waited longer than [`HOLD`](super::HOLD).
    pub expired: u64,
    /// Our cookies that made room beyond [`MAX_OUTSTANDING`](super::MAX_OUTSTANDING).
    pub evicted: u64,
}

impl Counters {
    /// SDUs read: each has one verdict.
    pub fn sdus(&self) -> u64 {
        let matches = self.matched + self.unsampled + self.too_early + self.disbelieved;
        matches + self.absent + self.repeated + self.forgotten + self.unknown
    }

    pub(super) fn count(&mut self, echo: Echo) {
        let counter = match echo {
            Echo::Absent => &mut self.absent,
            Echo::Matched(_) => &mut self.matched,
            Echo::Unsampled(_) => &mut self.unsampled,
            Echo::TooEarly(_) => &mut self.too_early,
            Echo::Disbelieved(_) => &mut self.disbelieved,
            Echo::Repeated => &mut self.repeated,
            Echo::Forgotten => &mut self.forgotten,
            Echo::Unknown => &mut self.unknown,
        };
        *counter += 1;
    }
}
