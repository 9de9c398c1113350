//! What happened in a run, kept only while its figures are computed.

/// The events of one run, each list in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    /// Whether the policy is to be asked now and then what it thinks; that costs time, so only runs that need it do.
    pub views: bool,
    /// Ranges sent.
    pub sent: Vec<Sent>,
    /// Ranges ended.
    pub ended: Vec<Ended>,
    /// Whether the policy is to be asked how long it expects fetches to take, likewise.
    pub predictions: bool,
    /// Fetches that were delivered and had been predicted.
    pub predicted: Vec<Predicted>,
    /// What the policy thought of peers, now and then.
    pub viewed: Vec<Viewed>,
    /// Signals that the policy raised: name, and the peer if it is about one. None where the policy cannot raise any.
    pub signals: Option<Vec<(String, Option<u32>)>>,
}

/// A range went out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When, virtual seconds.
    pub at_s: f64,
    /// To which peer, by index.
    pub peer: u32,
}

/// A range ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    /// When, virtual seconds.
    pub at_s: f64,
    /// At which peer, by index.
    pub peer: u32,
    /// How long it had been there, seconds.
    pub held_s: f64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// How.
    pub how: How,
}

/// How a range ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its bytes were of use.
    Useful,
    /// It was given up by us, or was a duplicate: nobody's fault, no use.
    Dropped,
    /// It failed.
    Failed,
}

/// A fetch that was predicted, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// When it was delivered, virtual seconds.
    pub at_s: f64,
    /// By which peer, by index.
    pub peer: u32,
    /// What it was expected to take when it was sent.
    pub expected_s: f64,
    /// What it took.
    pub took_s: f64,
}

/// What the policy thought of a peer at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewed {
    /// When, virtual seconds.
    pub at_s: f64,
    /// Of which peer, by index.
    pub peer: u32,
    /// Whether it was kept out of ordinary work.
    pub demoted: bool,
    /// The rate it was credited with, bytes per second.
    pub credited_rate: Option<f64>,
}
