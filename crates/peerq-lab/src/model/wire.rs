//! What a hostile peer does on the wire, below whole requests (LAB-2).
//!
//! The one idea: how a request ends is [`Behaviour`](super::Behaviour)'s business; a wire act changes what a client sees that measures single segments,
//! cookies and claims. To a client that knows outcomes only, such a peer is what its behaviour says.

use serde::{Deserialize, Serialize};

/// An act on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Wire {
    /// Fills the silence of its own reply with other replies (busy-filler).
    FillsGaps,
    /// Sends other protocols' bytes at line rate beside the slow reply (byte-padder).
    Pads,
    /// Answers each cookie later than it could.
    HoldsEchoes {
        /// Milliseconds added.
        by_ms: f64,
    },
    /// Echoes only cookies that are no longer outstanding.
    EchoesStale,
    /// Sends single bytes with random echoes.
    GuessesEchoes,
    /// Claims this multiple of the true size for what it offers.
    MisstatesSize {
        /// Below 1 understates.
        factor: f64,
        /// Whether the claim changes again in the middle of a fetch.
        #[serde(default)]
        mid_fetch: bool,
    },
    /// Keeps refilling what we leave free of the link it shares with us.
    Saturates {
        /// Bytes per second, at most.
        rate: f64,
    },
}
