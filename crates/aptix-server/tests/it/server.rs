//! A whole server in this process, reached over in-memory connections, and the calls that tests make.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::Revision;
use aptix_model::presence::Presence;
use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::session_service_client::SessionServiceClient;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::dispatcher::feed::{Delivery, Hello};
use aptix_server::dispatcher::stream::{Items, Start, WatchError};
use aptix_server::dispatcher::{Dispatcher, Settings};
use aptix_server::options::{Changeable, Options};
use aptix_server::serve::{ServeError, serve};
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::bytes::Bytes;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, IntoRequest, Request, Status, Streaming};
use tonic_types::StatusExt;

/// Nothing that is waited for takes longer, unless it is broken.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    connections: mpsc::Sender<Result<DuplexStream, std::io::Error>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), ServeError>>,
}

/// One connection's clients.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) batches: BatchServiceClient<Channel>,
    pub(crate) agent: AgentServiceClient<Channel>,
    pub(crate) files: FileServiceClient<Channel>,
    pub(crate) workspaces: WorkspaceServiceClient<Channel>,
    pub(crate) sessions: SessionServiceClient<Channel>,
    pub(crate) tools: ToolServiceClient<Channel>,
    pub(crate) channel: Channel,
    /// The secret of the newest lease that was granted here, by workspace.
    pub(crate) secrets: HashMap<String, Bytes>,
}

/// An agent's connection. The server ends it when the sender is dropped.
pub(crate) struct Feed {
    pub(crate) sender: mpsc::Sender<v1::ServeRequest>,
    pub(crate) stream: Streaming<v1::ServeResponse>,
}

impl std::ops::Deref for Feed {
    type Target = Streaming<v1::ServeResponse>;

    fn deref(&self) -> &Self::Target {
        &self.stream
    }
}

impl std::ops::DerefMut for Feed {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.stream
    }
}

/// How the agent of a workspace with one root begins.
pub(crate) fn hello(workspace: &str, agent: &str) -> v1::Hello {
    let (workspace_id, agent_id) = (workspace.to_owned(), agent.to_owned());
    v1::Hello { workspace_id, agent_id, roots: vec!["app".to_owned()], ..v1::Hello::default() }
}

/// Begins to serve the workspace `w` without a connection. The agent sends nothing.
pub(crate) async fn serve_here(
    dispatcher: &Arc<Dispatcher>,
    held: Option<Sha256Digest>,
) -> Result<Items<Delivery>, WatchError> {
    let presence = Presence { version: String::new(), roots: vec!["app".to_owned()], mode: None, features: Vec::new() };
    let (workspace, agent) = ("w".parse().unwrap(), "agent".parse().unwrap());
    let hello = Hello { workspace, agent, from: Start::Revision(Revision(0)), held, presence };
    dispatcher.serve(hello, tokio_stream::pending(), std::convert::identity).await
}

/// Opens an agent's connection: its two directions.
pub(crate) async fn connect_agent(
    agent: &mut AgentServiceClient<Channel>,
    hello: impl IntoRequest<v1::Hello>,
) -> Result<(mpsc::Sender<v1::ServeRequest>, Streaming<v1::ServeResponse>), Status> {
    let (sender, requests) = mpsc::channel(64);
    let (metadata, extensions, hello) = hello.into_request().into_parts();
    let hello = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
    sender.send(hello).await.unwrap();
    let requests = Request::from_parts(metadata, extensions, ReceiverStream::new(requests));
    let answers = agent.serve(requests).await?;
    Ok((sender, answers.into_inner()))
}

impl Server {
    pub(crate) fn start() -> Self {
        // Without heartbeats to fall back on, every event has to wake its waiters.
        let dispatch = Settings { heartbeat: Duration::from_secs(3600), ..Settings::default() };
        Self::with(Options { dispatch, ..Options::default() })
    }

    pub(crate) fn with(options: Options) -> Self {
        Self::over(Arc::new(MemoryStore::default()), options)
    }

    pub(crate) fn over(store: Arc<dyn Store>, options: Options) -> Self {
        Self::asking(store, options, Approvals::default())
    }

    /// One that has persons approve batches, or other limits for tokens and workspaces.
    #[expect(clippy::disallowed_methods, reason = "the handle is kept, and awaited by `stop`")]
    pub(crate) fn asking(store: Arc<dyn Store>, options: Options, changeable: impl Into<Changeable>) -> Self {
        let (connections, incoming) = mpsc::channel(16);
        let (stop, stopped) = oneshot::channel::<()>();
        let stop_signal = async {
            let _ = stopped.await;
        };
        let task = tokio::spawn(serve(store, (options, changeable.into()), ReceiverStream::new(incoming), stop_signal));
        Self { connections, stop: Some(stop), task }
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Clients {
        let connections = self.connections.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let connections = connections.clone();
            async move {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                connections.send(Ok(theirs)).await.map_err(std::io::Error::other)?;
                Ok::<_, std::io::Error>(TokioIo::new(ours))
            }
        });
        let channel = Endpoint::from_static("http://server").connect_with_connector(connector).await.unwrap();
        Clients::over(channel)
    }

    /// A connection of its own, as a stream of bytes.
    pub(crate) async fn stream(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        self.connections.send(Ok(theirs)).await.unwrap();
        ours
    }

    /// Tells the server to stop, and does not wait.
    pub(crate) fn tell_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Ends it as if its process were killed.
    pub(crate) fn kill(&self) {
        self.task.abort();
    }

    pub(crate) async fn stop(mut self) -> Result<(), ServeError> {
        self.tell_to_stop();
        tokio::time::timeout(SOON, self.task).await.expect("the server ends in time").unwrap()
    }
}

impl Clients {
    pub(crate) fn over(channel: Channel) -> Self {
        Self {
            batches: BatchServiceClient::new(channel.clone()).max_encoding_message_size(64 << 20),
            agent: AgentServiceClient::new(channel.clone()),
            files: FileServiceClient::new(channel.clone()).max_encoding_message_size(64 << 20),
            workspaces: WorkspaceServiceClient::new(channel.clone()),
            sessions: SessionServiceClient::new(channel.clone()),
            tools: ToolServiceClient::new(channel.clone()),
            channel,
            secrets: HashMap::new(),
        }
    }

    pub(crate) async fn submit(&mut self, request: v1::SubmitBatchRequest) -> Result<v1::Batch, Status> {
        Ok(self.batches.submit_batch(request).await?.into_inner().batch.expect("the answer has the batch"))
    }

    /// Calls SubmitBatch with these bytes as the name of the workspace.
    pub(crate) async fn submit_bytes(&self, bytes: Vec<u8>) -> Result<(), Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let path = tonic::codegen::http::uri::PathAndQuery::from_static("/aptix.v1.BatchService/SubmitBatch");
        let codec = tonic_prost::ProstCodec::<Bytes, v1::SubmitBatchResponse>::default();
        client.unary(tonic::Request::new(Bytes::from(bytes)), path, codec).await.map(drop)
    }

    pub(crate) async fn get(&mut self, workspace: &str, id: &str) -> Result<v1::Batch, Status> {
        let batch = Some(v1::get_batch_request::Batch::BatchId(id.to_owned()));
        let request =
            v1::GetBatchRequest { workspace_id: workspace.to_owned(), batch, view: v1::BatchView::Full.into() };
        Ok(self.batches.get_batch(request).await?.into_inner().batch.expect("the answer has the batch"))
    }

    /// Begins to serve a workspace; answers the epoch and the rest of the stream. The secret is kept for reports, and to take
    /// the lease over.
    pub(crate) async fn lease(&mut self, workspace: &str, agent: &str, after: u64) -> Result<(u64, Feed), Status> {
        let lease_secret = self.secret(workspace);
        self.serve(v1::Hello { after_revision: after, lease_secret, ..hello(workspace, agent) }).await
    }

    /// As [`Self::lease`], with any hello.
    pub(crate) async fn serve(&mut self, hello: v1::Hello) -> Result<(u64, Feed), Status> {
        let workspace = hello.workspace_id.clone();
        let (sender, mut stream) = connect_agent(&mut self.agent, hello).await?;
        match next(&mut stream).await?.message {
            Some(v1::serve_response::Message::Lease(lease)) => {
                self.secrets.insert(workspace, lease.secret);
                Ok((lease.epoch, Feed { sender, stream }))
            }
            other => panic!("the first message is the lease, not {other:?}"),
        }
    }

    pub(crate) fn secret(&self, workspace: &str) -> Bytes {
        self.secrets.get(workspace).cloned().unwrap_or_default()
    }

    pub(crate) async fn report(
        &mut self,
        workspace: &str,
        batch: &str,
        lease_epoch: u64,
        report: v1::Report,
    ) -> Result<v1::Batch, Status> {
        self.report_decided(workspace, batch, (lease_epoch, None), report).await
    }

    /// Reports a batch about which this person decided.
    pub(crate) async fn report_decided(
        &mut self,
        workspace: &str,
        batch: &str,
        (lease_epoch, decided_by): (u64, Option<v1::Actor>),
        report: v1::Report,
    ) -> Result<v1::Batch, Status> {
        let (workspace_id, batch_id) = (workspace.to_owned(), batch.to_owned());
        let (report, lease_secret) = (Some(report), self.secret(workspace));
        let request = v1::ReportBatchRequest {
            workspace_id,
            batch_id,
            lease_epoch,
            report,
            lease_secret,
            decided_by,
            ..Default::default()
        };
        Ok(self.agent.report_batch(request).await?.into_inner().batch.expect("the answer has the batch"))
    }

    pub(crate) async fn upload(&mut self, workspace: &str, bytes: &[u8]) -> Result<v1::BlobRef, Status> {
        let blob = v1::BlobRef { sha256: sha256(bytes), size_bytes: bytes.len() as u64 };
        let chunks: Vec<_> = bytes.chunks(1 << 20).map(|chunk| part_chunk(chunk.to_vec())).collect();
        let parts = std::iter::once(part_start(workspace, blob)).chain(chunks).collect();
        self.upload_parts(parts).await
    }

    pub(crate) async fn upload_parts(&mut self, parts: Vec<v1::UploadBlobRequest>) -> Result<v1::BlobRef, Status> {
        let answer = self.files.upload_blob(tokio_stream::iter(parts)).await?;
        Ok(answer.into_inner().blob.expect("the answer has the blob"))
    }

    pub(crate) async fn download(&mut self, workspace: &str, sha256: &str) -> Result<Vec<u8>, Status> {
        let request = v1::DownloadBlobRequest { workspace_id: workspace.to_owned(), sha256: sha256.to_owned() };
        let mut stream = self.files.download_blob(request).await?.into_inner();
        let mut bytes = Vec::new();
        while let Some(part) = stream.next().await {
            bytes.extend_from_slice(&part?.chunk);
        }
        Ok(bytes)
    }

    pub(crate) async fn read(
        &mut self,
        workspace: &str,
        file: v1::file_selector::File,
    ) -> Result<v1::FileContent, Status> {
        let request = v1::ReadFileRequest {
            workspace_id: workspace.to_owned(),
            file: Some(v1::FileSelector { file: Some(file) }),
            ..v1::ReadFileRequest::default()
        };
        Ok(self.files.read_file(request).await?.into_inner().file.unwrap())
    }
}

/// The next message of a stream, which must not end.
pub(crate) async fn next<T>(stream: &mut Streaming<T>) -> Result<T, Status> {
    let message = tokio::time::timeout(SOON, stream.message()).await.expect("a message comes in time")?;
    Ok(message.expect("the stream continues"))
}

/// The next event of a feed, heartbeats left out.
pub(crate) async fn next_event(stream: &mut Streaming<v1::ServeResponse>) -> Result<v1::BatchEvent, Status> {
    loop {
        if let Some(v1::serve_response::Message::Event(event)) = next(stream).await?.message {
            return Ok(event);
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    aptix_model::digest::Sha256Digest::from_bytes(digest).to_string()
}

pub(crate) fn part_start(workspace: &str, blob: v1::BlobRef) -> v1::UploadBlobRequest {
    let start = v1::UploadBlobStart {
        workspace_id: workspace.to_owned(),
        blob: Some(blob),
        lease_secret: Bytes::new(),
        offset: 0,
    };
    v1::UploadBlobRequest { part: Some(v1::upload_blob_request::Part::Start(start)) }
}

pub(crate) fn part_chunk(bytes: Vec<u8>) -> v1::UploadBlobRequest {
    v1::UploadBlobRequest { part: Some(v1::upload_blob_request::Part::Chunk(bytes.into())) }
}

/// A submit of these file patches.
pub(crate) fn submit(workspace: &str, request: &str, files: Vec<v1::FilePatch>) -> v1::SubmitBatchRequest {
    let edit = v1::Edit { label: "test".to_owned(), key: "batch-key".to_owned(), files, ..v1::Edit::default() };
    v1::SubmitBatchRequest {
        workspace_id: workspace.to_owned(),
        request_id: request.to_owned(),
        content: Some(v1::submit_batch_request::Content::Edit(edit)),
        origin: Some(v1::Origin {
            session_id: "session-1".to_owned(),
            conversation_id: "conversation-1".to_owned(),
            turn_id: "turn-1".to_owned(),
        }),
        view: v1::BatchView::Full.into(),
        ..v1::SubmitBatchRequest::default()
    }
}

/// The edit of a submit that has one.
pub(crate) fn edit_of(request: &mut v1::SubmitBatchRequest) -> &mut v1::Edit {
    match &mut request.content {
        Some(v1::submit_batch_request::Content::Edit(edit)) => edit,
        content => panic!("{content:?} is no edit"),
    }
}

/// Replaces line 1 of a file that was `old`.
pub(crate) fn line_patch(doc_path: &str) -> v1::FilePatch {
    let change = |key: &str, operation| v1::Change {
        change_id: String::new(),
        key: key.to_owned(),
        description: format!("why {key}"),
        operation: Some(operation),
    };
    let insert = v1::InsertLines { after_line: 0, new_lines: vec!["first".to_owned()] };
    let replace = v1::ReplaceLines {
        start_line: 1,
        end_line: 1,
        expected_original_lines: vec!["old".to_owned()],
        new_lines: vec!["new".to_owned()],
    };
    let changes = vec![
        change("insert", v1::change::Operation::Insert(insert)),
        change("replace", v1::change::Operation::Replace(replace)),
    ];
    v1::FilePatch {
        file_patch_id: String::new(),
        key: format!("key of {doc_path}"),
        label: String::new(),
        target: Some(v1::file_patch::Target::DocPath(doc_path.to_owned())),
        action: Some(v1::file_patch::Action::LinePatch(v1::LinePatch { original_sha256: sha256(b"old\n"), changes })),
    }
}

/// Creates a file.
pub(crate) fn create_file(path: &str, content: v1::create_file::Content) -> v1::FilePatch {
    let create = v1::CreateFile { overwrite: true, content: Some(content), content_format: None };
    v1::FilePatch {
        file_patch_id: String::new(),
        key: format!("key of {path}"),
        label: String::new(),
        target: Some(v1::file_patch::Target::Path(path.to_owned())),
        action: Some(v1::file_patch::Action::CreateFile(create)),
    }
}

pub(crate) fn create_text(path: &str, text: &str) -> v1::FilePatch {
    create_file(path, v1::create_file::Content::Text(text.to_owned()))
}

/// A report that a batch of created files was applied, which replaced others: root, path, content.
pub(crate) fn applied(files: &[(&str, &str, &[u8])]) -> v1::Report {
    let files = files.iter().map(|(root, path, content)| v1::FileReport {
        path: (*path).to_owned(),
        doc_path: format!("{root}/{}", path.to_lowercase()),
        status: v1::FileStatus::Modified.into(),
        sha256_before: Some(sha256(b"old\n")),
        sha256: Some(sha256(content)),
        renamed_to: None,
        size_bytes: Some(content.len() as u64),
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: Vec::new(),
        withheld: String::new(),
    });
    v1::Report { outcome: v1::Outcome::Applied.into(), files: files.collect(), ..v1::Report::default() }
}

/// What became of the two changes of a line patch.
pub(crate) fn two_changes() -> Vec<v1::ChangeReport> {
    vec![v1::ChangeReport { tier: "exact".to_owned(), candidates: 1, start_line: 1, end_line: 1 }; 2]
}

/// A report that nothing changed, for this reason.
pub(crate) fn failed(reason: &str) -> v1::Report {
    let failure = v1::Failure { reason: reason.to_owned(), message: "it failed".to_owned(), ..v1::Failure::default() };
    v1::Report { outcome: v1::Outcome::Failed.into(), failures: vec![failure], ..v1::Report::default() }
}

/// What a refusal says: its code, its reason, its detail.
pub(crate) fn refusal(status: &Status) -> (Code, String, String) {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("a refusal has ErrorInfo: {status:?}"));
    assert_eq!(info.domain, "aptix.dev");
    (status.code(), info.reason.clone(), info.metadata.get("detail").cloned().unwrap_or_default())
}

/// The fields a refusal names.
pub(crate) fn fields(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|request| request.field_violations.clone()).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}

/// Holds a refusal against what it must be.
pub(crate) fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, reason: &str, detail: &str) {
    let status = answer.expect_err("the call is refused");
    assert_eq!(refusal(&status), (code, reason.to_owned(), detail.to_owned()), "{}", status.message());
}
