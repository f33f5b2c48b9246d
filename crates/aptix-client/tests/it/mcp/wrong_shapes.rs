//! What a tool refuses a call for whose arguments have the wrong shape in places.

use serde_json::json;

use super::client::Client;
use super::sha256;

/// TUL-002-9.2: a wrong shape in one file hides neither the broken rules of another one nor a path that is not clear.
#[test]
fn everything_wrong_with_a_call_is_said_at_once() {
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("a.txt"), "one\n").unwrap();
        std::fs::write(ws.join("Two.txt"), "x\n").unwrap();
        std::fs::write(ws.join("two.txt"), "x\n").unwrap();
    });
    let insert = json!([{ "operation": "insert", "afterLine": 0, "newLines": ["x"] }]);
    let file = |path: &str, sha256: &str, changes: &serde_json::Value| json!({ "docPath": path, "originalSha256": sha256, "changes": changes });
    let files = json!([
        file("ws/a.txt", "abc", &insert),
        file("ws/two.txt", &sha256("x\n"), &insert),
        file("ws/b.txt", &sha256("one\n"), &json!("insert")),
        file("ws/c.txt", &sha256("one\n"), &json!([{ "operation": "insert", "afterLine": 0 }])),
    ]);
    let answer = client.call("workspace_write_patch", &json!({ "files": files }));
    let errors = answer.structured["errors"].as_array().unwrap();
    let found: Vec<_> = errors.iter().map(|error| error["detail"].as_str().unwrap()).collect();
    assert_eq!(found, ["SHA_FORMAT", "CASE_COLLISION", "TYPE", "MISSING"], "{}", answer.structured);
    assert_eq!(client.read("a.txt"), "one\n");
    client.end();
}
