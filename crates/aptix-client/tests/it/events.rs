//! The log events of `aptix apply` and `aptix undo`: a table of what is asked for, and the events with all their fields.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::command_line::{run, text};

/// The events of a JSON log. Every field of theirs is there but those that every line of a log has; `BatchId` is `true` if
/// it is that of `batch`, or any id where there is none.
pub(crate) fn events(log: &str, via: &str, batch: Option<&str>) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events = lines.filter(|line| line["target"] == "aptix::events").map(|mut event| {
        let fields = event.as_object_mut().unwrap();
        let is_refusal = fields["Event"].as_str().unwrap().ends_with("Refused");
        assert_eq!(fields.remove("level").unwrap(), if is_refusal { "WARN" } else { "INFO" }, "{fields:?}");
        assert!(fields.remove("DurationMs").unwrap().as_f64().unwrap() >= 0.0, "{fields:?}");
        assert!(fields.remove("timestamp").is_some() && fields.remove("target").is_some());
        assert_eq!(fields.remove("Via").unwrap(), via);
        if let Some(id) = fields.get_mut("BatchId") {
            let found = id.as_str().unwrap();
            assert!(batch.is_none_or(|batch| batch == found) && found.len() == 36, "{batch:?}: {found}");
            *id = true.into();
        }
        event
    });
    events.collect()
}

/// An event of a batch that has an id, with more fields.
pub(crate) fn event(name: &str, more: &Value) -> Value {
    let mut event = json!({ "Event": name, "BatchId": true });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

pub(crate) fn sha256(text: &str) -> String {
    aptix_engine::digest::sha256(text.as_bytes()).to_string()
}

/// Runs `aptix` with a JSON log of its events.
fn logged(place: &Path, arguments: &[&str], document: &str) -> Output {
    let log = |command: &mut Command| {
        command.env("APTIX_LOG", "aptix::events=info").env("APTIX_LOG_FORMAT", "json");
    };
    run(place, &[arguments, &["--json"]].concat(), document, log)
}

/// A project with `a.txt` and `b.txt`, of one line each.
fn project() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    for name in ["a.txt", "b.txt"] {
        std::fs::write(place.path().join("ws").join(name), "SECRET\n").unwrap();
    }
    place
}

/// A line patch of these files, each with the digest of a text.
pub(crate) fn line_patch(files: &[(&str, &str)]) -> Value {
    let files = files.iter().map(|(path, text)| {
        let change = json!({ "operation": "insert", "afterLine": 1, "newLines": ["SECRET too"] });
        json!({ "docPath": format!("ws/{path}"), "originalSha256": sha256(text), "changes": [change] })
    });
    json!({ "files": files.collect::<Vec<_>>() })
}

/// A row of the table: what is applied, with which arguments and which document, and the events.
type Row = (&'static str, Vec<&'static str>, String, Vec<Value>);

fn refused(reason: &str, causes: &str, more: &Value) -> Value {
    let mut fields = json!({ "Reason": reason, "Count": 1, "Causes": causes });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event("Batch.Refused", &fields)
}

fn creations() -> Vec<Row> {
    let created = |path: &str, more: Value| {
        let mut fields = json!({ "ToolName": "workspace_create_file", "Path": path });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event("Tool.CreateFile.Executed", &fields)
    };
    let one = json!({ "Files": 1, "Changes": 0 });
    let dry = json!({ "Files": 1, "Changes": 0, "DryRun": true });
    vec![
        (
            "a created file",
            vec!["apply"],
            json!({ "path": "new.txt", "content": "x\n" }).to_string(),
            vec![
                event("Batch.Received", &one),
                event("Batch.Applied", &one),
                created(
                    "new.txt",
                    json!({
                        "Overwrite": false, "Success": true, "SizeBytes": 2, "Hash": sha256("x\n"),
                    }),
                ),
            ],
        ),
        (
            "a file that is there already",
            vec!["apply"],
            json!({ "path": "a.txt", "content": "SECRET" }).to_string(),
            vec![
                event("Batch.Received", &one),
                refused(
                    "FILE_EXISTS",
                    "ws/a.txt: FILE_EXISTS",
                    &json!({ "DocPath": "ws/a.txt", "Files": 1, "Changes": 0 }),
                ),
                created("a.txt", json!({ "Overwrite": false, "Success": false, "ErrorCode": "FileExists" })),
            ],
        ),
        (
            "a dry run",
            vec!["apply", "--dry-run"],
            json!({ "path": "new.txt", "content": "x\n" }).to_string(),
            vec![event("Batch.Received", &dry), event("Batch.Checked", &dry)],
        ),
        (
            "a dry run that is refused",
            vec!["apply", "--dry-run"],
            json!({ "path": "a.txt", "content": "x\n" }).to_string(),
            vec![
                event("Batch.Received", &dry),
                refused(
                    "FILE_EXISTS",
                    "ws/a.txt: FILE_EXISTS",
                    &json!({ "DocPath": "ws/a.txt", "Files": 1, "Changes": 0, "DryRun": true }),
                ),
            ],
        ),
    ]
}

fn patches_and_no_documents() -> Vec<Row> {
    let two = json!({ "Files": 2, "Changes": 2 });
    vec![
        (
            "line patches",
            vec!["apply"],
            line_patch(&[("a.txt", "SECRET\n"), ("b.txt", "SECRET\n")]).to_string(),
            vec![event("Batch.Received", &two), event("Batch.Applied", &two)],
        ),
        (
            "line patches, one of them stale: the other one is not blamed",
            vec!["apply"],
            line_patch(&[("a.txt", "SECRET\n"), ("b.txt", "stale")]).to_string(),
            vec![
                event("Batch.Received", &two),
                refused(
                    "SHA_MISMATCH",
                    "ws/b.txt: SHA_MISMATCH",
                    &json!({ "DocPath": "ws/b.txt", "Files": 2, "Changes": 2 }),
                ),
            ],
        ),
        (
            "a document of the wrong shape",
            vec!["apply", "--dialect", "line-patch"],
            json!({ "files": "SECRET" }).to_string(),
            vec![refused("INVALID_REQUEST", "INVALID_REQUEST (TYPE) in files", &json!({}))],
        ),
        (
            "a document that is cut short",
            vec!["apply"],
            r#"{"path":"a.txt","content":"SECR"#.to_owned(),
            vec![refused("INVALID_REQUEST", "INVALID_REQUEST (JSON) in content", &json!({}))],
        ),
        (
            "a document that cannot be read",
            vec!["apply", "absent.json"],
            String::new(),
            vec![refused(
                "READ_FAILED",
                "READ_FAILED: cannot read the document from absent.json: No such file or directory (os error 2)",
                &json!({}),
            )],
        ),
    ]
}

/// TUL-002-9.6, TUL-002-9.8, TUL-004-3.3.7, TUL-004-6.2.1
#[test]
fn what_is_applied_or_refused_is_logged_with_its_files() {
    for (row, arguments, document, expected) in [creations(), patches_and_no_documents()].concat() {
        let place = project();
        let origin = ["--session", "s-1", "--conversation", "c-1", "--turn", "t-1"];
        let output = logged(place.path(), &[&arguments, origin.as_slice()].concat(), &document);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (log, batch) = (text(&output.stderr), answer["batchId"].as_str());
        let expected = expected.into_iter().map(|mut event| {
            let origin = json!({ "SessionId": "s-1", "ConversationId": "c-1", "TurnId": "t-1" });
            event.as_object_mut().unwrap().extend(origin.as_object().unwrap().clone());
            event
        });
        assert_eq!(events(&log, "apply", batch), expected.collect::<Vec<_>>(), "{row}: {log}");
        assert!(!log.contains("SECR"), "{row}: {log}");
    }
}

#[test]
fn what_is_taken_back_is_logged_with_the_batch_that_it_was() {
    let place = project();
    let one = |more: Value| {
        let mut fields = json!({ "Files": 1, "Changes": 0 });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let nothing = logged(place.path(), &["undo"], "");
    let found = events(&text(&nothing.stderr), "undo", None);
    let refused = json!({ "Reason": "NOT_FOUND", "Count": 1, "Causes": "NOT_FOUND" });
    assert_eq!(found, [event("Batch.Refused", &refused)], "{}", text(&nothing.stdout));

    let document = json!({ "path": "new.txt", "content": "x\n" }).to_string();
    let applied: Value = serde_json::from_slice(&logged(place.path(), &["apply"], &document).stdout).unwrap();
    let dry = logged(place.path(), &["undo", "--dry-run"], "");
    let checked = event("Batch.Checked", &one(json!({ "DryRun": true })));
    assert_eq!(events(&text(&dry.stderr), "undo", None), [checked]);
    let undone = logged(place.path(), &["undo"], "");
    let answer: Value = serde_json::from_slice(&undone.stdout).unwrap();
    let found = events(&text(&undone.stderr), "undo", Some(answer["batchId"].as_str().unwrap()));
    assert_eq!(found, [event("Batch.Undone", &one(json!({ "Reverts": applied["batchId"] })))]);
    let redone = logged(place.path(), &["undo", "--redo"], "");
    let found = events(&text(&redone.stderr), "undo", None);
    assert_eq!(found, [event("Batch.Undone", &one(json!({ "Reverts": answer["batchId"] })))]);
}

/// A command prints its result, and logs no event beside it unless it is asked to.
#[test]
fn a_command_logs_its_events_only_when_it_is_asked_to() {
    let place = project();
    let document = json!({ "path": "a.txt", "content": "x\n" }).to_string();
    for (filter, is_logged) in [(None, false), (Some(""), false), (Some("warn"), true)] {
        let output = run(place.path(), &["apply"], &document, |command| {
            command.env_remove("APTIX_LOG");
            if let Some(filter) = filter {
                command.env("APTIX_LOG", filter);
            }
        });
        let log = text(&output.stderr);
        assert_eq!(log.contains("Batch.Refused"), is_logged, "{filter:?}: {log}");
    }
}

/// At level DEBUG the work on a batch is a span with the ids of its events.
#[test]
fn the_work_on_a_batch_is_a_span() {
    let place = project();
    let document = json!({ "path": "new.txt", "content": "x\n" }).to_string();
    let output = run(place.path(), &["apply", "--session", "s-1", "--json"], &document, |command| {
        command.env("APTIX_LOG", "aptix::events=debug").env("APTIX_LOG_FORMAT", "json");
    });
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let log = text(&output.stderr);
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let span = json!({ "name": "batch", "Via": "apply", "SessionId": "s-1", "BatchId": answer["batchId"] });
    assert_eq!(line["span"], span, "{log}");
}
