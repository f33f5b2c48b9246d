//! Which batch `aptix undo` takes back, and which undo `--redo` takes back, as a person at the shell sees it.

use std::path::Path;

use serde_json::Value;

use crate::command_line::{aptix, text};

/// A root with three batches in one file.
fn three_batches() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    json(place.path(), &["apply", "--json"], r#"{"path":"a.txt","content":"one\n"}"#, 0);
    for (old, new) in [("one", "two"), ("two", "three")] {
        let edit = serde_json::json!({ "command": "str_replace", "path": "a.txt", "old_str": old, "new_str": new });
        json(place.path(), &["apply", "--json"], &edit.to_string(), 0);
    }
    place
}

fn json(place: &Path, arguments: &[&str], document: &str, code: i32) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `a.txt` holds; nothing where it is gone.
fn content(place: &Path) -> String {
    std::fs::read_to_string(place.join("ws/a.txt")).unwrap_or_default().trim().to_owned()
}

fn log(place: &Path) -> Vec<Value> {
    json(place, &["log", "--json"], "", 0)["batches"].as_array().unwrap().clone()
}

#[test]
fn undo_twice_takes_back_two_batches_and_redo_restores_them_in_order() {
    let place = three_batches();
    let run = |arguments: &[&str], expected: &str| {
        json(place.path(), &[arguments, &["--json"]].concat(), "", 0);
        assert_eq!(content(place.path()), expected, "{arguments:?}");
    };
    for _ in 0..2 {
        run(&["undo"], "two");
        run(&["undo"], "one");
        run(&["undo"], "");
        let refused = json(place.path(), &["undo", "--json"], "", 1);
        assert_eq!(refused["errors"][0]["code"], "NOT_FOUND");
        assert!(refused["errors"][0]["hint"].as_str().unwrap().contains("--redo"), "{refused}");
        run(&["undo", "--redo"], "one");
        run(&["undo", "--redo"], "two");
        run(&["undo", "--redo"], "three");
        let refused = json(place.path(), &["undo", "--redo", "--json"], "", 1);
        assert_eq!(refused["errors"][0]["code"], "NOT_FOUND");
    }
    // A batch that comes between is the next one that is undone, and the undo before it can still be taken back.
    run(&["undo"], "two");
    json(place.path(), &["apply", "--json"], r#"{"path":"b.txt","content":"b\n"}"#, 0);
    run(&["undo"], "two");
    assert!(!place.path().join("ws/b.txt").exists());
    run(&["undo", "--redo"], "two");
    assert!(place.path().join("ws/b.txt").exists());
    run(&["undo", "--redo"], "three");
}

#[test]
fn a_batch_is_named_for_undo_and_for_redo() {
    let place = three_batches();
    let newest = log(place.path())[0]["batchId"].as_str().unwrap().to_owned();
    let refused = json(place.path(), &["undo", "--redo", &newest, "--json"], "", 1);
    assert_eq!(refused["errors"][0]["code"], "ALREADY_APPLIED");
    let undone = json(place.path(), &["undo", &newest, "--json"], "", 0);
    assert_eq!(content(place.path()), "two");
    let again = &json(place.path(), &["undo", &newest, "--json"], "", 1)["errors"][0];
    assert_eq!(again["code"], "ALREADY_APPLIED");
    assert!(again["message"].as_str().unwrap().contains(undone["batchId"].as_str().unwrap()), "{again}");
    // The undo is named, then the batch that was undone.
    let undo = undone["batchId"].as_str().unwrap();
    json(place.path(), &["undo", "--redo", undo, "--json"], "", 0);
    assert_eq!(content(place.path()), "three");
    let refused = json(place.path(), &["undo", "--redo", undo, "--json"], "", 1);
    assert_eq!(refused["errors"][0]["code"], "ALREADY_APPLIED");
    json(place.path(), &["undo", &newest, "--json"], "", 0);
    json(place.path(), &["undo", "--redo", &newest, "--json"], "", 0);
    assert_eq!(content(place.path()), "three");
    // An undo that is named is taken back without --redo as well.
    let undone = json(place.path(), &["undo", "--json"], "", 0);
    json(place.path(), &["undo", undone["batchId"].as_str().unwrap(), "--json"], "", 0);
    assert_eq!(content(place.path()), "three");
}

#[test]
fn the_log_shows_what_is_undone_and_by_which_batch() {
    let place = three_batches();
    json(place.path(), &["undo", "--json"], "", 0);
    json(place.path(), &["undo", "--redo", "--json"], "", 0);
    json(place.path(), &["undo", "--json"], "", 0);
    let log = log(place.path());
    let reported: Vec<_> = log.iter().map(|row| [&row["undoes"], &row["redoes"], &row["undoneBy"]]).collect();
    let id = |row: usize| &log[row]["batchId"];
    let nothing = &Value::Null;
    let expected = [
        [id(1), nothing, nothing],
        [id(2), id(3), id(0)],
        [id(3), nothing, nothing],
        [nothing, nothing, id(2)],
        [nothing, nothing, nothing],
        [nothing, nothing, nothing],
    ];
    assert_eq!(reported, expected, "{log:#?}");
    let shown = text(&aptix(place.path(), &["log"], "").stdout);
    let lines: Vec<_> = shown.lines().collect();
    let id = |row: usize| log[row]["batchId"].as_str().unwrap();
    assert!(lines[0].contains(&format!("  (undid {})  by person", id(1))), "{shown}");
    assert!(lines[1].contains(&format!("  (redid {})  (undone by {})  by person", id(3), id(0))), "{shown}");
    assert!(lines[3].contains(&format!("  (undone by {})  by person", id(2))), "{shown}");
}

/// What a refusal says, without its prose.
fn codes(answer: &Value) -> Vec<[Value; 3]> {
    let errors = answer["errors"].as_array().unwrap();
    errors.iter().map(|error| ["code", "detail", "path"].map(|key| error[key].clone())).collect()
}

/// What happens between a batch and its undo, and the code of what comes of that.
type Case = (&'static str, fn(&Path), &'static str);

#[test]
fn a_dry_run_is_refused_for_what_the_run_is_refused_for() {
    let git = "diff --git a/d/HEAD b/d/HEAD\n--- a/d/HEAD\n+++ /dev/null\n@@ -1 +0,0 @@\n-ref\n";
    let complete = |place: &Path| {
        std::fs::create_dir_all(place.join("ws/d/objects")).unwrap();
        std::fs::create_dir_all(place.join("ws/d/refs")).unwrap();
    };
    let cases: [Case; 7] = [
        (r#"{"path":"AGENTS.md","content":"x\n"}"#, |_| {}, "APPROVAL_REQUIRED"),
        (r#"{"path":".new/x","content":"x\n"}"#, |place| policy(place, "ask = ['x']"), "APPROVAL_REQUIRED"),
        (r#"{"path":"a","content":"x\n"}"#, |place| policy(place, "deny = ['a']"), "POLICY_DENIED"),
        (r#"{"path":"a","content":"x\n"}"#, |place| policy(place, "mode = 'restricted'"), "POLICY_DENIED"),
        (r#"{"path":"a","content":"x\n"}"#, |place| policy(place, "deletions = 'ask'"), "APPROVAL_REQUIRED"),
        (
            r#"{"path":"a","content":"x\n"}"#,
            |place| std::fs::write(place.join("ws/a"), "y\n").unwrap(),
            "EXPECTED_MISMATCH",
        ),
        (git, complete, "POLICY_DENIED"),
    ];
    for (document, between, expected) in cases {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("ws/d")).unwrap();
        std::fs::write(place.path().join("ws/d/HEAD"), "ref\n").unwrap();
        json(place.path(), &["apply", "--yes", "--json"], document, 0);
        between(place.path());
        let before = crate::tree::read(&place.path().join("ws"));
        let dry = json(place.path(), &["undo", "--dry-run", "--json"], "", 1);
        let run = json(place.path(), &["undo", "--json"], "", 1);
        assert_eq!(codes(&dry), codes(&run), "{document}");
        assert_eq!(run["errors"][0]["code"], expected, "{run}");
        crate::tree::assert_same(&crate::tree::read(&place.path().join("ws")), &before, document);
        if expected == "APPROVAL_REQUIRED" {
            assert_eq!(json(place.path(), &["undo", "--dry-run", "--yes", "--json"], "", 0)["dryRun"], true);
            json(place.path(), &["undo", "--yes", "--json"], "", 0);
        }
    }
}

#[test]
fn a_dry_run_of_apply_is_refused_for_what_the_run_is_refused_for() {
    let place = tempfile::tempdir().unwrap();
    let document = r#"{"path":"AGENTS.md","content":"x\n"}"#;
    let dry = json(place.path(), &["apply", "--dry-run", "--json"], document, 1);
    assert_eq!(codes(&dry), codes(&json(place.path(), &["apply", "--json"], document, 1)));
    assert_eq!(dry["errors"][0]["code"], "APPROVAL_REQUIRED");
    let shown = json(place.path(), &["apply", "--dry-run", "--yes", "--json"], document, 0);
    assert!(shown["diff"].as_str().unwrap().contains("+x"), "{shown}");
    assert!(!place.path().join("ws/AGENTS.md").exists());
}

fn policy(place: &Path, text: &str) {
    crate::policy_file::put(place, text);
}
