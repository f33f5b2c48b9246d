//! Sessions: whether one may write, and changes of its mode that wait for its batches in flight (REQ-PATCH-009).

use std::sync::Arc;

use aptix_model::batch::Origin;
use aptix_model::failure::Failure;
use aptix_model::id::{OwnerId, RequestId, SessionId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::session::{ModeRefusal, Progress, Session, SessionMode};
use tokio::time::{Instant, timeout_at};

use super::Dispatcher;
use super::refusal::{Refusal, not_found, shutting_down};
use super::wake::{Ended, Topic};
use crate::store::StoreError;
use crate::store::session::{ModeChange, ModeChanged, SESSIONS, SessionState, of};
use crate::ticket::Asker;

/// A request to change the mode of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeAsked {
    /// The workspace of the session.
    pub workspace: WorkspaceId,
    /// The session.
    pub session: SessionId,
    /// Who asks.
    pub owner: OwnerId,
    /// Makes it repeatable.
    pub request: RequestId,
    /// The mode asked for.
    pub to: SessionMode,
    /// The token of the call, as records of steps have it.
    pub by: Option<String>,
}

impl Dispatcher {
    /// Checks that the session of an origin may write. The store checks it again in the step that stores a batch, which no
    /// change of the mode comes between.
    ///
    /// # Errors
    /// POLICY_DENIED (RESTRICTED_MODE), with the required message.
    pub async fn check_mode(&self, workspace: &WorkspaceId, origin: &Origin) -> Result<(), Refusal> {
        let Some(id) = of(origin) else { return Ok(()) };
        let found = self.store.session(workspace.clone(), id).await?;
        found.map_or(Ok(()), |found| found.session.may_write()).map_err(Refusal::denied)
    }

    /// A session as it is now.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn session(&self, workspace: &WorkspaceId, id: SessionId) -> Result<SessionState, Refusal> {
        let found = self.store.session(workspace.clone(), id.clone()).await?;
        found.ok_or_else(|| Refusal::denied(not_found(workspace, &format!("session {id}"))))
    }

    /// Changes the mode of a session. A change that has to wait for batches in flight is waited for until the deadline, or not at all if
    /// too many calls wait already; it takes effect without a caller, too. While it waits, the call holds none of the places that
    /// calls have.
    ///
    /// # Errors
    /// WRONG_OWNER, REQUEST_ID_REUSED, RESOURCE_EXHAUSTED, UNAVAILABLE.
    pub async fn set_mode(
        self: &Arc<Self>,
        asked: ModeAsked,
        asker: &Asker,
        deadline: Instant,
    ) -> Result<(Progress, SessionState), Refusal> {
        let mut waker = self.wakes.subscribe(Topic::Workspace(asked.workspace.clone()));
        let mut found = self.ask_mode(&asked).await?;
        if found.0 == Progress::Waiting
            && deadline > Instant::now()
            && let Some(_place) = self.place_to_wait(asker, &asked.workspace)
        {
            asker.release();
            while found.0 == Progress::Waiting {
                tokio::select! {
                    biased;
                    () = self.closing.cancelled() => return Err(Refusal::denied(shutting_down())),
                    woken = timeout_at(deadline, waker.woken()) => {
                        if waker.ended() == Some(Ended::Deleted) {
                            return Err(StoreError::BeingDeleted { workspace: asked.workspace }.into());
                        }
                        if woken.is_ok() && self.still_waits(&asked).await? {
                            continue;
                        }
                        found = self.ask_mode(&asked).await?;
                        if woken.is_err() {
                            break;
                        }
                    }
                }
            }
        }
        let ModeAsked { workspace, session, owner, to, .. } = asked;
        let (progress, changed) = found;
        tracing::info!(WorkspaceId = %workspace, SessionId = %session, Owner = %owner, Mode = %to, Progress = %progress,
            "the mode of a session was asked for");
        let listed = self.store.session(workspace, session).await?;
        Ok((progress, SessionState { session: changed, in_flight: listed.map_or_else(Vec::new, |now| now.in_flight) }))
    }

    /// Whether a change goes on waiting, as far as reading tells.
    async fn still_waits(&self, asked: &ModeAsked) -> Result<bool, Refusal> {
        let found = self.store.session(asked.workspace.clone(), asked.session.clone()).await?;
        let requests = found.map(|found| found.session.requests).unwrap_or_default();
        Ok(requests.iter().any(|request| request.id == asked.request && request.progress == Progress::Waiting))
    }

    /// Asks the store for a mode, also if the caller goes away meanwhile; wakes calls that wait for another mode.
    async fn ask_mode(self: &Arc<Self>, asked: &ModeAsked) -> Result<(Progress, Session), Refusal> {
        let this = Arc::clone(self);
        let ModeAsked { workspace, session, owner, request, to, by } = asked.clone();
        let change = ModeChange { workspace, session, owner, request, to, by, at: self.clock.now() };
        self.to_the_end(async move {
            let (workspace, session) = (change.workspace.clone(), change.session.clone());
            match this.store.set_mode(change).await? {
                ModeChanged::Asked(progress, session) => {
                    if progress != Progress::Waiting {
                        this.wakes.wake_workspace(&workspace);
                    }
                    Ok((progress, *session))
                }
                ModeChanged::Refused(refusal) => Err(Refusal::denied(refused(&session, refusal))),
                ModeChanged::TooMany => Err(Refusal::denied(too_many(&workspace))),
            }
        })
        .await
    }
}

fn refused(session: &SessionId, refusal: ModeRefusal) -> Failure {
    match refusal {
        ModeRefusal::WrongOwner => {
            Failure::new(Reason::WrongOwner, format!("session {session} belongs to another owner"))
                .hint("only the owner who first set the mode of a session can change it")
        }
        ModeRefusal::RequestReused(to) => {
            let message = format!("its request id was used to ask for the mode {to} of session {session}");
            let failure = Failure::new(Reason::RequestIdReused, message).field("requestId");
            failure.hint("choose a new request id for each change; repeat one only with the same mode")
        }
    }
}

fn too_many(workspace: &WorkspaceId) -> Failure {
    let message = format!(
        "workspace {workspace} has {SESSIONS} sessions that are RESTRICTED or have batches in flight, and keeps no more"
    );
    Failure::new(Reason::ResourceExhausted, message).hint("set sessions that are over to UNRESTRICTED, then call again")
}
