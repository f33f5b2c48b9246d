//! Who applied and undid a batch, when and why: kept in the history, and printed by `aptix log` and `aptix show`.

use std::path::Path;
use std::process::Output;

use aptix_engine::digest::sha256;
use serde_json::{Value, json};

use crate::command_line::{run, text};

const CREATE: &str = r#"{"path":"a.txt","content":"x\n"}"#;

fn as_user(place: &Path, user: &str, arguments: &[&str], document: &str) -> Output {
    let output = run(place, arguments, document, |command| _ = command.env("USER", user));
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    output
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The entries of the only history, oldest first.
fn entries(place: &Path) -> Vec<std::path::PathBuf> {
    let root = std::fs::read_dir(place.join("state/aptix/roots")).unwrap().next().unwrap().unwrap().path();
    let names = std::fs::read_dir(root.join("history")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = names.filter(|path| path.file_name().unwrap().len() == 36).collect();
    names.sort();
    names
}

/// Changes the line of JSON of an entry, as another version would have written it.
fn rewrite(entry: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = std::fs::read(entry).unwrap();
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n').skip(1);
    let mut head: Value = serde_json::from_slice(lines.next().unwrap()).unwrap();
    change(&mut head);
    let body = [&serde_json::to_vec(&head).unwrap(), &b"\n"[..], lines.next().unwrap()].concat();
    std::fs::write(entry, [format!("aptix-history-1 {}\n", sha256(&body)).as_bytes(), &body].concat()).unwrap();
}

#[test]
fn the_history_names_who_applied_and_undid_a_batch_and_why() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let applied = object(&as_user(place, "ann", &["apply", "--json"], CREATE))["batchId"].clone();
    let undo = ["undo", "--json", "--reason", "wrong\nfile"];
    let undone = object(&as_user(place, "bob", &undo, ""))["batchId"].clone();
    let log = object(&as_user(place, "eve", &["log", "--json"], ""));
    let batches = ["batchId", "steps"].map(|key| [0, 1].map(|at| log["batches"][at][key].clone()));
    assert_eq!(batches[0], [undone.clone(), applied], "{log}");
    let who = |step: &Value| ["event", "state", "actor", "actorName", "reason"].map(|key| step[key].clone());
    let expected = |name: &str, reason: Value| [json!("LOCAL"), json!("APPLIED"), json!("PERSON"), json!(name), reason];
    assert_eq!(who(&batches[1][0][0]), expected("bob", json!("wrong\nfile")), "{log}");
    assert_eq!(who(&batches[1][1][0]), expected("ann", Value::Null), "{log}");
    let lines = text(&as_user(place, "eve", &["log"], "").stdout);
    assert!(lines.lines().next().unwrap().ends_with("  by person \"bob\": \"wrong\\u{a}file\""), "{lines}");
    let id = undone.as_str().unwrap();
    let shown = object(&as_user(place, "eve", &["show", "--json", id], ""));
    let step = &shown["steps"][0];
    let expected = json!({ "event": "LOCAL", "state": "APPLIED", "unixMs": step["unixMs"], "actor": "PERSON",
        "actorName": "bob", "reason": "wrong\nfile" });
    assert_eq!((step, shown["steps"].as_array().unwrap().len()), (&expected, 1), "{shown}");
    assert!(step["unixMs"].as_u64() > Some(1_700_000_000_000), "{shown}");
    let shown = text(&as_user(place, "eve", &["show", id], "").stdout);
    assert!(shown.contains(" UTC  local by person \"bob\": \"wrong\\u{a}file\"\n"), "{shown}");
    let long = run(place, &["undo", "--reason", &"x".repeat((64 << 10) + 1)], "", |_| ());
    assert_eq!(long.status.code(), Some(2), "{}", text(&long.stderr));
}

/// An entry of an earlier version names nobody, one of a later version what this one knows of it; both are undone.
#[test]
fn entries_of_other_versions_are_read() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    as_user(place, "ann", &["apply"], CREATE);
    as_user(place, "ann", &["apply"], r#"{"path":"b.txt","content":"x\n"}"#);
    let [first, second] = entries(place).try_into().unwrap();
    rewrite(&first, |head| _ = head["summary"].as_object_mut().unwrap().remove("steps").unwrap());
    rewrite(&second, |head| {
        let mut later = head["summary"]["steps"][0].clone();
        later["event"] = json!("LATER");
        later["more"] = json!(1);
        head["summary"]["steps"].as_array_mut().unwrap().insert(0, later);
        head["summary"]["more"] = json!({});
    });
    let log = object(&as_user(place, "ann", &["log", "--json"], ""));
    let steps = [0, 1].map(|at| log["batches"][at]["steps"].as_array().unwrap());
    assert_eq!((&steps[0][0]["actorName"], steps[0].len(), steps[1].len()), (&json!("ann"), 1, 0), "{log}");
    let id = |at: usize| log["batches"][at]["batchId"].as_str().unwrap();
    let shown = [0, 1].map(|at| object(&as_user(place, "ann", &["show", "--json", id(at)], "")));
    assert_eq!(shown[0]["steps"].as_array().unwrap().len(), 1, "{}", shown[0]);
    assert_eq!(shown[1].get("steps"), None, "{}", shown[1]);
    as_user(place, "ann", &["undo"], "");
    as_user(place, "ann", &["undo"], "");
    assert_eq!(std::fs::read_dir(place.join("ws")).unwrap().count(), 0);
}

/// A batch that was refused names who had it tried, in the log and where it is shown; no name steers a terminal or is lost.
#[test]
fn a_refused_batch_names_who_had_it_tried() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let name = "e\u{1b}[2J\u{202e}ve";
    as_user(place, "ann", &["apply"], CREATE);
    let refused = run(place, &["apply", "--json"], CREATE, |command| _ = command.env("USER", name));
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    let id = object(&refused)["batchId"].clone();
    let log = object(&as_user(place, "ann", &["log", "--json", "--state", "all"], ""));
    let step =
        |at: usize| ["event", "state", "actor", "actorName"].map(|key| log["batches"][at]["steps"][0][key].clone());
    assert_eq!((&log["batches"][0]["batchId"], step(0)), (&id, ["LOCAL", "FAILED", "PERSON", name].map(Value::from)));
    assert_eq!(step(1), ["LOCAL", "APPLIED", "PERSON", "ann"].map(Value::from), "{log}");
    let shown = object(&as_user(place, "ann", &["show", "--json", id.as_str().unwrap()], ""));
    assert_eq!(shown["steps"], log["batches"][0]["steps"], "{shown}");
    for command in [&["log", "--state", "failed"][..], &["show", id.as_str().unwrap()]] {
        let shown = text(&as_user(place, "ann", command, "").stdout);
        assert!(shown.contains(r#" by person "e\u{1b}[2J\u{202e}ve""#), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
}

/// A name that is no UTF-8 is kept as far as it is text, and none at all is none.
#[test]
fn any_name_of_a_user_is_kept() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let odd = std::ffi::OsStr::from_bytes(b"o\xffd");
    let long = "\u{e9}".repeat(300);
    let names = [Some(odd), Some(std::ffi::OsStr::new(&long)), Some(std::ffi::OsStr::new("")), None];
    for (at, name) in names.into_iter().enumerate() {
        let document = format!(r#"{{"path":"{at}.txt","content":"x\n"}}"#);
        let done = run(place, &["apply"], &document, |command| {
            command.env_remove("USER").env_remove("LOGNAME");
            name.map(|name| command.env("USER", name));
        });
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let log = object(&as_user(place, "ann", &["log", "--json"], ""));
    let name = |at: usize| log["batches"][at]["steps"][0]["actorName"].clone();
    let kept = [Value::Null, Value::Null, json!("\u{e9}".repeat(256)), json!("o\u{fffd}d")];
    assert_eq!([0, 1, 2, 3].map(name), kept, "{log}");
}
