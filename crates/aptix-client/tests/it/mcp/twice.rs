//! A model or service that sends a call again, because it did not see the answer: the edit is made once.

use serde_json::{Value, json};

use super::client::Client;

/// Rule 3.7 at the tools: the refusal names the lines that are there and what else can be done, and no command line.
#[test]
fn a_call_that_is_sent_again_is_refused_by_name() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap());
    let patch = |patches: Value| json!({ "path": "a.txt", "patches": patches });
    for (change, after) in [
        (json!({ "operation": "replace", "oldText": "one\n", "newText": "one\n1.5\n" }), "one\n1.5\ntwo\n"),
        (json!({ "operation": "append_eof", "newText": "end\n" }), "one\n1.5\ntwo\nend\n"),
        (json!({ "operation": "prepend_bof", "newText": "top\n" }), "top\none\n1.5\ntwo\nend\n"),
    ] {
        let call = patch(json!([change]));
        client.done("patch", &call);
        assert_eq!(client.read("a.txt"), after);
        assert_eq!(client.refused("patch", &call), "ALREADY_APPLIED");
        let error = client.call("patch", &call).structured["errors"][0].clone();
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("leave this change out") && !hint.contains("--"), "{hint}");
        assert!(error["nearest"].as_array().is_some_and(|lines| !lines.is_empty()), "{error}");
        assert_eq!(client.read("a.txt"), after, "nothing is written");
    }
    let before = client.read("a.txt");
    for (tool, arguments) in [
        ("prepare_file_append", json!({ "path": "a.txt", "content": "end\n" })),
        ("prepare_file_insert_after", json!({ "path": "a.txt", "anchor": "top", "content": "one\n" })),
        ("prepare_file_insert_before", json!({ "path": "a.txt", "anchor": "two", "content": "1.5\n" })),
    ] {
        assert_eq!(client.refused(tool, &arguments), "ALREADY_APPLIED", "{tool}");
    }
    assert_eq!(client.read("a.txt"), before);
}
