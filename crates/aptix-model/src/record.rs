//! A batch as it is kept: its content, the ids it was given, and where it is in its life.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::actor::{Actor, ActorKind};
use crate::batch::{Batch, FileEdit, Origin, Target};
use crate::digest::Sha256Digest;
use crate::id::{BatchId, ChangeId, FilePatchId, OwnerId, RequestId, Revision, WorkspaceId};
use crate::plan::Plan;
use crate::report::Report;
use crate::state::BatchState;
use crate::trace_parent::TraceParent;

/// Milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UnixMillis(pub u64);

/// How long a batch waits for a person's approval: a week, in milliseconds.
pub const APPROVAL_MILLIS: u64 = 7 * 24 * 3600 * 1000;

/// A stored batch. Its content and ids never change; revision, state, time of update and report do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchRecord {
    /// Names it for ever.
    pub id: BatchId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The revision of the latest event about it.
    pub revision: Revision,
    /// Where it is in its life.
    pub state: BatchState,
    /// What is to happen.
    pub batch: Batch,
    /// The ids of its file patches and changes, in the batch's order (TUL-002 7.1).
    pub ids: Vec<FileIds>,
    /// Whose turn it came from.
    pub origin: Origin,
    /// What it was submitted under.
    pub request_id: RequestId,
    /// When it was stored.
    pub created: UnixMillis,
    /// When its state last changed.
    pub updated: UnixMillis,
    /// What became of it.
    pub report: Option<Report>,
    /// How it came to the server.
    pub source: Source,
    /// The newest batch that took it back.
    pub reverted_by: Option<BatchId>,
    /// Whether its session may not write, although the batch waits for its agent: it must not be applied.
    pub is_restricted: bool,
    /// SHA-256 of its content, if retention removed that. Its edits are then local changes, and its report quotes no file.
    pub removed_content: Option<Sha256Digest>,
    /// What is known of the call that stored it.
    pub sent: Sent,
}

/// What is kept of the call that stored a batch. A repeat of the call does not change it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// The caller's token, by the name that the record of a step has for it; `None` where callers need no token.
    pub by: Option<String>,
    /// The trace that the batch is followed in, if it is followed.
    pub traceparent: Option<TraceParent>,
}

/// How a batch came to the server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// An author submitted it.
    #[default]
    Submitted,
    /// An author prepared it: it is applied only as it was planned.
    Prepared(Box<Preparation>),
    /// It was carried out on the workstation itself, and is stored as ended.
    Local {
        /// Who did it.
        author: Actor,
        /// The batch that it took back, if it was an undo; the server need not know it.
        reverts: Option<BatchId>,
    },
    /// The server made it to take another batch back.
    Revert(Reverting),
}

/// Which batch a revert takes back, for whom and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reverting {
    /// The batch that is taken back.
    pub of: BatchId,
    /// Who asked for it.
    pub author: Actor,
    /// Why, if they said; known to the server alone, which records it with the first step.
    pub reason: Option<String>,
}

/// How a batch was prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preparation {
    /// Who prepared it, and alone may apply or replace it.
    pub owner: OwnerId,
    /// From when on, by the server's clock, it can no more be applied.
    pub expires: UnixMillis,
    /// What it would do; absent if the plan was refused, and the batch stored as ended.
    pub plan: Option<Plan>,
    /// The prepared batch whose place it took.
    pub replaces: Option<BatchId>,
    /// The id by which tools know its plan, if it has that from the batch whose place it took; known to the server alone.
    pub hunk: Option<FilePatchId>,
    /// The request that had it applied; known to the server alone.
    pub freed: Option<RequestId>,
}

impl BatchRecord {
    /// How it was prepared, if it was.
    #[must_use]
    pub fn preparation(&self) -> Option<&Preparation> {
        match &self.source {
            Source::Prepared(preparation) => Some(preparation),
            Source::Submitted | Source::Local { .. } | Source::Revert(_) => None,
        }
    }

    /// The id by which tools know its plan, which stays when another batch takes its place; `None` if it has no plan, or one of
    /// several files.
    #[must_use]
    pub fn hunk(&self) -> Option<FilePatchId> {
        let preparation = self.preparation().filter(|preparation| preparation.plan.is_some() && self.ids.len() == 1)?;
        preparation.hunk.or_else(|| self.ids.first().map(|ids| ids.file))
    }

    /// The batch that it takes back, if it takes one back.
    #[must_use]
    pub const fn reverts(&self) -> Option<BatchId> {
        match &self.source {
            Source::Local { reverts, .. } => *reverts,
            Source::Revert(reverting) => Some(reverting.of),
            Source::Submitted | Source::Prepared(_) => None,
        }
    }

    /// When its time is over in the state that it is in; `None` if it waits for ever.
    #[must_use]
    pub fn expires(&self) -> Option<UnixMillis> {
        match self.state {
            BatchState::Prepared => Some(self.preparation()?.expires),
            BatchState::PendingApproval => Some(UnixMillis(self.updated.0.saturating_add(APPROVAL_MILLIS))),
            _ => None,
        }
    }

    /// Removes what it quotes of files, and keeps who, when, why, the files' names and digests, and all ids. `content` is the SHA-256
    /// of the content, by which a retry of its request is told from another one. Does nothing to a batch without content.
    pub fn remove_content(&mut self, content: Sha256Digest) {
        if self.removed_content.is_some() {
            return;
        }
        self.removed_content = Some(content);
        self.batch.quotes.clear();
        self.batch.files.iter_mut().for_each(|patch| patch.edit = FileEdit::LocalChange);
        self.report.iter_mut().for_each(Report::remove_content);
        if let Source::Prepared(preparation) = &mut self.source
            && let Some(plan) = &mut preparation.plan
        {
            plan.places.clear();
            plan.evidence.clear();
            plan.report.remove_content();
        }
    }

    /// Who stored it, for the record of its first step: who made it, and whose token the call had.
    #[must_use]
    pub fn sender(&self) -> Actor {
        match &self.source {
            Source::Prepared(_) => self.author().signed(self.sent.by.as_deref()),
            // Their authors are signed already.
            Source::Submitted | Source::Local { .. } | Source::Revert(_) => self.author(),
        }
    }

    /// Who made it, as far as that is known.
    #[must_use]
    pub fn author(&self) -> Actor {
        match &self.source {
            Source::Submitted => Actor { kind: ActorKind::Author, name: self.sent.by.clone() },
            Source::Prepared(preparation) => {
                Actor { kind: ActorKind::Author, name: Some(preparation.owner.as_str().to_owned()) }
            }
            Source::Local { author, .. } => author.clone(),
            Source::Revert(reverting) => reverting.author.clone(),
        }
    }
}

/// The ids of one file patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileIds {
    /// The file patch's own.
    pub file: FilePatchId,
    /// Its changes', in the patch's order; empty for a whole-file edit.
    pub changes: Vec<ChangeId>,
}

impl FileIds {
    /// Mints an id for every file patch and every change of a batch; `mint` gives a new id at each call.
    pub fn mint(batch: &Batch, mut mint: impl FnMut() -> uuid::Uuid) -> Vec<Self> {
        let files = batch.files.iter().map(|patch| {
            let file = FilePatchId(mint());
            Self { file, changes: (0..patch.edit.change_count()).map(|_| ChangeId(mint())).collect() }
        });
        files.collect()
    }
}

/// What a list shows of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchOutline {
    /// Names the batch.
    pub id: BatchId,
    /// The revision of the latest event about it.
    pub revision: Revision,
    /// Where it is in its life.
    pub state: BatchState,
    /// What it is for.
    pub label: Option<String>,
    /// The author's name for it.
    pub key: Option<String>,
    /// The files it names.
    pub targets: Vec<Target>,
    /// When it was stored; absent where only its state is sent.
    pub created: Option<UnixMillis>,
    /// Who made it, as far as that is known; absent where only its state is sent.
    pub author: Option<Actor>,
    /// The batch that took it back.
    pub reverted_by: Option<BatchId>,
}
