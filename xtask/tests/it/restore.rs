//! A data directory that is put back: the server has forgotten what came since, and the agent starts over.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::documents::create;
use crate::processes::{Machine, Server, eventually, json, write};

/// Batches that end before the copy is made, that wait while it is made, and that come after it is put back.
const BEFORE: usize = 4;
const WAITING: usize = 3;
const SINCE: usize = 8;
const AFTER: usize = 30;

/// Submits batches that create one file each, without waiting for any; returns their ids.
fn submit(machine: &Machine, server: &Server, name: &str, count: usize) -> Vec<String> {
    let (url, mut ids) = (server.url(), Vec::new());
    for number in 0..count {
        let document = machine.path("created.json");
        write(&document, &create(&format!("{name}-{number}.txt"), name));
        let submit = ["submit", "--server", &url, "--workspace", "demo", "--json", "created.json"];
        let (stored, code) = json(&machine.aptix(&submit).output().unwrap());
        assert_eq!(code, Some(0), "{stored}");
        ids.push(stored["batchId"].as_str().unwrap().to_owned());
    }
    ids
}

fn states(machine: &Machine, server: &Server) -> Vec<(String, String)> {
    let (listed, code) = machine.ask(server, "batches", &[]);
    assert_eq!(code, Some(0), "{listed}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let batches = listed["batches"].as_array().unwrap().iter();
    batches.map(|batch| (text(&batch["batchId"]), text(&batch["state"]))).collect()
}

#[track_caller]
fn await_applied(machine: &Machine, server: &Server, ids: &[String]) {
    eventually("every batch is APPLIED", || {
        let states = states(machine, server);
        ids.iter().all(|id| states.contains(&(id.clone(), "APPLIED".to_owned())))
    });
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("rm").arg("-rf").arg(to).status().unwrap().success());
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Revisions overtake the agent's cursor before it comes back, twice: by then the same numbers stand for other events.
#[test]
fn an_agent_starts_over_when_a_data_directory_is_put_back() {
    let machine = Machine::new();
    let (data, kept) = (machine.path("data"), machine.path("kept"));
    let server = machine.server();
    let address = server.address.clone();
    let mut agent = machine.agent(&server);
    let mut ids = submit(&machine, &server, "before", BEFORE);
    await_applied(&machine, &server, &ids);
    assert_eq!(agent.terminate(), Some(0));
    ids.extend(submit(&machine, &server, "waiting", WAITING));
    assert!(server.terminate());
    copy(&data, &kept);
    let mut files: Vec<(String, String)> = machine.files();
    files.extend((0..WAITING).map(|number| (format!("waiting-{number}.txt"), "waiting".to_owned())));
    for round in ["first", "second"] {
        let server = machine.server_at(&address);
        let mut agent = machine.agent(&server);
        await_applied(&machine, &server, &ids);
        let since = submit(&machine, &server, &format!("since-{round}"), SINCE);
        await_applied(&machine, &server, &since);
        files.extend((0..SINCE).map(|number| (format!("since-{round}-{number}.txt"), format!("since-{round}"))));
        assert_eq!(agent.terminate(), Some(0));
        assert!(server.terminate());

        copy(&kept, &data);
        let server = machine.server_at(&address);
        let after = submit(&machine, &server, &format!("after-{round}"), AFTER);
        let mut agent = machine.agent(&server);
        let all = [ids.clone(), after].concat();
        await_applied(&machine, &server, &all);
        files.extend((0..AFTER).map(|number| (format!("after-{round}-{number}.txt"), format!("after-{round}"))));
        assert_eq!(agent.terminate(), Some(0));
        assert!(server.terminate());
        let executed = machine.logged("agent.log").lines().filter(|line| line.contains("Batch.Applied")).count();
        assert_eq!(executed, files.len(), "nothing is applied twice");
    }
    files.sort();
    assert_eq!(machine.files(), files);
}
