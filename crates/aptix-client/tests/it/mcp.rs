//! `aptix mcp` and `aptix tools`: the real process, spoken to in lines of JSON.

mod answers;
mod client;
mod looking;
mod patched;
mod prepared;
mod secrets;
mod twice;

use std::process::Command;

use serde_json::{Value, json};

use self::client::{Client, PATIENCE, Told, code, told};
use aptix_client::workspace::wall::{Wall, raise};

use crate::command_line::{aptix, text};
use crate::tree;

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
    let told = client.done("workspace_write_patch", &patch);
    let (told, result) = (&told.structured, &told.structured["result"]);
    assert_eq!((&told["successful"], &told["errors"], &told["warnings"]), (&true.into(), &json!([]), &json!([])));
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

    let told = client.call("workspace_write_patch", &patch);
    assert!(told.is_error);
    assert_eq!((&told.structured["successful"], &told.structured["result"]), (&false.into(), &Value::Null));
    assert_eq!(code(&told.structured), "ALREADY_APPLIED");
    assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), told.structured);

    // What can be proven is a call, ready to be sent.
    patch["files"][0]["changes"][0]["expectedOriginalLines"] = json!(["2"]);
    patch["files"][0]["changes"][0]["newLines"] = json!(["zwei"]);
    patch["files"][0]["changes"].as_array_mut().unwrap().truncate(1);
    let told = client.call("workspace_write_patch", &patch);
    assert_eq!(code(&told.structured), "SHA_MISMATCH");
    let next = &told.structured["errors"][0]["nextAction"];
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
        let told = client.call("workspace_write_patch", &json!({ "files": [file] }));
        assert_eq!((told.is_error, code(&told.structured).as_str()), (true, expected));
        assert_eq!((&told.structured["successful"], &told.structured["result"]), (&false.into(), &Value::Null));
    }
    assert_eq!(client.refused("workspace_write_patch", &json!({ "files": 3 })), "INVALID_REQUEST.TYPE");
    client.end();
}

/// An answer without its message, and the message.
fn created(told: &Told) -> (Value, String) {
    let mut told = told.structured.clone();
    let message = told.as_object_mut().unwrap().remove("message").unwrap();
    (told, message.as_str().unwrap().to_owned())
}

/// TUL-004-3.3.6, TUL-004-6.2.2, TUL-004-4.2.9, TUL-004-4.2.11: what a created file is answered with.
/// TUL-004-4.3.1, TUL-004-4.3.2, TUL-004-4.3.3, TUL-004-4.3.4, TUL-004-4.3.5, TUL-004-4.3.6, TUL-004-4.3.7, TUL-004-4.3.8,
/// TUL-004-4.3.9, TUL-004-4.3.10, TUL-004-5.1.7.1, TUL-004-5.1.7.2, TUL-004-5.1.7.3, TUL-004-5.1.7.4, TUL-004-5.1.7.5,
/// TUL-004-5.1.7.6, TUL-004-5.1.7.7: each key of it.
/// TUL-004-5.1.3.2, TUL-004-5.2.5, TUL-004-5.3.3, TUL-004-5.3.5: each code, and what is wrong in words.
/// TUL-004-3.3.7, TUL-004-6.2.1: each call is logged.
#[test]
fn a_created_file_is_answered_as_the_contract_says() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("file"), "x").unwrap());
    let tool = "workspace_create_file";
    let done = |path: &str, text: &str, created: bool| {
        json!({
            "success": true, "path": path, "sizeBytes": text.len(), "hash": sha256(text),
            "created": created, "overwritten": !created, "errorCode": null,
        })
    };
    let told = client.done(tool, &json!({ "path": ".\\src\\a.txt", "content": "\u{feff}x\r\ny" }));
    assert_eq!(created(&told), (done("src/a.txt", "x\ny", true), "File created.".to_owned()));
    assert_eq!(client.read("src/a.txt"), "x\ny");
    let read = client.done("read_file", &json!({ "path": "src/a.txt" }));
    assert_eq!(read.structured["sha256"], told.structured["hash"], "one hash for one file, whoever tells it");
    let told = client.done(tool, &json!({ "path": "src/a.txt", "content": "zz", "overwrite": true }));
    assert_eq!(created(&told), (done("src/a.txt", "zz", false), "File overwritten.".to_owned()));
    let told = client.done(tool, &json!({ "path": "new", "content": "", "overwrite": true }));
    assert_eq!(created(&told), (done("new", "", true), "File created.".to_owned()));

    let large = "x".repeat((10 << 20) + 1);
    for (path, content, expected, words) in [
        ("src/a.txt", json!("y"), "FileExists", "FILE_EXISTS"),
        ("/etc/x", json!("y"), "InvalidPath", "INVALID_PATH (ABSOLUTE)"),
        ("C:\\x", json!("y"), "InvalidPath", "INVALID_PATH (DRIVE)"),
        ("\\\\server\\x", json!("y"), "InvalidPath", "INVALID_PATH (UNC)"),
        ("a/../../x", json!("y"), "InvalidPath", "INVALID_PATH (TRAVERSAL)"),
        (" ", json!("y"), "InvalidPath", "INVALID_PATH (EMPTY)"),
        (".git/config", json!("y"), "InvalidPath", "POLICY_DENIED (PROTECTED)"),
        ("file/below", json!("y"), "InvalidPath", "INVALID_PATH (NOT_DIRECTORY)"),
        (".vscode/tasks.json", json!("{}"), "WriteFailed", "APPROVAL_REQUIRED (SENSITIVE)"),
        ("large", json!(large), "TooLarge", "TOO_LARGE (FILE)"),
        ("none", Value::Null, "UnhandledException", "INVALID_REQUEST (MISSING)"),
    ] {
        let told = client.call(tool, &json!({ "path": path, "content": content }));
        assert!(told.is_error, "{path}");
        let refused = json!({
            "success": false, "path": if content.is_null() { String::new() } else { path.replace('\\', "/") }, "sizeBytes": 0, "hash": "",
            "created": false, "overwritten": false, "errorCode": expected,
        });
        let (found, message) = created(&told);
        assert_eq!(found, refused, "{message}");
        let place = client.place.path().to_str().unwrap();
        assert!(message.starts_with(&format!("{words}: ")) && !message.contains(place), "{message}");
    }
    let files = tree::read(&client.ws()).into_keys().collect::<Vec<_>>();
    assert_eq!(files, ["file", "new", "src", "src/a.txt"], "nothing is left of what was refused");
    use std::os::unix::fs::PermissionsExt;
    let closed = client.ws().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    // Who may write everywhere is not kept from it.
    if std::fs::create_dir(closed.join("probe")).is_err() {
        let told = client.call(tool, &json!({ "path": "closed/a/b", "content": "y" }));
        assert_eq!(told.structured["errorCode"], "DirectoryCreateFailed", "{}", told.structured);
    }
    let told = client.call(tool, &json!({ "path": "x", "path2": "y" }));
    assert_eq!(told.structured["errorCode"], "UnhandledException");
    let (_, log) = client.end();
    let executed: Vec<_> = log.lines().filter(|line| line.contains("Tool.CreateFile.Executed")).collect();
    let hash = format!("Hash={}", sha256("zz"));
    for (line, fields) in [
        (0, ["Path=\"src/a.txt\"", "Overwrite=false", "Success=true", "SizeBytes=3"]),
        (1, ["Overwrite=true", "Success=true", "SizeBytes=2", &hash]),
        (3, ["Path=\"src/a.txt\"", "Overwrite=false", "Success=false", "ErrorCode=\"FILE_EXISTS\""]),
    ] {
        assert!(fields.iter().all(|field| executed[line].contains(field)), "{fields:?}: {}", executed[line]);
    }
}

/// A search patch: confirmed with where it stands, refused with what stands there; clipboards live as long as the connection.
#[test]
fn a_search_patch_is_confirmed_or_refused_and_clipboards_belong_to_the_connection() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\ntwo\n").unwrap());
    let patch = |operations: Value| json!({ "path": "a.txt", "patches": operations });
    let told = client.done(
        "patch",
        &patch(json!([{ "operation": "replace", "oldText": "one", "newText": "1", "toClipboard": "c" }])),
    );
    assert_eq!(
        (&told.structured["state"], &told.structured["files"][0]["status"]),
        (&"APPLIED".into(), &"modified".into())
    );
    assert!(told.structured["diff"].as_str().unwrap().contains("-one\n+1\n"));
    assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), told.structured);
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
    let batch = told.structured["batchId"].as_str().unwrap().to_owned();
    let (place, _) = client.end();
    // The answer's id is what the person knows it by.
    let log = text(&aptix(place.path(), &["log"], "").stdout);
    assert!(log.contains(&batch), "{log}");
    let mut client = Client::start_in(place);
    assert_eq!(client.refused("patch", &paste), "CLIPBOARD_MISSING");
    client.end();
}

/// WS-MOD-4.1.1, WS-MOD-2.1.2: an edit is planned, looked at, replaced, applied once, exactly as it was planned.
#[test]
fn an_edit_is_prepared_looked_at_and_applied() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\nthree\n").unwrap());
    let prepared = client.done(
        "prepare_file_insert_after",
        &json!({ "path": "a.txt", "anchor": "two", "content": "2b", "match": "", "occurrence": 0, "existing_hunk_id": "" }),
    );
    assert_eq!(client.read("a.txt"), "one\ntwo\nthree\n", "nothing is written yet");
    let hunk = prepared.structured["hunkId"].as_str().unwrap().to_owned();
    for part in [
        "status: planned",
        &hunk,
        "expires_at_ms:",
        "mode: insert_after",
        "evidence:",
        "normalized_content_eof_newline_added: true",
        "blankline_style:",
        "style_warning:",
        "+2b\n",
    ] {
        assert!(prepared.text.contains(part), "{part}: {}", prepared.text);
    }
    assert_eq!(
        (&prepared.structured["state"], &prepared.structured["files"][0]["path"]),
        (&"PREPARED".into(), &"a.txt".into())
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let expires = u128::from(prepared.structured["expiresAtMs"].as_u64().unwrap());
    assert!(expires > now && expires <= now + 3_600_000);

    let again = json!({ "path": "a.txt", "anchor": "two", "content": "2c\n", "existing_hunk_id": hunk });
    assert_eq!(client.refused("prepare_file_insert_before", &again), "INVALID_STATE.OTHER_KIND");
    assert_eq!(client.done("prepare_file_insert_after", &again).structured["hunkId"], hunk.as_str());
    let applied = client.done("apply_file_modification", &json!({ "hunk_id": hunk }));
    for part in ["status: applied", &hunk, "apply_evidence:", "+2c\n"] {
        assert!(applied.text.contains(part), "{part}: {}", applied.text);
    }
    assert_eq!(applied.structured["files"][0]["filePatchId"], hunk.as_str());
    assert_eq!(client.read("a.txt"), "one\ntwo\n2c\nthree\n");
    assert_eq!(client.refused("apply_file_modification", &json!({ "hunk_id": hunk })), "ALREADY_APPLIED");
    let unknown = "018f6d2e-7c1a-7b3e-9d55-0123456789ab";
    assert_eq!(client.refused("apply_file_modification", &json!({ "hunk_id": unknown })), "NOT_FOUND");

    assert_eq!(
        client.refused("prepare_file_append", &json!({ "path": "a.txt", "content": "" })),
        "INVALID_REQUEST.EMPTY_NEW_LINES"
    );
    assert_eq!(
        client.refused("prepare_file_append", &json!({ "path": ".git/hooks/x", "content": "x" })),
        "POLICY_DENIED.PROTECTED"
    );
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
    assert_eq!(client.refused("append_file", &json!({})), "INVALID_REQUEST.UNKNOWN_OPERATION");
    client.end();
}

/// What was planned for one file is not written to another one.
#[test]
fn a_plan_for_a_file_that_changed_since_is_not_applied() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap());
    let prepare = json!({ "path": "a.txt", "anchor": "two", "content": "x\n" });
    let hunk = client.done("prepare_file_insert_after", &prepare).structured["hunkId"].clone();
    for changed in ["zero\none\ntwo\n", "one\n", "two\ntwo\n"] {
        std::fs::write(client.ws().join("a.txt"), changed).unwrap();
        assert_eq!(client.refused("apply_file_modification", &json!({ "hunk_id": hunk })), "FILE_CHANGED");
        assert_eq!(client.read("a.txt"), changed);
    }
    std::fs::write(client.ws().join("a.txt"), "one\ntwo\n").unwrap();
    client.done("apply_file_modification", &json!({ "hunk_id": hunk }));
    assert_eq!(client.read("a.txt"), "one\ntwo\nx\n");
    client.end();
}

/// Nobody is there to be asked: what policy asks about is refused, what it denies is neither shown nor found.
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

/// Many calls at once: each is answered, those that write take turns, and what they wrote can be undone.
#[test]
fn calls_at_the_same_time_are_all_answered_and_lose_nothing() {
    const CALLS: u64 = 40;
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "").unwrap());
    for id in 100..100 + CALLS {
        let edit = json!({ "path": "a.txt", "patches": [{ "operation": "append_eof", "newText": format!("{id}\n") }] });
        let params = json!({ "name": "patch", "arguments": edit });
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
    let mut answered: Vec<_> = (0..CALLS)
        .map(|_| {
            let heard = client.hear();
            assert!(!told(&heard).is_error, "{heard}");
            heard["id"].as_u64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (100..100 + CALLS).collect::<Vec<_>>());
    let expected: String = (100..100 + CALLS).map(|id| format!("{id}\n")).collect();
    assert_eq!(client.read("a.txt"), expected, "in the order in which they came");
    let (place, _) = client.end();
    let undone = aptix(place.path(), &["undo"], "");
    assert_eq!(undone.status.code(), Some(0), "{}", text(&undone.stderr));
    assert!(!std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap().contains("139"));
}

/// Whoever takes a call back while it waits for its turn gets no answer, and nothing is written for it.
#[test]
fn a_call_that_is_taken_back_writes_nothing() {
    let mut client = Client::start(|_| {});
    client.done("workspace_create_file", &json!({ "path": "first", "content": "" }));
    let roots = std::fs::read_dir(client.place.path().join("state/aptix/roots")).unwrap();
    let lock = roots.map(|root| root.unwrap().path().join("lock")).find(|lock| lock.exists()).unwrap();
    let lock = std::fs::File::open(lock).unwrap();
    lock.lock().unwrap();
    let call = |id: u64, path: &str| {
        let params = json!({ "name": "workspace_create_file", "arguments": { "path": path, "content": "x" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    client.say(&call(50, "a"));
    // The answer to one is not taken for the answer to another.
    client.say(&call(50, "d"));
    let heard = client.hear();
    assert!(heard["error"]["code"] == -32600 && heard["id"].is_null(), "{heard}");
    client.say(&call(51, "b"));
    client.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 51 } }).to_string(),
    );
    // What only looks is answered meanwhile, and after what was said before it.
    client.done("ripgrep_files", &json!({}));
    lock.unlock().unwrap();
    let heard = client.hear();
    assert_eq!((heard["id"].as_u64(), told(&heard).is_error), (Some(50), false), "{heard}");
    client.done("workspace_create_file", &json!({ "path": "c", "content": "x" }));
    let ws = client.ws();
    let (_place, _) = client.end();
    assert_eq!(["a", "b", "c", "d"].map(|name| ws.join(name).exists()), [true, false, true, false]);
}

/// A long line is not shown; a call that nobody reads the answer of does not keep the server alive; the kernel keeps it within
/// its walls; and what somebody writes into a file that was replaced is kept when it ends.
#[test]
fn it_is_a_good_guest() {
    let long = "x".repeat(200 << 10);
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("long"), format!("{long}{long}\nnext\n")).unwrap();
        std::fs::write(ws.join("half"), format!("{long}\n")).unwrap();
        std::fs::write(ws.join("open"), "old\n").unwrap();
    });
    assert_eq!(client.refused("read_file", &json!({ "path": "long" })), "TOO_LARGE");
    assert_eq!(client.done("read_file", &json!({ "path": "long", "range": "2~" })).structured["text"], "next\n");
    if matches!(std::thread::spawn(|| raise(&[])).join().unwrap(), Wall::Up) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", client.child.id())).unwrap();
        for task in tasks.filter_map(Result::ok) {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            assert!(status.is_empty() || status.contains("NoNewPrivs:\t1"), "{status}");
        }
    }
    let mut program = std::fs::File::options().append(true).open(client.ws().join("open")).unwrap();
    client.done("overwrite_entire_file", &json!({ "path": "open", "content": "new" }));
    std::io::Write::write_all(&mut program, b"late\n").unwrap();
    let (place, _) = client.end();
    let [(path, kept)] = <[_; 1]>::try_from(crate::displaced::logged(place.path())).unwrap();
    assert_eq!((path.as_str(), std::fs::read_to_string(&kept).unwrap().as_str()), ("open", "old\nlate\n"));

    let mut client = Client::deaf_in(place);
    for id in 1..=10 {
        let params = json!({ "name": "read_file", "arguments": { "path": "half" } });
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
    drop(client.stdin.take());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
}

/// What is no message is told as such, and nothing else is harmed; a name given twice is seen.
#[test]
fn lines_that_are_no_calls_harm_nobody() {
    let mut client = Client::start(|_| {});
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("[1,2]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nothing/here\"}", -32601),
    ] {
        client.say(line);
        assert_eq!(client.hear()["error"]["code"], code, "{line}");
    }
    client.say("");
    client.say(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"workspace_create_file","arguments":{"path":"a","path":"b","content":"x"}}}"#);
    let refused = told(&client.hear());
    assert!(
        refused.is_error && refused.structured["message"].as_str().unwrap().contains("DUPLICATE_KEY"),
        "{}",
        refused.structured
    );
    assert!(!client.ws().join("a").exists() && !client.ws().join("b").exists());
    // What is wrong with arguments is the tool's to tell.
    for (id, arguments) in [
        (10, "\"text\"".to_owned()),
        (11, "[]".to_owned()),
        (12, "null".to_owned()),
        (13, "[".repeat(500) + &"]".repeat(500)),
    ] {
        client.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools\/call","params":{{"name":"patch","arguments":{arguments}}}}}"#
        ));
        let heard = client.hear();
        assert_eq!(heard["id"], id);
        assert!(code(&told(&heard).structured).starts_with("INVALID_REQUEST"), "{heard}");
    }
    for params in [
        r#"{"name":"patch","arguments":{},"arguments":{}}"#,
        r#"{"name":"patch","name":"patch","arguments":{}}"#,
        r#"{"name":3,"arguments":{}}"#,
        r#"{"arguments":{}}"#,
    ] {
        client.say(&format!(r#"{{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{params}}}"#));
        let heard = client.hear();
        assert!(heard["id"] == "two" && heard["error"]["code"] == -32602, "{heard}");
    }
    client.say(&format!("{}{}", "x".repeat(1 << 20), "y".repeat(1 << 20)));
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.done("ripgrep_files", &json!({}));
    client.end();
}

/// In the newest form of the protocol nobody says hello: each request says what it has to.
#[test]
fn a_request_of_the_newest_protocol_needs_no_hello() {
    let mut client = Client::silent();
    let about = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask("server/discover", &json!({ "_meta": about }));
    assert!(found["result"]["capabilities"]["tools"].is_object(), "{found}");
    let call = json!({ "_meta": about, "name": "workspace_create_file", "arguments": { "path": "a", "content": "x" } });
    assert!(!told(&client.ask("tools/call", &call)).is_error);
    assert_eq!(client.read("a"), "x");
    assert!(client.ask("tools/list", &json!({ "_meta": about }))["result"]["tools"].is_array());
    client.end();
}

/// When its client goes away it ends, what was being written is written, and who never said anything is no failure.
#[test]
fn it_ends_with_its_client() {
    let mut client = Client::start(|_| {});
    let create = json!({ "name": "workspace_create_file", "arguments": { "path": "last", "content": "x" } });
    client.say(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": create }).to_string());
    drop(client.stdin.take());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert_eq!((client.hear()["id"].as_u64(), client.read("last").as_str()), (Some(9), "x"));

    let place = tempfile::tempdir().unwrap();
    let output = aptix(place.path(), &["mcp"], "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]), "{}", text(&output.stderr));
    let output = aptix(place.path(), &["mcp", "--root", "nowhere"], "");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));

    let mut client = Client::start(|_| {});
    let killed = Command::new("kill").args(["-TERM", &client.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
    assert!(client.lines.recv_timeout(PATIENCE).is_err());
}
