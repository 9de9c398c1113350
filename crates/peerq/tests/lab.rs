//! Studies of the laboratory, as a person calls them.

mod common;

use common::{code, run, stderr, stdout};
use serde_json::Value;

#[test]
fn the_study_of_adversaries_is_a_table_and_a_document_and_the_same_each_time() {
    let adversaries = ["lab", "compare", "adversaries", "--policies", "round-robin", "--seeds", "1"];
    let output = run(&adversaries);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["hostile share of bytes, %", "deadlines missed, %", "credited / delivered", "b1-idle-gap-pacer"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(text, stdout(&run(&[&adversaries[..], &["--threads", "1"]].concat())));
    let document: Value =
        serde_json::from_str(&stdout(&run(&[&adversaries[..], &["--json"]].concat()))).expect("one JSON document");
    let share = &document["adversaries"]["hostile_share"][0]["values"]["round-robin"];
    assert!(share.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{share}");
}

#[test]
fn a_drawn_plan_is_named_like_a_built_in_one_and_always_the_same() {
    let one = ["lab", "compare", "drawn-1", "--policies", "round-robin", "--seeds", "1", "--json"];
    let document: Value = serde_json::from_str(&stdout(&run(&one))).expect("one JSON document");
    assert_eq!(document["plans"][0]["name"], "drawn-1");
    assert_eq!(stdout(&run(&one)), stdout(&run(&[&one[..], &["--threads", "1"]].concat())));
    let none = run(&["lab", "compare", "drawn-one"]);
    assert!(code(&none) == 2 && stderr(&none).contains("drawn-one"), "{}", stderr(&none));
}

#[test]
fn the_list_names_plans_and_studies() {
    let text = stdout(&run(&["lab", "list"]));
    assert!(text.contains("s5-exploration") && text.trim_end().ends_with("adversaries, specs, drawn"), "{text}");
}
