//! Many threads with one selector: nobody who records waits for a selection, nothing is lost, and a thread on its own sees what it told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use dig_peer_selector::tap::{Call, Tap};
use dig_peer_selector::{
    Candidate, ContentId, ContentRequest, OutcomeKind, OutcomeResult, PeerId, PeerSelector, SelectorConfig,
    TransferOutcome,
};
use peer_quality::units::Time;

fn peer(nth: u8) -> PeerId {
    PeerId::from_bytes([nth; 32])
}

fn request() -> ContentRequest {
    ContentRequest::new(ContentId::store([9; 32]), 2)
}

fn delivery(from: PeerId) -> TransferOutcome {
    TransferOutcome {
        peer_id: from,
        content: request().content,
        kind: OutcomeKind::Range { index: 0, offset: 0, length: 1 << 18 },
        result: OutcomeResult::Success,
        bytes: 1 << 18,
        duration_ms: 50,
        rtt_ms: Some(5),
        at: 1_000,
    }
}

fn samples(selector: &PeerSelector, of: PeerId) -> u64 {
    selector.peer_snapshot(&of).map_or(0, |snapshot| snapshot.samples)
}

/// Keeps the first selection from ending until it is told to.
#[derive(Debug)]
struct Hold {
    entered: Mutex<Sender<()>>,
    leave: Mutex<Receiver<()>>,
    is_over: AtomicBool,
}

impl Tap for Hold {
    fn begins(&self, _seed: u64, _capacity: usize) {}

    fn called(&self, _at: Time, call: &Call<'_>) {
        if matches!(call, Call::Select { .. }) && !self.is_over.swap(true, Ordering::Relaxed) {
            self.entered.lock().unwrap().send(()).unwrap();
            self.leave.lock().unwrap().recv().unwrap();
        }
    }
}

/// A selector inside a selection that ends when something is sent.
fn held() -> (Arc<PeerSelector>, std::thread::JoinHandle<()>, Sender<()>) {
    let ((entered, has_entered), (go, leave)) = (channel(), channel());
    let tap = Hold { entered: Mutex::new(entered), leave: Mutex::new(leave), is_over: AtomicBool::new(false) };
    let selector = Arc::new(PeerSelector::with_tap(SelectorConfig::deterministic(1_000, 7), Arc::new(tap)));
    let selecting = Arc::clone(&selector);
    let thread = std::thread::spawn(move || {
        selecting.select(&request(), &[Candidate::new(peer(1), Vec::new())]);
    });
    has_entered.recv().unwrap();
    (selector, thread, go)
}

#[test]
fn an_outcome_does_not_wait_for_a_selection_and_counts_in_the_next_call() {
    let (selector, thread, go) = held();
    // Were it to wait, the test would never end.
    for _ in 0..100 {
        selector.record_outcome(&delivery(peer(1)));
    }
    go.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(samples(&selector, peer(1)), 100);
}

#[test]
fn what_no_longer_fits_waits_and_is_not_lost() {
    let (selector, thread, go) = held();
    let recorders: Vec<_> = (2..5)
        .map(|nth| {
            let selector = Arc::clone(&selector);
            std::thread::spawn(move || (0..1_000).for_each(|_| selector.record_outcome(&delivery(peer(nth)))))
        })
        .collect();
    go.send(()).unwrap();
    recorders.into_iter().for_each(|recorder| recorder.join().unwrap());
    thread.join().unwrap();
    for nth in 2..5 {
        assert_eq!(samples(&selector, peer(nth)), 1_000);
    }
}

#[test]
fn threads_that_record_and_select_at_once_lose_nothing() {
    let selector = Arc::new(PeerSelector::new(SelectorConfig::deterministic(1_000, 7)));
    let candidates: Vec<Candidate> = (0..40).map(|nth| Candidate::new(peer(nth), Vec::new())).collect();
    std::thread::scope(|scope| {
        for nth in 0..4 {
            let selector = &selector;
            scope.spawn(move || {
                for told in 1..=500 {
                    selector.record_outcome(&delivery(peer(nth)));
                    if told % 50 == 0 {
                        assert_eq!(samples(selector, peer(nth)), told, "a thread sees what it told");
                    }
                }
            });
        }
        scope.spawn(|| (0..200).for_each(|_| drop(selector.select(&request(), &candidates))));
    });
    for nth in 0..4 {
        assert_eq!(samples(&selector, peer(nth)), 500);
    }
}
