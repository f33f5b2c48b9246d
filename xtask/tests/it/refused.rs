//! What the server-talking commands refuse, and with which exit code.

use std::process::Output;

use crate::documents::create;
use crate::processes::{Machine, Server, json, served, write};

fn submit(machine: &Machine, server: &Server, document: &str) -> (serde_json::Value, Option<i32>) {
    write(&machine.path("bad.json"), document);
    machine.ask(server, "submit", &["bad.json"])
}

/// TUL-002-8.6.2, TUL-002-9.2, TUL-002-10.3, TUL-002-10.4: a bad batch is refused with all its faults and not stored.
#[test]
fn a_bad_batch_is_refused_by_the_server_with_everything_that_is_wrong() {
    let machine = Machine::new();
    let server = machine.server();
    let line = |range: &str| format!(r#"{{"operation":"delete",{range},"expectedOriginalLines":["x"]}}"#);
    let file = |path: &str, sha: &str, changes: &str| {
        format!(r#"{{"docPath":"{path}","originalSha256":"{sha}","changes":[{changes}]}}"#)
    };
    let sha = "0".repeat(64);
    let one = line(r#""startLine":1,"endLine":1"#);
    let cases = [
        (file("project/a", "12", &one), vec!["INVALID_REQUEST"]),
        (file("project/a", &sha, ""), vec!["INVALID_REQUEST"]),
        (file("project/../a", &sha, &one), vec!["INVALID_PATH"]),
        (file("/etc/passwd", &sha, &one), vec!["INVALID_PATH"]),
        (file("project/A", &sha, &one), vec!["INVALID_PATH"]),
        (file("project/a", &sha, &line(r#""startLine":0,"endLine":1"#)), vec!["LINE_RANGE"]),
        (file("project/a", &sha, &line(r#""startLine":2,"endLine":1"#)), vec!["LINE_RANGE"]),
        (file("project/a", &sha, &format!("{one},{one}")), vec!["LINE_OVERLAP"]),
        (
            file("project/a", "12", &line(r#""startLine":0,"endLine":1"#)) + "," + &file("a//b", &sha, &one),
            vec!["INVALID_REQUEST", "LINE_RANGE", "INVALID_PATH"],
        ),
    ];
    for (files, expected) in cases {
        let (refused, code) = submit(&machine, &server, &format!(r#"{{"files":[{files}]}}"#));
        assert_eq!((code, &refused["state"]), (Some(1), &"FAILED".into()), "{files}: {refused}");
        let codes: Vec<_> = refused["errors"].as_array().unwrap().iter().map(|error| &error["code"]).collect();
        for word in expected {
            assert!(codes.iter().any(|code| *code == word), "{files}: {word} in {refused}");
        }
        assert!(refused["batchId"].is_null(), "{refused}");
    }
    let (text, code) = submit(&machine, &server, r#"{"files": ["#);
    assert_eq!((code, &text["errors"][0]["detail"]), (Some(1), &"JSON".into()), "{text}");
    assert_eq!(submit(&machine, &server, &create("ok.txt", "")).1, Some(0), "the server is well");
    let (listed, _) = machine.ask(&server, "batches", &[]);
    assert_eq!(listed["batches"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn what_is_not_there_is_refused() {
    let machine = Machine::new();
    let server = machine.server();
    let id = "018f6d2e-7c1a-7b3e-9d55-0123456789ab";
    for (command, argument) in [("show", id), ("read", "project/a.txt"), ("batches", "")] {
        let arguments: Vec<_> = Some(argument).into_iter().filter(|argument| !argument.is_empty()).collect();
        let (refused, code) = machine.ask(&server, command, &arguments);
        assert_eq!((code, &refused["errors"][0]["code"]), (Some(1), &"NOT_FOUND".into()), "{command}: {refused}");
    }
    let cancel = machine.call(&server, "cancel", &[id]);
    assert_eq!(cancel.status.code(), Some(1));
}

#[test]
fn an_ended_batch_cannot_be_cancelled() {
    let (machine, server, _agent) = served("auto");
    let (done, _) = machine.submit(&server, &create("a.txt", ""));
    let cancel = machine.call(&server, "cancel", &[done["batchId"].as_str().unwrap()]);
    assert_eq!(cancel.status.code(), Some(1));
    assert!(said(&cancel).contains("INVALID_STATE"), "{}", said(&cancel));
}

#[test]
fn wrong_usage_and_a_lost_server_have_different_exit_codes() {
    let machine = Machine::new();
    write(&machine.path("a.json"), &create("a.txt", ""));
    let to = |arguments: &[&str]| machine.aptix(arguments).output().unwrap();
    let unreachable = "http://127.0.0.1:1";
    for wrong in [
        &["submit", "--server", "127.0.0.1:1", "--workspace", "demo", "a.json"][..],
        &["submit", "--server", "http://", "--workspace", "demo", "a.json"],
        &["submit", "--server", unreachable, "--workspace", "a b", "a.json"],
        &["submit", "--server", unreachable, "a.json"],
        &["submit", "--server", unreachable, "--workspace", "demo", "--perhaps", "a.json"],
        &["submit", "--server", unreachable, "--workspace", "demo", "--dialect", "runes", "a.json"],
        &["show", "--server", unreachable, "--workspace", "demo", "not-an-id"],
        &["cancel", "--server", unreachable, "--workspace", "demo", ""],
        &["read", "--server", unreachable, "--workspace", "demo", "../a"],
        &["agent", "--server", unreachable, "--workspace", "demo", "--approve", "perhaps"],
        &["agent", "--server", unreachable, "--workspace", "demo", "--root", "no/such/directory"],
    ] {
        let output = to(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", said(&output));
    }
    for lost in [&["submit", "--json", "a.json"][..], &["batches", "--json"], &["read", "--json", "p/a"]] {
        let output = to(&[&lost[..1], &["--server", unreachable, "--workspace", "demo"], &lost[1..]].concat());
        let (answer, code) = json(&output);
        assert_eq!((code, &answer["errors"][0]["code"]), (Some(3), &"UNAVAILABLE".into()), "{lost:?}: {answer}");
    }
}

fn said(output: &Output) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&output.stderr)
}
