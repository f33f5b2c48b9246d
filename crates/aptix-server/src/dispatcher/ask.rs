//! Asks the agent that serves a workspace, and says how it is served.

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::presence::{Presence, QuestionKind};
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::{Answer, Ask};
use tokio::time::Instant;

use super::Dispatcher;
use super::questions::Serving;
use super::refusal::{Refusal, full};
use crate::ticket::Asker;

/// Bytes of a question that weigh as much as one more question.
const UNIT: usize = 16 << 10;

impl Dispatcher {
    /// How a workspace is served now; absent while no agent is connected.
    #[must_use]
    pub fn serving(&self, workspace: &WorkspaceId) -> Option<Serving> {
        self.leases.questions(workspace).map(|questions| questions.serving.clone())
    }

    /// Asks the agent that serves a workspace, and waits for its answer. A caller that stops waiting cancels the question. While
    /// it waits, its call holds none of the places that calls have.
    ///
    /// # Errors
    /// - UNAVAILABLE (NO_AGENT): no agent serves the workspace, or it does not answer questions of this kind.
    /// - UNAVAILABLE (AGENT_LOST): its connection ended before it answered.
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
        let questions = self.leases.questions(workspace).ok_or_else(|| Refusal::denied(no_agent(workspace)))?;
        if !questions.serving.presence.answers(kind) {
            return Err(Refusal::denied(cannot_answer(workspace, &questions.serving.presence, kind)));
        }
        let _counted = asker.peer.quota.question(workspace)?;
        let too_many = |found| Refusal::denied(full("questions", found));
        let _place = self.questions.take(&asker.peer, 1 + ask.size() / UNIT).map_err(too_many)?;
        asker.release();
        questions.ask(asker, ask, deadline).await
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
