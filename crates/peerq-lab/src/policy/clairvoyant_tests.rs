use super::*;
use peer_quality::measure::Fault;

use crate::policy::testing::{Bench, RANGE, failed};

/// A world by tables.
#[derive(Clone, Default)]
struct Table {
    rates: Vec<f64>,
    first_byte_s: f64,
    shared: Vec<Option<(u32, f64)>>,
    downlink: Option<f64>,
    fails: Vec<u32>,
    change: Option<(Time, f64)>,
}

impl Truth for Table {
    fn fate(&self, request: &Request) -> Fate {
        if self.fails.contains(&request.peer.0) {
            return Fate::Fails { after_s: 0.01 };
        }
        Fate::Delivers { first_byte_s: self.first_byte_s, rate: self.capacity(request.peer, request.at) }
    }

    fn capacity(&self, peer: PeerIndex, at: Time) -> f64 {
        match self.change {
            Some((from, rate)) if at >= from && peer.0 == 0 => rate,
            _ => self.rates[peer.0 as usize],
        }
    }

    fn changes_at(&self, peer: PeerIndex, after: Time) -> Option<Time> {
        self.change.map(|(at, _)| at).filter(|at| peer.0 == 0 && *at > after)
    }

    fn shared(&self, peer: PeerIndex) -> Option<(u32, f64)> {
        self.shared.get(peer.0 as usize).copied().flatten()
    }

    fn downlink(&self) -> Option<f64> {
        self.downlink
    }
}

fn granted(table: Table, ranges_left: u32, free: u32) -> Vec<(u32, u32)> {
    let mut bench = Bench::new(table.rates.len() as u32);
    bench.ask(&mut Clairvoyant::new(table, 1), ranges_left, free)
}

fn rates(rates: &[f64]) -> Table {
    Table { rates: rates.to_vec(), first_byte_s: 0.05, ..Table::default() }
}

fn of(grants: &[(u32, u32)], peer: u32) -> u32 {
    grants.iter().find(|(one, _)| *one == peer).map_or(0, |(_, ranges)| *ranges)
}

#[test]
fn a_straggler_gets_no_range_of_a_short_request_and_its_share_of_a_long_one() {
    let table = rates(&[20e6, 10e6, 0.05e6]);
    assert_eq!(of(&granted(table.clone(), 8, 8), 2), 0);
    assert!(of(&granted(table, 5_000, 64), 2) > 0);
}

#[test]
fn scarce_slots_go_to_the_fast() {
    let grants = granted(rates(&[1e6, 20e6, 20e6, 20e6, 20e6]), 200, 4);
    assert_eq!(of(&grants, 0), 0, "{grants:?}");
    assert_eq!(grants.len(), 4);
}

#[test]
fn nobody_who_fails_is_asked_while_others_deliver() {
    let table = Table { fails: vec![0], ..rates(&[50e6, 1e6]) };
    assert_eq!(of(&granted(table, 20, 8), 0), 0);
    let table = Table { fails: vec![0, 1], ..rates(&[50e6, 1e6]) };
    assert!(!granted(table, 20, 8).is_empty(), "somebody has to be tried");
}

#[test]
fn who_was_caught_twice_gets_nothing_that_others_have() {
    let mut bench = Bench::new(2);
    let mut clairvoyant = Clairvoyant::new(rates(&[50e6, 1e6]), 100);
    let fast = |grants: &[(u32, u32)]| of(grants, 0);
    for _ in 0..2 {
        assert!(fast(&bench.ask(&mut clairvoyant, 1, 1)) > 0);
        bench.end(&mut clairvoyant, 0, &failed(Fault::Verification, 20));
    }
    assert_eq!(fast(&bench.ask(&mut clairvoyant, 100, 8)), 0);
    bench.candidates.truncate(1);
    assert!(fast(&bench.ask(&mut clairvoyant, 1, 1)) > 0, "better than nobody");
}

#[test]
fn a_shared_link_is_planned_at_its_own_rate() {
    // Four mirrors share 2 MB/s, one independent peer has 1 MB/s: in 9 ranges about 3 are its own.
    let shared = vec![Some((0, 2e6)); 4];
    let table = Table { shared, ..rates(&[10e6, 10e6, 10e6, 10e6, 1e6]) };
    let clairvoyant = Clairvoyant::new(table.clone(), 2);
    let bench = Bench::new(5);
    let ask = Ask {
        now: bench.now,
        content: 1,
        ranges_left: 9,
        range: Bytes::new(RANGE),
        free: 64,
        sources: 8,
        in_flight: 64,
        candidates: &bench.candidates,
    };
    let way = Ways::default().next(1, 9);
    let sources: Vec<Source> = (0..5).map(|peer| clairvoyant.source(PeerIndex(peer), &ask, &way).unwrap()).collect();
    let end_s = clairvoyant.end_s(&sources, 9, RANGE as f64);
    assert!((3.0..3.2).contains(&end_s), "{end_s}");
    assert!(of(&granted(table, 9, 64), 4) > 0);
}

#[test]
fn the_downlink_bounds_the_plan() {
    let table = Table { downlink: Some(0.2e6), ..rates(&[10e6; 8]) };
    let clairvoyant = Clairvoyant::new(table, 1);
    assert!(clairvoyant.delivered_by(&[], 1.0, 1e6) <= 0.2);
}

#[test]
fn a_change_is_known_before_it_comes() {
    // The fast peer dribbles from the first half second on: only what it delivers before is planned for it.
    let change = Some((Time::from_secs(1) + peer_quality::units::Span::from_millis(500), 1e3));
    let grants = granted(Table { change, ..rates(&[2e6, 1e6]) }, 50, 64);
    assert_eq!(of(&grants, 0), 0, "a range takes it 0.55 s: {grants:?}");
}

#[test]
fn hostile_truths_leave_it_finite() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
        let table = Table { downlink: Some(rate), first_byte_s: rate, ..rates(&[rate, rate]) };
        granted(table, u32::MAX, 1_000);
    }
}
