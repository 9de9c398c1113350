//! The policies by name.

use super::clairvoyant::clairvoyant;
use super::haskell::Haskell;
use super::lowest_rtt::LowestRtt;
use super::msgrate::Msgrate;
use super::p2c::P2c;
use super::round_robin::RoundRobin;
use super::{Policy, engine, peerq, published};
use crate::model::{Workload, World};
use crate::sim::Impossible;

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// Ours, through the selector's API.
    Peerq,
    /// Ours, the engine driven directly by a host that measures on the wire.
    Engine,
    /// The published selector.
    Published,
    /// Round robin.
    RoundRobin,
    /// Lowest round trip first.
    LowestRtt,
    /// go-ethereum's message rates.
    Msgrate,
    /// Power of two choices over PeakEWMA.
    P2c,
    /// The Haskell node's order.
    Haskell,
    /// The yardstick.
    Clairvoyant,
}

impl PolicyKind {
    /// All of them, ours first, the yardstick last.
    pub const ALL: [PolicyKind; 9] = [
        PolicyKind::Peerq,
        PolicyKind::Engine,
        PolicyKind::Published,
        PolicyKind::RoundRobin,
        PolicyKind::LowestRtt,
        PolicyKind::Msgrate,
        PolicyKind::P2c,
        PolicyKind::Haskell,
        PolicyKind::Clairvoyant,
    ];

    /// Its stable name: what [`Policy::name`] says.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::Peerq => "peerq",
            PolicyKind::Engine => "engine",
            PolicyKind::Published => "published",
            PolicyKind::RoundRobin => "round-robin",
            PolicyKind::LowestRtt => "lowest-rtt",
            PolicyKind::Msgrate => "msgrate",
            PolicyKind::P2c => "p2c",
            PolicyKind::Haskell => "haskell",
            PolicyKind::Clairvoyant => "clairvoyant",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<PolicyKind> {
        PolicyKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A fresh policy for the run of `workload` in `world` under `seed`. Only the yardstick looks at the world.
    ///
    /// # Errors
    /// [`Impossible`] names the field that no world can have; only the yardstick notices.
    pub fn build(self, world: &World, workload: &Workload, seed: u64) -> Result<Box<dyn Policy>, Impossible> {
        Ok(match self {
            PolicyKind::Peerq => Box::new(peerq::peerq(seed)),
            PolicyKind::Engine => Box::new(engine::engine(seed)),
            PolicyKind::Published => Box::new(published::published(seed)),
            PolicyKind::RoundRobin => Box::new(RoundRobin::default()),
            PolicyKind::LowestRtt => Box::new(LowestRtt::default()),
            PolicyKind::Msgrate => Box::new(Msgrate::new(seed)),
            PolicyKind::P2c => Box::new(P2c::new(seed)),
            PolicyKind::Haskell => Box::new(Haskell::new(seed)),
            PolicyKind::Clairvoyant => Box::new(clairvoyant(world, workload, seed)?),
        })
    }
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
