//! Who submits batches: connections, a token, and requests that are each made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// Bytes of the content of the one file that each batch writes.
pub(crate) const BYTES: usize = 4_000;

/// Connects so many times: each writer has a connection of its own.
pub(crate) async fn connect(address: &str, connections: usize) -> Result<Vec<Channel>> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
    let mut channels = Vec::new();
    for _ in 0..connections {
        channels.push(endpoint.connect().await?);
    }
    Ok(channels)
}

/// Those who submit batches to a workspace: writers, each over a connection of its own.
#[derive(Clone)]
pub(crate) struct Author {
    channels: Vec<Channel>,
    /// Their tokens, in turn; none where none are needed.
    tokens: Vec<MetadataValue<Ascii>>,
    workspace: Arc<str>,
    submitted: Arc<AtomicU64>,
}

impl Author {
    pub(crate) async fn connect(address: &str, connections: usize, tokens: &[String], workspace: &str) -> Result<Self> {
        let channels = connect(address, connections).await?;
        let tokens = tokens.iter().map(|token| format!("Bearer {token}").parse()).collect::<Result<_, _>>()?;
        Ok(Self { channels, tokens, workspace: workspace.into(), submitted: Arc::default() })
    }

    fn client(&self, writer: usize) -> Result<BatchServiceClient<Channel>> {
        let channel = self.channels.get(writer % self.channels.len().max(1)).context("an author is connected")?;
        Ok(BatchServiceClient::new(channel.clone()))
    }

    fn request<T>(&self, writer: usize, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = self.tokens.get(writer % self.tokens.len().max(1)) {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    /// Submits a new batch; answers its id.
    pub(crate) async fn submit(&self, writer: usize) -> Result<String> {
        let number = self.submitted.fetch_add(1, Ordering::Relaxed);
        let request = self.request(writer, write_file(&self.workspace, number));
        let answer = self.client(writer)?.submit_batch(request).await?.into_inner();
        Ok(answer.batch.context("the answer has the batch")?.batch_id)
    }

    /// Waits until a batch is applied, as its author does.
    pub(crate) async fn wait(&self, batch_id: String) -> Result<()> {
        let workspace_id = self.workspace.to_string();
        let request = v1::WatchBatchRequest { workspace_id, batch_id, ..Default::default() };
        let mut states = self.client(0)?.watch_batch(self.request(0, request)).await?.into_inner();
        while let Some(next) = states.message().await? {
            let batch = next.batch.ok_or_else(|| Status::data_loss("the message lacks the batch"))?;
            match batch.state() {
                v1::BatchState::Applied => return Ok(()),
                // It waits for its agent.
                v1::BatchState::Approved => {}
                other => bail!("the batch is not applied but {other:?}"),
            }
        }
        bail!("the stream ended before the batch was applied")
    }
}

/// Content of a file that no other batch writes.
pub(crate) fn content(number: u64) -> String {
    let line = format!("line of batch {number}, as long as lines of source code usually are\n");
    line.chars().cycle().take(BYTES).collect()
}

/// A request that replaces one of 64 files.
pub(crate) fn write_file(workspace: &str, number: u64) -> v1::SubmitBatchRequest {
    let content = Some(v1::create_file::Content::Text(content(number)));
    let create = v1::CreateFile { overwrite: true, content, ..Default::default() };
    let file = v1::FilePatch {
        target: Some(v1::file_patch::Target::Path(format!("file{}.txt", number % 64))),
        action: Some(v1::file_patch::Action::CreateFile(create)),
        ..Default::default()
    };
    let edit = v1::Edit { files: vec![file], ..Default::default() };
    v1::SubmitBatchRequest {
        workspace_id: workspace.to_owned(),
        request_id: format!("request-{number}"),
        content: Some(v1::submit_batch_request::Content::Edit(edit)),
        ..Default::default()
    }
}
