//! What a policy credits a hostile peer with is compared with what that peer delivers, at the moment of its latest bytes (LAB-4).

mod common;

use common::{InTurn, behaving, downloads, group, world};
use peer_quality::measure::Delivery;
use peer_quality::units::{Bytes, Time};
use peerq_lab::model::{Behaviour, Kind, PeerGroup, RunResult, Wire, Workload, World};
use peerq_lab::policy::{Ask, Grant, Move, Opinion, PeerIndex, Policy, Review, Reviewed};
use peerq_lab::sim;

const MIB: u64 = 1 << 20;

/// Asks in turn until a second, and only the first candidate later; credits everybody with the same rate.
struct Believes {
    rate: Option<f64>,
    until_s: f64,
    in_turn: InTurn,
}

impl Policy for Believes {
    fn name(&self) -> &'static str {
        "believes"
    }

    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        if ask.now.as_micros() as f64 * 1e-6 < self.until_s {
            return self.in_turn.choose(ask);
        }
        vec![Grant { peer: ask.candidates[0].peer, ranges: ask.free.min(ask.ranges_left) }]
    }

    fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}

    fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}

    fn opinion(&self, _: PeerIndex, _: Time) -> Opinion {
        Opinion { demoted: false, credited_rate: self.rate }
    }
}

fn run(world: &World, rate: Option<f64>, until_s: f64) -> RunResult {
    let mut policy = Believes { rate, until_s, in_turn: InTurn::default() };
    sim::run(world, &downloads(1, 60, MIB, 1), &mut policy, 3, &mut ()).unwrap()
}

fn ratios(result: &RunResult) -> Vec<Option<f64>> {
    result.peers.iter().map(|peer| peer.credited_over_delivered).collect()
}

#[test]
fn an_overrated_hostile_peer_shows_by_how_much_and_an_honest_one_is_not_asked_about() {
    let dribbles = Behaviour::Dribbles { after_bytes: 0, rate: 1e6 };
    let world = world(vec![group("good", 1, 1e7, 50.0), behaving("slow", 1e7, dribbles)]);
    assert_eq!(ratios(&run(&world, Some(3e6), f64::INFINITY)), [None, Some(3.0)]);
    assert_eq!(ratios(&run(&world, None, f64::INFINITY)), [None, None]);
}

/// Asks the last candidate, and the first as well; believes everybody.
struct Doubles;

impl Policy for Doubles {
    fn name(&self) -> &'static str {
        "doubles"
    }
    fn choose(&mut self, ask: &Ask<'_>) -> Vec<Grant> {
        ask.candidates.last().map(|one| Grant { peer: one.peer, ranges: 1 }).into_iter().collect()
    }
    fn sent(&mut self, _: PeerIndex, _: Bytes, _: Time) {}
    fn ended(&mut self, _: PeerIndex, _: u64, _: Bytes, _: &Delivery, _: Time) {}
    fn reviews(&self) -> bool {
        true
    }
    fn review(&mut self, review: &Review<'_>) -> Reviewed {
        let moves = vec![Move { range: 0, to: review.candidates[0].peer, is_late: true }];
        Reviewed { moves, again: None }
    }
    fn opinion(&self, _: PeerIndex, _: Time) -> Opinion {
        Opinion { demoted: false, credited_rate: Some(1e7) }
    }
}

#[test]
fn what_the_end_of_the_run_cuts_off_is_held_against_nobody() {
    let dribbles = Behaviour::Dribbles { after_bytes: 0, rate: 1e4 };
    let world = world(vec![group("good", 1, 1e7, 50.0), behaving("slow", 1e7, dribbles)]);
    let closure = Workload::Closures {
        requests: 1,
        closure_bytes: MIB,
        chunk_bytes: MIB,
        every_s: 1.0,
        deadline_s: 9.0,
        in_flight: 2,
    };
    let result = sim::run(&world, &closure, &mut Doubles, 3, &mut ()).unwrap();
    assert!(result.peers[1].wasted_bytes > 0, "it was under way");
    assert_eq!(ratios(&result), [None, None]);
}

#[test]
fn what_a_peer_turns_into_after_its_latest_bytes_is_held_against_nobody() {
    let flashes = Behaviour::Flashes { at_s: 2.0, rate: 1e5 };
    let world = world(vec![group("good", 1, 1e7, 50.0), behaving("sleeper", 1e7, flashes)]);
    let unseen = run(&world, Some(1e7), 1.0);
    assert_eq!((ratios(&unseen)[1], unseen.peers[1].true_rate), (Some(1.0), 1e5));
    assert_eq!(ratios(&run(&world, Some(1e7), f64::INFINITY))[1], Some(100.0));
}

#[test]
fn who_never_sent_a_byte_has_no_ratio() {
    let world = world(vec![group("good", 1, 1e7, 50.0), behaving("mute", 1e7, Behaviour::Silent { share: 1.0 })]);
    assert_eq!(ratios(&run(&world, Some(1e7), 1.0)), [None, None]);
}

#[test]
fn who_acts_against_us_on_the_wire_alone_is_hostile() {
    let lies = PeerGroup { wire: Some(Wire::GuessesEchoes), ..group("guesser", 1, 1e7, 50.0) };
    let result = run(&world(vec![group("good", 1, 1e7, 50.0), lies]), Some(1e7), f64::INFINITY);
    assert_eq!(
        result.peers.iter().map(|peer| peer.kind).collect::<Vec<_>>(),
        [Some(Kind::Honest), Some(Kind::Hostile)]
    );
    assert_eq!(ratios(&result), [None, Some(1.0)]);
}
