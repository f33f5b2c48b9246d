//! `aptix show` prints who did what to a batch, when and why.

use std::process::Command;

use serde_json::{Value, json};

use crate::documents::create;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, Server, eventually, write};

#[test]
fn a_batch_is_shown_with_who_withdrew_it_and_why() {
    let machine = Machine::new();
    let server = machine.server();
    write(&machine.path("a.json"), &create("a.txt", "a\n"));
    let (sent, _) = machine.ask(&server, "submit", &["a.json"]);
    let id = sent["batchId"].as_str().unwrap();
    let cancelled = machine.call(&server, "cancel", &["--reason", "out of\ndate", "--author", "ann", id]);
    assert!(cancelled.status.success(), "{cancelled:?}");
    // A restart of the server loses no step.
    let address = server.address.clone();
    drop(server);
    let server = machine.server_at(&address);
    let (shown, _) = machine.ask(&server, "show", &[id]);
    let step = |at: usize, key: &str| shown["steps"][at][key].clone();
    assert_eq!((step(0, "event"), step(0, "actor")), (json!("SUBMITTED"), json!("AUTHOR")), "{shown}");
    assert_eq!((step(1, "event"), step(1, "state")), (json!("CANCELLED"), json!("CANCELLED")), "{shown}");
    assert_eq!((step(1, "actorName"), step(1, "reason")), (json!("ann"), json!("out of\ndate")), "{shown}");
    assert!(
        step(0, "unixMs").as_u64() <= step(1, "unixMs").as_u64() && step(0, "unixMs").as_u64() > Some(0),
        "{shown}"
    );
    let text = String::from_utf8(machine.call(&server, "show", &[&id[..24]]).stdout).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.contains(" UTC  ")).collect();
    assert!(lines.len() == 2 && lines[0].ends_with("UTC  submitted by author"), "{text}");
    assert!(lines[1].contains("UTC  cancelled by author \"ann\": \"out of"), "{text}");
}

/// The person who agreed to a batch at the agent's prompt, or refused it, is named at the server and in the history of the
/// workstation.
#[test]
fn the_record_names_the_person_who_decided() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        for (answer, code, state) in [("n", 1, "REJECTED"), ("y", 0, "APPLIED")] {
            let asked = scope.spawn(|| machine.submit(&server, &create("a.txt", "a\n")));
            terminal.until(WHOLE);
            if answer == "n" {
                terminal.refuse("");
            } else {
                terminal.answer(answer);
            }
            let (done, found) = asked.join().unwrap();
            assert_eq!((found, &done["state"]), (Some(code), &state.into()), "{done}");
            let (shown, _) = machine.ask(&server, "show", &[done["batchId"].as_str().unwrap()]);
            let step = |at: usize| ["event", "state", "actor", "actorName"].map(|key| shown["steps"][at][key].clone());
            assert_eq!(step(0), ["SUBMITTED".into(), "APPROVED".into(), "AUTHOR".into(), Value::Null], "{shown}");
            assert_eq!(step(1), ["REPORTED", state, "PERSON", "ann"].map(Value::from), "{shown}");
            let log = machine.aptix(&["log", "--json", "--root", "project"]).output().unwrap();
            let log: Value = serde_json::from_slice(&log.stdout).unwrap();
            let applied = log["batches"].as_array().unwrap();
            assert_eq!(applied.len(), 1 - code as usize, "{log}");
            for batch in applied {
                let who = [0, 1].map(|at| batch["steps"][at]["actorName"].clone());
                assert_eq!(who, [Value::Null, "ann".into()], "{log}");
            }
        }
    });
}

/// The history of the workstation names who approved a batch at the server and why, beside who applied it; what is undone on the
/// workstation is named at the server.
#[test]
fn the_history_names_who_approved_a_batch_at_the_server() {
    let machine = Machine::new();
    let server = reviewed(&machine);
    let _agent = machine.agent(&server);
    let id = &approve(&machine, &server);
    eventually("the batch is applied", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    let batch = newest(&machine);
    assert_eq!(batch["batchId"], id.as_str());
    let expected = approved_by_rita(&batch);
    assert_eq!(words(&batch["steps"]), expected, "{batch}");
    assert_eq!(words(&machine.ask(&server, "show", &[id]).0["steps"]), expected);
    let log = machine.aptix(&["log", "--root", "project"]).output().unwrap().stdout;
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("UTC  approved by person \"Rita\": \"fine\"\n"), "{log}");

    let undone = machine.aptix(&["undo", "--root", "project", "--yes", "--reason", "not fine"]).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    let undo = newest(&machine);
    let id = undo["batchId"].as_str().unwrap();
    eventually("the undo is reported", || machine.ask(&server, "show", &[id]).1 == Some(0));
    let expected = ["LOCAL APPLIED PERSON \"ann\" \"not fine\""];
    assert_eq!(words(&machine.ask(&server, "show", &[id]).0["steps"]), expected);
    assert_eq!(words(&undo["steps"]), expected);
}

/// A batch is approved before any agent serves the workspace: the first event about it comes with the batch as it is now, and
/// its approval is kept all the same.
#[test]
fn an_approval_before_the_agent_is_in_the_history() {
    let machine = Machine::new();
    let server = reviewed(&machine);
    let id = &approve(&machine, &server);
    let _agent = machine.agent(&server);
    eventually("the batch is applied", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    let batch = newest(&machine);
    assert_eq!(words(&batch["steps"]), approved_by_rita(&batch), "{batch}");
}

/// A person agrees, the batch is applied, and the agent is killed before the server has its report: the report of the next agent
/// names the person, once.
#[test]
fn an_agreement_outlives_the_agent() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &create("a.txt", "a\n"));
    let sent = machine.ask(&server, "submit", &["a.json"]).0;
    terminal.until(WHOLE);
    signal("-STOP", server.id());
    terminal.answer("y");
    // Its file can be seen before the commit: killed then, the batch is rolled back, and the next agent applies it itself.
    eventually("the batch is committed", || newest(&machine)["state"] == "APPLIED");
    terminal.signal("-KILL");
    terminal.ended();
    signal("-CONT", server.id());
    let _agent = machine.agent(&server);
    let id = sent["batchId"].as_str().unwrap();
    eventually("the batch is reported", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    let expected = ["SUBMITTED APPROVED AUTHOR null null", "REPORTED APPLIED PERSON \"ann\" null"];
    assert_eq!(words(&machine.ask(&server, "show", &[id]).0["steps"]), expected);
    assert_eq!(words(&newest(&machine)["steps"]), expected);
}

/// A server that has a reviewer decide each batch.
fn reviewed(machine: &Machine) -> Server {
    write(&machine.path("server.toml"), "[workspaces.demo]\napproval = \"always\"\n");
    let config = machine.path("server.toml");
    machine.server_that(|command| _ = command.arg("--config").arg(config))
}

/// Submits a batch and approves it as Rita: its id.
#[track_caller]
fn approve(machine: &Machine, server: &Server) -> String {
    write(&machine.path("a.json"), &create("a.txt", "a\n"));
    let sent = machine.ask(server, "submit", &["a.json"]).0;
    let id = sent["batchId"].as_str().unwrap();
    let approved = machine.call(server, "approve", &["--reviewer", "Rita", "--reason", "fine", id]);
    assert!(approved.status.success(), "{approved:?}");
    id.to_owned()
}

/// The steps of a batch that Rita approved and an agent applied.
#[track_caller]
fn approved_by_rita(batch: &Value) -> [String; 3] {
    let agent = batch["steps"][2]["actorName"].as_str().unwrap_or_default();
    assert!(agent.starts_with("agent-"), "{batch}");
    [
        "SUBMITTED PENDING_APPROVAL AUTHOR null null".to_owned(),
        "APPROVED APPROVED PERSON \"Rita\" \"fine\"".to_owned(),
        format!("REPORTED APPLIED AGENT \"{agent}\" null"),
    ]
}

/// The newest batch of the history of the workstation.
#[track_caller]
fn newest(machine: &Machine) -> Value {
    let log = machine.aptix(&["log", "--json", "-n", "1", "--root", "project"]).output().unwrap();
    serde_json::from_slice::<Value>(&log.stdout).unwrap()["batches"][0].clone()
}

/// Each step in a line, without its time.
fn words(steps: &Value) -> Vec<String> {
    let step = |step: &Value| {
        let [event, state, actor] = ["event", "state", "actor"].map(|key| step[key].as_str().unwrap());
        format!("{event} {state} {actor} {} {}", step["actorName"], step["reason"])
    };
    steps.as_array().unwrap().iter().map(step).collect()
}

fn signal(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}
