//! What a study hopes for, and whether it came out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One goal, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// What is wanted.
    pub what: String,
    /// What came out, with the exceptions.
    pub got: String,
    /// Whether it is met.
    pub met: bool,
}

/// Columns of a terminal that text is wrapped to.
const WIDTH: usize = 100;

/// How far what follows the verdict is set in.
const INDENT: usize = 8;

impl fmt::Display for Goal {
    /// Wrapped to a terminal's width, the verdict standing out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut column = INDENT;
        write!(f, "{:<INDENT$}", if self.met { "met" } else { "missed" })?;
        let text = format!("{}: {}", self.what, self.got);
        for (index, word) in text.split_whitespace().enumerate() {
            let width = word.chars().count();
            if index > 0 && column + 1 + width > WIDTH {
                write!(f, "\n{:INDENT$}{word}", "")?;
                column = INDENT + width;
            } else {
                let gap = if index > 0 { " " } else { "" };
                write!(f, "{gap}{word}")?;
                column += gap.len() + width;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_wrapped_behind_the_verdict() {
        let goal = Goal { what: "nobody is slow".to_owned(), got: "somebody ".repeat(20), met: false };
        let lines: Vec<String> = goal.to_string().lines().map(str::to_owned).collect();
        assert!(lines.len() > 1 && lines[0].starts_with("missed  nobody is slow: somebody"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("        somebody")), "{lines:#?}");
    }
}
