//! `aptix doctor` about a real server: what it says as the server, its tokens and its agent come and go.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::processes::{Machine, Server, binary, wait_until_served, with_input};

/// What a check found, as `state: message`, with the exit code.
fn check(machine: &Machine, url: &str, check: &str) -> (String, Option<i32>) {
    let arguments = ["doctor", "--json", "--root", "project", "--server", url, "--workspace", "demo"];
    let output = machine.aptix(&arguments).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = answer["checks"].as_array().unwrap().iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {answer}"));
    let word = |key: &str| found[key].as_str().unwrap().to_owned();
    (format!("{}: {}", word("state"), word("message")), output.status.code())
}

#[track_caller]
fn assert_found(machine: &Machine, server: &Server, name: &str, expected: &str, code: i32) {
    let (found, exit) = check(machine, &server.url(), name);
    assert!(found.starts_with(expected), "{found}");
    assert_eq!(exit, Some(code), "{found}");
}

#[test]
fn a_server_is_checked_up_to_the_agent_that_serves_the_workspace() {
    let machine = Machine::new();
    let server = machine.server();
    assert_found(&machine, &server, "server", "ok: answers without a token, on this machine", 0);
    assert_found(&machine, &server, "workspace", "warning: does not exist yet", 0);
    let agent = machine.agent(&server);
    wait_until_served(&server);
    assert_found(&machine, &server, "workspace", "ok: an agent serves it", 0);
    drop(agent);

    let made = Command::new(binary("aptix-server"))
        .args(["token", "create", "--workspace", "demo", "--role", "orchestrator", "--name", "author", "--data-dir"])
        .arg(machine.path("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_found(&machine, &server, "server", "problem: ", 1);
    let url = server.url();
    let token = String::from_utf8(made.stdout).unwrap();
    assert!(with_input(&mut machine.aptix(&["login", "--server", &url]), &token).status.success());
    assert_found(&machine, &server, "token", "ok: can be read", 0);
    assert_found(&machine, &server, "server", "ok: answers and accepts the token", 0);
    assert_found(&machine, &server, "workspace", "warning: no agent serves it", 0);
    drop(server);
    let (found, code) = check(&machine, &url, "server");
    assert_eq!((found.split(": ").take(2).collect::<Vec<_>>(), code), (vec!["problem", "out of reach"], Some(1)));
}
