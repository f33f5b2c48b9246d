//! `kill -9` at random moments, again and again, while batches come: nothing is applied twice, nothing that was
//! acknowledged is lost.
//!
//! Every batch adds a line to a file pinned by its digest: one that is applied twice is refused or shows, one that is
//! forgotten never ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::roots::workspace::Workspace;
use serde_json::Value;

use crate::documents::{create, insert};
use crate::processes::{Machine, Server, below, eventually, json, unused_address, write};

/// How often the agent is killed.
const AGENT_KILLS: usize = 40;
/// How often the server is killed.
const SERVER_KILLS: usize = 50;
/// The clients that send batches meanwhile.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// How long a process lives at most before it is killed.
const LIFE: Duration = Duration::from_millis(250);

/// Waits until a log has a few more lines, at random, or a short life is over.
pub(crate) fn live_a_little(machine: &Machine, log: &str) {
    let lines = || machine.logged(log).lines().count();
    let (enough, deadline) = (lines() + usize::try_from(below(12)).unwrap(), Instant::now() + LIFE);
    while lines() < enough && Instant::now() < deadline {
        std::thread::yield_now();
    }
}

/// Sends batch after batch for two files of its own until `stop` is set; returns the files as they must be.
fn add_lines(machine: &Machine, url: &str, name: &str, stop: &AtomicBool) -> Vec<(String, String)> {
    let paths = file_names(name);
    let document = machine.path(&format!("{name}.json"));
    let mut content = "0\n".to_owned();
    for number in 1.. {
        let files = paths.each_ref().map(|path| (path.as_str(), content.as_str()));
        write(&document, &insert(&files, number, &number.to_string()));
        let done = submit(machine, url, &["--wait"], document.to_str().unwrap());
        assert_eq!(done["state"], "APPLIED", "{name}, batch {number}: {done}");
        content.push_str(&format!("{number}\n"));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    paths.map(|path| (path, content.clone())).to_vec()
}

fn file_names(name: &str) -> [String; 2] {
    [format!("{name}.txt"), format!("deep/down/{name}.txt")]
}

/// A machine with the files that three clients add lines to.
fn machine_for(names: [&str; 3]) -> Machine {
    let machine = Machine::new();
    names.iter().flat_map(|name| file_names(name)).for_each(|path| machine.put(&path, "0\n"));
    machine
}

/// Creates file after file without waiting for any; returns the files and the batches that were acknowledged.
fn create_files(machine: &Machine, url: &str, stop: &AtomicBool) -> (Vec<(String, String)>, Vec<Value>) {
    let (mut files, mut batches) = (Vec::new(), Vec::new());
    let document = machine.path("create.json");
    while !stop.load(Ordering::Relaxed) {
        let path = format!("made/{}.txt", files.len());
        write(&document, &create(&path, "made\n"));
        batches.push(submit(machine, url, &[], document.to_str().unwrap())["batchId"].clone());
        files.push((path, "made\n".to_owned()));
    }
    (files, batches)
}

/// Submits until the server can be reached. A submit that never reached one has stored nothing.
fn submit(machine: &Machine, url: &str, how: &[&str], document: &str) -> Value {
    let arguments = [&["submit", "--server", url, "--workspace", "demo", "--json"], how, &[document]].concat();
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let output = machine.aptix(&arguments).output().unwrap();
        let (answer, code) = json(&output);
        match code {
            Some(3) if answer["batchId"].is_null() && answer["errors"][0]["code"] == "UNAVAILABLE" => {}
            Some(0) => return answer,
            code => panic!("exit {code:?}: {answer} {}", String::from_utf8_lossy(&output.stderr)),
        }
        assert!(Instant::now() < deadline, "no server for three minutes: {answer}");
    }
}

/// Waits until the agent owes the server nothing, and keeps nothing for it.
#[track_caller]
fn await_empty_outbox(machine: &Machine) {
    let roots = [machine.path("project").to_str().unwrap().parse().unwrap()];
    let local = Workspace::open(&roots, &machine.path("state"), Box::new(SystemDisk)).unwrap();
    eventually("every report is acknowledged", || outbox::waiting(&local).unwrap().is_empty());
    let kept = std::fs::read_dir(local.roots()[0].state().path().join("outbox")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).filter(|name| name != "log").collect();
    assert!(kept.is_empty(), "contents are left: {kept:?}");
}

#[test]
fn an_agent_killed_at_any_moment_applies_each_batch_once_and_reports_it() {
    let machine = &machine_for(NAMES);
    let server = machine.server();
    let (url, stop) = (server.url(), AtomicBool::new(false));
    let (mut files, _agent) = std::thread::scope(|scope| {
        let clients = NAMES.map(|name| {
            scope.spawn({
                let (url, stop) = (&url, &stop);
                move || add_lines(machine, url, name, stop)
            })
        });
        for _ in 0..AGENT_KILLS {
            let _killed_at_the_end = machine.agent(&server);
            live_a_little(machine, "agent.log");
        }
        stop.store(true, Ordering::Relaxed);
        let agent = machine.agent(&server);
        (clients.map(|client| client.join().unwrap()).concat(), agent)
    });
    files.sort();
    assert_eq!(machine.files(), files);
    await_empty_outbox(machine);
    let applied: usize = files.iter().map(|(_, content)| content.lines().count() - 1).sum();
    let (listed, _) = machine.ask(&server, "batches", &[]);
    let batches = listed["batches"].as_array().unwrap();
    assert!(batches.iter().all(|batch| batch["state"] == "APPLIED"), "{listed}");
    assert_eq!(batches.len() * 2, applied, "each batch added a line to two files");
}

#[test]
fn a_server_killed_at_any_moment_loses_no_acknowledged_batch_and_no_report() {
    restarts_lose_nothing(SERVER_KILLS, drop);
}

/// Ends the server so many times while batches come, and starts it again at the same address. Answers what it logged.
pub(crate) fn restarts_lose_nothing(times: usize, end: impl Fn(Server)) -> String {
    let machine = machine_for(NAMES);
    let address = unused_address();
    let first = machine.server_at(&address);
    let (url, stop) = (first.url(), AtomicBool::new(false));
    let _agent = machine.agent(&first);
    let (lines, (made, batches), server) = std::thread::scope(|scope| {
        let (machine, url, stop) = (&machine, &url, &stop);
        let clients = NAMES.map(|name| scope.spawn(move || add_lines(machine, url, name, stop)));
        let maker = scope.spawn(|| create_files(machine, url, stop));
        let mut server = first;
        for _ in 0..times {
            live_a_little(machine, "server.log");
            end(server);
            server = machine.server_at(&address);
        }
        stop.store(true, Ordering::Relaxed);
        (clients.map(|client| client.join().unwrap()).concat(), maker.join().unwrap(), server)
    });
    for batch in &batches {
        let state = || machine.ask(&server, "show", &[batch.as_str().unwrap()]).0["state"].clone();
        eventually("an acknowledged batch is applied", || state() == "APPLIED");
    }
    let mut files = [lines, made].concat();
    files.sort();
    assert_eq!(machine.files(), files);
    await_empty_outbox(&machine);
    for (path, content) in &files {
        let (read, _) = machine.ask(&server, "read", &[&format!("project/{path}")]);
        assert_eq!(read["content"], content.as_str(), "{path}");
    }
    assert!(server.terminate());
    machine.logged("server.log")
}
