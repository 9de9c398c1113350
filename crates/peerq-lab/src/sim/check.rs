//! Refuses impossible worlds and workloads, naming the field (issue "Bad input": an impossible world is refused with the reason).
//!
//! Bounds are wide: they keep virtual time and sums within what numbers hold, and a run's memory within what a machine has.

use crate::model::{Behaviour, Loss, PeerGroup, Range, Workload, World};

/// Longest moment or span of a world, seconds: 30 years fit in virtual time with room for sums.
const LONGEST_S: f64 = 1e9;
/// Most bytes of anything: a petabyte is exact in a double.
const MOST_BYTES: u64 = 1 << 50;
/// Most peers of a world, and most ranges of a workload.
const MOST: u64 = 10_000_000;

/// Why a world or a workload cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {flaw}")]
pub struct Impossible {
    /// The field at fault, as a path: `peers[2].rate`.
    pub field: String,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There is nothing where something has to be.
    #[error("must not be empty")]
    Empty,
    /// It is zero, negative, or not a number.
    #[error("must be a positive, finite number")]
    NotPositive,
    /// It is negative, or not a number.
    #[error("must be zero or a positive, finite number")]
    Negative,
    /// It is no probability.
    #[error("must be between 0 and 1")]
    NotAShare,
    /// The lower bound is above the upper one.
    #[error("has its bounds in the wrong order")]
    Reversed,
    /// It names something that does not exist.
    #[error("names no shared link of this world")]
    Unknown,
    /// Its name is taken.
    #[error("repeats a name")]
    Repeated,
    /// It comes before its predecessor.
    #[error("must be in order of time, without overlap")]
    Unordered,
    /// It is larger than can be simulated.
    #[error("is larger than can be simulated")]
    TooLarge,
}

/// Collects the path of the field under examination.
struct At<'a>(&'a str);

impl At<'_> {
    fn wrong(&self, field: &str, flaw: Flaw) -> Impossible {
        let joint = if self.0.is_empty() || field.is_empty() { "" } else { "." };
        Impossible { field: format!("{}{joint}{field}", self.0), flaw }
    }

    fn require(&self, field: &str, holds: bool, flaw: Flaw) -> Result<(), Impossible> {
        if holds { Ok(()) } else { Err(self.wrong(field, flaw)) }
    }

    fn positive(&self, field: &str, value: f64) -> Result<(), Impossible> {
        self.require(field, value.is_finite() && value > 0.0, Flaw::NotPositive)
    }

    fn at_least_zero(&self, field: &str, value: f64) -> Result<(), Impossible> {
        self.require(field, value.is_finite() && value >= 0.0, Flaw::Negative)
    }

    fn share(&self, field: &str, value: f64) -> Result<(), Impossible> {
        self.require(field, (0.0..=1.0).contains(&value), Flaw::NotAShare)
    }

    fn seconds(&self, field: &str, value: f64) -> Result<(), Impossible> {
        self.at_least_zero(field, value)?;
        self.require(field, value <= LONGEST_S, Flaw::TooLarge)
    }

    fn count(&self, field: &str, value: u64, most: u64) -> Result<(), Impossible> {
        self.require(field, value > 0, Flaw::NotPositive)?;
        self.require(field, value <= most, Flaw::TooLarge)
    }

    fn range(&self, field: &str, range: Range) -> Result<(), Impossible> {
        let (low, high) = range.bounds();
        self.positive(field, low)?;
        self.positive(field, high)?;
        self.require(field, low <= high, Flaw::Reversed)
    }
}

/// Whether this world can be run.
pub fn check_world(world: &World) -> Result<(), Impossible> {
    let top = At("");
    top.require("peers", world.peers.iter().any(|group| group.count > 0), Flaw::Empty)?;
    let peers = world.peers.iter().map(|group| u64::from(group.count)).sum();
    top.count("peers", peers, MOST)?;
    for (index, link) in world.shared.iter().enumerate() {
        let path = format!("shared[{index}]");
        At(&path).positive("rate", link.rate)?;
        let repeated = world.shared[..index].iter().any(|other| other.name == link.name);
        At(&path).require("name", !repeated, Flaw::Repeated)?;
    }
    for (index, group) in world.peers.iter().enumerate() {
        let path = format!("peers[{index}]");
        let repeated = world.peers[..index].iter().any(|other| other.name == group.name);
        At(&path).require("name", !repeated, Flaw::Repeated)?;
        let known = group.shares.as_ref().is_none_or(|name| world.shared.iter().any(|link| link.name == *name));
        At(&path).require("shares", known, Flaw::Unknown)?;
        check_group(&path, group)?;
    }
    At("tcp").positive("rto_floor_ms", world.tcp.rto_floor_ms)?;
    check_client(world)
}

fn check_group(path: &str, group: &PeerGroup) -> Result<(), Impossible> {
    let at = At(path);
    at.range("rate", group.rate)?;
    at.range("rtt_ms", group.rtt_ms)?;
    at.at_least_zero("jitter", group.jitter)?;
    at.require("jitter", group.jitter <= 5.0, Flaw::TooLarge)?;
    match group.loss {
        Loss::None => {}
        Loss::Random(probability) => at.share("loss.random", probability)?,
        Loss::GilbertElliott { good, bad, to_bad, to_good } => {
            at.share("loss.gilbert-elliott.good", good)?;
            at.share("loss.gilbert-elliott.bad", bad)?;
            at.share("loss.gilbert-elliott.to_bad", to_bad)?;
            at.share("loss.gilbert-elliott.to_good", to_good)?;
        }
    }
    at.seconds("serve.hot_ms", group.serve.hot_ms)?;
    at.seconds("serve.cold_ms", group.serve.cold_ms)?;
    at.share("serve.cold_share", group.serve.cold_share)?;
    at.seconds("joins_at_s", group.joins_at_s)?;
    check_behaviour(&format!("{path}.behaviour"), &group.behaviour)?;
    if let Some(history) = &group.history {
        at.require("history.samples", u64::from(history.samples) <= MOST, Flaw::TooLarge)?;
        at.count("history.bytes", history.bytes, MOST_BYTES)?;
        if let Some(rate) = history.rate {
            at.positive("history.rate", rate)?;
        }
    }
    let mut last = 0.0;
    for (index, change) in group.changes.iter().enumerate() {
        let path = format!("{path}.changes[{index}]");
        let at = At(&path);
        at.seconds("at_s", change.at_s)?;
        at.require("at_s", change.at_s >= last, Flaw::Unordered)?;
        last = change.at_s;
        if let Some(rate) = change.rate {
            at.range("rate", rate)?;
        }
        if let Some(rtt_ms) = change.rtt_ms {
            at.range("rtt_ms", rtt_ms)?;
        }
        if let Some(behaviour) = &change.behaviour {
            check_behaviour(&format!("{path}.behaviour"), behaviour)?;
        }
    }
    Ok(())
}

fn check_behaviour(path: &str, behaviour: &Behaviour) -> Result<(), Impossible> {
    let at = At(path);
    match *behaviour {
        Behaviour::Honest | Behaviour::Boasts | Behaviour::Farms { .. } => Ok(()),
        Behaviour::Fails { after_ms, share } => {
            at.seconds("fails.after_ms", after_ms)?;
            at.share("fails.share", share)
        }
        Behaviour::Lacks { share } => at.share("lacks.share", share),
        Behaviour::Silent { share } => at.share("silent.share", share),
        Behaviour::Corrupts { share } => at.share("corrupts.share", share),
        Behaviour::Cuts { share } => at.share("cuts.share", share),
        Behaviour::Withholds { share } => at.share("withholds.share", share),
        Behaviour::Dribbles { rate, .. } => at.at_least_zero("dribbles.rate", rate),
        Behaviour::Paces { burst_bytes, gap_ms } => {
            at.count("paces.burst_bytes", burst_bytes, MOST_BYTES)?;
            at.seconds("paces.gap_ms", gap_ms)
        }
        Behaviour::Stalls { share, for_s } => {
            at.share("stalls.share", share)?;
            at.seconds("stalls.for_s", for_s)
        }
        Behaviour::Whitewashes { failures } => at.count("whitewashes.failures", failures.into(), u64::MAX),
        Behaviour::Flashes { at_s, rate } => {
            at.seconds("flashes.at_s", at_s)?;
            at.at_least_zero("flashes.rate", rate)
        }
        Behaviour::Pads { factor, .. } => at.share("pads.factor", factor),
    }
}

fn check_client(world: &World) -> Result<(), Impossible> {
    let at = At("client");
    if let Some(downlink) = world.client.downlink {
        at.positive("downlink", downlink)?;
    }
    let mut free_from = 0.0;
    for (index, outage) in world.client.outages.iter().enumerate() {
        let path = format!("client.outages[{index}]");
        At(&path).seconds("at_s", outage.at_s)?;
        At(&path).positive("for_s", outage.for_s)?;
        At(&path).seconds("for_s", outage.for_s)?;
        At(&path).require("at_s", outage.at_s >= free_from, Flaw::Unordered)?;
        free_from = outage.at_s + outage.for_s;
    }
    at.seconds("pause_every_s", world.client.pause_every_s)?;
    match world.client.pause_s {
        Some(range) => at.range("pause_s", range),
        None => at.require("pause_s", world.client.pause_every_s == 0.0, Flaw::Empty),
    }
}

/// Whether this workload can be run.
pub fn check_workload(workload: &Workload) -> Result<(), Impossible> {
    match *workload {
        Workload::Downloads { requests, ranges, range_bytes, sources, in_flight, pause_s, range_timeout_s } => {
            let at = At("downloads");
            at.count("requests", requests.into(), MOST)?;
            at.count("ranges", u64::from(ranges) * u64::from(requests), MOST)?;
            at.count("range_bytes", range_bytes, MOST_BYTES)?;
            at.count("sources", sources.into(), MOST)?;
            at.count("in_flight", in_flight.into(), MOST)?;
            at.seconds("pause_s", pause_s)?;
            at.positive("range_timeout_s", range_timeout_s)?;
            at.seconds("range_timeout_s", range_timeout_s)
        }
        Workload::Requests { requests, per_s, range_bytes, range_timeout_s } => {
            let at = At("requests");
            at.count("requests", requests.into(), MOST)?;
            at.positive("per_s", per_s)?;
            at.seconds("per_s", f64::from(requests) / per_s)?;
            at.count("range_bytes", range_bytes, MOST_BYTES)?;
            at.positive("range_timeout_s", range_timeout_s)?;
            at.seconds("range_timeout_s", range_timeout_s)
        }
        Workload::Closures { requests, closure_bytes, chunk_bytes, every_s, deadline_s, in_flight } => {
            let at = At("closures");
            at.count("requests", requests.into(), MOST)?;
            at.count("closure_bytes", closure_bytes, MOST_BYTES)?;
            at.count("chunk_bytes", chunk_bytes, MOST_BYTES)?;
            let chunks = closure_bytes.div_ceil(chunk_bytes).saturating_mul(requests.into());
            at.count("chunk_bytes", chunks, MOST)?;
            at.seconds("every_s", every_s)?;
            at.seconds("every_s", every_s * f64::from(requests))?;
            at.positive("deadline_s", deadline_s)?;
            at.seconds("deadline_s", deadline_s)?;
            at.count("in_flight", in_flight.into(), MOST)
        }
    }
}
