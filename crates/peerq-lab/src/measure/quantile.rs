//! Quantiles, everywhere by the same definition.
//!
//! The q-quantile of n ascending values is the value at place q·(n − 1), counted from zero, by linear interpolation between its neighbours: type 7 of Hyndman and Fan,
//! "Sample Quantiles in Statistical Packages" (The American Statistician 50(4), 1996), what the command line's reports use too.

/// The `share` quantile of `values` in any order; none for no values, or where it lies at a value without bound.
/// Not-a-number counts as without bound; shares outside 0..=1 are clamped.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|value| if value.is_nan() { f64::INFINITY } else { *value }).collect();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, share)
}

/// The same of values that ascend already.
pub fn of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    // Not-a-number survives a clamp and becomes place 0.
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    let fraction = place - below as f64;
    let value = if fraction > 0.0 { low + (high - low) * fraction } else { low };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0, 5.0], 0.125), Some(1.5));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Some(2.0));
    }

    #[test]
    fn hostile_values_have_no_quantile_rather_than_a_wrong_one() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, f64::INFINITY], 0.5), None);
        assert_eq!(quantile(&[1.0, f64::NAN, 2.0], 0.5), Some(2.0), "what never ended is the longest");
        assert_eq!(quantile(&[1.0, 2.0], 0.0), Some(1.0));
        assert_eq!((quantile(&[1.0, 2.0], -3.0), quantile(&[1.0, 2.0], 9.0)), (Some(1.0), Some(2.0)));
        assert!(quantile(&[1.0, 2.0], f64::NAN).is_none_or(f64::is_finite));
    }
}
