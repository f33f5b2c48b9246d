//! The configurations that the pages about MCP clients show: each is parsed, its command is started as a client does, and it approves no
//! tool that writes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::processes::{Machine, binary, repository, with_input};

/// What a configuration has for the project, or its client replaces by it.
const PROJECT: [&str; 2] = ["/path/to/project", "${workspaceFolder}"];

/// The pages, each with its name.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(repository("docs/mcp")).unwrap().map(|entry| entry.unwrap().path());
    let page =
        |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap());
    files.map(page).collect()
}

/// The JSON and TOML of a page, parsed.
fn snippets(name: &str, page: &str) -> Vec<Value> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    let parsed = blocks.filter_map(|block| {
        let (language, text) = block.split_once('\n').unwrap();
        match language {
            "json" => Some(serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))),
            "toml" => Some(toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))),
            "yaml" | "console" => None,
            _ => panic!("{name}: a block of {language:?}, which no test reads"),
        }
    });
    parsed.collect()
}

/// Every program that a configuration starts, with its arguments.
fn commands(value: &Value) -> Vec<(String, Vec<String>)> {
    let Value::Object(keys) = value else { return Vec::new() };
    let own = keys.get("command").map(|command| {
        let arguments = keys["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
        (command.as_str().unwrap().to_owned(), arguments.collect())
    });
    own.into_iter().chain(keys.values().flat_map(commands)).collect()
}

/// The tools that the command serves: what it answers to `initialize` and `tools/list`.
fn listed(machine: &Machine, program: &str, arguments: &[String]) -> Value {
    assert_eq!(program, "aptix");
    let project = machine.path("project");
    let project = project.to_str().unwrap();
    assert!(arguments.iter().any(|word| PROJECT.contains(&word.as_str())), "no project in {arguments:?}");
    let replaced = |word: &String| if PROJECT.contains(&word.as_str()) { project.to_owned() } else { word.clone() };
    let arguments: Vec<_> = arguments.iter().map(replaced).collect();
    let mut command: Command = machine.aptix(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    // A client starts it in a directory of its own.
    command.current_dir(binary("aptix").parent().unwrap());
    let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a page", "version": "1" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let output = with_input(&mut command, &lines);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{stdout}"));
    assert_eq!(answer(1)["result"]["serverInfo"]["name"], "aptix", "{stdout}");
    answer(2)["result"]["tools"].clone()
}

#[test]
fn every_configuration_of_a_client_starts_the_server_and_approves_only_reads() {
    let machine = Machine::new();
    let pages = pages();
    let clients = pages.iter().filter(|(name, _)| name != "README.md").count();
    assert_eq!(clients, 6, "each client has its page");
    let index = &pages.iter().find(|(name, _)| name == "README.md").expect("an index").1;
    for (name, page) in &pages {
        let snippets = snippets(name, page);
        let commands: Vec<_> = snippets.iter().flat_map(commands).collect();
        if name == "README.md" {
            assert!(commands.is_empty() && snippets.len() == 1, "{snippets:?}");
            continue;
        }
        assert!(index.contains(&format!("]({name})")), "{name} is in the index");
        let [(program, arguments)] = &commands[..] else { panic!("{name}: {commands:?}") };
        let tools = listed(&machine, program, arguments);
        let tools = tools.as_array().unwrap();
        assert!(tools.len() >= 10, "{tools:?}");
        let text = snippets.iter().map(Value::to_string).collect::<String>();
        for tool in tools {
            let tool_name = tool["name"].as_str().unwrap();
            let reads = tool["annotations"]["readOnlyHint"] == true;
            let row = index.lines().find(|line| line.contains(&format!("`{tool_name}`")));
            let is_always = row.is_some_and(|row| row.contains("| always |"));
            assert_eq!(is_always, reads, "the index about {tool_name}");
            // Names in a configuration: `mcp__aptix__NAME`, `aptix:NAME`, `NAME` as a key.
            let named = ["__", ":", "\""].iter().any(|before| text.contains(&format!("{before}{tool_name}\"")));
            assert!(!named || reads, "{name} approves {tool_name}");
            assert!(!reads || page.contains(tool_name), "{name} says nothing of {tool_name}");
        }
    }
}
