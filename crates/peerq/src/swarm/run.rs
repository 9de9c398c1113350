//! Starts the swarm's nodes and downloads the file from them, round after round.
//!
//! Rounds alternate between the two policies. Each begins with a connection pool of its own, so neither
//! profits from the other's connections; the selector alone is kept over peerq's rounds, since learning is
//! its point. What a peer sent is read from its own counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dig_peer_selector::{PeerSelector, PeerSnapshot, SelectorConfig};
use futures::future::try_join_all;
use indicatif::ProgressBar;
use peerq_dig::discovery::Locator;
use peerq_dig::fetch::{FetchOptions, Fetcher, Policy};
use peerq_dig::{Discovery, FileId, Identity, Manifest, Node, PeerAddr, Pool, PoolConfig};
use tempfile::TempDir;

use super::report::{Document, Peer, PolicyName, Round};
use super::source::Source;
use super::world::{self, PeerPlan};
use super::{Args, World};
use crate::exit::Failure;
use crate::progress;
use crate::recording::Recorded;
use crate::serve::manifest_of;
use crate::sizes::rate;

/// Nodes through which others join: enough that one missing does no harm.
const BOOTSTRAP_PEERS: usize = 3;

/// Chunks that dig-download asks of one peer at once.
const CHUNKS_AT_ONCE: f64 = 4.0;

/// What a finished swarm leaves: the report, and the selector's view of each peer in the report's order.
pub(crate) struct Finished {
    pub(crate) document: Document,
    pub(crate) learned: Vec<Option<PeerSnapshot>>,
}

/// Runs the whole swarm. Dropping the future ends the nodes and removes the temporary files.
///
/// # Errors
/// [`Failure::Io`] when the swarm cannot be set up. A failed round is no error but an unverified round.
pub(super) async fn swarm(args: &Args, world: World) -> Result<Finished, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("peerq-swarm-")
        .tempdir()
        .map_err(|error| Failure::Io(format!("cannot make a temporary folder: {error}")))?;
    let swarm = Swarm::start(args, world, folder).await?;
    let config = SelectorConfig { rng_seed: Some(args.seed), ..SelectorConfig::default() };
    // Its draws follow the seed, its clock is the real one.
    let recorded = Recorded::new(config, args.record.as_deref())?;
    let selector = Arc::clone(&recorded.selector);
    let mut rounds = Vec::new();
    for number in 1..=args.rounds as usize {
        for policy in PolicyName::BOTH {
            let bar = progress::bytes(swarm.manifest.total_length());
            bar.set_prefix(format!("{:<11} {number:>2}/{} ", policy.name(), args.rounds));
            rounds.push(swarm.round(policy, number, &selector, &bar).await);
        }
    }
    if let Some(keep) = &args.keep {
        swarm.keep_last(&rounds, keep)?;
    }
    let learned = swarm.nodes.iter().map(|running| selector.peer_snapshot(&running.node.peer_id())).collect();
    let document = swarm.document(rounds);
    for running in swarm.nodes {
        running.node.shutdown().await;
    }
    recorded.finish()?;
    Ok(Finished { document, learned })
}

/// A node and how it was drawn.
struct Running {
    node: Node,
    plan: PeerPlan,
}

/// The running nodes, in the drawn order, and what a client needs.
struct Swarm {
    nodes: Vec<Running>,
    client: Arc<Identity>,
    source: Source,
    manifest: Arc<Manifest>,
    id: FileId,
    entry: Vec<PeerAddr>,
    range_timeout: Duration,
    folder: TempDir,
}

impl Swarm {
    async fn start(args: &Args, world: World, folder: TempDir) -> Result<Self, Failure> {
        let spinner = progress::spinner("preparing the file");
        let source = match &args.file {
            Some(path) => Source::existing(path.clone()).await?,
            None => Source::made(folder.path(), args.size.0, args.seed).await?,
        };
        let manifest = Arc::new(manifest_of(&source.path).await?);
        let plans = world::draw(args.seed, world.peers, world.hostile);
        spinner.set_message(format!("starting {} nodes", plans.len()));
        let range_timeout = range_timeout(&plans, manifest.chunk_size());
        let (nodes, entry) = start_nodes(plans, &source.path, &manifest).await?;
        spinner.finish_and_clear();
        let client = Arc::new(make_identity(&world::client_identity(args.seed))?);
        let id = manifest.id();
        Ok(Self { nodes, client, source, manifest, id, entry, range_timeout, folder })
    }

    /// One download over connections of its own. A download that fails is an unverified round.
    ///
    /// The time runs from the request for the file to the file in place: finding and asking its holders is
    /// part of it, joining the network before is not.
    async fn round(&self, policy: PolicyName, number: usize, selector: &Arc<PeerSelector>, bar: &ProgressBar) -> Round {
        let before: Vec<u64> = self.served().collect();
        let output = self.output(policy, number);
        let (result, seconds) = match self.join().await {
            Ok(fetcher) => {
                let begun = Instant::now();
                let result = self.download(&fetcher, policy, &output, selector, bar).await;
                (result, begun.elapsed().as_secs_f64())
            }
            Err(message) => (Err(message), 0.0),
        };
        let verified = match result {
            Ok(()) => self.source.matches(&output).await,
            Err(message) => {
                eprintln!("warning: {} round {number} failed: {message}", policy.name());
                false
            }
        };
        let speed = self.manifest.total_length() as f64 / seconds.max(f64::EPSILON);
        bar.finish_with_message(format!("{seconds:.2} s  {}", rate(speed)));
        self.drop_previous(policy, number);
        let sent = self.nodes.iter().zip(before).zip(self.served());
        let bytes_by_peer: BTreeMap<String, u64> = sent
            .map(|((running, before), after)| (running.node.peer_id().to_hex(), after.saturating_sub(before)))
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        Round { policy, round: number, seconds, verified, bytes_by_peer }
    }

    /// A client that has just joined the network: a fresh pool and what the DHT told it.
    async fn join(&self) -> Result<Fetcher, String> {
        let pool = Pool::new(Arc::clone(&self.client), PoolConfig::default());
        let discovery = Discovery::client(Arc::clone(&pool));
        discovery.bootstrap(&self.entry).await.map_err(|error| error.to_string())?;
        let locator = Locator::new(self.client.peer_id(), Vec::new(), Some(discovery));
        Ok(Fetcher::new(pool).with_locator(Arc::new(locator)))
    }

    async fn download(
        &self,
        fetcher: &Fetcher,
        policy: PolicyName,
        output: &Path,
        selector: &Arc<PeerSelector>,
        bar: &ProgressBar,
    ) -> Result<(), String> {
        let policy = match policy {
            PolicyName::Peerq => Policy::Peerq(Arc::clone(selector)),
            PolicyName::RoundRobin => Policy::RoundRobin,
        };
        let options = FetchOptions::new(self.id, output).policy(policy).range_timeout(self.range_timeout);
        let handle = fetcher.fetch(options);
        let mut snapshots = handle.progress();
        let joined = handle.join();
        tokio::pin!(joined);
        loop {
            tokio::select! {
                result = &mut joined => return result.map(drop).map_err(|error| error.to_string()),
                Ok(()) = snapshots.changed() => {
                    let snapshot = snapshots.borrow_and_update();
                    bar.set_position(snapshot.bytes_done);
                    bar.set_message(rate(snapshot.bytes_per_second));
                }
            }
        }
    }

    fn served(&self) -> impl Iterator<Item = u64> + '_ {
        self.nodes.iter().map(|running| running.node.stats().bytes_served)
    }

    fn output(&self, policy: PolicyName, number: usize) -> PathBuf {
        self.folder.path().join(format!("{}-{number}.bin", policy.name()))
    }

    /// Only the last download of each policy stays on disk.
    fn drop_previous(&self, policy: PolicyName, number: usize) {
        // The file is missing when that round failed; nothing depends on the removal.
        let _ = std::fs::remove_file(self.output(policy, number - 1));
    }

    fn keep_last(&self, rounds: &[Round], keep: &Path) -> Result<(), Failure> {
        for policy in PolicyName::BOTH {
            let last = rounds.iter().rev().find(|round| round.policy == policy);
            let Some(last) = last.filter(|round| round.verified) else {
                continue;
            };
            let target = keep.join(format!("{}.bin", policy.name()));
            std::fs::copy(self.output(policy, last.round), &target)
                .map_err(|error| Failure::Io(format!("cannot keep {}: {error}", target.display())))?;
        }
        Ok(())
    }

    fn document(&self, rounds: Vec<Round>) -> Document {
        let peers = self.nodes.iter().map(|running| Peer::new(running.node.peer_id().to_hex(), &running.plan));
        Document::new(self.manifest.total_length(), peers.collect(), rounds)
    }
}

/// Starts and announces every node, and names those through which a client joins. The first honest node
/// comes up alone, the others join through it at once.
async fn start_nodes(
    plans: Vec<PeerPlan>,
    path: &Path,
    manifest: &Arc<Manifest>,
) -> Result<(Vec<Running>, Vec<PeerAddr>), Failure> {
    let mut waiting = plans;
    let first_place = waiting.iter().position(|plan| !plan.kind.is_hostile()).unwrap_or(0);
    let first_plan = waiting.remove(first_place);
    let first = start_node(&first_plan, path, manifest, Vec::new()).await?;
    let entry = [first.peer_addr()];
    let joined = try_join_all(waiting.iter().map(|plan| start_node(plan, path, manifest, entry.to_vec()))).await?;
    let joined = joined.into_iter().zip(waiting).map(|(node, plan)| Running { node, plan });
    let mut nodes: Vec<Running> = joined.collect();
    nodes.insert(first_place, Running { node: first, plan: first_plan });
    try_join_all(nodes.iter().map(|running| running.node.announce()))
        .await
        .map_err(|error| Failure::Io(format!("cannot announce the file: {error}")))?;
    let honest = nodes.iter().filter(|running| !running.plan.kind.is_hostile());
    let entry = honest.take(BOOTSTRAP_PEERS).map(|running| running.node.peer_addr()).collect();
    Ok((nodes, entry))
}

async fn start_node(
    plan: &PeerPlan,
    path: &Path,
    manifest: &Arc<Manifest>,
    entry: Vec<PeerAddr>,
) -> Result<Node, Failure> {
    Node::builder(Arc::new(make_identity(&plan.identity_seed)?))
        .link(plan.link())
        .fault(plan.kind.fault(manifest.total_length()))
        .bootstrap(entry)
        .share_prepared(path, Arc::clone(manifest))
        .start()
        .await
        .map_err(|error| Failure::Io(format!("cannot start a node: {error}")))
}

fn make_identity(seed: &[u8]) -> Result<Identity, Failure> {
    Identity::from_seed(seed).map_err(|error| Failure::Io(error.to_string()))
}

/// What one chunk may take with either policy: the time the slowest honest link needs for all chunks that
/// are asked of it at once, half as much again, and half a second for round trips. Shorter would punish
/// the honest; longer only lengthens how long a silent peer is waited for.
fn range_timeout(plans: &[PeerPlan], chunk_bytes: u32) -> Duration {
    let honest = plans.iter().filter(|plan| !plan.kind.is_hostile());
    let slowest = honest.map(|plan| plan.rate_bytes_per_s).min().unwrap_or(1).max(1);
    let seconds = CHUNKS_AT_ONCE * f64::from(chunk_bytes) / slowest as f64;
    Duration::from_secs_f64(1.5 * seconds + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_lets_the_slowest_honest_peer_finish_what_it_is_asked() {
        for seed in 0..50 {
            let plans = world::draw(seed, 8, 2);
            let slowest = plans.iter().filter(|plan| !plan.kind.is_hostile()).map(|plan| plan.rate_bytes_per_s).min();
            let needed = CHUNKS_AT_ONCE * 262_144.0 / slowest.unwrap_or(1) as f64;
            let timeout = range_timeout(&plans, 262_144).as_secs_f64();
            assert!(timeout > needed && timeout < 5.0, "seed {seed}: {timeout} for {needed}");
        }
    }
}
