//! A machine that is served, and a caller in any language, which knows the server's address and the workspace's name.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::submit_batch_request::Content;
use tokio::runtime::Runtime;
use tokio::time::error::Elapsed;
use tonic::Status;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use super::scenario::Outcome;
use crate::processes::{Machine, Running, Server, connected, wait_until_served};
use crate::scenario_text::{Part, unescaped};

/// How long a batch may take to end.
const DEADLINE: Duration = Duration::from_secs(120);

/// The machine's project, the server and the agent, and the caller.
pub(crate) struct Scene {
    pub(crate) machine: Machine,
    _server: Server,
    _agent: Running,
    runtime: Runtime,
    pub(super) batches: BatchServiceClient<Channel>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let machine = Machine::new().with_policy("[limits]\nrefused_per_minute = 10000\n");
        let server = machine.server();
        let agent = machine.agent(&server);
        wait_until_served(&server);
        let (runtime, channel) = connected(&server);
        let batches = BatchServiceClient::new(channel).max_encoding_message_size(64 << 20);
        Self { machine, _server: server, _agent: agent, runtime, batches }
    }

    /// Makes the project's files those of a scenario.
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    pub(super) fn lay_out(&self, parts: &[Part]) {
        for entry in fs::read_dir(self.machine.path("project")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        for part in parts.iter().filter(|part| part.word == "file") {
            let place = self.place(&part.rest);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, unescaped(&part.body)).unwrap();
        }
    }

    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.machine.path(path.split(" mode=").next().unwrap())
    }

    /// Every file of the project with its bytes.
    pub(super) fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.machine.path("project")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { left.push(path) } else { found.push((path.clone(), fs::read(path).unwrap())) }
            }
        }
        found.sort();
        found
    }

    /// Submits a document and waits for the end of its batch. The error is why it was refused, or that it did not end.
    pub(crate) fn submit(&mut self, request_id: &str, text: Vec<u8>) -> Result<v1::Batch, Outcome> {
        let request = v1::SubmitBatchRequest {
            workspace_id: "demo".to_owned(),
            request_id: request_id.to_owned(),
            content: Some(Content::Document(v1::Document { dialect: String::new(), text: text.into() })),
            ..v1::SubmitBatchRequest::default()
        };
        let answer = self.runtime.block_on(self.batches.submit_batch(request)).map_err(|status| refused(&status))?;
        let batch_id = answer.into_inner().batch.unwrap().batch_id;
        let ended = self.runtime.block_on(ended(&mut self.batches, &batch_id));
        ended.map_err(|_| vec![format!("no end within {} s", DEADLINE.as_secs())])?;
        Ok(self.get(&batch_id))
    }

    /// The batch as a whole.
    pub(super) fn get(&mut self, batch_id: &str) -> v1::Batch {
        let batch = Some(v1::get_batch_request::Batch::BatchId(batch_id.to_owned()));
        let view = v1::BatchView::Full.into();
        let request = v1::GetBatchRequest { workspace_id: "demo".to_owned(), batch, view };
        self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap()
    }
}

/// Waits until the stream of a batch's states is over.
async fn ended(batches: &mut BatchServiceClient<Channel>, batch_id: &str) -> Result<(), Elapsed> {
    let (workspace_id, batch_id) = ("demo".to_owned(), batch_id.to_owned());
    let request = v1::WatchBatchRequest { workspace_id, batch_id, ..v1::WatchBatchRequest::default() };
    let mut states = batches.watch_batch(request).await.unwrap().into_inner();
    let all = async { while states.message().await.unwrap().is_some() {} };
    tokio::time::timeout(DEADLINE, all).await
}

/// What became of a document.
pub(crate) fn outcome(submitted: &Result<v1::Batch, Outcome>) -> Outcome {
    let batch = match submitted {
        Ok(batch) => batch,
        Err(refused) => return refused.clone(),
    };
    let failures = batch.report.iter().flat_map(|report| &report.failures);
    failures.map(|failure| format!("{} {}", failure.reason, failure.detail).trim_end().to_owned()).collect()
}

/// What a call was refused for: the code and the detail of the first violation, the code alone of the others.
fn refused(status: &Status) -> Outcome {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("{status:?}"));
    let first = format!("{} {}", info.reason, info.metadata.get("detail").map_or("", String::as_str));
    let violations = details.bad_request().map_or(&[][..], |request| &request.field_violations);
    let code = |violation: &tonic_types::FieldViolation| {
        violation.description.split([':', ' ']).next().unwrap_or_default().to_owned()
    };
    let others = violations.iter().skip(1).map(code);
    std::iter::once(first.trim_end().to_owned()).chain(others).collect()
}
