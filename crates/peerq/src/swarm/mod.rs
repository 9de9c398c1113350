//! `peerq swarm`: the main job on this machine, both ways of choosing side by side.
//!
//! Real nodes, real mTLS, real transfers on loopback. Only the links are made up ([`world`]); what
//! happens over them is measured ([`mod@run`]) and told ([`report`]; of several swarms, [`grid`]).

mod grid;
mod hostile;
mod report;
mod run;
mod source;
mod world;

use std::path::PathBuf;

use crate::exit::Failure;
use crate::interrupt::or_interrupted;
use crate::output;
use crate::sizes::ByteSize;
use hostile::Hostile;

/// Most peers one process can carry with some room under the usual limit of open files.
const PEERS_MAX: u64 = 64;

/// Most swarms of one command: they run one after the other, for about a minute each.
const WORLDS_MAX: usize = 64;

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
    /// Serving nodes; several numbers run a swarm of each.
    #[arg(long, value_name = "N,…", default_value = "8", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..=PEERS_MAX))]
    peers: Vec<u64>,
    /// How many of them are hostile, or what share (25%); at least one must not be. Several run a swarm of each.
    #[arg(long, value_name = "N,…", default_value = "2", value_delimiter = ',')]
    hostile: Vec<Hostile>,
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
  peerq swarm --peers 8,16,24 --hostile 0%,25%,50%

Several swarms make one table, and a verdict: whether peerq is never slower than round robin, at the median or
the 99th percentile, once two rounds are over.

Exit code 1 means that a round did not end with the right file, or that the verdict is no.";

/// Runs the swarm and prints its report.
///
/// # Errors
/// [`Failure::Check`] when a round's file is wrong or missing, [`Failure::Usage`] for impossible counts,
/// [`Failure::Io`] for files and sockets.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let worlds = worlds(&args)?;
    let [world] = worlds[..] else { return grid::run(&args, &worlds).await };
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Io(format!("cannot make {}: {error}", folder.display())))?;
    }
    let finished = or_interrupted("stopped; nothing is kept of an unfinished swarm", run::swarm(&args, world)).await?;
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

/// Who is in a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct World {
    peers: usize,
    /// Of those.
    hostile: usize,
}

/// The swarms that are asked for, by size and then by hostile peers, each once.
fn worlds(args: &Args) -> Result<Vec<World>, Failure> {
    let mut worlds = Vec::new();
    for &peers in &args.peers {
        for asked in &args.hostile {
            let hostile = asked.of(peers);
            if hostile >= peers {
                return Err(Failure::Usage(format!(
                    "--hostile {asked} leaves no honest peer among --peers {peers}; nobody could finish"
                )));
            }
            let world = World { peers: peers as usize, hostile: hostile as usize };
            if !worlds.contains(&world) {
                worlds.push(world);
            }
        }
    }
    if worlds.len() > WORLDS_MAX {
        return Err(Failure::Usage(format!(
            "--peers and --hostile make {} swarms; at most {WORLDS_MAX} run at a time",
            worlds.len()
        )));
    }
    Ok(worlds)
}
