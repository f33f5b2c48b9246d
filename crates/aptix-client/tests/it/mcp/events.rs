//! The log events of tool calls: a table of calls, and the events with all their fields.

use serde_json::{Value, json};

use super::client::Client;
use crate::events::{events, line_patch, sha256};

/// A call, and the events that it leaves in the log.
type Row = (&'static str, Value, Vec<Value>);

/// An event with fields beside those of the call.
fn event(name: &str, more: &Value) -> Value {
    let mut event = json!({ "Event": name });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn refused(reason: &str, causes: &str, more: &Value) -> Value {
    let about = json!({ "Reason": reason, "Count": 1, "Causes": causes });
    event("Batch.Refused", &event_fields(&about, more))
}

fn event_fields(some: &Value, more: &Value) -> Value {
    let mut fields = some.clone();
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}

fn executed(more: &Value) -> Value {
    event("Tool.CreateFile.Executed", more)
}

/// Calls that create files, each with the id of its batch.
fn creations() -> Vec<Row> {
    let one = json!({ "Files": 1, "Changes": 0 });
    let create = "workspace_create_file";
    let done = json!({ "Path": "new.txt", "Overwrite": false, "Success": true, "SizeBytes": 2, "Hash": sha256("x\n") });
    let there = json!({ "Path": "a.txt", "Overwrite": false, "Success": false, "ErrorCode": "FileExists" });
    let outside = json!({ "Path": "../out.txt", "Overwrite": false, "Success": false, "ErrorCode": "InvalidPath" });
    vec![
        (
            create,
            json!({ "path": "new.txt", "content": "x\n" }),
            vec![event("Batch.Received", &one), event("Batch.Applied", &one), executed(&done)],
        ),
        (
            create,
            json!({ "path": "a.txt", "content": "SECRET" }),
            vec![
                event("Batch.Received", &one),
                refused("FILE_EXISTS", "ws/a.txt: FILE_EXISTS", &event_fields(&one, &json!({ "DocPath": "ws/a.txt" }))),
                executed(&there),
            ],
        ),
        (
            create,
            json!({ "path": "../out.txt", "content": "SECRET" }),
            vec![
                event("Batch.Received", &one),
                refused(
                    "INVALID_PATH",
                    "../out.txt: INVALID_PATH (TRAVERSAL) in path",
                    &event_fields(&one, &json!({ "DocPath": "../out.txt" })),
                ),
                executed(&outside),
            ],
        ),
        (
            create,
            json!({ "content": "SECRET" }),
            vec![
                refused("INVALID_REQUEST", "INVALID_REQUEST (MISSING) in path", &json!({})),
                executed(&json!({ "Success": false, "ErrorCode": "InvalidPath" })),
            ],
        ),
    ]
}

/// Calls that change files, each with the id of its batch.
fn changes() -> Vec<Row> {
    let change = json!({ "Files": 1, "Changes": 1 });
    let mismatch = json!({ "DocPath": "ws/b.txt", "Files": 1, "Changes": 1 });
    vec![
        (
            "workspace_write_patch",
            line_patch(&[("a.txt", "SECRET\n")]),
            vec![event("Batch.Received", &change), event("Batch.Applied", &change)],
        ),
        (
            "workspace_write_patch",
            line_patch(&[("b.txt", "stale")]),
            vec![event("Batch.Received", &change), refused("SHA_MISMATCH", "ws/b.txt: SHA_MISMATCH", &mismatch)],
        ),
        (
            "workspace_write_patch",
            json!({ "files": "SECRET" }),
            vec![refused("INVALID_REQUEST", "INVALID_REQUEST (TYPE) in files", &json!({}))],
        ),
        (
            "apply_file_modification",
            json!({ "hunk_id": "00000000-0000-0000-0000-000000000000" }),
            vec![refused("NOT_FOUND", "NOT_FOUND", &json!({}))],
        ),
    ]
}

/// Calls that write nothing.
fn looks() -> Vec<Row> {
    let one = json!({ "Files": 1, "Changes": 1 });
    let call_refused = |reason: &str, causes: &str, more: &Value| {
        let about = json!({ "Reason": reason, "Count": 1, "Causes": causes });
        event("Call.Refused", &event_fields(&about, more))
    };
    vec![
        (
            "prepare_file_append",
            json!({ "path": "a.txt", "content": "SECRET again\n" }),
            vec![event("Batch.Received", &one), event("Batch.Prepared", &one)],
        ),
        (
            "prepare_file_range_edit",
            json!({ "path": "absent.txt", "range": "1", "content": "SECRET" }),
            vec![
                event("Batch.Received", &one),
                refused(
                    "FILE_MISSING",
                    "ws/absent.txt: FILE_MISSING",
                    &event_fields(&one, &json!({ "DocPath": "ws/absent.txt" })),
                ),
            ],
        ),
        (
            "prepare_file_append",
            json!({ "path": "a.txt" }),
            vec![refused("INVALID_REQUEST", "INVALID_REQUEST (MISSING)", &json!({}))],
        ),
        (
            "read_file",
            json!({ "path": "absent.txt" }),
            vec![call_refused("FILE_MISSING", "absent.txt: FILE_MISSING", &json!({ "DocPath": "absent.txt" }))],
        ),
        ("read_file", json!({}), vec![call_refused("INVALID_REQUEST", "INVALID_REQUEST (MISSING)", &json!({}))]),
        (
            "no_tool",
            json!({}),
            vec![call_refused("INVALID_REQUEST", "INVALID_REQUEST (UNKNOWN_OPERATION)", &json!({}))],
        ),
        ("read_file", json!({ "path": "a.txt" }), vec![]),
    ]
}

/// TUL-002-9.6, TUL-002-9.8, TUL-004-3.3.7, TUL-004-6.2.1
#[test]
fn every_call_is_logged_with_its_outcome() {
    let mut client = Client::logged(|ws| {
        std::fs::write(ws.join("a.txt"), "SECRET\n").unwrap();
        std::fs::write(ws.join("b.txt"), "SECRET\n").unwrap();
    });
    let mut expected = Vec::new();
    for (writes, rows) in [(true, creations()), (true, changes()), (false, looks())] {
        for (tool, arguments, row) in rows {
            let turn = json!({ "aptix/conversationId": "c-1", "aptix/turnId": "t-1" });
            let heard = client.ask("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": turn }));
            for mut event in row {
                let fields = event.as_object_mut().unwrap();
                fields.insert("ToolName".to_owned(), tool.into());
                fields.insert("ConversationId".to_owned(), "c-1".into());
                fields.insert("TurnId".to_owned(), "t-1".into());
                fields.insert("RequestId".to_owned(), heard["id"].to_string().into());
                if writes {
                    fields.insert("BatchId".to_owned(), true.into());
                }
                expected.push(event);
            }
        }
    }
    // A prepared edit, applied.
    let planned = client.done("prepare_file_append", &json!({ "path": "b.txt", "content": "SECRET too\n" }));
    client.done("apply_file_modification", &json!({ "hunk_id": planned.structured["hunkId"] }));
    // Arguments that are no object, a call without a name, and a line that is no message.
    for line in [
        r#"{"jsonrpc":"2.0","id":"s-7","method":"tools/call","params":{"name":"read_file","arguments":"SECRET"}}"#,
        r#"{"jsonrpc":"2.0","id":"s-8","method":"tools/call","params":{"arguments":{"path":"SECRET"}}}"#,
        "SECRET",
    ] {
        client.say(line);
        client.hear();
    }
    let (_, log) = client.end();
    let mut found = events(&log, "mcp", None);
    for event in &mut found {
        let session = event.as_object_mut().unwrap().remove("SessionId").unwrap();
        assert!(session.as_str().unwrap().starts_with("mcp-"), "{session}");
    }
    let rest = found.split_off(expected.len());
    found.iter().zip(&expected).for_each(|(found, expected)| assert_eq!(found, expected));
    let rest: Vec<_> =
        rest.iter().map(|event| json!([event["Event"], event["ToolName"], event["RequestId"]])).collect();
    let id = |line: usize| rest[line][2].clone();
    assert_eq!(
        rest,
        [
            json!(["Batch.Received", "prepare_file_append", id(0)]),
            json!(["Batch.Prepared", "prepare_file_append", id(0)]),
            json!(["Batch.Received", "apply_file_modification", id(2)]),
            json!(["Batch.Applied", "apply_file_modification", id(2)]),
            json!(["Call.Refused", "read_file", "s-7"]),
            json!(["Call.Refused", null, "s-8"]),
            json!(["Call.Refused", null, null]),
        ]
    );
    assert!(!log.contains("SECRET"), "{log}");
}
