//! What peers are like on average: the prior of everyone unproven (EST-5, RANK-3), per kind of path.
//!
//! Averages are of logarithms over the peers now in the table, one vote a peer, kept as running sums so that a change costs O(1). The same averages tell
//! what a relayed path costs (spec §4.2): the learned ratio of relayed to direct delivery, never a constant.

use libm::{exp, log};

use crate::estimate::delivered::Delivered;
use crate::estimate::predicted::Deviation;
use crate::estimate::trust::coverage_half::TYPICAL_TRANSFER;
use crate::estimate::trust::spread::RateVote;
use crate::estimate::trust::{Noise, Spread};
use crate::facts::Path;
use crate::units::Slowness;

/// Assumed of the first peer ever: 100 ms, the median RTT of internet pairs (RIPE Atlas, p50 94.5 ms).
const FIRST_BYTE_S: f64 = 0.1;
/// Assumed of the first peer ever: 1.25 MB/s, the 10 Mb/s floor of the network profiles. Only relative rates matter once anyone was measured.
const RATE_BYTES_PER_S: f64 = 1.25e6;
/// Tail over mean of someone unknown: e^(1.645·0.5), the tail of a quantity seen once.
const TAIL_FACTOR: f64 = 2.28;
/// The spread of rates that this tail stands for, as a logarithm.
const RATE_SPREAD: f64 = 0.5;
/// Concurrency assumed of an unknown peer: the per-source default of the downloader it replaces.
/// Higher floods weak peers, lower leaves a lone fast one idle.
const CONCURRENCY: f64 = 4.0;

/// What to assume of a peer that was never measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Time to first byte, seconds.
    pub first_byte_s: f64,
    /// Slowness of a body.
    pub slowness: Slowness,
    /// The p95 of either, as a multiple of its mean.
    pub tail_factor: f64,
    /// Useful concurrency, requests.
    pub concurrency: u32,
    /// Spread of the peers' rates, as a logarithm.
    pub rate_spread: f64,
    /// The coverage at which a sample weighs half, bytes (EST-4).
    pub coverage_half: f64,
}

impl Default for Prior {
    #[inline]
    fn default() -> Self {
        Prior {
            first_byte_s: FIRST_BYTE_S,
            slowness: Slowness::from_bytes_per_sec(RATE_BYTES_PER_S),
            tail_factor: TAIL_FACTOR,
            concurrency: CONCURRENCY as u32,
            rate_spread: RATE_SPREAD,
            coverage_half: TYPICAL_TRANSFER,
        }
    }
}

/// Steps of a number in a sum: whole ones, so that a sum does not depend on the order of its terms and gives back exactly what it got.
const STEPS: f32 = (1 << 20) as f32;

/// One peer's number in an average; the default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Term {
    steps: i32,
    count: u32,
}

impl Term {
    /// A number within ±2048.
    #[inline]
    fn of(value: f32) -> Self {
        Term { steps: (value * STEPS) as i32, count: 1 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    steps: i64,
    count: u32,
}

impl Sum {
    #[inline]
    fn replace(&mut self, before: Term, after: Term) {
        self.steps += i64::from(after.steps) - i64::from(before.steps);
        self.count = self.count + after.count - before.count;
    }

    fn plus(self, other: Sum) -> Sum {
        Sum { steps: self.steps + other.steps, count: self.count + other.count }
    }

    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.steps as f64 / f64::from(STEPS) / f64::from(self.count))
    }
}

/// What one peer contributes to the averages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vote {
    first_byte_ln: Term,
    body_ln: Term,
    concurrency: Term,
    reliability: Term,
    rate: Option<RateVote>,
}

impl Vote {
    /// The same with the share of the peer's requests that end well, if any ended.
    #[inline]
    pub fn with_reliability(self, share: Option<f64>) -> Vote {
        Vote { reliability: share.map_or(Term::default(), |share| Term::of(share as f32)), ..self }
    }

    /// The vote of a peer with this record and this useful concurrency, 0 for none, and this rate on the wire.
    #[inline]
    pub fn of(delivered: &Delivered, concurrency: u16, rate: Option<RateVote>) -> Vote {
        let (first_byte_ln, body_ln) = delivered.logs();
        let term = |ln: Option<f32>| ln.map_or(Term::default(), Term::of);
        let counts = body_ln.is_some() && concurrency > 0;
        let concurrency = if counts { Term::of(concurrency.into()) } else { Term::default() };
        Vote {
            first_byte_ln: term(first_byte_ln),
            body_ln: term(body_ln),
            concurrency,
            reliability: Term::default(),
            rate,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    first_byte: Sum,
    body: Sum,
    concurrency: Sum,
    reliability: Sum,
}

impl Class {
    #[inline]
    fn replace(&mut self, before: &Vote, after: &Vote) {
        self.first_byte.replace(before.first_byte_ln, after.first_byte_ln);
        self.body.replace(before.body_ln, after.body_ln);
        self.concurrency.replace(before.concurrency, after.concurrency);
        self.reliability.replace(before.reliability, after.reliability);
    }
}

/// Running averages over the peers of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Population {
    classes: [Class; Path::COUNT],
    rates: Spread,
    noise: Noise,
}

impl Population {
    /// Replaces a peer's vote; the default vote is that of a peer which is not there.
    #[inline]
    pub fn revote(&mut self, before: (Path, &Vote), after: (Path, &Vote)) {
        if before.0 == after.0 {
            self.classes[before.0 as usize].replace(before.1, after.1);
        } else {
            self.classes[before.0 as usize].replace(before.1, &Vote::default());
            self.classes[after.0 as usize].replace(&Vote::default(), after.1);
        }
        if before.1.rate.is_some() || after.1.rate.is_some() {
            self.rates.replace(before.1.rate, after.1.rate);
        }
    }

    /// Counts how a burst deviated from its peer's own rate.
    pub fn deviated(&mut self, deviation: Deviation) {
        self.noise.observe(deviation.ln, deviation.bytes);
    }

    /// What to assume of a peer on `path`: the average of its kind, of everyone where its kind was never measured, and the fixed first
    /// assumption where nobody was. A relayed path is never assumed better than the rest (spec §3.3).
    pub fn prior(&self, path: Path) -> Prior {
        let all = self.classes.iter().fold(Class::default(), |sum, class| Class {
            first_byte: sum.first_byte.plus(class.first_byte),
            body: sum.body.plus(class.body),
            concurrency: sum.concurrency.plus(class.concurrency),
            reliability: sum.reliability.plus(class.reliability),
        });
        let own = self.classes[path as usize];
        let at_least_all = |own: Option<f64>, all: Option<f64>| match (own, all) {
            (Some(own), Some(all)) if path == Path::Relayed => Some(own.max(all)),
            (own, all) => own.or(all),
        };
        let default = Prior::default();
        Prior {
            first_byte_s: at_least_all(own.first_byte.mean(), all.first_byte.mean()).map_or(default.first_byte_s, exp),
            slowness: at_least_all(own.body.mean(), all.body.mean())
                .map_or_else(|| self.slowness_on_the_wire(), |ln| Slowness::from_secs_per_byte(exp(ln))),
            concurrency: self.concurrency(path),
            rate_spread: self.rates.variance().map_or(RATE_SPREAD, |variance| libm::sqrt(variance).max(RATE_SPREAD)),
            coverage_half: self.noise.half(&self.rates),
            ..default
        }
    }

    /// The mean of the peers' rates on the wire, for want of deliveries. Where anyone delivered, the deliveries are what the unproven are taken to be like: a wire's rate leaves
    /// out what a fetch also waits for, and would make them look better than the proven.
    fn slowness_on_the_wire(&self) -> Slowness {
        let assumed = Slowness::from_bytes_per_sec(RATE_BYTES_PER_S);
        match self.rates.is_empty() {
            true => assumed,
            false => Slowness::from_secs_per_byte(exp(self.rates.mean_with(log(assumed.secs_per_byte())))),
        }
    }

    /// Useful concurrency to start a peer on `path` with, at least 1: the average of its kind, and no more than for the very first peer. Too few at first
    /// cost a peer some ends until it climbs; too many cost a slow one a queue that nobody waits out.
    #[inline]
    pub fn concurrency(&self, path: Path) -> u32 {
        let all = self.classes.iter().fold(Sum::default(), |sum, class| sum.plus(class.concurrency));
        let mean = self.classes[path as usize].concurrency.mean().or(all.mean()).unwrap_or(CONCURRENCY);
        ((mean.min(CONCURRENCY) + 0.5) as u32).max(1)
    }

    /// What a relayed path costs, in (0, 1] (spec §4.2): its delivery rate over that of direct paths, and its share of requests that end well over theirs. 1 for what either was never
    /// seen to do; paths of an unknown kind are neither.
    pub fn relayed_penalty(&self) -> f64 {
        let (direct, relayed) = (&self.classes[Path::Direct as usize], &self.classes[Path::Relayed as usize]);
        let rate = match (direct.body.mean(), relayed.body.mean()) {
            (Some(direct), Some(relayed)) => exp(direct - relayed),
            _ => 1.0,
        };
        let reliability = match (direct.reliability.mean(), relayed.reliability.mean()) {
            (Some(direct), Some(relayed)) if direct > 0.0 => relayed / direct,
            _ => 1.0,
        };
        (rate * reliability).clamp(0.01, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Delivery, End, Sample};
    use crate::units::{Bytes, Span};

    fn vote(rate: u64) -> Vote {
        let mut delivered = Delivered::default();
        let delivery = Delivery {
            bytes: Bytes::new(rate),
            elapsed: Span::from_secs(1),
            first_byte: Some(Span::from_micros(1_000)),
            end: End::Completed,
        };
        delivered.observe(&Sample::of(&delivery).unwrap(), 1.0);
        Vote::of(&delivered, 2, None)
    }

    fn joined(members: &[(Path, u64)]) -> Population {
        let mut population = Population::default();
        for &(path, rate) in members {
            population.revote((path, &Vote::default()), (path, &vote(rate)));
        }
        population
    }

    #[test]
    fn an_unknown_peer_gets_the_geometric_mean_of_its_kind() {
        let population = joined(&[(Path::Direct, 1_000_000), (Path::Direct, 4_000_000), (Path::Relayed, 10_000)]);
        let rate = population.prior(Path::Direct).slowness.bytes_per_sec();
        assert!((rate / 2_000_000.0 - 1.0).abs() < 0.01, "{rate}");
        assert_eq!(population.prior(Path::Direct).concurrency, 2);
    }

    #[test]
    fn a_newcomer_starts_with_no_more_requests_than_the_very_first_peer() {
        let mut population = Population::default();
        let vote = Vote { concurrency: Term::of(32.0), ..vote(1_000_000) };
        population.revote((Path::Direct, &Vote::default()), (Path::Direct, &vote));
        assert_eq!(population.concurrency(Path::Direct), CONCURRENCY as u32);
    }

    #[test]
    fn a_relayed_path_is_never_assumed_better_than_the_rest() {
        let population = joined(&[(Path::Direct, 100_000), (Path::Relayed, 10_000_000)]);
        let relayed = population.prior(Path::Relayed).slowness;
        assert!(relayed.bytes_per_sec() < 1_100_000.0);
    }

    #[test]
    fn the_relayed_penalty_follows_the_environment() {
        assert_eq!(joined(&[]).relayed_penalty(), 1.0);
        let even = joined(&[(Path::Direct, 1_000_000), (Path::Relayed, 990_000)]).relayed_penalty();
        let uneven = joined(&[(Path::Direct, 1_000_000), (Path::Relayed, 50_000)]).relayed_penalty();
        assert!(even > 0.95 && uneven < 0.06, "{even} {uneven}");
    }

    #[test]
    fn the_relayed_penalty_counts_failures_and_takes_unknown_paths_for_neither() {
        // C36: relayed links as fast as direct ones that fail every other time; and slow ones beside peers of unknown kind only.
        let mut population = joined(&[]);
        for (path, share) in [(Path::Direct, 1.0), (Path::Relayed, 0.5)] {
            let vote = vote(1_000_000).with_reliability(Some(share));
            population.revote((path, &Vote::default()), (path, &vote));
        }
        assert!((population.relayed_penalty() - 0.5).abs() < 1e-6);
        assert_eq!(joined(&[(Path::Unknown, 1_000_000), (Path::Relayed, 50_000)]).relayed_penalty(), 1.0);
        let with_unknown = joined(&[(Path::Direct, 1_000_000), (Path::Relayed, 200_000), (Path::Unknown, 200_000)]);
        assert!((with_unknown.relayed_penalty() - 0.2).abs() < 0.01);
    }

    #[test]
    fn averages_do_not_depend_on_who_came_first() {
        let members = [(Path::Direct, 1_000), (Path::Direct, 3_333_333), (Path::Direct, 77_000_000)];
        let mut reversed = members;
        reversed.reverse();
        assert_eq!(joined(&members).prior(Path::Direct), joined(&reversed).prior(Path::Direct));
    }

    #[test]
    fn who_leaves_takes_his_vote_along() {
        let mut population = joined(&[(Path::Unknown, 5_000_000)]);
        population.revote((Path::Unknown, &vote(5_000_000)), (Path::Unknown, &Vote::default()));
        assert_eq!(population.prior(Path::Unknown), Prior::default());
    }
}
