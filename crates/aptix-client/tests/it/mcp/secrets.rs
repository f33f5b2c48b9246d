//! What tools give away: nothing of secrets, and no path of this machine.

use serde_json::{Value, json};

use super::client::{Client, code};
use super::sha256;

fn replace(path: &str, old: &str) -> Value {
    json!({ "path": path, "patches": [{ "operation": "replace", "oldText": old, "newText": "x" }] })
}

/// A tool gives away nothing of a file that holds secrets, whatever it is called with.
#[test]
fn no_tool_gives_away_secrets() {
    const TEXT: &str = "zebra one\nzebra two\n";
    // What Aptix has kept of it.
    const COPY: &str = "prod.tfvars.kept-0123456789abcdef0123456789abcdef";
    let key = format!("-----BEGIN PRIVATE KEY-----\n{TEXT}");
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join(".gitignore"), "ignored.txt\n").unwrap();
        std::fs::write(ws.join("ignored.txt"), "shown\n").unwrap();
        std::fs::write(ws.join("prod.tfvars"), TEXT).unwrap();
        std::fs::write(ws.join("notes.txt"), &key).unwrap();
        std::fs::write(ws.join(COPY), TEXT).unwrap();
    });
    let digests = [sha256(TEXT), sha256(&key)];
    let cut = |path: &str| json!({ "path": path, "patches": [{ "operation": "replace", "oldText": "zebra two", "newText": "x", "toClipboard": "c" }] });
    let lines = |path: &str| {
        let change = json!({ "operation": "insert", "afterLine": 1, "newLines": ["x"] });
        json!({ "files": [{ "docPath": format!("ws/{path}"), "originalSha256": sha256("other"), "changes": [change] }] })
    };
    for path in ["prod.tfvars", "notes.txt", COPY] {
        let calls = [
            ("read_file", json!({ "path": path }), "POLICY_DENIED.SECRET"),
            ("patch", replace(path, "zebra two"), "APPROVAL_REQUIRED.WITHHELD"),
            ("patch", replace(path, "zebra too"), "APPROVAL_REQUIRED.WITHHELD"),
            ("patch", cut(path), "POLICY_DENIED.WITHHELD"),
            ("workspace_write_patch", lines(path), "APPROVAL_REQUIRED.WITHHELD"),
            ("prepare_file_append", json!({ "path": path, "content": "x" }), "APPROVAL_REQUIRED.WITHHELD"),
        ];
        for (tool, arguments, expected) in calls {
            let answer = client.call(tool, &arguments);
            assert_eq!(code(&answer.structured), expected, "{tool} {arguments}: {}", answer.structured);
            let answer = format!("{} {}", answer.structured, answer.text);
            assert!(!answer.contains("zebra one") && digests.iter().all(|digest| !answer.contains(digest)), "{answer}");
        }
    }
    let found = client.done("ripgrep_content", &json!({ "pattern": "zebra" }));
    assert_eq!(found.structured["files"], json!([]), "{}", found.text);
    assert!(client.done("read_file", &json!({ "path": "ignored.txt" })).text.contains("shown"));
    client.end();
}

/// No tool names a path of this machine outside of the root: the state cannot be used, then the policy cannot be read.
#[test]
fn no_tool_names_paths_of_the_machine() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("ignored.txt"), "shown\n").unwrap());
    client.done("read_file", &json!({ "path": "ignored.txt" }));
    let place = client.place.path().to_str().unwrap().to_owned();
    let state = client.place.path().join("state/aptix/roots");
    let root = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap().path();
    for part in ["journal", "history"] {
        // The server's upkeep may make it again meanwhile.
        while std::fs::write(root.join(part), "").is_err() {
            let _ = std::fs::remove_dir_all(root.join(part));
        }
    }
    let create = json!({ "path": "new.txt", "content": "x" });
    let overwrite = json!({ "path": "ignored.txt", "content": "x", "content_format": "verbatim" });
    let mut refused = |expected: &str| {
        for (tool, arguments) in [
            ("workspace_create_file", create.clone()),
            ("patch", replace("ignored.txt", "shown")),
            ("overwrite_entire_file", overwrite.clone()),
        ] {
            let answer = client.call(tool, &arguments);
            assert!(answer.is_error, "{tool}: {}", answer.structured);
            let answer = format!("{} {}", answer.structured, answer.text);
            assert!(!answer.contains(&place) && answer.contains(expected), "{tool}: {answer}");
        }
    };
    refused("(state)/journal");
    let config = std::path::Path::new(&place).join("config/aptix");
    std::fs::create_dir_all(config.join("policy.toml")).unwrap();
    refused("(configuration)/policy.toml");
    client.end();
}

/// What a person did is shown to a model only where the model may read it: not over a link, and not in another root.
#[test]
fn no_tool_shows_a_past_batch_of_what_the_model_may_not_read() {
    let client = Client::start(|ws| {
        std::fs::write(ws.join("prod.tfvars"), "zebra one\n").unwrap();
        std::os::unix::fs::symlink("prod.tfvars", ws.join("settings")).unwrap();
        std::fs::write(ws.join("a.txt"), "one\n").unwrap();
        std::fs::create_dir(ws.join("../two")).unwrap();
        std::fs::write(ws.join("../two/a.txt"), "zebra one\n").unwrap();
    });
    let (place, _) = client.end();
    let apply = |arguments: &[&str], files: &[(&str, &str)]| {
        let files: Vec<_> = files
            .iter()
            .map(|(path, content)| json!({ "path": path, "operation": "replace", "content": content }))
            .collect();
        let arguments = [&["apply", "--yes", "--json"], arguments].concat();
        let applied = crate::command_line::aptix(place.path(), &arguments, json!({ "files": files }).to_string());
        let applied: Value = serde_json::from_slice(&applied.stdout).unwrap();
        assert_eq!(applied["state"], "APPLIED", "{applied}");
        applied
    };
    let linked = apply(&[], &[("settings", "zebra two\n")]);
    let roots = ["--root", "ws=.", "--root", "two=../two"];
    let both = apply(&roots, &[("ws/a.txt", "two\n"), ("two/a.txt", "zebra three\n")]);
    let unchanged = apply(&[], &[("a.txt", "three\n"), ("prod.tfvars", "zebra two\n")]);
    let digests = ["zebra one\n", "zebra two\n", "zebra three\n"].map(sha256);
    let mut client = Client::start_in(place);
    let here = client.ws().parent().unwrap().canonicalize().unwrap().display().to_string();
    let mut calls = vec![("history", json!({}))];
    for batch in [&linked, &both, &unchanged] {
        calls.push(("get_patch_change", json!({ "id": batch["batchId"] })));
        for file in batch["files"].as_array().unwrap() {
            calls.push(("get_patch_change", json!({ "id": file["filePatchId"] })));
        }
    }
    calls.push(("undo", json!({ "batch_id": linked["batchId"] })));
    calls.push(("undo", json!({ "batch_id": both["batchId"] })));
    for (tool, arguments) in calls {
        let answer = client.call(tool, &arguments);
        let all = format!("{}{}", answer.text, answer.structured);
        assert!(!all.contains("zebra") && !all.contains(&here), "{tool} {arguments}: {all}");
        assert!(digests.iter().all(|digest| !all.contains(digest.as_str())), "{tool} {arguments}: {all}");
    }
    let own = client.done("get_patch_change", &json!({ "id": both["files"][0]["filePatchId"] })).structured;
    assert!(own["diff"].as_str().unwrap().contains("+two\n"), "{own}");
    client.end();
}
