//! The command line: serve files, fetch them, watch the selector at work in a swarm, and try it in the laboratory.
//!
//! Results go to stdout, everything else to stderr. Exit codes are in [`exit`]; each subcommand is one
//! module.
#![forbid(unsafe_code)]

mod exit;
mod fetch;
mod interrupt;
mod lab;
mod output;
mod progress;
mod recording;
mod serve;
mod sizes;
mod swarm;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Failure;

/// Fetch data from whoever really delivers it, in a network where peers may be slow, broken or hostile.
#[derive(Parser)]
#[command(name = "peerq", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 success, 1 the run's own check failed (a file could not be fetched or verified),
2 wrong usage or an I/O problem, 130 stopped by Ctrl-C.";

#[derive(Subcommand)]
enum Command {
    Swarm(swarm::Args),
    Serve(serve::Args),
    Fetch(fetch::Args),
    Lab(lab::Args),
    Replay(recording::ReplayArgs),
    Explain(recording::ExplainArgs),
}

fn main() -> ExitCode {
    // Parsing ends the process itself: with 2 on wrong usage, with 0 after --help.
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("error: {message}");
            }
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Lab(args) => lab::run(args),
        Command::Replay(args) => recording::replay(&args),
        Command::Explain(args) => recording::explain(&args),
        Command::Swarm(args) => on_network(swarm::run(args)),
        Command::Serve(args) => on_network(serve::run(args)),
        Command::Fetch(args) => on_network(fetch::run(args)),
    }
}

/// Runs what needs sockets and timers.
fn on_network(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Io(format!("cannot start the async runtime: {error}")))?;
    let result = runtime.block_on(work);
    // What still runs in the background (a file being hashed when Ctrl-C came) must not hold up the end.
    runtime.shutdown_background();
    result
}
