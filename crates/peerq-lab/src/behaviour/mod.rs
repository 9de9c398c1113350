//! What peers do with requests (LAB-2): one small file for each behaviour, each with the passage or scenario it comes from.
//!
//! The one idea: a [`Conduct`] decides twice. When a request arrives it says how it will answer ([`Answer`]); whenever bytes may flow it says how fast and for how long
//! ([`Segment`]). Links, windows and losses are the simulator's; a conduct can only make things worse than they allow.

mod boasts;
mod corrupts;
mod cuts;
mod dribbles;
mod fails;
mod farms;
mod flashes;
mod honest;
mod lacks;
mod paces;
mod pads;
mod silent;
mod stalls;
mod whitewashes;
mod withholds;

use crate::model::Behaviour;
use crate::sim::Luck;

/// A request as its peer sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Which content.
    pub content: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Virtual second of its arrival.
    pub at_s: f64,
}

/// What a peer does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Serves it.
    Serves,
    /// Serves other bytes than were asked for.
    Corrupts,
    /// Says that it does not have it.
    Lacks,
    /// Never answers.
    Silent,
    /// Says, after so many seconds, that it failed.
    Fails {
        /// Seconds.
        after_s: f64,
    },
    /// Serves half of it, then nothing for so many seconds, then the rest.
    Stalls {
        /// Seconds.
        for_s: f64,
    },
    /// Serves half of it, then cuts the connection.
    Cuts,
}

/// How far a reply is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Bytes of the reply sent so far.
    pub sent: f64,
    /// Bytes of the whole reply.
    pub bytes: u64,
    /// Bytes of all replies the peer sent so far.
    pub served: f64,
    /// Bytes per second of its link.
    pub link: f64,
    /// Virtual second.
    pub at_s: f64,
}

/// The next stretch of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Silence before it, seconds.
    pub pause_s: f64,
    /// Its length in bytes; infinite is all that is left.
    pub bytes: f64,
    /// Bytes per second at most; infinite is what the link allows.
    pub rate: f64,
}

impl Segment {
    /// All that is left, as fast as the link allows.
    pub const FULL: Segment = Segment { pause_s: 0.0, bytes: f64::INFINITY, rate: f64::INFINITY };

    /// All that is left, at a rate of its own.
    pub fn at(rate: f64) -> Segment {
        Segment { rate, ..Segment::FULL }
    }
}

/// The behaviour of one peer, with whatever it remembers.
pub trait Conduct: Copied + Send {
    /// A request arrived.
    fn answer(&mut self, _asked: &Asked, _luck: Luck) -> Answer {
        Answer::Serves
    }

    /// A reply may go on.
    fn segment(&mut self, _progress: &Progress) -> Segment {
        Segment::FULL
    }

    /// Bytes per second at which it really delivers over a link of `link` bytes per second, from `at_s` on and over many requests.
    fn true_rate(&self, link: f64, _at_s: f64) -> f64 {
        link
    }

    /// Virtual second at which it turns into something else by itself.
    fn turns_at_s(&self) -> Option<f64> {
        None
    }

    /// Whether, having just failed a request, it comes back under a new identity.
    fn sheds_identity(&mut self) -> bool {
        false
    }
}

/// What can be copied behind a box.
pub trait Copied {
    /// A copy with the same memory.
    fn copied(&self) -> Box<dyn Conduct>;
}

impl<T: Conduct + Clone + 'static> Copied for T {
    fn copied(&self) -> Box<dyn Conduct> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Conduct> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

/// The conduct of a peer of this behaviour.
pub fn conduct(behaviour: &Behaviour) -> Box<dyn Conduct> {
    match *behaviour {
        Behaviour::Honest => Box::new(honest::Honest),
        Behaviour::Fails { after_ms, share } => Box::new(fails::Fails { after_s: after_ms * 1e-3, share }),
        Behaviour::Lacks { share } => Box::new(lacks::Lacks { share }),
        Behaviour::Silent { share } => Box::new(silent::Silent { share }),
        Behaviour::Corrupts { share } => Box::new(corrupts::Corrupts { share }),
        Behaviour::Dribbles { after_bytes, rate } => Box::new(dribbles::Dribbles { after_bytes, rate }),
        Behaviour::Paces { burst_bytes, gap_ms } => Box::new(paces::Paces { burst_bytes, gap_s: gap_ms * 1e-3 }),
        Behaviour::Stalls { share, for_s } => Box::new(stalls::Stalls { share, for_s }),
        Behaviour::Farms { good } => Box::new(farms::Farms::new(good)),
        Behaviour::Boasts => Box::new(boasts::Boasts),
        Behaviour::Whitewashes { failures } => Box::new(whitewashes::Whitewashes::new(failures)),
        Behaviour::Flashes { at_s, rate } => Box::new(flashes::Flashes { at_s, rate }),
        Behaviour::Cuts { share } => Box::new(cuts::Cuts { share }),
        Behaviour::Pads { above_bytes, factor } => Box::new(pads::Pads { above_bytes, factor }),
        Behaviour::Withholds { share } => Box::new(withholds::Withholds { share }),
    }
}
