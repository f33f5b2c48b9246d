//! What tools give away: nothing of secrets, and no path of this machine.

use serde_json::json;

use super::client::{Client, code};
use super::sha256;

/// A tool gives away nothing of a file that holds secrets, whatever it is called with, and no path of this machine.
#[test]
fn no_tool_gives_away_secrets_or_paths_of_the_machine() {
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
    let patch = |path: &str, old: &str| json!({ "path": path, "patches": [{ "operation": "replace", "oldText": old, "newText": "x" }] });
    let cut = |path: &str| json!({ "path": path, "patches": [{ "operation": "replace", "oldText": "zebra two", "newText": "x", "toClipboard": "c" }] });
    let lines = |path: &str| {
        let change = json!({ "operation": "insert", "afterLine": 1, "newLines": ["x"] });
        json!({ "files": [{ "docPath": format!("ws/{path}"), "originalSha256": sha256("other"), "changes": [change] }] })
    };
    for path in ["prod.tfvars", "notes.txt", COPY] {
        let calls = [
            ("read_file", json!({ "path": path }), "POLICY_DENIED.SECRET"),
            ("patch", patch(path, "zebra two"), "APPROVAL_REQUIRED.WITHHELD"),
            ("patch", patch(path, "zebra too"), "APPROVAL_REQUIRED.WITHHELD"),
            ("patch", cut(path), "POLICY_DENIED.WITHHELD"),
            ("workspace_write_patch", lines(path), "APPROVAL_REQUIRED.WITHHELD"),
            ("prepare_file_append", json!({ "path": path, "content": "x" }), "APPROVAL_REQUIRED.WITHHELD"),
        ];
        for (tool, arguments, expected) in calls {
            let told = client.call(tool, &arguments);
            assert_eq!(code(&told.structured), expected, "{tool} {arguments}: {}", told.structured);
            let told = format!("{} {}", told.structured, told.text);
            assert!(!told.contains("zebra one") && digests.iter().all(|digest| !told.contains(digest)), "{told}");
        }
    }
    let found = client.done("ripgrep_content", &json!({ "pattern": "zebra" }));
    assert_eq!(found.structured["files"], json!([]), "{}", found.text);
    assert!(client.done("read_file", &json!({ "path": "ignored.txt" })).text.contains("shown"));

    // The state becomes one that cannot be used, and the policy one that cannot be read.
    let place = client.place.path().to_str().unwrap().to_owned();
    let state = client.place.path().join("state/aptix/roots");
    let root = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap().path();
    for part in ["journal", "history"] {
        let _ = std::fs::remove_dir_all(root.join(part));
        std::fs::write(root.join(part), "").unwrap();
    }
    let create = json!({ "path": "new.txt", "content": "x" });
    let overwrite = json!({ "path": "ignored.txt", "content": "x", "content_format": "verbatim" });
    let mut refused = |expected: &str| {
        for (tool, arguments) in [
            ("workspace_create_file", create.clone()),
            ("patch", patch("ignored.txt", "shown")),
            ("overwrite_entire_file", overwrite.clone()),
        ] {
            let told = client.call(tool, &arguments);
            assert!(told.is_error, "{tool}: {}", told.structured);
            let told = format!("{} {}", told.structured, told.text);
            assert!(!told.contains(&place) && told.contains(expected), "{tool}: {told}");
        }
    };
    refused("(state)/journal");
    let config = std::path::Path::new(&place).join("config/aptix");
    std::fs::create_dir_all(config.join("policy.toml")).unwrap();
    refused("(configuration)/policy.toml");
    client.end();
}
