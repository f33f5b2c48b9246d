//! `aptix mcp` and `aptix tools`: the real process, spoken to in lines of JSON.

mod answers;
mod asked;
mod chosen;
mod client;
mod corrected;
mod events;
mod expected;
mod in_process;
mod kept;
mod looking;
mod prepared;
mod protocol;
mod roots;
mod secrets;
mod shown;
mod twice;
mod wrong_shapes;

use serde_json::{Value, json};

use self::client::{Client, code};

use crate::command_line::{aptix, text};

fn sha256(text: &str) -> String {
    aptix_engine::digest::sha256(text.as_bytes()).to_string()
}

/// TUL-004-3.2.1, TUL-004-3.2.2, TUL-004-4.1.1, TUL-004-4.1.2, TUL-004-4.1.3, WS-MOD-1.3: the catalogue says
/// of each tool its name, what it does, its schemas, its category and where it runs; and is the same, wherever it is asked for.
#[test]
fn the_catalogue_lists_every_tool_with_its_schemas() {
    let mut client = Client::start(|_| {});
    let listed = client.ask("tools/list", &json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap().clone();
    let (place, _) = client.end();
    let printed = aptix(place.path(), &["tools", "--json"], "");
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let printed = printed["tools"].as_array().unwrap();
    assert_eq!(listed.len(), printed.len());
    for (one, other) in listed.iter().zip(printed) {
        for key in ["name", "description", "inputSchema", "outputSchema"] {
            assert_eq!(one[key], other[key]);
        }
        assert_eq!((&other["category"], &other["executionLocation"]), (&"workspace".into(), &"client".into()));
        assert_eq!(one["_meta"], json!({ "aptix/category": "workspace", "aptix/executionLocation": "client" }));
    }
    let names: Vec<_> = printed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for gone in ["append_file", "insert_after", "insert_before", "replace_block", "apply_block_replace"] {
        assert!(!names.contains(&gone), "{gone}");
    }
    let tool = printed.iter().find(|tool| tool["name"] == "workspace_create_file").unwrap();
    assert!(tool["description"].as_str().unwrap().starts_with("Create"), "{tool}");
    assert_eq!(tool["inputSchema"]["required"], json!(["path", "content"]));
    assert_eq!(tool["inputSchema"]["properties"]["overwrite"]["type"], "boolean");
    let output = &tool["outputSchema"]["properties"];
    for (key, kind) in [
        ("success", "boolean"),
        ("message", "string"),
        ("path", "string"),
        ("sizeBytes", "integer"),
        ("hash", "string"),
        ("created", "boolean"),
        ("overwritten", "boolean"),
    ] {
        assert_eq!(output[key]["type"], kind, "{key}: {output}");
    }
    assert!(output["errorCode"].is_object(), "{output}");
    let shown = text(&aptix(place.path(), &["tools"], "").stdout);
    assert!(names.iter().all(|name| shown.contains(&format!("\n{name}\n")) || shown.starts_with(name)), "{shown}");
}

/// TUL-002-9.1, TUL-002-9.3, TUL-002-5.1.3, TUL-002-10.1: a line patch is answered with an envelope, whatever came of it; ids are given, keys echoed.
#[test]
fn a_line_patch_is_answered_with_an_invoke_result() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap());
    let read = client.done("read_file", &json!({ "path": "a.txt" })).structured;
    assert_eq!((&read["docPath"], &read["sha256"]), (&"ws/a.txt".into(), &sha256("one\ntwo\n").into()));
    let mut patch = json!({
        "batchKey": "b", "batchLabel": "B",
        "files": [{
            "fileKey": "f", "docPath": read["docPath"], "originalSha256": read["sha256"],
            "changes": [
                { "changeKey": "c", "description": "why", "operation": "replace", "startLine": 2, "endLine": 2,
                  "expectedOriginalLines": ["two"], "newLines": ["2"] },
                { "operation": "insert", "afterLine": 2, "newLines": ["3"] },
            ],
        }],
    });
    let answer = client.done("workspace_write_patch", &patch);
    let (answer, result) = (&answer.structured, &answer.structured["result"]);
    assert_eq!((&answer["successful"], &answer["errors"], &answer["warnings"]), (&true.into(), &json!([]), &json!([])));
    assert_eq!((&result["batchKey"], &result["batchLabel"]), (&"b".into(), &"B".into()));
    let (file, change) = (&result["files"][0], &result["files"][0]["changes"][0]);
    assert_eq!(
        (&file["fileKey"], &change["changeKey"], &change["description"]),
        (&"f".into(), &"c".into(), &"why".into())
    );
    let ids = [&result["batchId"], &file["filePatchId"], &change["changeId"], &file["changes"][1]["changeId"]]
        .map(|id| id.as_str().unwrap());
    assert!(ids.iter().all(|id| id.len() == 36), "{ids:?}");
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{ids:?}");
    assert_eq!(file["sha256"], sha256("one\n2\n3\n"));
    assert_eq!(client.read("a.txt"), "one\n2\n3\n");

    let answer = client.call("workspace_write_patch", &patch);
    assert!(answer.is_error);
    assert_eq!((&answer.structured["successful"], &answer.structured["result"]), (&false.into(), &Value::Null));
    assert_eq!(code(&answer.structured), "ALREADY_APPLIED");
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.structured);

    // What can be proven is a call, ready to be sent.
    patch["files"][0]["changes"][0]["expectedOriginalLines"] = json!(["2"]);
    patch["files"][0]["changes"][0]["newLines"] = json!(["zwei"]);
    patch["files"][0]["changes"].as_array_mut().unwrap().truncate(1);
    let answer = client.call("workspace_write_patch", &patch);
    assert_eq!(code(&answer.structured), "SHA_MISMATCH");
    let next = &answer.structured["errors"][0]["nextAction"];
    let tool = next["tool"].as_str().unwrap().to_owned();
    let arguments = next["arguments"].clone();
    assert_eq!(tool, "workspace_write_patch");
    client.done(&tool, &arguments);
    assert_eq!(client.read("a.txt"), "one\nzwei\n3\n");
    let digest = sha256("one\nzwei\n3\n");
    let delete = |start: u32, end: u32, expected: &[&str]| json!({ "operation": "delete", "startLine": start, "endLine": end, "expectedOriginalLines": expected });
    for (digest, changes, expected) in [
        (digest.as_str(), json!([{ "operation": "insert", "afterLine": 9, "newLines": ["x"] }]), "LINE_RANGE.PAST_END"),
        (&digest, json!([delete(2, 1, &[])]), "LINE_RANGE.INVERTED"),
        (&digest, json!([delete(1, 1, &["one"]), delete(1, 1, &["one"])]), "LINE_OVERLAP"),
        ("abc", json!([delete(1, 1, &["one"])]), "INVALID_REQUEST.SHA_FORMAT"),
    ] {
        let file = json!({ "docPath": "ws/a.txt", "originalSha256": digest, "changes": changes });
        let answer = client.call("workspace_write_patch", &json!({ "files": [file] }));
        assert_eq!((answer.is_error, code(&answer.structured).as_str()), (true, expected));
        assert_eq!((&answer.structured["successful"], &answer.structured["result"]), (&false.into(), &Value::Null));
    }
    assert_eq!(client.refused("workspace_write_patch", &json!({ "files": 3 })), "INVALID_REQUEST.TYPE");
    client.end();
}

/// TUL-004-3.3.7, TUL-004-6.2.1: each call is logged.
#[test]
fn a_created_file_is_logged() {
    let mut client = Client::with(&["-v"], &json!({}), |_| {});
    let tool = "workspace_create_file";
    client.done(tool, &json!({ "path": "src/a.txt", "content": "x\ny" }));
    client.done(tool, &json!({ "path": "src/a.txt", "content": "zz", "overwrite": true }));
    assert!(client.call(tool, &json!({ "path": "src/a.txt", "content": "y" })).is_error);
    let (_, log) = client.end();
    let executed: Vec<_> = log.lines().filter(|line| line.contains("Tool.CreateFile.Executed")).collect();
    let hash = format!("Hash={}", sha256("zz"));
    for (line, fields) in [
        (0, ["Path=\"src/a.txt\"", "Overwrite=false", "Success=true", "SizeBytes=3"]),
        (1, ["Overwrite=true", "Success=true", "SizeBytes=2", &hash]),
        (2, ["Path=\"src/a.txt\"", "Overwrite=false", "Success=false", "ErrorCode=\"FileExists\""]),
    ] {
        assert!(fields.iter().all(|field| executed[line].contains(field)), "{fields:?}: {}", executed[line]);
    }
}

/// A search patch: confirmed with its place, refused with the real lines; clipboards live as long as the connection.
#[test]
fn a_search_patch_is_confirmed_or_refused_and_clipboards_belong_to_the_connection() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\ntwo\n").unwrap());
    let patch = |operations: Value| json!({ "path": "a.txt", "patches": operations });
    let answer = client.done(
        "patch",
        &patch(json!([{ "operation": "replace", "oldText": "one", "newText": "1", "toClipboard": "c" }])),
    );
    assert_eq!(
        (&answer.structured["state"], &answer.structured["files"][0]["status"]),
        (&"APPLIED".into(), &"modified".into())
    );
    assert!(answer.structured["diff"].as_str().unwrap().contains("-one\n+1\n"));
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.structured);
    client.done("patch", &patch(json!([{ "operation": "append_eof", "fromClipboard": "c" }])));
    assert_eq!(client.read("a.txt"), "1\ntwo\ntwo\none");
    assert_eq!(
        client.refused("patch", &patch(json!([{ "operation": "replace", "oldText": "two", "newText": "2" }]))),
        "TEXT_NOT_UNIQUE"
    );
    // What is wrong is called as the call has it.
    let nothing = patch(json!([{ "operation": "replace", "oldText": "", "newText": "2" }]));
    let refused = client.call("patch", &nothing).structured["errors"][0]["message"].clone();
    assert!(refused.as_str().unwrap().starts_with("patches[0].oldText: "), "{refused}");
    let paste = patch(json!([{ "operation": "prepend_bof", "fromClipboard": "c" }]));
    let batch = answer.structured["batchId"].as_str().unwrap().to_owned();
    let (place, _) = client.end();
    // The answer's id is what the person knows it by.
    let log = text(&aptix(place.path(), &["log"], "").stdout);
    assert!(log.contains(&batch), "{log}");
    let mut client = Client::start_in(place);
    assert_eq!(client.refused("patch", &paste), "CLIPBOARD_MISSING");
    client.end();
}

/// WS-MOD-4.1.1: a plan lives for an hour.
#[test]
fn a_plan_states_when_it_ends() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\n").unwrap());
    let prepared = client.done("prepare_file_append", &json!({ "path": "a.txt", "content": "two\n" }));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let expires = u128::from(prepared.structured["expiresAtMs"].as_u64().unwrap());
    assert!(expires > now && expires <= now + 3_600_000);
    assert!(prepared.text.contains(&format!("expires_at_ms: {expires}\n")), "{}", prepared.text);
    client.end();
}

/// Text that looks like an edit is refused by each tool that takes text, unless the call states that it is verbatim.
#[test]
fn text_that_looks_like_an_edit_is_written_if_it_is_verbatim() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\n").unwrap());
    client.done("overwrite_entire_file", &json!({ "path": "a.txt", "content": "all", "content_format": "" }));
    assert_eq!(client.read("a.txt"), "all\n");
    let fenced = "```python\nx = 1\n```\n";
    let mut call = json!({ "path": "a.py", "content": fenced, "contentFormat": "" });
    let refused = client.call("workspace_create_file", &call);
    assert_eq!(refused.structured["errorCode"], "WriteFailed");
    assert!(refused.structured["message"].as_str().unwrap().starts_with("SUSPECT_CONTENT (FENCED)"));
    call["contentFormat"] = "verbatim".into();
    client.done("workspace_create_file", &call);
    assert_eq!(client.read("a.py"), fenced);
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let mut call = json!({ "path": "a.py", "content": diff });
    assert_eq!(client.refused("overwrite_entire_file", &call), "SUSPECT_CONTENT.LOOKS_LIKE_DIFF");
    call["content_format"] = "verbatim".into();
    client.done("overwrite_entire_file", &call);
    assert_eq!(client.read("a.py"), diff);
    let change = json!({ "operation": "replace", "oldText": "-a\n+b\n", "newText": "# ...\n" });
    assert_eq!(client.refused("patch", &json!({ "path": "a.py", "patches": [change] })), "SUSPECT_CONTENT.ELISION");
    let edit = json!({ "path": "a.py", "range": "1~3", "content": "# rest unchanged\n" });
    assert_eq!(client.refused("prepare_file_range_edit", &edit), "SUSPECT_CONTENT.ELISION");
    client.end();
}

/// There is no one to ask: what policy asks about is refused, what it denies is neither shown nor found.
#[test]
fn policy_holds_for_tools_as_for_everybody() {
    let mut client = Client::start(|ws| {
        std::fs::create_dir(ws.join(".aptix")).unwrap();
        std::fs::write(ws.join(".aptix/policy.toml"), "deny = ['closed']\nask = ['asked']\n").unwrap();
        for name in ["closed", "asked", "open"] {
            std::fs::write(ws.join(name), "x\n").unwrap();
        }
    });
    let edit = |path: &str| json!({ "path": path, "patches": [{ "operation": "append_eof", "newText": "y\n" }] });
    assert_eq!(client.refused("patch", &edit("closed")), "POLICY_DENIED.DENIED");
    assert_eq!(client.refused("patch", &edit("asked")), "APPROVAL_REQUIRED.LISTED");
    assert_eq!(client.refused("patch", &edit("AGENTS.md")), "APPROVAL_REQUIRED.SENSITIVE");
    assert_eq!(client.refused("read_file", &json!({ "path": "closed" })), "POLICY_DENIED.DENIED");
    let hunk =
        client.done("prepare_file_append", &json!({ "path": "asked", "content": "y\n" })).structured["hunkId"].clone();
    assert_eq!(client.refused("apply_file_modification", &json!({ "hunk_id": hunk })), "APPROVAL_REQUIRED.LISTED");
    let found = client.done("ripgrep_files", &json!({ "pattern": "x" })).structured;
    assert_eq!(found["files"], json!([{ "path": "asked", "matches": 1 }, { "path": "open", "matches": 1 }]));
    client.done("patch", &edit("open"));
    let hunk =
        client.done("prepare_file_append", &json!({ "path": "open", "content": "z\n" })).structured["hunkId"].clone();
    std::fs::write(client.ws().join(".aptix/policy.toml"), "mode = 'restricted'\n").unwrap();
    for (tool, arguments) in [
        ("patch", edit("open")),
        ("prepare_file_append", json!({ "path": "open", "content": "z\n" })),
        ("apply_file_modification", json!({ "hunk_id": hunk })),
        ("overwrite_entire_file", json!({ "path": "open", "content": "z\n" })),
    ] {
        assert_eq!(client.refused(tool, &arguments), "POLICY_DENIED.RESTRICTED_MODE", "{tool}");
    }
    assert_eq!(client.done("read_file", &json!({ "path": "open" })).structured["text"], "x\ny\n");
    std::fs::write(client.ws().join(".aptix/policy.toml"), "nonsense = 1\n").unwrap();
    assert_eq!(client.refused("patch", &edit("open")), "POLICY_DENIED.POLICY_FILE");
    client.end();
}
