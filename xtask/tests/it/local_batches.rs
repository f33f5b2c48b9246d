//! What is applied and undone on the workstation itself reaches the server as batches of its own, and the server's copies of
//! files follow.

use std::process::Command;

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::crash::live_a_little;
use crate::documents::create;
use crate::processes::{Machine, Running, Server, connected, eventually, served, wait_until_served, write};
use crate::revert::Caller;

/// A client of the server that reads its batches.
pub(crate) struct Batches {
    runtime: tokio::runtime::Runtime,
    client: BatchServiceClient<Channel>,
}

impl Batches {
    pub(crate) fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, client: BatchServiceClient::new(channel) }
    }

    /// All batches of the workspace, oldest first.
    fn all(&mut self) -> Vec<v1::Batch> {
        let view = v1::BatchView::Full.into();
        let request =
            v1::ListBatchesRequest { workspace_id: "demo".to_owned(), view, page_size: 1000, ..Default::default() };
        let Ok(answer) = self.runtime.block_on(self.client.list_batches(request)) else { return Vec::new() };
        let mut batches = answer.into_inner().batches;
        batches.reverse();
        batches
    }

    /// The batches of the workstation, oldest first, once there are so many.
    #[track_caller]
    pub(crate) fn local(&mut self, count: usize) -> Vec<v1::Batch> {
        let mut found = Vec::new();
        eventually("the batches of the workstation are reported", || {
            found = self.all().into_iter().filter(|batch| batch.source() == v1::BatchSource::Local).collect();
            found.len() >= count
        });
        assert_eq!(found.len(), count, "{found:?}");
        assert!(found.iter().all(|batch| batch.state() == v1::BatchState::Applied), "{found:?}");
        found
    }

    fn one(&mut self, id: &str) -> v1::Batch {
        self.all().into_iter().find(|batch| batch.batch_id == id).unwrap()
    }
}

pub(crate) fn label(batch: &v1::Batch) -> &str {
    &batch.edit.as_ref().unwrap().label
}

fn labels(batches: &[v1::Batch]) -> Vec<&str> {
    batches.iter().map(label).collect()
}

/// A document that adds a line before the first one of a file.
pub(crate) fn labelled(doc_path: &str, content: &str, label: &str) -> String {
    let changes = json!([{"operation": "insert", "afterLine": 0, "newLines": [label]}]);
    let file = json!({"docPath": doc_path, "fileKey": "f", "fileLabel": format!("file of {label}"),
        "originalSha256": sha256(content.as_bytes()).to_string(), "changes": changes});
    json!({"batchLabel": label, "batchKey": "b", "files": [file]}).to_string()
}

/// Runs a command on the project of a machine; answers what it prints as JSON.
#[track_caller]
pub(crate) fn run(machine: &Machine, arguments: &[&str]) -> Value {
    let output = machine.aptix(&[arguments, &["--root", "project", "--json"]].concat()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Applies a document locally.
#[track_caller]
pub(crate) fn apply(machine: &Machine, document: &str) -> Value {
    write(&machine.path("local.json"), document);
    run(machine, &["apply", "--yes", "local.json"])
}

/// What the server holds of a file.
fn held(machine: &Machine, server: &Server, path: &str) -> Value {
    machine.ask(server, "read", &[&format!("project/{path}")]).0["content"].clone()
}

/// A batch that an author submitted and the agent applied.
#[track_caller]
fn submitted(machine: &Machine, server: &Server, path: &str) -> String {
    let (done, code) = machine.submit(server, &create(path, "first\n"));
    assert_eq!(code, Some(0), "{done}");
    done["batchId"].as_str().unwrap().to_owned()
}

/// TUL-002-8.6.8: what was applied on the workstation itself is uploaded, and becomes the cloud file.
#[test]
fn a_local_apply_is_a_batch_of_the_server_while_an_agent_is_connected() {
    let (machine, server, mut agent) = served("auto");
    let id = submitted(&machine, &server, "a.txt");
    let applied = apply(&machine, &labelled("project/a.txt", "first\n", "by hand"));
    let mut batches = Batches::of(&server);
    let [local] = batches.local(1).try_into().unwrap();
    assert_eq!((local.batch_id.as_str(), local.reverts.as_str()), (applied["batchId"].as_str().unwrap(), ""));
    let author = local.author.clone().unwrap();
    assert_eq!((author.kind(), author.name.as_str()), (v1::ActorKind::Person, "ann"), "{author:?}");
    let edit = local.edit.clone().unwrap();
    assert_eq!((edit.label.as_str(), edit.key.as_str(), edit.files.len()), ("by hand", "b", 1));
    assert_eq!((edit.files[0].label.as_str(), edit.files[0].key.as_str()), ("file of by hand", "f"));
    let file = &local.report.as_ref().unwrap().files[0];
    assert_eq!((file.path.as_str(), file.status()), ("a.txt", v1::FileStatus::Modified));
    assert_eq!(file.sha256_before, Some(sha256(b"first\n").to_string()));
    assert_eq!(file.sha256, Some(sha256(b"by hand\nfirst\n").to_string()));

    // Nothing else is reported when the agent connects again, and its copies are right.
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "a.txt"), "by hand\nfirst\n");
    let mut agent = machine.agent(&server);
    submitted(&machine, &server, "last.txt");
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(
        batches.all().iter().map(|batch| batch.batch_id.clone()).take(2).collect::<Vec<_>>(),
        [id, local.batch_id]
    );
    assert_eq!(batches.all().len(), 3);
}

/// Of a large file the history keeps the changed lines alone: the server gets all of it from the disk.
#[test]
fn a_local_change_of_a_large_file_is_reported_as_any_other() {
    let (machine, server, mut agent) = served("auto");
    let content: String = (0..30_000).map(|line| format!("line {line}\n")).collect();
    write(&machine.path("project/large.txt"), &content);
    let changed = format!("by hand\n{content}");
    let [before, after] = [&content, &changed].map(|text| Some(sha256(text.as_bytes()).to_string()));
    apply(&machine, &labelled("project/large.txt", &content, "by hand"));
    let mut batches = Batches::of(&server);
    let reported = |batch: &v1::Batch| {
        let file = &batch.report.as_ref().unwrap().files[0];
        (file.sha256_before.clone(), file.sha256.clone(), file.size_bytes)
    };
    let sizes = [content.len(), changed.len()].map(|size| Some(size as u64));
    assert_eq!(reported(&batches.local(1)[0]), (before.clone(), after.clone(), sizes[1]));
    assert_eq!(agent.terminate(), Some(0));
    // The second one is on disk no more when the agent looks at it.
    run(&machine, &["undo", "--yes"]);
    run(&machine, &["undo", "--redo", "--yes"]);
    let mut agent = machine.agent(&server);
    let batches = batches.local(3);
    assert_eq!(reported(&batches[1]), (after.clone(), before.clone(), sizes[0]));
    assert_eq!(reported(&batches[2]), (before, after, sizes[1]));
    assert_eq!(held(&machine, &server, "large.txt"), changed.as_str());
    assert_eq!(agent.terminate(), Some(0));
}

/// An undo of a batch of the server, its redo, and the undo of that: each takes back the one before.
#[test]
fn an_undo_is_linked_with_the_batch_that_it_takes_back() {
    let (machine, server, mut agent) = served("auto");
    let id = submitted(&machine, &server, "a.txt");
    let mut batches = Batches::of(&server);
    let undone = run(&machine, &["undo", &id])["batchId"].as_str().unwrap().to_owned();
    let [undo] = batches.local(1).try_into().unwrap();
    assert_eq!(
        (undo.batch_id, undo.reverts, label(&batches.one(&undone))),
        (undone.clone(), id.clone(), &*format!("undo {id}"))
    );
    let first = batches.one(&id);
    assert_eq!((first.state(), first.reverted_by), (v1::BatchState::Applied, undone.clone()));
    let redone = run(&machine, &["undo", "--redo"])["batchId"].as_str().unwrap().to_owned();
    let redo = batches.local(2).pop().unwrap();
    assert_eq!((redo.batch_id, redo.reverts), (redone.clone(), undone.clone()));
    assert_eq!((batches.one(&id).reverted_by, batches.one(&undone).reverted_by), (String::new(), redone));
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "a.txt"), "first\n");
    let log = machine.logged("agent.log");
    assert!(log.contains("Batch.Undone") && log.contains(&format!("Reverts=\"{id}\"")), "{log}");
}

/// What was done while no agent was connected is reported with its label, once, and only what came after the first connection.
#[test]
fn agents_after_each_other_report_each_batch_once() {
    let machine = Machine::new();
    let server = machine.server();
    machine.put("a.txt", "");
    apply(&machine, &labelled("project/a.txt", "", "before any server"));
    let mut agent = machine.agent(&server);
    submitted(&machine, &server, "b.txt");
    assert_eq!(agent.terminate(), Some(0));
    apply(&machine, &labelled("project/a.txt", "before any server\n", "one"));
    apply(&machine, &labelled("project/b.txt", "first\n", "two"));
    let mut batches = Batches::of(&server);
    for _ in 0..2 {
        let mut agent = machine.agent(&server);
        wait_until_served(&server);
        assert_eq!(labels(&batches.local(2)), ["one", "two"]);
        assert_eq!(agent.terminate(), Some(0));
    }
    let other = Machine::new();
    other.put("a.txt", "");
    other.put("b.txt", "two\nfirst\n");
    apply(&other, &labelled("project/a.txt", "", "one"));
    let mut agent = other.agent(&server);
    batches.local(3);
    apply(&other, &labelled("project/a.txt", "one\n", "of another workstation"));
    let local = batches.local(4);
    // The other workstation has another `a.txt`.
    assert_eq!(labels(&local), ["one", "two", "changed outside of a batch", "of another workstation"]);
    let by = |at: usize| local[at].author.as_ref().unwrap().kind();
    assert_eq!([2, 3].map(by), [v1::ActorKind::Agent, v1::ActorKind::Person], "{local:?}");
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "a.txt"), "of another workstation\none\n");
}

/// `report_local = "off"`: what is done on the machine stays there, also when the agent connects again.
#[test]
fn a_policy_keeps_local_batches_on_the_machine() {
    let machine = Machine::new().with_policy("report_local = \"off\"\n");
    let server = machine.server();
    let mut agent = machine.agent(&server);
    submitted(&machine, &server, "a.txt");
    apply(&machine, &labelled("project/a.txt", "first\n", "mine"));
    assert_eq!(agent.terminate(), Some(0));
    let mut agent = machine.agent(&server);
    submitted(&machine, &server, "b.txt");
    // The history was looked at: what was found is marked.
    assert_eq!(agent.terminate(), Some(0));
    let machine = machine.with_policy("report_local = \"on\"\n");
    let mut agent = machine.agent(&server);
    let [local] = Batches::of(&server).local(1).try_into().unwrap();
    assert_eq!(label(&local), "changed outside of a batch", "the content is compared, what was done is not reported");
    assert_eq!(agent.terminate(), Some(0));
}

/// Of withheld files the server has the path and the label: no digest, no content. That holds for the content before as well.
#[test]
fn of_a_withheld_file_the_path_and_the_label_are_reported() {
    const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nzebra\n";
    let machine = Machine::new();
    let server = machine.server();
    machine.put(".ignore", "ignored.txt\n");
    machine.put("ignored.txt", "zebra\n");
    machine.put("was-a-key.txt", KEY);
    let mut agent = machine.agent(&server);
    wait_until_served(&server);
    apply(&machine, &labelled("project/ignored.txt", "zebra\n", "of an ignored file"));
    apply(&machine, r#"{"path":"was-a-key.txt","content":"open\n","overwrite":true}"#);
    let local = Batches::of(&server).local(3);
    let facts: Vec<_> = local
        .iter()
        .map(|batch| &batch.report.as_ref().unwrap().files[0])
        .map(|file| (file.path.as_str(), file.withheld.as_str(), file.sha256_before.is_some(), file.sha256.is_some()))
        .collect();
    let expected = [
        ("ignored.txt", "ignored", false, false),
        ("was-a-key.txt", "secret", false, false),
        // What is there now is no secret.
        ("was-a-key.txt", "", false, true),
    ];
    assert_eq!(facts, expected);
    assert_eq!(local[0].edit.as_ref().unwrap().files[0].label, "file of of an ignored file");
    assert_eq!(agent.terminate(), Some(0));
    let digests = ["zebra\n", "of an ignored file\nzebra\n", KEY].map(|text| sha256(text.as_bytes()).to_string());
    let sent = format!("{local:?}");
    assert!(digests.iter().all(|digest| !sent.contains(digest)), "{sent}");
    assert_eq!(held(&machine, &server, "ignored.txt"), Value::Null);
    assert_eq!(held(&machine, &server, "was-a-key.txt"), "open\n");
}

/// A batch over several roots names its files by root, whichever root keeps it; of a root that is not served it names none.
#[test]
fn a_batch_over_several_roots_names_their_files() {
    let machine = Machine::new();
    let server = machine.server();
    for (root, text) in [("left", ""), ("right", ""), ("other", "both\n")] {
        machine.put(&format!("{root}/same.txt"), text);
    }
    let url = server.url();
    let served = ["--root", "left=project/left", "--root", "right=project/right"];
    let agent = [&["agent", "--server", &url, "--workspace", "demo", "--approve", "auto"][..], &served].concat();
    let mut agent = Running(machine.aptix(&agent).spawn().unwrap());
    wait_until_served(&server);
    let apply = |roots: [&str; 2], label: &str, before: &str| {
        let documents = roots.map(|root| labelled(&format!("{root}/same.txt"), before, label));
        let [mut both, other] = documents.map(|document| serde_json::from_str::<Value>(&document).unwrap());
        both["files"].as_array_mut().unwrap().push(other["files"][0].clone());
        both["files"][1]["fileKey"] = "g".into();
        write(&machine.path("local.json"), &both.to_string());
        let roots = roots.map(|root| format!("{root}=project/{root}"));
        let output =
            machine.aptix(&["apply", "local.json", "--root", &roots[0], "--root", &roots[1]]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let paths = |batch: &v1::Batch| {
        let files = batch.report.as_ref().unwrap().files.iter();
        files.map(|file| file.doc_path.clone()).collect::<Vec<_>>()
    };
    apply(["right", "left"], "both", "");
    apply(["other", "left"], "one of them", "both\n");
    let local = Batches::of(&server).local(2);
    assert_eq!(labels(&local), ["both", "one of them"]);
    assert_eq!(paths(&local[0]), ["right/same.txt", "left/same.txt"]);
    assert_eq!(paths(&local[1]), ["left/same.txt"]);
    assert_eq!(local[0].edit.as_ref().unwrap().files[1].label, "file of both");
    assert_eq!(agent.terminate(), Some(0));
}

pub(crate) fn copy(machine: &Machine, from: &str, to: &str) {
    let (from, to) = (machine.path(from), machine.path(to));
    assert!(Command::new("rm").arg("-rf").arg(&to).status().unwrap().success());
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// A state directory that is put back repeats what the server has, which changes nothing, and what is done then is reported.
#[test]
fn a_restored_state_directory_reports_nothing_twice() {
    let (machine, server, mut agent) = served("auto");
    machine.put("a.txt", "");
    submitted(&machine, &server, "b.txt");
    apply(&machine, &labelled("project/a.txt", "", "one"));
    let mut batches = Batches::of(&server);
    batches.local(1);
    assert_eq!(agent.terminate(), Some(0));
    apply(&machine, &labelled("project/a.txt", "one\n", "two"));
    copy(&machine, "state", "kept");
    let mut agent = machine.agent(&server);
    assert_eq!(labels(&batches.local(2)), ["one", "two"]);
    apply(&machine, &labelled("project/a.txt", "two\none\n", "three"));
    batches.local(3);
    assert_eq!(agent.terminate(), Some(0));
    copy(&machine, "kept", "state");
    let mut agent = machine.agent(&server);
    wait_until_served(&server);
    apply(&machine, &labelled("project/a.txt", "three\ntwo\none\n", "four"));
    assert_eq!(labels(&batches.local(4)), ["one", "two", "three", "four"]);
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "a.txt"), "four\nthree\ntwo\none\n");
}

/// FILE-SPEC-8.5: a batch that waits meets the file as an undo left it. It is refused by name, the undo is reported, and nothing is lost.
#[test]
fn an_undo_while_a_batch_for_the_same_file_waits_refuses_that_batch() {
    let (machine, server, mut agent) = served("auto");
    let id = submitted(&machine, &server, "a.txt");
    assert_eq!(agent.terminate(), Some(0));
    write(&machine.path("waits.json"), &labelled("project/a.txt", "first\n", "waits"));
    let (waits, code) = machine.ask(&server, "submit", &["waits.json"]);
    assert_eq!(code, Some(0), "{waits}");
    let undone = run(&machine, &["undo", &id])["batchId"].as_str().unwrap().to_owned();
    let mut agent = machine.agent(&server);
    let mut batches = Batches::of(&server);
    let [undo] = batches.local(1).try_into().unwrap();
    assert_eq!((undo.batch_id, undo.reverts), (undone.clone(), id.clone()));
    let waits = waits["batchId"].as_str().unwrap();
    eventually("the batch has ended", || batches.one(waits).state() == v1::BatchState::Failed);
    let failures = batches.one(waits).report.unwrap().failures;
    assert_eq!(failures[0].reason, "FILE_MISSING", "{failures:?}");
    assert_eq!((machine.files(), batches.one(&id).reverted_by), (Vec::new(), undone));
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(held(&machine, &server, "a.txt"), Value::Null);
}

/// An agent that is killed at any moment around its reports: each batch is stored once, in order.
#[test]
fn an_agent_killed_at_any_moment_reports_each_local_batch_once() {
    const KILLS: usize = 20;
    let (machine, server, mut agent) = served("auto");
    machine.put("a.txt", "");
    submitted(&machine, &server, "b.txt");
    assert_eq!(agent.terminate(), Some(0));
    let (mut content, mut expected) = (String::new(), Vec::new());
    let served = || machine.logged("agent.log").matches("serving http").count();
    for kill in 0..KILLS {
        let label = kill.to_string();
        apply(&machine, &labelled("project/a.txt", &content, &label));
        content = format!("{label}\n{content}");
        expected.push(label);
        let before = served();
        let _killed_at_the_end = machine.agent(&server);
        eventually("the agent serves", || served() > before);
        live_a_little(&machine, "agent.log");
    }
    let mut agent = machine.agent(&server);
    assert_eq!(labels(&Batches::of(&server).local(KILLS)), expected);
    submitted(&machine, &server, "c.txt");
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(labels(&Batches::of(&server).local(KILLS)), expected);
    assert_eq!(held(&machine, &server, "a.txt"), content);
}

/// A batch that is cancelled after the agent wrote its files, and before it reported: it stays CANCELLED, and its change is a
/// batch of the workstation. The agent is killed in between.
#[test]
fn a_batch_that_is_cancelled_after_it_was_applied_is_reported_as_local() {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let mut batches = Batches::of(&server);
    let is_late = (0..50).any(|attempt| {
        let name = format!("{attempt}.txt");
        let mut agent = machine.agent(&server);
        write(&machine.path("late.json"), &create(&name, "late\n"));
        let (late, code) = machine.ask(&server, "submit", &["late.json"]);
        assert_eq!(code, Some(0), "{late}");
        let path = machine.path("project").join(&name);
        eventually("the file is written", || path.exists());
        agent.0.kill().unwrap();
        agent.0.wait().unwrap();
        let id = late["batchId"].as_str().unwrap();
        let is_cancelled = machine.call(&server, "cancel", &[id]).status.success();
        let mut agent = machine.agent(&server);
        submitted(&machine, &server, &format!("after-{name}"));
        // A commit that was cut short is rolled back.
        if !is_cancelled || !path.exists() {
            assert_eq!(agent.terminate(), Some(0));
            return false;
        }
        let [local] = batches.local(1).try_into().unwrap();
        assert_eq!(batches.one(id).state(), v1::BatchState::Cancelled);
        let file = &local.report.as_ref().unwrap().files[0];
        assert_eq!((file.path.as_str(), file.sha256.clone()), (&*name, Some(sha256(b"late\n").to_string())));
        assert_ne!(local.batch_id, id);
        assert_eq!(held(&machine, &server, &name), "late\n");
        // The workstation has it under the name of the batch that was cancelled.
        let revert = Caller::of(&server).reverted(&local.batch_id, "back");
        assert_eq!((revert.state(), path.exists()), (v1::BatchState::Applied, false), "{revert:?}");
        assert_eq!(batches.one(&local.batch_id).reverted_by, revert.batch_id);
        assert_eq!(agent.terminate(), Some(0));
        true
    });
    assert!(is_late, "the report came first each time");
}
