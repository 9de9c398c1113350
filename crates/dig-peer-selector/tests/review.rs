//! Ranges under way, through the selector (HEDGE).

mod common;

use std::time::Duration;

use common::{MIB, Told, World, candidates, content, peer};
use dig_peer_selector::{
    ContentRequest, FailureReason, PeerSelector, RangeProgress, RangeReview, RangeUnderWay, Recourse, UnderWay,
};

/// A selector that has three peers of 1 MiB/s for a content.
fn known() -> PeerSelector {
    let world = World::new(7);
    world.select(1..=3, 3);
    for _ in 0..8 {
        (1..=3).for_each(|id| world.tell(peer(id), Told::default()));
    }
    world.selector
}

fn under_way(id: u8, age_ms: u64, bytes: u64) -> RangeUnderWay {
    let first_byte = (bytes > 0).then(|| Duration::from_millis(20));
    RangeUnderWay {
        peer_id: peer(id),
        length: MIB,
        age: Duration::from_millis(age_ms),
        progress: Some(RangeProgress { bytes, first_byte }),
        holders: 1,
        given_up: 0,
    }
}

fn review(selector: &PeerSelector, ranges: &[RangeUnderWay]) -> RangeReview {
    let ending = ContentRequest { range_count: Some(0), total_length: Some(0), ..ContentRequest::new(content(1), 3) };
    selector.review(&ending, &UnderWay { ranges, recourse: Recourse::GiveUp, free_slots: Some(1) })
}

#[test]
fn a_dribbled_range_moves_to_another_holder() {
    let selector = known();
    let answer = review(&selector, &[under_way(2, 500, 400_000), under_way(1, 9_000, 100)]);
    let [moved] = answer.moves[..] else { panic!("{answer:?}") };
    assert!(moved.range == 1 && moved.is_late && [peer(2), peer(3)].contains(&moved.to), "{moved:?}");
    assert!(moved.remaining_s > moved.instead_s);
    assert!(answer.again.is_some_and(|again| again > Duration::ZERO));
}

#[test]
fn who_and_what_is_unknown_is_passed_over() {
    let selector = known();
    let answer = review(&selector, &[under_way(77, 9_000, 100), under_way(1, 9_000, 100)]);
    assert_eq!(answer.moves.iter().map(|one| one.range).collect::<Vec<_>>(), [1]);
    assert_eq!(review(&selector, &[]), RangeReview::default());
    let unheard = ContentRequest::new(content(9), 3);
    let ranges = [under_way(1, 9_000, 100)];
    let under_way = UnderWay { ranges: &ranges, recourse: Recourse::Duplicate, free_slots: None };
    assert_eq!(selector.review(&unheard, &under_way), RangeReview::default());
    let absurd = RangeUnderWay { length: u64::MAX, age: Duration::MAX, holders: 0, ..ranges[0] };
    review(&selector, &[absurd]);
}

#[test]
fn who_does_not_have_the_content_would_not_bring_it_sooner() {
    let world = World { selector: known(), ..World::new(7) };
    let late = [under_way(1, 9_000, 100)];
    for id in [2, 3] {
        world.tell(peer(id), Told::failed(FailureReason::Unavailable));
    }
    assert_eq!(review(&world.selector, &late).moves, [], "whoever is asked instead would be the same again");
    assert!(!review(&known(), &late).moves.is_empty());
}

#[test]
fn what_was_moved_before_has_to_gain_more() {
    let selector = known();
    let moves = |given_up| {
        let again = RangeUnderWay { given_up, ..under_way(1, 9_000, 700_000) };
        review(&selector, &[again]).moves.len()
    };
    assert_eq!([0, 1, 9, u32::MAX].map(moves), [1, 1, 0, 0]);
}

#[test]
fn looking_changes_no_choice() {
    let (looked, plain) = (known(), known());
    for _ in 0..20 {
        review(&looked, &[under_way(1, 9_000, 100), under_way(2, 10, 0)]);
        let request = ContentRequest { range_count: Some(9), ..ContentRequest::new(content(1), 3) };
        assert_eq!(looked.select(&request, &candidates(1..=3)), plain.select(&request, &candidates(1..=3)));
    }
}
