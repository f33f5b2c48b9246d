//! `aptix show` prints who did what to a batch, when and why.

use serde_json::{Value, json};

use crate::documents::create;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, write};

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
            let who = ["actor", "actorName"].map(|key| log["batches"][0][key].clone());
            let expected = if code == 0 { ["PERSON".into(), "ann".into()] } else { [Value::Null, Value::Null] };
            assert_eq!(who, expected, "{log}");
        }
    });
}
