//! Sizes and rates as people write and read them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes. Text form: `1000`, `64MiB`, `1.5 GB`; decimal units count by 1000, binary ones
/// (`KiB`, `MiB`, …) by 1024, upper or lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

/// Why a text is no size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeError {
    /// No number in front.
    #[error("`{0}` is no size; write a number and a unit, such as 64MiB or 1.5GB")]
    Number(String),
    /// An unknown unit.
    #[error("`{0}` is no unit; use B, kB, MB, GB, TB or KiB, MiB, GiB, TiB")]
    Unit(String),
    /// Too large for any file.
    #[error("`{0}` is larger than any file can be")]
    TooLarge(String),
}

/// Largest exactly representable size: 8 PiB, far above any file this is used for.
const BYTES_MAX: f64 = (1u64 << 53) as f64;

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let number: f64 = number.parse().map_err(|_| SizeError::Number(text.to_owned()))?;
        let unit = unit.trim();
        let factor = UNITS
            .iter()
            .find(|(name, _)| unit.eq_ignore_ascii_case(name))
            .map(|(_, factor)| *factor as f64)
            .ok_or_else(|| SizeError::Unit(unit.to_owned()))?;
        let bytes = number * factor;
        if bytes <= BYTES_MAX { Ok(Self(bytes.round() as u64)) } else { Err(SizeError::TooLarge(text.to_owned())) }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.1} {}", units[unit]))
    }
}

/// Bytes per second as `12.3 MB/s`: rates count by 1000, as links are sold.
pub(crate) fn rate(bytes_per_s: f64) -> String {
    let units = ["B/s", "kB/s", "MB/s", "GB/s"];
    let mut value = bytes_per_s.max(0.0);
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} {}", units[unit]) } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_in_decimal_and_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1.5GB", 1_500_000_000),
            ("2k", 2000),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn a_bad_size_says_what_is_bad() {
        for text in ["", "MiB", "1.2.3MB", "-1"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SizeError::Number(text.to_owned())), "{text}");
        }
        assert_eq!("5 furlongs".parse::<ByteSize>(), Err(SizeError::Unit("furlongs".to_owned())));
        assert_eq!("9000000TiB".parse::<ByteSize>(), Err(SizeError::TooLarge("9000000TiB".to_owned())));
    }

    #[test]
    fn sizes_and_rates_print_with_one_decimal() {
        assert_eq!(ByteSize(512).to_string(), "512 B");
        assert_eq!(ByteSize(64 << 20).to_string(), "64.0 MiB");
        assert_eq!(rate(12_340_000.0), "12.3 MB/s");
        assert_eq!(rate(12.0), "12 B/s");
    }
}
