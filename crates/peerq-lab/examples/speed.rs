//! How many events the simulator handles per second of processor time. Run with `cargo run --release -p peerq-lab --example speed`.

use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};
use peerq_lab::model::{Behaviour, Loss, PeerGroup, SharedLink, Workload, World};
use peerq_lab::policy::{Ask, Grant, PeerIndex, Policy};

/// A policy that costs nothing, so that the simulator is what is measured.
struct InTurn(usize);

impl Policy for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        let grant = |_| {
            self.0 += 1;
            Grant { peer: ask.candidates[self.0 % ask.candidates.len()].peer, ranges: 1 }
        };
        (0..ask.free).map(grant).collect()
    }

    fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}

    fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}
}

fn pack(shares: bool) -> World {
    let group = |name: &str, count, rtt_ms, rate, behaviour| PeerGroup {
        jitter: 0.15,
        loss: Loss::Random(1e-4),
        behaviour,
        shares: shares.then(|| "relay".into()),
        relayed: shares,
        ..PeerGroup::honest(name, count, rate, rtt_ms)
    };
    let peers = vec![
        group("near", 7, 12.0, 125e6, Behaviour::Honest),
        group("middle", 9, 69.0, 37.5e6, Behaviour::Honest),
        group("far", 5, 268.0, 18.75e6, Behaviour::Honest),
        group("paces", 2, 69.0, 37.5e6, Behaviour::Paces { burst_bytes: 50_000, gap_ms: 500.0 }),
        group("corrupts", 2, 69.0, 37.5e6, Behaviour::Corrupts { share: 0.3 }),
    ];
    World { peers, shared: vec![SharedLink { name: "relay".into(), rate: 2e7 }], ..World::default() }
}

/// Seconds that this thread has had a processor (Linux): other work on the machine does not count.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

fn main() {
    let downloads = Workload::Downloads {
        requests: 20,
        ranges: 1000,
        range_bytes: 1 << 20,
        sources: 16,
        in_flight: 32,
        pause_s: 0.0,
        range_timeout_s: 30.0,
    };
    let requests = Workload::Requests { requests: 200_000, per_s: 200.0, range_bytes: 50_000, range_timeout_s: 30.0 };
    let closures = Workload::Closures {
        requests: 300,
        closure_bytes: 12_000_000,
        chunk_bytes: 200_000,
        every_s: 20.0,
        deadline_s: 7.0,
        in_flight: 16,
    };
    let mut narrow = pack(false);
    narrow.client.downlink = Some(6.25e6);
    let cases = [
        ("downloads", pack(false), downloads),
        ("requests", pack(false), requests),
        ("closures", pack(false), closures),
        ("downloads over one relay", pack(true), downloads),
        ("downloads over one downlink", narrow, downloads),
    ];
    for (name, world, workload) in cases {
        let begun_s = processor_s();
        match peerq_lab::sim::run(&world, &workload, &mut InTurn(0), 1, &mut ()) {
            Ok(result) => {
                let took = processor_s() - begun_s;
                let rate = result.events as f64 / took / 1e6;
                println!(
                    "{name}: {} events, {rate:.2} million per second, {:.0} virtual seconds",
                    result.events, result.seconds
                );
            }
            Err(impossible) => eprintln!("{name}: {impossible}"),
        }
    }
}
