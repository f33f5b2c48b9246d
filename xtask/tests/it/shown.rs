//! What a server keeps of a batch, as `aptix show` prints it: its true state, what was tried, and each part alone.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::processes::{Machine, write};

const OLD: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// Two files; the second change of the first one expects this line.
fn document(expected: &str) -> String {
    let change = |key: &str, line: usize, old: &str| {
        json!({ "changeKey": key, "description": format!("mend {line}"), "operation": "replace", "startLine": line,
                "endLine": line, "expectedOriginalLines": [old], "newLines": ["new"] })
    };
    let sha = aptix_engine::digest::sha256(OLD.as_bytes()).to_string();
    let file = |name: &str, changes: &[Value]| json!({ "fileKey": name, "docPath": format!("project/{name}"), "originalSha256": sha, "changes": changes });
    let first = [change("one", 2, "2"), change("two", 9, expected)];
    let files = [file("a.txt", &first), file("b.txt", &[change("three", 5, "5")])];
    json!({ "batchKey": "k", "batchLabel": "Mend", "files": files }).to_string()
}

fn statuses(answer: &Value) -> Vec<&str> {
    answer["files"].as_array().unwrap().iter().map(|file| file["status"].as_str().unwrap()).collect()
}

/// Takes out the steps that led to the batch's end, whose times are those of whoever keeps them.
fn take_steps(shown: &mut Value) {
    let steps = shown.as_object_mut().unwrap().remove("steps").unwrap();
    let events: Vec<_> = steps.as_array().unwrap().iter().map(|step| step["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["SUBMITTED", "REPORTED"], "{steps}");
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.put("a.txt", OLD);
    machine.put("b.txt", OLD);
    machine
}

/// TUL-002-7.1.4: a batch that failed shows no file as changed; what failed is named with its ids and keys, and shown below the
/// change; a part shows its own failure alone.
#[test]
fn a_batch_that_failed_shows_what_was_tried() {
    let machine = machine();
    let server = machine.server();
    let _agent = machine.agent(&server);
    let (done, code) = machine.submit(&server, &document("9 was not there"));
    assert_eq!((code, &done["state"], &done["diff"]), (Some(1), &json!("FAILED"), &json!("")), "{done}");
    assert_eq!(statuses(&done), ["failed", "not_applied"], "{done}");
    let (file, error) = (&done["files"][0], &done["errors"][0]);
    assert_eq!((&file["changes"][0]["failure"], &file["changes"][1]["failure"]), (&Value::Null, &json!(0)), "{done}");
    for (key, value) in
        [("fileIndex", json!(0)), ("changeIndex", json!(1)), ("fileKey", json!("a.txt")), ("changeKey", json!("two"))]
    {
        assert_eq!(error[key], value, "{key}: {done}");
    }
    assert_eq!((&error["filePatchId"], &error["changeId"]), (&file["filePatchId"], &file["changes"][1]["changeId"]));
    let show = |id: &Value| {
        let (mut shown, code) = machine.ask(&server, "show", &[id.as_str().unwrap()]);
        assert_eq!((code, &shown["success"], &shown["state"]), (Some(0), &json!(false), &json!("FAILED")), "{shown}");
        take_steps(&mut shown);
        shown
    };
    let mut shown = show(&done["batchId"]);
    assert!(shown["asked"].as_str().unwrap().contains("-9 was not there\n+new\n"), "{shown}");
    shown["asked"] = json!("");
    assert_eq!(shown, done);
    let (failed, innocent) = (show(&file["changes"][1]["changeId"]), show(&file["changes"][0]["changeId"]));
    assert_eq!((statuses(&failed), failed["errors"].as_array().unwrap().len()), (vec!["failed"], 1), "{failed}");
    assert_eq!(
        (&failed["errors"][0]["changeIndex"], &failed["files"][0]["changes"][0]["failure"]),
        (&json!(1), &json!(0))
    );
    assert_eq!((statuses(&innocent), &innocent["errors"]), (vec!["not_applied"], &json!([])), "{innocent}");

    let shown = machine.call(&server, "show", &[done["batchId"].as_str().unwrap()]);
    let text = String::from_utf8(shown.stdout).unwrap();
    let begins = format!("batch {} FAILED \"Mend\"\n", done["batchId"].as_str().unwrap());
    assert!(text.starts_with(&begins) && text.ends_with("failed a.txt\nnot applied b.txt\n"), "{text}");
    let (above, below) = text.split_once("error: EXPECTED_MISMATCH").unwrap();
    assert!(above.ends_with("-9 was not there\n+new\n") && below.contains("\n  hint: "), "{text}");
    assert!(!above.contains("b.txt") && below.contains("+++ project/b.txt\n"), "{text}");
    assert_eq!(machine.files(), [("a.txt".to_owned(), OLD.to_owned()), ("b.txt".to_owned(), OLD.to_owned())]);
}

/// A batch that waits, or was withdrawn, has changed no file.
#[test]
fn a_batch_that_was_not_applied_shows_what_it_asks_for() {
    let machine = machine();
    let server = machine.server();
    write(&machine.path("asked.json"), &document("9"));
    let (sent, code) = machine.ask(&server, "submit", &["asked.json"]);
    assert_eq!((code, &sent["state"]), (Some(0), &json!("APPROVED")), "{sent}");
    let id = sent["batchId"].as_str().unwrap();
    for (state, success) in [("APPROVED", true), ("CANCELLED", false)] {
        let (shown, code) = machine.ask(&server, "show", &[id]);
        assert_eq!((code, &shown["state"], &shown["success"]), (Some(0), &json!(state), &json!(success)), "{shown}");
        assert_eq!((statuses(&shown), &shown["diff"]), (vec!["not_applied"; 2], &json!("")), "{shown}");
        assert!(shown["asked"].as_str().unwrap().contains("-9\n+new\n"), "{shown}");
        machine.call(&server, "cancel", &[id]);
    }
}

/// TUL-002-7.1.4: a part of a batch that was applied has its own lines of the diff, and git takes them; the beginning of an id is
/// enough, at a server and in the history of the workstation alike.
#[test]
fn a_part_that_was_applied_shows_its_own_lines() {
    let machine = machine();
    let server = machine.server();
    let _agent = machine.agent(&server);
    let (done, _) = machine.submit(&server, &document("9"));
    let old = tempfile::tempdir().unwrap();
    write(&old.path().join("a.txt"), OLD);
    write(&old.path().join("b.txt"), OLD);
    let id = done["batchId"].as_str().unwrap();
    let change = &done["files"][0]["changes"][1];
    let local = |id: &str| {
        let output = machine.aptix(&["show", "--json", "--root", "project", id]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (id, files, added) in [(&id[..31], 2, 3), (change["changeId"].as_str().unwrap(), 1, 1)] {
        let (mut shown, code) = machine.ask(&server, "show", &[id]);
        assert_eq!((code, &shown["state"], statuses(&shown).len()), (Some(0), &json!("APPLIED"), files), "{shown}");
        take_steps(&mut shown);
        let diff = shown["diff"].as_str().unwrap();
        assert_eq!(diff.matches("\n+new").count(), added, "{diff}");
        let mut git = Command::new("git");
        git.args(["apply", "--check", "-"]).current_dir(old.path()).stdin(Stdio::piped());
        let mut git = git.spawn().expect("git is needed");
        std::io::Write::write_all(&mut git.stdin.take().unwrap(), diff.as_bytes()).unwrap();
        assert!(git.wait().unwrap().success(), "{diff}");
        let mut local = local(id);
        take_steps(&mut local);
        assert_eq!(local, shown);
    }
    let (refused, code) = machine.ask(&server, "show", &["ffffffff"]);
    assert_eq!((code, &refused["errors"][0]["code"]), (Some(1), &json!("NOT_FOUND")), "{refused}");
}
