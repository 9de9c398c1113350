//! The client's promises to policies, and the run's to everyone (LAB-1, LAB-3).

mod common;

use common::{InTurn, Ledger, behaving, downloads, group, watched, world};
use peer_quality::measure::{Delivery, End, Fault};
use peer_quality::units::{Bytes, Span, Time};
use peerq_lab::model::{Behaviour, Loss, PeerGroup, Range, Workload, World};
use peerq_lab::policy::{Ask, Grant, Held, Move, Opinion, PeerIndex, Policy, Review, Reviewed};
use peerq_lab::sim::{Fact, Observer, draw, run};

const MIB: u64 = 1 << 20;

/// A bit of everything.
fn motley() -> World {
    let mut honest = group("honest", 6, 1e7, 80.0);
    (honest.rate, honest.rtt_ms, honest.jitter) = (Range::Between([1e6, 5e7]), Range::Between([10.0, 250.0]), 0.2);
    honest.loss = Loss::Random(1e-4);
    let mut peers = vec![honest];
    let behaviours = [
        Behaviour::Fails { after_ms: 2.0, share: 0.5 },
        Behaviour::Lacks { share: 0.3 },
        Behaviour::Silent { share: 0.3 },
        Behaviour::Corrupts { share: 0.4 },
        Behaviour::Dribbles { after_bytes: 5_000_000, rate: 1e4 },
        Behaviour::Paces { burst_bytes: 50_000, gap_ms: 500.0 },
        Behaviour::Stalls { share: 0.2, for_s: 5.0 },
        Behaviour::Farms { good: 10 },
        Behaviour::Whitewashes { failures: 3 },
        Behaviour::Flashes { at_s: 20.0, rate: 1e4 },
        Behaviour::Cuts { share: 0.2 },
    ];
    for (index, behaviour) in behaviours.into_iter().enumerate() {
        peers.push(behaving(&format!("hostile {index}"), 1e7, behaviour));
    }
    let mut world = world(peers);
    world.client.downlink = Some(3e7);
    world.client.pause_every_s = 10.0;
    world.client.pause_s = Some(Range::Between([0.1, 1.0]));
    world
}

fn workloads() -> [Workload; 3] {
    let requests = Workload::Requests { requests: 300, per_s: 20.0, range_bytes: 100_000, range_timeout_s: 10.0 };
    let closures = Workload::Closures {
        requests: 8,
        closure_bytes: 12_000_001,
        chunk_bytes: 1_000_000,
        every_s: 5.0,
        deadline_s: 7.0,
        in_flight: 6,
    };
    [downloads(4, 50, MIB, 8), requests, closures]
}

#[test]
fn bytes_delivered_are_bytes_requested_and_nothing_stays_in_flight() {
    for (workload, bytes) in workloads().iter().zip([200 * MIB, 30_000_000, 96_000_008]) {
        let (result, ledger) = watched(&motley(), workload, 9);
        assert_eq!(result.peers.iter().map(|peer| peer.bytes).sum::<u64>(), bytes);
        assert_eq!(result.requests.iter().map(|request| request.bytes).sum::<u64>(), bytes);
        assert!(result.requests.iter().all(|request| request.end_s.is_some()));
        assert_eq!(ledger.in_flight(), 0);
        let ends = ledger.ends().count();
        assert_eq!(result.peers.iter().map(|peer| peer.requests as usize).sum::<usize>(), ends);
        let failures = ends - ledger.count(End::Completed);
        assert_eq!(result.peers.iter().map(|peer| peer.failures as usize).sum::<usize>(), failures);
    }
}

/// In turn, and moves whatever takes longer than half a second, with moves among them that nobody can make.
#[derive(Default)]
struct Restless(InTurn);

impl Policy for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }
    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.0.choose(ask)
    }
    fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}
    fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}
    fn reviews(&self) -> bool {
        true
    }
    fn review(&mut self, review: &Review<'_>) -> Reviewed {
        let late = |(range, held): (usize, &Held)| {
            assert!(held.arrived <= held.bytes && held.sent <= review.now, "{held:?}");
            let to = review.candidates[range % review.candidates.len()].peer;
            let is_late = review.now.since(held.sent) > Span::from_millis(500) && held.holders < 2;
            is_late.then_some(Move { range, to, is_late: range % 2 == 0 })
        };
        let nonsense = [(usize::MAX, PeerIndex(0)), (0, PeerIndex(u32::MAX))];
        let nonsense = nonsense.map(|(range, to)| Move { range, to, is_late: true });
        let moves = review.held.iter().enumerate().filter_map(late).chain(if review.can_drop {
            [nonsense[0]; 2]
        } else {
            nonsense
        });
        Reviewed { moves: moves.collect(), again: Some(Span::from_millis(100)) }
    }
}

#[test]
fn moving_ranges_loses_none_and_counts_none_twice() {
    let peers = motley();
    for (workload, bytes) in workloads().iter().zip([200 * MIB, 30_000_000, 96_000_008]) {
        let mut ledger = Ledger::default();
        let result = run(&peers, workload, &mut Restless::default(), 9, &mut ledger).unwrap();
        assert_eq!(result.panics, 0);
        assert_eq!(result.requests.iter().map(|request| request.bytes).sum::<u64>(), bytes);
        assert_eq!(result.peers.iter().map(|peer| peer.bytes).sum::<u64>(), bytes);
        assert_eq!(ledger.in_flight(), 0);
        let completed = ledger.ends().filter(|(.., delivery)| delivery.end == End::Completed);
        let arrived: u64 = completed.map(|(.., delivery)| delivery.bytes.get()).sum();
        if let Workload::Closures { .. } = workload {
            assert!(arrived > bytes, "some came twice");
        } else {
            assert_eq!(arrived, bytes);
        }
        assert!(ledger.count(End::Cancelled) + ledger.count(End::Failed(Fault::Timeout)) > 0);
    }
}

#[test]
fn facts_come_in_order_of_time_and_no_more_is_in_flight_than_allowed() {
    let (_, ledger) = watched(&motley(), &workloads()[0], 2);
    assert!(ledger.facts.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let mut in_flight = 0;
    for (_, fact) in &ledger.facts {
        match fact {
            Fact::Sent { .. } => in_flight += 1,
            Fact::Ended { .. } => in_flight -= 1,
            Fact::Connected { .. } => {}
        }
        assert!((0..=8).contains(&in_flight));
    }
}

#[test]
fn the_same_arguments_give_the_same_run_and_another_seed_another() {
    for workload in workloads() {
        let (one, facts) = watched(&motley(), &workload, 5);
        let (same, same_facts) = watched(&motley(), &workload, 5);
        assert_eq!((&one, facts.facts), (&same, same_facts.facts));
        assert_ne!(one.seconds, watched(&motley(), &workload, 6).0.seconds);
    }
}

#[test]
fn a_peers_luck_does_not_depend_on_peers_that_have_nothing_to_do_with_it() {
    // Only ever asks the first of the last group; others come and go before it in the world.
    struct Only(u32);
    impl Policy for Only {
        fn name(&self) -> &'static str {
            "only"
        }
        fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
            vec![Grant { peer: PeerIndex(self.0), ranges: ask.free }]
        }
        fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}
        fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}
    }
    let lossy = |name: &str| PeerGroup {
        loss: Loss::Random(1e-3),
        jitter: 0.3,
        rate: Range::Between([1e6, 1e8]),
        behaviour: Behaviour::Corrupts { share: 0.2 },
        ..group(name, 1, 1e7, 90.0)
    };
    let ends = |peers: Vec<PeerGroup>, whom| {
        let mut ledger = Ledger::default();
        run(&world(peers), &downloads(2, 40, MIB, 3), &mut Only(whom), 8, &mut ledger).unwrap();
        ledger.ends().map(|(at, _, delivery)| (at, delivery)).collect::<Vec<_>>()
    };
    let alone = ends(vec![lossy("it")], 0);
    let among = ends(vec![PeerGroup { count: 5, ..lossy("other") }, lossy("it")], 5);
    assert_eq!(alone, among);
}

/// Panics now and then, and answers nonsense otherwise.
#[derive(Default)]
struct Mad {
    calls: u32,
}

impl Mad {
    fn sometimes(&mut self) {
        self.calls += 1;
        assert!(!self.calls.is_multiple_of(5), "mad");
    }
}

impl Policy for Mad {
    fn name(&self) -> &'static str {
        "mad"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        self.sometimes();
        let of = |peer| Grant { peer: PeerIndex(peer), ranges: u32::MAX };
        match self.calls % 3 {
            0 => vec![of(u32::MAX), Grant { peer: PeerIndex(0), ranges: 0 }],
            1 => vec![of(77), of(0), of(0), of(1)],
            _ => ask.candidates.iter().map(|candidate| of(candidate.peer.0)).collect(),
        }
    }

    fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {
        self.sometimes();
    }

    fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {
        self.sometimes();
    }

    fn opinion(&self, peer: PeerIndex, _: Time) -> Opinion {
        assert!(peer.0 != 1, "mad about one");
        Opinion { demoted: true, credited_rate: Some(f64::NAN) }
    }
}

#[test]
fn a_policy_that_panics_and_answers_nonsense_is_survived_and_counted() {
    let mut ledger = Ledger::default();
    let result = run(&motley(), &downloads(2, 40, MIB, 5), &mut Mad::default(), 1, &mut ledger).unwrap();
    assert!(result.panics > 10);
    assert_eq!(result.requests.iter().map(|request| request.bytes).sum::<u64>(), 80 * MIB);
    assert_eq!(ledger.in_flight(), 0);
    assert!(result.peers[0].demoted_at_s.is_some() && result.peers[1].demoted_at_s.is_none());
}

#[test]
fn nobody_to_ask_ends_without_a_result_and_not_never() {
    let mut world = world(vec![behaving("dead", 1e7, Behaviour::Silent { share: 1.0 })]);
    let (result, ledger) = watched(&world, &downloads(2, 3, MIB, 2), 1);
    assert!(result.requests.iter().all(|request| request.end_s.is_none() && request.bytes == 0));
    assert_eq!(ledger.in_flight(), 0);
    // One that answers at once, and never with data.
    world.peers = vec![behaving("hole", 1e7, Behaviour::Fails { after_ms: 0.0, share: 1.0 })];
    let (result, _) = watched(&world, &downloads(1, 3, MIB, 2), 1);
    assert_eq!(result.requests[0].end_s, None);
    // Nobody there until later.
    world.peers = vec![PeerGroup { joins_at_s: 100.0, ..group("late", 1, 1e7, 50.0) }];
    let (result, _) = watched(&world, &downloads(1, 3, MIB, 2), 1);
    assert!((100.0..103.0).contains(&result.requests[0].end_s.unwrap()));
}

#[test]
fn whoever_watches_opinions_hears_one_after_each_end() {
    #[derive(Default)]
    struct Watcher(Ledger, usize);
    impl Observer for Watcher {
        fn fact(&mut self, now: Time, fact: &Fact) {
            self.0.fact(now, fact);
        }
        fn wants_opinions(&self) -> bool {
            true
        }
        fn opinion(&mut self, _: Time, _: PeerIndex, opinion: &Opinion) {
            assert_eq!(*opinion, Opinion::default());
            self.1 += 1;
        }
    }
    let mut watcher = Watcher::default();
    run(&motley(), &downloads(1, 20, MIB, 4), &mut InTurn::default(), 1, &mut watcher).unwrap();
    assert_eq!(watcher.1, watcher.0.ends().count());
}

#[test]
fn closures_have_deadlines_and_requests_arrive_at_their_rate() {
    let [_, requests, closures] = workloads();
    let good = world(vec![group("good", 20, 1e7, 50.0)]);
    let (result, _) = watched(&good, &closures, 1);
    for (index, request) in result.requests.iter().enumerate() {
        assert_eq!((request.start_s, request.deadline_s), (5.0 * index as f64, Some(5.0 * index as f64 + 7.0)));
        assert!(request.end_s.unwrap() < request.start_s + 2.0);
    }
    let (result, _) = watched(&good, &requests, 1);
    let last = result.requests.last().unwrap().start_s;
    assert!((12.0..18.0).contains(&last), "{last}");
}

#[test]
fn the_draw_tells_the_truth_of_the_run() {
    let world = motley();
    let drawn = draw(&world, 4).unwrap();
    let result = run(&world, &downloads(1, 20, MIB, 4), &mut InTurn::default(), 4, &mut ()).unwrap();
    for (peer, result) in drawn.peers.iter().zip(&result.peers).take(6) {
        assert_eq!(peer.at(1.0).true_rate(1.0).min(3e7), result.true_rate);
        assert_eq!(world.peers[peer.group].name, result.group);
    }
}
