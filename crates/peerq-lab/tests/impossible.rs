//! Impossible worlds are refused with the field's name; possible ones, however strange, end (issue B, Bad input).

mod common;

use common::{InTurn, Ledger, behaving, downloads, group, world};
use peerq_lab::model::{
    Behaviour, Change, History, Loss, Outage, PeerGroup, Range, Serve, SharedLink, Workload, World,
};
use peerq_lab::sim::{Flaw, check_workload, check_world, run};
use proptest::prelude::*;

fn refused(change: impl Fn(&mut World), field: &str, flaw: Flaw) {
    let mut world = world(vec![group("a", 1, 1e6, 50.0), group("b", 2, 1e6, 50.0)]);
    world.shared = vec![SharedLink { name: "link".into(), rate: 1e6 }];
    assert_eq!(check_world(&world), Ok(()));
    change(&mut world);
    let wrong = check_world(&world).expect_err(field);
    assert_eq!((wrong.field.as_str(), wrong.flaw), (field, flaw));
    let run = run(&world, &downloads(1, 1, 1, 1), &mut InTurn::default(), 1, &mut ());
    assert_eq!(run, Err(wrong));
}

#[test]
fn impossible_worlds_are_refused_by_the_field() {
    refused(|world| world.peers.clear(), "peers", Flaw::Empty);
    refused(|world| world.peers.iter_mut().for_each(|group| group.count = 0), "peers", Flaw::Empty);
    refused(|world| world.peers[0].count = u32::MAX, "peers", Flaw::TooLarge);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(|world| world.peers[1].rate = Range::Fixed(bad), "peers[1].rate", Flaw::NotPositive);
        refused(|world| world.peers[1].rtt_ms = Range::Between([bad, 5.0]), "peers[1].rtt_ms", Flaw::NotPositive);
        refused(|world| world.shared[0].rate = bad, "shared[0].rate", Flaw::NotPositive);
        refused(|world| world.client.downlink = Some(bad), "client.downlink", Flaw::NotPositive);
        refused(|world| world.tcp.rto_floor_ms = bad, "tcp.rto_floor_ms", Flaw::NotPositive);
    }
    refused(|world| world.peers[0].rate = Range::Between([2.0, 1.0]), "peers[0].rate", Flaw::Reversed);
    refused(|world| world.peers[0].jitter = -0.1, "peers[0].jitter", Flaw::Negative);
    refused(|world| world.peers[0].loss = Loss::Random(1.1), "peers[0].loss.random", Flaw::NotAShare);
    let bursty = Loss::GilbertElliott { good: 0.0, bad: 0.1, to_bad: -0.5, to_good: 0.1 };
    refused(|world| world.peers[0].loss = bursty, "peers[0].loss.gilbert-elliott.to_bad", Flaw::NotAShare);
    let serve = Serve { cold_share: f64::NAN, ..Serve::default() };
    refused(|world| world.peers[0].serve = serve, "peers[0].serve.cold_share", Flaw::NotAShare);
    let silent = Behaviour::Silent { share: 2.0 };
    refused(|world| world.peers[0].behaviour = silent, "peers[0].behaviour.silent.share", Flaw::NotAShare);
    refused(|world| world.peers[0].shares = Some("nothing".into()), "peers[0].shares", Flaw::Unknown);
    refused(|world| world.peers[1].name = "a".into(), "peers[1].name", Flaw::Repeated);
    refused(|world| world.peers[0].joins_at_s = -1.0, "peers[0].joins_at_s", Flaw::Negative);
    let history = History { samples: 1, bytes: 0, rate: None };
    refused(|world| world.peers[0].history = Some(history), "peers[0].history.bytes", Flaw::NotPositive);
    let back = |at_s| Change { at_s, ..Change::default() };
    refused(|world| world.peers[0].changes = vec![back(5.0), back(1.0)], "peers[0].changes[1].at_s", Flaw::Unordered);
    let outage = |at_s, for_s| Outage { at_s, for_s };
    refused(|world| world.client.outages = vec![outage(1.0, 0.0)], "client.outages[0].for_s", Flaw::NotPositive);
    refused(
        |world| world.client.outages = vec![outage(1.0, 5.0), outage(3.0, 1.0)],
        "client.outages[1].at_s",
        Flaw::Unordered,
    );
    refused(|world| world.client.pause_every_s = 1.0, "client.pause_s", Flaw::Empty);
}

#[test]
fn a_refusal_reads_as_a_sentence() {
    let mut world = world(vec![group("a", 1, 0.0, 50.0)]);
    assert_eq!(check_world(&world).unwrap_err().to_string(), "peers[0].rate: must be a positive, finite number");
    world.peers.clear();
    assert_eq!(check_world(&world).unwrap_err().to_string(), "peers: must not be empty");
}

#[test]
fn impossible_work_is_refused_by_the_field() {
    let field = |workload: &Workload| check_workload(workload).unwrap_err().field;
    assert_eq!(field(&downloads(0, 1, 1, 1)), "downloads.requests");
    assert_eq!(field(&downloads(1, 0, 1, 1)), "downloads.ranges");
    assert_eq!(field(&downloads(1, 1, 0, 1)), "downloads.range_bytes");
    assert_eq!(field(&downloads(u32::MAX, u32::MAX, 1, 1)), "downloads.requests");
    let closures = |chunk_bytes, deadline_s| Workload::Closures {
        requests: 1,
        closure_bytes: 10,
        chunk_bytes,
        every_s: 1.0,
        deadline_s,
        in_flight: 1,
    };
    assert_eq!(field(&closures(0, 1.0)), "closures.chunk_bytes");
    assert_eq!(field(&closures(1, f64::NAN)), "closures.deadline_s");
    let requests = Workload::Requests { requests: 1, per_s: 0.0, range_bytes: 1, range_timeout_s: 1.0 };
    assert_eq!(field(&requests), "requests.per_s");
}

fn any_behaviour() -> impl Strategy<Value = Behaviour> {
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    let rate = prop_oneof![Just(0.0), 0.1..1e7];
    prop_oneof![
        Just(Behaviour::Honest),
        (0.0..1e4, share.clone()).prop_map(|(after_ms, share)| Behaviour::Fails { after_ms, share }),
        share.clone().prop_map(|share| Behaviour::Lacks { share }),
        share.clone().prop_map(|share| Behaviour::Silent { share }),
        share.clone().prop_map(|share| Behaviour::Corrupts { share }),
        share.clone().prop_map(|share| Behaviour::Cuts { share }),
        share.clone().prop_map(|share| Behaviour::Withholds { share }),
        (0..1u64 << 22, rate.clone()).prop_map(|(after_bytes, rate)| Behaviour::Dribbles { after_bytes, rate }),
        (1..1u64 << 20, 0.0..1e3).prop_map(|(burst_bytes, gap_ms)| Behaviour::Paces { burst_bytes, gap_ms }),
        (share.clone(), 0.0..60.0).prop_map(|(share, for_s)| Behaviour::Stalls { share, for_s }),
        (0..20u32).prop_map(|good| Behaviour::Farms { good }),
        (1..9u32).prop_map(|failures| Behaviour::Whitewashes { failures }),
        (0.0..60.0, rate).prop_map(|(at_s, rate)| Behaviour::Flashes { at_s, rate }),
        (0..1u64 << 20, share).prop_map(|(above_bytes, factor)| Behaviour::Pads { above_bytes, factor }),
    ]
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.0, 0.0..1e-3];
    prop_oneof![
        Just(Loss::None),
        share().prop_map(Loss::Random),
        (share(), share(), share(), share()).prop_map(|(good, bad, to_bad, to_good)| Loss::GilbertElliott {
            good,
            bad,
            to_bad,
            to_good
        }),
    ]
}

fn any_group() -> impl Strategy<Value = PeerGroup> {
    let link = (1u32..4, 3.0..9.0, -2.0..4.0, 0.0..2.0, any_loss());
    let acts = (any_behaviour(), proptest::option::of(any_behaviour()), 0.0..30.0, any::<bool>());
    let limits = (proptest::option::of(0u32..4), 0.0..20.0);
    (link, acts, limits).prop_map(|(link, acts, limits)| {
        let (count, rate, rtt, jitter, loss) = link;
        let (behaviour, later, at_s, shares) = acts;
        let mut group = group("", count, 10f64.powf(rate), 10f64.powf(rtt));
        (group.jitter, group.loss, group.behaviour) = (jitter, loss, behaviour);
        group.shares = shares.then(|| "link".into());
        (group.refuses_above, group.joins_at_s) = limits;
        group.changes.extend(later.map(|behaviour| Change {
            at_s,
            rate: Some(Range::Between([1e3, 1e8])),
            rtt_ms: None,
            behaviour: Some(behaviour),
        }));
        group
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_possible_world_ends_with_every_range_accounted_for(
        mut groups in proptest::collection::vec(any_group(), 1..5),
        downlink in proptest::option::of(1e3..1e8),
        outages in proptest::option::of((0.0..20.0, 0.1..30.0)),
        pauses in any::<bool>(),
        range_bytes in 1..1u64 << 21,
        seed in any::<u64>(),
    ) {
        for (index, group) in groups.iter_mut().enumerate() {
            group.name = index.to_string();
        }
        groups.push(behaving("good", 1e6, Behaviour::Honest));
        let mut world = world(groups);
        world.shared = vec![SharedLink { name: "link".into(), rate: 1e6 }];
        world.client.downlink = downlink;
        world.client.outages = outages.map(|(at_s, for_s)| Outage { at_s, for_s }).into_iter().collect();
        if pauses {
            world.client.pause_every_s = 5.0;
            world.client.pause_s = Some(Range::Between([0.1, 3.0]));
        }
        let workload = downloads(2, 8, range_bytes, 4);
        let mut ledger = Ledger::default();
        let result = run(&world, &workload, &mut InTurn::default(), seed, &mut ledger).unwrap();
        prop_assert_eq!(ledger.in_flight(), 0);
        for request in &result.requests {
            prop_assert!(request.bytes <= 8 * range_bytes);
            prop_assert_eq!(request.end_s.is_some(), request.bytes == 8 * range_bytes);
        }
        prop_assert_eq!(
            result.peers.iter().map(|peer| peer.bytes).sum::<u64>(),
            result.requests.iter().map(|request| request.bytes).sum::<u64>()
        );
        prop_assert!(result.peers.iter().all(|peer| peer.true_rate.is_finite() && peer.true_rate >= 0.0));
        prop_assert!(ledger.ends().all(|(_, _, one)| one.first_byte.is_none_or(|first| first <= one.elapsed)));
        let again = run(&world, &workload, &mut InTurn::default(), seed, &mut ()).unwrap();
        prop_assert_eq!(again, result);
    }
}
