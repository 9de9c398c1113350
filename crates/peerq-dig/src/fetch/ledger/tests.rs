use dig_peer_selector::{
    Candidate, ContentRequest, OutcomeKind, OutcomeResult, PeerSelector, SelectorConfig, TransferOutcome,
};
use tokio::io::AsyncReadExt;

use super::*;
use crate::content::{FileId, Manifest};
use crate::fetch::reader::StampedReader;

const CHUNK: u64 = 256 * 1024;

fn peer(byte: u8) -> PeerId {
    PeerId::from_bytes([byte; 32])
}

fn content() -> ContentId {
    FileId::from_bytes([9; 32]).content()
}

/// Four missing chunks.
fn ledger() -> Ledger {
    let manifest = Arc::new(Manifest::of_bytes(&vec![1; 4 * CHUNK as usize]));
    let layout = Arc::new(MissingLayout::new(manifest, &[]));
    Ledger::new(layout, Arc::new(Scorebook::new(None)), content())
}

fn delivered(ms: u64) -> Seen {
    let duration = Duration::from_millis(ms);
    Seen { bytes: CHUNK, duration, first_byte: Some(duration / 2) }
}

/// A request whose stamps say "sent now".
fn running(ledger: &Ledger, range: usize, byte: u8) -> Attempt {
    let attempt = ledger.begin(range, peer(byte)).unwrap();
    ledger.sent(&attempt, Stamps::new(Instant::now()));
    attempt
}

/// A peer has its answer here after `span`, and nothing more in flight.
async fn delivers(ledger: &Ledger, range: usize, byte: u8, span: Duration) {
    let attempt = ledger.begin(range, peer(byte)).unwrap();
    let stamps = Stamps::new(Instant::now());
    ledger.sent(&attempt, stamps.clone());
    tokio::time::advance(span).await;
    StampedReader::new(&b"answer"[..], stamps).read_u8().await.unwrap();
    ledger.close(&attempt, true);
}

const TIMEOUT: Duration = Duration::from_secs(30);

fn gives_up(ledger: &Ledger, attempt: &Attempt) -> bool {
    // "Wait a moment" means that patience was extended; the next look tells for how long.
    let mut verdict = ledger.judge(attempt, TIMEOUT, true);
    if verdict == Verdict::Wait(Duration::from_millis(1)) {
        verdict = ledger.judge(attempt, TIMEOUT, true);
    }
    matches!(verdict, Verdict::GiveUp(_))
}

#[tokio::test(start_paused = true)]
async fn assignments_are_counted_until_they_are_closed() {
    let ledger = ledger();
    ledger.assign(0, peer(1));
    ledger.assign(0, peer(2)); // Already on its way; the second entry is a no-op.
    let attempt = running(&ledger, 0, 1);
    let other = running(&ledger, 2, 2);
    assert_eq!(ledger.pending(), [1, 3]);
    assert_eq!(ledger.active(), [(peer(1), 1), (peer(2), 1)]);
    ledger.close(&attempt, true);
    ledger.close(&other, false);
    ledger.close(&other, false);
    assert_eq!(ledger.pending(), [1, 2, 3], "a failed range is pending again, once");
    assert!(ledger.active().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proof_is_good_for_one_hand_over() {
    let ledger = ledger();
    let attempt = running(&ledger, 0, 1);
    ledger.report(&attempt, &Ending::Verified, delivered(10));
    ledger.close(&attempt, true);
    assert!(ledger.take_proven(0));
    assert!(!ledger.take_proven(0));
    assert!(!ledger.take_proven(99));
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_only_if_somebody_else_could_be_asked() {
    let ledger = ledger();
    let attempt = running(&ledger, 0, 1);
    tokio::time::advance(Duration::from_millis(1100)).await;
    ledger.set_candidates(vec![peer(1)]);
    assert!(!gives_up(&ledger, &attempt));
    tokio::time::advance(Duration::from_millis(1100)).await;
    ledger.set_candidates(vec![peer(1), peer(2)]);
    assert!(gives_up(&ledger, &attempt), "its doubled patience is over too");
}

#[tokio::test(start_paused = true)]
async fn patience_doubles_for_a_range_that_was_given_up_before() {
    let ledger = ledger();
    ledger.set_candidates(vec![peer(1), peer(2)]);
    let first = running(&ledger, 0, 1);
    tokio::time::advance(Duration::from_millis(1100)).await;
    assert!(gives_up(&ledger, &first));
    ledger.report(&first, &Ending::TimedOut(String::new()), Seen::default());
    ledger.close(&first, false);
    let second = running(&ledger, 0, 2);
    tokio::time::advance(Duration::from_millis(1100)).await;
    assert!(!gives_up(&ledger, &second));
    tokio::time::advance(Duration::from_millis(1000)).await;
    assert!(gives_up(&ledger, &second));
}

#[tokio::test(start_paused = true)]
async fn when_most_busy_peers_are_silent_together_nobody_is_given_up() {
    let ledger = ledger();
    ledger.set_candidates(vec![peer(1), peer(2), peer(3)]);
    let attempts = [running(&ledger, 0, 1), running(&ledger, 1, 2), running(&ledger, 2, 3)];
    tokio::time::advance(Duration::from_millis(1100)).await;
    for attempt in &attempts {
        assert!(!gives_up(&ledger, attempt), "our own link is down");
    }
}

#[tokio::test(start_paused = true)]
async fn one_silent_peer_among_busy_ones_is_given_up() {
    let ledger = ledger();
    ledger.set_candidates(vec![peer(1), peer(2), peer(3)]);
    let silent = running(&ledger, 0, 1);
    tokio::time::advance(Duration::from_millis(900)).await;
    running(&ledger, 1, 2);
    running(&ledger, 2, 3);
    tokio::time::advance(Duration::from_millis(200)).await;
    assert!(gives_up(&ledger, &silent));
}

#[tokio::test(start_paused = true)]
async fn without_patience_only_the_timeout_ends_a_request() {
    let ledger = ledger();
    ledger.set_candidates(vec![peer(1), peer(2)]);
    let attempt = running(&ledger, 0, 1);
    tokio::time::advance(Duration::from_secs(29)).await;
    assert_eq!(ledger.judge(&attempt, TIMEOUT, false), Verdict::Wait(Duration::from_secs(1)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(matches!(ledger.judge(&attempt, TIMEOUT, false), Verdict::GiveUp(_)));
}

#[tokio::test(start_paused = true)]
async fn waiting_always_ends() {
    let ledger = ledger();
    ledger.set_candidates(vec![peer(1)]);
    let attempt = running(&ledger, 0, 1);
    let started = Instant::now();
    loop {
        match ledger.judge(&attempt, TIMEOUT, true) {
            Verdict::GiveUp(_) | Verdict::Move => break,
            Verdict::Wait(wait) => {
                assert!(!wait.is_zero(), "a wait makes progress");
                tokio::time::advance(wait).await;
            }
        }
    }
    assert!(started.elapsed() <= TIMEOUT + Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn bad_peers_left_over_at_the_end_are_no_witnesses_for_each_other() {
    let ledger = ledger();
    ledger.set_candidates((1..=5).map(peer).collect());
    let left = [running(&ledger, 0, 1), running(&ledger, 1, 2)];
    for byte in 3..=5 {
        delivers(&ledger, 2, byte, Duration::from_millis(300)).await;
    }
    tokio::time::advance(Duration::from_millis(200)).await;
    for attempt in &left {
        assert!(gives_up(&ledger, attempt), "others delivered in the meantime");
    }
}

#[tokio::test(start_paused = true)]
async fn who_ended_as_the_link_went_down_is_no_witness_against_those_still_busy() {
    let ledger = ledger();
    ledger.set_candidates((1..=3).map(peer).collect());
    let busy = [running(&ledger, 0, 1), running(&ledger, 1, 2)];
    delivers(&ledger, 2, 3, Duration::from_millis(100)).await;
    tokio::time::advance(Duration::from_millis(1100)).await;
    for attempt in &busy {
        assert!(!gives_up(&ledger, attempt), "nobody delivered since");
    }
}

/// A selector for which peers 1 to 3 deliver a chunk in a tenth of a second.
fn knowing() -> Arc<PeerSelector> {
    let selector = PeerSelector::new(SelectorConfig::deterministic(1_000_000, 1));
    let given: Vec<Candidate> = (1..=3).map(|byte| Candidate::new(peer(byte), Vec::new())).collect();
    selector.select(&ContentRequest::new(content(), 3), &given);
    for index in 0..30 {
        selector.record_outcome(&TransferOutcome {
            peer_id: peer(1 + index as u8 % 3),
            content: content(),
            kind: OutcomeKind::Range { index, offset: 0, length: CHUNK },
            result: OutcomeResult::Success,
            bytes: CHUNK,
            duration_ms: 100,
            rtt_ms: Some(10),
            at: 1_000_000,
        });
    }
    Arc::new(selector)
}

#[tokio::test(start_paused = true)]
async fn the_last_range_moves_from_a_dribbler_long_before_its_limit() {
    for others_pending in [false, true] {
        let manifest = Arc::new(Manifest::of_bytes(&vec![1; 4 * CHUNK as usize]));
        let layout = Arc::new(MissingLayout::new(manifest, &[]));
        let ledger = Ledger::new(layout, Arc::new(Scorebook::new(Some(knowing()))), content());
        ledger.set_candidates((1..=3).map(peer).collect());
        for range in 0..if others_pending { 2 } else { 3 } {
            delivers(&ledger, range, 1, Duration::from_millis(100)).await;
        }
        let attempt = ledger.begin(3, peer(2)).unwrap();
        let stamps = Stamps::new(Instant::now());
        ledger.sent(&attempt, stamps.clone());
        let mut reader = StampedReader::new(&b"so few bytes"[..], stamps);
        tokio::time::advance(Duration::from_millis(800)).await;
        reader.read_u8().await.unwrap();
        // Two seconds are the least that a range gets in all.
        assert_eq!(gives_up(&ledger, &attempt), !others_pending);
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_that_moved_often_is_left_where_it_is() {
    let moves_after = |abandonments: u32| async move {
        let manifest = Arc::new(Manifest::of_bytes(&vec![1; CHUNK as usize]));
        let layout = Arc::new(MissingLayout::new(manifest, &[]));
        let ledger = Ledger::new(layout, Arc::new(Scorebook::new(Some(knowing()))), content());
        ledger.set_candidates((1..=3).map(peer).collect());
        ledger.lock().ranges[0].abandonments = abandonments;
        let attempt = ledger.begin(0, peer(2)).unwrap();
        let stamps = Stamps::new(Instant::now());
        ledger.sent(&attempt, stamps.clone());
        // Less than an eighth of it in eight tenths of a second: seven more, against some tenths of a second elsewhere.
        let mut reader = StampedReader::new(&[0; CHUNK as usize / 8][..], stamps);
        tokio::time::advance(Duration::from_millis(10)).await;
        reader.read_u8().await.unwrap();
        tokio::time::advance(Duration::from_millis(790)).await;
        reader.read_exact(&mut vec![0; CHUNK as usize / 8 - 1]).await.unwrap();
        gives_up(&ledger, &attempt)
    };
    assert!(moves_after(0).await && moves_after(1).await);
    assert!(!moves_after(200).await && !moves_after(u32::MAX).await);
}
