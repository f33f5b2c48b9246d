//! The log events of one batch at the server and at its agent: a table of batches, and the events that both log.

use std::process::Command;

use serde_json::{Value, json};

use crate::documents::{create, insert};
use crate::processes::{Machine, Running, Server, eventually, write};

/// A server and an agent that log their events as JSON.
fn served() -> (Machine, Server, Running) {
    let machine = Machine::new();
    let server = machine.server_that(as_json);
    let agent = machine.agent_in(&server, "auto", as_json);
    (machine, server, agent)
}

/// Makes a program log its events, each as an object.
pub(crate) fn as_json(command: &mut Command) {
    command.env("APTIX_LOG", "aptix::events=info").env("APTIX_LOG_FORMAT", "json");
}

/// The events in a log, without what every line has. How long something took is left at that it is known.
fn events(log: &str, via: &str) -> Vec<Value> {
    let events = log.lines().map(|line| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let fields = event.as_object_mut().unwrap();
        assert!(fields.remove("DurationMs").unwrap().as_f64().unwrap() >= 0.0, "{line}");
        assert!(fields.remove("timestamp").is_some() && fields.remove("target").is_some());
        let is_refusal = fields["Event"].as_str().unwrap().ends_with("Refused");
        assert_eq!(fields.remove("level").unwrap(), if is_refusal { "WARN" } else { "INFO" });
        assert_eq!(fields.remove("Via").unwrap(), via);
        event
    });
    events.collect()
}

fn with(fields: &Value, more: &Value) -> Value {
    let mut fields = fields.clone();
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}

/// Submits a document in a turn of a conversation, and waits for the end of its batch.
fn submit(machine: &Machine, server: &Server, document: &str) -> Value {
    write(&machine.path("submitted.json"), document);
    let turn = ["--session", "s-1", "--conversation", "c-1", "--turn", "t-1"];
    let (done, _) = machine.ask(server, "submit", &[turn.as_slice(), &["--wait", "submitted.json"]].concat());
    done
}

/// A batch: the document, and what the server and the agent log of it.
struct Row {
    document: String,
    server: Vec<Value>,
    agent: Vec<Value>,
}

fn event(name: &str, more: &Value) -> Value {
    with(&json!({ "Event": name }), more)
}

/// What the server logs until the agent has the batch; its first event has this revision.
fn stored(revision: u64, size: &Value) -> Vec<Value> {
    vec![
        event("Batch.Received", size),
        event("Batch.Stored", &with(size, &json!({ "Revision": revision }))),
        event("Batch.Forwarded", size),
    ]
}

fn reported(state: &str) -> Value {
    event("Batch.Reported", &json!({ "State": state }))
}

fn refused(causes: &str, path: &str, reason: &str, size: &Value) -> Vec<Value> {
    let why = json!({ "Reason": reason, "DocPath": path, "Count": 1, "Causes": causes });
    vec![event("Batch.Received", size), event("Batch.Refused", &with(size, &why))]
}

fn rows() -> Vec<Row> {
    let one = json!({ "Files": 1, "Changes": 0 });
    let two = json!({ "Files": 2, "Changes": 2 });
    let file = json!({ "ToolName": "workspace_create_file", "Path": "New.md", "Overwrite": false });
    let hash = aptix_engine::digest::sha256(b"SECRET\n").to_string();
    let written = with(&file, &json!({ "Success": true, "SizeBytes": 7, "Hash": hash }));
    let exists = with(&file, &json!({ "Success": false, "ErrorCode": "FileExists" }));
    let forwarded = event("Tool.CreateFile.Forwarded", &file);
    vec![
        Row {
            document: create("New.md", "SECRET\n"),
            server: [
                stored(1, &one),
                vec![forwarded.clone(), reported("APPLIED"), event("Tool.CreateFile.ResultReceived", &written)],
            ]
            .concat(),
            agent: vec![
                event("Batch.Received", &one),
                event("Batch.Applied", &one),
                event("Tool.CreateFile.Executed", &written),
                reported("APPLIED"),
            ],
        },
        Row {
            document: create("New.md", "SECRET again\n"),
            server: [
                stored(3, &one),
                vec![forwarded, reported("FAILED"), event("Tool.CreateFile.ResultReceived", &exists)],
            ]
            .concat(),
            agent: [
                refused("project/new.md: FILE_EXISTS", "project/new.md", "FILE_EXISTS", &one),
                vec![event("Tool.CreateFile.Executed", &exists), reported("FAILED")],
            ]
            .concat(),
        },
        Row {
            document: insert(&[("a.txt", "SECRET\n"), ("b.txt", "SECRET\n")], 1, "SECRET too"),
            server: [stored(5, &two), vec![reported("APPLIED")]].concat(),
            agent: vec![event("Batch.Received", &two), event("Batch.Applied", &two), reported("APPLIED")],
        },
        Row {
            document: insert(&[("c.txt", "SECRET\n"), ("d.txt", "stale\n")], 1, "SECRET too"),
            server: [stored(7, &two), vec![reported("FAILED")]].concat(),
            agent: [
                refused("project/d.txt: SHA_MISMATCH", "project/d.txt", "SHA_MISMATCH", &two),
                vec![reported("FAILED")],
            ]
            .concat(),
        },
    ]
}

/// TUL-002-9.6, TUL-002-9.7, TUL-002-9.8, TUL-004-6.1.2, TUL-004-6.2.1: both sides log each step under the same ids, and name
/// the file that is to blame.
#[test]
fn a_batch_is_logged_on_both_sides_under_the_same_ids() {
    let (machine, server, _agent) = served();
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        machine.put(name, "SECRET\n");
    }
    let mut seen = (0, 0);
    for row in rows() {
        let done = submit(&machine, &server, &row.document);
        let is_reported = |log: &str| events(&machine.logged(log), "agent").len() >= seen.1 + row.agent.len();
        eventually("the agent has logged everything", || is_reported("agent.log"));
        let request = events(&machine.logged("server.log"), "server")[seen.0]["RequestId"].clone();
        let ids = json!({
            "WorkspaceId": "demo", "RequestId": request, "SessionId": "s-1", "ConversationId": "c-1", "TurnId": "t-1",
        });
        for (via, log, expected, from) in
            [("server", "server.log", &row.server, seen.0), ("agent", "agent.log", &row.agent, seen.1)]
        {
            let found = events(&machine.logged(log), via);
            let expected: Vec<_> = expected
                .iter()
                .enumerate()
                .map(|(index, event)| {
                    // The server has no id for what it has only received.
                    let has_id = via == "agent" || index > 0;
                    let ids = if has_id { with(&ids, &json!({ "BatchId": done["batchId"] })) } else { ids.clone() };
                    with(event, &ids)
                })
                .collect();
            assert_eq!(found[from..], expected, "{via}: {}", row.document);
        }
        seen = (seen.0 + row.server.len(), seen.1 + row.agent.len());
    }
    for log in ["agent.log", "server.log"] {
        assert!(!machine.logged(log).contains("SECRET"), "{log}");
    }
}
