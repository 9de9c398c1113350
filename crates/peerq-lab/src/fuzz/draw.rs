//! From a seed to a world: any mix of peers, links, faults and work that the simulator can run in a moment.

use crate::model::{
    Behaviour, Change, Client, History, Loss, Outage, PeerGroup, Range, Serve, SharedLink, Workload, World,
};
use crate::sim::Stream;

/// Virtual second by which every fault has healed in the liveness phase.
pub(super) const HEALED_S: f64 = 40.0;

/// What a seed drew.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The world, with its faults.
    pub world: World,
    /// The work of the safety phase.
    pub workload: Workload,
    /// Whether nobody in it misbehaves and nothing breaks: then nobody may be convicted.
    pub clean: bool,
}

/// Draws a world and its work.
pub fn drawn(seed: u64) -> Drawn {
    let mut luck = Stream::new(seed, "fuzz", "world", 0);
    let clean = luck.happens(0.25);
    let groups = 1 + pick(&mut luck, 4);
    let shared: Vec<SharedLink> = (0..pick(&mut luck, 2))
        .map(|index| SharedLink { name: format!("link-{index}"), rate: luck.between_log(1e6, 1e8) })
        .collect();
    let mut peers: Vec<PeerGroup> = (0..groups).map(|index| group(&mut luck, index, clean, &shared)).collect();
    // Somebody has to be able to do the work, or every run lasts until its client abandons all of it.
    peers[0].behaviour = Behaviour::Honest;
    peers[0].joins_at_s = 0.0;
    peers[0].changes.iter_mut().for_each(|change| change.behaviour = None);
    let mut client = Client { downlink: luck.happens(0.4).then(|| luck.between_log(5e5, 1e8)), ..Client::default() };
    if !clean && luck.happens(0.3) {
        client.outages.push(Outage { at_s: luck.between(1.0, 15.0), for_s: luck.between(0.5, 20.0) });
    }
    if luck.happens(0.3) {
        (client.pause_every_s, client.pause_s) = (luck.between(3.0, 20.0), Some(Range::Between([0.1, 2.0])));
    }
    let workload = work(&mut luck);
    Drawn { world: World { peers, client, shared, ..World::default() }, workload, clean }
}

/// A number below `below`.
fn pick(luck: &mut Stream, below: u32) -> u32 {
    ((luck.unit() * f64::from(below)) as u32).min(below.saturating_sub(1))
}

fn group(luck: &mut Stream, index: u32, clean: bool, shared: &[SharedLink]) -> PeerGroup {
    let rate = luck.between_log(2e5, 5e7);
    let rtt_ms = luck.between_log(1.0, 400.0);
    let behaviour = if clean { Behaviour::Honest } else { behaviour(luck) };
    let loss = match pick(luck, 4) {
        0 => Loss::Random(luck.between_log(1e-6, 1e-2)),
        1 => Loss::GilbertElliott { good: 1e-5, bad: 0.05, to_bad: 5e-4, to_good: 0.1 },
        _ => Loss::None,
    };
    let changes = match !clean && luck.happens(0.3) {
        true => vec![Change {
            at_s: luck.between(1.0, HEALED_S / 2.0),
            rate: Some(Range::Fixed(rate * luck.between_log(0.05, 5.0))),
            rtt_ms: None,
            behaviour: luck.happens(0.5).then(|| self::behaviour(luck)),
        }],
        false => Vec::new(),
    };
    PeerGroup {
        name: format!("group-{index}"),
        count: 1 + pick(luck, 8),
        rate: Range::Between([rate, rate * luck.between(1.0, 4.0)]),
        rtt_ms: Range::Between([rtt_ms, rtt_ms * luck.between(1.0, 3.0)]),
        jitter: if luck.happens(0.5) { luck.between(0.0, 0.5) } else { 0.0 },
        loss,
        serve: Serve {
            hot_ms: luck.between(0.0, 20.0),
            cold_ms: luck.between(0.0, 500.0),
            cold_share: luck.unit() * 0.3,
        },
        behaviour,
        wire: None,
        shares: shared.iter().find(|_| luck.happens(0.4)).map(|link| link.name.clone()),
        address_group: luck.happens(0.3).then(|| format!("198.51.{}.0/24", pick(luck, 3))),
        relayed: luck.happens(0.2),
        refuses_above: luck.happens(0.15).then(|| 1 + pick(luck, 4)),
        history: luck.happens(0.4).then(|| History {
            samples: pick(luck, 50),
            bytes: 1 + u64::from(pick(luck, 1 << 20)),
            rate: None,
        }),
        joins_at_s: if luck.happens(0.2) { luck.between(0.0, 20.0) } else { 0.0 },
        changes,
    }
}

fn behaviour(luck: &mut Stream) -> Behaviour {
    let share = luck.unit();
    match pick(luck, 16) {
        0 => Behaviour::Fails { after_ms: luck.between(0.0, 500.0), share },
        1 => Behaviour::Lacks { share },
        2 => Behaviour::Silent { share },
        3 => Behaviour::Corrupts { share },
        4 => Behaviour::Dribbles { after_bytes: u64::from(pick(luck, 1 << 22)), rate: luck.between_log(0.1, 1e5) },
        5 => Behaviour::Paces { burst_bytes: 1000 + u64::from(pick(luck, 100_000)), gap_ms: luck.between(1.0, 1000.0) },
        6 => Behaviour::Stalls { share, for_s: luck.between(0.1, 60.0) },
        7 => Behaviour::Farms { good: pick(luck, 40) },
        8 => Behaviour::Boasts,
        9 => Behaviour::Whitewashes { failures: 1 + pick(luck, 6) },
        10 => Behaviour::Flashes { at_s: luck.between(0.0, HEALED_S), rate: luck.between_log(1.0, 1e5) },
        11 => Behaviour::Cuts { share },
        12 => Behaviour::Withholds { share },
        _ => Behaviour::Honest,
    }
}

fn work(luck: &mut Stream) -> Workload {
    let range_bytes = luck.between_log(1.0, 2e6) as u64;
    match pick(luck, 3) {
        0 => Workload::Downloads {
            requests: 1 + pick(luck, 4),
            ranges: 1 + pick(luck, 60),
            range_bytes,
            sources: 1 + pick(luck, 8),
            in_flight: 1 + pick(luck, 24),
            pause_s: luck.between(0.0, 3.0),
            range_timeout_s: luck.between(2.0, 30.0),
        },
        1 => Workload::Requests {
            requests: 1 + pick(luck, 100),
            per_s: luck.between_log(0.5, 50.0),
            range_bytes: range_bytes.min(100_000),
            range_timeout_s: luck.between(2.0, 30.0),
        },
        _ => Workload::Closures {
            requests: 1 + pick(luck, 6),
            closure_bytes: luck.between_log(1e3, 1e7) as u64,
            chunk_bytes: 1 + luck.between_log(5e4, 1e6) as u64,
            every_s: luck.between(1.0, 20.0),
            deadline_s: luck.between(2.0, 18.0),
            in_flight: 1 + pick(luck, 12),
        },
    }
}
