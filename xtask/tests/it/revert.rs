//! Batches that take other ones back, over a real server and a real agent: what they restore, what they refuse and how, and
//! that none takes effect twice.

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use serde_json::json;
use tonic::Status;
use tonic::transport::Channel;

use crate::crash::live_a_little;
use crate::documents::create;
use crate::processes::{Machine, Running, Server, connected, eventually, served, wait_until_served, write};

/// Calls the server of a test.
pub(crate) struct Caller {
    runtime: tokio::runtime::Runtime,
    batches: BatchServiceClient<Channel>,
}

pub(crate) fn asked(batch: &str, request: &str) -> v1::RevertBatchRequest {
    v1::RevertBatchRequest {
        workspace_id: "demo".to_owned(),
        batch_id: batch.to_owned(),
        request_id: request.to_owned(),
        reason: "wrong file".to_owned(),
        author: "ann".to_owned(),
        view: v1::BatchView::Full.into(),
        ..v1::RevertBatchRequest::default()
    }
}

impl Caller {
    pub(crate) fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, batches: BatchServiceClient::new(channel) }
    }

    pub(crate) fn revert(&mut self, batch: &str, request: &str) -> Result<v1::Batch, Status> {
        let answer = self.runtime.block_on(self.batches.revert_batch(asked(batch, request)));
        answer.map(|answer| answer.into_inner().batch.unwrap())
    }

    pub(crate) fn get(&mut self, batch: &str) -> v1::Batch {
        let request = v1::GetBatchRequest {
            workspace_id: "demo".to_owned(),
            batch: Some(v1::get_batch_request::Batch::BatchId(batch.to_owned())),
            view: v1::BatchView::Full.into(),
        };
        self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap()
    }

    /// All batches of the workspace, oldest first.
    pub(crate) fn all(&mut self) -> Vec<v1::Batch> {
        let (workspace_id, view) = ("demo".to_owned(), v1::BatchView::Full.into());
        let request = v1::ListBatchesRequest { workspace_id, view, page_size: 1000, ..Default::default() };
        let mut batches = self.runtime.block_on(self.batches.list_batches(request)).unwrap().into_inner().batches;
        batches.reverse();
        batches
    }

    /// Has a batch taken back, and answers the revert once it has ended.
    #[track_caller]
    pub(crate) fn reverted(&mut self, batch: &str, request: &str) -> v1::Batch {
        let stored = self.revert(batch, request).unwrap();
        self.ended(&stored.batch_id)
    }

    #[track_caller]
    pub(crate) fn ended(&mut self, batch: &str) -> v1::Batch {
        let mut ended = None;
        eventually("the batch ends", || {
            ended = Some(self.get(batch)).filter(|batch| batch.state() != v1::BatchState::Approved);
            ended.is_some()
        });
        ended.unwrap()
    }
}

/// A machine whose policy asks nobody about deletions, with its server and agent.
pub(crate) fn deleting() -> (Machine, Server, Running) {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let agent = machine.agent(&server);
    (machine, server, agent)
}

/// The id of a batch that was submitted and applied.
#[track_caller]
pub(crate) fn applied(machine: &Machine, server: &Server, document: &str) -> String {
    let (done, code) = machine.submit(server, document);
    assert_eq!(code, Some(0), "{done}");
    done["batchId"].as_str().unwrap().to_owned()
}

pub(crate) fn replace(path: &str, old: &str, new: &str) -> String {
    json!({ "path": path, "patches": [{ "operation": "replace", "oldText": old, "newText": new }] }).to_string()
}

/// The reason and the message of the first failure of a refused batch.
#[track_caller]
pub(crate) fn failure(batch: &v1::Batch) -> (String, String) {
    assert_eq!(batch.state(), v1::BatchState::Failed, "{batch:?}");
    let failure = &batch.report.as_ref().unwrap().failures[0];
    (failure.reason.clone(), format!("{} {}", failure.message, failure.hint))
}

#[track_caller]
pub(crate) fn refused(answer: Result<v1::Batch, Status>, reason: &str) -> String {
    let status = answer.unwrap_err();
    let details = String::from_utf8_lossy(status.details()).into_owned();
    assert!(details.contains(reason), "expected {reason}, found {status:?}");
    status.message().to_owned()
}

const EVERYTHING: &str = "\
diff --git a/b.txt b/b.txt
--- a/b.txt
+++ b/b.txt
@@ -1,2 +1,2 @@
-one
+1
 two
diff --git a/c.txt b/c.txt
deleted file mode 100644
--- a/c.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/d.txt b/deep/e.txt
similarity index 100%
rename from d.txt
rename to deep/e.txt
diff --git a/new.txt b/new.txt
new file mode 100755
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
";

/// Whatever a batch did is taken back by one batch, and done again by the revert of that; each is linked to the one before, and
/// the server's copies follow. Another revert of a batch that is taken back is refused, and so is a local undo.
#[test]
fn a_batch_is_reverted_and_so_is_the_revert() {
    let (machine, server, mut agent) = deleting();
    for (name, text) in [("b.txt", "one\ntwo\n"), ("c.txt", "gone\n"), ("d.txt", "moved\n")] {
        machine.put(name, text);
    }
    let before = machine.files();
    let first = applied(&machine, &server, EVERYTHING);
    let after = machine.files();
    assert_ne!(before, after);
    let mut caller = Caller::of(&server);
    let revert = caller.reverted(&first, "r1");
    assert_eq!(revert.state(), v1::BatchState::Applied, "{revert:?}");
    assert_eq!((revert.source(), &revert.reverts), (v1::BatchSource::Revert, &first));
    assert_eq!(revert.author.as_ref().unwrap().name, "ann");
    assert_eq!(machine.files(), before);
    let (read, _) = machine.ask(&server, "read", &["project/b.txt"]);
    assert_eq!(read["content"], "one\ntwo\n", "{read}");
    let original = caller.get(&first);
    assert_eq!((original.state(), &original.reverted_by), (v1::BatchState::Applied, &revert.batch_id));
    assert_eq!(caller.revert(&first, "r1").unwrap(), revert, "a repeat stores nothing");

    let message = refused(caller.revert(&first, "r2"), "ALREADY_APPLIED");
    assert!(message.contains(&revert.batch_id), "{message}");
    let local = machine.aptix(&["undo", "--root", "project", "--json", &first]).output().unwrap();
    let local: serde_json::Value = serde_json::from_slice(&local.stdout).unwrap();
    assert_eq!(local["errors"][0]["code"], "ALREADY_APPLIED", "{local}");
    assert!(local["errors"][0]["message"].as_str().unwrap().contains(&revert.batch_id), "{local}");

    // The revert of the revert, by the command line.
    let (redone, code) = machine.ask(&server, "revert", &["--reason", "right after all", &revert.batch_id]);
    assert_eq!(
        (code, &redone["state"], &redone["undoes"]),
        (Some(0), &"APPLIED".into(), &revert.batch_id.clone().into()),
        "{redone}"
    );
    assert_eq!(machine.files(), after);
    assert!(machine.is_executable("new.txt"));
    let id = redone["batchId"].as_str().unwrap();
    let labels = [&revert.batch_id, id].map(|id| caller.get(id).edit.unwrap().label);
    assert_eq!(labels, [format!("revert {first}"), format!("redo of revert {}", revert.batch_id)]);
    assert_eq!(caller.get(&first).reverted_by, "", "the batch is in effect again");
    assert_eq!(caller.reverted(&first, "r3").state(), v1::BatchState::Applied);
    assert_eq!(machine.files(), before);

    // The server's copies are where the files are, also of one that moved there and back.
    assert_eq!(agent.terminate(), Some(0));
    assert_eq!(machine.ask(&server, "read", &["project/d.txt"]).0["content"], "moved\n");
    assert_eq!(machine.ask(&server, "read", &["project/deep/e.txt"]).0["content"], serde_json::Value::Null);
    // All of it is known after a restart of both.
    let address = server.address.clone();
    drop((caller, server));
    let server = machine.server_at(&address);
    let mut caller = Caller::of(&server);
    let shown = machine.ask(&server, "show", &[&revert.batch_id]).0;
    assert_eq!(
        (&shown["steps"][0]["actorName"], &shown["steps"][0]["reason"]),
        (&"ann".into(), &"wrong file".into()),
        "{shown}"
    );
    assert_eq!(caller.revert(&first, "r1").unwrap().batch_id, revert.batch_id);
    refused(caller.revert(&first, "r4"), "ALREADY_APPLIED");
}

/// Later edits elsewhere stay. Those in the way are refused, and the refusal names the batch that made them; once that is taken
/// back, so can this be.
#[test]
fn a_revert_over_later_edits_keeps_them_or_names_their_batch() {
    let (machine, server, _agent) = served("auto");
    let lines: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    machine.put("a.txt", &lines);
    let first = applied(&machine, &server, &replace("a.txt", "line 2", "second"));
    let elsewhere = applied(&machine, &server, &replace("a.txt", "line 8", "eighth"));
    let above = applied(&machine, &server, &replace("a.txt", "second", "zweite"));
    let mut caller = Caller::of(&server);
    let (reason, said) = failure(&caller.reverted(&first, "r1"));
    assert_eq!(reason, "EXPECTED_MISMATCH");
    assert!(said.contains(&above) && said.contains(&format!("undo batch {above}")), "{said}");
    assert_eq!(caller.reverted(&above, "r2").state(), v1::BatchState::Applied);
    assert_eq!(caller.reverted(&first, "r3").state(), v1::BatchState::Applied);
    assert_eq!(machine.files()[0].1, lines.replace("line 8", "eighth"));
    assert_eq!(caller.get(&elsewhere).reverted_by, "");
    let created = applied(&machine, &server, &create("b.txt", "b\n"));
    let edited = applied(&machine, &server, &replace("b.txt", "b", "c"));
    let (reason, said) = failure(&caller.reverted(&created, "r4"));
    assert!(reason == "EXPECTED_MISMATCH" && said.contains(&edited), "{reason} {said}");
}

/// A call that is repeated with another batch or turn is no repeat, and a batch that changed nothing has nothing to take back.
#[test]
fn a_revert_that_is_no_repeat_or_does_nothing_is_refused() {
    let (machine, server, _agent) = deleting();
    let first = applied(&machine, &server, &create("a.txt", "a\n"));
    let second = applied(&machine, &server, &create("b.txt", "b\n"));
    let mut caller = Caller::of(&server);
    assert_eq!(caller.reverted(&first, "r1").state(), v1::BatchState::Applied);
    refused(caller.revert(&second, "r1"), "REQUEST_ID_REUSED");
    let mut turned = |request: &str, turn: &str| {
        let origin = Some(v1::Origin { turn_id: turn.to_owned(), ..v1::Origin::default() });
        let request = v1::RevertBatchRequest { origin, ..asked(&first, request) };
        let answer = caller.runtime.block_on(caller.batches.revert_batch(request));
        answer.map(|answer| answer.into_inner().batch.unwrap())
    };
    refused(turned("r1", "another"), "REQUEST_ID_REUSED");
    refused(turned("r2", &"x".repeat(65_537)), "TOO_LARGE");

    let same = json!({ "path": "b.txt", "content": "b\n", "overwrite": true }).to_string();
    let same = applied(&machine, &server, &same);
    let message = refused(caller.revert(&same, "r3"), "INVALID_STATE");
    assert!(message.contains("changed no file"), "{message}");
    assert_eq!(machine.files(), [("b.txt".to_owned(), "b\n".to_owned())]);
}

/// Of two callers at once one takes the batch back, and the other is told by which batch it was.
#[test]
fn two_callers_revert_a_batch_once() {
    let (machine, server, _agent) = deleting();
    let mut caller = Caller::of(&server);
    for round in 0..5 {
        let path = format!("{round}.txt");
        let batch = applied(&machine, &server, &create(&path, "text\n"));
        let (mut one, mut other) = (caller.batches.clone(), caller.batches.clone());
        let requests = [format!("one-{round}"), format!("other-{round}")].map(|request| asked(&batch, &request));
        let [first, second] = requests;
        let answers =
            caller.runtime.block_on(async { tokio::join!(one.revert_batch(first), other.revert_batch(second)) });
        let (mut done, mut said) = (Vec::new(), String::new());
        for answer in [answers.0, answers.1] {
            match answer {
                Ok(answer) => {
                    let ended = caller.ended(&answer.into_inner().batch.unwrap().batch_id);
                    match ended.state() {
                        v1::BatchState::Applied => done.push(ended.batch_id),
                        _ => {
                            let (reason, message) = failure(&ended);
                            assert_eq!(reason, "ALREADY_APPLIED", "{message}");
                            said = message;
                        }
                    }
                }
                Err(status) => said = refused(Err(status), "ALREADY_APPLIED"),
            }
        }
        assert!(done.len() == 1 && said.contains(&done[0]), "{done:?} {said}");
        assert_eq!(caller.get(&batch).reverted_by, done[0]);
        assert!(machine.files().is_empty());
    }
}

/// Of a batch that was applied in part, that part is taken back; of a large file, whose changed lines alone are kept, those lines.
#[test]
fn what_was_applied_is_reverted_of_a_part_and_of_a_large_file() {
    let (machine, server, _agent) = deleting();
    let lines: String = (0..30_000).map(|line| format!("line {line}\n")).collect();
    machine.put("large.txt", &lines);
    let mut caller = Caller::of(&server);
    let file = |path: &str, presence: v1::Presence| v1::FilePatch {
        target: Some(v1::file_patch::Target::Path(path.to_owned())),
        action: Some(v1::file_patch::Action::WriteFile(v1::WriteFile {
            content: Some(v1::write_file::Content::Text("text\n".to_owned())),
            presence: presence.into(),
            ..v1::WriteFile::default()
        })),
        ..v1::FilePatch::default()
    };
    let edit = v1::Edit {
        files: vec![file("none.txt", v1::Presence::Present), file("new.txt", v1::Presence::Absent)],
        atomicity: v1::Atomicity::PerFile.into(),
        required_features: vec!["per_file".to_owned()],
        ..v1::Edit::default()
    };
    let request = v1::SubmitBatchRequest {
        workspace_id: "demo".to_owned(),
        request_id: "part".to_owned(),
        content: Some(v1::submit_batch_request::Content::Edit(edit)),
        ..v1::SubmitBatchRequest::default()
    };
    let sent = caller.runtime.block_on(caller.batches.submit_batch(request)).unwrap().into_inner().batch.unwrap();
    let part = caller.ended(&sent.batch_id);
    assert_eq!((part.state(), machine.files().len()), (v1::BatchState::Partial, 2));
    let revert = caller.reverted(&part.batch_id, "r1");
    assert_eq!((revert.state(), revert.edit.unwrap().files.len()), (v1::BatchState::Applied, 1));
    let part = caller.get(&part.batch_id);
    assert_eq!((part.state(), part.reverted_by), (v1::BatchState::Partial, revert.batch_id));

    let large = applied(&machine, &server, &replace("large.txt", "line 15000\n", "changed\n"));
    applied(&machine, &server, &replace("large.txt", "line 7\n", "seventh\n"));
    assert_eq!(caller.reverted(&large, "r2").state(), v1::BatchState::Applied);
    assert_eq!(machine.files(), [("large.txt".to_owned(), lines.replace("line 7\n", "seventh\n"))]);
}

/// What cannot be taken back is refused with its reason: by the server what it knows, by the agent the rest.
#[test]
fn what_cannot_be_reverted_is_refused_by_name() {
    let machine = Machine::new().with_policy("deletions = \"ask\"\n");
    machine.put(".gitignore", "notes.txt\n");
    let server = machine.server();
    write(&machine.path("a.json"), &create("a.txt", "a\n"));
    let (sent, _) = machine.ask(&server, "submit", &["a.json"]);
    let waiting = sent["batchId"].as_str().unwrap();
    let mut caller = Caller::of(&server);
    let message = refused(caller.revert(waiting, "r1"), "INVALID_STATE");
    assert!(message.contains("wait until the batch is applied"), "{message}");
    refused(caller.revert("018f6d2e-7c1a-7b3e-9d55-0123456e0000", "r1"), "NOT_FOUND");
    let mut agent = machine.agent(&server);
    assert_eq!(caller.ended(waiting).state(), v1::BatchState::Applied);
    refused(caller.revert("no id", "r"), "INVALID_REQUEST");
    let long = v1::RevertBatchRequest { reason: "x".repeat(65_537), ..asked(waiting, "long") };
    let status = caller.runtime.block_on(caller.batches.revert_batch(long)).unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");

    let failed = machine.submit(&server, &create("a.txt", "again\n")).0;
    let failed = failed["batchId"].as_str().unwrap();
    let message = refused(caller.revert(failed, "r2"), "INVALID_STATE");
    assert!(message.contains("FAILED"), "{message}");

    // The agent's policy asks a person about deletions, and there is none.
    let (reason, said) = failure(&caller.reverted(waiting, "r3"));
    assert_eq!(reason, "APPROVAL_REQUIRED", "{said}");
    // Nothing discloses what a withheld file holds, nor whether it changed since.
    let hidden = applied(&machine, &server, &create("notes.txt", "secret\n"));
    for (request, text) in [("r4", "secret\n"), ("r5", "changed\n")] {
        machine.put("notes.txt", text);
        let batch = caller.reverted(&hidden, request);
        let failure = &batch.report.as_ref().unwrap().failures[0];
        assert_eq!((failure.reason.as_str(), failure.detail.as_str()), ("APPROVAL_REQUIRED", "WITHHELD"), "{batch:?}");
        assert!(!format!("{batch:?}").contains("secret"), "{batch:?}");
    }

    // What files were before is not kept any more.
    let edited = applied(&machine, &server, &replace("a.txt", "a", "b"));
    assert_eq!(agent.terminate(), Some(0));
    let history = machine.path("state");
    #[expect(clippy::disallowed_methods, reason = "a test's own directory")]
    std::fs::remove_dir_all(history).unwrap();
    let _agent = machine.agent(&server);
    wait_until_served(&server);
    let (reason, said) = failure(&caller.reverted(&edited, "r6"));
    assert!(reason == "NOT_FOUND" && !said.contains("aptix"), "{reason} {said}");
}

/// The lines of a file are edited and taken back while the agent is killed: each revert takes effect once.
#[test]
fn an_agent_killed_while_it_reverts_takes_each_batch_back_once() {
    let (machine, server, agent) = served("auto");
    machine.put("a.txt", "0\n");
    let mut caller = Caller::of(&server);
    let mut agent = Some(agent);
    for round in 0..12 {
        let edit = applied(&machine, &server, &replace("a.txt", "0\n", "0\n0\n"));
        let stored = caller.revert(&edit, &format!("r{round}")).unwrap();
        for _ in 0..3 {
            live_a_little(&machine, "agent.log");
            drop(agent.take());
            agent = Some(machine.agent(&server));
        }
        let ended = caller.ended(&stored.batch_id);
        assert_eq!(ended.state(), v1::BatchState::Applied, "{ended:?}");
        assert_eq!(machine.files()[0].1, "0\n", "round {round}");
        assert_eq!(caller.get(&edit).reverted_by, ended.batch_id);
    }
}
