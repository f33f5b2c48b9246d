//! A server that does not know a call of the agent: the user reads what to do, nothing is lost, and the agent serves once the
//! server is updated.

use std::time::{Duration, Instant};

use aptix_model::wire::v1;
use tokio::task::JoinSet;
use tonic::Status;

use super::killed::{apply, aptix, reported};
use super::scene::{create, eventually};
use crate::fake_server::{FakeServer, Lost};

/// What the user reads.
const WHAT_TO_DO: &str = "update the server, or run an aptix of the server's version";

/// A running agent, which is killed when this is dropped.
struct Agent(std::process::Child);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A directory with a root `ws`, and the agent that serves it and logs to `log`.
fn scene(server: &FakeServer) -> (tempfile::TempDir, Agent) {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let log = std::fs::File::create(place.path().join("log")).unwrap();
    let arguments = ["agent", "--server", &server.url, "--workspace", "w", "--approve", "auto"];
    let agent = Agent(aptix(place.path(), &arguments).stderr(log).spawn().unwrap());
    (place, agent)
}

/// A server without `Serve`, as one of an earlier version or a proxy in front of another service.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_served_is_named_and_asked_less_and_less_often() {
    let mut tasks = JoinSet::new();
    let server = FakeServer::start(&mut tasks);
    server.script.lock().unwrap().refuse_watch = vec![Status::unimplemented(""); 4].into();
    let begun = Instant::now();
    let (place, _agent) = scene(&server);
    eventually("it connects once the server is updated", || server.script.lock().unwrap().hellos.len() >= 5).await;
    // Half of 200, 400, 800 and 1,600 ms at least.
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
    let log = std::fs::read_to_string(place.path().join("log")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("the server {} does not know a call of aptix {version}; {WHAT_TO_DO}", server.url);
    assert!(log.matches(&expected).count() >= 4, "{log}");
    server.send(super::scene::batch(1, "new.txt", create("new\n")));
    eventually("it serves", || !server.script.lock().unwrap().reports.is_empty()).await;
    let report = server.script.lock().unwrap().reports[0].report.clone().unwrap();
    assert_eq!(report.outcome(), v1::Outcome::Applied, "{report:?}");
}

/// A server without `ReportLocalBatch`: batches of the workstation wait, and are reported to the updated server.
#[tokio::test(flavor = "multi_thread")]
async fn local_batches_wait_for_a_server_that_takes_them() {
    let mut tasks = JoinSet::new();
    let server = FakeServer::start(&mut tasks);
    server.script.lock().unwrap().lose_local = Some(Lost::NoSuchCall);
    let (place, _agent) = scene(&server);
    eventually("the agent has connected", || !server.script.lock().unwrap().hellos.is_empty()).await;
    apply(place.path(), "one\\n");
    let log = || std::fs::read_to_string(place.path().join("log")).unwrap();
    eventually("the user reads what to do", || log().contains(WHAT_TO_DO)).await;
    assert!(reported(&server).is_empty());
    server.script.lock().unwrap().lose_local = None;
    eventually("it is reported", || !reported(&server).is_empty()).await;
    // This server holds no files: the comparison afterwards may report the same file once more, as a batch of its own.
    let first = reported(&server).remove(0);
    assert_eq!(reported(&server).iter().filter(|other| other.batch_id == first.batch_id).count(), 1);
}
