//! A person is asked about what policy leaves to them, by the official MCP client libraries of Python and TypeScript and on the review
//! page.

use std::process::Command;
use std::thread::scope;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::processes::{Machine, binary, eventually, node_command, python_of, repository, with_input};

/// A file that tells an editor what to execute.
const TASKS: &str = ".vscode/tasks.json";

/// Makes the calls over a client; what it prints.
fn play(machine: &Machine, mut client: Command, options: &[&str], answers: &Value) -> Value {
    let edit = |old: &str, new: &str| json!({ "tool": "edit", "arguments": { "file_path": TASKS, "old_string": old, "new_string": new } });
    let command: Vec<_> = [binary("aptix").to_str().unwrap(), "mcp", "--root", "project"]
        .into_iter()
        .chain(options.iter().copied())
        .map(str::to_owned)
        .collect();
    let script = json!({
        "command": command,
        "cwd": machine.path(""),
        "env": {
            "HOME": machine.path(""),
            "XDG_STATE_HOME": machine.path("state"),
            "XDG_CONFIG_HOME": machine.path("config"),
        },
        "calls": [edit("one", "1"), edit("two", "2")],
        "answers": answers,
    });
    let output = with_input(&mut client, &script.to_string());
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.put(TASKS, "one\ntwo\n");
    machine
}

/// The code of the first error of a call.
fn code(heard: &Value, call: usize) -> &str {
    heard["calls"][call]["structured"]["errors"][0]["code"].as_str().unwrap_or_else(|| panic!("{heard}"))
}

/// The first question is answered with yes, the second with no and a reason.
fn asks(client: impl Fn() -> Option<Command>) {
    let machine = machine();
    let answers = json!([
        { "action": "accept", "content": { "approve": true } },
        { "action": "accept", "content": { "approve": false, "reason": "keep two" } },
    ]);
    let Some(begun) = client() else { return };
    let heard = play(&machine, begun, &[], &answers);
    assert_eq!(heard["calls"][0]["isError"], false, "{heard}");
    assert_eq!(code(&heard, 1), "REJECTED", "{heard}");
    assert!(heard["calls"][1].to_string().contains("keep two"), "{heard}");
    let questions = heard["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 2, "{heard}");
    for (question, line) in questions.iter().zip(["-one", "-two"]) {
        let message = question["message"].as_str().unwrap();
        for part in [TASKS, line, "digest sha256:"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(question["schema"]["required"], json!(["approve"]), "{question}");
    }
    let written = (TASKS.to_owned(), "1\ntwo\n".to_owned());
    assert_eq!(machine.files(), std::slice::from_ref(&written));

    let heard = play(&machine, client().unwrap(), &[], &Value::Null);
    assert_eq!((code(&heard, 1), &heard["questions"]), ("APPROVAL_REQUIRED", &json!([])), "{heard}");
    assert!(heard["calls"][1].to_string().contains("aptix mcp --review"), "{heard}");
    assert_eq!(machine.files(), [written]);
}

fn python(mode: &str) -> Command {
    let mut client = python_of("mcp-venv");
    client.arg(repository("xtask/conformance/asked.py")).arg(mode);
    client
}

/// In both versions of the protocol: while a call waits, and between two calls.
#[test]
fn the_official_client_of_python_asks_its_user() {
    for mode in ["legacy", "auto"] {
        asks(|| Some(python(mode)));
    }
}

#[test]
fn the_official_client_of_typescript_asks_its_user() {
    asks(|| node_command("xtask/conformance/asked.mjs"));
}

/// `aptix review` shows the link of the page that the MCP server has, whose own output nobody sees.
#[test]
fn a_person_approves_an_edit_of_an_mcp_client_in_the_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let machine = machine();
    scope(|scope| {
        let heard = scope.spawn(|| play(&machine, python("auto"), &["--review", "127.0.0.1:0"], &Value::Null));
        let mut link = String::new();
        eventually("the page runs", || {
            let shown = review(&machine);
            link = shown.trim_end().to_owned();
            !link.is_empty()
        });
        let link = link.strip_prefix("review in a browser: ").unwrap();
        let tab = browser.open(link);
        browser.click(&tab, "#waiting button");
        browser.until_shown(&tab, "+ 1");
        assert_ne!(review(&machine), "", "another browser could be used");
        browser.press(&tab, "a");
        browser.until_shown(&tab, "approved in the browser: written");
        browser.until_shown(&tab, "1 file, +1 -1");
        browser.click(&tab, "#waiting button");
        browser.until_shown(&tab, "+ 2");
        browser.press(&tab, "r");
        browser.write(&tab, "keep two");
        browser.click(&tab, "#refusing button[value=refuse]");
        let heard = heard.join().unwrap();
        assert_eq!((&heard["calls"][0]["isError"], code(&heard, 1)), (&json!(false), "REJECTED"), "{heard}");
        assert!(heard["calls"][1].to_string().contains("keep two"), "{heard}");
    });
    assert_eq!(machine.files(), [(TASKS.to_owned(), "1\ntwo\n".to_owned())]);
    // The second batch was refused.
    let (log, _) = crate::processes::json(&machine.aptix(&["log", "--json", "--root", "project"]).output().unwrap());
    assert_eq!(log["batches"].as_array().map(Vec::len), Some(1), "{log}");
}

/// What `aptix review` prints where a page runs; nothing where it would serve one itself.
fn review(machine: &Machine) -> String {
    let state = std::fs::read_dir(machine.path("state/aptix/roots")).into_iter().flatten().filter_map(Result::ok);
    let runs = |entry: &std::fs::DirEntry| {
        std::fs::metadata(entry.path().join("review-0.lock")).is_ok_and(|lock| lock.len() > 0)
    };
    if !state.into_iter().any(|entry| runs(&entry)) {
        return String::new();
    }
    let shown = machine.aptix(&["review", "--root", "project"]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    String::from_utf8(shown.stdout).unwrap()
}
