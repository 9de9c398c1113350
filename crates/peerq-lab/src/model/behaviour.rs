//! What a peer does with a request: honest, broken or hostile (LAB-2).

use serde::{Deserialize, Serialize};

/// How a peer behaves. Each hostile one is implemented in a file of its own, with the passage it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Behaviour {
    /// Serves as well as its link allows.
    #[default]
    Honest,
    /// Fails each request after a moment.
    Fails {
        /// Milliseconds.
        after_ms: f64,
        /// Share of requests that fail.
        share: f64,
    },
    /// Says for this share of ranges that it does not have them.
    Lacks {
        /// Share of ranges.
        share: f64,
    },
    /// Accepts and never answers this share of requests.
    Silent {
        /// Share of requests.
        share: f64,
    },
    /// Serves with this share of chunks corrupt.
    Corrupts {
        /// Share of requests.
        share: f64,
    },
    /// Serves fast for a number of bytes, then dribbles.
    Dribbles {
        /// Bytes at full rate, over all requests.
        after_bytes: u64,
        /// Bytes per second afterwards.
        rate: f64,
    },
    /// Micro-bursts at line rate with silence between them (idle-gap pacer).
    Paces {
        /// Bytes of a burst.
        burst_bytes: u64,
        /// Silence between bursts, milliseconds.
        gap_ms: f64,
    },
    /// Stalls this share of requests for a while, serving the rest well.
    Stalls {
        /// Share of requests.
        share: f64,
        /// Seconds of the stall.
        for_s: f64,
    },
    /// Serves well until the request's deadline matters, then withholds (reputation farmer).
    Farms {
        /// Requests served well first.
        good: u32,
    },
    /// Claims a capacity it does not have; claims are no input to any policy here.
    Boasts,
    /// Comes back under a fresh identity after this many failures.
    Whitewashes {
        /// Failures per identity.
        failures: u32,
    },
    /// Cuts the connection in the middle of this share of requests.
    Cuts {
        /// Share of requests.
        share: f64,
    },
    /// Serves large requests at a fraction of its link, small ones at all of it (byte-padder, as outcomes show it).
    Pads {
        /// The largest request that is served well, bytes.
        above_bytes: u64,
        /// Fraction of the link that larger ones get.
        factor: f64,
    },
    /// Never answers for this share of contents, the same ones as all of its kind (surgical withholder).
    Withholds {
        /// Share of contents.
        share: f64,
    },
    /// Behaves until a moment, then dribbles together with all of its kind (covert flash).
    Flashes {
        /// Seconds.
        at_s: f64,
        /// Bytes per second afterwards.
        rate: f64,
    },
}

/// The side a behaviour is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Does what it can.
    Honest,
    /// Broken: fails or stalls without intent.
    Broken,
    /// Hostile.
    Hostile,
}

impl Behaviour {
    /// Which side it is on.
    pub fn kind(&self) -> Kind {
        match self {
            Behaviour::Honest | Behaviour::Lacks { .. } => Kind::Honest,
            Behaviour::Fails { .. } | Behaviour::Stalls { .. } | Behaviour::Cuts { .. } => Kind::Broken,
            _ => Kind::Hostile,
        }
    }

    /// Whether whoever behaves like this is doing harm at a virtual second: a covert flash is honest until its moment.
    pub fn harms_at(&self, second: f64) -> bool {
        let is_waiting = matches!(self, Behaviour::Flashes { at_s, .. } if second < *at_s);
        self.kind() == Kind::Hostile && !is_waiting
    }
}
