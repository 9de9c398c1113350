//! Claims about what is made of records from the network (HOST-D5); the network itself is in tests/discovery.rs.

use super::*;
use crate::content::FileId;

fn record(peer: u8, host: &str, port: u16, expires_at: u64) -> ProviderRecord {
    let key = FileId::from_bytes([9; 32]).content().to_key();
    ProviderRecord::new(&key, &PeerId::from_bytes([peer; 32]), vec![CandidateAddr::direct(host, port)], expires_at)
}

fn usable(records: Vec<ProviderRecord>) -> Vec<ProviderRecord> {
    let key = FileId::from_bytes([9; 32]).content().to_key();
    holders(records, &key, &PeerId::from_bytes([1; 32]), 1000)
}

#[test]
fn holders_come_in_the_order_of_their_ids_whatever_the_order_of_answers() {
    let mut records =
        vec![record(4, "10.0.0.4", 4, 2000), record(2, "10.0.0.2", 2, 2000), record(3, "10.0.0.3", 3, 2000)];
    let expected = usable(records.clone());
    assert!(expected.is_sorted_by_key(|record| record.provider_peer_id.clone()));
    records.reverse();
    assert_eq!(usable(records), expected);
}

#[test]
fn records_that_are_expired_foreign_own_or_undialable_are_ignored() {
    let mut foreign = record(2, "10.0.0.2", 2, 2000);
    foreign.content_key = "00".repeat(32);
    let mut nobody = record(2, "10.0.0.2", 2, 2000);
    nobody.provider_peer_id = "x".to_owned();
    let mut relayed = record(2, "10.0.0.2", 2, 2000);
    relayed.addresses = vec![CandidateAddr::relay_marker()];
    let hostile = vec![
        foreign,
        nobody,
        relayed,
        record(2, "10.0.0.2", 2, 1000),
        record(1, "10.0.0.1", 1, 2000),
        record(2, "a.host.name", 2, 2000),
        record(2, "10.0.0.2", 0, 2000),
        record(2, "0.0.0.0", 7, 2000),
    ];
    assert_eq!(usable(hostile), []);
}

#[test]
fn the_addresses_of_one_peer_are_merged_and_bounded() {
    let records = (0..50).map(|port| record(2, "10.0.0.2", 1 + port / 2, 2000)).collect();
    let holders = usable(records);
    assert_eq!(holders.len(), 1);
    assert_eq!(socket_addrs(&holders[0]).len(), ADDRESSES_MAX);
}

#[test]
fn a_flood_of_holders_is_cut_and_the_place_to_crowd_out_differs_from_asker_to_asker() {
    let flood = |first: u8| {
        (0..1000u32).map(move |index| {
            let mut record = record(0, "10.0.0.3", 3, 2000);
            record.provider_peer_id = format!("{first:02x}{index:062x}");
            record
        })
    };
    // The asker's id starts with 01: an honest 03 is closer to it than a flood at 80, and farther than one at 00.
    let honest = record(3, "10.0.0.2", 2, 2000);
    for (first, expected) in [(0x00, false), (0x80, true)] {
        let kept = usable(flood(first).chain([honest.clone()]).collect());
        assert_eq!(kept.len(), HOLDERS_MAX);
        assert!(kept.is_sorted_by_key(|record| record.provider_peer_id.clone()));
        assert_eq!(kept.contains(&honest), expected, "a flood at {first:02x}");
    }
}
