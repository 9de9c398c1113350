//! What a policy is shown that measures on the wire, and what it answers there.

use peer_quality::measure::wire::{Reply, Stamp};
use peer_quality::units::Time;

use super::PeerIndex;

/// Single SDUs of each peer, with cookies. Calls about one peer come in order of time; what was read is told before anything that may depend on it, stamped with the
/// moment of the reading. SDUs with one stamp are one read.
pub trait Sight {
    /// An SDU to a peer is written: the cookies to put into it.
    fn writes(&mut self, peer: PeerIndex, reply: Reply, now: Time) -> Stamp;

    /// An SDU of a peer was read, with so many bytes of payload.
    fn reads(&mut self, peer: PeerIndex, stamp: Stamp, payload: u32, now: Time);

    /// The SDU that is told next is the first of a reply.
    fn opens(&mut self, peer: PeerIndex, now: Time);

    /// A reply that was opened is complete, or given up.
    fn ends(&mut self, peer: PeerIndex, now: Time);

    /// The client stops reading, from all peers.
    fn pauses(&mut self, now: Time);

    /// It reads again.
    fn resumes(&mut self, now: Time);

    /// Whether a cookie is to be sent to a peer with something small (MEAS-9).
    fn wants_cookie(&self, peer: PeerIndex, now: Time) -> bool;

    /// The next signal that was raised; none when all were told.
    fn poll_signal(&mut self) -> Option<Signal>;
}

/// Something that a policy reports to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal {
    /// What: the name that plans use.
    pub name: &'static str,
    /// Whom it is about; none for all.
    pub peer: Option<PeerIndex>,
}

impl Signal {
    /// A peer echoes cookies that it cannot know (MEAS-3).
    pub const ECHO_GUESSING: &'static str = "echo-guessing";
    /// In a running reply a cookie was outstanding, and none matched for longer than the gate (MEAS-5, settled difference 2).
    pub const ECHO_SILENCE: &'static str = "echo-silence";
}
