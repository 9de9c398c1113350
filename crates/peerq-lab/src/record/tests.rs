//! A recording replays without a difference, and says where one begins.

use std::io::Write;
use std::sync::{Arc, Mutex};

use dig_peer_selector::{
    Candidate, CandidateAddr, ClockSource, ContentId, ContentRequest, FailureReason, OutcomeKind, OutcomeResult,
    PeerId, PeerSelector, PoolEvent, PoolRemovalReason, Provenance, RangePlanDelta, SelectorConfig, TransferOutcome,
    TraversalKind,
};

use super::{Recorder, Recording, RecordingError, explain, replay};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

/// A life with every kind of call in it.
fn recorded() -> Vec<u8> {
    let memory = Memory::default();
    let recorder = Arc::new(Recorder::new(memory.clone()));
    let clock = ClockSource::virtual_micros(0);
    // No seed given: the one drawn has to be in the recording.
    let config = SelectorConfig { clock: clock.clone(), rng_seed: None, registry_capacity: 64 };
    let selector = PeerSelector::with_tap(config, recorder.clone());
    let content = ContentId::resource([1; 32], [2; 32], [3; 32]);
    let candidates: Vec<Candidate> =
        (1..=9).map(|id| Candidate::new(peer(id), vec![CandidateAddr::direct("203.0.113.7", 9444)])).collect();
    let mut request = ContentRequest::new(content, 4);
    request.range_count = Some(64);
    selector.upsert_candidate_from(&candidates[0], Provenance::Pex);
    selector.on_connection_class(&peer(2), TraversalKind::Relayed);
    selector.on_pool_event(&PoolEvent::PeerAdded { peer_id: peer(3), addr: "203.0.113.7:9444".parse().unwrap() });
    for step in 0..60u64 {
        clock.set_micros(1_000_000 + step * 137_911);
        let chosen = if step % 7 == 6 {
            selector.rebalance(&request, &[peer(1)], &RangePlanDelta::of_count(5))
        } else {
            selector.select(&request, &candidates)
        };
        for source in &chosen.peers {
            selector.on_dispatch(&source.peer_id, 1);
            let id = u64::from(source.peer_id.as_bytes()[0]);
            let failed = OutcomeResult::Failure { reason: FailureReason::Timeout };
            selector.record_outcome(&TransferOutcome {
                peer_id: source.peer_id,
                content,
                kind: OutcomeKind::Range { index: step as usize, offset: 0, length: 1 << 20 },
                result: if (step + id) % 5 == 0 { failed } else { OutcomeResult::Success },
                bytes: 1 << 20,
                duration_ms: 40 * id + step % 11,
                rtt_ms: Some(5 * id),
                at: step,
            });
        }
    }
    selector.on_pool_event(&PoolEvent::PeerRemoved { peer_id: peer(3), reason: PoolRemovalReason::Banned });
    selector.remove_peer(&peer(4));
    selector.select(&request, &candidates);
    recorder.finish().unwrap();
    memory.0.lock().unwrap().clone()
}

fn read(bytes: &[u8]) -> Recording {
    Recording::read("life.jsonl", bytes).unwrap()
}

#[test]
fn a_recording_replays_without_a_difference() {
    let found = replay(&read(&recorded()));
    assert_eq!((found.decisions, found.torn_at), (61, None));
    assert_eq!(found.difference, None, "{found}");
    assert!(found.facts > 100);
}

#[test]
fn a_changed_fact_shows_at_the_first_decision_that_it_changes() {
    let text = String::from_utf8(recorded()).unwrap();
    // A peer that was fast is said to have been slow.
    let forged: Vec<String> =
        text.lines().map(|line| line.replace("\"duration_ms\":4", "\"duration_ms\":99999")).collect();
    let first_forged = 1 + text.lines().zip(&forged).position(|(old, new)| old != new).unwrap();
    let found = replay(&read((forged.join("\n") + "\n").as_bytes()));
    let difference = found.difference.as_ref().expect("a forged past has another future");
    assert!(difference.line > first_forged, "{found}");
    assert!(found.to_string().contains(&format!("first difference at line {}", difference.line)), "{found}");
}

#[test]
fn a_truncated_recording_replays_to_its_last_whole_line_and_says_so() {
    let bytes = recorded();
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    for cut in [1, 2, 25] {
        let torn = read(&bytes[..bytes.len() - cut]);
        assert_eq!(torn.torn_at, Some(lines));
        let found = replay(&torn);
        assert!(found.difference.is_none() && found.decisions == 60, "{found}");
        assert!(found.to_string().contains("torn at line"), "{found}");
    }
}

#[test]
fn what_is_no_recording_is_refused_with_its_place() {
    let bad = |text: &str| Recording::read("x.jsonl", text.as_bytes()).unwrap_err();
    assert!(matches!(bad(""), RecordingError::NoHeader { .. }));
    assert!(matches!(bad("{\"plan\":1}\n"), RecordingError::NoHeader { .. }));
    let newer = bad("{\"recording\":\"peerq\",\"schema\":9,\"seed\":1,\"capacity\":4}\n").to_string();
    assert!(newer.contains("schema 9"), "{newer}");
    let middle = bad("{\"recording\":\"peerq\",\"schema\":1,\"seed\":1,\"capacity\":4}\nnonsense\n{}\n").to_string();
    assert!(middle.starts_with("x.jsonl:2:"), "{middle}");
}

#[test]
fn a_decision_is_explained_with_its_terms() {
    let recording = read(&recorded());
    let late = explain(&recording, u64::MAX, None).unwrap();
    assert!(late.text.contains("banned by the host") && late.text.contains("first byte"), "{}", late.text);
    let one = explain(&recording, 5_000_000, Some("0202")).unwrap();
    assert!(one.at_us <= 5_000_000 && one.text.lines().count() == 3, "{}", one.text);
    assert_eq!(explain(&recording, 10, None), None);
}
