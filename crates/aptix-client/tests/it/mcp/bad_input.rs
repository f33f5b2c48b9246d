//! Calls as models get them wrong: no such tool, arguments that are none, too deep or too large. Each is an answer with a named
//! reason, changes nothing, and the next call is answered as if nothing had been.

use serde_json::{Value, json};

use super::client::{Client, answer};

/// What a raw call is answered with: the first error's code and detail, or the error of the protocol.
fn outcome(client: &mut Client, id: u64, tool: &str, arguments: &str) -> String {
    let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(tool));
    client.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
    let heard = client.hear();
    if let Some(error) = heard.get("error") {
        return error["code"].to_string();
    }
    let answer = answer(&heard);
    assert!(answer.is_error, "{tool} {arguments:.200}: {}", answer.structured);
    let structured = &answer.structured;
    match structured.get("errorCode") {
        Some(code) => format!("{}.{}", code.as_str().unwrap(), structured["detail"].as_str().unwrap()),
        None => super::code(structured),
    }
}

#[test]
fn a_bad_call_is_answered_by_name_and_changes_nothing() {
    let deep = format!("{}1{}", r#"{"path":"#.repeat(70), "}".repeat(70));
    let lists = format!(r#"{{"path":"a.txt","patches":{}{}}}"#, "[".repeat(70), "]".repeat(70));
    let large = format!(r#"{{"path":"a.txt","content":{}}}"#, json!("x".repeat(11 << 20)));
    let long = format!(r#"{{"path":{}}}"#, json!("x".repeat(4 << 20)));
    let rows: &[(&str, &str, &str)] = &[
        ("no_such_tool", "{}", "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("PATCH", "{}", "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("", "{}", "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("edit", "{not json}", "-32700"),
        ("edit", r#"{"file_path":"a.txt""#, "-32700"),
        ("edit", "[]", "INVALID_REQUEST.TYPE"),
        ("edit", "null", "INVALID_REQUEST.MISSING"),
        ("edit", r#""{}""#, "INVALID_REQUEST.TYPE"),
        ("edit", "{}", "INVALID_REQUEST.MISSING"),
        ("edit", r#"{"file_path":1,"old_string":"a","new_string":"b"}"#, "INVALID_REQUEST.TYPE"),
        (
            "edit",
            r#"{"file_path":"a.txt","old_string":"a","new_string":"b","replace_all":"yes"}"#,
            "INVALID_REQUEST.TYPE",
        ),
        (
            "edit",
            r#"{"file_path":"a.txt","file_path":"b","old_string":"a","new_string":"b"}"#,
            "INVALID_REQUEST.DUPLICATE_KEY",
        ),
        ("edit", r#"{"file_path":"a.txt","old":"a","new_string":"b"}"#, "INVALID_REQUEST.UNKNOWN_FIELD"),
        ("edit", &deep, "INVALID_REQUEST.DEPTH"),
        ("patch", &lists, "INVALID_REQUEST.DEPTH"),
        ("patch", r#"{"path":"a.txt","patches":"[{]"}"#, "INVALID_REQUEST.TYPE"),
        ("patch", r#"{"path":"a.txt","patches":[]}"#, "INVALID_REQUEST.EMPTY"),
        ("read_file", &long, "INVALID_PATH.TOO_LONG"),
        ("apply_patch", r#"{"input":""}"#, "INVALID_REQUEST.EMPTY"),
        ("undo", r#"{"batch_id":""}"#, "INVALID_REQUEST.ID_FORMAT"),
        ("workspace_create_file", r#"{"path":"b.txt"}"#, "WriteFailed.INVALID_ARGUMENTS"),
        ("workspace_create_file", r#"{"path":7,"content":""}"#, "InvalidPath.INVALID_ARGUMENTS"),
        ("workspace_create_file", "[]", "WriteFailed.INVALID_ARGUMENTS"),
        ("workspace_create_file", &large, "TooLarge.TOO_LARGE"),
    ];
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "a\n").unwrap());
    for (id, (tool, arguments, expected)) in (1_000..).zip(rows) {
        assert_eq!(&outcome(&mut client, id, tool, arguments), expected, "{tool} {arguments:.200}");
    }
    assert_eq!(client.read("a.txt"), "a\n");
    assert_eq!(std::fs::read_dir(client.ws()).unwrap().count(), 1);
    client.done("edit", &json!({ "file_path": "a.txt", "old_string": "a", "new_string": "b" }));
    client.end();
}

/// A corrected call is of a tool that the client has.
#[test]
fn a_corrected_call_is_of_a_tool_that_is_served() {
    let call = json!({ "file_path": "a.txt", "old_string": "one  two", "new_string": "x" });
    let corrected = |tools: &str| {
        let mut client = Client::with_tools(tools, |ws| std::fs::write(ws.join("a.txt"), "  one two\n").unwrap());
        let answer = client.call("edit", &call);
        assert!(answer.is_error, "{}", answer.text);
        assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.structured);
        client.end();
        answer.structured["errors"][0]["nextAction"].clone()
    };
    assert_eq!(corrected("all")["tool"], "str_replace_based_edit_tool");
    assert_eq!(corrected("core"), Value::Null);
}
