//! Clocks that are set back and forward: order is the revision, whatever the time of day is.

use std::path::PathBuf;
use std::process::Command;

use aptix_model::wire::v1;
use serde_json::{Value, json};

use crate::local_batches::{Batches, label, labelled};
use crate::processes::{Machine, Running, eventually, json, wait_until_served, write};
use crate::tool_calls::mcp::Model;

/// A wall clock that a test sets. Programs started with it read it at every look; their monotonic clocks run on.
pub(crate) struct Clock {
    preload: PathBuf,
    file: PathBuf,
}

impl Clock {
    pub(crate) fn of(machine: &Machine) -> Self {
        let found = std::fs::read_dir("/usr/lib").unwrap().chain(std::fs::read_dir("/usr/local/lib").unwrap());
        let mut found = found.map(|entry| entry.unwrap().path().join("faketime/libfaketimeMT.so.1"));
        let preload = found.find(|path| path.exists());
        let preload = preload.expect("libfaketime is missing: install Debian's package faketime, as `.ci/run` does");
        let clock = Self { preload, file: machine.path("clock") };
        clock.set("+0");
        clock
    }

    /// Sets the clock, by seconds from the true time.
    pub(crate) fn set(&self, offset: &str) {
        write(&self.file, offset);
    }

    /// Lets a program see this clock.
    pub(crate) fn show(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.preload).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// What a command on the project prints as JSON, and its exit code.
    fn run(&self, machine: &Machine, arguments: &[&str]) -> (Value, Option<i32>) {
        let mut command = machine.aptix(&[arguments, &["--root", "project", "--json"]].concat());
        self.show(&mut command);
        json(&command.output().unwrap())
    }
}

/// How a clock is set between one batch and the next: back step by step, and forward by ten years and back.
const STEPS: [[&str; 6]; 3] = [
    ["+0", "-0.5", "-1", "-1.5", "-2", "-2.5"],
    ["+0", "-3600", "-7200", "-10800", "-86400", "-90000"],
    ["+0", "+315360000", "+3600", "+1", "-3600", "+0"],
];

fn overwrite(path: &str, content: &str) -> String {
    json!({"path": path, "content": content, "overwrite": true}).to_string()
}

/// WS-MOD-3.2.1: batches of one file that wait for an agent are applied in the order in which the server took them.
#[test]
fn the_later_revision_wins_whatever_the_server_s_clock_said() {
    for steps in STEPS {
        let machine = Machine::new();
        let clock = Clock::of(&machine);
        let server = machine.server_that(|command| clock.show(command));
        let mut stored = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            clock.set(step);
            write(&machine.path("a.json"), &overwrite("a.txt", &format!("{number}\n")));
            let (batch, code) = machine.ask(&server, "submit", &["a.json"]);
            assert_eq!(code, Some(0), "{batch}");
            stored.push(batch["batchId"].as_str().unwrap().to_owned());
        }
        let (listed, _) = machine.ask(&server, "batches", &[]);
        let listed = listed["batches"].as_array().unwrap().iter().map(|batch| batch["batchId"].as_str().unwrap());
        assert_eq!(listed.rev().collect::<Vec<_>>(), stored, "the list is in order of revision, newest first");
        let _agent = machine.agent(&server);
        let ended = |id: &String| machine.ask(&server, "show", &[id]).0["state"] == "APPLIED";
        eventually("every batch is applied", || stored.iter().all(ended));
        assert_eq!(machine.files(), [("a.txt".to_owned(), "5\n".to_owned())], "{steps:?}");
    }
}

/// What was applied last is undone first, and listed first, whatever the clock of this machine said.
#[test]
fn the_last_batch_is_undone_first_whatever_the_clock_said() {
    for steps in STEPS {
        let machine = Machine::new();
        let clock = Clock::of(&machine);
        let run = |arguments: &[&str]| clock.run(&machine, arguments);
        for (number, step) in steps.iter().enumerate() {
            clock.set(step);
            write(&machine.path("a.json"), &overwrite("a.txt", &format!("{number}\n")));
            let (done, code) = run(&["apply", "a.json"]);
            assert_eq!(code, Some(0), "{done}");
        }
        let (undone, code) = run(&["undo"]);
        assert_eq!(code, Some(0), "{undone}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "4\n".to_owned())], "{steps:?}");
    }
}

/// What is applied locally is reported in its order, each batch once, whatever the clock of this machine said and whichever
/// root it was applied in.
#[test]
fn local_batches_are_reported_in_their_order_whatever_the_clock_said() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    let server = machine.server();
    let roots = ["left", "right"].map(|root| format!("{root}=project/{root}"));
    let mut contents = [String::new(), String::new()];
    for root in ["left", "right"] {
        machine.put(&format!("{root}/a.txt"), "");
    }
    let url = server.url();
    let serve = ["agent", "--server", &url, "--workspace", "demo", "--root", &roots[0], "--root", &roots[1]];
    let mut agent = machine.aptix(&[&serve[..], &["--approve", "auto"]].concat());
    clock.show(&mut agent);
    let _agent = Running(agent.spawn().unwrap());
    wait_until_served(&server);
    let (mut batches, mut expected) = (Batches::of(&server), Vec::new());
    for (number, step) in STEPS.concat().iter().enumerate() {
        clock.set(step);
        let (name, at) = (number.to_string(), number % 2);
        let path = ["left/a.txt", "right/a.txt"][at];
        write(&machine.path("a.json"), &labelled(path, &contents[at], &name));
        let mut apply = machine.aptix(&["apply", "a.json", "--root", &roots[at], "--json"]);
        clock.show(&mut apply);
        let (done, code) = json(&apply.output().unwrap());
        assert_eq!(code, Some(0), "{done}");
        contents[at] = format!("{name}\n{}", contents[at]);
        expected.push(name);
        if number % 3 == 2 {
            batches.local(expected.len());
        }
    }
    let of_root = |local: &[v1::Batch], at: usize| -> Vec<String> {
        let names = local.iter().map(|batch| label(batch).to_owned());
        names.filter(|name| name.parse::<usize>().unwrap() % 2 == at).collect()
    };
    let local = batches.local(expected.len());
    for at in [0, 1] {
        let expected: Vec<_> = expected.iter().skip(at).step_by(2).cloned().collect();
        assert_eq!(of_root(&local, at), expected, "each root's batches are in its order");
    }
}

/// A clock that is set forward by ten years and back costs no history, and nothing that was cut.
#[test]
fn everything_can_be_undone_though_the_clock_was_ten_years_ahead() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    let run = |arguments: &[&str]| clock.run(&machine, arguments);
    let apply = |document: &str| {
        write(&machine.path("a.json"), document);
        run(&["apply", "a.json", "--session", "s"])
    };
    machine.put("a.txt", "one\ntwo\n");
    let steps = [
        r#"{"path":"a.txt","patches":[{"operation":"replace","oldText":"two\n","newText":"","toClipboard":"c"}]}"#,
        r#"{"path":"a.txt","patches":[{"operation":"prepend_bof","fromClipboard":"c"}]}"#,
        r#"{"path":"a.txt","patches":[{"operation":"append_eof","fromClipboard":"c"}]}"#,
    ];
    for (document, offset) in steps.iter().zip(["+0", "+315360000", "+0"]) {
        clock.set(offset);
        let (done, code) = apply(document);
        assert_eq!(code, Some(0), "{offset}: {done}");
    }
    for left in ["two\none\n", "one\n", "one\ntwo\n"] {
        let (undone, code) = run(&["undo"]);
        assert_eq!(code, Some(0), "{undone}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), left.to_owned())]);
    }
}

/// A prepared edit lives for an hour, which no clock that is set can shorten.
#[test]
fn a_prepared_edit_does_not_expire_because_the_clock_was_set() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    machine.put("a.txt", "one\n");
    let mut model = Model::start_in(&machine, |command| clock.show(command));
    for (number, step) in ["+7200", "+315360000", "-7200"].into_iter().enumerate() {
        clock.set("+0");
        let content = format!("{number}\n");
        let planned = model.call("prepare_file_append", &json!({"path": "a.txt", "content": content}));
        clock.set(step);
        let applied = model.call("apply_file_modification", &json!({"hunk_id": planned["hunkId"]}));
        assert_eq!(applied["success"], true, "{step}: {applied}");
    }
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n0\n1\n2\n".to_owned())]);
}

/// A time of day that is ten years ahead for a moment expires neither a prepared batch nor one that waits for approval, also if the
/// server is started again once it is right: no record has it.
#[test]
fn a_clock_that_is_ahead_for_a_moment_expires_no_batch() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    machine.put("a.txt", "one\n");
    write(&machine.path("server.toml"), "[workspaces.demo]\napproval = \"deletions\"\n");
    let start = || {
        machine.server_that(|command| {
            command.arg("--config").arg(machine.path("server.toml"));
            clock.show(command);
        })
    };
    let server = start();
    let agent = machine.agent(&server);
    let submit = |name: &str, document: &str, more: &[&str]| {
        write(&machine.path(name), document);
        let (batch, _) = machine.ask(&server, "submit", &[more, &[name]].concat());
        (batch["state"].clone(), batch["batchId"].as_str().unwrap().to_owned())
    };
    let prepare = ["--prepare", "--owner", "ann"];
    let delete = json!({"files": [{"path": "a.txt", "operation": "delete"}]}).to_string();
    let plans = ["b.txt", "c.txt"].map(|path| submit("a.json", &overwrite(path, "two\n"), &prepare));
    let waits = submit("b.json", &delete, &[]);
    assert_eq!((&plans[0].0, &waits.0), (&json!("PREPARED"), &json!("PENDING_APPROVAL")));
    clock.set("+315360000");
    let applied = machine.call(&server, "apply-prepared", &["--owner", "ann", &plans[0].1]);
    assert!(applied.status.success(), "{applied:?}");
    drop((agent, server));
    clock.set("+0");
    let server = start();
    let _agent = machine.agent(&server);
    let applied = machine.call(&server, "apply-prepared", &["--owner", "ann", &plans[1].1]);
    assert!(applied.status.success(), "{applied:?}");
    let approved = machine.call(&server, "approve", &["--reviewer", "Rita", &waits.1]);
    assert!(approved.status.success(), "{approved:?}");
}

/// A prepared batch whose time was over stays so when the server is started again with a clock that is set back.
#[test]
fn a_start_with_an_earlier_clock_revives_no_prepared_batch() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    machine.put("a.txt", "one\n");
    let server = machine.server_that(|command| clock.show(command));
    let agent = machine.agent(&server);
    write(&machine.path("a.json"), &overwrite("a.txt", "two\n"));
    let (prepared, code) = machine.ask(&server, "submit", &["--prepare", "--owner", "ann", "a.json"]);
    assert_eq!((code, &prepared["state"]), (Some(0), &json!("PREPARED")), "{prepared}");
    drop(agent);
    // Steps of less than an hour are followed at once.
    for step in ["+3500", "+7000"] {
        clock.set(step);
        write(&machine.path("b.json"), &overwrite("b.txt", step));
        assert_eq!(machine.ask(&server, "submit", &["b.json"]).1, Some(0));
    }
    // Mostly before the sweep: then only the other batch records the later time.
    drop(server);
    clock.set("+0");
    let server = machine.server_that(|command| clock.show(command));
    let id = prepared["batchId"].as_str().unwrap();
    let applied = machine.call(&server, "apply-prepared", &["--owner", "ann", id]);
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(!applied.status.success() && said.contains("HUNK_EXPIRED"), "{applied:?}");
    assert_eq!(machine.ask(&server, "show", &[id]).0["state"], "EXPIRED");
}
