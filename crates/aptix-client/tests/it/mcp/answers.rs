//! Answers of every tool, done and refused, against the output schemas of the catalogue.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::Client;
use super::sha256;

/// What a value has that its schema does not allow, as far as the catalogue uses the language of schemas.
fn violation(schema: &Value, value: &Value) -> Option<String> {
    let is = |name: &str| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "integer" && number.as_u64() >= schema["minimum"].as_u64(),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    };
    if schema.is_null() {
        return None;
    }
    let has_type = match &schema["type"] {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    };
    if !has_type || schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Some(format!("{value} is not {schema}"));
    }
    match value {
        Value::Object(object) => {
            let mut required = schema["required"].as_array().into_iter().flatten();
            if let Some(key) = required.find(|key| !object.contains_key(key.as_str().unwrap())) {
                return Some(format!("{key} is missing in {value}"));
            }
            object.iter().find_map(|(key, value)| match &schema["properties"][key] {
                Value::Null if schema["additionalProperties"] == false => Some(format!("{key} is unknown")),
                Value::Null => None,
                schema => violation(schema, value),
            })
        }
        Value::Array(items) => items.iter().find_map(|item| violation(&schema["items"], item)),
        _ => None,
    }
}

/// The id of the newest batch.
fn newest(client: &mut Client) -> Value {
    client.done("history", &json!({ "max_batches": 1 })).structured["batches"][0]["batchId"].clone()
}

/// A tool, with arguments that are right and some that are wrong.
type Calls = Vec<(&'static str, Value, Value)>;

/// Edits by line, by text and of whole files, and plans.
fn edits() -> Calls {
    let digest = sha256("one\ntwo\nthree\n");
    let change = json!({ "operation": "insert", "afterLine": 0, "newLines": ["top"] });
    let file = json!({ "docPath": "ws/a.txt", "originalSha256": digest, "changes": [change] });
    let replace = |old: &str| json!([{ "operation": "replace", "oldText": old, "newText": "2" }]);
    let block = |end: &str| json!({ "path": "a.txt", "start_anchor": "top", "end_anchor": end, "content": "x\n" });
    let insert = |anchor: &str| json!({ "path": "a.txt", "anchor": anchor, "content": "x\n" });
    let create = json!({ "path": "b.txt", "content": "x" });
    vec![
        ("workspace_write_patch", json!({ "files": [file] }), json!({ "files": [file] })),
        (
            "patch",
            json!({ "path": "a.txt", "patches": replace("two") }),
            json!({ "path": "a.txt", "patches": replace("x") }),
        ),
        ("workspace_create_file", create.clone(), create),
        (
            "prepare_file_range_edit",
            json!({ "path": "a.txt", "range": "1", "content": "x\n" }),
            json!({ "path": "a.txt" }),
        ),
        (
            "prepare_file_append",
            json!({ "path": "a.txt", "content": "x\n" }),
            json!({ "path": "a.txt", "content": "" }),
        ),
        ("prepare_file_insert_after", insert("one"), insert("none")),
        ("prepare_file_insert_before", insert("one"), insert("none")),
        ("prepare_file_block_replace", block("three"), block("none")),
        (
            "overwrite_entire_file",
            json!({ "path": "b.txt", "content": "y\n" }),
            json!({ "path": "c", "content": "y\n" }),
        ),
    ]
}

/// Edits in the arguments of other tools, and of files.
fn documents() -> Calls {
    let codex = |old: &str| format!("*** Begin Patch\n*** Update File: a.txt\n@@\n-{old}\n+1\n*** End Patch\n");
    let structured =
        |find: &str| json!({ "patches": [{ "path": "a.txt", "replacements": [{ "find": find, "replace": "3" }] }] });
    let diff = |old: &str| format!("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-{old}\n+up\n");
    vec![
        (
            "edit",
            json!({ "file_path": "a.txt", "old_string": "2", "new_string": "two" }),
            json!({ "file_path": "a.txt", "old_string": "no such", "new_string": "2" }),
        ),
        ("apply_patch", json!({ "input": codex("one") }), json!({ "input": codex("none") })),
        (
            "str_replace_based_edit_tool",
            json!({ "command": "view", "path": "a.txt" }),
            json!({ "command": "view", "path": "none" }),
        ),
        ("apply_structured_patch", structured("three"), structured("none")),
        ("apply_git_patch", json!({ "patch": diff("top") }), json!({ "patch": diff("none") })),
        (
            "apply_file_bundle",
            json!({ "files": [{ "path": "d.txt", "content": "d\n", "operation": "create" }] }),
            json!({ "files": [{ "path": "d.txt", "content": "d\n", "operation": "create" }] }),
        ),
        ("move_file", json!({ "path": "d.txt", "to": "e.txt" }), json!({ "path": "d.txt", "to": "e.txt" })),
        ("delete_file", json!({ "path": "e.txt" }), json!({ "path": "e.txt" })),
    ]
}

fn looks() -> Calls {
    vec![
        ("read_file", json!({ "path": "a.txt" }), json!({ "path": "none" })),
        ("list_directory", json!({}), json!({ "path": "none" })),
        ("history", json!({ "max_batches": 3 }), json!({ "max_batches": -1 })),
        ("get_patch_change", json!({ "id": "0" }), json!({ "id": "x" })),
        ("ripgrep_files", json!({ "pattern": "one" }), json!({ "pattern": "(" })),
        ("ripgrep_content", json!({ "pattern": "one", "context": 1 }), json!({ "pattern": "" })),
    ]
}

/// Each tool, called once rightly and once wrongly.
#[test]
fn answers_have_the_form_that_the_catalogue_gives() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\nthree\n").unwrap());
    client.set_policy("deletions = \"allow\"\n");
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone();
    let mut called = BTreeSet::new();
    let mut check = |client: &mut Client, tool: &'static str, arguments: &Value, is_error: bool| {
        let answer = client.call(tool, arguments);
        assert_eq!(answer.is_error, is_error, "{tool} {arguments}: {}", answer.structured);
        let schema = &listed.iter().find(|one| one["name"] == tool).unwrap()["outputSchema"];
        assert_eq!(violation(schema, &answer.structured), None, "{tool} {arguments}");
        called.insert(tool);
        answer.structured["hunkId"].clone()
    };
    for (tool, right, wrong) in edits().iter().chain(&documents()).chain(&looks()) {
        // Which batch is meant is known once there is one.
        let right = if *tool == "get_patch_change" { &json!({ "id": newest(&mut client) }) } else { right };
        check(&mut client, tool, right, false);
        check(&mut client, tool, wrong, true);
    }
    let undo = json!({ "batch_id": newest(&mut client) });
    check(&mut client, "undo", &undo, false);
    check(&mut client, "undo", &undo, true);
    let hunk = check(&mut client, "prepare_file_append", &json!({ "path": "b.txt", "content": "z\n" }), false);
    let apply = json!({ "hunk_id": hunk });
    check(&mut client, "apply_file_modification", &apply, false);
    check(&mut client, "apply_file_modification", &apply, true);
    client.end();
    assert_eq!(called, listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect());
}
