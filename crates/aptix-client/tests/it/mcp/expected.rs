//! The tools that models were trained on, and those for files and batches: what each does to the files, and how a refusal
//! names the arguments.

use serde_json::{Value, json};

use super::client::Client;
use super::{code, sha256};

fn message(answer: &Value) -> String {
    answer["errors"][0]["message"].as_str().unwrap().to_owned()
}

/// One text is replaced where it is the only one, everywhere if that is said, and an empty one makes a file.
#[test]
fn edit_replaces_one_text() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\ntwo\n").unwrap());
    let edit = |old: &str, new: &str, all: Value| json!({ "file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": all });
    client.done("edit", &edit("one", "1", Value::Null));
    let refused = client.call("edit", &edit("two", "2", false.into())).structured;
    assert_eq!(code(&refused), "TEXT_NOT_UNIQUE");
    client.done("edit", &edit("two", "2", true.into()));
    assert_eq!(client.read("a.txt"), "1\n2\n2\n");
    assert_eq!(client.refused("edit", &edit("", "x", false.into())), "FILE_EXISTS");
    client.done("edit", &json!({ "file_path": "new/b.txt", "old_string": "", "new_string": "b\n" }));
    assert_eq!(client.read("new/b.txt"), "b\n");
    let refused = client.call("edit", &json!({ "file_path": "../a", "old_string": "x", "new_string": "y" })).structured;
    assert!(message(&refused).starts_with("file_path: "), "{refused}");
    client.end();
}

/// The commands of the text-editor tool, with the fillers of a provider that requires every argument.
#[test]
fn the_text_editor_s_commands_are_carried_out() {
    let tool = "str_replace_based_edit_tool";
    let mut client = Client::start(|ws| {
        std::fs::create_dir(ws.join("src")).unwrap();
        std::fs::write(ws.join("src/a.txt"), "one\ntwo\nthree\n").unwrap();
    });
    let shown = client.done(tool, &json!({ "command": "view", "path": "src/a.txt", "view_range": [2, -1] }));
    assert_eq!(shown.text, "     2\ttwo\n     3\tthree\n");
    for range in [json!("[2, 3]"), json!([2, 3])] {
        let call =
            json!({ "command": "view", "path": "src/a.txt", "view_range": range, "file_text": "", "old_str": null });
        assert_eq!(client.done(tool, &call).structured["startLine"], 2);
    }
    assert_eq!(client.done(tool, &json!({ "command": "view", "path": "src" })).text, "src/a.txt (14)\n");
    for (range, expected) in [
        (json!([3, 2]), "LINE_RANGE.INVERTED"),
        (json!([0, 2]), "LINE_RANGE.NUMBER"),
        (json!([9, 10]), "LINE_RANGE.PAST_END"),
        (json!("two"), "INVALID_REQUEST.TYPE"),
    ] {
        let call = json!({ "command": "view", "path": "src/a.txt", "view_range": range });
        assert_eq!(client.refused(tool, &call), expected);
    }
    let call = json!({ "command": "view", "path": "src/a.txt", "old_str": "x" });
    assert_eq!(client.refused(tool, &call), "INVALID_REQUEST.UNEXPECTED_FIELD");

    let filled = |mut call: Value| {
        for (key, filler) in
            [("file_text", json!("")), ("old_str", json!("")), ("new_str", json!("")), ("insert_line", json!(0))]
        {
            let call = call.as_object_mut().unwrap();
            call.entry(key).or_insert(filler);
        }
        call
    };
    client.done(tool, &filled(json!({ "command": "create", "path": "b.txt", "file_text": "b\n" })));
    client.done(
        tool,
        &filled(json!({ "command": "str_replace", "path": "src/a.txt", "old_str": "two", "new_str": "2" })),
    );
    client.done(
        tool,
        &filled(json!({ "command": "insert", "path": "src/a.txt", "insert_line": 1, "insert_text": "1.5" })),
    );
    assert_eq!((client.read("b.txt"), client.read("src/a.txt")), ("b\n".into(), "one\n1.5\n2\nthree\n".into()));
    assert_eq!(client.refused(tool, &json!({ "command": "create", "path": "b.txt", "file_text": "" })), "FILE_EXISTS");
    let refused =
        client.call(tool, &json!({ "command": "str_replace", "path": "b.txt", "old_str": "c", "new_str": "" }));
    assert_eq!(code(&refused.structured), "TEXT_NOT_FOUND");
    assert_eq!(
        client.refused(tool, &json!({ "command": "undo_edit", "path": "b.txt" })),
        "INVALID_REQUEST.UNKNOWN_OPERATION"
    );
    client.end();
}

/// Documents as arguments; a list may come as the JSON text of one.
#[test]
fn documents_are_applied_whole() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap());
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";
    let answer = client.done("apply_patch", &json!({ "input": patch })).structured;
    assert_eq!((&answer["files"][0]["status"], &answer["files"][1]["status"]), (&"created".into(), &"modified".into()));
    assert_eq!(
        client.refused("apply_patch", &json!({ "input": "*** Begin Patch\n*** End" })),
        "PATCH_TRUNCATED.MARKER"
    );
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-1\n+one\n two\n";
    client.done("apply_git_patch", &json!({ "patch": diff }));
    let steps = json!([{ "find": "two", "replace": "2" }]).to_string();
    let patches = json!([{ "path": "a.txt", "replacements": steps }]).to_string();
    client.done("apply_structured_patch", &json!({ "patches": patches }));
    assert_eq!(client.read("a.txt"), "one\n2\n");
    let file = |path: &str, operation: &str| json!({ "path": path, "operation": operation, "content": "", "contentFormat": "" });
    let bundle = json!({ "files": [file("b.txt", "delete"), file("c.txt", "")] });
    client.set_policy("deletions = \"allow\"\n");
    client.done("apply_file_bundle", &bundle);
    assert_eq!((client.ws().join("b.txt").exists(), client.read("c.txt")), (false, String::new()));
    let refused = client.call("apply_file_bundle", &json!({ "files": "x" })).structured;
    assert_eq!(code(&refused), "INVALID_REQUEST.TYPE");
    assert!(message(&refused).starts_with("files: "), "{refused}");
    client.end();
}

/// Files are deleted, moved and listed; a path from the root of the file system is taken inside the workspace alone.
#[test]
fn files_are_deleted_moved_and_listed_by_one_convention_of_paths() {
    let mut client = Client::start(|ws| {
        std::fs::create_dir(ws.join("src")).unwrap();
        std::fs::write(ws.join("src/a.txt"), "one\n").unwrap();
        std::fs::write(ws.join("b.txt"), "b\n").unwrap();
        std::fs::write(ws.join(".env"), "KEY=1\n").unwrap();
    });
    let at = |path: &str| client.ws().join(path).to_str().unwrap().to_owned();
    let (a, c, list) = (at("src/a.txt"), at("deep/c.txt"), at("src"));
    client.done("move_file", &json!({ "path": a, "to": c }));
    assert_eq!(client.read("deep/c.txt"), "one\n");
    assert_eq!(client.refused("move_file", &json!({ "path": "b.txt", "to": "deep/c.txt" })), "FILE_EXISTS");
    let listed = client.done("list_directory", &json!({ "path": "", "max_files": 1 })).structured;
    assert_eq!(listed["files"], json!([{ "path": "b.txt", "sizeBytes": 2 }]));
    let rest = client.done("list_directory", &json!({ "page_token": listed["nextPageToken"] })).structured;
    assert_eq!(
        (&rest["files"], &rest["directories"], &rest["nextPageToken"]),
        (&json!([]), &json!(["deep"]), &Value::Null)
    );
    assert_eq!(client.done("list_directory", &json!({ "path": list })).structured["files"], json!([]));
    for (tool, call) in [
        ("read_file", json!({ "path": c })),
        ("ripgrep_content", json!({ "pattern": "one", "path": c })),
        ("edit", json!({ "file_path": c, "old_string": "one", "new_string": "1" })),
        ("patch", json!({ "path": c, "patches": [{ "operation": "append_eof", "newText": "2\n" }] })),
    ] {
        client.done(tool, &call);
    }
    let change = json!({ "operation": "insert", "afterLine": 2, "newLines": ["3"] });
    let file = json!({ "docPath": c, "originalSha256": sha256("1\n2\n"), "changes": [change] });
    client.done("workspace_write_patch", &json!({ "files": [file] }));
    assert_eq!(client.read("deep/c.txt"), "1\n2\n3\n");
    for (tool, key) in [("delete_file", "path"), ("read_file", "path"), ("list_directory", "path")] {
        assert_eq!(client.refused(tool, &json!({ key: "/etc/hostname" })), "INVALID_PATH.ABSOLUTE");
        let sibling = format!("{}2/x", client.ws().to_str().unwrap());
        assert_eq!(client.refused(tool, &json!({ key: sibling })), "INVALID_PATH.ABSOLUTE");
    }
    assert_eq!(client.refused("delete_file", &json!({ "path": "deep/c.txt" })), "APPROVAL_REQUIRED.DELETION");
    client.set_policy("deletions = \"allow\"\n");
    client.done("delete_file", &json!({ "path": "deep/c.txt" }));
    assert_eq!(client.refused("delete_file", &json!({ "path": "deep/c.txt" })), "FILE_MISSING");
    client.end();
}

/// A batch is found again by its id, a part of it by its own, and taken back; what read_file does not show is not shown.
#[test]
fn batches_are_listed_shown_and_taken_back() {
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(ws.join("key.txt"), "old\n").unwrap();
    });
    let edit = |old: &str, new: &str| json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
    let first = client.done("edit", &edit("one", "1")).structured;
    let second = client.done("edit", &edit("two", "2")).structured;
    let listed = client.done("history", &json!({})).structured["batches"].clone();
    assert_eq!([&listed[0]["batchId"], &listed[1]["batchId"]], [&second["batchId"], &first["batchId"]]);
    assert_eq!(listed[0]["files"], json!([{ "path": "a.txt", "status": "modified", "renamedTo": null }]));
    let change = &first["files"][0]["changes"][0]["changeId"];
    for id in [&first["batchId"], &first["files"][0]["filePatchId"], change] {
        let shown = client.done("get_patch_change", &json!({ "id": id })).structured;
        assert_eq!(shown["batchId"], first["batchId"]);
        assert!(shown["diff"].as_str().unwrap().contains("-one\n+1\n"), "{shown}");
    }
    assert_eq!(client.refused("get_patch_change", &json!({ "id": "00000000" })), "NOT_FOUND");

    let undo = json!({ "batch_id": first["batchId"], "reason": "wrong file" });
    let undone = client.done("undo", &undo).structured;
    assert_eq!(client.read("a.txt"), "one\n2\n", "what came later stays");
    // The record names the client by what it calls itself.
    let log = crate::command_line::aptix(client.place.path(), &["log", "--json"], "");
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    let who = |at: usize| ["actor", "actorName", "reason"].map(|key| log["batches"][at]["steps"][0][key].clone());
    assert_eq!(who(0), ["AUTHOR".into(), "test".into(), json!("wrong file")], "{log}");
    assert!((1..3).all(|at| who(at) == ["AUTHOR".into(), "test".into(), Value::Null]), "{log}");
    let refused = client.call("undo", &undo).structured;
    assert_eq!(code(&refused), "ALREADY_APPLIED", "it is taken back already");
    assert!(!refused.to_string().contains("`aptix"), "{refused}");
    client.done("undo", &json!({ "batch_id": undone["batchId"] }));
    assert_eq!(client.read("a.txt"), "1\n2\n", "an undo can be taken back");
    for batch in ["", "newest", "018f6d2e-7c1a-7b3e-9d55-012345670000"] {
        let refused = client.call("undo", &json!({ "batch_id": batch })).structured;
        assert!(!refused.to_string().contains("`aptix"), "{refused}");
    }

    let (place, _) = client.end();
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
    let bundle = json!({ "files": [{ "path": "key.txt", "content": key, "operation": "replace" }] }).to_string();
    let applied = crate::command_line::aptix(place.path(), &["apply", "--yes", "--json"], &bundle);
    let applied: Value = serde_json::from_slice(&applied.stdout).unwrap();
    assert_eq!(applied["state"], "APPLIED", "{applied}");
    let mut client = Client::start_in(place);
    let refused = client.call("get_patch_change", &json!({ "id": applied["batchId"] }));
    assert!(refused.is_error && !refused.text.contains("abc"), "{}", refused.text);
    assert!(client.call("undo", &json!({ "batch_id": applied["batchId"] })).is_error);
    client.end();
}
