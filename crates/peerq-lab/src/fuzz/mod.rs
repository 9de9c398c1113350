//! Fuzzing: a seed draws a whole world, and whatever it is, some things have to hold (issue B, "Fuzz mode").
//!
//! The one idea: two phases. In the *safety* phase faults of all kinds happen, and nothing has to go well, but nothing may go wrong. In the *liveness* phase the same
//! faults heal, and then work has to get done within a budget. A failing seed is all that is needed to see it again.

mod draw;
mod liveness;
mod safety;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::policy::PolicyKind;

pub use draw::{Drawn, drawn};

/// The policies that have to hold: ours, through the selector and bare.
const FUZZED: [PolicyKind; 2] = [PolicyKind::Peerq, PolicyKind::Engine];

/// What a fuzz run found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fuzzed {
    /// The first seed.
    pub first: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Simulated events.
    pub events: u64,
    /// A digest of every result: the same seeds give the same digest on every run, machine and number of threads.
    pub digest: String,
    /// What did not hold, by seed.
    pub failures: Vec<Failure>,
}

/// Something that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The seed that shows it.
    pub seed: u64,
    /// The policy it happened to.
    pub policy: &'static str,
    /// `safety` or `liveness`.
    pub phase: &'static str,
    /// What did not hold.
    pub what: String,
}

impl fmt::Display for Fuzzed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} seeds from {}, {} events, digest {}", self.seeds, self.first, self.events, self.digest)?;
        for failure in &self.failures {
            writeln!(f, "FAIL seed {} {} {}: {}", failure.seed, failure.policy, failure.phase, failure.what)?;
        }
        match self.failures.first() {
            None => f.write_str("all hold"),
            // Last, where it is found first.
            Some(first) => write!(f, "failing seed: {0}\nrepeat with: peerq lab fuzz --seed {0}", first.seed),
        }
    }
}

/// Fuzzes `seeds` seeds from `first` on, on this many threads (as many as cores where absent). `watch` is told after each seed how many are done.
pub fn fuzz(first: u64, seeds: u64, threads: Option<usize>, watch: &(dyn Fn(u64) + Sync)) -> Fuzzed {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(cores).clamp(1, usize::try_from(seeds).unwrap_or(usize::MAX).max(1));
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let found: Mutex<Vec<(u64, One)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let offset = next.fetch_add(1, Ordering::Relaxed);
            if offset >= seeds {
                break;
            }
            let one = fuzz_one(first.wrapping_add(offset));
            found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((offset, one));
            watch(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by_key(|(offset, _)| *offset);
    let mut digest = Digest::default();
    let mut all = Fuzzed { first, seeds, events: 0, digest: String::new(), failures: Vec::new() };
    for (_, one) in found {
        all.events += one.events;
        one.digest.hash(&mut digest);
        all.failures.extend(one.failures);
    }
    all.digest = format!("{:016x}", digest.finish());
    all
}

#[derive(Default)]
struct One {
    events: u64,
    digest: u64,
    failures: Vec<Failure>,
}

fn fuzz_one(seed: u64) -> One {
    let drawn = drawn(seed);
    let mut one = One::default();
    let mut digest = Digest::default();
    for kind in FUZZED {
        for (phase, found) in
            [("safety", safety::check(&drawn, kind, seed)), ("liveness", liveness::check(&drawn, kind, seed))]
        {
            one.events += found.events;
            digest.write(found.text.as_bytes());
            let failure = |what: String| Failure { seed, policy: kind.name(), phase, what };
            one.failures.extend(found.broken.into_iter().map(failure));
        }
    }
    one.digest = digest.finish();
    one
}

/// What one run showed.
#[derive(Default)]
struct Found {
    events: u64,
    /// The result, for the digest.
    text: String,
    /// What did not hold.
    broken: Vec<String>,
}

/// FNV-1a: a digest that is the same everywhere, which the standard hasher does not promise.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_hold_and_are_the_same_on_one_thread_and_two() {
        let one = fuzz(1, 12, Some(1), &|_| ());
        assert!(one.failures.is_empty(), "{one}");
        assert_eq!(one, fuzz(1, 12, Some(2), &|_| ()));
        assert_ne!(one.digest, fuzz(2, 12, Some(2), &|_| ()).digest);
    }

    #[test]
    fn the_failing_seed_and_the_command_to_repeat_it_come_last() {
        let failure = Failure { seed: 41, policy: "peerq", phase: "safety", what: "it broke".to_owned() };
        let found = Fuzzed { first: 0, seeds: 50, events: 9, digest: "0".to_owned(), failures: vec![failure] };
        assert!(found.to_string().ends_with("failing seed: 41\nrepeat with: peerq lab fuzz --seed 41"));
    }

    #[test]
    fn no_seeds_is_no_work() {
        assert_eq!(fuzz(7, 0, None, &|_| ()).events, 0);
    }
}
