//! Batches that were carried out on the workstation itself, taken back over the server: as any other by the agent that has them in
//! its history, and refused by name where they are not there, or the server does not know all that they did.

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use serde_json::json;

use crate::documents::create;
use crate::local_batches::{Batches, apply, copy, label, run};
use crate::processes::{Machine, eventually, wait_until_served};
use crate::revert::{Caller, applied, deleting, failure, refused, replace};

/// What `aptix apply` and `aptix undo` did is taken back by one batch, and brought back by the revert of that; later edits stay.
#[test]
fn a_batch_of_the_workstation_is_reverted_and_so_is_its_undo() {
    let (machine, server, _agent) = deleting();
    wait_until_served(&server);
    let lines: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    machine.put("a.txt", &lines);
    apply(&machine, &replace("a.txt", "line 2", "second"));
    apply(&machine, &create("b.txt", "b\n"));
    let [edited, created] = Batches::of(&server).local(2).try_into().unwrap();
    applied(&machine, &server, &replace("a.txt", "line 8", "eighth"));
    let mut caller = Caller::of(&server);
    for (batch, request) in [(&edited, "r1"), (&created, "r2")] {
        let revert = caller.reverted(&batch.batch_id, request);
        assert_eq!((revert.state(), &revert.reverts), (v1::BatchState::Applied, &batch.batch_id), "{revert:?}");
        assert_eq!(caller.get(&batch.batch_id).reverted_by, revert.batch_id);
    }
    assert_eq!(machine.files(), [("a.txt".to_owned(), lines.replace("line 8", "eighth"))]);
    let message = refused(caller.revert(&created.batch_id, "r3"), "ALREADY_APPLIED");
    assert!(message.contains("taken back already"), "{message}");

    // An undo at the workstation, and then one of that over the server by the command.
    let third = apply(&machine, &create("c.txt", "c\n"));
    let undone = run(&machine, &["undo", "--yes", third["batchId"].as_str().unwrap()]);
    Batches::of(&server).local(4);
    let undo = undone["batchId"].as_str().unwrap();
    let (redone, code) = machine.ask(&server, "revert", &[undo]);
    assert_eq!((code, &redone["state"], &redone["undoes"]), (Some(0), &"APPLIED".into(), &undo.into()), "{redone}");
    assert_eq!(machine.files()[1], ("c.txt".to_owned(), "c\n".to_owned()));
}

/// What moved has two paths at the server and no move; what no batch did, and what is of another workstation or of a state
/// directory that was put back, is in no history.
#[test]
fn what_the_history_does_not_have_or_the_server_does_not_know_is_refused() {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let mut agent = machine.agent(&server);
    wait_until_served(&server);
    machine.put("old.txt", "text\n");
    apply(
        &machine,
        "*** Begin Patch\n*** Update File: old.txt\n*** Move to: new.txt\n@@\n-text\n+moved\n*** End Patch\n",
    );
    let mut caller = Caller::of(&server);
    let moved = Batches::of(&server).local(1).remove(0).batch_id;
    let (reason, said) = failure(&caller.reverted(&moved, "r1"));
    assert_eq!(reason, "INVALID_STATE", "{said}");
    assert!(said.contains("moved \"old.txt\" to \"new.txt\"") && said.contains("`aptix undo`"), "{said}");

    assert_eq!(agent.terminate(), Some(0));
    copy(&machine, "state", "kept");
    machine.put("new.txt", "edited by hand\n");
    let mut agent = machine.agent(&server);
    apply(&machine, &create("late.txt", "late\n"));
    let batches = Batches::of(&server).local(3);
    let by_hand = batches.iter().find(|batch| label(batch) == "changed outside of a batch").unwrap();
    let late = batches.iter().find(|batch| is_of(batch, "late.txt")).unwrap();
    assert_eq!(agent.terminate(), Some(0));
    copy(&machine, "kept", "state");
    let mut agent = machine.agent(&server);
    wait_until_served(&server);
    for (request, batch) in [("r2", by_hand), ("r3", late)] {
        let batch = &batch.batch_id;
        let (reason, said) = failure(&caller.reverted(batch, request));
        assert!(reason == "NOT_FOUND" && said.contains(batch) && said.contains("workstation alone"), "{reason} {said}");
    }
    assert_eq!(agent.terminate(), Some(0));

    let other = Machine::new().with_policy("deletions = \"allow\"\n");
    other.put("new.txt", "moved\n");
    let _agent = other.agent(&server);
    wait_until_served(&server);
    let (reason, said) = failure(&caller.reverted(&moved, "r4"));
    assert!(reason == "NOT_FOUND" && said.contains("workstation alone"), "{reason} {said}");
    assert_eq!(other.files(), [("new.txt".to_owned(), "moved\n".to_owned())]);
}

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nzebra\n";

/// A file that was a key before the batch, one that is named as a secret, and one that is ignored: where no person agrees, nothing is
/// taken back, and neither the answers nor the record have a word or a digest of them.
#[test]
fn nothing_of_a_secret_before_image_reaches_the_server() {
    let (machine, server, _agent) = deleting();
    wait_until_served(&server);
    machine.put(".gitignore", "ignored.txt\n");
    let secrets = [("was-a-key.txt", KEY), (".env", "TOKEN=zebra\n"), ("ignored.txt", "zebra\n")];
    for (path, text) in secrets {
        machine.put(path, text);
        apply(&machine, &json!({ "path": path, "content": "open\n", "overwrite": true }).to_string());
    }
    let mut caller = Caller::of(&server);
    let mut local = Vec::new();
    eventually("all are reported", || {
        local = caller.all().into_iter().filter(|batch| batch.source() == v1::BatchSource::Local).collect();
        secrets.iter().all(|(path, _)| local.iter().any(|batch| is_of(batch, path)))
    });
    let mut sent = format!("{local:?}");
    for (path, _) in secrets {
        let batch = local.iter().rfind(|batch| is_of(batch, path)).unwrap();
        for command in ["by call", "by command"] {
            let failures = if command == "by call" {
                let revert = caller.reverted(&batch.batch_id, &format!("revert {path}").replace(' ', "-"));
                sent += &format!("{revert:?}");
                let failure = revert.report.unwrap().failures.remove(0);
                format!("{} {}", failure.reason, failure.detail)
            } else {
                let (answer, code) = machine.ask(&server, "revert", &[&batch.batch_id]);
                sent += &answer.to_string();
                assert_eq!(code, Some(1), "{answer}");
                let error = &answer["errors"][0];
                format!("{} {}", error["code"].as_str().unwrap(), error["detail"].as_str().unwrap())
            };
            // By its name alone, a file of secrets is closed to servers.
            let expected = if path == ".env" { "POLICY_DENIED SECRET" } else { "APPROVAL_REQUIRED WITHHELD" };
            assert_eq!(failures, expected, "{path} {command}");
        }
    }
    sent += &format!("{:?}", caller.all());
    assert!(!sent.contains("zebra"), "{sent}");
    for (path, text) in secrets {
        assert!(!sent.contains(&sha256(text.as_bytes()).to_string()), "the digest of {path}: {sent}");
        assert!(machine.files().contains(&(path.to_owned(), "open\n".to_owned())), "{path} is as the batch left it");
    }
}

/// Whether a batch is about this file, and was made by the command.
fn is_of(batch: &v1::Batch, path: &str) -> bool {
    let edit = batch.edit.as_ref().unwrap();
    edit.label.is_empty()
        && edit.files.iter().any(|file| file.target == Some(v1::file_patch::Target::Path(path.to_owned())))
}
