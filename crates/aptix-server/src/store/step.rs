//! Steps in the lives of batches, with all that changes at the same instant, and what came of them.

use aptix_model::actor::Actor;
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, RequestId, Revision, WorkspaceId};
use aptix_model::record::{BatchRecord, Source, UnixMillis};
use aptix_model::report::Report;
use aptix_model::state::BatchState;

use super::file::FileUpdate;
use super::lease::LeaseProof;

/// One step in a batch's life, with all that changes at the same instant.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The batch.
    pub batch: BatchId,
    /// What happens.
    pub kind: EventKind,
    /// Who does it.
    pub actor: Actor,
    /// Why, if a reason was given.
    pub reason: Option<String>,
    /// The state it must be in.
    pub from: BatchState,
    /// The state it is in afterwards.
    pub to: BatchState,
    /// When.
    pub at: UnixMillis,
    /// The lease that must be the newest, where the step needs one.
    pub lease: Option<LeaseProof>,
    /// What became of the batch.
    pub report: Option<Report>,
    /// Files that are now as reported. Removals come first.
    pub files: Vec<FileUpdate>,
    /// The request that has a prepared batch applied.
    pub freed: Option<RequestId>,
}

impl Transition {
    /// Changes the batch, which is in the expected state, under the revision of the step.
    pub(super) fn apply(self, batch: &mut BatchRecord, revision: Revision) {
        (batch.revision, batch.state, batch.updated, batch.report) = (revision, self.to, self.at, self.report);
        if let Source::Prepared(preparation) = &mut batch.source {
            preparation.freed = self.freed.or_else(|| preparation.freed.take());
        }
    }

    /// What its event records.
    #[must_use]
    pub fn facts(&self) -> EventFacts {
        let (actor, reason) = (self.actor.clone(), self.reason.clone());
        EventFacts { kind: self.kind, state: self.to, at: self.at, actor, reason }
    }
}

/// What was carried out on a workstation itself, with all that changes at the same instant.
#[derive(Clone, Debug)]
pub struct LocalBatch {
    /// The batch in its ended state. Its revision is ignored; its id and its request id must be unused.
    pub batch: BatchRecord,
    /// Who carried it out.
    pub actor: Actor,
    /// Why, if a reason was given.
    pub reason: Option<String>,
    /// The batch that it took back.
    pub reverts: Option<BatchId>,
    /// The lease that must be the newest.
    pub lease: LeaseProof,
    /// Files that are now as reported. Removals come first.
    pub files: Vec<FileUpdate>,
}

impl LocalBatch {
    /// What its event records.
    pub(super) fn facts(&self) -> EventFacts {
        let BatchRecord { state, created, .. } = self.batch;
        let (actor, reason) = (self.actor.clone(), self.reason.clone());
        EventFacts { kind: EventKind::Local, state, at: created, actor, reason }
    }
}

/// What came of storing a batch of the workstation itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalAppended {
    /// It is stored.
    New(Box<BatchRecord>),
    /// A batch with its id or its request id is stored; nothing changed.
    Known(Box<BatchRecord>),
    /// The lease is not the newest, or the secret is not its secret; nothing changed.
    OtherLease,
}

/// What came of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transitioned {
    /// It is taken.
    Done(BatchRecord),
    /// The batch was in another state; nothing changed.
    OtherState(BatchRecord),
    /// The lease is not the newest, or the secret is not its secret; nothing changed.
    OtherLease,
    /// It would let the batch be applied, and its session may not write at present: the failure that says so; nothing
    /// changed.
    Restricted(Box<Failure>),
    /// The request that lets it be applied was used for this other batch; nothing changed.
    Reused(BatchId),
    /// The workspace has no such batch.
    Unknown,
}
