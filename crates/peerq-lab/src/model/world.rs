//! A world: groups of peers, the links they share, and the client (LAB-1).

use serde::Deserialize;

use super::{Behaviour, Wire};

/// A number, or two bounds between which the seed draws one (uniformly; logarithmically where the field says so).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number, or two as [low, high]")]
pub enum Range {
    /// Always this.
    Fixed(f64),
    /// Drawn from these bounds, both included.
    Between([f64; 2]),
}

impl Range {
    /// The lower and the upper bound.
    pub fn bounds(self) -> (f64, f64) {
        match self {
            Range::Fixed(value) => (value, value),
            Range::Between([low, high]) => (low, high),
        }
    }
}

/// Everything but the work.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The peers, in groups of one kind.
    pub peers: Vec<PeerGroup>,
    /// The fetching side.
    #[serde(default)]
    pub client: Client,
    /// Links that several peers have to share, besides their own.
    #[serde(default)]
    pub shared: Vec<SharedLink>,
    /// How all peers' TCP behaves.
    #[serde(default)]
    pub tcp: Tcp,
}

/// Parameters of TCP that differ between systems.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tcp {
    /// Least retransmission timeout, milliseconds: 200 is Linux, 1000 is RFC 6298.
    pub rto_floor_ms: f64,
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp { rto_floor_ms: 200.0 }
    }
}

/// Peers that differ only by what the seed draws for each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerGroup {
    /// Names the group in results.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// Uplink, bytes per second, drawn logarithmically.
    pub rate: Range,
    /// Round trip, milliseconds, drawn logarithmically.
    pub rtt_ms: Range,
    /// Jitter of the round trip: sigma of a log-normal factor, 0 is none.
    #[serde(default)]
    pub jitter: f64,
    /// Packet loss.
    #[serde(default)]
    pub loss: Loss,
    /// Time from a request's arrival to the first byte leaving.
    #[serde(default)]
    pub serve: Serve,
    /// What it does.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// What it does on the wire besides; clients that know outcomes only do not see it.
    pub wire: Option<Wire>,
    /// Name of a shared link that its bytes pass too.
    pub shares: Option<String>,
    /// Address group (such as a /16); peers without one are each a group of their own.
    pub address_group: Option<String>,
    /// Whether a relay carries its bytes.
    #[serde(default)]
    pub relayed: bool,
    /// Requests it serves at once; more are refused.
    pub refuses_above: Option<u32>,
    /// What policies were told of it before the run.
    pub history: Option<History>,
    /// When it appears, seconds.
    #[serde(default)]
    pub joins_at_s: f64,
    /// Changes during the run, in order of time.
    #[serde(default)]
    pub changes: Vec<Change>,
}

impl PeerGroup {
    /// `count` honest peers on clean links of their own, of `rate` bytes per second and `rtt_ms` milliseconds.
    pub fn honest(name: &str, count: u32, rate: f64, rtt_ms: f64) -> Self {
        PeerGroup {
            name: name.into(),
            count,
            rate: Range::Fixed(rate),
            rtt_ms: Range::Fixed(rtt_ms),
            jitter: 0.0,
            loss: Loss::None,
            serve: Serve::default(),
            behaviour: Behaviour::Honest,
            wire: None,
            shares: None,
            address_group: None,
            relayed: false,
            refuses_above: None,
            history: None,
            joins_at_s: 0.0,
            changes: Vec::new(),
        }
    }
}

fn one() -> u32 {
    1
}

/// Packet loss (facts: network profiles).
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet independently with this probability.
    Random(f64),
    /// Two states: packets are lost with `good` or `bad`, and a packet moves to the other state with `to_bad` or `to_good`.
    GilbertElliott {
        /// Loss in the good state.
        good: f64,
        /// Loss in the bad state.
        bad: f64,
        /// Probability per packet of entering the bad state.
        to_bad: f64,
        /// Probability per packet of leaving it.
        to_good: f64,
    },
}

/// Serve time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// Milliseconds when the data is at hand.
    #[serde(default)]
    pub hot_ms: f64,
    /// Mean of an exponential, milliseconds, when it is not.
    #[serde(default)]
    pub cold_ms: f64,
    /// Share of requests that find it cold.
    #[serde(default)]
    pub cold_share: f64,
}

/// Deliveries that policies are told before the run. A peer that [stalls](Behaviour::Stalls) did so in them too; nothing else that a behaviour does shows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// How many.
    pub samples: u32,
    /// Bytes of each.
    pub bytes: u64,
    /// Rate they showed, bytes per second; the group's own where absent.
    pub rate: Option<f64>,
}

/// A change of a group at a moment of the run; absent fields stay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, seconds.
    pub at_s: f64,
    /// New uplink, bytes per second.
    pub rate: Option<Range>,
    /// New round trip, milliseconds.
    pub rtt_ms: Option<Range>,
    /// New behaviour.
    pub behaviour: Option<Behaviour>,
}

/// A link that several peers share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedLink {
    /// What [`PeerGroup::shares`] names.
    pub name: String,
    /// Bytes per second.
    pub rate: f64,
}

/// The fetching side.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Downlink, bytes per second; unlimited where absent.
    pub downlink: Option<f64>,
    /// Times in which nothing arrives at all.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Mean seconds between random pauses in which the client does not read; 0 is never.
    #[serde(default)]
    pub pause_every_s: f64,
    /// Length of such a pause, seconds.
    pub pause_s: Option<Range>,
    /// Chunks that are verified together, so that bad bytes are only known to be among them; up to 1 is each chunk alone.
    #[serde(default)]
    pub verify_group: u32,
}

/// A time without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start, seconds.
    pub at_s: f64,
    /// Length, seconds.
    pub for_s: f64,
}
