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

/// A refusal of a wrong shape names the part by its position and by its author's keys, over MCP and on the command line alike,
/// also where the edit is a block of a whole answer.
#[test]
fn a_wrong_shape_is_named_by_the_keys_of_its_author() {
    let change = |key: &str, lines: &serde_json::Value| json!({ "changeKey": key, "operation": "insert", "afterLine": 0, "newLines": lines });
    let file = |key: &str, path: &str, changes: &serde_json::Value| json!({ "fileKey": key, "docPath": path, "originalSha256": sha256("one\n"), "changes": changes });
    let right = json!([change("fine", &json!(["x"]))]);
    let document = json!({ "batchKey": "b", "files": [
        file("first", "ws/a.txt", &right),
        file("second", "ws/b.txt", &json!([change("c1", &json!(["x"])), change("c2", &json!(7))])),
        file("third", "ws/c.txt", &json!([{ "changeKey": "c3", "operation": "insert", "afterLine": 0 }])),
        file("fourth", "../d.txt", &right),
    ] });
    let named = |errors: &serde_json::Value| -> Vec<String> {
        let error = |error: &serde_json::Value| {
            ["fileIndex", "fileKey", "changeIndex", "changeKey"].map(|key| error[key].to_string()).join(" ")
        };
        errors.as_array().unwrap().iter().map(error).collect()
    };
    let expected = [r#"1 "second" 1 "c2""#, r#"2 "third" 0 "c3""#, r#"3 "fourth" null null"#];
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\n").unwrap());
    let answer = client.call("workspace_write_patch", &document).structured;
    assert_eq!(named(&answer["errors"]), expected, "{answer}");
    client.end();

    let place = tempfile::tempdir().unwrap();
    let whole = format!("Here it is:\n\n```json\n{document}\n```\n");
    for text in [document.to_string(), whole] {
        let output = crate::command_line::aptix(place.path(), &["apply", "--json"], &text);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(named(&answer["errors"]), expected, "{answer}");
        assert_eq!(answer["batchKey"], "b", "{answer}");
    }
}
