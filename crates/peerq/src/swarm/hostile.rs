//! How many peers are hostile, as people write it: a number, or a share of all.

use std::fmt;
use std::str::FromStr;

/// A number of peers (`2`), or a share of them (`25%`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Hostile {
    Number(u64),
    /// Percent, 0 to 100.
    Percent(f64),
}

impl Hostile {
    /// How many of `peers` that is, rounded to the nearest.
    pub(crate) fn of(self, peers: u64) -> u64 {
        match self {
            Hostile::Number(number) => number,
            Hostile::Percent(percent) => (peers as f64 * percent / 100.0).round() as u64,
        }
    }
}

impl FromStr for Hostile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither a number of peers nor a share of them; write 2 or 25%");
        match text.trim().strip_suffix('%') {
            None => text.trim().parse().map(Hostile::Number).map_err(|_| wrong()),
            Some(percent) => match percent.trim().parse() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Hostile::Percent(percent)),
                _ => Err(wrong()),
            },
        }
    }
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hostile::Number(number) => write!(f, "{number}"),
            Hostile::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_themselves_and_shares_for_the_nearest_number() {
        for (text, of_eight) in [("0", 0), ("3", 3), ("25%", 2), ("50 %", 4), ("6%", 0), ("100%", 8)] {
            assert_eq!(text.parse::<Hostile>().map(|hostile| hostile.of(8)), Ok(of_eight), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "-1", "101%", "-5%", "nan%", "half", "2.5"] {
            assert!(text.parse::<Hostile>().is_err_and(|error| error.contains("25%")), "{text}");
        }
    }
}
