//! Instructions per SDU pair (one `on_egress`, one `on_ingress`) in steady state, against the budget of 400.
//!
//! ```sh
//! cargo bench -p peer-quality --bench wire             # needs valgrind for the instructions; prints nanoseconds too
//! cargo bench -p peer-quality --bench wire -- --check  # exit code 1 over budget, or where valgrind is missing
//! ```
//!
//! Instructions are counted by callgrind over two runs of different length, and the difference is divided: start-up cancels out.
#![allow(missing_docs)]

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use peer_quality::measure::wire::{Connection, CookieSeed, Options, Reply, Stamp};
use peer_quality::units::Time;

const BUDGET: f64 = 400.0;
const SHORT: u64 = 100_000;
const LONG: u64 = 300_000;

/// What is measured: microseconds between pairs.
const LOADS: [(&str, u64); 3] = [
    ("a pair each 10 ms, RTT 50 ms", 10_000),
    ("a pair each 1 ms, RTT 50 ms: every SDU mints and matches", 1_000),
    ("a pair each 100 µs, RTT 50 ms: ten SDUs share a cookie", 100),
];

fn run(pairs: u64, step_us: u64) {
    let mut c = Connection::new(CookieSeed::new([7; 32]), Options { cookies: true, rtt_floor: None }, Time::ZERO);
    c.on_transfer_open(Time::ZERO);
    let mut sent = [0_u16; 1024];
    let in_flight = 50_000 / step_us;
    for nth in 0..pairs {
        let now = Time::from_micros(nth * step_us);
        sent[(nth % 1024) as usize] = c.on_egress(Reply::Prompt, now).send;
        // The echo of what was sent a round trip ago, with some jitter of its arrival.
        let echo = nth.checked_sub(in_flight).map_or(0, |at| sent[(at % 1024) as usize]);
        let arrival = Time::from_micros(nth * step_us + (nth & 3) * (step_us >> 3));
        black_box(c.on_ingress(black_box(Stamp { send: nth as u16, echo }), 12_288, arrival));
    }
    assert!(!c.is_guessing() && c.live_burst().is_some(), "the steady state of an honest peer");
    black_box(c.poll_event());
}

/// Instructions of a run, by callgrind; none where it is missing.
fn instructions(pairs: u64, step_us: u64) -> Option<u64> {
    let itself = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args(["--run", &pairs.to_string(), &step_us.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    report.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, pairs, step_us] = &args[..]
        && flag == "--run"
    {
        run(pairs.parse().unwrap_or(SHORT), step_us.parse().unwrap_or(1_000));
        return ExitCode::SUCCESS;
    }
    let mut is_within = true;
    for (load, step_us) in LOADS {
        let begun = Instant::now();
        run(10 * LONG, step_us);
        let nanos = begun.elapsed().as_nanos() as f64 / (10 * LONG) as f64;
        let counted = instructions(SHORT, step_us).zip(instructions(LONG, step_us));
        let per_pair = counted.map(|(short, long)| (long.saturating_sub(short)) as f64 / (LONG - SHORT) as f64);
        is_within &= per_pair.is_some_and(|per_pair| per_pair <= BUDGET);
        match per_pair {
            Some(per_pair) => println!("{per_pair:>6.0} instructions, {nanos:>5.0} ns  {load}"),
            None => println!("(no valgrind)        {nanos:>5.0} ns  {load}"),
        }
    }
    let wants_check = args.iter().any(|arg| arg == "--check");
    if wants_check && !is_within { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
