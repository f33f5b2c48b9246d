//! A batch that was applied here while it was cancelled or rejected at the server: its change is reported as a batch of the
//! workstation, under an id of its own.

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use tokio::task::JoinSet;
use tonic::Code;

use super::Approve;
use super::killed::{aptix, reported, start};
use super::scene::{Scene, batch, create, eventually, id, insert};
use crate::fake_server::{FakeServer, Lost, refusal};

/// Lets the server hold batches in this state, and refuse so many reports for it.
fn hold(server: &FakeServer, state: v1::BatchState, refused: usize) {
    let mut script = server.script.lock().unwrap();
    script.held_as = Some(state);
    script.refuse_report = vec![refusal(Code::FailedPrecondition, "RESULT_FINAL", &[]); refused].into();
}

/// Whether a batch of the workstation left a file with this content.
fn left(local: &v1::ReportLocalBatchRequest, path: &str, content: &str) -> bool {
    let files = &local.report.as_ref().unwrap().files;
    files.iter().any(|file| file.path == path && file.sha256() == sha256(content.as_bytes()).to_string())
}

/// The batches that are about entries of the history, and not about files that differ.
fn of_entries(server: &FakeServer) -> Vec<v1::ReportLocalBatchRequest> {
    let is_entry = |local: &v1::ReportLocalBatchRequest| local.edit.as_ref().unwrap().label == "named by its author";
    reported(server).into_iter().filter(is_entry).collect()
}

fn named(batch: v1::Batch) -> v1::Batch {
    let edit = v1::Edit { label: "named by its author".to_owned(), ..batch.edit.unwrap() };
    v1::Batch { edit: Some(edit), ..batch }
}

#[tokio::test]
async fn a_batch_that_was_applied_while_it_was_cancelled_is_reported_as_local() {
    let mut scene = Scene::set(Approve::Auto);
    hold(&scene.server, v1::BatchState::Cancelled, 1);
    // The last bits of the id of a batch are zero, as a server mints it.
    scene.server.send(named(v1::Batch { revision: 1, ..insert(0) }));
    scene.report(1, 0).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    let [local] = of_entries(&scene.server).try_into().unwrap();
    assert_eq!(scene.file("a.txt"), "1\n2\n");
    assert!(left(&local, "a.txt", "1\n2\n") && local.reverts.is_empty(), "{local:?}");
    assert_ne!(local.batch_id, id(0), "that is the name of the batch that was cancelled");
    assert_eq!(scene.server.script.lock().unwrap().blobs[&sha256(b"1\n2\n").to_string()], b"1\n2\n");

    // The next agent reports neither again, and an undo names the batch of the workstation.
    scene.stop().await;
    scene.start(Approve::Auto);
    let mut undo = aptix(scene.place.path(), &["undo"]);
    let undone = undo.env("XDG_STATE_HOME", scene.place.path()).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    let undo = || reported(&scene.server).into_iter().find(|local| !local.reverts.is_empty());
    eventually("the undo is reported", || undo().is_some()).await;
    assert_eq!(undo().unwrap().reverts, local.batch_id);
    assert_eq!((of_entries(&scene.server), scene.server.script.lock().unwrap().reports.len()), (vec![local], 1));
}

/// A batch that failed or changed nothing on disk leaves nothing to report.
#[tokio::test]
async fn a_refused_batch_that_was_cancelled_is_dropped() {
    let scene = Scene::set(Approve::Never);
    hold(&scene.server, v1::BatchState::Cancelled, 1);
    scene.server.send(named(insert(1)));
    scene.report(1, 1).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    assert_eq!((scene.file("a.txt").as_str(), reported(&scene.server)), ("1\n", Vec::new()));
}

/// A server that holds the batch as applied, wholly or in part, by another report has its change.
#[tokio::test]
async fn a_batch_that_the_server_has_as_applied_is_not_reported_as_local() {
    for state in [v1::BatchState::Applied, v1::BatchState::Partial] {
        let scene = Scene::set(Approve::Auto);
        scene.server.send(batch(2, "b.txt", create("")));
        scene.report(1, 2).await;
        hold(&scene.server, state, 1);
        scene.server.send(named(insert(1)));
        scene.report(2, 1).await;
        eventually("the receipt is forgotten", || scene.outbox() == 0).await;
        assert_eq!(of_entries(&scene.server), [], "{state:?}");
    }
}

/// `kill -9` between the refusal and the report as a local batch, and between that and the note of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_meanwhile_reports_the_same_again() {
    for lost in [Lost::Report, Lost::Answer] {
        let mut tasks = JoinSet::new();
        let server = FakeServer::start(&mut tasks);
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        hold(&server, v1::BatchState::Rejected, 2);
        server.script.lock().unwrap().lose_local = Some(lost);
        let agent = start(place.path(), &server).await;
        server.send(named(batch(1, "new.txt", create("new\n"))));
        eventually("the report is on its way", || server.script.lock().unwrap().is_local_lost).await;
        drop(agent);
        server.script.lock().unwrap().lose_local = None;
        let _killed_at_the_end = start(place.path(), &server).await;
        let stored = if lost == Lost::Answer { 2 } else { 1 };
        eventually("the batch is reported", || of_entries(&server).len() >= stored).await;
        let all = of_entries(&server);
        assert!(all.iter().all(|again| *again == all[0] && left(again, "new.txt", "new\n")), "{lost:?}: {all:?}");
        assert_eq!(std::fs::read_to_string(place.path().join("ws/new.txt")).unwrap(), "new\n");
    }
}
