//! The store in a PostgreSQL database.
//!
//! Nothing in memory is taken for the truth: every write decides by rows that its own transaction reads, or compares with those that
//! this server committed last, under a lock of the workspace's row. Batches, sessions and leases are written in groups (`committer.rs`), everything else in transactions of its own,
//! which lock in the same order: the workspace's row first.

pub mod address;
mod backup;
mod bucket;
mod changes;
mod chunks;
mod committer;
mod connections;
mod counts;
mod database;
mod deletion;
mod fault;
mod files;
mod fleet;
mod flush;
mod group;
mod guard;
mod healing;
mod health;
mod hints;
mod job;
mod known;
mod load;
pub mod migration;
mod numbers;
mod open;
mod reads;
mod restore;
mod retain;
mod retention;
mod rows;
mod schema;
mod sessions;
mod sweep;
mod telling;
mod tokens;
mod uploads;
mod workspaces;
mod writes;

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::committer::{Groups, Order, gone};
pub use self::counts::Asked;
use self::database::Database;
use self::health::State;
use self::job::Job;
use self::rows::{Decided, Needs, Rows};
use self::writes::Append;
use super::access::{KeptToken, TokenAdded, Tokens};
use super::backup_summary::Summary;
use super::deletion::Deletion;
use super::fleet::{
    Company, Grant, Granted, Hints, Holder, LeaseName, Lifetime, Looked, Member, ServerId, UsedByOthers,
};
use super::retention::{Age, Retained, Retention};
use super::session::{ModeChange, ModeChanged, SessionState};
use super::{
    Answer, Appended, BatchSelector, CloudFile, Due, DueKey, Event, Lease, Listed, ListedFile, ListedWorkspace,
    LocalAppended, LocalBatch, Space, Store, StoreError, Transition, Transitioned, Unfinished, UploadId,
    WorkspaceCounts,
};
use crate::cpu_pool::Turnkeeper;
use crate::quota::used::Used;
use crate::steady_clock::SteadyClock;

/// Keeps everything in one PostgreSQL database.
pub struct PostgresStore {
    database: Arc<Database>,
    history: HistoryId,
    orders: mpsc::Sender<Order>,
    groups: Groups,
    /// Uploads that are given up.
    given_up: mpsc::Sender<UploadId>,
    /// The time by which callers ask about blobs.
    clock: Arc<SteadyClock>,
    /// Cancelled when the store is closed or dropped.
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl PostgresStore {
    /// What was asked of PostgreSQL since the store was opened.
    #[must_use]
    pub fn asked(&self) -> Asked {
        self.database.counts.so_far()
    }

    /// A write that goes into a group.
    fn grouped<I: Send + Sync + 'static, T: Send + Sync + 'static>(
        &self,
        (workspace, bytes): (WorkspaceId, usize),
        input: I,
        needs: fn(&I, &mut Needs),
        decide: fn(&I, &Rows) -> Decided<T>,
    ) -> Answer<'_, T> {
        let waited = Turnkeeper::waited().map(|waited| (waited, self.groups.ended()));
        let (job, answer) = Job::new(workspace, bytes, input, needs, decide);
        Box::pin(async move {
            self.database.health.admit()?;
            let order = Order::Write(Job { waited, ..job });
            self.orders.send(order).await.map_err(|_| gone(&self.database))?;
            answer.await.map_err(|_| gone(&self.database))?
        })
    }

    /// What a part of the store answers that needs the database.
    fn ask<'a, T: Send + 'a, F: Future<Output = Result<T, StoreError>> + Send + 'a>(
        &'a self,
        question: impl FnOnce(&'a Database) -> F,
    ) -> Answer<'a, T> {
        Box::pin(question(&self.database))
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl Store for PostgresStore {
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        let (workspace, new) = (batch.workspace.clone(), Append::new(batch));
        self.grouped((workspace, new.content.len()), new, Append::needs, writes::append)
    }

    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        let of = (local.batch.workspace.clone(), writes::bytes_of(local.batch.report.as_ref(), &local.files));
        self.grouped(of, local, writes::needs_of_local, writes::append_local)
    }

    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        let of = (step.workspace.clone(), writes::bytes_of(step.report.as_ref(), &step.files));
        self.grouped(of, step, writes::needs_of_step, writes::transition)
    }

    fn session(&self, workspace: WorkspaceId, session: SessionId) -> Answer<'_, Option<SessionState>> {
        self.ask(|database| async move { reads::session(database, &workspace, &session).await })
    }

    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged> {
        self.grouped((change.workspace.clone(), 0), change, sessions::needs_of_mode, sessions::set_mode)
    }

    fn tokens(&self) -> Answer<'_, Tokens> {
        self.ask(tokens::all)
    }

    fn add_token(&self, token: KeptToken) -> Answer<'_, TokenAdded> {
        self.ask(|database| async move { database.write(|| tokens::add(database, &token)).await })
    }

    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>> {
        self.ask(|database| async move { database.write(|| tokens::end(database, &name, ended)).await })
    }

    fn create_workspace(&self, workspace: WorkspaceId) -> Answer<'_, bool> {
        self.grouped((workspace.clone(), 0), workspace, workspaces::needs, workspaces::create)
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn grant_lease(&self, workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> Answer<'_, u64> {
        let grant = workspaces::Grant { workspace: workspace.clone(), secret, roots };
        self.grouped((workspace, 0), grant, workspaces::Grant::needs, workspaces::grant)
    }

    fn roots(&self, workspace: WorkspaceId) -> Answer<'_, Vec<String>> {
        self.ask(|database| async move { reads::roots(database, &workspace).await })
    }

    fn lease(&self, workspace: WorkspaceId) -> Answer<'_, Lease> {
        self.ask(|database| async move { reads::lease(database, &workspace).await })
    }

    fn digest(&self, workspace: WorkspaceId, revision: Revision) -> Answer<'_, Option<Sha256Digest>> {
        self.ask(|database| async move { reads::digest_of(database, &workspace, revision).await })
    }

    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>> {
        self.ask(|database| async move {
            let counts = reads::counts(database, &workspace).await?;
            Ok(counts.map(|counts| counts.newest))
        })
    }

    fn counts(&self, workspace: WorkspaceId) -> Answer<'_, Option<WorkspaceCounts>> {
        self.ask(|database| async move { reads::counts(database, &workspace).await })
    }

    fn used_bytes(&self, workspace: WorkspaceId) -> Answer<'_, u64> {
        self.ask(|database| async move { reads::used_bytes(database, &workspace).await })
    }

    fn space(&self) -> Answer<'_, Option<Space>> {
        // PostgreSQL does not report the space of its disk.
        Box::pin(std::future::ready(Ok(None)))
    }

    fn workspaces(&self, after: Option<WorkspaceId>, limit: usize) -> Answer<'_, Vec<ListedWorkspace>> {
        // The server lists them every few seconds: so the clock notices in time what the time of day does.
        let _ = self.clock.now();
        self.ask(|database| async move { reads::workspaces(database, after.as_ref(), limit).await })
    }

    fn due(&self, now: UnixMillis, after: Option<DueKey>, limit: usize) -> Answer<'_, Vec<Due>> {
        self.ask(|database| reads::due(database, now, after, limit))
    }

    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        self.ask(|database| async move { reads::batch(database, &workspace, &which).await })
    }

    fn batches(&self, workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Answer<'_, Vec<Listed>> {
        self.ask(|database| async move { reads::batches(database, &workspace, before, limit).await })
    }

    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>> {
        self.ask(|database| async move { reads::events(database, &workspace, after, limit).await })
    }

    fn steps(&self, workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Answer<'_, Vec<Event>> {
        self.ask(|database| async move { reads::steps(database, &workspace, batch, newest).await })
    }

    fn file(&self, workspace: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>> {
        self.ask(|database| async move { files::file(database, &workspace, &path).await })
    }

    fn files_with_key(&self, workspace: WorkspaceId, doc_path: DocPath) -> Answer<'_, Vec<CloudFile>> {
        self.ask(|database| async move { files::files_with_key(database, &workspace, &doc_path).await })
    }

    fn files(&self, workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Answer<'_, Vec<ListedFile>> {
        self.ask(|database| async move { files::files(database, &workspace, after.as_ref(), limit).await })
    }

    fn blob_sizes(&self, workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>> {
        let now = self.clock.now();
        self.ask(move |database| async move { uploads::blob_sizes(database, &workspace, &digests, now).await })
    }

    fn blob_chunk(&self, workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Answer<'_, Option<Bytes>> {
        self.ask(move |database| async move { uploads::blob_chunk(database, &workspace, digest, index).await })
    }

    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.ask(
            move |database| async move { database.write(|| uploads::claim(database, upload, &workspace, blob)).await },
        )
    }

    fn unfinished_upload(&self, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, Option<Unfinished>> {
        let now = self.clock.now();
        self.ask(move |database| async move { uploads::unfinished(database, &workspace, blob, now).await })
    }

    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()> {
        let released = self.ask(move |database| async move {
            database.write(|| uploads::release(database, upload, &workspace, digest)).await
        });
        Box::pin(async move {
            released.await?;
            self.discard_upload(upload);
            Ok(())
        })
    }

    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>> {
        self.ask(move |database| uploads::upload_chunk(database, upload, index))
    }

    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()> {
        self.ask(move |database| async move { uploads::put_chunk(database, (upload, index), bytes).await })
    }

    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            let database = &*self.database;
            let commit = || uploads::commit(database, upload, &workspace, blob, clock.now());
            let committed = database.write(commit).await;
            // The chunks of one that became no blob are removed.
            self.discard_upload(upload);
            committed
        })
    }

    fn sweep_blobs(&self, before: UnixMillis) -> Answer<'_, usize> {
        self.ask(move |database| sweep::sweep(database, before))
    }

    fn grow_older(&self, passed: Option<Duration>) -> Answer<'_, Age> {
        self.ask(move |database| async move { database.write(|| workspaces::grow_older(database, passed)).await })
    }

    fn retain(&self, order: Retention) -> Answer<'_, Retained> {
        self.ask(|database| async move { retain::retain(database, &order).await })
    }

    fn begin_deletion(&self, workspace: WorkspaceId, ended: Ended) -> Answer<'_, Option<Vec<TokenName>>> {
        self.ask(move |database| async move { database.write(|| deletion::begin(database, &workspace, ended)).await })
    }

    fn continue_deletion(&self, workspace: WorkspaceId) -> Answer<'_, Option<Deletion>> {
        self.ask(move |database| async move {
            let step = database.write(|| deletion::step(database, &workspace)).await?;
            database.dropped.notify_one();
            Ok(step)
        })
    }

    fn deletions(&self) -> Answer<'_, Vec<WorkspaceId>> {
        self.ask(reads::deletions)
    }

    fn back_up(&self, out: Box<dyn Write + Send>) -> Answer<'_, Summary> {
        let history = self.history;
        self.ask(move |database| backup::back_up(database, history, out))
    }

    fn discard_upload(&self, upload: UploadId) {
        if self.given_up.try_send(upload).is_err() {
            // A sweep removes it.
            tracing::debug!(upload = %upload.0, "left to the next sweep: too many uploads are given up at once");
        }
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.database.health.until(|state| matches!(state, State::Failed(_) | State::Ended)))
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.database.health.until(|state| *state == State::Well))
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        self.database.health.reopenings()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn tell(&self, used: Used) {
        self.database.mouth.tell_used(used);
    }

    fn told(&self) -> Option<UsedByOthers> {
        Some(self.database.ear.listen_to_uses())
    }

    fn hints(&self) -> Option<Hints> {
        Some(self.database.ear.listen())
    }

    fn join(&self, member: Member, lifetime: Lifetime) -> Answer<'_, Company> {
        Box::pin(async move {
            let database = &*self.database;
            Ok(database.in_company(database.write_membership(|| fleet::join(database, &member, lifetime)).await?))
        })
    }

    fn renew(&self, server: ServerId, lifetime: Lifetime) -> Answer<'_, Option<Company>> {
        Box::pin(async move {
            let database = &*self.database;
            let renewed = database.write_membership(|| fleet::renew(database, server, lifetime)).await?;
            Ok(renewed.map(|company| database.in_company(company)))
        })
    }

    fn leave(&self, server: ServerId) -> Answer<'_, ()> {
        self.ask(move |database| async move { database.write_membership(|| fleet::leave(database, server)).await })
    }

    fn take_lease(&self, grant: Grant) -> Answer<'_, Granted> {
        let (workspace, take) = (grant.workspace.clone(), fleet::Take::new(grant));
        self.grouped((workspace, 0), take, fleet::Take::needs, fleet::take)
    }

    fn release_leases(&self, leases: Vec<LeaseName>) -> Answer<'_, ()> {
        self.ask(move |database| async move { database.write(|| fleet::release(database, &leases)).await })
    }

    fn holder(&self, workspace: WorkspaceId) -> Answer<'_, Option<(Holder, Member)>> {
        self.ask(|database| async move { fleet::holder(database, &workspace).await })
    }

    fn look(&self, workspaces: Vec<WorkspaceId>) -> Answer<'_, Looked> {
        self.ask(|database| async move { fleet::look(database, &workspaces).await })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let (reply, written) = oneshot::channel();
            self.database.health.begin_close();
            self.orders.send(Order::Close(reply)).await.map_err(|_| gone(&self.database))?;
            let _ = written.await;
            self.database.health.close();
            self.closing.cancel();
            self.tasks.close();
            self.tasks.wait().await;
            self.database.close();
            Ok(())
        })
    }
}
