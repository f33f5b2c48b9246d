//! The official MCP client libraries of Python and TypeScript and the inspector's command line, as clients of `aptix mcp`. They
//! hold each answer to the output schema of its tool.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::processes::{Machine, binary, node_command, python_of, repository, with_input};

/// Calls that are made at one time.
const TOGETHER: usize = 16;

/// The tools that `aptix mcp` lists, in their order.
fn tools(machine: &Machine) -> Vec<String> {
    let listed = machine.aptix(&["tools", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A machine with a file to edit, and others that take long to search.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.put("a.txt", "one\ntwo\n");
    let long = "abcde fgh\n".repeat(100_000);
    (0..24).for_each(|number| machine.put(&format!("long/{number}.txt"), &long));
    machine
}

/// Reads, a write, a refusal, a prepared edit that is applied, a search and the history; a call that is given up, and calls at
/// one time. Answers what the client prints.
fn play(machine: &Machine, mut client: Command) -> Value {
    let calls = json!([
        { "tool": "read_file", "arguments": { "path": "a.txt" } },
        { "tool": "edit", "arguments": { "file_path": "a.txt", "old_string": "two", "new_string": "2" } },
        { "tool": "edit", "arguments": { "file_path": "a.txt", "old_string": "absent", "new_string": "x" } },
        { "tool": "workspace_create_file", "arguments": { "path": "../out.txt", "content": "x\n" } },
        { "tool": "workspace_create_file", "arguments": { "path": "new.txt", "content": "new\n" } },
        { "tool": "prepare_file_append", "arguments": { "path": "a.txt", "content": "three\n" } },
        { "tool": "apply_file_modification", "arguments": { "hunk_id": "$hunkId" } },
        { "tool": "ripgrep_content", "arguments": { "pattern": "^three" } },
        { "tool": "patch", "arguments": { "path": "a.txt" } },
        { "tool": "history", "arguments": {} },
    ]);
    let script = json!({
        "command": [binary("aptix"), "mcp", "--root", "project"],
        "cwd": machine.path(""),
        "env": {
            "HOME": machine.path(""),
            "XDG_STATE_HOME": machine.path("state"),
            "XDG_CONFIG_HOME": machine.path("config"),
        },
        "calls": calls,
        "cancelled": { "tool": "ripgrep_content", "arguments": { "pattern": "[a-e]{3,9}z" } },
        "cancelAfterSeconds": 0.02,
        "together": TOGETHER,
    });
    let output = with_input(&mut client, &script.to_string());
    assert!(output.status.success(), "{}", shown(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", shown(&output)))
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What every library has to have heard.
fn assert_conforms(machine: &Machine, heard: &Value) {
    let tools = tools(machine);
    assert_eq!((&heard["server"], &heard["tools"]), (&json!("aptix"), &json!(tools)), "{heard}");
    assert_eq!(heard["withOutputSchema"], tools.len(), "{heard}");
    let expected = [
        (0, false, "text", json!("one\ntwo\n")),
        (1, false, "success", json!(true)),
        (2, true, "errors", json!([{ "code": "TEXT_NOT_FOUND" }])),
        (3, true, "errorCode", json!("InvalidPath")),
        (4, false, "created", json!(true)),
        (5, false, "success", json!(true)),
        (6, false, "success", json!(true)),
        (7, false, "files", json!([{ "path": "a.txt" }])),
        (8, true, "success", json!(false)),
        (9, false, "batches", json!([{ "canBeUndone": true }, {}, {}])),
    ];
    for (number, is_refused, key, value) in expected {
        let call = &heard["calls"][number];
        assert_eq!(call["isError"], is_refused, "{number}: {call}");
        assert!(holds(&call["structured"][key], &value), "{number}: {key} is not {value} in {call}");
        assert!(!call["text"].as_str().unwrap().is_empty(), "{number}: {call}");
    }
    assert_eq!((&heard["cancelled"], &heard["together"]), (&json!(true), &json!(TOGETHER)), "{heard}");
    assert_ne!(heard["unknown"], "false", "{heard}");
    let texts: Vec<_> = machine.files().into_iter().filter(|(path, _)| !path.starts_with("long/")).collect();
    let expected = [("a.txt", "one\n2\nthree\n"), ("new.txt", "new\n")];
    assert_eq!(texts, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
}

/// Whether a value is the expected one, or has its parts.
fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => {
            expected.iter().all(|(key, expected)| value.get(key).is_some_and(|value| holds(value, expected)))
        }
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len() && value.iter().zip(expected).all(|(value, expected)| holds(value, expected))
        }
        _ => value == expected,
    }
}

/// Both ways in which its versions of the protocol begin: with `initialize`, and with `server/discover`.
#[test]
fn the_official_client_of_python_is_served() {
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let machine = machine();
        let mut client = python_of("mcp-venv");
        client.arg(repository("xtask/conformance/client.py")).arg(mode);
        let heard = play(&machine, client);
        assert_eq!(heard["version"], version, "{heard}");
        assert_conforms(&machine, &heard);
    }
}

#[test]
fn the_official_client_of_typescript_is_served() {
    let Some(client) = node_command("xtask/conformance/client.mjs") else { return };
    let machine = machine();
    let heard = play(&machine, client);
    assert_conforms(&machine, &heard);
}

/// The command line of the inspector, one process for each call.
#[test]
fn the_inspector_is_served() {
    let machine = Machine::new();
    machine.put("a.txt", "one\ntwo\n");
    let inspect = |arguments: &[&str]| {
        let mut inspector = node_command(INSPECTOR)?;
        inspector
            .arg("--cli")
            .arg(binary("aptix"))
            .args(["mcp", "--root"])
            .arg(machine.path("project"))
            .args(arguments);
        // It looks for its version above the directory in which it is started.
        inspector.current_dir(repository(INSPECTOR).parent().unwrap()).env("HOME", machine.path(""));
        inspector.env("XDG_STATE_HOME", machine.path("state")).env("XDG_CONFIG_HOME", machine.path("config"));
        let output = inspector.output().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
        Some(serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(&output))))
    };
    let call = |tool: &str, arguments: &[&str]| {
        let named = ["--method", "tools/call", "--tool-name", tool];
        let arguments = arguments.iter().flat_map(|argument| ["--tool-arg", argument]);
        inspect(&named.into_iter().chain(arguments).collect::<Vec<_>>())
    };
    let Some(listed) = inspect(&["--method", "tools/list"]) else { return };
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, tools(&machine));
    let read = call("read_file", &["path=a.txt"]).unwrap();
    assert_eq!(read["structuredContent"]["text"], "one\ntwo\n", "{read}");
    let edited = call("edit", &["file_path=a.txt", "old_string=two", "new_string=zwei"]).unwrap();
    assert_eq!(edited["structuredContent"]["success"], true, "{edited}");
    let refused = call("edit", &["file_path=a.txt", "old_string=absent", "new_string=three"]).unwrap();
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nzwei\n".to_owned())]);
}

const INSPECTOR: &str = "xtask/conformance/node_modules/@modelcontextprotocol/inspector-cli/build/cli.js";
