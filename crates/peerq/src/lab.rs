//! `peerq lab`: experiments in the laboratory. This file reads arguments and prints; the work is `peerq_lab::cli`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Subcommand;
use peerq_lab::cli::{self, Chosen, LabError};
use peerq_lab::fuzz;
use peerq_lab::laboratory::Laboratory;
use peerq_lab::report::{Compare, Lines, Progress, Selection, Shard};
use peerq_lab::study::Study;

use crate::exit::Failure;
use crate::{output, progress};

/// Compare ways of choosing peers in simulated, hostile worlds.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  peerq lab list
  peerq lab compare A1
  peerq lab compare --quick --json
  peerq lab compare adversaries
  peerq lab compare specs --seeds 5
  peerq lab compare drawn
  peerq lab compare drawn-17
  peerq lab run --all --seeds 20 --shard 1/4 --output part1.jsonl
  peerq lab merge part1.jsonl part2.jsonl --output all.jsonl
  peerq lab report all.jsonl --output report.html
  peerq lab fuzz --seeds 500

A study is a set of plans with a table and goals of its own:
  adversaries  what hostile peers gain from each policy, and by how much it overrates them
  specs        the invariants of the selector specification: ours, the published selector, the yardstick
  drawn        every policy in worlds drawn from seeds: how near each comes to the yardstick

Exit code 1 means that a plan which this version should meet is not met, that a study misses a goal, or that
fuzzing found something.";

#[derive(Subcommand)]
enum Command {
    /// List the built-in plans and the studies.
    List {
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Run plans and keep every run's result as a line of JSON.
    Run {
        #[command(flatten)]
        runs: Runs,
        /// Where the results go.
        #[arg(long, short, value_name = "FILE", default_value = "results.jsonl")]
        output: PathBuf,
    },
    /// Run plans and compare the policies.
    Compare {
        #[command(flatten)]
        runs: Runs,
        /// Print one JSON document instead of tables.
        #[arg(long)]
        json: bool,
        /// Keep the results too.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Put the results of shards together.
    Merge {
        /// Files of results, or one compare document (which has no plots).
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        /// Where the whole goes.
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make one HTML file, which needs nothing else, of results.
    Report {
        /// Files of results, or one compare document (which has no plots).
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// The HTML file.
        #[arg(long, short, value_name = "FILE", default_value = "report.html")]
        output: PathBuf,
    },
    /// Draw whole worlds from seeds and check what must always hold.
    Fuzz {
        /// How many seeds.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Only this seed.
        #[arg(long, conflicts_with_all = ["seeds", "from"])]
        seed: Option<u64>,
        /// Threads; as many as there are cores by default.
        #[arg(long)]
        threads: Option<usize>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
}

/// What to run.
#[derive(clap::Args)]
struct Runs {
    /// Built-in plans, scenarios (such as A6), plans drawn from a seed (such as drawn-17), or paths of plan files; or one study alone.
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// All built-in plans.
    #[arg(long)]
    all: bool,
    /// The quick set, with few seeds.
    #[arg(long)]
    quick: bool,
    /// Seeds of each plan, instead of the plan's own number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,
    /// Only these policies.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    policies: Option<Vec<String>>,
    /// Only this part of the runs, such as 2/4.
    #[arg(long, default_value = "1/1")]
    shard: Shard,
    /// Threads; as many as there are cores by default. Results do not depend on it.
    #[arg(long)]
    threads: Option<usize>,
}

impl Runs {
    fn chosen(&self) -> Chosen {
        Chosen { names: self.plans.clone(), all: self.all, quick: self.quick }
    }

    fn selection(&self) -> Selection {
        Selection { seeds: self.seeds, policies: self.policies.clone(), shard: self.shard, threads: self.threads }
    }

    /// The study of the specification, which runs some plans again and times decisions.
    fn specs(&self, lines: &Lines) -> Result<(Compare, String, Vec<String>), Failure> {
        let begun = Instant::now();
        let clock = || begun.elapsed().as_secs_f64();
        cli::specs(&Laboratory, lines, &self.selection(), &clock, &|_| ()).map_err(refused)
    }

    fn run(&self) -> Result<Lines, Failure> {
        let (chosen, selection) = (self.chosen(), self.selection());
        let bar = progress::runs(0);
        let watch = |progress: Progress| {
            bar.set_length(progress.all as u64);
            bar.set_position(progress.done as u64);
        };
        let lines = cli::run(&Laboratory, &chosen, &selection, &watch);
        bar.finish_and_clear();
        lines.map_err(refused)
    }
}

fn refused(error: LabError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Runs a command of the laboratory.
///
/// # Errors
/// [`Failure::Usage`] for plans, policies and results that are not what they should be, [`Failure::Check`] when something that should hold does not.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::List { json } => {
            let listed = cli::list().map_err(refused)?;
            if json {
                output::line(&output::to_json(&listed)?)
            } else {
                let studies = Study::ALL.map(Study::name).join(", ");
                let plans = cli::list_table(&listed);
                output::line(&format!(
                    "{plans}\nplans drawn from a seed: drawn-0, drawn-1, drawn-2, and so on\nstudies, which `peerq lab compare` takes too: {studies}"
                ))
            }
        }
        Command::Run { runs, output: path } => {
            let lines = runs.run()?;
            cli::write(&lines, &path).map_err(refused)?;
            output::line(&format!("results in {}", path.display()))?;
            judged(&lines)
        }
        Command::Compare { runs, json, output: path } => {
            let study = cli::study(&runs.chosen()).map_err(refused)?;
            if study.is_some() && runs.shard != Shard::default() {
                return Err(refused(LabError::Part));
            }
            let lines = runs.run()?;
            if let Some(path) = path {
                cli::write(&lines, &path).map_err(refused)?;
            }
            let Some(study) = study else {
                let (document, table) = cli::compare(&lines);
                output::line(&if json { output::to_json(&document)? } else { table })?;
                return judged(&lines);
            };
            let (document, table, missed) = match study {
                Study::Adversaries => cli::adversaries(&lines),
                Study::Specs => runs.specs(&lines)?,
                Study::Drawn => cli::drawn(&lines),
            };
            output::line(&if json { output::to_json(&document)? } else { table.trim_end().to_owned() })?;
            match missed.is_empty() {
                true => Ok(()),
                false => Err(Failure::Check(format!("missed: {}", missed.join("; ")))),
            }
        }
        Command::Merge { parts, output: path } => {
            let whole = cli::merge(&parts).map_err(refused)?;
            cli::write(&whole, &path).map_err(refused)
        }
        Command::Report { results, output: path } => {
            let page = cli::report(&results).map_err(refused)?;
            std::fs::write(&path, page)
                .map_err(|error| Failure::Io(format!("cannot write {}: {error}", path.display())))?;
            output::line(&format!("report in {}", path.display()))
        }
        Command::Fuzz { seeds, from, seed, threads, json } => {
            let (first, count) = seed.map_or((from, seeds), |seed| (seed, 1));
            let bar = progress::runs(count);
            let found = fuzz::fuzz(first, count, threads, &|done| bar.set_position(done));
            bar.finish_and_clear();
            output::line(&if json { output::to_json(&found)? } else { found.to_string() })?;
            match found.failures.len() {
                0 => Ok(()),
                failures => Err(Failure::Check(format!("{failures} checks did not hold"))),
            }
        }
    }
}

fn judged(lines: &Lines) -> Result<(), Failure> {
    let broken = cli::broken(lines);
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Check(format!("not met: {}", broken.join(", ")))),
    }
}
