//! Which crate may depend on which: engine <- selector <- host <- command line.
//!
//! The rules of ARCHITECTURE.md as a table, compared with what `cargo metadata` resolved. Only normal
//! and build dependencies count: a test may compare with anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::ci::{StepResult, cargo_command};

/// What one workspace crate may depend on.
struct Rule {
    krate: &'static str,
    /// Crates of this workspace it may name.
    workspace: &'static [&'static str],
    /// Name prefixes of the network stacks it may use, and the members of those stacks.
    stack: Stack,
    /// Crates that may not appear anywhere below it.
    never: &'static [&'static str],
}

enum Stack {
    /// No crate of a network stack at all.
    None,
    /// Only these crates.
    Only(&'static [&'static str]),
    /// Anything whose name starts with this.
    Prefix(&'static str),
}

/// Name prefixes of the network stacks that hosts adapt to.
const STACKS: &[&str] = &["dig-", "pallas-"];

/// Crates that perform I/O, read clocks for their caller or draw OS randomness.
const IMPURE: &[&str] = &["tokio", "mio", "socket2", "async-std", "smol", "rustls", "getrandom", "chrono"];

const RULES: &[Rule] = &[
    Rule { krate: "peer-quality", workspace: &[], stack: Stack::None, never: IMPURE },
    Rule {
        krate: "dig-peer-selector",
        workspace: &["peer-quality"],
        stack: Stack::Only(&["dig-nat", "dig-dht", "dig-peer"]),
        never: &["dig-download"],
    },
    Rule {
        krate: "peerq-dig",
        workspace: &["peer-quality", "dig-peer-selector"],
        stack: Stack::Prefix("dig-"),
        never: &[],
    },
    Rule {
        krate: "peerq-lab",
        workspace: &["peer-quality", "dig-peer-selector"],
        // The published selector is a rival there, under its own name.
        stack: Stack::Only(&["dig-nat", "dig-dht", "dig-peer-selector"]),
        never: &["dig-download"],
    },
    Rule {
        krate: "peerq",
        workspace: &["peer-quality", "dig-peer-selector", "peerq-dig", "peerq-lab"],
        stack: Stack::Prefix("dig-"),
        never: &[],
    },
    Rule { krate: "xtask", workspace: &[], stack: Stack::None, never: &["tokio"] },
];

/// Compares the resolved dependency graph with [`RULES`].
///
/// # Errors
/// One line for each dependency that points the wrong way.
pub(crate) fn check(root: &Path) -> StepResult {
    let graph = Graph::from_metadata(&metadata(root)?).ok_or("`cargo metadata` printed an unknown format")?;
    let problems = graph.problems();
    if problems.is_empty() { Ok(format!("{} crates", graph.members.len())) } else { Err(problems.join("\n")) }
}

/// What cargo knows of the workspace and of everything below it.
///
/// # Errors
/// When cargo fails, for instance because the lock file is out of date.
pub(crate) fn metadata(root: &Path) -> Result<Value, String> {
    let output = cargo_command(root)
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .map_err(|error| format!("cannot start `cargo metadata`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata` printed no JSON: {error}"))
}

/// The resolved graph: package id to name, and to the ids of its non-development dependencies.
struct Graph {
    names: BTreeMap<String, String>,
    edges: BTreeMap<String, Vec<String>>,
    members: Vec<String>,
}

impl Graph {
    fn from_metadata(metadata: &Value) -> Option<Self> {
        let names = metadata["packages"]
            .as_array()?
            .iter()
            .filter_map(|package| Some((text(&package["id"])?, text(&package["name"])?)))
            .collect();
        let mut edges = BTreeMap::new();
        for node in metadata["resolve"]["nodes"].as_array()? {
            let below = node["deps"].as_array()?.iter().filter(|dep| is_shipped(dep));
            edges.insert(text(&node["id"])?, below.filter_map(|dep| text(&dep["pkg"])).collect());
        }
        let members = metadata["workspace_members"].as_array()?.iter().filter_map(text).collect();
        Some(Self { names, edges, members })
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for member in &self.members {
            let name = self.name(member);
            match RULES.iter().find(|rule| rule.krate == name) {
                Some(rule) => self.apply(rule, member, &mut problems),
                None => problems.push(format!(
                    "{name}: no rule for this crate; add one to xtask/src/direction.rs and to ARCHITECTURE.md"
                )),
            }
        }
        problems
    }

    fn apply(&self, rule: &Rule, member: &str, problems: &mut Vec<String>) {
        for dep in self.edges.get(member).into_iter().flatten() {
            let name = self.name(dep);
            let allowed = if self.members.contains(dep) {
                rule.workspace.contains(&name)
            } else if STACKS.iter().any(|stack| name.starts_with(stack)) {
                match rule.stack {
                    Stack::None => false,
                    Stack::Only(names) => names.contains(&name),
                    Stack::Prefix(prefix) => name.starts_with(prefix),
                }
            } else {
                true
            };
            if !allowed {
                problems.push(format!("{} may not depend on {name}", rule.krate));
            }
        }
        let below = self.all_below(member);
        for name in rule.never.iter().filter(|name| below.contains(**name)) {
            problems.push(format!("{} may not reach {name}, not even through another crate", rule.krate));
        }
    }

    fn all_below(&self, id: &str) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            for dep in self.edges.get(next).into_iter().flatten() {
                if seen.insert(dep.as_str()) {
                    open.push(dep);
                }
            }
        }
        seen.into_iter().map(|id| self.name(id)).collect()
    }

    fn name(&self, id: &str) -> &str {
        self.names.get(id).map_or("?", String::as_str)
    }
}

/// Whether a dependency is a normal or a build dependency (`kind` is null or "build").
fn is_shipped(dep: &Value) -> bool {
    dep["dep_kinds"].as_array().is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)], members: &[&str]) -> Graph {
        let mut graph = Graph {
            names: BTreeMap::new(),
            edges: BTreeMap::new(),
            members: members.iter().map(ToString::to_string).collect(),
        };
        for id in edges.iter().flat_map(|(from, to)| [*from, *to]).chain(members.iter().copied()) {
            graph.names.insert(id.to_owned(), id.to_owned());
        }
        for (from, to) in edges {
            graph.edges.entry((*from).to_owned()).or_default().push((*to).to_owned());
        }
        graph
    }

    #[test]
    fn the_engine_may_not_reach_io_even_through_another_crate() {
        let graph = graph(&[("peer-quality", "helper"), ("helper", "tokio")], &["peer-quality"]);
        assert_eq!(graph.problems(), ["peer-quality may not reach tokio, not even through another crate"]);
    }

    #[test]
    fn the_engine_may_not_depend_on_the_selector() {
        let graph = graph(&[("peer-quality", "dig-peer-selector")], &["peer-quality", "dig-peer-selector"]);
        assert_eq!(graph.problems(), ["peer-quality may not depend on dig-peer-selector"]);
    }

    #[test]
    fn the_selector_takes_types_from_three_dig_crates_and_no_more() {
        let edges = [("dig-peer-selector", "dig-dht"), ("dig-peer-selector", "dig-tls")];
        let graph = graph(&edges, &["dig-peer-selector"]);
        assert_eq!(graph.problems(), ["dig-peer-selector may not depend on dig-tls"]);
    }

    #[test]
    fn a_crate_without_a_rule_is_a_failure() {
        assert_eq!(graph(&[], &["newcomer"]).problems().len(), 1);
    }
}
