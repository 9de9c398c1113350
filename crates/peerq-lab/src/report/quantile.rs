//! Samples of completion times: sorting, thinning that keeps quantiles, rounding for documents.

pub(crate) use crate::measure::quantile::of_sorted as quantile;

/// Sorted copy; values are finite by construction of the lines.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// At most `most` of the values, in their order: each stretch of them is represented by one of its members, chosen so that high and low ones alternate in rank.
pub(crate) fn thin(values: &[f64], most: usize) -> Vec<f64> {
    if values.len() <= most {
        return values.to_vec();
    }
    (0..most)
        .map(|part| {
            let stretch = &values[part * values.len() / most..(part + 1) * values.len() / most];
            let ranked = sorted(stretch.to_vec());
            // A low-discrepancy walk over the ranks, so that the thinned values have the distribution of all of them.
            let rank = (part as f64 * 0.618_033_988_75).fract() * ranked.len() as f64;
            ranked[(rank as usize).min(ranked.len() - 1)]
        })
        .collect()
}

/// Six significant digits: what a figure of a simulation can carry, and short to read.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // The text form is the same on every platform; a power of ten from the maths library need not be.
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_distribution_within_two_percent() {
        let values: Vec<f64> = (0..20_000).map(|i| f64::from((i * 7919) % 20_000)).collect();
        let thinned = sorted(thin(&values, 1024));
        for q in [0.1, 0.5, 0.9, 0.99] {
            assert!((quantile(&thinned, q).unwrap() / 20_000.0 - q).abs() < 0.02, "{q}");
        }
    }

    #[test]
    fn rounding_keeps_six_digits() {
        assert_eq!(rounded(1234.56789), 1234.57);
        assert_eq!(rounded(0.000_123_456_78), 0.000_123_457);
    }
}
