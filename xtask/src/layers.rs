//! Direction inside the engine: `units <- measure <- estimate <- audit <- rank <- hedge`.
//!
//! Reads which other room of `crates/peer-quality/src` each source file names (`crate::…`, `super::…`)
//! and refuses a path that points up the list. A file's room is the first folder or file name below
//! `src`. Below the list lies the foundation, which every room may use and which uses nothing but itself.
//! Whatever is on neither list is glue above the rooms: it may use them all, and none of them may use it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ci::StepResult;
use crate::hygiene::rust_files;

const ENGINE: &str = "crates/peer-quality/src";

/// Rooms in the order in which facts flow through them; each may use itself and those before it.
const ORDER: &[&str] = &["units", "measure", "estimate", "audit", "rank", "hedge"];

/// What every room may use: units and containers that know nothing of peers' quality.
const FOUNDATION: &[&str] = &["facts", "seed", "table"];

/// Checks every file of the engine.
///
/// # Errors
/// One line for each file that reaches up.
pub(crate) fn check(root: &Path) -> StepResult {
    let source = root.join(ENGINE);
    let mut problems = Vec::new();
    let mut count = 0;
    for path in rust_files(root, ENGINE)? {
        let text = std::fs::read_to_string(root.join(&path))
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let Ok(inside) = root.join(&path).strip_prefix(&source).map(Path::to_path_buf) else {
            continue;
        };
        count += 1;
        let modules = module_path(&inside);
        let Some(room) = modules.first() else {
            continue;
        };
        for used in rooms_named(&text, &modules) {
            if let Some(reason) = refusal(room, &used) {
                problems.push(format!("{}: {reason}", path.display()));
            }
        }
    }
    if problems.is_empty() { Ok(format!("{count} files")) } else { Err(problems.join("\n")) }
}

/// Why `room` may not use `used`, if it may not.
fn refusal(room: &str, used: &str) -> Option<String> {
    if room == used {
        return None;
    }
    let place = |name: &str| ORDER.iter().position(|listed| *listed == name);
    let is_foundation = |name: &str| name == ORDER[0] || FOUNDATION.contains(&name);
    match (place(room), place(used)) {
        _ if is_foundation(used) => None,
        _ if is_foundation(room) => Some(format!("`{room}` is part of the foundation and may not use `{used}`")),
        (Some(mine), Some(other)) if other > mine => {
            Some(format!("`{room}` may not use `{used}`, which comes after it in {}", ORDER.join(" <- ")))
        }
        (Some(_), None) => Some(format!("`{room}` may not use `{used}`, which is glue above it")),
        _ => None,
    }
}

/// Module path of a source file: `estimate/reliability.rs` is `[estimate, reliability]`, `lib.rs` is empty.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: PathBuf = file.with_extension("");
    if path.ends_with("mod") || path == Path::new("lib") {
        path.pop();
    }
    path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

/// First segments below the crate root that the product code of `text` names.
fn rooms_named(text: &str, modules: &[String]) -> BTreeSet<String> {
    let code = product_code(text);
    let mut rooms = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        if is_word_start(&code, start) {
            heads(&code[start + "crate::".len()..], &mut rooms);
        }
    }
    // `super` reaches the root, and so another room, only when as many of them as the file is deep stand in a row.
    let climb = "super::".repeat(modules.len());
    for (start, _) in code.match_indices(&climb) {
        let rest = &code[start + climb.len()..];
        if is_word_start(&code, start) && !rest.starts_with("super::") {
            heads(rest, &mut rooms);
        }
    }
    rooms.retain(|room| room.starts_with(|c: char| c.is_ascii_lowercase()));
    rooms
}

/// The text up to its first test module, without comments.
fn product_code(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

fn is_word_start(code: &str, at: usize) -> bool {
    let before = code[..at].chars().next_back();
    !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == ':')
}

/// Adds the first segment of a path, or the first segments of each entry of a brace group.
fn heads(rest: &str, rooms: &mut BTreeSet<String>) {
    let Some(group) = rest.strip_prefix('{') else {
        rooms.insert(identifier(rest));
        return;
    };
    let mut depth = 0usize;
    let mut at_entry = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => at_entry = true,
            c if at_entry && depth == 0 && !c.is_whitespace() => {
                rooms.insert(identifier(&group[at..]));
                at_entry = false;
            }
            _ => {}
        }
    }
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, modules: &[&str]) -> Vec<String> {
        let modules: Vec<String> = modules.iter().map(ToString::to_string).collect();
        rooms_named(text, &modules).into_iter().collect()
    }

    #[test]
    fn groups_and_nested_groups_name_only_their_first_segments() {
        let text = "use crate::{units::{Bytes, Rate}, rank::Order,\n  audit};";
        assert_eq!(named(text, &["estimate"]), ["audit", "rank", "units"]);
    }

    #[test]
    fn super_counts_only_when_it_leaves_the_room() {
        assert_eq!(named("use super::window::Window;", &["estimate", "reliability"]), [""; 0]);
        assert_eq!(named("use super::super::rank::Order;", &["estimate", "reliability"]), ["rank"]);
        assert_eq!(named("use super::rank::Order;", &["estimate"]), ["rank"]);
    }

    #[test]
    fn comments_and_test_modules_do_not_count() {
        let text =
            "/// See [`crate::hedge`].\nuse crate::units::Rate;\n#[cfg(test)]\nmod tests { use crate::rank::X; }";
        assert_eq!(named(text, &["measure"]), ["units"]);
    }

    #[test]
    fn a_room_may_look_down_but_not_up() {
        assert_eq!(refusal("rank", "estimate"), None);
        assert!(refusal("estimate", "rank").is_some());
        assert!(refusal("estimate", "engine").is_some());
        assert_eq!(refusal("engine", "hedge"), None);
        assert_eq!(refusal("rank", "table"), None);
        assert!(refusal("table", "measure").is_some());
    }

    #[test]
    fn the_room_of_a_file_is_its_first_folder() {
        assert_eq!(module_path(Path::new("estimate/mod.rs")), ["estimate"]);
        assert_eq!(module_path(Path::new("estimate/reliability.rs")), ["estimate", "reliability"]);
        assert_eq!(module_path(Path::new("lib.rs")), [""; 0]);
    }
}
