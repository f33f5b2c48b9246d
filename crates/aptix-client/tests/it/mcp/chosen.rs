//! The tools that a caller chooses, and the shapes in which `aptix tools` prints them.

use serde_json::{Value, json};

use super::client::Client;
use crate::command_line::{aptix, text};

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Tools that were not chosen are neither listed nor called.
#[test]
fn a_client_is_served_the_tools_that_were_chosen() {
    let mut client = Client::with_tools("read_file,patch", |ws| std::fs::write(ws.join("a"), "x\n").unwrap());
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(names(&listed), ["patch", "read_file"]);
    client.done("read_file", &json!({ "path": "a" }));
    let refused = client.call("workspace_create_file", &json!({ "path": "b", "content": "" }));
    assert!(refused.is_error && refused.structured["errors"][0]["detail"] == "UNKNOWN_OPERATION");
    assert_eq!(refused.structured["errors"][0]["hint"], "the tools are patch, read_file");
    assert!(!client.ws().join("b").exists());
    client.end();

    let mut client = Client::with_tools("core", |_| {});
    let listed = client.ask("tools/list", &json!({}))["result"].to_string();
    assert!(listed.len() <= 16 << 10, "{}", listed.len());
    client.end();
}

/// The guide for authors, all of it and for one dialect.
#[test]
fn the_guide_is_printed_for_a_system_prompt() {
    let place = tempfile::tempdir().unwrap();
    let guide = |options: &[&str]| text(&aptix(place.path(), &[&["prompt"], options].concat(), "").stdout);
    let whole = guide(&[]);
    assert!(whole.starts_with("# How to write edits\n") && whole == guide(&["--dialect", "auto"]), "{whole}");
    let one = guide(&["--dialect", "git-patch"]);
    assert!(one.contains("+++ b/src/main.rs") && !one.contains("originalSha256"), "{one}");
    assert_eq!(aptix(place.path(), &["prompt", "--dialect", "cobol"], "").status.code(), Some(2));
}

#[test]
fn the_catalogue_is_printed_in_the_shape_of_a_provider() {
    let place = tempfile::tempdir().unwrap();
    let printed = |options: &[&str]| {
        let printed = aptix(place.path(), &[&["tools", "--json"], options].concat(), "");
        serde_json::from_slice::<Value>(&printed.stdout).unwrap()["tools"].clone()
    };
    let one = ["--tools", "read_file"];
    assert_eq!(names(&printed(&one)), ["read_file"]);
    let openai = printed(&[&one[..], &["--shape", "openai", "--strict"]].concat());
    let parameters = &openai[0]["function"]["parameters"];
    assert_eq!((&openai[0]["type"], &openai[0]["function"]["strict"]), (&"function".into(), &true.into()));
    assert_eq!(parameters["required"].as_array().unwrap().len(), parameters["properties"].as_object().unwrap().len());
    assert_eq!(parameters["properties"]["range"]["type"], json!(["string", "null"]));
    let gemini = printed(&[&one[..], &["--shape", "gemini", "--strict"]].concat());
    let range = &gemini[0]["parameters"]["properties"]["range"];
    assert_eq!((&range["type"], &range["nullable"]), (&"string".into(), &true.into()));
    assert!(printed(&[&one[..], &["--shape", "anthropic"]].concat())[0]["input_schema"].is_object());

    for (options, expected) in [
        (&["--tools", "core,read_fil"][..], "did you mean read_file?"),
        (&["--json", "--shape", "cobol"], "expected mcp, openai, anthropic or gemini"),
        (&["--shape", "mcp"], "--json"),
    ] {
        let refused = aptix(place.path(), &[&["tools"], options].concat(), "");
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
}
