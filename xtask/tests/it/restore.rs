//! A data directory that is put back, as a copy or from a backup: the server has forgotten what came since, and the agent starts
//! over.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::documents::create;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, Server, binary, eventually, json, write};

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

fn remove(path: &Path) {
    assert!(Command::new("rm").arg("-rf").arg(path).status().unwrap().success());
}

fn copy(from: &Path, to: &Path) {
    remove(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Carries out a command about backups.
#[track_caller]
fn backup(command: &str, option: &str, file: &Path, data: &Path) {
    let mut made = Command::new(binary("aptix-server"));
    let made = made.args([command, option]).arg(file).arg("--data-dir").arg(data).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// How a data directory is kept and put back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is copied while no server runs.
    Copy,
    /// It is backed up while one does, and restored.
    Backup,
}

#[test]
fn an_agent_starts_over_when_a_data_directory_is_put_back() {
    an_agent_starts_over(Way::Copy);
}

#[test]
fn an_agent_starts_over_when_a_backup_is_restored() {
    an_agent_starts_over(Way::Backup);
}

/// Revisions overtake the agent's cursor before it comes back, twice: by then the same numbers stand for other events.
fn an_agent_starts_over(way: Way) {
    let machine = Machine::new();
    let (data, kept) = (machine.path("data"), machine.path("kept"));
    let server = machine.server();
    let address = server.address.clone();
    let mut agent = machine.agent(&server);
    let mut ids = submit(&machine, &server, "before", BEFORE);
    await_applied(&machine, &server, &ids);
    assert_eq!(agent.terminate(), Some(0));
    ids.extend(submit(&machine, &server, "waiting", WAITING));
    if way == Way::Backup {
        backup("backup", "--to", &kept, &data);
    }
    assert!(server.terminate());
    if way == Way::Copy {
        copy(&data, &kept);
    }
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

        match way {
            Way::Copy => copy(&kept, &data),
            Way::Backup => {
                remove(&data);
                backup("restore", "--from", &kept, &data);
            }
        }
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

/// The copy has a batch APPROVED that the agent applied and reported since. The agent was killed while it had handled the event
/// that freed the batch, and not yet the one that ended it: a batch between the two waited for a person.
#[test]
fn a_batch_that_a_restored_server_has_open_again_is_reported_again() {
    let machine = Machine::new();
    let (data, kept) = (machine.path("data"), machine.path("kept"));
    let server = machine.server();
    let address = server.address.clone();
    let [applied] = &submit(&machine, &server, "applied", 1)[..] else { unreachable!() };
    write(&machine.path("asked.json"), &create(".vscode/tasks.json", "{}"));
    let (asked, code) = machine.ask(&server, "submit", &["asked.json"]);
    assert_eq!(code, Some(0), "{asked}");
    assert!(server.terminate());
    copy(&data, &kept);

    let server = machine.server_at(&address);
    let url = server.url();
    let agent = ["agent", "--server", &url, "--workspace", "demo", "--root", "project", "--approve", "auto"];
    let mut terminal = Terminal::running(&machine.aptix(&agent));
    terminal.until(WHOLE);
    await_applied(&machine, &server, std::slice::from_ref(applied));
    let is_acknowledged = || {
        let mut states = std::fs::read_dir(machine.path("state/aptix/roots")).unwrap();
        states.any(|state| state.unwrap().path().join("reported").join(applied).exists())
    };
    eventually("the report is acknowledged", is_acknowledged);
    drop(server);
    terminal.until("waiting before connecting");
    terminal.signal("-KILL");
    terminal.ended();
    machine.put("applied-0.txt", "edited since\n");

    copy(&kept, &data);
    let server = machine.server_at(&address);
    assert!(states(&machine, &server).contains(&(applied.clone(), "APPROVED".to_owned())));
    let _agent = machine.agent(&server);
    await_applied(&machine, &server, std::slice::from_ref(applied));
    assert_eq!(machine.files(), [("applied-0.txt".to_owned(), "edited since\n".to_owned())], "it is not applied twice");
}
