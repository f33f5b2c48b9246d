//! A store that is being reopened during a read: what cannot be read now is not reported as damaged.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::access::{KeptToken, TokenAdded, Tokens};
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::session::{ModeChange, ModeChanged, SessionState};
use aptix_server::store::{
    Answer, Appended, BatchSelector, CloudFile, Due, DueKey, Event, Lease, Listed, ListedFile, ListedWorkspace,
    LocalAppended, LocalBatch, Store, StoreError, Transition, Transitioned, Unfinished, UploadId, WorkspaceCounts,
};
use tokio_util::bytes::Bytes;
use tonic::Code;

use crate::server::{Server, create_text, next_event, submit};

/// A store whose batches cannot be read for a while.
#[derive(Default)]
struct Reopening {
    inner: MemoryStore,
    is_open: AtomicBool,
}

impl Store for Reopening {
    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        if self.is_open.load(Ordering::SeqCst) {
            return self.inner.batch(workspace, which);
        }
        let cause = "the store is being opened again".to_owned();
        Box::pin(std::future::ready(Err(StoreError::ReadOnly { cause })))
    }
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        self.inner.append(batch)
    }
    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        self.inner.append_local(local)
    }
    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        self.inner.transition(step)
    }
    fn session(&self, workspace: WorkspaceId, session: SessionId) -> Answer<'_, Option<SessionState>> {
        self.inner.session(workspace, session)
    }
    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged> {
        self.inner.set_mode(change)
    }
    fn due(&self, now: UnixMillis, after: Option<DueKey>, limit: usize) -> Answer<'_, Vec<Due>> {
        self.inner.due(now, after, limit)
    }
    fn tokens(&self) -> Answer<'_, Tokens> {
        self.inner.tokens()
    }
    fn add_token(&self, token: KeptToken) -> Answer<'_, TokenAdded> {
        self.inner.add_token(token)
    }
    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>> {
        self.inner.end_token(name, ended)
    }
    fn create_workspace(&self, workspace: WorkspaceId) -> Answer<'_, bool> {
        self.inner.create_workspace(workspace)
    }
    fn history(&self) -> HistoryId {
        self.inner.history()
    }
    fn roots(&self, workspace: WorkspaceId) -> Answer<'_, Vec<String>> {
        self.inner.roots(workspace)
    }
    fn grant_lease(&self, workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> Answer<'_, u64> {
        self.inner.grant_lease(workspace, secret, roots)
    }
    fn lease(&self, workspace: WorkspaceId) -> Answer<'_, Lease> {
        self.inner.lease(workspace)
    }
    fn digest(&self, workspace: WorkspaceId, revision: Revision) -> Answer<'_, Option<Sha256Digest>> {
        self.inner.digest(workspace, revision)
    }
    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>> {
        self.inner.newest(workspace)
    }
    fn counts(&self, workspace: WorkspaceId) -> Answer<'_, Option<WorkspaceCounts>> {
        self.inner.counts(workspace)
    }
    fn workspaces(&self, after: Option<WorkspaceId>, limit: usize) -> Answer<'_, Vec<ListedWorkspace>> {
        self.inner.workspaces(after, limit)
    }
    fn batches(&self, workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Answer<'_, Vec<Listed>> {
        self.inner.batches(workspace, before, limit)
    }
    fn steps(&self, workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Answer<'_, Vec<Event>> {
        self.inner.steps(workspace, batch, newest)
    }

    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>> {
        self.inner.events(workspace, after, limit)
    }
    fn file(&self, workspace: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>> {
        self.inner.file(workspace, path)
    }
    fn files_with_key(&self, workspace: WorkspaceId, key: DocPath) -> Answer<'_, Vec<CloudFile>> {
        self.inner.files_with_key(workspace, key)
    }
    fn files(&self, workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Answer<'_, Vec<ListedFile>> {
        self.inner.files(workspace, after, limit)
    }
    fn blob_sizes(&self, workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>> {
        self.inner.blob_sizes(workspace, digests)
    }
    fn blob_chunk(&self, workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Answer<'_, Option<Bytes>> {
        self.inner.blob_chunk(workspace, digest, index)
    }
    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.inner.claim_upload(upload, workspace, blob)
    }
    fn unfinished_upload(&self, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, Option<Unfinished>> {
        self.inner.unfinished_upload(workspace, blob)
    }
    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()> {
        self.inner.release_upload(upload, workspace, digest)
    }
    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>> {
        self.inner.upload_chunk(upload, index)
    }
    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()> {
        self.inner.put_chunk(upload, index, bytes)
    }
    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.inner.commit_upload(upload, workspace, blob)
    }
    fn discard_upload(&self, upload: UploadId) {
        self.inner.discard_upload(upload);
    }
    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.failed()
    }
    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}

/// An agent would skip a batch that is reported as damaged, and the batch would wait for ever.
#[tokio::test]
async fn a_batch_that_cannot_be_read_now_is_not_passed_over() {
    let store = Arc::new(Reopening::default());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    let stored = client.submit(submit("w", "r", vec![create_text("a.txt", "")])).await.unwrap();
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let ended = next_event(&mut feed).await;
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
    let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    assert_eq!(client.batches.list_batches(list.clone()).await.unwrap_err().code(), Code::Unavailable);

    store.is_open.store(true, Ordering::SeqCst);
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().batch_id, stored.batch_id);
    assert_eq!(client.batches.list_batches(list).await.unwrap().into_inner().damaged, []);
}
