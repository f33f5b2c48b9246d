//! The rows that a group of writes decides by: as the database has them, with what the writes before changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{AgentId, BatchId, FilePatchId, RequestId, Revision, SessionId, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::Session;

use super::fault::Fault;
use crate::store::fleet::ServerId;
use crate::store::records::record::{self, Happened};
use crate::store::records::{batch_record, session_record};
use crate::store::{CloudFile, Lease, StoreError};

/// What a workspace counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Workspace {
    pub(super) is_known: bool,
    pub(super) is_deleting: bool,
    pub(super) newest: Revision,
    pub(super) digest: Option<Sha256Digest>,
    pub(super) lease: Lease,
    /// The record of the names of its roots.
    pub(super) roots: Option<Vec<u8>>,
    pub(super) open: u64,
    /// Stored bytes that it has more since its row was read. The sum itself, which uploads and removals change too, decides nothing.
    pub(super) added_bytes: i64,
    /// How many sessions it has; above the most, how many found no room since.
    pub(super) sessions: u64,
}

/// A batch: its records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    pub(super) first: Revision,
    pub(super) content: Vec<u8>,
    pub(super) progress: Vec<u8>,
}

/// What is known of a batch that was asked for.
#[derive(Clone, Debug)]
pub(super) enum Found {
    None,
    Batch(Batch),
    /// It would take more memory than this group has left.
    TooLarge,
}

/// A session: its record, if there is one, and how many of its batches are in flight, if that was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OfSession {
    pub(super) record: Option<Vec<u8>>,
    pub(super) in_flight: Option<i64>,
}

/// Where a row is among those of a workspace.
pub(super) type In<T> = (WorkspaceId, T);

/// What a write has to know before it can decide.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Needs {
    /// Workspaces that are locked; `true` for one that is created if there is none.
    pub(super) workspaces: BTreeMap<WorkspaceId, bool>,
    pub(super) batches: BTreeSet<BatchId>,
    /// Ids under which batches are to be stored. It is expected that none is.
    pub(super) new_batches: BTreeSet<BatchId>,
    /// Batches, with those that they take back, and those that these take back.
    pub(super) chains: BTreeSet<BatchId>,
    pub(super) requests: BTreeSet<In<RequestId>>,
    pub(super) hunks: BTreeSet<In<FilePatchId>>,
    pub(super) sessions: BTreeSet<In<SessionId>>,
    /// Workspaces of which every session is needed.
    pub(super) all_sessions: BTreeSet<WorkspaceId>,
    pub(super) blobs: BTreeSet<In<Sha256Digest>>,
    /// Workspaces of which it is needed who holds the lease, and whether a server lives.
    pub(super) holdings: BTreeSet<In<ServerId>>,
}

impl Needs {
    /// A workspace whose row is locked.
    pub(super) fn lock(&mut self, workspace: &WorkspaceId, creates: bool) {
        *self.workspaces.entry(workspace.clone()).or_default() |= creates;
    }
}

/// Why a write has not decided.
#[derive(Debug)]
pub(super) enum Stop {
    Error(StoreError),
    /// It needs more rows.
    Load(Box<Needs>),
    /// It belongs to another group.
    Later,
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Error(error)
    }
}

/// An answer, and what changes with it.
pub(super) type Decided<T> = Result<(T, Vec<Put>), Stop>;

/// Asks for one more kind of row.
pub(super) fn load<T>(ask: impl FnOnce(&mut Needs)) -> Result<T, Stop> {
    let mut needs = Needs::default();
    ask(&mut needs);
    Err(Stop::Load(Box::new(needs)))
}

/// The rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) workspaces: HashMap<WorkspaceId, Option<Workspace>>,
    pub(super) batches: HashMap<BatchId, Found>,
    pub(super) chains: HashSet<BatchId>,
    /// Batches whose chains would take more memory than this group has left.
    pub(super) large_chains: HashSet<BatchId>,
    pub(super) requests: HashMap<In<RequestId>, Option<BatchId>>,
    pub(super) hunks: HashMap<In<FilePatchId>, Option<BatchId>>,
    pub(super) sessions: HashMap<In<SessionId>, OfSession>,
    pub(super) all_sessions: HashSet<WorkspaceId>,
    pub(super) blobs: HashMap<In<Sha256Digest>, bool>,
    /// Whether a server lives that asks for the lease of a workspace.
    pub(super) holdings: HashMap<In<ServerId>, bool>,
    /// Since when the lease of a workspace is held through a server that lives.
    pub(super) held: HashMap<WorkspaceId, Option<UnixMillis>>,
}

impl Rows {
    /// The counters of a workspace, whose row every write has locked.
    fn workspace(&self, workspace: &WorkspaceId) -> Option<&Workspace> {
        self.workspaces.get(workspace)?.as_ref()
    }

    /// The counters of a workspace that may be written in.
    pub(super) fn counters(&self, workspace: &WorkspaceId) -> Result<Workspace, Stop> {
        let counters = self.workspace(workspace).cloned().unwrap_or_default();
        if counters.is_deleting {
            return Err(StoreError::BeingDeleted { workspace: workspace.clone() }.into());
        }
        Ok(counters)
    }

    /// The records of a batch.
    pub(super) fn batch(&self, id: BatchId) -> Result<Option<&Batch>, Stop> {
        match self.batches.get(&id) {
            Some(Found::Batch(batch)) => Ok(Some(batch)),
            Some(Found::None) => Ok(None),
            Some(Found::TooLarge) => Err(Stop::Later),
            None => load(|needs| _ = needs.batches.insert(id)),
        }
    }

    /// A batch.
    pub(super) fn stored(&self, id: BatchId) -> Result<Option<BatchRecord>, Stop> {
        let Some(Batch { content, progress, .. }) = self.batch(id)? else { return Ok(None) };
        Ok(Some(batch_record::decode_batch(id, content, progress)?))
    }

    /// Looks whether a batch is there with all that it takes back in turn.
    pub(super) fn has_chain(&self, id: Option<BatchId>) -> Result<(), Stop> {
        match id {
            Some(id) if self.large_chains.contains(&id) => Err(Stop::Later),
            Some(id) if !self.chains.contains(&id) => load(|needs| _ = needs.chains.insert(id)),
            _ => Ok(()),
        }
    }

    /// A batch of the chain that was looked for; one that is not among them is not followed.
    pub(super) fn in_chain(&self, id: BatchId) -> Result<Option<BatchRecord>, StoreError> {
        match self.batches.get(&id) {
            Some(Found::Batch(Batch { content, progress, .. })) => {
                batch_record::decode_batch(id, content, progress).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The batch that a request was used for.
    pub(super) fn used(&self, workspace: &WorkspaceId, request: &RequestId) -> Result<Option<BatchId>, Stop> {
        let key = (workspace.clone(), request.clone());
        match self.requests.get(&key) {
            Some(found) => Ok(*found),
            None => load(|needs| _ = needs.requests.insert(key)),
        }
    }

    /// The newest batch of a plan, if another one took the place of its first.
    pub(super) fn newest_of(&self, workspace: &WorkspaceId, hunk: FilePatchId) -> Result<Option<BatchId>, Stop> {
        let key = (workspace.clone(), hunk);
        match self.hunks.get(&key) {
            Some(found) => Ok(*found),
            None => load(|needs| _ = needs.hunks.insert(key)),
        }
    }

    /// What is kept of a session.
    fn of_session(&self, workspace: &WorkspaceId, id: &SessionId) -> Result<&OfSession, Stop> {
        let key = (workspace.clone(), id.clone());
        match self.sessions.get(&key) {
            Some(found) => Ok(found),
            None => load(|needs| _ = needs.sessions.insert(key)),
        }
    }

    /// How many batches of a session are in flight.
    pub(super) fn in_flight(&self, workspace: &WorkspaceId, id: &SessionId) -> Result<i64, Stop> {
        let found = self.of_session(workspace, id)?.in_flight;
        found.map_or_else(|| load(|needs| _ = needs.sessions.insert((workspace.clone(), id.clone()))), Ok)
    }

    /// A session.
    pub(super) fn session(&self, workspace: &WorkspaceId, id: &SessionId) -> Result<Option<Session>, Stop> {
        let record = self.of_session(workspace, id)?.record.as_ref();
        Ok(record.map(|record| session_record::decode(id, record)).transpose()?)
    }

    /// Every session of a workspace.
    pub(super) fn every_session(&self, workspace: &WorkspaceId) -> Result<Vec<(&SessionId, &OfSession)>, Stop> {
        if !self.all_sessions.contains(workspace) {
            return load(|needs| _ = needs.all_sessions.insert(workspace.clone()));
        }
        let of = self.sessions.iter().filter(|((of, _), found)| of == workspace && found.record.is_some());
        Ok(of.map(|((_, id), found)| (id, found)).collect())
    }

    /// Refuses what names a blob that is not there: it was removed after it was looked for.
    pub(super) fn are_there(
        &self,
        workspace: &WorkspaceId,
        named: impl Iterator<Item = Sha256Digest>,
    ) -> Result<(), Stop> {
        let mut missing = Needs::default();
        for digest in named {
            match self.blobs.get(&(workspace.clone(), digest)) {
                Some(true) => {}
                Some(false) => {
                    let cause = format!("{digest} is not there, upload it again");
                    return Err(StoreError::Failed { action: "keep what names a blob", cause }.into());
                }
                None => drop(missing.blobs.insert((workspace.clone(), digest))),
            }
        }
        if missing.blobs.is_empty() { Ok(()) } else { Err(Stop::Load(Box::new(missing))) }
    }
}

/// Who holds a lease, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holding {
    pub(super) server: ServerId,
    pub(super) agent: AgentId,
    pub(super) since: UnixMillis,
    pub(super) presence: Vec<u8>,
}

/// An event as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NewEvent {
    pub(super) revision: Revision,
    pub(super) batch: BatchId,
    /// The event before of the same batch.
    pub(super) previous: Option<Revision>,
    pub(super) record: Vec<u8>,
}

impl NewEvent {
    pub(super) fn of(revision: Revision, happened: &Happened) -> Box<Self> {
        let Happened { batch, previous, .. } = *happened;
        Box::new(Self { revision, batch, previous, record: record::encode_event(happened).to_vec() })
    }
}

/// One thing that a write changes.
#[derive(Clone, Debug)]
pub(super) enum Put {
    /// The counters of a workspace.
    Workspace(WorkspaceId, Box<Workspace>),
    /// A new batch, which names these blobs.
    New(Box<BatchRecord>, Batch),
    /// A batch in another state, or that another one took back; with its former state.
    Changed(Box<BatchRecord>, Batch),
    /// How many batches in flight a session has more.
    InFlight(In<SessionId>, i64),
    Event(WorkspaceId, Box<NewEvent>),
    Request(In<RequestId>, BatchId),
    Hunk(In<FilePatchId>, BatchId),
    /// A session; `None` removes it.
    Session(In<SessionId>, Option<Vec<u8>>),
    File(WorkspaceId, CloudFile),
    RemoveFile(In<DocPath>, RootedPath),
    /// Every file with a key.
    RemoveFiles(In<DocPath>),
    /// Who holds the lease of a workspace, with this epoch.
    Holding(WorkspaceId, u64, Box<Holding>),
}

/// A refusal where a row is not there that a lock was taken on.
pub(super) fn vanished() -> Fault {
    Fault::Conflict("a workspace was deleted while its row was waited for".to_owned())
}

impl Needs {
    /// Adds what is missing; answers whether any of it is new.
    pub(super) fn grow(&mut self, missing: &Self) -> bool {
        let former = self.clone();
        self.add(missing.clone());
        *self != former
    }

    /// Adds what another write needs.
    pub(super) fn add(&mut self, other: Self) {
        let Self { workspaces, batches, new_batches, chains, requests, hunks, sessions, all_sessions, blobs, holdings } =
            other;
        workspaces.into_iter().for_each(|(id, creates)| self.lock(&id, creates));
        self.batches.extend(batches);
        self.new_batches.extend(new_batches);
        self.chains.extend(chains);
        self.requests.extend(requests);
        self.hunks.extend(hunks);
        self.sessions.extend(sessions);
        self.all_sessions.extend(all_sessions);
        self.blobs.extend(blobs);
        self.holdings.extend(holdings);
    }
}
