//! What one run measured (LAB-4), before it is condensed over seeds.

use serde::{Deserialize, Serialize};

use super::Kind;

/// One run of one policy in one world under one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The requests, in order of their start.
    pub requests: Vec<RequestResult>,
    /// The peers, in the order of the world.
    pub peers: Vec<PeerResult>,
    /// Simulated events.
    pub events: u64,
    /// Virtual seconds from the first request's start to the last one's end.
    pub seconds: f64,
    /// Panics of the policy that were caught.
    pub panics: u32,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Start, virtual seconds.
    pub start_s: f64,
    /// End; none if it never ended.
    pub end_s: Option<f64>,
    /// Deadline, where it had one.
    pub deadline_s: Option<f64>,
    /// Useful bytes.
    pub bytes: u64,
}

/// One peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerResult {
    /// Its group's name.
    pub group: String,
    /// Which side it is on.
    pub kind: Option<Kind>,
    /// Useful bytes it delivered.
    pub bytes: u64,
    /// Bytes it delivered that were of no use: duplicates, corrupt, or of requests given up.
    pub wasted_bytes: u64,
    /// Bytes of either kind that a hostile peer delivered while it was hostile: a traitor's honest past is not among them.
    #[serde(default)]
    pub hostile_bytes: u64,
    /// Requests sent to it.
    pub requests: u32,
    /// Requests to it that failed or were given up.
    pub failures: u32,
    /// Virtual second at which the policy first stopped trusting it, if ever.
    pub demoted_at_s: Option<f64>,
    /// Rate that the policy credits it with at the end, bytes per second, if it says.
    pub credited_rate: Option<f64>,
    /// How far the policy trusts what it measured of that rate itself at the end, 0 to 1, if it says.
    #[serde(default)]
    pub trust: Option<f64>,
    /// Rate at which it really delivers at the end, bytes per second.
    pub true_rate: f64,
    /// Of a hostile peer: rate that the policy credited it with over the one at which it really delivered, both just after its latest bytes. None where it sent
    /// no bytes or the policy credits nobody.
    #[serde(default)]
    pub credited_over_delivered: Option<f64>,
}
