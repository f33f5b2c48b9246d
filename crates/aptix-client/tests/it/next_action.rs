//! A refusal that can be corrected has the corrected document, which then applies.

use std::fs;

use serde_json::Value;

use crate::command_line::{aptix, text};

const STALE: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn the_corrected_document_of_a_refusal_applies() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("ws")).unwrap();
    let file = place.path().join("ws/a.txt");
    fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let change = r#"{"operation": "replace", "startLine": 1, "endLine": 1, "expectedOriginalLines": ["two"], "newLines": ["2"]}"#;
    let document = |change: &str| {
        format!(r#"{{"files": [{{"docPath": "ws/a.txt", "originalSha256": "{STALE}", "changes": [{change}]}}]}}"#)
    };
    let output = aptix(place.path(), &["apply", "--json"], document(change));
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let action = &answer["errors"][0]["nextAction"];
    assert_eq!(action["tool"], "aptix apply --dialect line-patch", "{answer}");
    assert_eq!(action["arguments"]["files"][0]["changes"][0]["startLine"], 2);
    let again = aptix(place.path(), &["apply", "--dialect", "line-patch"], action["arguments"].to_string());
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2\nthree\n");

    let output = aptix(place.path(), &["apply"], document(&change.replace("\"two\"", "\"three\"")));
    assert!(text(&output.stderr).contains("with --json comes the document corrected"), "{}", text(&output.stderr));
    let output = aptix(place.path(), &["apply", "--json"], document(&change.replace("\"two\"", "\"four\"")));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["errors"][0]["nextAction"], Value::Null);
}

#[test]
fn old_text_is_given_as_the_file_has_it() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("ws")).unwrap();
    let file = place.path().join("ws/a.txt");
    let cases = [
        (
            "search-patch",
            "/patches/0/oldText",
            r#"{"path": "a.txt", "patches": [{"operation": "replace", "oldText": "  x = 1\n", "newText": "  x = 2\n"}]}"#,
        ),
        (
            "str-replace",
            "/old_str",
            r#"{"command": "str_replace", "path": "a.txt", "old_str": "  x = 1\n", "new_str": "  x = 2\n"}"#,
        ),
    ];
    for (dialect, old_text, document) in cases {
        fs::write(&file, "f {\n\tx =  1\n}\n").unwrap();
        let output = aptix(place.path(), &["apply", "--json"], document);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let action = &answer["errors"][0]["nextAction"];
        assert_eq!(action["tool"], format!("aptix apply --dialect {dialect}"), "{answer}");
        assert_eq!(action["arguments"].pointer(old_text).unwrap(), "\tx =  1\n", "{answer}");
        let again = aptix(place.path(), &["apply", "--dialect", dialect], action["arguments"].to_string());
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
        assert_eq!(fs::read_to_string(&file).unwrap(), "f {\n\tx = 2\n}\n");
    }
}
