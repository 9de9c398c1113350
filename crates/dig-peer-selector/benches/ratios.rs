//! Ratios between this crate and the published dig-peer-selector 0.15.0, both measured in one process.
//!
//! Absolute times say little across machines; ratios measured by turns do. Each case alternates a batch
//! of ours with a batch of theirs, takes the median per operation of each, and prints the quotient
//! beside its target. Targets are met or not met in the table; the exit code says so only with `--check`.
//!
//! `cargo bench --bench ratios` prints the table, `cargo bench --bench ratios -- --check` fails on a miss.

mod subject;

use std::process::ExitCode;
use std::time::Duration;

use subject::{ours, theirs};

/// Batches of each side per case: enough for a steady median, few enough to end within a minute.
const BATCHES: usize = 31;

/// "No slower" within the noise of two medians: the same code against itself reads up to this.
const NO_SLOWER: f64 = 1.05;

/// Nanoseconds per operation of one side.
struct Samples(Vec<f64>);

impl Samples {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, elapsed: Duration, operations: usize) {
        self.0.push(elapsed.as_nanos() as f64 / operations as f64);
    }

    fn median(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// One line of the table: `value` is compared with `target`.
struct Row {
    case: String,
    first: f64,
    second: f64,
    ratio: f64,
    target: Target,
    remark: String,
}

enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Row {
    fn met(&self) -> bool {
        match self.target {
            Target::AtMost(limit) => self.ratio <= limit,
            Target::AtLeast(limit) => self.ratio >= limit,
        }
    }

    fn print(&self) {
        let target = match self.target {
            Target::AtMost(limit) => format!("<= {limit}"),
            Target::AtLeast(limit) => format!(">= {limit}"),
        };
        println!(
            "{:<34} {:>12.0} {:>12.0} {:>9.2} {:>8}  {:<6} {}",
            self.case,
            self.first,
            self.second,
            self.ratio,
            target,
            if self.met() { "met" } else { "missed" },
            self.remark
        );
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    // `cargo test --benches` only wants to know that the bench runs.
    let batches = if arguments.iter().any(|argument| argument == "--test") { 1 } else { BATCHES };

    println!("{:<34} {:>12} {:>12} {:>9} {:>8}", "case", "ours ns/op", "other ns/op", "ratio", "target");
    let mut all_met = true;
    let mut show = |row: Row| {
        row.print();
        all_met &= row.met();
    };
    for count in [10, 100, 1000, 4000] {
        show(select(count, batches));
    }
    for count in [10, 100, 1000, 4000] {
        show(record(count, batches));
    }
    show(insert_against_published(4096, batches));
    show(insert_at_two_capacities(4096, 65_536, batches));
    println!("select and record: ours / published; insert at 4096: published / ours; 64 k: 64 k / 4 k of ours");
    if check && !all_met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn select(count: usize, batches: usize) -> Row {
    let (mut mine, mut other) = (ours::Warm::new(count), theirs::Warm::new(count));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    // About the same work per batch at every size.
    let calls = (2000 / count).max(1);
    for _ in 0..batches * calls {
        if let Some(elapsed) = mine.select() {
            mine_ns.add(elapsed, 1);
        }
        if let Some(elapsed) = other.select() {
            other_ns.add(elapsed, 1);
        }
    }
    let mut row = no_slower(format!("select, {count} candidates"), &mut mine_ns, &mut other_ns);
    row.remark = format!("{:.0} ns per candidate", row.first / count as f64);
    for (who, panics) in [("ours", mine.panics), ("published", other.panics)] {
        if panics > 0 {
            row.remark.push_str(&format!("; {who} panicked {panics} times"));
        }
    }
    row
}

fn record(count: usize, batches: usize) -> Row {
    const OPERATIONS: usize = 2000;
    let (mut mine, mut other) = (ours::Warm::new(count), theirs::Warm::new(count));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        mine_ns.add(mine.record(OPERATIONS), OPERATIONS);
        other_ns.add(other.record(OPERATIONS), OPERATIONS);
    }
    no_slower(format!("record_outcome, {count} peers"), &mut mine_ns, &mut other_ns)
}

fn insert_against_published(capacity: usize, batches: usize) -> Row {
    let (mut mine, mut other) = (ours::Full::new(capacity), theirs::Full::new(capacity));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        mine_ns.add(mine.insert(2048), 2048);
        other_ns.add(other.insert(64), 64);
    }
    let (first, second) = (mine_ns.median(), other_ns.median());
    Row {
        case: format!("insert at capacity {capacity}"),
        first,
        second,
        ratio: second / first,
        target: Target::AtLeast(30.0),
        remark: "times faster".to_owned(),
    }
}

fn insert_at_two_capacities(small: usize, large: usize, batches: usize) -> Row {
    const OPERATIONS: usize = 4096;
    let (mut at_small, mut at_large) = (ours::Full::new(small), ours::Full::new(large));
    let (mut small_ns, mut large_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        large_ns.add(at_large.insert(OPERATIONS), OPERATIONS);
        small_ns.add(at_small.insert(OPERATIONS), OPERATIONS);
    }
    let (first, second) = (large_ns.median(), small_ns.median());
    Row {
        case: format!("insert at {large} against {small}"),
        first,
        second,
        ratio: first / second,
        target: Target::AtMost(1.5),
        remark: "both ours".to_owned(),
    }
}

fn no_slower(case: String, mine: &mut Samples, other: &mut Samples) -> Row {
    let (first, second) = (mine.median(), other.median());
    Row { case, first, second, ratio: first / second, target: Target::AtMost(NO_SLOWER), remark: String::new() }
}
