//! What an agent serves, and what it holds: for its whole run, and for one connection.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::events::trace::{Trace, Via};
use aptix_model::id::{AgentId, BatchId, HistoryId, Revision, WorkspaceId};
use aptix_model::presence::{ApprovalMode, Presence};
use aptix_model::report::Report;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::answer_places::AnswerPlaces;
use super::approval::{Approval, Approve, Attended};
use super::error::AgentError;
use super::quota::Quota;
use super::report;
use super::waiting::Waiting;
use crate::connection::question::Answering;
use crate::connection::receipt::Receipt;
use crate::connection::{Connection, Lease, LeaseSecret, Position, Server};
use crate::live::difference::HeldFile;
use crate::person::user::user;
use crate::policy::files::PolicyFiles;
use crate::review::Page;
use crate::workspace::keep::notes::{self, Noted};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// What an agent serves, and how.
#[derive(Clone, Debug)]
pub struct Service {
    /// The server.
    pub server: Server,
    /// The workspace on it.
    pub workspace: WorkspaceId,
    /// Who decides about writes.
    pub approve: Approve,
    /// Who there is to be asked.
    pub attended: Attended,
    /// The page on which a person answers in a browser, if there is one.
    pub review: Option<Arc<Page>>,
    /// Whether the user agrees to serve this, whatever else these roots served before. Otherwise the person at the terminal is
    /// asked, and without one the agent ends.
    pub is_agreed: bool,
    /// What batches may do; read again for every batch.
    pub policy: Arc<PolicyFiles>,
    /// Who answers the server's questions.
    pub answering: Arc<dyn Answering>,
}

/// A running agent.
pub(super) struct Agent {
    pub(super) local: Arc<Workspace>,
    pub(super) service: Service,
    pub(super) id: AgentId,
    pub(super) approval: Approval,
    pub(super) stop: CancellationToken,
    /// Bounds how many batches are refused in a minute.
    pub(super) quota: Arc<Quota>,
    /// Places for the questions that are worked on.
    pub(super) places: AnswerPlaces,
    /// Logs once that a root has moved.
    pub(super) moved: Once,
}

impl Agent {
    /// Runs work that waits for a disk or a person on the blocking pool.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, AgentError> {
        let (agent, span) = (Arc::clone(self), Span::current());
        Ok(tokio::task::spawn_blocking(move || span.in_scope(|| work(&agent))).await?)
    }

    /// What the server is told of this agent.
    pub(super) fn presence(&self) -> Presence {
        Presence {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: self.local.roots().iter().map(|root| root.name().to_owned()).collect(),
            mode: Some(match self.service.approve {
                Approve::Ask => ApprovalMode::Ask,
                Approve::Auto => ApprovalMode::Auto,
                Approve::Never => ApprovalMode::Never,
            }),
            features: self.service.answering.kinds().iter().map(|kind| kind.feature().to_owned()).collect(),
        }
    }

    /// Who batches of the workstation itself are by.
    pub(super) fn actor(&self) -> Actor {
        Actor { kind: ActorKind::Agent, name: Some(self.id.to_string()) }
    }

    /// Keeps the position to resume from for the next start. Where that fails, events come again.
    pub(super) async fn remember(self: &Arc<Self>, position: Position) -> Result<(), AgentError> {
        let noted = match position {
            Position::Revision(revision) => Noted { revision, cursor: None },
            Position::Cursor(cursor) => Noted { revision: cursor.revision, cursor: Some(cursor) },
        };
        let kept = self.blocking(move |agent| {
            let Service { server, workspace, .. } = &agent.service;
            notes::put_position(&agent.local, &server.url.to_string(), workspace, noted)
        });
        match kept.await? {
            Err(error) if removed_state(&self.local).is_some() => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "the position in the server's events is not kept"),
            Ok(()) => {}
        }
        Ok(())
    }
}

/// A state directory that was removed, if one was.
pub(super) fn removed_state(local: &Workspace) -> Option<PathBuf> {
    let mut states = local.roots().iter().map(Root::state);
    states.find(|state| !state.exists()).map(|state| state.path().to_owned())
}

/// What passes from one connection to the next.
pub(super) struct Progress {
    /// The position to resume from.
    pub(super) position: Position,
    /// Behind which revision the server stated that its events begin, if it did. A position without a cursor that equals it is taken
    /// for one of this server.
    pub(super) beginning: Option<Revision>,
    /// The secret of the lease that was held last.
    pub(super) held: LeaseSecret,
}

impl Progress {
    /// Whether the revision to resume from may be that of another history: none was named with it, nor did the server name the revision.
    pub(super) fn is_unbound(&self) -> bool {
        let may_differ = |revision: Revision| revision.0 > 0 && self.beginning != Some(revision);
        matches!(self.position, Position::Revision(revision) if may_differ(revision))
    }
}

/// A connection to the server under one lease.
pub(super) struct Session {
    pub(super) agent: Arc<Agent>,
    pub(super) connection: Connection,
    pub(super) lease: Lease,
    /// The history of the server's store, once the feed has named it.
    pub(super) history: OnceLock<HistoryId>,
    /// Cancelled when the lease or the connection is lost.
    pub(super) alive: CancellationToken,
    /// Batches that run.
    handled: Mutex<BTreeSet<BatchId>>,
    /// Reports that the server does not have yet.
    pub(super) waiting: Waiting,
    /// Files of reports that came late, to be compared with the disk: the server may have had newer content.
    late: Mutex<Late>,
    /// Batches whose reports the server refuses.
    refusals: Mutex<Refusals>,
}

/// Files of reports that came late. While such reports come one after the other, a file is not what each of them says.
#[derive(Default)]
struct Late {
    coming: Vec<HeldFile>,
    come: Vec<HeldFile>,
}

/// The batches whose reports the server refuses: no entry of the history waits for their delivery.
#[derive(Clone, Default)]
pub(super) struct Refusals {
    /// Those whose reports it finds wrong. The outbox keeps them.
    pub(super) wrong: BTreeSet<BatchId>,
    /// Those that were applied here, and that ended at the server without being applied. The outbox keeps each report until the
    /// change is reported as a batch of the workstation.
    pub(super) unapplied: BTreeMap<BatchId, Receipt>,
}

impl Session {
    pub(super) fn new(
        agent: Arc<Agent>,
        (connection, lease): (Connection, Lease),
        history: OnceLock<HistoryId>,
        alive: CancellationToken,
    ) -> Self {
        Self {
            agent,
            connection,
            lease,
            history,
            alive,
            handled: Mutex::default(),
            waiting: Waiting::default(),
            late: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Notes that a batch runs, or does not any more.
    pub(super) fn handle(&self, batch: BatchId, runs: bool) {
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        if runs {
            handled.insert(batch)
        } else {
            handled.remove(&batch)
        };
    }

    /// Whether a batch runs.
    pub(super) fn is_handled(&self, batch: BatchId) -> bool {
        self.handled.lock().unwrap_or_else(PoisonError::into_inner).contains(&batch)
    }

    /// Notes that a report came late: what the server has of its files now may be older than what is on disk.
    pub(super) fn compare_later(&self, report: &Report) {
        self.with_late(|late| late.coming.extend(HeldFile::of_report(&self.agent.local, report)));
    }

    /// Has the files of the reports that came late until now be compared.
    pub(super) fn compare_now(&self) {
        self.with_late(|late| late.come.append(&mut late.coming));
    }

    /// The files that are to be compared now.
    pub(super) fn take_late(&self) -> Vec<HeldFile> {
        self.with_late(|late| std::mem::take(&mut late.come))
    }

    fn with_late<T>(&self, access: impl FnOnce(&mut Late) -> T) -> T {
        access(&mut self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that the server finds the report of a batch wrong: nothing waits for it any more.
    pub(super) fn refuse(&self, batch: BatchId) {
        self.with_refusals(|refusals| refusals.wrong.insert(batch));
    }

    /// Whether the server finds the report of a batch wrong.
    pub(super) fn is_refused(&self, batch: BatchId) -> bool {
        self.with_refusals(|refusals| refusals.wrong.contains(&batch))
    }

    /// Notes that a batch which was applied here ended at the server without being applied.
    pub(super) fn add_unapplied(&self, receipt: &Receipt) {
        let receipt = receipt.without_diff();
        self.with_refusals(|refusals| refusals.unapplied.insert(receipt.batch, receipt));
    }

    /// Forgets such a batch, whose change the server knows now.
    pub(super) fn remove_unapplied(&self, batch: BatchId) {
        self.with_refusals(|refusals| refusals.unapplied.remove(&batch));
    }

    /// Whether a batch that was applied here is known to have ended otherwise at the server.
    pub(super) fn is_unapplied(&self, batch: BatchId) -> bool {
        self.with_refusals(|refusals| refusals.unapplied.contains_key(&batch))
    }

    /// The batches whose reports the server refuses.
    pub(super) fn refusals(&self) -> Refusals {
        self.with_refusals(|refusals| refusals.clone())
    }

    fn with_refusals<T>(&self, access: impl FnOnce(&mut Refusals) -> T) -> T {
        access(&mut self.refusals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What log events say of a batch of which nothing else is known.
    pub(super) fn trace(&self, batch: BatchId) -> Trace {
        let workspace = Some(self.agent.service.workspace.to_string());
        Trace { workspace, batch: Some(batch), ..Trace::new(Via::Agent) }
    }

    /// The receipt of a batch of the workspace that is served. That a person rejected it is stated by their name.
    pub(super) fn receipt(&self, batch: BatchId, report: Report) -> Receipt {
        let decided_by = report::is_rejected_by_person(&report).then(user);
        Receipt { workspace: self.agent.service.workspace.clone(), batch, report, decided_by, traceparent: None }
    }
}
