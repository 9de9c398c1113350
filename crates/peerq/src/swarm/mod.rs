//! `peerq swarm`: the main job on this machine, both ways of choosing side by side.
//!
//! Real nodes, real mTLS, real transfers on loopback. Only the links are made up ([`world`]); what
//! happens over them is measured ([`mod@run`]) and told ([`report`]).

mod report;
mod run;
mod source;
mod world;

use std::path::PathBuf;

use crate::exit::Failure;
use crate::interrupt::or_interrupted;
use crate::output;
use crate::sizes::ByteSize;

/// Most peers one process can carry with some room under the usual limit of open files.
const PEERS_MAX: u64 = 64;

/// Start a swarm of serving nodes, some of them hostile, and download a file from it again and again:
/// with the learning selector, and with plain round robin for comparison.
///
/// The nodes run in this process on loopback, each with its own identity and a link whose rate and delay
/// are drawn from the seed. Both ways use the same transport, verification and timeouts; rounds
/// alternate. Every downloaded file is compared with the source.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to distribute, instead of one made from the seed.
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    file: Option<PathBuf>,
    /// Size of the made-up file.
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    size: ByteSize,
    /// Serving nodes.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=PEERS_MAX))]
    peers: u64,
    /// How many of them are hostile; at least one must not be.
    #[arg(long, value_name = "N", default_value_t = 2)]
    hostile: u64,
    /// Downloads with each of the two ways of choosing.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Seed of everything that is drawn: links, kinds, identities, the file.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
    /// Keep the last download of each policy and the JSON document in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Record everything the selector is told and answers, for `peerq replay` and `peerq explain`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  peerq swarm
  peerq swarm --size 16MiB --peers 12 --hostile 4 --seed 42
  peerq swarm --file film.mkv --rounds 3 --keep results
  peerq swarm --json --seed 7 > run.json

Exit code 1 means that a round did not end with the right file.";

/// Runs the swarm and prints its report.
///
/// # Errors
/// [`Failure::Check`] when a round's file is wrong or missing, [`Failure::Usage`] for impossible counts,
/// [`Failure::Io`] for files and sockets.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    if args.hostile >= args.peers {
        return Err(Failure::Usage(format!(
            "--hostile {} leaves no honest peer among --peers {}; nobody could finish",
            args.hostile, args.peers
        )));
    }
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Io(format!("cannot make {}: {error}", folder.display())))?;
    }
    let finished = or_interrupted("stopped; nothing is kept of an unfinished swarm", run::swarm(&args)).await?;
    let json = output::to_json(&finished.document)?;
    if let Some(folder) = &args.keep {
        let path = folder.join("swarm.json");
        std::fs::write(&path, &json)
            .map_err(|error| Failure::Io(format!("cannot write {}: {error}", path.display())))?;
    }
    output::line(&if args.json { json } else { finished.document.tables(&finished.learned) })?;
    if finished.document.all_verified() {
        Ok(())
    } else {
        Err(Failure::Check("a round did not end with the right file".to_owned()))
    }
}
