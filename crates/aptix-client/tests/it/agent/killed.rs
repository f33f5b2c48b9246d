//! What was done on the workstation itself is reported in its order, also by an agent that is killed as by `kill -9`.

use std::path::Path;
use std::process::{Child, Command};

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use tokio::task::JoinSet;

use super::Approve;
use super::scene::{Scene, batch, create, eventually, internal};
use crate::fake_server::{FakeServer, Lost};

pub(super) fn aptix(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix"));
    command.args(arguments).args(["--root", "ws"]).current_dir(place).env("HOME", place);
    command.env("XDG_STATE_HOME", place.join("state")).env("XDG_CONFIG_HOME", place.join("config"));
    command
}

/// An agent, which is killed when this is dropped.
pub(super) struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// An agent, once the server has heard of it.
pub(super) async fn start(place: &Path, server: &FakeServer) -> Agent {
    let hellos = || server.script.lock().unwrap().hellos.len();
    let before = hellos();
    let arguments = ["agent", "--server", &server.url, "--workspace", "w", "--approve", "auto"];
    let agent = Agent(aptix(place, &arguments).spawn().unwrap());
    eventually("the agent has connected", || hellos() > before).await;
    agent
}

pub(super) fn apply(place: &Path, content: &str) {
    let document = format!(r#"{{"path":"a.txt","content":"{content}","overwrite":true}}"#);
    std::fs::write(place.join("local.json"), document).unwrap();
    let applied = aptix(place, &["apply", "local.json"]).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
}

/// The batches that were reported, without the lease under which they were.
pub(super) fn reported(server: &FakeServer) -> Vec<v1::ReportLocalBatchRequest> {
    let locals = server.script.lock().unwrap().locals.clone();
    let locals = locals.into_iter();
    locals.map(|local| v1::ReportLocalBatchRequest { lease_epoch: 0, lease_secret: "".into(), ..local }).collect()
}

/// The reports of the batch that was reported first. This server holds no files: the comparison afterwards may report the same
/// file once more, as a batch of its own.
fn reports_of_first(server: &FakeServer) -> Vec<v1::ReportLocalBatchRequest> {
    let mut reports = reported(server);
    let first = reports.first().map(|report| report.batch_id.clone());
    reports.retain(|report| Some(&report.batch_id) == first.as_ref());
    reports
}

/// Between the upload of the content and the report, and between the report and the note of it: the next agent sends the same
/// again, under the same id.
#[tokio::test(flavor = "multi_thread")]
async fn a_local_batch_is_reported_again_as_it_was() {
    for lost in [Lost::Report, Lost::Answer] {
        let mut tasks = JoinSet::new();
        let server = FakeServer::start(&mut tasks);
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        let agent = start(place.path(), &server).await;
        server.script.lock().unwrap().lose_local = Some(lost);
        apply(place.path(), "first");
        eventually("the report is on its way", || server.script.lock().unwrap().is_local_lost).await;
        assert!(server.script.lock().unwrap().blobs.contains_key(&sha256(b"first").to_string()));
        drop(agent);
        server.script.lock().unwrap().lose_local = None;
        let _killed_at_the_end = start(place.path(), &server).await;
        let stored = if lost == Lost::Answer { 2 } else { 1 };
        eventually("the batch is reported", || reports_of_first(&server).len() >= stored).await;
        let reports = reports_of_first(&server);
        assert!(reports.iter().all(|again| *again == reports[0]), "{lost:?}: {reports:?}");
    }
}

/// An undo is not reported before the batch of the server that it takes back, however long the report of that waits.
#[tokio::test]
async fn an_undo_is_reported_after_the_batch_that_it_takes_back() {
    const ATTEMPTS: usize = 6;
    let mut scene = Scene::set(Approve::Auto);
    scene.server.script.lock().unwrap().refuse_report = vec![internal(); 10 * ATTEMPTS].into();
    scene.server.send(batch(1, "new.txt", create("new\n")));
    scene.report(ATTEMPTS, 1).await;
    scene.stop().await;
    let mut undo = Command::new(env!("CARGO_BIN_EXE_aptix"));
    undo.args(["undo", "--root"]).arg(format!("ws={}", scene.place.path().join("ws").display()));
    let undone = undo.env("XDG_STATE_HOME", scene.place.path()).env("HOME", scene.place.path()).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
    let before = scene.server.script.lock().unwrap().reports.len();
    scene.server.script.lock().unwrap().refuse_report = vec![internal(); ATTEMPTS].into();
    scene.start(Approve::Auto);
    // The agent tries again after a while.
    eventually("the undo is reported", || !scene.server.script.lock().unwrap().locals.is_empty()).await;
    let script = scene.server.script.lock().unwrap();
    assert_eq!((script.reports.len(), script.refuse_report.len()), (before + ATTEMPTS + 1, 0));
    assert!(!script.locals[0].reverts.is_empty(), "{:?}", script.locals);
}
