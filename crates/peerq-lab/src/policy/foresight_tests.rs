use super::*;
use crate::behaviour::{Answer, Asked};
use crate::model::{Change, PeerGroup, Range};
use peer_quality::units::Bytes;

fn group(behaviour: Behaviour) -> PeerGroup {
    PeerGroup { behaviour, ..PeerGroup::honest("peer", 1, 10e6, 50.0) }
}

fn foresight(group: PeerGroup) -> Foresight {
    let world = World { peers: vec![group], ..World::default() };
    let workload = Workload::Requests { requests: 1, per_s: 1.0, range_bytes: 1_000_000, range_timeout_s: 30.0 };
    Foresight::new(&world, &workload, 5).expect("a possible world")
}

fn request(content: u64, at_s: u64) -> Request {
    let (peer, range) = (PeerIndex(0), Bytes::new(1_000_000));
    Request { peer, content, range, at: Time::from_secs(at_s), ahead: 0 }
}

fn fails(fate: Fate) -> bool {
    matches!(fate, Fate::Fails { .. })
}

#[test]
fn what_is_foretold_is_what_the_peer_will_do() {
    let behaviours = [
        Behaviour::Fails { after_ms: 2.0, share: 0.4 },
        Behaviour::Corrupts { share: 0.3 },
        Behaviour::Silent { share: 0.5 },
        Behaviour::Farms { good: 3 },
        Behaviour::Withholds { share: 0.3 },
        Behaviour::Whitewashes { failures: 2 },
        Behaviour::Honest,
    ];
    for behaviour in behaviours {
        let mut foresight = foresight(group(behaviour));
        let (mut peer, luck) = (conduct(&behaviour), PeerLuck::new(5, "peer", 0));
        for step in 0..200 {
            let request = request(step / 7, 1);
            let foretold = foresight.fate(&request);
            assert_eq!(foretold, foresight.fate(&request), "looking changes nothing");
            foresight.sent(&request);
            let asked = Asked { content: request.content, bytes: 1_000_000, at_s: 1.0 };
            let served = peer.answer(&asked, luck.of(request.content, (step % 7) as u32)) == Answer::Serves;
            assert_eq!(!fails(foretold), served, "{behaviour:?}, step {step}");
        }
    }
}

#[test]
fn looking_ahead_sees_what_comes_later() {
    let mut foresight = foresight(group(Behaviour::Lacks { share: 0.5 }));
    let ahead: Vec<bool> = (0..50).map(|ahead| fails(foresight.fate(&Request { ahead, ..request(0, 1) }))).collect();
    let later: Vec<bool> = (0..50)
        .map(|_| {
            let fate = foresight.fate(&request(0, 1));
            foresight.sent(&request(0, 1));
            fails(fate)
        })
        .collect();
    assert_eq!(ahead, later);
    assert!(ahead.contains(&true) && ahead.contains(&false));
}

#[test]
fn changes_and_turns_are_known_before_they_come() {
    let change = Change { at_s: 20.0, rate: Some(Range::Fixed(1e6)), rtt_ms: None, behaviour: None };
    let mut peer = group(Behaviour::Flashes { at_s: 8.0, rate: 1e3 });
    peer.changes = vec![change];
    let foresight = foresight(peer);
    let at = |secs| foresight.changes_at(PeerIndex(0), Time::from_secs(secs));
    assert_eq!((at(0), at(8), at(20)), (Some(Time::from_secs(8)), Some(Time::from_secs(20)), None));
    assert_eq!(foresight.capacity(PeerIndex(0), Time::from_secs(1)), 10e6);
    assert_eq!(foresight.capacity(PeerIndex(0), Time::from_secs(9)), 1e3);
}

#[test]
fn what_takes_longer_than_the_patience_fails() {
    let mut slow = group(Behaviour::Honest);
    slow.rate = Range::Fixed(1e4);
    assert_eq!(foresight(slow).fate(&request(0, 0)), Fate::Fails { after_s: 30.0 });
    let stranger = Request { peer: PeerIndex(7), ..request(0, 0) };
    assert!(fails(foresight(group(Behaviour::Honest)).fate(&stranger)), "a whitewasher's later identity");
}

#[test]
fn history_moves_the_start_of_the_run() {
    let mut foresight = foresight(group(Behaviour::Flashes { at_s: 5.0, rate: 1e3 }));
    let delivery = crate::policy::testing::completed(1, 1);
    foresight.ended(PeerIndex(0), HISTORY, &delivery, Time::from_micros(9_500_000));
    assert_eq!(foresight.changes_at(PeerIndex(0), Time::from_secs(11)), Some(Time::from_secs(16)));
}
