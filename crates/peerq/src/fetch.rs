//! `peerq fetch`: one verified download, resumable (HOST-D1, HOST-D3, HOST-D6).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dig_peer_selector::SelectorConfig;
use indicatif::ProgressBar;
use peerq_dig::discovery::Locator;
use peerq_dig::fetch::{FetchError, FetchHandle, FetchOptions, FetchReport, FetchState, Fetcher, Policy, Progress};
use peerq_dig::{Discovery, FileId, Identity, PeerAddr, Pool, PoolConfig};
use serde::Serialize;

use crate::exit::Failure;
use crate::interrupt::interrupted;
use crate::recording::Recorded;
use crate::sizes::{ByteSize, rate};
use crate::table::{Align, Table};
use crate::{output, progress};

/// Download a file by its content id from whoever holds it, and verify every byte.
///
/// Until the whole file is verified it lives in a hidden staging file beside the output. After Ctrl-C or
/// a crash the same command continues from there and asks only for what is missing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to fetch: the 64 hex digits that `peerq serve` prints.
    #[arg(value_name = "CONTENT_ID")]
    id: FileId,
    /// A holder of the file (repeatable).
    #[arg(long, value_name = "ADDR#PEER_ID", required_unless_present = "bootstrap")]
    peer: Vec<PeerAddr>,
    /// A node of the network through which holders are found (repeatable).
    #[arg(long, value_name = "ADDR#PEER_ID")]
    bootstrap: Vec<PeerAddr>,
    /// Where to save the file [default: the content id, in this folder].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output if it exists.
    #[arg(long)]
    force: bool,
    /// Seconds one chunk may take from one peer before another is asked.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
    /// Record everything the selector is told and answers, for `peerq replay` and `peerq explain`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  peerq fetch 5e0d…91 --peer 127.0.0.1:4100#3f…c2 --peer 127.0.0.1:4101#a8…07 -o film.mkv
  peerq fetch 5e0d…91 --bootstrap 192.0.2.7:4100#3f…c2
  peerq fetch 5e0d…91 --peer 127.0.0.1:4100#3f…c2 --json

Exit code 1 means that the file could not be had from anybody; what was verified is kept.";

/// Fetches one file.
///
/// # Errors
/// [`Failure::Check`] when holders are the cause, [`Failure::Io`] when the disk is.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let identity = Identity::generate().map_err(|error| Failure::Io(error.to_string()))?;
    let pool = Pool::new(Arc::new(identity), PoolConfig::default());
    let mut fetcher = Fetcher::new(Arc::clone(&pool));
    if !args.bootstrap.is_empty() {
        let discovery = join_network(&pool, &args.bootstrap).await?;
        fetcher = fetcher.with_locator(Arc::new(Locator::new(pool.identity().peer_id(), Vec::new(), Some(discovery))));
    }
    let output = args.output.unwrap_or_else(|| PathBuf::from(args.id.to_string()));
    let recorded = Recorded::new(SelectorConfig::default(), args.record.as_deref())?;
    let options = FetchOptions::new(args.id, output)
        .peers(args.peer)
        .policy(Policy::Peerq(Arc::clone(&recorded.selector)))
        .range_timeout(Duration::from_secs(args.timeout))
        .overwrite(args.force);
    let fetched = follow(fetcher.fetch(options)).await;
    recorded.finish()?;
    let report = fetched?;
    output::line(&if args.json { output::to_json(&Document::of(&report))? } else { summary(&report) })
}

async fn join_network(pool: &Arc<Pool>, bootstrap: &[PeerAddr]) -> Result<Arc<Discovery>, Failure> {
    let discovery = Discovery::client(Arc::clone(pool));
    tokio::select! {
        joined = discovery.bootstrap(bootstrap) => {
            joined.map_err(|error| Failure::Check(format!("cannot join the network: {error}")))?;
            Ok(discovery)
        }
        () = interrupted() => Err(Failure::Interrupted(None)),
    }
}

/// Shows progress until the fetch ends; Ctrl-C cancels it in order.
async fn follow(handle: FetchHandle) -> Result<FetchReport, Failure> {
    let bar = progress::bytes(0);
    let mut snapshots = handle.progress();
    // One listener for the whole loop: a signal between two listeners would be lost.
    let interrupt = interrupted();
    tokio::pin!(interrupt);
    loop {
        tokio::select! {
            changed = snapshots.changed() => {
                if changed.is_err() { break }
                let snapshot = snapshots.borrow_and_update().clone();
                show(&bar, &snapshot);
                if snapshot.state == FetchState::Done { break }
            }
            () = &mut interrupt => {
                handle.cancel();
                break;
            }
        }
    }
    let result = handle.join().await;
    bar.finish_and_clear();
    result.map_err(failure)
}

fn show(bar: &ProgressBar, snapshot: &Progress) {
    if let Some(total) = snapshot.bytes_total {
        bar.set_length(total);
    }
    bar.set_position(snapshot.bytes_done);
    bar.set_message(match snapshot.state {
        FetchState::FindingHolders => "finding holders".to_owned(),
        FetchState::Verifying => "checking what is already here".to_owned(),
        _ => format!(
            "{}  {} of {} holders in use",
            rate(snapshot.bytes_per_second),
            snapshot.active.len(),
            snapshot.holders
        ),
    });
}

fn failure(error: FetchError) -> Failure {
    match error {
        FetchError::Cancelled => Failure::Interrupted(Some(
            "stopped; what was verified is kept, run the same command again to continue".to_owned(),
        )),
        FetchError::NoHolders { .. }
        | FetchError::UnknownId { .. }
        | FetchError::AllHoldersFailed { .. }
        | FetchError::Engine { .. } => Failure::Check(error.to_string()),
        FetchError::OutputExists { path } => Failure::Io(format!(
            "{} exists already; choose another with -o, or replace it with --force",
            path.display()
        )),
        other => Failure::Io(other.to_string()),
    }
}

/// The JSON form of a finished fetch.
#[derive(Serialize)]
struct Document {
    id: String,
    output: String,
    total_bytes: u64,
    network_bytes: u64,
    resumed_bytes: u64,
    seconds: f64,
    peers: Vec<PeerDocument>,
}

/// One peer's part, its requests by how they ended.
#[derive(Serialize)]
struct PeerDocument {
    id: String,
    bytes: u64,
    ok: u64,
    timeout: u64,
    transport: u64,
    interrupted: u64,
    unavailable: u64,
    verification_failed: u64,
    last_failure: Option<String>,
}

impl Document {
    fn of(report: &FetchReport) -> Self {
        let peers = report.peers.iter().map(|peer| PeerDocument {
            id: peer.peer_id.to_hex(),
            bytes: peer.bytes,
            ok: peer.outcomes.ok,
            timeout: peer.outcomes.timeout,
            transport: peer.outcomes.transport,
            interrupted: peer.outcomes.interrupted,
            unavailable: peer.outcomes.unavailable,
            verification_failed: peer.outcomes.verification_failed,
            last_failure: peer.last_failure.clone(),
        });
        Self {
            id: report.id.to_string(),
            output: report.output.display().to_string(),
            total_bytes: report.total_length,
            network_bytes: report.bytes_from_network,
            resumed_bytes: report.bytes_resumed,
            seconds: report.elapsed.as_secs_f64(),
            peers: peers.collect(),
        }
    }
}

fn summary(report: &FetchReport) -> String {
    let seconds = report.elapsed.as_secs_f64();
    let mean = if seconds > 0.0 { report.bytes_from_network as f64 / seconds } else { 0.0 };
    let mut peers = Table::new([
        ("peer", Align::Left),
        ("bytes", Align::Right),
        ("chunks", Align::Right),
        ("timed out", Align::Right),
        ("cut off", Align::Right),
        ("wrong bytes", Align::Right),
        ("last failure", Align::Left),
    ]);
    for peer in &report.peers {
        peers.row([
            peer.peer_id.to_hex()[..16].to_owned(),
            peer.bytes.to_string(),
            peer.outcomes.ok.to_string(),
            peer.outcomes.timeout.to_string(),
            (peer.outcomes.interrupted + peer.outcomes.transport).to_string(),
            peer.outcomes.verification_failed.to_string(),
            peer.last_failure.clone().unwrap_or_default(),
        ]);
    }
    format!(
        "saved    {} ({}, every byte verified)\nnetwork  {} bytes in {seconds:.1} s, {}\nresumed  {} bytes\n\n{}",
        report.output.display(),
        ByteSize(report.total_length),
        report.bytes_from_network,
        rate(mean),
        report.bytes_resumed,
        peers.render()
    )
}
