//! Instructions per candidate of one decision, against the budget of 500, and per end of a request.
//!
//! ```sh
//! cargo bench -p peer-quality --bench rank             # needs valgrind for the instructions; prints nanoseconds too
//! cargo bench -p peer-quality --bench rank -- --check  # exit code 1 over budget, or where valgrind is missing
//! ```
//!
//! Instructions are counted by callgrind over two runs of different length, and the difference is divided: start-up cancels out.
#![allow(missing_docs)]

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use peer_quality::measure::{Delivery, End};
use peer_quality::rank::{Advice, Work};
use peer_quality::units::{Bytes, Span, Time};
use peer_quality::{Engine, Fact, Seed, Slot};

/// Per candidate; an end has no budget of its own.
const BUDGET: f64 = 500.0;
/// Candidates: the last shows that the cost stays linear.
const CANDIDATES: [u64; 4] = [100, 1_000, 10_000, 100_000];
const RANGE: Bytes = Bytes::new(1 << 20);

fn delivery(nth: u64) -> Fact {
    let elapsed = Span::from_micros(20_000 + nth * 7_919 % 900_000);
    Fact::Ended(Delivery { bytes: RANGE, elapsed, first_byte: Some(Span::from_millis(15)), end: End::Completed })
}

/// An engine of measured peers, each with three ends, in a steady state.
fn engine(peers: u64) -> (Engine<u64>, Vec<Slot>) {
    let mut engine = Engine::new(peers as usize, Seed::new(7));
    for nth in 0..3 * peers {
        engine.handle(nth % peers, delivery(nth % peers), Time::from_secs(1));
    }
    let slots = engine.slots().collect();
    (engine, slots)
}

fn decide(peers: u64, decisions: u64) {
    let (mut engine, slots) = engine(peers);
    let mut advice = Advice::new();
    for decision in 0..decisions {
        let work =
            Work { range: RANGE, ranges: Some(500), sources: 8, scope: 1, decision, in_flight: 4, wanted: Some(4) };
        engine.decide(&work, black_box(&slots), Time::from_secs(2), &mut advice);
        black_box(&advice);
    }
}

fn end(peers: u64, ends: u64) {
    let (mut engine, slots) = engine(peers);
    for nth in 0..ends {
        engine.handle_at(slots[(nth % peers) as usize], black_box(delivery(nth % peers)), Time::from_secs(2));
    }
}

fn run(mode: &str, peers: u64, count: u64) {
    if mode == "--decide" { decide(peers, count) } else { end(peers, count) }
}

/// Instructions of a run, by callgrind; none where it is missing.
fn instructions(mode: &str, peers: u64, count: u64) -> Option<u64> {
    let itself = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args([mode, &peers.to_string(), &count.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    report.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
}

fn slope(mode: &str, peers: u64, short: u64, long: u64) -> Option<f64> {
    let (few, many) = (instructions(mode, peers, short)?, instructions(mode, peers, long)?);
    Some(many.saturating_sub(few) as f64 / (long - short) as f64)
}

fn show(instructions: Option<f64>, nanos: f64, what: &str) {
    match instructions {
        Some(instructions) => println!("{instructions:>6.0} instructions, {nanos:>6.0} ns  {what}"),
        None => println!("(no valgrind)        {nanos:>6.0} ns  {what}"),
    }
}

/// Nanoseconds of one more, as the difference of two runs.
fn nanos(mode: &str, peers: u64, short: u64, long: u64) -> f64 {
    let timed = |count| {
        let begun = Instant::now();
        run(mode, peers, count);
        begun.elapsed().as_nanos() as f64
    };
    (timed(long) - timed(short)).max(0.0) / (long - short) as f64
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, peers, count] = &args[..]
        && (mode == "--decide" || mode == "--end")
    {
        run(mode, peers.parse().unwrap_or(100), count.parse().unwrap_or(1));
        return ExitCode::SUCCESS;
    }
    let mut is_within = true;
    for peers in CANDIDATES {
        // Whole cycles of the schedule of trials.
        let (short, long) = (48, 96);
        let per_candidate = slope("--decide", peers, short, long).map(|per_decision| per_decision / peers as f64);
        is_within &= per_candidate.is_some_and(|per_candidate| per_candidate <= BUDGET);
        let nanos = nanos("--decide", peers, short, long) / peers as f64;
        show(per_candidate, nanos, &format!("per candidate, of {peers}"));
    }
    show(slope("--end", 1_000, 20_000, 40_000), nanos("--end", 1_000, 20_000, 40_000), "per end of a request");
    let wants_check = args.iter().any(|arg| arg == "--check");
    if wants_check && !is_within { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
