//! Small rules that keep the tree readable: headers, sizes, unfinished marks, sleeping tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::StepResult;

/// A file longer than this holds more than one concept.
const LINES_MAX: usize = 500;

/// Marks of unfinished work. Written in two halves so that this file does not contain them.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("#[ign", "ore"),
];

/// Ways to wait for the clock instead of for an event.
const SLEEPS: &[&str] = &[concat!("thread::sl", "eep("), concat!("time::sl", "eep(")];

/// Folders of one person's machine.
const PRIVATE_PATHS: &[&str] = &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Checks every tracked source and text file.
///
/// # Errors
/// One line for each broken rule.
pub(crate) fn check(root: &Path) -> StepResult {
    let mut problems = Vec::new();
    let files = tracked(root, ".")?;
    for path in &files {
        // A tracked file that was just deleted, or is not text, has nothing to check.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else {
            continue;
        };
        let shown = path.display();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust {
            problems.extend(rust_problems(path, &text).into_iter().map(|problem| format!("{shown}: {problem}")));
        }
        if let Some(found) = PRIVATE_PATHS.iter().find(|found| text.contains(**found)) {
            problems.push(format!("{shown}: names a folder of one machine (`{found}`)"));
        }
    }
    if problems.is_empty() { Ok(format!("{} files", files.len())) } else { Err(problems.join("\n")) }
}

fn rust_problems(path: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    // The tests of one module, in a file beside it, are told by that module.
    let is_module_of_tests = path.to_string_lossy().ends_with("tests.rs");
    if !text.starts_with("//!") && !is_module_of_tests {
        problems.push("must open with a `//!` that says what the file is for".to_owned());
    }
    if is_crate_root(path) && !text.contains("#![forbid(unsafe_code)]") {
        problems.push("crate root without `#![forbid(unsafe_code)]`".to_owned());
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{lines} lines; split it by concept (limit {LINES_MAX})"));
    }
    for mark in UNFINISHED.iter().filter(|mark| text.contains(**mark)) {
        problems.push(format!("unfinished: contains `{mark}`"));
    }
    if is_test(path) {
        for sleep in SLEEPS.iter().filter(|sleep| text.contains(**sleep)) {
            problems.push(format!("a test waits for events, not for the clock (`{sleep}`)"));
        }
    }
    problems
}

fn is_crate_root(path: &Path) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.iter().any(|part| part == "tests")
}

/// Tracked Rust files below `folder`, relative to `root`.
///
/// # Errors
/// When git cannot list them.
pub(crate) fn rust_files(root: &Path, folder: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = tracked(root, folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    Ok(files)
}

fn tracked(root: &Path, folder: &str) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder])
        .output()
        .map_err(|error| format!("cannot start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_file_has_no_problems() {
        assert_eq!(rust_problems(Path::new("src/rate.rs"), "//! Rates.\n"), [""; 0]);
    }

    #[test]
    fn headers_roots_sizes_and_marks_are_checked() {
        let text = format!("fn a() {{ {}) }}\n", UNFINISHED[0]) + &"\n".repeat(LINES_MAX);
        assert_eq!(rust_problems(Path::new("src/lib.rs"), &text).len(), 4);
    }

    #[test]
    fn only_tests_are_refused_a_sleep() {
        let text = format!("//! Waits.\nfn wait() {{ {}1) }}\n", SLEEPS[0]);
        assert_eq!(rust_problems(Path::new("tests/wait.rs"), &text).len(), 1);
        assert_eq!(rust_problems(Path::new("src/wait.rs"), &text).len(), 0);
    }
}
