//! A disk whose flushes fail for a while, and a process that may open no more files, by faults that `strace` injects into a
//! real server: what was acknowledged was flushed, reads go on, and the server heals.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::processes::{Machine, Running, Server, create_request, eventually, get_request};
use crate::skip::skip;

/// Nothing that is waited for takes longer, unless it is broken.
const SOON: Duration = Duration::from_secs(120);

/// Faults in a running process, until this is dropped.
struct Faults {
    strace: Running,
    process: u32,
}

impl Faults {
    /// Lets these calls of every thread of a process fail; `None` where no process may be traced.
    fn inject(process: u32, faults: &[&str]) -> Option<Self> {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-p", &process.to_string()]);
        for fault in faults {
            command.args(["-e", &format!("inject={fault}")]);
        }
        let calls: Vec<_> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
        command.args(["-e", &format!("trace={}", calls.join(","))]);
        let mut strace: Child = match command.stderr(Stdio::piped()).spawn() {
            Ok(strace) => strace,
            Err(error) => {
                skip(&format!("strace cannot be started ({error}); install the package strace"));
                return None;
            }
        };
        let mut refused = None;
        eventually("strace traces every thread, or may not", || {
            refused = strace.try_wait().unwrap();
            refused.is_some() || is_traced(process)
        });
        if refused.is_some() {
            let mut stderr = String::new();
            strace.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            skip(&format!("strace may not trace here: {}", stderr.trim()));
            return None;
        }
        Some(Self { strace: Running(strace), process })
    }

    /// Ends them.
    fn end(mut self) {
        self.strace.terminate();
        eventually("strace lets go of the process", || tracers(self.process).iter().all(|tracer| tracer == "0"));
    }
}

/// Who traces each thread of a process.
fn tracers(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let states = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
    let tracer = |state: String| state.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(str::to_owned);
    states.filter_map(tracer).map(|tracer| tracer.trim().to_owned()).collect()
}

fn is_traced(process: u32) -> bool {
    tracers(process).iter().all(|tracer| tracer != "0")
}

/// An author who remembers what was acknowledged.
struct Author {
    batches: BatchServiceClient<Channel>,
    acknowledged: Vec<v1::Batch>,
    /// Request ids whose batch was not acknowledged.
    refused: Vec<String>,
}

impl Author {
    async fn connect(server: &Server) -> Self {
        let channel = Endpoint::new(server.url()).unwrap().connect().await.unwrap();
        Self { batches: BatchServiceClient::new(channel), acknowledged: Vec::new(), refused: Vec::new() }
    }

    async fn send(&mut self, request: &str) -> Result<v1::Batch, Status> {
        let answer = timeout(SOON, self.batches.submit_batch(create_request(request, &request.repeat(100))))
            .await
            .expect("an answer comes in time");
        Ok(answer?.into_inner().batch.unwrap())
    }

    /// Submits a batch of its own; whether it was acknowledged.
    async fn submit(&mut self) -> bool {
        let request = format!("r{}", self.acknowledged.len() + self.refused.len());
        match self.send(&request).await {
            Ok(batch) => self.acknowledged.push(batch),
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                self.refused.push(request);
                return false;
            }
        }
        true
    }

    /// Submits until a batch is acknowledged.
    async fn submit_until_healed(&mut self) {
        let deadline = Instant::now() + SOON;
        while !self.submit().await {
            assert!(Instant::now() < deadline, "the server heals");
        }
    }

    /// The request ids of all batches that are shown.
    async fn shown(&mut self) -> Vec<String> {
        let request = v1::ListBatchesRequest {
            workspace_id: "w".to_owned(),
            page_size: 1000,
            ..v1::ListBatchesRequest::default()
        };
        let answer = timeout(SOON, self.batches.list_batches(request)).await.expect("a list comes in time");
        answer.unwrap().into_inner().batches.into_iter().map(|batch| batch.request_id).collect()
    }

    /// Everything that was acknowledged is there as it was; answers what else is.
    async fn read_back(&mut self) -> Vec<String> {
        for batch in &self.acknowledged {
            let found = timeout(SOON, self.batches.get_batch(get_request(batch)))
                .await
                .expect("a batch comes in time")
                .unwrap();
            assert_eq!(found.into_inner().batch.as_ref(), Some(batch));
        }
        let mut others = self.shown().await;
        others.retain(|shown| !self.acknowledged.iter().any(|batch| batch.request_id == *shown));
        others
    }
}

/// Flushes of the journal fail while those of the probe before healing succeed: the server opens its store again and again,
/// and never acknowledges anything on the word of a later flush. Then all of them succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_failed_acknowledges_nothing_also_when_the_next_one_succeeds() {
    let machine = Machine::new();
    let server = machine.server();
    let mut author = Author::connect(&server).await;
    for _ in 0..5 {
        assert!(author.submit().await);
    }
    let Some(faults) = Faults::inject(server.id(), &["fdatasync:error=EIO"]) else { return };
    assert!(!author.submit().await, "nothing can be flushed");
    assert!(!author.submit().await, "nothing is acknowledged after a failed flush");
    assert_eq!(author.read_back().await, [""; 0], "what was refused is shown");
    // Once it seems to heal, the next flush fails as well.
    eventually("the store is opened again", || machine.logged("server.log").contains("takes writes again"));
    let deadline = Instant::now() + SOON;
    while machine.logged("server.log").matches("store refuses writes from now on").count() < 2 {
        assert!(!author.submit().await, "nothing can be flushed");
        assert!(Instant::now() < deadline, "the second flush fails");
    }
    let tried: Vec<_> = author.refused.clone();
    faults.end();
    author.submit_until_healed().await;

    // An unknown outcome is one of two, and stays it: stored once, or not at all; who asks again learns which.
    let others = author.read_back().await;
    assert!(others.iter().all(|shown| author.refused.contains(shown)), "{others:?}");
    drop(server);
    let server = machine.server();
    let mut again = Author::connect(&server).await;
    again.acknowledged = author.acknowledged;
    assert_eq!(again.read_back().await, others, "what is on disk differs from what was shown");
    for request in tried {
        let batch = again.send(&request).await.unwrap();
        again.acknowledged.push(batch);
    }
    let mut shown = again.shown().await;
    let count = shown.len();
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), count, "a batch is stored twice");
}

/// While no file can be opened the store stays read-only and readable; it heals when files can be opened again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_open_no_more_files_stays_readable_and_heals() {
    let machine = Machine::new();
    let server = machine.server();
    let mut author = Author::connect(&server).await;
    assert!(author.submit().await);
    let Some(faults) = Faults::inject(server.id(), &["fdatasync:error=EIO", "openat:error=EMFILE"]) else { return };
    assert!(!author.submit().await, "nothing can be flushed");
    eventually("healing fails by name", || machine.logged("server.log").contains("Too many open files"));
    assert_eq!(author.read_back().await, [""; 0], "what was refused is shown");
    assert!(!author.submit().await, "nothing is acknowledged meanwhile");
    faults.end();
    author.submit_until_healed().await;
    author.read_back().await;
    drop(server);
    let server = machine.server();
    let mut again = Author::connect(&server).await;
    again.acknowledged = author.acknowledged;
    again.read_back().await;
}
