//! Development tasks: `cargo xtask ci` runs every check that a change must pass.
//!
//! The gate is a program so that a person and the build server run the same thing, step by step
//! (style guide, "CI is a program"). `cargo xtask help` lists the tasks.
#![forbid(unsafe_code)]

mod ci;
mod direction;
mod hygiene;
mod lab;
mod layers;
mod swarm;

use std::process::ExitCode;

const HELP: &str = "\
Development tasks of this workspace

Usage: cargo xtask <TASK>

Tasks:
  ci                 every check, cheapest first; stops at the first failure
  ci --only STEP     only this step (repeatable)
  ci --list          names of the steps and what each checks
  help               this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        ["ci", rest @ ..] => match ci::Plan::from_args(rest) {
            Ok(plan) => plan.run(),
            Err(message) => usage(&message),
        },
        [task, ..] => usage(&format!("unknown task `{task}`")),
    }
}

fn usage(message: &str) -> ExitCode {
    eprintln!("error: {message}\n\n{HELP}");
    ExitCode::from(2)
}
