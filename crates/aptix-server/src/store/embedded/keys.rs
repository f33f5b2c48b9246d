//! How keys are laid out. Each begins with the letter of its table; a workspace's id is followed by a zero byte,
//! which no id has, so that no workspace's keys begin like another's.

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, RequestId, Revision, SessionId, TokenName, Uuid, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::UnixMillis;

use crate::store::UploadId;

/// A key.
pub(super) type Key = Vec<u8>;

fn of_workspace(table: u8, workspace: &WorkspaceId, rest: &[&[u8]]) -> Key {
    let mut key = vec![table];
    key.extend_from_slice(workspace.as_str().as_bytes());
    key.push(0);
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The name of the store's history.
pub(super) const HISTORY: &[u8] = b"h";

/// The newest commit of the store.
pub(super) const HEAD: &[u8] = b"n";

/// The deletion of a workspace.
pub(super) fn deletion(workspace: &WorkspaceId) -> Key {
    of_workspace(b'D', workspace, &[])
}

/// Where the deletions of workspaces begin.
pub(super) const DELETIONS: &[u8] = b"D";

/// Where the records of a workspace begin in a table.
pub(super) fn in_table(table: u8, workspace: &WorkspaceId) -> Key {
    of_workspace(table, workspace, &[])
}

/// Where the workspaces begin.
pub(super) const WORKSPACES: &[u8] = b"w";

/// Where the events begin.
pub(super) const EVENTS: &[u8] = b"e";

/// The workspace whose newest revision and lease have this key.
pub(super) fn workspace_of(key: &[u8]) -> Option<WorkspaceId> {
    str::from_utf8(key.strip_prefix(WORKSPACES)?.strip_suffix(&[0])?).ok()?.parse().ok()
}

/// The workspace and the revision of an event's key.
pub(super) fn event_of(key: &[u8]) -> Option<(WorkspaceId, Revision)> {
    let (rest, revision) = key.strip_prefix(EVENTS)?.split_last_chunk()?;
    let workspace = str::from_utf8(rest.strip_suffix(&[0])?).ok()?.parse().ok()?;
    Some((workspace, Revision(u64::from_be_bytes(*revision))))
}

/// Where the tokens begin.
pub(super) const TOKENS: &[u8] = b"q";

/// A token.
pub(super) fn token(name: &TokenName) -> Key {
    [TOKENS, name.as_str().as_bytes()].concat()
}

/// Where the workspaces after this one begin.
pub(super) fn after_workspace(before: &WorkspaceId) -> Key {
    let mut key = workspace(before);
    key.push(0);
    key
}

/// The workspace's newest revision and lease.
pub(super) fn workspace(workspace: &WorkspaceId) -> Key {
    of_workspace(b'w', workspace, &[])
}

/// The names of the workspace's roots.
pub(super) fn roots(workspace: &WorkspaceId) -> Key {
    of_workspace(b'o', workspace, &[])
}

/// What never changes about a batch.
pub(super) fn batch(id: BatchId) -> Key {
    [b"b", id.0.as_bytes().as_slice()].concat()
}

/// The state of a batch, with its report.
pub(super) fn state(id: BatchId) -> Key {
    [b"s", id.0.as_bytes().as_slice()].concat()
}

/// A prepared batch among those of all workspaces, by when it expires.
pub(super) fn due(expires: UnixMillis, id: BatchId) -> Key {
    [DUE, &expires.0.to_be_bytes(), id.0.as_bytes()].concat()
}

/// Where the prepared batches begin that expire at a time or later.
pub(super) fn due_from(expires: UnixMillis) -> Key {
    [DUE, &expires.0.to_be_bytes()].concat()
}

/// Where the prepared batches begin, by when they expire.
pub(super) const DUE: &[u8] = b"p";

/// When a prepared batch expires, and which it is.
pub(super) fn due_of(key: &[u8]) -> Option<(UnixMillis, BatchId)> {
    let (expires, id) = key.strip_prefix(DUE)?.split_first_chunk()?;
    Some((UnixMillis(u64::from_be_bytes(*expires)), BatchId(Uuid::from_slice(id).ok()?)))
}

/// Says that every batch in flight of a session is listed.
pub(super) const IN_FLIGHT: &[u8] = b"x";

/// A session.
pub(super) fn session(workspace: &WorkspaceId, session: &SessionId) -> Key {
    of_workspace(b't', workspace, &[session.as_str().as_bytes()])
}

/// Where the workspace's sessions begin.
pub(super) fn sessions(workspace: &WorkspaceId) -> Key {
    of_workspace(b't', workspace, &[])
}

/// How many sessions the workspace has.
pub(super) fn session_count(workspace: &WorkspaceId) -> Key {
    of_workspace(b'c', workspace, &[])
}

/// A batch in flight of a session.
pub(super) fn in_flight(workspace: &WorkspaceId, session: &SessionId, id: BatchId) -> Key {
    of_workspace(b'a', workspace, &[session.as_str().as_bytes(), &[0], id.0.as_bytes()])
}

/// Where the batches in flight of a session begin.
pub(super) fn in_flight_of(workspace: &WorkspaceId, session: &SessionId) -> Key {
    of_workspace(b'a', workspace, &[session.as_str().as_bytes(), &[0]])
}

/// Where the batches in flight of all sessions of the workspace begin.
pub(super) fn all_in_flight(workspace: &WorkspaceId) -> Key {
    of_workspace(b'a', workspace, &[])
}

/// The session and the batch of a batch in flight.
pub(super) fn in_flight_batch(key: &[u8]) -> Option<(SessionId, BatchId)> {
    let (rest, id) = key.split_last_chunk::<16>()?;
    let mut parts = str::from_utf8(rest.strip_suffix(&[0])?).ok()?.rsplit('\0');
    Some((parts.next()?.parse().ok()?, BatchId(Uuid::from_bytes(*id))))
}

/// The batch that a request id names.
pub(super) fn request(workspace: &WorkspaceId, request: &RequestId) -> Key {
    of_workspace(b'r', workspace, &[request.as_str().as_bytes()])
}

/// The newest batch of a plan that tools know by this id, once another batch took the place of the first.
pub(super) fn hunk(workspace: &WorkspaceId, hunk: FilePatchId) -> Key {
    of_workspace(b'k', workspace, &[hunk.0.as_bytes()])
}

/// Where the workspace's plans begin that have a newest batch.
pub(super) fn hunks(workspace: &WorkspaceId) -> Key {
    of_workspace(b'k', workspace, &[])
}

/// Where the workspace's events begin.
pub(super) fn events(workspace: &WorkspaceId) -> Key {
    of_workspace(b'e', workspace, &[])
}

/// Where the workspace's blobs begin.
pub(super) fn blobs(workspace: &WorkspaceId) -> Key {
    of_workspace(b'm', workspace, &[])
}

/// Which batch an event happened to.
pub(super) fn event(workspace: &WorkspaceId, revision: Revision) -> Key {
    of_workspace(b'e', workspace, &[&revision.0.to_be_bytes()])
}

/// The workspace of a revision that stored a batch.
pub(super) fn workspace_of_listed(key: &[u8]) -> Option<WorkspaceId> {
    let (rest, _) = key.strip_prefix(LISTED)?.split_last_chunk::<8>()?;
    str::from_utf8(rest.strip_suffix(&[0])?).ok()?.parse().ok()
}

/// Which batch a revision stored.
pub(super) fn listed(workspace: &WorkspaceId, revision: Revision) -> Key {
    of_workspace(b'l', workspace, &[&revision.0.to_be_bytes()])
}

/// A cloud file.
pub(super) fn file(workspace: &WorkspaceId, path: &RootedPath) -> Key {
    of_workspace(b'f', workspace, &[path.as_str().as_bytes()])
}

/// Says that the stored bytes of every workspace are counted; their sums begin like it.
pub(super) const USAGE: &[u8] = b"j";

/// The sum of the workspace's stored bytes.
pub(super) fn usage(workspace: &WorkspaceId) -> Key {
    of_workspace(b'j', workspace, &[])
}

/// Where the lists of batches begin.
pub(super) const LISTED: &[u8] = b"l";

/// The workspace that a key begins with.
pub(super) fn owner_of(key: &[u8]) -> Option<WorkspaceId> {
    let (workspace, _) = key.get(1..)?.split_at(key.iter().position(|byte| *byte == 0)?.checked_sub(1)?);
    str::from_utf8(workspace).ok()?.parse().ok()
}

/// Where the workspace's cloud files begin.
pub(super) fn files(workspace: &WorkspaceId) -> Key {
    of_workspace(b'f', workspace, &[])
}

/// The paths with this key.
pub(super) fn paths(workspace: &WorkspaceId, doc_path: &DocPath) -> Key {
    of_workspace(b'g', workspace, &[doc_path.as_str().as_bytes()])
}

/// The workspace and the key whose paths are listed under a key of the table.
pub(super) fn paths_of(key: &[u8]) -> Option<(WorkspaceId, DocPath)> {
    let (workspace, doc_path) = str::from_utf8(key.strip_prefix(PATHS)?).ok()?.split_once('\0')?;
    Some((workspace.parse().ok()?, DocPath::new(doc_path).ok()?))
}

/// Where the paths begin, by their keys.
pub(super) const PATHS: &[u8] = b"g";

/// Where the paths begin in format 1: each had an entry, under its key.
pub(super) const FORMER_PATHS: &[u8] = b"d";

/// Where the paths with the key of an entry of format 1 are listed, and the path.
pub(super) fn former_path(key: &[u8]) -> Option<(Key, WorkspaceId, RootedPath)> {
    let mut parts = str::from_utf8(key.strip_prefix(FORMER_PATHS)?).ok()?.splitn(3, '\0');
    let (workspace, doc_path): (WorkspaceId, _) = (parts.next()?.parse().ok()?, DocPath::new(parts.next()?).ok()?);
    let path = RootedPath::new(parts.next()?).ok()?;
    Some((paths(&workspace, &doc_path), workspace, path))
}

/// Where the batches begin.
pub(super) const BATCHES: &[u8] = b"b";

/// Where the cloud files of all workspaces begin.
pub(super) const FILES: &[u8] = b"f";

/// Where the blobs of all workspaces begin.
pub(super) const BLOBS: &[u8] = b"m";

/// The workspace of a cloud file's key.
pub(super) fn workspace_of_file(key: &[u8]) -> Option<WorkspaceId> {
    let (workspace, _) = str::from_utf8(key.strip_prefix(FILES)?).ok()?.split_once('\0')?;
    workspace.parse().ok()
}

/// The workspace and the digest of a blob's key.
pub(super) fn blob_of(key: &[u8]) -> Option<(WorkspaceId, Sha256Digest)> {
    owner_and_digest(key.strip_prefix(BLOBS)?)
}

/// The blob whose upload has this key.
pub(super) fn unfinished_of(key: &[u8]) -> Option<(WorkspaceId, Sha256Digest)> {
    owner_and_digest(key.strip_prefix(UNFINISHED)?)
}

fn owner_and_digest(key: &[u8]) -> Option<(WorkspaceId, Sha256Digest)> {
    let (rest, digest) = key.split_last_chunk()?;
    let workspace = str::from_utf8(rest.strip_suffix(&[0])?).ok()?.parse().ok()?;
    Some((workspace, Sha256Digest::from_bytes(*digest)))
}

/// The upload that a blob's bytes came by.
pub(super) fn blob(workspace: &WorkspaceId, digest: &Sha256Digest) -> Key {
    of_workspace(b'm', workspace, &[digest.as_bytes()])
}

/// The upload of a blob that can be resumed.
pub(super) fn unfinished(workspace: &WorkspaceId, digest: &Sha256Digest) -> Key {
    of_workspace(b'i', workspace, &[digest.as_bytes()])
}

/// Where the uploads begin that can be resumed.
pub(super) const UNFINISHED: &[u8] = b"i";

/// An upload that is not a blob yet.
pub(super) fn upload(upload: UploadId) -> Key {
    [UPLOADS, upload.0.as_bytes().as_slice()].concat()
}

/// Where the uploads begin that are not blobs yet.
pub(super) const UPLOADS: &[u8] = b"u";

/// A chunk of an upload, in the table of chunks.
pub(super) fn chunk(upload: UploadId, index: u32) -> Key {
    [upload.0.as_bytes().as_slice(), &index.to_be_bytes()].concat()
}

/// Up to where the workspace's events and content were removed.
pub(super) fn trim(workspace: &WorkspaceId) -> Key {
    of_workspace(b'y', workspace, &[])
}

/// Where the states of batches begin.
pub(super) const STATES: &[u8] = b"s";

/// How many tokens were ever made: none is removed.
pub(super) const TOKEN_COUNT: &[u8] = b"Q";

/// How far the workspace had come at some ages of the store.
pub(super) fn notes(workspace: &WorkspaceId) -> Key {
    of_workspace(b'v', workspace, &[])
}

/// The age of the store.
pub(super) const AGE: &[u8] = b"z";

/// The revision at the end of a key.
pub(super) fn revision_of(key: &[u8]) -> Option<Revision> {
    key.last_chunk().map(|bytes| Revision(u64::from_be_bytes(*bytes)))
}
