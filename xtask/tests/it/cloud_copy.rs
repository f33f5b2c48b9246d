//! What the server holds of files once an agent has connected: what is on disk, whoever changed it while none was connected.

use serde_json::Value;

use crate::documents::create;
use crate::processes::{Machine, Running, Server, eventually, write};

const NAMES: [&str; 5] = ["applied.txt", "undone.txt", "edited.txt", "deleted.txt", "ignored.txt"];

/// A machine on which an agent has created files, and is gone.
fn after_batches(machine: &Machine) -> Server {
    let server = machine.server();
    let mut agent = machine.agent(&server);
    for name in NAMES {
        let (done, code) = machine.submit(&server, &create(name, "first\n"));
        assert_eq!((code, &done["state"]), (Some(0), &"APPLIED".into()), "{done}");
    }
    assert_eq!(agent.terminate(), Some(0));
    server
}

fn states(machine: &Machine, server: &Server) -> Vec<Value> {
    let (listed, _) = machine.ask(server, "batches", &[]);
    listed["batches"].as_array().unwrap().clone()
}

/// Serves until as many batches are stored, then stops.
fn serve_until(machine: &Machine, server: &Server, mut agent: Running, batches: usize) {
    eventually("the differences are reported", || states(machine, server).len() >= batches);
    assert_eq!(agent.terminate(), Some(0));
    let states = states(machine, server);
    assert_eq!(states.len(), batches, "{states:?}");
}

/// What the server holds of a file while no agent is connected.
fn held(machine: &Machine, server: &Server, name: &str) -> Option<String> {
    let (read, code) = machine.ask(server, "read", &[&format!("project/{name}")]);
    assert!(code == Some(0) || read["errors"][0]["code"] == "NOT_FOUND", "{read}");
    read["content"].as_str().map(str::to_owned)
}

fn local(machine: &Machine, arguments: &[&str]) {
    let output = machine.aptix(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test plays the person who deletes a file")]
fn after_hello_the_server_holds_what_is_on_disk() {
    let machine = Machine::new();
    let server = after_batches(&machine);
    let root = machine.path("project");
    let root = root.to_str().unwrap();
    write(&machine.path("edit.json"), &create("new.txt", "never held\n"));
    local(&machine, &["apply", "--root", root, "edit.json"]);
    write(&machine.path("applied.diff"), "--- a/applied.txt\n+++ b/applied.txt\n@@ -1 +1 @@\n-first\n+second\n");
    local(&machine, &["apply", "--root", root, "applied.diff"]);
    let undone = states(&machine, &server).into_iter().find(|batch| batch.to_string().contains("undone.txt")).unwrap();
    local(&machine, &["undo", "--root", root, undone["batchId"].as_str().unwrap()]);
    machine.put("edited.txt", "by hand\n");
    std::fs::remove_file(machine.path("project/deleted.txt")).unwrap();
    machine.put("ignored.txt", "kept back\n");
    machine.put(".ignore", "ignored.txt\n");
    assert_eq!(held(&machine, &server, "edited.txt").as_deref(), Some("first\n"), "nobody has told the server yet");

    // Three batches of the history, and what no batch did.
    let agent = machine.agent(&server);
    serve_until(&machine, &server, agent, NAMES.len() + 4);
    assert_eq!(held(&machine, &server, "new.txt").as_deref(), Some("never held\n"));
    let found = NAMES.map(|name| held(&machine, &server, name));
    let expected = [Some("second\n"), None, Some("by hand\n"), None, None].map(|text| text.map(str::to_owned));
    assert_eq!(found, expected);
    let newest = &states(&machine, &server)[0];
    let (shown, _) = machine.ask(&server, "show", &[newest["batchId"].as_str().unwrap()]);
    assert_eq!(shown["state"], "APPLIED", "{shown}");
    let digest = aptix_engine::digest::sha256(b"kept back\n").to_string();
    assert!(!shown.to_string().contains(&digest), "nothing of a withheld file leaves the machine: {shown}");

    // The same agent again finds nothing to correct; another change is one more batch.
    machine.put("edited.txt", "by hand again\n");
    let agent = machine.agent(&server);
    serve_until(&machine, &server, agent, NAMES.len() + 5);
    assert_eq!(held(&machine, &server, "edited.txt").as_deref(), Some("by hand again\n"));
    let newest = &states(&machine, &server)[0];
    let (shown, _) = machine.ask(&server, "show", &[newest["batchId"].as_str().unwrap()]);
    assert_eq!(shown["files"].as_array().unwrap().len(), 1, "{shown}");
}

/// `report_local = "off"`: what no batch of the server changed stays on the machine.
#[test]
fn a_policy_keeps_local_changes_on_the_machine() {
    let machine = Machine::new().with_policy("report_local = \"off\"\n");
    let server = after_batches(&machine);
    machine.put("edited.txt", "by hand\n");
    let mut agent = machine.agent(&server);
    let (done, code) = machine.submit(&server, &create("one-more.txt", "first\n"));
    assert_eq!(code, Some(0), "{done}");
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "edited.txt").as_deref(), Some("first\n"));
    assert_eq!(states(&machine, &server).len(), NAMES.len() + 1);
}
