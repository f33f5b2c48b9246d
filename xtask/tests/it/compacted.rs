//! An agent and a watcher that were away while the server removed the events that they want next: both go on with what there is, nothing
//! open is lost, and nothing is applied twice.

use std::process::Command;

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::watch_workspace_response::Message;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use serde_json::json;
use tonic::Status;
use tonic_types::StatusExt as _;

use crate::processes::{Machine, Running, Server, binary, connected, eventually, write};

/// The line that a batch appends: a batch that is applied twice leaves it twice.
fn line(name: &str) -> String {
    format!("by {name}\n")
}

/// Submits a batch that appends its line; returns its id.
fn submit(machine: &Machine, server: &Server, name: &str) -> String {
    let patch = json!({ "operation": "append_eof", "newText": line(name) });
    write(&machine.path("append.json"), &json!({ "path": "lines.txt", "patches": [patch] }).to_string());
    let (stored, code) = machine.ask(server, "submit", &["append.json"]);
    assert_eq!(code, Some(0), "{stored}");
    stored["batchId"].as_str().unwrap().to_owned()
}

fn cancel(machine: &Machine, server: &Server, id: &str) {
    let cancelled = machine.call(server, "cancel", &[id]);
    assert!(cancelled.status.success(), "{cancelled:?}");
}

#[track_caller]
fn await_lines(machine: &Machine, server: &Server, names: &[&str]) {
    eventually("no batch is open", || open_batches(server).is_empty());
    let lines: String = names.iter().map(|name| line(name)).collect();
    assert_eq!(machine.files(), [("lines.txt".to_owned(), lines)], "each line once, in the order of the batches");
}

/// Removes everything that may go while no server runs.
fn trim(machine: &Machine) {
    write(&machine.path("trim.toml"), "[retention]\nrecord_events = 1\nrecord_least_seconds = 0\n");
    let mut retention = Command::new(binary("aptix-server"));
    retention.arg("retention").arg("--config").arg(machine.path("trim.toml"));
    let done = retention.arg("--data-dir").arg(machine.path("data")).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn signal(process: &Running, name: &str) {
    assert!(Command::new("kill").args([name, &process.0.id().to_string()]).status().unwrap().success());
}

/// The events after a revision, or behind a position, up to the first heartbeat.
fn watch(server: &Server, after_revision: u64, after: Option<v1::Cursor>) -> Result<Vec<v1::BatchEvent>, Status> {
    let (runtime, channel) = connected(server);
    runtime.block_on(async {
        let workspace_id = "demo".to_owned();
        let request = v1::WatchWorkspaceRequest { workspace_id, after_revision, after, ..Default::default() };
        let mut stream = WorkspaceServiceClient::new(channel).watch_workspace(request).await?.into_inner();
        let mut events = Vec::new();
        while let Some(message) = stream.message().await? {
            match message.message {
                Some(Message::Event(event)) => events.push(event),
                Some(Message::Heartbeat(_)) => break,
                None => {}
            }
        }
        Ok(events)
    })
}

/// The batches of the workspace that have not ended, oldest first.
fn open_batches(server: &Server) -> Vec<String> {
    let (runtime, channel) = connected(server);
    let request = v1::ListBatchesRequest { workspace_id: "demo".to_owned(), ..Default::default() };
    let listed = runtime.block_on(BatchServiceClient::new(channel).list_batches(request)).unwrap().into_inner();
    let open = listed.batches.iter().rev().filter(|batch| batch.state() == v1::BatchState::Approved);
    open.map(|batch| batch.batch_id.clone()).collect()
}

/// While nobody listens: a batch that waits, between others that ended. Answers the ids of those that wait.
fn meanwhile(machine: &Machine, server: &Server, names: [&str; 2]) -> Vec<String> {
    let mut waiting = Vec::new();
    for name in names {
        let withdrawn = submit(machine, server, "nobody");
        cancel(machine, server, &withdrawn);
        waiting.push(submit(machine, server, name));
    }
    waiting
}

/// What a watcher does that was away: the error says from where on there are events, the list what there is.
fn come_back(server: &Server, cursor: v1::Cursor, waiting: &[String]) {
    let refused = watch(server, 0, Some(cursor.clone())).unwrap_err();
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(info.reason, "COMPACTED", "{refused:?}");
    let oldest: u64 = info.metadata["oldest"].parse().unwrap();
    assert!(oldest > cursor.revision + 1, "the next event was removed: {oldest}");
    let words = format!("the events before revision {oldest} are no longer kept");
    assert!(refused.message().contains(&words), "{refused:?}");
    assert_eq!(open_batches(server), waiting, "the list has everything that is open");
    let events = watch(server, oldest - 1, None).unwrap();
    assert_eq!(events[0].revision, oldest);
    let named: Vec<_> = events.into_iter().map(|event| event.batch.unwrap().batch_id).collect();
    for batch in waiting {
        assert!(named.contains(batch), "the events of what is open are there: {named:?}");
    }
}

/// An agent that ended, and then one whose connection is cut while it is stopped.
#[test]
fn who_was_away_too_long_goes_on_with_what_there_is() {
    let machine = Machine::new();
    machine.put("lines.txt", "");
    let server = machine.server();
    let address = server.address.clone();
    let mut agent = machine.agent(&server);
    submit(&machine, &server, "one");
    submit(&machine, &server, "two");
    await_lines(&machine, &server, &["one", "two"]);
    let cursor = newest(&server);
    assert_eq!(agent.terminate(), Some(0));

    let waiting = meanwhile(&machine, &server, ["three", "four"]);
    assert!(server.terminate());
    trim(&machine);
    let server = machine.server_at(&address);
    come_back(&server, cursor, &waiting);
    let agent = machine.agent(&server);
    await_lines(&machine, &server, &["one", "two", "three", "four"]);
    let told = || {
        let log = machine.logged("agent.log");
        let lines = log.lines().filter(|line| line.contains("the server does not have the events asked for"));
        lines.filter(|line| line.contains("are no longer kept")).count()
    };
    assert_eq!(told(), 1, "the user is told: {}", machine.logged("agent.log"));

    let cursor = newest(&server);
    signal(&agent, "-STOP");
    drop(server);
    let server = machine.server_at(&address);
    let waiting = meanwhile(&machine, &server, ["five", "six"]);
    assert!(server.terminate());
    trim(&machine);
    let server = machine.server_at(&address);
    come_back(&server, cursor, &waiting);
    signal(&agent, "-CONT");
    await_lines(&machine, &server, &["one", "two", "three", "four", "five", "six"]);
    assert_eq!(told(), 2, "the user is told: {}", machine.logged("agent.log"));
}

/// Where the workspace is now.
fn newest(server: &Server) -> v1::Cursor {
    let (runtime, channel) = connected(server);
    let request = v1::GetWorkspaceRequest { workspace_id: "demo".to_owned() };
    let found = runtime.block_on(WorkspaceServiceClient::new(channel).get_workspace(request)).unwrap();
    found.into_inner().workspace.unwrap().cursor.unwrap()
}
