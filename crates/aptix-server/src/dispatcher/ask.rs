//! Asks the agent that serves a workspace, and says how it is served.

use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::presence::{Presence, QuestionKind};
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::{Answer, Ask};
use tokio::time::{Instant, timeout_at};

use super::Dispatcher;
use super::questions::{Questions, Serving, too_late};
use super::refusal::{Refusal, full};
use crate::room::Place;
use crate::store::StoreError;
use crate::store::fleet::{Holder, Member};
use crate::ticket::Asker;

/// Bytes of a question that weigh as much as one more question.
const UNIT: usize = 16 << 10;

/// Who serves a workspace, and where.
enum Way {
    /// Here.
    Here(Arc<Questions>),
    /// Through another server.
    There(Member, Serving),
}

impl Way {
    fn presence(&self) -> &Presence {
        match self {
            Self::Here(questions) => &questions.serving.presence,
            Self::There(_, serving) => &serving.presence,
        }
    }
}

impl Dispatcher {
    /// How a workspace is served now; absent while no agent is connected, to whichever server.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn serving(&self, workspace: &WorkspaceId) -> Result<Option<Serving>, StoreError> {
        Ok(self.way(workspace).await?.map(|way| match way {
            Way::Here(questions) => questions.serving.clone(),
            Way::There(_, serving) => serving,
        }))
    }

    async fn way(&self, workspace: &WorkspaceId) -> Result<Option<Way>, StoreError> {
        if let Some(questions) = self.leases.questions(workspace) {
            return Ok(Some(Way::Here(questions)));
        }
        if !self.fleet.is_shared() {
            return Ok(None);
        }
        let holder = self.store.holder(workspace.clone()).await?;
        Ok(holder.map(|(Holder { agent, since, presence, .. }, server)| {
            Way::There(server, Serving { agent, since, presence: Arc::new(presence) })
        }))
    }

    /// Asks the agent that serves a workspace, and waits for its answer. A caller that stops waiting cancels the question. While
    /// it waits, its call holds none of the places that calls have. An agent that is connected to another server is asked through
    /// that one.
    ///
    /// # Errors
    /// - UNAVAILABLE (NO_AGENT): no agent serves the workspace, or it does not answer questions of this kind.
    /// - UNAVAILABLE (AGENT_LOST): its connection ended before it answered, or the server it is connected to cannot be reached.
    /// - DEADLINE_EXCEEDED: it gave no answer in time.
    /// - RESOURCE_EXHAUSTED: too many questions wait.
    /// - OVER_LIMIT: too many of the caller's token, or about the workspace.
    /// - Whatever the agent answers that failed as a whole.
    pub async fn ask(
        &self,
        workspace: &WorkspaceId,
        asker: &Asker,
        ask: Ask,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let kind = ask.kind();
        let way = self.way(workspace).await?.ok_or_else(|| Refusal::denied(no_agent(workspace)))?;
        if !way.presence().answers(kind) {
            return Err(Refusal::denied(cannot_answer(workspace, way.presence(), kind)));
        }
        let _counted = asker.peer.quota.question(workspace)?;
        let _place = self.place_of(asker, &ask)?;
        match way {
            Way::Here(questions) => questions.ask(asker, ask, deadline).await,
            Way::There(server, _) => {
                let asked = timeout_at(deadline, self.others.ask(&server, workspace, ask, deadline)).await;
                asked.unwrap_or_else(|_| Err(too_late()))
            }
        }
    }

    /// Asks the agent that serves a workspace through this server, for another server.
    ///
    /// # Errors
    /// Those of [`Self::ask`]; UNAVAILABLE (NO_AGENT) also where the agent is connected to another server.
    pub async fn ask_here(
        &self,
        workspace: &WorkspaceId,
        asker: &Asker,
        ask: Ask,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let questions = self.leases.questions(workspace).ok_or_else(|| Refusal::denied(no_agent(workspace)))?;
        let _place = self.place_of(asker, &ask)?;
        questions.ask(asker, ask, deadline).await
    }

    /// A place among the calls that wait for an agent, in the place of those that the call had.
    fn place_of(&self, asker: &Asker, ask: &Ask) -> Result<Place, Refusal> {
        let place = self.questions.take(&asker.peer, 1 + ask.size() / UNIT);
        let place = place.map_err(|found| Refusal::denied(full("questions", found)))?;
        asker.release();
        Ok(place)
    }
}

fn no_agent(workspace: &WorkspaceId) -> Failure {
    Failure::new(Reason::Unavailable, format!("no agent serves the workspace {workspace} at present"))
        .detail(Detail::NoAgent)
        .hint("start `aptix agent` on its workstation, then call again")
}

fn cannot_answer(workspace: &WorkspaceId, presence: &Presence, kind: QuestionKind) -> Failure {
    let (version, kind) = (&presence.version, kind.feature());
    let message =
        format!("the agent of the workspace {workspace}, version {version:?}, answers no questions of the kind {kind}");
    Failure::new(Reason::Unavailable, message).detail(Detail::NoAgent).hint("update aptix on its workstation")
}
