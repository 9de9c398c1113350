//! Wiring of a selector: a clock, a seed, a bound on memory (spec §5.6). There is no knob for behaviour (spec §1.5).

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use peer_quality::units::Time;

/// Peers remembered by default.
pub const DEFAULT_REGISTRY_CAPACITY: usize = 4096;

/// Seconds after which a dispatched range without an outcome is taken as lost and its place released (spec §5.3).
pub const DISPATCH_TTL_SECS: u64 = peer_quality::measure::DISPATCH_TTL.as_micros() / 1_000_000;

/// Where a selector reads the time.
#[derive(Clone, Default)]
pub struct ClockSource(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<AtomicU64>),
    /// Microseconds, for simulations in virtual time.
    Virtual(Arc<AtomicU64>),
}

impl ClockSource {
    /// The system's clock. Ages are measured on its monotonic side, so a step of the wall clock changes no decision.
    pub fn system() -> Self {
        ClockSource::default()
    }

    /// A clock that stands at `start` unix seconds until it is moved; clones share it.
    pub fn manual(start: u64) -> Self {
        ClockSource(Source::Manual(Arc::new(AtomicU64::new(start))))
    }

    /// A clock at `start` microseconds that [`set_micros`](Self::set_micros) moves: a manual one as fine as the system's, for simulations. Not part of the
    /// specified interface.
    #[doc(hidden)]
    pub fn virtual_micros(start: u64) -> Self {
        ClockSource(Source::Virtual(Arc::new(AtomicU64::new(start))))
    }

    /// Sets a clock of [`virtual_micros`](Self::virtual_micros); does nothing to others.
    #[doc(hidden)]
    pub fn set_micros(&self, micros: u64) {
        if let Source::Virtual(now) = &self.0 {
            now.store(micros, Ordering::Relaxed);
        }
    }

    /// Unix seconds.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Source::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
            Source::Manual(secs) => secs.load(Ordering::Relaxed),
            Source::Virtual(micros) => micros.load(Ordering::Relaxed) / 1_000_000,
        }
    }

    /// Moves a manual clock forward by `secs` seconds, saturating; does nothing to the system's.
    pub fn advance(&self, secs: u64) {
        if let Source::Manual(now) = &self.0 {
            let later = |now: u64| Some(now.saturating_add(secs));
            let _ = now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        }
    }

    /// Sets a manual clock to `secs` unix seconds, forwards or back; does nothing to the system's.
    pub fn set(&self, secs: u64) {
        if let Source::Manual(now) = &self.0 {
            now.store(secs, Ordering::Relaxed);
        }
    }

    /// The moment for the engine: monotonic microseconds, or the manual seconds.
    pub(crate) fn moment(&self) -> Time {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        match &self.0 {
            Source::System => {
                let elapsed = ORIGIN.get_or_init(Instant::now).elapsed();
                Time::from_micros(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
            }
            Source::Manual(secs) => Time::from_secs(secs.load(Ordering::Relaxed)),
            Source::Virtual(micros) => Time::from_micros(micros.load(Ordering::Relaxed)),
        }
    }
}

impl std::fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Source::System => f.write_str("ClockSource::System"),
            Source::Manual(secs) => write!(f, "ClockSource::Manual({})", secs.load(Ordering::Relaxed)),
            Source::Virtual(micros) => write!(f, "ClockSource::Virtual({} µs)", micros.load(Ordering::Relaxed)),
        }
    }
}

/// How a selector is wired.
#[derive(Clone, Debug)]
pub struct SelectorConfig {
    /// Where it reads the time.
    pub clock: ClockSource,
    /// Seeds every random choice; `None` draws a seed from the system.
    pub rng_seed: Option<u64>,
    /// How many peers it remembers, at least 1.
    pub registry_capacity: usize,
}

impl Default for SelectorConfig {
    fn default() -> Self {
        SelectorConfig { clock: ClockSource::system(), rng_seed: None, registry_capacity: DEFAULT_REGISTRY_CAPACITY }
    }
}

impl SelectorConfig {
    /// A manual clock at `start` unix seconds and a fixed seed: the same calls give the same answers (invariant F).
    pub fn deterministic(start: u64, seed: u64) -> Self {
        SelectorConfig { clock: ClockSource::manual(start), rng_seed: Some(seed), ..SelectorConfig::default() }
    }

    pub(crate) fn seed(&self) -> u64 {
        // The standard hasher's keys are the portable way to a few random bits without another dependency.
        self.rng_seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_share_its_hand() {
        let clock = ClockSource::manual(10);
        clock.clone().advance(5);
        assert_eq!((clock.now(), clock.moment()), (15, Time::from_secs(15)));
        clock.advance(u64::MAX);
        assert_eq!(clock.now(), u64::MAX);
        clock.set(3);
        assert_eq!(clock.now(), 3);
    }

    #[test]
    fn a_virtual_clock_is_as_fine_as_the_systems() {
        let clock = ClockSource::virtual_micros(5);
        clock.clone().set_micros(2_500_000);
        assert_eq!((clock.now(), clock.moment()), (2, Time::from_micros(2_500_000)));
        clock.set(9);
        clock.advance(9);
        assert_eq!(clock.now(), 2, "it is moved by its own method alone");
        let manual = ClockSource::manual(1);
        manual.set_micros(7_000_000);
        assert_eq!(manual.now(), 1);
    }

    #[test]
    fn the_system_clock_cannot_be_moved() {
        let clock = ClockSource::system();
        clock.set(0);
        assert!(clock.now() > 1_600_000_000);
        assert!(clock.moment() <= clock.moment());
    }
}
