//! A store that forgets everything when it is dropped: for tests, and for trying the server out.

mod deletion;
mod retention;
pub mod shared;
mod workspace;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::batch_event::EventFacts;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, HistoryId, RequestId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::{Session, SessionMode};
use aptix_model::token::{Ended, Token};
use tokio::sync::watch;
use tokio_util::bytes::Bytes;

use super::access::{KeptInMemory, KeptToken, TokenAdded, Tokens};
use super::append::{former, replacement, submitted};
use super::backup_summary::Summary;
use super::deletion::Deletion;
use super::retention::{Age, Notes, Retained, Retention};
use super::session::{ModeChange, ModeChanged, SessionState};
use super::{
    Answer, Appended, BatchSelector, CloudFile, Due, DueKey, Event, Known, Lease, Listed, ListedFile, ListedWorkspace,
    LocalAppended, LocalBatch, Space, Store, StoreError, Transition, Transitioned, Unfinished, UploadId,
    WorkspaceCounts, links, session,
};
use crate::mint;

/// Keeps everything in maps.
#[derive(Debug)]
pub struct MemoryStore {
    history: HistoryId,
    state: Mutex<State>,
    space: Mutex<Option<Space>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { history: HistoryId(mint::uuid()), state: Mutex::default(), space: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct State {
    workspaces: HashMap<WorkspaceId, Workspace>,
    uploads: HashMap<UploadId, Vec<Bytes>>,
    /// The uploads that can be resumed, by blob, with its size.
    unfinished: HashMap<(WorkspaceId, Sha256Digest), (UploadId, u64)>,
    tokens: KeptInMemory,
    /// The workspaces that are being deleted.
    deletions: HashMap<WorkspaceId, Deletion>,
    closed: bool,
    /// How old the store is.
    age: Age,
}

#[derive(Debug, Default)]
struct Workspace {
    /// Whether a batch or an agent made it known; an upload alone does not.
    known: bool,
    lease: Lease,
    roots: Vec<String>,
    /// By revision; `None` where one was removed.
    events: Vec<Option<(BatchId, Sha256Digest, EventFacts)>>,
    trimmed: (Revision, Option<Sha256Digest>),
    notes: Notes,
    batches: HashMap<BatchId, BatchRecord>,
    requests: HashMap<RequestId, BatchId>,
    /// The newest batches of plans whose place another batch took.
    hunks: HashMap<FilePatchId, BatchId>,
    order: BTreeMap<Revision, BatchId>,
    files: BTreeMap<RootedPath, CloudFile>,
    blobs: HashMap<Sha256Digest, Arc<[Bytes]>>,
    sessions: HashMap<SessionId, Session>,
}

impl MemoryStore {
    /// Has it answer this as the space of its file system.
    pub fn set_space(&self, space: Option<Space>) {
        *self.space.lock().unwrap_or_else(PoisonError::into_inner) = space;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Send + 'static>(&self, workspace: &WorkspaceId, read: impl FnOnce(&Workspace) -> T) -> Answer<'_, T> {
        let state = self.lock();
        let value = match state.workspaces.get(workspace) {
            Some(workspace) => read(workspace),
            None => read(&Workspace::default()),
        };
        Box::pin(std::future::ready(Ok(value)))
    }

    fn write<T: Send + 'static>(&self, write: impl FnOnce(&mut State) -> T) -> Answer<'_, T> {
        let mut state = self.lock();
        let value = if state.closed { Err(StoreError::Closed) } else { Ok(write(&mut state)) };
        Box::pin(std::future::ready(value))
    }
}

impl Store for MemoryStore {
    fn space(&self) -> Answer<'_, Option<Space>> {
        let space = *self.space.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(async move { Ok(space) })
    }

    fn append(&self, mut batch: BatchRecord) -> Answer<'_, Appended> {
        let of = batch.workspace.clone();
        self.write_in(&of, |state| {
            let workspace = state.workspaces.entry(batch.workspace.clone()).or_default();
            if let Some(known) = workspace.requests.get(&batch.request_id).and_then(|id| workspace.batches.get(id)) {
                return Appended::Known(Box::new(Known { stored: known.clone(), offered: batch }));
            }
            if let Some(failure) = workspace.restricts(&batch) {
                return Appended::Restricted(failure);
            }
            if let Some(former) = former(&batch) {
                let former = workspace.batches.get(&former).cloned();
                let hunk = batch.preparation().and_then(|preparation| preparation.hunk);
                let newest = hunk.map(|hunk| workspace.newest_of(hunk));
                match former.as_ref().and_then(|former| replacement(&batch, former, newest)) {
                    Some(step) => drop(step.and_then(|step| workspace.step(step))),
                    None => return Appended::NotReplaced(former.map(Box::new)),
                }
                workspace.hunks.extend(hunk.map(|hunk| (hunk, batch.id)));
            }
            workspace.known = true;
            let new = session::of(&batch.origin).filter(|id| !workspace.sessions.contains_key(id));
            if let Some(id) = new.filter(|_| workspace.has_room()) {
                workspace.sessions.insert(id.clone(), session::created_by(&batch, id));
            }
            batch.revision = workspace.happen(batch.id, submitted(&batch));
            workspace.requests.insert(batch.request_id.clone(), batch.id);
            workspace.order.insert(batch.revision, batch.id);
            workspace.batches.insert(batch.id, batch.clone());
            Appended::New(Box::new(batch))
        })
    }

    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        let of = local.batch.workspace.clone();
        let appended = self.write_in(&of, |state| {
            let facts = local.facts();
            let LocalBatch { mut batch, reverts, lease, files, .. } = local;
            if let Some(known) = state.workspaces.values().find_map(|workspace| workspace.batches.get(&batch.id)) {
                return Ok(LocalAppended::Known(Box::new(known.clone())));
            }
            let workspace = state.workspaces.entry(batch.workspace.clone()).or_default();
            if let Some(known) = workspace.requests.get(&batch.request_id).and_then(|id| workspace.batches.get(id)) {
                return Ok(LocalAppended::Known(Box::new(known.clone())));
            }
            if !workspace.lease.admits(lease) {
                return Ok(LocalAppended::OtherLease);
            }
            let linked = links::changed(batch.id, reverts, |id| Ok(workspace.batches.get(&id).cloned()))?;
            workspace.batches.extend(linked.into_iter().map(|batch| (batch.id, batch)));
            batch.revision = workspace.happen(batch.id, facts);
            workspace.requests.insert(batch.request_id.clone(), batch.id);
            workspace.order.insert(batch.revision, batch.id);
            workspace.batches.insert(batch.id, batch.clone());
            workspace.update(files, batch.revision);
            Ok(LocalAppended::New(Box::new(batch)))
        });
        Box::pin(async { appended.await? })
    }

    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        let of = step.workspace.clone();
        let transitioned = self.write_in(&of, |state| {
            let Some(workspace) = state.workspaces.get_mut(&step.workspace) else { return Ok(Transitioned::Unknown) };
            let Some(batch) = workspace.batches.get(&step.batch) else { return Ok(Transitioned::Unknown) };
            if batch.state != step.from {
                return Ok(Transitioned::OtherState(batch.clone()));
            }
            if step.lease.is_some_and(|proof| !workspace.lease.admits(proof)) {
                return Ok(Transitioned::OtherLease);
            }
            if let Some(failure) = workspace.restricts(batch).filter(|_| session::lets_go(step.to)) {
                return Ok(Transitioned::Restricted(failure));
            }
            if let Some(request) = &step.freed {
                let used = *workspace.requests.entry(request.clone()).or_insert(step.batch);
                if used != step.batch {
                    return Ok(Transitioned::Reused(used));
                }
            }
            let reverted = links::reverted(batch, &step);
            let linked = links::changed(step.batch, reverted, |id| Ok(workspace.batches.get(&id).cloned()))?;
            workspace.batches.extend(linked.into_iter().map(|batch| (batch.id, batch)));
            let files = step.files.clone();
            let Some(batch) = workspace.step(step) else { return Ok(Transitioned::Unknown) };
            workspace.update(files, batch.revision);
            Ok(Transitioned::Done(batch))
        });
        Box::pin(async { transitioned.await? })
    }

    fn session(&self, workspace: WorkspaceId, session: SessionId) -> Answer<'_, Option<SessionState>> {
        self.read(&workspace, |workspace| {
            let found = workspace.sessions.get(&session)?.clone();
            Some(session::settled(found, workspace.in_flight_of(&session)))
        })
    }

    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged> {
        self.write_in(&change.workspace, |state| {
            state.workspaces.entry(change.workspace.clone()).or_default().set_mode(&change)
        })
    }

    fn tokens(&self) -> Answer<'_, Tokens> {
        Box::pin(std::future::ready(Ok(self.lock().tokens.all())))
    }

    fn add_token(&self, kept: KeptToken) -> Answer<'_, TokenAdded> {
        self.write(|State { tokens, workspaces, .. }| {
            tokens.add(kept, |id| workspaces.get(id).is_some_and(|workspace| workspace.known))
        })
    }

    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>> {
        self.write(|state| state.tokens.end(&name, ended))
    }

    fn create_workspace(&self, workspace: WorkspaceId) -> Answer<'_, bool> {
        self.write_in(&workspace, |state| {
            !std::mem::replace(&mut state.workspaces.entry(workspace.clone()).or_default().known, true)
        })
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn grant_lease(&self, workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> Answer<'_, u64> {
        self.write_in(&workspace, |state| {
            let workspace = state.workspaces.entry(workspace.clone()).or_default();
            workspace.known = true;
            workspace.roots = roots;
            workspace.lease = Lease { epoch: workspace.lease.epoch + 1, secret: Some(secret) };
            workspace.lease.epoch
        })
    }

    fn roots(&self, workspace: WorkspaceId) -> Answer<'_, Vec<String>> {
        self.read(&workspace, |workspace| workspace.roots.clone())
    }

    fn lease(&self, workspace: WorkspaceId) -> Answer<'_, Lease> {
        self.read(&workspace, |workspace| workspace.lease)
    }

    fn digest(&self, workspace: WorkspaceId, revision: Revision) -> Answer<'_, Option<Sha256Digest>> {
        self.read(&workspace, |workspace| workspace.digest(revision))
    }

    fn counts(&self, workspace: WorkspaceId) -> Answer<'_, Option<WorkspaceCounts>> {
        self.read(&workspace, |workspace| workspace.known.then(|| workspace.counts()))
    }

    fn used_bytes(&self, workspace: WorkspaceId) -> Answer<'_, u64> {
        Box::pin(std::future::ready(Ok(self.lock().used_bytes(&workspace))))
    }

    fn workspaces(&self, after: Option<WorkspaceId>, limit: usize) -> Answer<'_, Vec<ListedWorkspace>> {
        let state = self.lock();
        let known = state.workspaces.iter().filter(|(id, workspace)| workspace.known && after.as_ref() < Some(id));
        let mut listed: Vec<_> = known.map(|(id, workspace)| (id.clone(), Some(workspace.counts()))).collect();
        listed.sort_by(|(one, _), (other, _)| one.cmp(other));
        listed.truncate(limit);
        Box::pin(std::future::ready(Ok(listed)))
    }

    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>> {
        self.read(&workspace, |workspace| workspace.known.then(|| workspace.newest()))
    }

    fn due(&self, now: UnixMillis, after: Option<DueKey>, limit: usize) -> Answer<'_, Vec<Due>> {
        let state = self.lock();
        let batches = state.workspaces.values().flat_map(|workspace| workspace.batches.values());
        let due = batches.filter_map(|batch| {
            let expires = batch.expires()?;
            let key = (expires, batch.id);
            let is_listed = expires <= now && after.is_none_or(|after| key > after);
            is_listed.then(|| Due { key, workspace: batch.workspace.clone() })
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|due| due.key);
        due.truncate(limit);
        Box::pin(std::future::ready(Ok(due)))
    }

    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        self.read(&workspace, |workspace| {
            let id = match which {
                BatchSelector::Id(id) => id,
                BatchSelector::Request(request) => *workspace.requests.get(&request)?,
                BatchSelector::Hunk(hunk) => workspace.newest_of(hunk),
            };
            let mut batch = workspace.batches.get(&id).cloned()?;
            let session = session::of(&batch.origin).and_then(|id| workspace.sessions.get(&id));
            let is_closed = session.is_some_and(|session| session.mode == SessionMode::Restricted);
            batch.is_restricted = is_closed && session::is_in_flight(batch.state);
            Some(batch)
        })
    }

    fn batches(&self, workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Answer<'_, Vec<Listed>> {
        let before = before.unwrap_or(Revision(u64::MAX));
        self.read(&workspace, |workspace| {
            let older = workspace.order.range(..before).rev().take(limit);
            older.map(|(revision, batch)| Ok(Event::listed(*revision, *batch))).collect()
        })
    }

    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>> {
        let read = self.read(&workspace, |workspace| workspace.events(after, limit));
        Box::pin(async { read.await? })
    }

    fn steps(&self, workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Answer<'_, Vec<Event>> {
        self.read(&workspace, |workspace| {
            let events = (1..=newest.0).rev().filter_map(|revision| workspace.event(Revision(revision)));
            events.filter(|event| event.batch == batch).collect()
        })
    }

    fn file(&self, workspace: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>> {
        self.read(&workspace, |workspace| workspace.files.get(&path).cloned())
    }

    fn files_with_key(&self, workspace: WorkspaceId, doc_path: DocPath) -> Answer<'_, Vec<CloudFile>> {
        self.read(&workspace, |workspace| {
            workspace.files.values().filter(|file| file.doc_path == doc_path).cloned().collect()
        })
    }

    fn files(&self, workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Answer<'_, Vec<ListedFile>> {
        self.read(&workspace, |workspace| {
            let later = workspace.files.values().filter(|file| after.as_ref().is_none_or(|after| file.path > *after));
            later.take(limit).cloned().map(Ok).collect()
        })
    }

    fn blob_sizes(&self, workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>> {
        self.read(&workspace, |workspace| {
            let size = |chunks: &Arc<[Bytes]>| chunks.iter().map(|chunk| chunk.len() as u64).sum();
            digests.iter().map(|digest| workspace.blobs.get(digest).map(size)).collect()
        })
    }

    fn blob_chunk(&self, workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Answer<'_, Option<Bytes>> {
        self.read(&workspace, |workspace| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            workspace.blobs.get(&digest).and_then(|chunks| chunks.get(index)).cloned()
        })
    }

    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.write_in(&workspace, |state| {
            let former = state.unfinished.insert((workspace.clone(), blob.sha256), (upload, blob.size_bytes));
            former.iter().for_each(|(former, _)| drop(state.uploads.remove(former)));
            state.uploads.insert(upload, Vec::new());
        })
    }

    fn unfinished_upload(&self, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, Option<Unfinished>> {
        let state = self.lock();
        let found = state.unfinished.get(&(workspace, blob.sha256)).filter(|(_, size)| *size == blob.size_bytes);
        let found = found.and_then(|(upload, _)| {
            let bytes = state.uploads.get(upload)?.iter().map(|chunk| chunk.len() as u64).sum();
            Some(Unfinished { upload: *upload, bytes })
        });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()> {
        self.write(move |state| {
            let key = (workspace, digest);
            if state.unfinished.get(&key).is_some_and(|(unfinished, _)| *unfinished == upload) {
                state.unfinished.remove(&key);
            }
            state.uploads.remove(&upload);
        })
    }

    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let chunk = self.lock().uploads.get(&upload).and_then(|chunks| chunks.get(index)).cloned();
        Box::pin(std::future::ready(Ok(chunk)))
    }

    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()> {
        let result = self.write(|state| {
            let chunks = state.uploads.entry(upload).or_default();
            let (index, there) = (usize::try_from(index).unwrap_or(usize::MAX), chunks.len());
            match chunks.get_mut(index) {
                Some(chunk) => *chunk = bytes,
                None if there == index => chunks.push(bytes),
                None => {
                    let cause = format!("chunk {index} is not next");
                    return Err(StoreError::Failed { action: "take a chunk", cause });
                }
            }
            Ok(())
        });
        Box::pin(async { result.await? })
    }

    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        let committed = self.write_in(&workspace, |state| {
            let blobs = &mut state.workspaces.entry(workspace.clone()).or_default().blobs;
            let chunks = state.uploads.remove(&upload);
            if let Entry::Vacant(place) = blobs.entry(blob.sha256) {
                if chunks.is_none() && blob.size_bytes > 0 {
                    let cause = "its first bytes are gone, upload it again".to_owned();
                    return Err(StoreError::Failed { action: "keep an upload", cause });
                }
                place.insert(chunks.unwrap_or_default().into());
            }
            state.unfinished.retain(|_, (unfinished, _)| *unfinished != upload);
            Ok(())
        });
        Box::pin(async { committed.await? })
    }

    fn discard_upload(&self, upload: UploadId) {
        self.lock().uploads.remove(&upload);
    }

    fn sweep_blobs(&self, _: UnixMillis) -> Answer<'_, usize> {
        Box::pin(std::future::ready(Ok(0)))
    }

    fn grow_older(&self, passed: Option<Duration>) -> Answer<'_, Age> {
        self.write(|state| state.grow_older(passed))
    }

    fn retain(&self, order: Retention) -> Answer<'_, Retained> {
        self.write(|state| {
            state.workspaces.get_mut(&order.workspace).map(|kept| kept.retain(&order)).unwrap_or_default()
        })
    }

    fn begin_deletion(&self, workspace: WorkspaceId, ended: Ended) -> Answer<'_, Option<Vec<TokenName>>> {
        self.write(|state| state.begin_deletion(&workspace, ended))
    }

    fn continue_deletion(&self, workspace: WorkspaceId) -> Answer<'_, Option<Deletion>> {
        self.write(|state| state.deletions.remove(&workspace))
    }

    fn deletions(&self) -> Answer<'_, Vec<WorkspaceId>> {
        let mut found: Vec<_> = self.lock().deletions.keys().cloned().collect();
        found.sort();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn back_up(&self, out: Box<dyn Write + Send>) -> Answer<'_, Summary> {
        drop(out);
        let cause = "it keeps nothing on disk".to_owned();
        Box::pin(std::future::ready(Err(StoreError::Failed { action: "be backed up", cause })))
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn close(&self) -> Answer<'_, ()> {
        self.lock().closed = true;
        Box::pin(std::future::ready(Ok(())))
    }
}
