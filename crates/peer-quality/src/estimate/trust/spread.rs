//! How the peers' own rates are spread: weighted mean and variance of logarithms, kept as running sums so that a change costs O(1) (EST-4, EST-5).
//!
//! A vote weighs what its caller says, at most 1: a peer's own share in its rate, and where groups of addresses are known its part of its group (AUD-2), so that
//! neither a burst nor a crowd in one place speaks for everyone.

/// Fewer peers have no spread that says anything. Fewer would let a pair decide how much trust costs.
const PEERS_MIN: u32 = 5;

/// A vote: the logarithm and its weight.
pub type RateVote = (f64, f64);

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    total: f64,
    squares: f64,
    weight: f64,
    count: u32,
}

impl Spread {
    /// Replaces one peer's vote.
    pub fn replace(&mut self, before: Option<RateVote>, after: Option<RateVote>) {
        if let Some((ln, weight)) = before {
            self.add(ln, -weight);
            self.count = self.count.saturating_sub(1);
        }
        if let Some((ln, weight)) = after {
            self.add(ln, weight);
            self.count += 1;
        }
        if self.count == 0 {
            // Sheds what rounding left behind.
            *self = Spread::default();
        }
    }

    /// The sum of both.
    pub fn plus(self, other: Spread) -> Spread {
        Spread {
            total: self.total + other.total,
            squares: self.squares + other.squares,
            weight: self.weight + other.weight,
            count: self.count + other.count,
        }
    }

    /// The mean with one vote for `assumed` among the rest: a lone thin sample is no population.
    pub fn mean_with(&self, assumed: f64) -> f64 {
        (self.total + assumed) / (self.weight.max(0.0) + 1.0)
    }

    /// The variance, from five peers on.
    pub fn variance(&self) -> Option<f64> {
        (self.count >= PEERS_MIN && self.weight > 0.0).then(|| {
            let mean = self.total / self.weight;
            (self.squares / self.weight - mean * mean).max(0.0)
        })
    }

    /// Whether nobody voted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, ln: f64, weight: f64) {
        self.total += ln * weight;
        self.squares += ln * ln * weight;
        self.weight += weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_is_the_weighted_one() {
        let mut spread = Spread::default();
        [-1.0, 1.0, -1.0, 1.0].iter().for_each(|&ln| spread.replace(None, Some((ln, 1.0))));
        assert_eq!(spread.variance(), None);
        spread.replace(None, Some((100.0, 0.0)));
        assert_eq!(spread.variance(), Some(1.0), "who weighs nothing moves nothing");
        assert_eq!(spread.mean_with(5.0), 1.0);
    }

    #[test]
    fn who_leaves_takes_the_vote_along() {
        let mut spread = Spread::default();
        for nth in 0..100 {
            spread.replace(None, Some((0.1 * f64::from(nth), 0.3)));
        }
        for nth in 0..100 {
            spread.replace(Some((0.1 * f64::from(nth), 0.3)), None);
        }
        assert_eq!(spread, Spread::default());
    }
}
