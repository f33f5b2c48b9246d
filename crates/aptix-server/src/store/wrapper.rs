//! Stores over another store. The list of what a store is asked is here alone: a wrapper forwards every call, and implements those that it
//! changes.

use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use tokio::sync::watch;
use tokio_util::bytes::Bytes;

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
    LocalAppended, LocalBatch, Space, Store, Transition, Transitioned, Unfinished, UploadId, WorkspaceCounts,
};
use crate::quota::used::Used;

/// Defines [`Wrapper`] with these calls, and makes every wrapper a store.
macro_rules! wrapper {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        /// A store over another one. It implements the calls that it changes; all others go through [`Wrapper::ask`].
        pub trait Wrapper: Send + Sync + 'static {
            /// Asks the store beneath; `call` is the name of the method.
            fn ask<T: Send + 'static>(
                &self,
                call: &'static str,
                question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
            ) -> Answer<'_, T>;

            /// Answers [`Store::history`].
            fn history(&self) -> HistoryId;

            /// Answers [`Store::discard_upload`].
            fn discard_upload(&self, upload: UploadId);

            /// Answers [`Store::failed`].
            fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

            /// Answers [`Store::healed`].
            fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

            /// Answers [`Store::reopenings`].
            fn reopenings(&self) -> watch::Receiver<u64>;

            /// Answers [`Store::is_shared`].
            fn is_shared(&self) -> bool {
                false
            }

            /// Answers [`Store::hints`].
            fn hints(&self) -> Option<Hints> {
                None
            }

            /// Answers [`Store::tell`].
            fn tell(&self, used: Used) {
                let _ = used;
            }

            /// Answers [`Store::told`].
            fn told(&self) -> Option<UsedByOthers> {
                None
            }

            $(
                #[doc = concat!("Answers [`Store::", stringify!($name), "`].")]
                fn $name(&self, $($argument: $type),*) -> Answer<'_, $answer> {
                    self.ask(stringify!($name), move |store| store.$name($($argument),*))
                }
            )*
        }

        impl<W: Wrapper> Store for W {
            fn history(&self) -> HistoryId {
                Wrapper::history(self)
            }

            fn discard_upload(&self, upload: UploadId) {
                Wrapper::discard_upload(self, upload);
            }

            fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
                Wrapper::failed(self)
            }

            fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
                Wrapper::healed(self)
            }

            fn reopenings(&self) -> watch::Receiver<u64> {
                Wrapper::reopenings(self)
            }

            fn is_shared(&self) -> bool {
                Wrapper::is_shared(self)
            }

            fn hints(&self) -> Option<Hints> {
                Wrapper::hints(self)
            }

            fn tell(&self, used: Used) {
                Wrapper::tell(self, used);
            }

            fn told(&self) -> Option<UsedByOthers> {
                Wrapper::told(self)
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Answer<'_, $answer> {
                    Wrapper::$name(self, $($argument),*)
                }
            )*
        }
    };
}

wrapper! {
    append(batch: BatchRecord) -> Appended;
    append_local(local: LocalBatch) -> LocalAppended;
    transition(step: Transition) -> Transitioned;
    session(workspace: WorkspaceId, session: SessionId) -> Option<SessionState>;
    set_mode(change: ModeChange) -> ModeChanged;
    tokens() -> Tokens;
    add_token(token: KeptToken) -> TokenAdded;
    end_token(name: TokenName, ended: Ended) -> Option<Token>;
    create_workspace(workspace: WorkspaceId) -> bool;
    grant_lease(workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> u64;
    roots(workspace: WorkspaceId) -> Vec<String>;
    lease(workspace: WorkspaceId) -> Lease;
    digest(workspace: WorkspaceId, revision: Revision) -> Option<Sha256Digest>;
    newest(workspace: WorkspaceId) -> Option<Revision>;
    counts(workspace: WorkspaceId) -> Option<WorkspaceCounts>;
    used_bytes(workspace: WorkspaceId) -> u64;
    space() -> Option<Space>;
    workspaces(after: Option<WorkspaceId>, limit: usize) -> Vec<ListedWorkspace>;
    due(now: UnixMillis, after: Option<DueKey>, limit: usize) -> Vec<Due>;
    batch(workspace: WorkspaceId, which: BatchSelector) -> Option<BatchRecord>;
    batches(workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Vec<Listed>;
    events(workspace: WorkspaceId, after: Revision, limit: usize) -> Vec<Listed>;
    steps(workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Vec<Event>;
    file(workspace: WorkspaceId, path: RootedPath) -> Option<CloudFile>;
    files_with_key(workspace: WorkspaceId, doc_path: DocPath) -> Vec<CloudFile>;
    files(workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Vec<ListedFile>;
    blob_sizes(workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Vec<Option<u64>>;
    blob_chunk(workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Option<Bytes>;
    claim_upload(upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> ();
    unfinished_upload(workspace: WorkspaceId, blob: BlobRef) -> Option<Unfinished>;
    release_upload(upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> ();
    upload_chunk(upload: UploadId, index: u32) -> Option<Bytes>;
    put_chunk(upload: UploadId, index: u32, bytes: Bytes) -> ();
    commit_upload(upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> ();
    sweep_blobs(before: UnixMillis) -> usize;
    grow_older(passed: Option<Duration>) -> Age;
    retain(order: Retention) -> Retained;
    begin_deletion(workspace: WorkspaceId, ended: Ended) -> Option<Vec<TokenName>>;
    continue_deletion(workspace: WorkspaceId) -> Option<Deletion>;
    deletions() -> Vec<WorkspaceId>;
    back_up(out: Box<dyn Write + Send>) -> Summary;
    close() -> ();
    join(member: Member, lifetime: Lifetime) -> Company;
    renew(server: ServerId, lifetime: Lifetime) -> Option<Company>;
    leave(server: ServerId) -> ();
    take_lease(grant: Grant) -> Granted;
    release_leases(leases: Vec<LeaseName>) -> ();
    holder(workspace: WorkspaceId) -> Option<(Holder, Member)>;
    look(workspaces: Vec<WorkspaceId>) -> Looked;
}
