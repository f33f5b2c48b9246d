//! The calls of authors and reviewers: each is made again, with the same request id, until the server has answered it.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use crate::clock::pass;
use crate::network::{Link, dialler};
use crate::stage::{file, workspace};

/// How long a caller waits for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Until a call that was not answered is made again.
const AGAIN: Duration = Duration::from_millis(700);
/// The silence after which a connection is asked for a sign of life, and how long that may take.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// What is called for.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Submit { file: usize },
    Prepare { file: usize },
    Apply { id: String },
    Approve { id: String },
    Reject { id: String },
    Cancel { id: String },
    Revert { of: String },
    StrangersReport { id: String },
}

/// A call about a batch.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) batch: usize,
    pub(crate) workspace: usize,
    pub(crate) kind: Kind,
}

/// A call and its final answer.
pub(crate) type Answered = (Call, Result<v1::Batch, Status>);

/// A channel over a link, connected when it is used.
pub(crate) fn channel(link: Link) -> Channel {
    Endpoint::from_static("http://server")
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(dialler(link))
}

/// The line that a batch appends.
pub(crate) fn line(batch: usize) -> String {
    format!("by batch {batch}.")
}

/// Whether a refusal says something about the call, and not about the moment.
fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented
            | Code::DataLoss
    )
}

impl Call {
    /// Makes the call until it is answered for good, each time at the next server from this one on.
    pub(crate) async fn answered(self, servers: Vec<Channel>, first: usize) -> Answered {
        let mut servers = servers.iter().cycle().skip(first);
        loop {
            let once = async {
                match servers.next() {
                    Some(server) => self.once(server).await,
                    None => Err(Status::unavailable("there is no server")),
                }
            };
            match timeout(ANSWER, once).await {
                Ok(Ok(batch)) => return (self, Ok(batch)),
                Ok(Err(status)) if is_final(&status) => return (self, Err(status)),
                _ => pass(AGAIN).await,
            }
        }
    }

    async fn once(&self, channel: &Channel) -> Result<v1::Batch, Status> {
        let mut batches = BatchServiceClient::new(channel.clone());
        let (workspace_id, number) = (workspace(self.workspace), self.batch);
        let found = match self.kind.clone() {
            Kind::Submit { file } => batches.submit_batch(submit(workspace_id, number, file)).await.map(batch)?,
            Kind::Prepare { file } => batches.prepare_batch(prepare(workspace_id, number, file)).await.map(batch)?,
            Kind::Apply { id: batch_id } => {
                let (owner, request_id) = (owner(number), format!("apply-{number}"));
                let request =
                    v1::ApplyPreparedRequest { workspace_id, batch_id, owner, request_id, ..Default::default() };
                batches.apply_prepared(request).await.map(batch)?
            }
            Kind::Approve { id: batch_id } => {
                let reviewer = "reviewer".to_owned();
                let request = v1::ApproveBatchRequest { workspace_id, batch_id, reviewer, ..Default::default() };
                batches.approve_batch(request).await.map(batch)?
            }
            Kind::Reject { id: batch_id } => {
                let request = v1::RejectBatchRequest { workspace_id, batch_id, ..Default::default() };
                batches.reject_batch(request).await.map(batch)?
            }
            Kind::Cancel { id: batch_id } => {
                let request = v1::CancelBatchRequest { workspace_id, batch_id, ..Default::default() };
                batches.cancel_batch(request).await.map(batch)?
            }
            Kind::Revert { of: batch_id } => {
                let request_id = format!("store-{number}");
                let request = v1::RevertBatchRequest { workspace_id, batch_id, request_id, ..Default::default() };
                batches.revert_batch(request).await.map(batch)?
            }
            Kind::StrangersReport { id: batch_id } => {
                let request = v1::ReportBatchRequest {
                    workspace_id,
                    batch_id,
                    lease_epoch: 1,
                    lease_secret: vec![7; 32].into(),
                    report: Some(failed()),
                    ..Default::default()
                };
                AgentServiceClient::new(channel.clone()).report_batch(request).await.map(batch)?
            }
        };
        found.ok_or_else(|| Status::internal("an answer without a batch"))
    }
}

/// A report of a failure.
pub(crate) fn failed() -> v1::Report {
    let failure = v1::Failure { reason: "INTERNAL".to_owned(), message: "made up".to_owned(), ..Default::default() };
    v1::Report { outcome: v1::Outcome::Failed.into(), failures: vec![failure], ..Default::default() }
}

/// The batch that an answer has.
fn batch<T: Into<Stored>>(answer: Response<T>) -> Option<v1::Batch> {
    answer.into_inner().into().0
}

/// The batch of any answer.
struct Stored(Option<v1::Batch>);

macro_rules! stored {
    ($($answer:ident)*) => {
        $(impl From<v1::$answer> for Stored {
            fn from(answer: v1::$answer) -> Self {
                Self(answer.batch)
            }
        })*
    };
}

stored! {
    SubmitBatchResponse PrepareBatchResponse ApplyPreparedResponse ApproveBatchResponse RejectBatchResponse
    CancelBatchResponse RevertBatchResponse ReportBatchResponse
}

fn owner(batch: usize) -> String {
    format!("owner{batch}")
}

/// The document that appends the line of a batch.
fn document(batch: usize, number: usize) -> v1::Document {
    let patch = serde_json::json!({ "operation": "append_eof", "newText": format!("{}\n", line(batch)) });
    let text = serde_json::json!({ "path": file(number), "patches": [patch] }).to_string();
    v1::Document { dialect: String::new(), text: text.into_bytes().into() }
}

pub(crate) fn submit(workspace_id: String, batch: usize, file: usize) -> v1::SubmitBatchRequest {
    let content = Some(v1::submit_batch_request::Content::Document(document(batch, file)));
    v1::SubmitBatchRequest { workspace_id, request_id: format!("store-{batch}"), content, ..Default::default() }
}

fn prepare(workspace_id: String, batch: usize, file: usize) -> v1::PrepareBatchRequest {
    let content = Some(v1::prepare_batch_request::Content::Document(document(batch, file)));
    let (request_id, owner) = (format!("store-{batch}"), owner(batch));
    v1::PrepareBatchRequest { workspace_id, request_id, content, owner, ..Default::default() }
}
