//! What `peerq lab` does, as functions that return values; the command line only reads arguments and prints.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use crate::plan::{self, Part, Plan, PlanError};
use crate::report::{self, Bench, Compare, Lines, LinesError, Progress, Selection, Summary};
use crate::study::{self, Goal, Study};

/// Seeds of the quick set.
pub const QUICK_SEEDS: u32 = 3;

/// Why a command of the laboratory failed; every message says what to do.
#[derive(Debug, Error)]
pub enum LabError {
    /// A plan is malformed, impossible or unknown.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Results cannot be read, merged or written.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// A policy is unknown.
    #[error("{0}")]
    Policy(String),
    /// A study was named beside something else.
    #[error(
        "`{0}` is a study, a set of plans with a table of its own: name nothing beside it (`--seeds 3` makes it quick)"
    )]
    Beside(&'static str),
    /// A part of a study was to be judged.
    #[error(
        "a study is judged as a whole: `peerq lab run` takes --shard, `merge` puts the parts together and `report` shows them"
    )]
    Part,
    /// Nothing was chosen.
    #[error(
        "no plan was named; name plans or scenarios, or use --all or --quick (`peerq lab list` shows them), or a study: {}",
        studies()
    )]
    Nothing,
}

/// Which plans.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Names of built-in plans, scenarios (`A6`), or paths of plan files; or of one [study](Study) alone.
    pub names: Vec<String>,
    /// All built-in plans.
    pub all: bool,
    /// The quick set, with [`QUICK_SEEDS`] seeds where none are given.
    pub quick: bool,
}

/// One line of `peerq lab list`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Name of the plan.
    pub name: String,
    /// Its scenario.
    pub scenario: String,
    /// The part of the product it waits for.
    pub part: Part,
    /// Whether it belongs to the quick set.
    pub quick: bool,
    /// World and right outcome.
    pub about: String,
    /// Its pass marks, in words.
    pub checks: Vec<String>,
}

/// All built-in plans.
///
/// # Errors
/// None in a released laboratory.
pub fn list() -> Result<Vec<Listed>, LabError> {
    let listed = |plan: Plan| Listed {
        checks: plan
            .checks
            .iter()
            .map(|check| format!("{} {}", check.what_in_words(), check.want_in_words()))
            .collect(),
        name: plan.name,
        scenario: plan.scenario,
        part: plan.part,
        quick: plan.quick,
        about: plan.about,
    };
    Ok(plan::builtin()?.into_iter().map(listed).collect())
}

/// The list as text, a plan per line.
pub fn list_table(listed: &[Listed]) -> String {
    let width = listed.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let line = |one: &Listed| {
        let quick = if one.quick { "quick" } else { "" };
        format!("{:<5}{:<width$}  {:?}  {quick:<6}{}\n", one.scenario, one.name, one.part, one.about)
    };
    listed.iter().map(line).collect()
}

fn studies() -> String {
    Study::ALL.map(Study::name).join(", ")
}

/// The study that is named, if one is.
///
/// # Errors
/// [`LabError::Beside`] where plans are chosen besides.
pub fn study(chosen: &Chosen) -> Result<Option<Study>, LabError> {
    let Some(study) = chosen.names.iter().find_map(|name| Study::named(name)) else { return Ok(None) };
    if chosen.names.len() > 1 || chosen.all || chosen.quick {
        return Err(LabError::Beside(study.name()));
    }
    Ok(Some(study))
}

/// The plans chosen, each once.
///
/// # Errors
/// [`LabError::Plan`] for a name that is none and a file that is no plan; [`LabError::Nothing`] where nothing was asked for; those of [`study()`].
pub fn plans(chosen: &Chosen) -> Result<Vec<Plan>, LabError> {
    if let Some(study) = study(chosen)? {
        return Ok(study.plans()?);
    }
    let mut plans: Vec<Plan> = Vec::new();
    if chosen.all || chosen.quick {
        plans = plan::builtin()?;
        plans.retain(|plan| chosen.all || plan.quick);
    }
    for name in &chosen.names {
        let is_path = name.ends_with(".toml") || name.contains(std::path::MAIN_SEPARATOR);
        let found = if is_path { vec![plan::load(Path::new(name))?] } else { plan::find(name)? };
        for plan in found {
            if !plans.iter().any(|known| known.name == plan.name) {
                plans.push(plan);
            }
        }
    }
    if plans.is_empty() { Err(LabError::Nothing) } else { Ok(plans) }
}

/// Runs the chosen plans: the work of `lab run` and `lab compare`. `watch` is called after each run, from any thread.
///
/// # Errors
/// Those of [`plans`], and [`LabError::Policy`].
pub fn run(
    bench: &dyn Bench,
    chosen: &Chosen,
    selection: &Selection,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<Lines, LabError> {
    let plans = plans(chosen)?;
    let others = |study: &Study| selection.policies.iter().flatten().find(|name| !study.compares(name)).cloned();
    if let Some((study, name)) = study(chosen)?.and_then(|study| Some((study, others(&study)?))) {
        let reason = format!("`{}` compares {}; `{name}` is none of them", study.name(), study.policies().join(", "));
        return Err(LabError::Policy(reason));
    }
    let mut selection = selection.clone();
    if chosen.quick && !chosen.all {
        selection.seeds = selection.seeds.or(Some(QUICK_SEEDS));
    }
    report::run(bench, &plans, &selection, watch).map_err(LabError::Policy)
}

/// Reads results from files and puts them together: the work of `lab merge`.
///
/// # Errors
/// [`LabError::Lines`] names the file and the line, or the run on which files contradict each other.
pub fn merge(paths: &[PathBuf]) -> Result<Lines, LabError> {
    let read = |path: &PathBuf| {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(input) => Lines::read(&file, BufReader::new(input)),
            Err(source) => Err(LinesError::Io { file, source }),
        }
    };
    let parts = paths.iter().map(read).collect::<Result<Vec<Lines>, LinesError>>()?;
    Ok(Lines::merge(parts)?)
}

/// Writes results to a file.
///
/// # Errors
/// [`LabError::Lines`] with what the system said.
pub fn write(lines: &Lines, path: &Path) -> Result<(), LabError> {
    let io = |source| LinesError::Io { file: path.display().to_string(), source };
    let file = File::create(path).map_err(io)?;
    Ok(lines.write(BufWriter::new(file)).map_err(io)?)
}

/// The compare document, and the same as tables.
pub fn compare(lines: &Lines) -> (Compare, String) {
    let summaries = report::summarise(lines);
    (report::compare(&summaries), report::compare_table(&summaries))
}

/// The compare document of the study of adversaries, its tables, and the goals that are missed.
pub fn adversaries(lines: &Lines) -> (Compare, String, Vec<String>) {
    let summaries = report::summarise(lines);
    let study = study::adversaries::adversaries(&summaries);
    let text = study.to_string();
    let missed = missed(&study.goals);
    (Compare { adversaries: Some(study), ..report::compare(&summaries) }, text, missed)
}

fn missed(goals: &[Goal]) -> Vec<String> {
    goals.iter().filter(|goal| !goal.met).map(|goal| goal.what.clone()).collect()
}

/// The compare document of the study of drawn worlds, its table, and the goals that are missed.
pub fn drawn(lines: &Lines) -> (Compare, String, Vec<String>) {
    let summaries = report::summarise(lines);
    let study = study::drawn::drawn(&summaries);
    let text = study.to_string();
    let missed = missed(&study.goals);
    (Compare { drawn: Some(study), ..report::compare(&summaries) }, text, missed)
}

/// The compare document of the study of the selector specification, its table, and the goals that are missed. `selection` is that of the `lines`; `clock` gives
/// seconds from any origin.
///
/// # Errors
/// Those of [`run`].
pub fn specs(
    bench: &dyn Bench,
    lines: &Lines,
    selection: &Selection,
    clock: &dyn Fn() -> f64,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<(Compare, String, Vec<String>), LabError> {
    let summaries = report::summarise(lines);
    let study = study::specs(bench, (lines, &summaries), selection, clock, watch).map_err(LabError::Policy)?;
    let (text, missed) = (study.to_string(), study.missed());
    Ok((Compare { specs: Some(study), ..report::compare(&summaries) }, text, missed))
}

/// Everything about each plan, as text.
pub fn tables(lines: &Lines) -> String {
    report::summarise(lines).iter().map(report::plan_table).collect::<Vec<_>>().join("\n")
}

/// The report of files of results, or of one compare document: the work of `lab report`.
///
/// # Errors
/// Those of [`merge`].
pub fn report(paths: &[PathBuf]) -> Result<String, LabError> {
    if let [path] = paths
        && let Ok(text) = std::fs::read_to_string(path)
        && let Ok(document) = serde_json::from_str::<Compare>(&text)
    {
        return Ok(report::document_page(&document));
    }
    Ok(report::page(&merge(paths)?))
}

/// Plans that are not met although the product has the part they wait for, or whose runs failed: what makes a command's own check fail.
pub fn broken(lines: &Lines) -> Vec<String> {
    let failed = |summary: &Summary| summary.policies.iter().any(|(_, one)| one.error.is_some());
    let due = |summary: &Summary| summary.plan.part <= plan::DELIVERED && !summary.met && summary.missing == 0;
    report::summarise(lines)
        .into_iter()
        .filter(|summary| failed(summary) || due(summary))
        .map(|summary| summary.plan.plan)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::Toy;

    #[test]
    fn names_scenarios_and_files_choose_plans_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, report::testing::PLAN).unwrap();
        let names = vec!["a6".into(), "a6-mirrors-share-a-link".into(), file.display().to_string()];
        let chosen = plans(&Chosen { names, ..Chosen::default() }).unwrap();
        let names: Vec<&str> = chosen.iter().map(|plan| plan.name.as_str()).collect();
        assert_eq!(names, ["a6-mirrors-share-a-link", "a6-our-link-is-the-bottleneck", "toy"]);
        assert!(plans(&Chosen::default()).unwrap_err().to_string().contains("--all"));
    }

    #[test]
    fn a_study_stands_for_its_plans_and_alone() {
        let named = |names: &[&str], quick| Chosen {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            quick,
            ..Chosen::default()
        };
        let all = plans(&named(&["adversaries"], false)).unwrap();
        assert!(all.len() >= 20 && all.iter().all(|plan| plan.scenario.starts_with('B')));
        for beside in [named(&["a1", "Adversaries"], false), named(&["adversaries"], true)] {
            let error = plans(&beside).unwrap_err().to_string();
            assert!(error.contains("`adversaries`") && error.contains("--seeds"), "{error}");
        }
    }

    #[test]
    fn results_survive_the_way_through_a_file_and_a_cut_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let chosen = Chosen { names: vec!["a1".into()], ..Chosen::default() };
        let lines = run(&Toy, &chosen, &Selection::default(), &|_| ()).unwrap();
        write(&lines, &path).unwrap();
        assert_eq!(merge(std::slice::from_ref(&path)).unwrap(), lines);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 30]).unwrap();
        let error = merge(&[path]).unwrap_err().to_string();
        assert!(error.contains(&format!("results.jsonl:{}", text.lines().count())), "{error}");
    }

    #[test]
    fn a_report_is_made_of_results_and_of_a_compare_document() {
        let folder = tempfile::tempdir().unwrap();
        let (results, document) = (folder.path().join("results.jsonl"), folder.path().join("compare.json"));
        let chosen = Chosen { names: vec!["a1".into()], ..Chosen::default() };
        let lines = run(&Toy, &chosen, &Selection::default(), &|_| ()).unwrap();
        write(&lines, &results).unwrap();
        std::fs::write(&document, serde_json::to_string_pretty(&compare(&lines).0).unwrap()).unwrap();
        let (whole, tables) =
            (report(std::slice::from_ref(&results)).unwrap(), report(std::slice::from_ref(&document)).unwrap());
        assert!(whole.contains("<svg") && !tables.contains("<svg") && tables.contains("--output"));
        for page in [&whole, &tables] {
            assert!(page.contains("a1-settled-on-slow") && page.ends_with("</html>\n"));
        }
        assert!(report(&[results, document]).is_err(), "a compare document merges with nothing");
    }

    #[test]
    fn a_report_of_a_study_shows_its_tables_and_goals() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("study.json");
        let chosen = Chosen { names: vec!["b1".into()], ..Chosen::default() };
        let lines = run(&Toy, &chosen, &Selection::default(), &|_| ()).unwrap();
        let (document, text, missed) = adversaries(&lines);
        std::fs::write(&path, serde_json::to_string_pretty(&document).unwrap()).unwrap();
        let page = report(std::slice::from_ref(&path)).unwrap();
        assert!(page.contains("id=\"adversaries\"") && page.contains("Deadlines missed"), "{page}");
        assert!(
            text.contains("credited / delivered at most 1.33") && page.contains("credited / delivered at most 1.33")
        );
        assert_eq!(missed.len(), page.matches("not met</span> peerq:").count());
    }

    #[test]
    fn the_quick_set_has_few_seeds_unless_told_otherwise() {
        let quick = Chosen { quick: true, ..Chosen::default() };
        let lines = run(&Toy, &quick, &Selection::default(), &|_| ()).unwrap();
        assert!(lines.runs.iter().all(|run| run.seed <= u64::from(QUICK_SEEDS)));
        assert!(lines.plans.len() >= 10);
    }

    #[test]
    fn the_list_says_which_part_each_plan_waits_for() {
        let listed = list().unwrap();
        assert_eq!(listed.len(), list_table(&listed).lines().count());
        assert!(listed.iter().any(|one| one.part == Part::D) && listed.iter().all(|one| !one.checks.is_empty()));
    }
}
