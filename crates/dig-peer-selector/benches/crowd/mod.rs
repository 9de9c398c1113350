//! What many peers and many threads cost: memory of a full registry, and outcomes recorded beside each other and beside selections.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::subject::{ours, theirs};

/// Candidates of the selections beside which is recorded.
const CANDIDATES: usize = 1000;
/// A download asks about every end of a range, some hundred times a second; here is one that is in a hurry.
const SELECTION_EVERY: Duration = Duration::from_millis(1);

/// Bytes of a registry of `peers` peers, each with one address and a record, as far as the system tells; none elsewhere than on Linux.
pub(crate) fn bytes_of(peers: usize) -> Option<u64> {
    let before = resident_bytes()?;
    let mut full = ours::Full::new(peers);
    full.measure_all();
    Some(resident_bytes()?.saturating_sub(before))
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Nanoseconds from one recorded outcome to the next while `threads` record as fast as they can and one more selects.
pub(crate) fn record_together(selector: &ours::Shared, threads: usize, each: usize) -> f64 {
    let (is_over, begun) = (AtomicBool::new(false), Instant::now());
    let recorded = AtomicUsize::new(0);
    let mut elapsed = Duration::ZERO;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                selector.select();
                std::thread::sleep(SELECTION_EVERY);
            }
        });
        let record = |thread: usize| {
            selector.record(thread * CANDIDATES / 2, each);
            recorded.fetch_add(each, Ordering::Relaxed);
        };
        let recorders: Vec<_> = (0..threads).map(|thread| scope.spawn(move || record(thread))).collect();
        recorders.into_iter().for_each(|recorder| drop(recorder.join()));
        elapsed = begun.elapsed();
        is_over.store(true, Ordering::Relaxed);
    });
    elapsed.as_nanos() as f64 / recorded.into_inner().max(1) as f64
}

pub(crate) fn shared() -> ours::Shared {
    ours::Shared::new(CANDIDATES)
}

/// Nanoseconds inside one `record_outcome`, a few at a time, while another thread selects among thousands without a pause.
macro_rules! beside_selections {
    ($name:ident, $side:ident) => {
        pub(crate) fn $name(batches: usize) -> Vec<f64> {
            const A_FEW: usize = 16;
            let selector = $side::Shared::new(4000);
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| while !is_over.load(Ordering::Relaxed) && selector.select().is_some() {});
                let record = |batch: usize| {
                    std::thread::sleep(Duration::from_micros(300));
                    // Where a selection panicked, the published selector's lock is poisoned: what was measured until then has to do.
                    let few = catch_unwind(AssertUnwindSafe(|| selector.record(batch * A_FEW, A_FEW)));
                    few.ok().map(|elapsed| elapsed.as_nanos() as f64 / A_FEW as f64)
                };
                let samples = (0..batches).map_while(record).collect();
                is_over.store(true, Ordering::Relaxed);
                samples
            })
        }
    };
}

beside_selections!(ours_beside_selections, ours);
beside_selections!(theirs_beside_selections, theirs);
