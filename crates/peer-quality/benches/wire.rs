//! Instructions per SDU pair (one `on_egress`, one `on_ingress`) in steady state, against the budget of 400.
//!
//! ```sh
//! cargo bench -p peer-quality --bench wire             # needs valgrind for the instructions; prints nanoseconds too
//! cargo bench -p peer-quality --bench wire -- --check  # exit code 1 over budget, or where valgrind is missing
//! ```
//!
//! Instructions are counted by callgrind over two runs of different length, and the difference is divided: start-up cancels out. The loop itself, run
//! without the two calls, is subtracted. By hand, for one load:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/deps/wire-… --run 300000 1000 && callgrind_annotate callgrind.out.…
//! ```
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

/// One run; without `measured` only the loop around the calls.
fn run(pairs: u64, step_us: u64, measured: bool) {
    let mut c = Connection::new(CookieSeed::new([7; 32]), Options { cookies: true, ..Options::default() }, Time::ZERO);
    c.on_transfer_open(Time::ZERO);
    let mut sent = [0_u16; 1024];
    let in_flight = 50_000 / step_us;
    for nth in 0..pairs {
        let now = Time::from_micros(nth * step_us);
        let cookie = if measured { c.on_egress(Reply::Prompt, now).send } else { nth as u16 };
        sent[(nth % 1024) as usize] = cookie;
        // The echo of what was sent a round trip ago, with some jitter of its arrival.
        let echo = nth.checked_sub(in_flight).map_or(0, |at| sent[(at % 1024) as usize]);
        let stamp = black_box(Stamp { send: nth as u16, echo });
        let arrival = Time::from_micros(nth * step_us + (nth & 3) * (step_us >> 3));
        if measured {
            black_box(c.on_ingress(stamp, 12_288, arrival));
        } else {
            black_box((stamp, arrival));
        }
    }
    assert!(!measured || !c.is_guessing() && c.live_burst().is_some(), "the steady state of an honest peer");
    black_box(c.poll_event());
}

/// Instructions of a run, by callgrind; none where it is missing.
fn instructions(pairs: u64, step_us: u64, mode: &str) -> Option<u64> {
    let itself = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(itself)
        .args([mode, &pairs.to_string(), &step_us.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    report.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
}

/// Instructions per pair of one mode.
fn slope(step_us: u64, mode: &str) -> Option<f64> {
    let (short, long) = (instructions(SHORT, step_us, mode)?, instructions(LONG, step_us, mode)?);
    Some(long.saturating_sub(short) as f64 / (LONG - SHORT) as f64)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, pairs, step_us] = &args[..]
        && (flag == "--run" || flag == "--loop")
    {
        run(pairs.parse().unwrap_or(SHORT), step_us.parse().unwrap_or(1_000), flag == "--run");
        return ExitCode::SUCCESS;
    }
    let mut is_within = true;
    for (load, step_us) in LOADS {
        let begun = Instant::now();
        run(10 * LONG, step_us, true);
        let nanos = begun.elapsed().as_nanos() as f64 / (10 * LONG) as f64;
        let per_pair = slope(step_us, "--run").zip(slope(step_us, "--loop")).map(|(run, bare)| run - bare);
        is_within &= per_pair.is_some_and(|per_pair| per_pair <= BUDGET);
        match per_pair {
            Some(per_pair) => println!("{per_pair:>6.0} instructions, {nanos:>5.0} ns  {load}"),
            None => println!("(no valgrind)        {nanos:>5.0} ns  {load}"),
        }
    }
    let wants_check = args.iter().any(|arg| arg == "--check");
    if wants_check && !is_within { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
