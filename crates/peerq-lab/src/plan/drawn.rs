//! Plans that nobody chose: downloads in worlds drawn from a seed.
//!
//! The one idea: who tunes a selector tunes it to the plans at hand. Here a seed draws groups of peers that are near or far, thin or wide, known or not, that join late,
//! change, refuse or share a link, most often beside groups that fail, lie or stall in one of many ways, and a client with its own slots and link. `drawn-17` names the plan
//! of seed 17 wherever a plan is named.

use super::{Check, Part, Plan, What};
use crate::model::{Behaviour, Change, Client, History, PeerGroup, Range, Serve, SharedLink, Workload, World};
use crate::sim::Stream;

/// How their names begin.
const PREFIX: &str = "drawn-";
/// How often there is anybody hostile.
const HOSTILE: f64 = 0.6;
/// How often our own link is narrower than the peers' together.
const NARROW: f64 = 0.25;
/// How often some of the groups share a link.
const SHARED: f64 = 0.2;

/// The plan of a seed.
pub fn drawn(seed: u64) -> Plan {
    let mut luck = Stream::new(seed, "drawn", "plan", 0);
    let shares = luck.happens(SHARED);
    let mut peers: Vec<PeerGroup> = (0..1 + pick(&mut luck, 3)).map(|index| honest(&mut luck, index, shares)).collect();
    // Somebody is there from the start.
    peers[0].joins_at_s = 0.0;
    let together: f64 = peers.iter().map(|group| f64::from(group.count) * group.rate.bounds().0).sum();
    if luck.happens(HOSTILE) {
        peers.extend((0..1 + pick(&mut luck, 2)).map(|index| hostile(&mut luck, index)).collect::<Vec<_>>());
    }
    let downlink = luck.happens(NARROW).then(|| together * luck.between_log(0.1, 1.0));
    let shared = match shares {
        true => vec![SharedLink { name: LINK.to_owned(), rate: together * luck.between_log(0.1, 0.8) }],
        false => Vec::new(),
    };
    Plan {
        name: format!("{PREFIX}{seed}"),
        scenario: "drawn".to_owned(),
        part: Part::D,
        about: format!("Downloads in the world of seed {seed}."),
        quick: false,
        world: World { peers, shared, client: Client { downlink, ..Client::default() }, ..World::default() },
        workload: Workload::Downloads {
            requests: 6 + pick(&mut luck, 18),
            ranges: one_of(&mut luck, [8, 16, 32, 64, 128]),
            range_bytes: one_of(&mut luck, [64 << 10, 256 << 10, 1 << 20, 1 << 20]),
            sources: one_of(&mut luck, [3, 4, 6, 8]),
            in_flight: one_of(&mut luck, [4, 8, 16, 24]),
            pause_s: one_of(&mut luck, [0.0, 0.0, 1.0]),
            range_timeout_s: 30.0,
        },
        control: None,
        policies: None,
        seeds: None,
        checks: vec![Check {
            rival: Some("round-robin".to_owned()),
            at_most: Some(1.1),
            ..Check::about(What::P50OverRival)
        }],
    }
}

/// The seed of a plan of that name, if it is one of these.
pub(super) fn seed_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

const LINK: &str = "link";

/// A number below `below`.
fn pick(luck: &mut Stream, below: u32) -> u32 {
    ((luck.unit() * f64::from(below)) as u32).min(below - 1)
}

fn one_of<T: Copy, const N: usize>(luck: &mut Stream, these: [T; N]) -> T {
    these[pick(luck, N as u32) as usize]
}

fn honest(luck: &mut Stream, index: u32, shares: bool) -> PeerGroup {
    let (rate, rtt_ms) = (luck.between_log(3e5, 4e7), luck.between_log(5.0, 250.0));
    let count = 1 + pick(luck, 8);
    let mut group = PeerGroup::honest(&format!("honest-{index}"), count, rate, rtt_ms);
    group.rate = Range::Between([rate, rate * luck.between_log(1.0, 6.0)]);
    group.rtt_ms = Range::Between([rtt_ms, rtt_ms * luck.between_log(1.0, 3.0)]);
    group.jitter = one_of(luck, [0.0, 0.0, 0.1, 0.3]);
    group.serve = Serve {
        hot_ms: one_of(luck, [1.0, 5.0, 20.0]),
        cold_ms: one_of(luck, [50.0, 300.0]),
        cold_share: one_of(luck, [0.0, 0.0, 0.1, 0.3]),
    };
    group.relayed = luck.happens(0.15);
    group.refuses_above = luck.happens(0.15).then(|| 1 + pick(luck, 4));
    group.shares = (shares && luck.happens(0.6)).then(|| LINK.to_owned());
    group.joins_at_s = if luck.happens(0.2) { luck.between(1.0, 10.0) } else { 0.0 };
    group.history = luck.happens(0.25).then(|| History {
        samples: 3 + pick(luck, 37),
        bytes: one_of(luck, [4 << 10, 256 << 10, 1 << 20]),
        rate: None,
    });
    if luck.happens(0.25) {
        let (at_s, factor) = (luck.between(2.0, 15.0), luck.between_log(0.05, 5.0));
        group.changes = vec![Change { at_s, rate: Some(Range::Fixed(rate * factor)), rtt_ms: None, behaviour: None }];
    }
    group
}

fn hostile(luck: &mut Stream, index: u32) -> PeerGroup {
    let (rate, rtt_ms) = (luck.between_log(1e6, 4e7), luck.between_log(5.0, 150.0));
    let count = 1 + pick(luck, 5);
    let share = luck.between(0.1, 1.0);
    let behaviour = match pick(luck, 9) {
        0 => Behaviour::Fails { after_ms: one_of(luck, [5.0, 50.0, 300.0]), share },
        1 => Behaviour::Silent { share },
        2 => Behaviour::Corrupts { share },
        3 => Behaviour::Dribbles { after_bytes: one_of(luck, [0, 20_000, 100_000]), rate: luck.between_log(10.0, 5e4) },
        4 => Behaviour::Stalls { share: luck.between(0.02, 0.3), for_s: luck.between_log(1.0, 30.0) },
        5 => Behaviour::Cuts { share },
        6 => Behaviour::Lacks { share },
        7 => Behaviour::Farms { good: 5 + pick(luck, 55) },
        _ => Behaviour::Paces { burst_bytes: 50_000, gap_ms: one_of(luck, [100.0, 500.0]) },
    };
    PeerGroup { behaviour, ..PeerGroup::honest(&format!("hostile-{index}"), count, rate, rtt_ms) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyKind;
    use crate::sim;

    struct Nobody;
    impl sim::Observer for Nobody {}

    #[test]
    fn every_seed_draws_a_plan_that_can_be_run_and_the_same_each_time() {
        for seed in (0..300).chain([u64::MAX]) {
            let plan = drawn(seed);
            plan.check().unwrap();
            assert_eq!(plan, drawn(seed));
            assert_eq!(seed_of(&plan.name), Some(seed));
        }
        assert_eq!(["drawn-", "drawn--1", "drawn-x", "drawn", "a1"].map(seed_of), [None; 5]);
    }

    #[test]
    fn downloads_in_drawn_worlds_come_to_their_end() {
        for seed in 0..12 {
            let plan = drawn(seed);
            for kind in [PolicyKind::Peerq, PolicyKind::Engine] {
                let mut policy = kind.build(&plan.world, &plan.workload, seed).unwrap();
                let result = sim::run(&plan.world, &plan.workload, &mut *policy, seed, &mut Nobody).unwrap();
                let stuck = result.requests.iter().filter(|request| request.end_s.is_none()).count();
                assert_eq!((stuck, result.panics), (0, 0), "{} with {}", plan.name, kind.name());
            }
        }
    }
}
