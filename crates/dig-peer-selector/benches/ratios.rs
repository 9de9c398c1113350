//! Ratios between this crate and the published dig-peer-selector 0.15.0, both measured in one process.
//!
//! Absolute times say little across machines; ratios measured by turns do. Each case alternates a batch
//! of ours with a batch of theirs, takes the median per operation of each, and prints the quotient
//! beside its target. Targets are met or not met in the table; the exit code says so only with `--check`.
//!
//! `cargo bench --bench ratios` prints the table, `cargo bench --bench ratios -- --check` fails on a miss; a word after `--` keeps the cases that contain it.
//! `docs/performance.md` says what the cases mean and keeps their figures.

mod crowd;
mod subject;

use std::process::ExitCode;
use std::time::Duration;

use subject::{ours, theirs};

/// Batches of each side per case: enough for a steady median, few enough to end within a minute.
const BATCHES: usize = 31;

/// A selection per candidate takes at most a quarter of the published selector's time, from a hundred candidates on.
const SELECT_MOST: f64 = 0.25;
/// "No slower" within the noise of two medians: the same code against itself reads up to this.
const NO_SLOWER: f64 = 1.05;
/// An outcome takes at most half of the published selector's time.
const RECORD_MOST: f64 = 0.5;
/// A million peers fit, in MiB.
const MILLION_PEERS_MIB: f64 = 600.0;

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
            "{:<40} {:>12.0} {:>12.0} {:>9.3} {:>8}  {:<6} {}",
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
    let words: Vec<&String> = arguments.iter().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // `cargo test --benches` only wants to know that the bench runs.
    let batches = if arguments.iter().any(|argument| argument == "--test") { 1 } else { BATCHES };

    println!("{:<40} {:>12} {:>12} {:>9} {:>8}", "case", "ours ns/op", "other ns/op", "ratio", "target");
    let mut all_met = true;
    let mut show = |case: &str, measure: &dyn Fn(&str) -> Option<Row>| {
        if !words.is_empty() && !words.iter().any(|word| case.contains(word.as_str())) {
            return;
        }
        let Some(row) = measure(case) else {
            println!("{case:<40} not measured on this system");
            return;
        };
        row.print();
        all_met &= row.met();
    };
    // First, while the process owns little that freed memory could be mistaken for.
    let peers = if batches > 1 { 1_000_000 } else { 10_000 };
    show("memory of 1 M peers, MiB", &|case| memory(case, peers));
    for count in [10, 100, 1000, 4000] {
        show(&format!("select, {count} candidates"), &|case| Some(select(case, count, batches)));
    }
    for count in [10, 100, 1000, 4000] {
        show(&format!("record_outcome, {count} peers"), &|case| Some(record(case, count, batches)));
    }
    show("insert at capacity 4096", &|case| Some(insert_against_published(case, 4096, batches)));
    show("select, 64 fresh, capacity 4096", &|case| Some(fresh_against_published(case, 64, 4096, batches)));
    for large in [peers / 16, peers] {
        let case = format!("insert at capacity {large} against 4096");
        show(&case, &|case| Some(insert_at_two_capacities(case, 4096, large, batches)));
    }
    show("record_outcome beside selections", &|case| Some(record_beside_selections(case, batches)));
    show("record_outcome, two threads for one", &|case| Some(record_on_two_threads(case, batches)));
    println!("select, record: ours / published. insert at 4096, 64 fresh: published / ours. The rest is ours alone.");
    if check && !all_met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn memory(case: &str, peers: usize) -> Option<Row> {
    const MIB: f64 = 1024.0 * 1024.0;
    let bytes = crowd::bytes_of(peers)? as f64;
    Some(Row {
        case: case.to_owned(),
        first: bytes / MIB,
        second: MILLION_PEERS_MIB,
        ratio: bytes * 1e6 / peers as f64 / MIB / MILLION_PEERS_MIB,
        target: Target::AtMost(1.0),
        remark: format!("{:.0} bytes per peer", bytes / peers as f64),
    })
}

/// Outcomes in bursts of a few while another thread selects among 4000 without a pause.
fn record_beside_selections(case: &str, batches: usize) -> Row {
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    mine_ns.0 = crowd::ours_beside_selections(batches * 10);
    other_ns.0 = crowd::theirs_beside_selections(batches * 10);
    let (first, second) = (mine_ns.median(), other_ns.median());
    Row {
        case: case.to_owned(),
        first,
        second,
        ratio: first / second,
        target: Target::AtMost(0.1),
        remark: "4000 candidates".to_owned(),
    }
}

fn record_on_two_threads(case: &str, batches: usize) -> Row {
    const EACH: usize = 20_000;
    let selector = crowd::shared();
    let (mut one_ns, mut two_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        one_ns.0.push(crowd::record_together(&selector, 1, EACH));
        two_ns.0.push(crowd::record_together(&selector, 2, EACH));
    }
    let (first, second) = (two_ns.median(), one_ns.median());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Row {
        case: case.to_owned(),
        first,
        second,
        ratio: second / first,
        target: Target::AtLeast(1.6),
        remark: format!("a third selects; {cores} cores"),
    }
}

fn select(case: &str, count: usize, batches: usize) -> Row {
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
    let most = if count >= 100 { SELECT_MOST } else { NO_SLOWER };
    let mut row = at_most(most, case, &mut mine_ns, &mut other_ns);
    row.remark = format!("{:.0} ns per candidate", row.first / count as f64);
    for (who, panics) in [("ours", mine.panics), ("published", other.panics)] {
        if panics > 0 {
            row.remark.push_str(&format!("; {who} panicked {panics} times"));
        }
    }
    row
}

fn record(case: &str, count: usize, batches: usize) -> Row {
    const OPERATIONS: usize = 2000;
    let (mut mine, mut other) = (ours::Warm::new(count), theirs::Warm::new(count));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        mine_ns.add(mine.record(OPERATIONS), OPERATIONS);
        other_ns.add(other.record(OPERATIONS), OPERATIONS);
    }
    at_most(RECORD_MOST, case, &mut mine_ns, &mut other_ns)
}

fn insert_against_published(case: &str, capacity: usize, batches: usize) -> Row {
    let (mut mine, mut other) = (ours::Full::new(capacity), theirs::Full::new(capacity));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        mine_ns.add(mine.insert(2048), 2048);
        other_ns.add(other.insert(64), 64);
    }
    let (first, second) = (mine_ns.median(), other_ns.median());
    Row {
        case: case.to_owned(),
        first,
        second,
        ratio: second / first,
        target: Target::AtLeast(80.0),
        remark: "times faster".to_owned(),
    }
}

fn fresh_against_published(case: &str, fresh: usize, capacity: usize, batches: usize) -> Row {
    let (mut mine, mut other) = (ours::Full::new(capacity), theirs::Full::new(capacity));
    let (mut mine_ns, mut other_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        mine_ns.add(mine.select_fresh(fresh), 1);
        other_ns.add(other.select_fresh(fresh), 1);
    }
    let (first, second) = (mine_ns.median(), other_ns.median());
    Row {
        case: case.to_owned(),
        first,
        second,
        ratio: second / first,
        target: Target::AtLeast(40.0),
        remark: "times faster".to_owned(),
    }
}

fn insert_at_two_capacities(case: &str, small: usize, large: usize, batches: usize) -> Row {
    const OPERATIONS: usize = 4096;
    let (mut at_small, mut at_large) = (ours::Full::new(small), ours::Full::new(large));
    let (mut small_ns, mut large_ns) = (Samples::new(), Samples::new());
    for _ in 0..batches {
        large_ns.add(at_large.insert(OPERATIONS), OPERATIONS);
        small_ns.add(at_small.insert(OPERATIONS), OPERATIONS);
    }
    let (first, second) = (large_ns.median(), small_ns.median());
    Row {
        case: case.to_owned(),
        first,
        second,
        ratio: first / second,
        target: Target::AtMost(2.0),
        remark: "both ours".to_owned(),
    }
}

fn at_most(limit: f64, case: &str, mine: &mut Samples, other: &mut Samples) -> Row {
    let (first, second) = (mine.median(), other.median());
    let target = Target::AtMost(limit);
    Row { case: case.to_owned(), first, second, ratio: first / second, target, remark: String::new() }
}
