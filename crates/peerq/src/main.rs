//! The command line: serve files, fetch them, and watch the selector at work in a swarm.
//!
//! Results go to stdout, everything else to stderr. Exit codes are in [`exit`]; each subcommand is one
//! module.
#![forbid(unsafe_code)]

mod exit;
mod fetch;
mod interrupt;
mod output;
mod progress;
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Io(format!("cannot start the async runtime: {error}")))?;
    let result = runtime.block_on(async {
        match command {
            Command::Swarm(args) => swarm::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Fetch(args) => fetch::run(args).await,
        }
    });
    // What still runs in the background (a file being hashed when Ctrl-C came) must not hold up the end.
    runtime.shutdown_background();
    result
}
