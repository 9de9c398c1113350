//! The gate: an ordered list of steps, each timed and each repeatable alone.
//!
//! Cheap steps come first. Steps share what they compile: clippy and the docs both use the checked
//! (not compiled) dependency tree, the tests and the swarm run both use the compiled one.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::{direction, hygiene, lab, layers, swarm};

/// What a step returns: a remark for its line, or what is wrong and what to do.
pub(crate) type StepResult = Result<String, String>;

/// One named check.
struct Step {
    name: &'static str,
    checks: &'static str,
    run: fn(&Path) -> StepResult,
}

const STEPS: &[Step] = &[
    Step {
        name: "direction",
        checks: "crates depend on each other in the allowed direction only",
        run: direction::check,
    },
    Step {
        name: "layers",
        checks: "inside the engine, units <- measure <- estimate <- audit <- rank <- hedge",
        run: layers::check,
    },
    Step { name: "hygiene", checks: "file headers and sizes, no unfinished marks", run: hygiene::check },
    Step { name: "format", checks: "cargo fmt --all --check", run: format },
    Step { name: "clippy", checks: "clippy on all targets, warnings denied", run: clippy },
    Step { name: "docs", checks: "rustdoc, warnings denied", run: docs },
    Step { name: "test", checks: "cargo test", run: test },
    Step { name: "lab", checks: "the quick set of plans, and fuzzed worlds", run: lab::check },
    Step { name: "swarm", checks: "a short run of the main job, every round verified", run: swarm::check },
];

/// Which steps to run.
pub(crate) struct Plan {
    steps: Vec<&'static Step>,
    list: bool,
}

impl Plan {
    /// Reads the words after `ci`.
    ///
    /// # Errors
    /// A message for the person who typed them.
    pub(crate) fn from_args(args: &[&str]) -> Result<Self, String> {
        let mut only = Vec::new();
        let mut list = false;
        let mut words = args.iter();
        while let Some(word) = words.next() {
            match *word {
                "--list" => list = true,
                "--only" => {
                    let name = words.next().ok_or("`--only` needs the name of a step")?;
                    let step = STEPS.iter().find(|step| step.name == *name).ok_or_else(|| unknown(name))?;
                    only.push(step);
                }
                other => return Err(format!("unknown argument `{other}` for `ci`")),
            }
        }
        let steps = if only.is_empty() { STEPS.iter().collect() } else { only };
        Ok(Self { steps, list })
    }

    /// Runs the steps in order and prints one line for each; stops at the first failure.
    pub(crate) fn run(&self) -> ExitCode {
        if self.list {
            for step in &self.steps {
                println!("{:<10} {}", step.name, step.checks);
            }
            return ExitCode::SUCCESS;
        }
        let root = workspace_root();
        let start = Instant::now();
        for step in &self.steps {
            println!("==> {}: {}", step.name, step.checks);
            let begun = Instant::now();
            let outcome = (step.run)(&root);
            let seconds = begun.elapsed().as_secs_f64();
            match outcome {
                Ok(remark) => println!("ok  {:<10} {seconds:>7.1} s  {remark}", step.name),
                Err(problem) => {
                    eprintln!("{problem}");
                    eprintln!("FAILED {} after {seconds:.1} s", step.name);
                    eprintln!("repeat just this step: cargo xtask ci --only {}", step.name);
                    return ExitCode::FAILURE;
                }
            }
        }
        println!("ok  all {} steps in {:.1} s", self.steps.len(), start.elapsed().as_secs_f64());
        ExitCode::SUCCESS
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    format!("there is no step `{name}`; the steps are {}", names.join(", "))
}

fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Runs cargo with inherited output.
///
/// # Errors
/// The command line that failed.
pub(crate) fn cargo(root: &Path, args: &[&str], env: &[(&str, &str)]) -> StepResult {
    let shown = format!("cargo {}", args.join(" "));
    let status = cargo_command(root)
        .args(args)
        .envs(env.iter().copied())
        .status()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if status.success() { Ok(String::new()) } else { Err(format!("`{shown}` failed ({status})")) }
}

/// The cargo that runs this program, in the workspace root.
pub(crate) fn cargo_command(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn format(root: &Path) -> StepResult {
    cargo(root, &["fmt", "--all", "--check"], &[])
}

fn clippy(root: &Path) -> StepResult {
    cargo(root, &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

fn docs(root: &Path) -> StepResult {
    cargo(root, &["doc", "--locked", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])
}

fn test(root: &Path) -> StepResult {
    cargo(root, &["test", "--locked"], &[])?;
    // The task runner is no part of what `cargo test` means at the root, but its checks are code too.
    cargo(root, &["test", "--locked", "--quiet", "--package", "xtask"], &[])
}
