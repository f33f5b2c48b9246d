//! Every dialect on its way from an author through the server to the agent's files, and back into the cloud files.

use serde_json::{Value, json};

use crate::processes::{Machine, Server};

/// What the server has: each of these files by its path, or nothing of that name.
#[track_caller]
fn assert_cloud(machine: &Machine, server: &Server, files: &[(&str, Option<&str>)]) {
    for (path, expected) in files {
        let (read, code) = machine.ask(server, "read", &[&format!("project/{path}")]);
        match expected {
            Some(content) => assert_eq!((code, &read["content"]), (Some(0), &json!(content)), "{path}: {read}"),
            None => assert_eq!((code, &read["errors"][0]["code"]), (Some(1), &json!("NOT_FOUND")), "{path}: {read}"),
        }
    }
}

/// What became of each file of a batch: its path, its status, its new path.
fn outcomes(done: &Value) -> Vec<[&str; 3]> {
    let files = done["files"].as_array().unwrap();
    files.iter().map(|file| ["path", "status", "renamedTo"].map(|key| file[key].as_str().unwrap_or_default())).collect()
}

#[track_caller]
fn submit(machine: &Machine, server: &Server, document: &str) -> Value {
    let (done, code) = machine.submit(server, document);
    assert_eq!((code, &done["state"]), (Some(0), &json!("APPLIED")), "{done}");
    done
}

/// FILE-SPEC-1.1.6, FILE-SPEC-1.1.7, FILE-SPEC-1.1.8: whole files come, change and go, and so do the cloud files.
#[test]
fn whole_files_and_renamed_files_become_the_cloud_files() {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let _agent = machine.agent(&server);
    machine.put("old.txt", "old\r\n");
    let bundle = json!({"root": ".", "files": [
        {"path": "new.txt", "operation": "create", "content": "one\r\ntwo"},
        {"path": "old.txt", "operation": "replace", "content": "replaced\n"},
        {"path": "moves.txt", "content": "first\nsecond\nthird\n"},
    ]});
    let done = submit(&machine, &server, &bundle.to_string());
    let told = [["new.txt", "created", ""], ["old.txt", "modified", ""], ["moves.txt", "created", ""]];
    assert_eq!(outcomes(&done), told);
    assert_cloud(&machine, &server, &[("new.txt", Some("one\r\ntwo")), ("old.txt", Some("replaced\n"))]);

    let bundle = json!({"files": [{"path": "old.txt", "operation": "delete"}]});
    let done = submit(&machine, &server, &bundle.to_string());
    assert_eq!(outcomes(&done), [["old.txt", "deleted", ""]]);
    assert_cloud(&machine, &server, &[("old.txt", None), ("new.txt", Some("one\r\ntwo"))]);

    let patch = "*** Begin Patch\n*** Update File: moves.txt\n*** Move to: there/moved.txt\n@@\n first\n-second\n\
                 +2nd\n third\n*** Delete File: new.txt\n*** Add File: added.txt\n+added\n*** End Patch\n";
    let done = submit(&machine, &server, patch);
    let told = [["moves.txt", "renamed", "there/moved.txt"], ["new.txt", "deleted", ""], ["added.txt", "created", ""]];
    assert_eq!(outcomes(&done), told);
    let moved = "first\n2nd\nthird\n";
    assert_cloud(
        &machine,
        &server,
        &[("moves.txt", None), ("there/moved.txt", Some(moved)), ("new.txt", None), ("added.txt", Some("added\n"))],
    );
    let files = [("added.txt", "added\n"), ("there/moved.txt", moved)];
    assert_eq!(machine.files(), files.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let change = done["files"][0]["changes"][0]["changeId"].as_str().unwrap();
    let (shown, code) = machine.ask(&server, "show", &[change]);
    assert_eq!((code, &shown["files"][0]["renamedTo"]), (Some(0), &json!("there/moved.txt")), "{shown}");
}
