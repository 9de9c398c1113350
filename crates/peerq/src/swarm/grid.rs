//! Several swarms, one after the other, as one table and one verdict: peerq is never slower than round robin.
//!
//! Slower is the median or the 99th percentile of the rounds after the learning ones being longer. Seconds of two machines
//! cannot be compared, the ratio within one swarm can: both ways run by turns on the same nodes.

use serde::Serialize;

use super::report::{Document, LEARNING_ROUNDS, PolicyName, Summary};
use super::{Args, World};
use crate::exit::Failure;
use crate::interrupt::or_interrupted;
use crate::output;
use crate::table::{Align, Table};

/// All swarms.
#[derive(Debug, Serialize)]
struct Grid {
    swarms: Vec<Swarm>,
    /// Whether peerq is nowhere slower, and every round is verified.
    never_slower: bool,
}

/// One swarm: what was asked for, what came out, and peerq's times over round robin's.
#[derive(Debug, Serialize)]
struct Swarm {
    peer_count: usize,
    hostile_count: usize,
    p50_ratio: f64,
    p99_ratio: f64,
    verified: bool,
    #[serde(flatten)]
    document: Document,
}

/// Runs the swarms and prints their table.
///
/// # Errors
/// [`Failure::Usage`] for options that are about a single swarm, [`Failure::Check`] when peerq is slower somewhere or a round's file is wrong or missing, and
/// those of [`super::run::swarm`].
pub(super) async fn run(args: &Args, worlds: &[World]) -> Result<(), Failure> {
    for (given, name) in [(args.keep.is_some(), "--keep"), (args.record.is_some(), "--record")] {
        if given {
            return Err(Failure::Usage(format!(
                "{name} is about one swarm; give one number of --peers and one of --hostile"
            )));
        }
    }
    let mut swarms = Vec::new();
    for &world in worlds {
        let finished = or_interrupted("stopped; nothing is kept", super::run::swarm(args, world)).await?;
        let swarm = Swarm::new(world, finished.document);
        eprintln!("{}", swarm.line());
        swarms.push(swarm);
    }
    let grid = Grid::new(swarms);
    output::line(&if args.json { output::to_json(&grid)? } else { grid.table() })?;
    match grid.missed() {
        missed if missed.is_empty() => Ok(()),
        missed => Err(Failure::Check(missed.join("; "))),
    }
}

impl Swarm {
    fn new(world: World, document: Document) -> Self {
        let of = |policy, time: fn(&Summary) -> f64| document.summary.get(&policy).map_or(f64::NAN, time);
        let ratio = |time| of(PolicyName::Peerq, time) / of(PolicyName::RoundRobin, time);
        Swarm {
            peer_count: world.peers,
            hostile_count: world.hostile,
            p50_ratio: ratio(|one| one.p50_s),
            p99_ratio: ratio(|one| one.p99_s),
            verified: document.all_verified(),
            document,
        }
    }

    /// Progress, while others still run.
    fn line(&self) -> String {
        format!(
            "{} peers, {} hostile: {:.2} of round robin's p50, {:.2} of its p99",
            self.peer_count, self.hostile_count, self.p50_ratio, self.p99_ratio
        )
    }

    /// A ratio that is no number shows nothing to be right.
    fn is_slower(&self) -> bool {
        !(self.p50_ratio <= 1.0 && self.p99_ratio <= 1.0)
    }
}

impl Grid {
    fn new(swarms: Vec<Swarm>) -> Self {
        let mut grid = Grid { swarms, never_slower: false };
        grid.never_slower = grid.missed().is_empty();
        grid
    }

    /// What is not as it should be.
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for swarm in &self.swarms {
            let name = format!("{} peers, {} hostile", swarm.peer_count, swarm.hostile_count);
            if !swarm.verified {
                missed.push(format!("{name}: a round did not end with the right file"));
            }
            if swarm.is_slower() {
                missed.push(format!("{name}: slower than round robin"));
            }
        }
        missed
    }

    fn table(&self) -> String {
        let mut table = Table::new([
            ("peers", Align::Right),
            ("hostile", Align::Right),
            ("verified", Align::Right),
            ("p50", Align::Right),
            ("round-robin", Align::Right),
            ("ratio", Align::Right),
            ("p99", Align::Right),
            ("round-robin", Align::Right),
            ("ratio", Align::Right),
            ("hostile share", Align::Right),
        ]);
        for swarm in &self.swarms {
            let of = |policy, shown: fn(&Summary) -> String| {
                swarm.document.summary.get(&policy).map_or("-".to_owned(), shown)
            };
            let p50 = |one: &Summary| format!("{:.2} s", one.p50_s);
            let p99 = |one: &Summary| format!("{:.2} s", one.p99_s);
            table.row([
                swarm.peer_count.to_string(),
                swarm.hostile_count.to_string(),
                if swarm.verified { "all" } else { "not all" }.to_owned(),
                of(PolicyName::Peerq, p50),
                of(PolicyName::RoundRobin, p50),
                format!("{:.2}", swarm.p50_ratio),
                of(PolicyName::Peerq, p99),
                of(PolicyName::RoundRobin, p99),
                format!("{:.2}", swarm.p99_ratio),
                of(PolicyName::Peerq, |one| format!("{:.1} %", one.hostile_byte_share * 100.0)),
            ]);
        }
        let slower = self.swarms.iter().filter(|swarm| swarm.is_slower()).count();
        let verdict = if self.never_slower {
            format!("met: peerq is never slower than round robin in {} swarms", self.swarms.len())
        } else if slower > 0 {
            format!("missed: peerq is slower than round robin in {slower} of {} swarms", self.swarms.len())
        } else {
            "missed: not every round ended with the right file".to_owned()
        };
        format!("{}\n\n{verdict}, at the p50 or the p99 of the rounds after {LEARNING_ROUNDS}", table.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::report::Round;

    fn swarm(peerq_s: [f64; 4], robin_s: [f64; 4], verified: bool) -> Swarm {
        let round = |policy, (index, seconds): (usize, f64)| Round {
            policy,
            round: index + 1,
            seconds,
            verified,
            bytes_by_peer: [].into(),
        };
        let peerq = peerq_s.into_iter().enumerate().map(|one| round(PolicyName::Peerq, one));
        let robin = robin_s.into_iter().enumerate().map(|one| round(PolicyName::RoundRobin, one));
        Swarm::new(World { peers: 8, hostile: 2 }, Document::new(1, Vec::new(), peerq.chain(robin).collect()))
    }

    #[test]
    fn slow_learning_is_no_miss_and_one_slow_round_after_it_is() {
        let robin = [5.0; 4];
        assert!(Grid::new(vec![swarm([9.0, 9.0, 2.0, 2.0], robin, true)]).never_slower);
        let grid = Grid::new(vec![swarm([2.0; 4], robin, true), swarm([2.0, 2.0, 2.0, 9.0], robin, true)]);
        assert!(!grid.never_slower);
        assert_eq!(grid.missed(), ["8 peers, 2 hostile: slower than round robin"]);
        assert!(grid.table().contains("missed: peerq is slower than round robin in 1 of 2 swarms"));
    }

    #[test]
    fn a_wrong_file_and_a_ratio_that_is_none_are_misses() {
        assert!(!Grid::new(vec![swarm([1.0; 4], [5.0; 4], false)]).never_slower);
        assert!(Grid::new(vec![swarm([0.0; 4], [0.0; 4], true)]).table().contains("missed"));
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let table = Grid::new(vec![swarm([100.0; 4], [500.0; 4], true)]).table();
        assert!(table.contains("met: ") && table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
}
