//! Corrects the server's copies of files that are not what is on disk: what no batch did reaches the server as a batch of the
//! workstation itself.

use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::reason::Reason;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::AgentError;
use super::service::{Agent, Session};
use crate::connection::CallError;
use crate::connection::cloud::{CloudState, LocalBatch};
use crate::live::difference::{Difference, HeldFile, OnDisk, differences};
use crate::live::local_batch::{Described, of_differences};
use crate::policy::choices::ReportLocal;

/// What a batch of differences is for, for people.
const LABEL: &str = "changed outside of a batch";

/// Why what the server lacks is not reported now.
pub(super) enum Unfinished {
    /// The server refuses, or is lost.
    Call(CallError),
    /// The agent cannot go on.
    Agent(AgentError),
    /// The connection is dead, or the agent stops.
    Over,
}

impl From<CallError> for Unfinished {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<AgentError> for Unfinished {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

/// All files that the server holds, page by page.
#[derive(Default)]
pub(super) struct Pages {
    /// The token of the next page.
    next: String,
    is_last: bool,
}

impl Pages {
    /// The next page; `None` behind the last one.
    pub(super) async fn next(&mut self, session: &Session) -> Result<Option<Vec<HeldFile>>, Unfinished> {
        if self.is_last {
            return Ok(None);
        }
        let held = match session.connection.cloud_files(std::mem::take(&mut self.next)).await {
            // No batch has made the workspace known yet.
            Err(error) if error.reason() == Some(Reason::NotFound) => return Ok(None),
            held => held?,
        };
        (self.is_last, self.next) = (held.next.is_empty(), held.next);
        let local = &session.agent.local;
        let of_key = |file: CloudState| HeldFile::of_key(local, file.doc_path, &file.path, Some(file.sha256));
        Ok(Some(held.files.into_iter().filter_map(of_key).collect()))
    }
}

/// Reports how files differ, as one batch; answers what the server holds of them then.
pub(super) async fn report(session: &Session, found: Vec<Difference>) -> Result<Vec<HeldFile>, Unfinished> {
    let found = upload(session, found).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let Described { batch, report } = of_differences(&session.agent.local, Some(LABEL.to_owned()), &found);
    let local = LocalBatch { id: mint(), batch, report, reverts: None, actor: session.agent.actor(), reason: None };
    session.connection.report_local(&session.lease, local).await?;
    Ok(found.into_iter().filter_map(Difference::reported).collect())
}

/// How files differ from what the server holds of them.
pub(super) async fn compare(session: &Session, files: Vec<HeldFile>) -> Result<Vec<Difference>, Unfinished> {
    let alive = session.alive.clone();
    let compared = session.agent.blocking(move |agent| {
        // Without a policy that can be followed nothing leaves the machine.
        let Ok(policy) = agent.service.policy.read(&agent.local) else { return Ok(Vec::new()) };
        if policy.report_local == ReportLocal::Off {
            return Ok(Vec::new());
        }
        differences(&agent.local, &policy, &files, &|| is_over(agent, &alive))
    });
    compared.await?.map_err(|_| Unfinished::Over)
}

/// Uploads what is on disk now of files that differ. One that is not shown any more is left to the next connection.
async fn upload(session: &Session, found: Vec<Difference>) -> Result<Vec<Difference>, Unfinished> {
    let mut uploaded = Vec::with_capacity(found.len());
    for mut difference in found {
        if !matches!(difference.now, OnDisk::Bytes(_)) {
            uploaded.push(difference);
            continue;
        }
        let alive = session.alive.clone();
        let read = session.agent.blocking(move |agent| {
            let policy = agent.service.policy.read(&agent.local).map_err(|error| error.failure())?;
            let bytes = difference.content(&agent.local, &policy, &|| is_over(agent, &alive))?;
            Ok::<_, Failure>((difference, bytes))
        });
        let Ok((difference, bytes)) = read.await? else { continue };
        if let OnDisk::Bytes(written) = difference.now {
            session.connection.upload(Some(&session.lease), written.sha256, bytes).await?;
            uploaded.push(difference);
        }
    }
    Ok(uploaded)
}

#[expect(clippy::disallowed_methods, reason = "an agent mints the ids of its own batches")]
fn mint() -> BatchId {
    id_block::batch_id(Uuid::now_v7())
}

pub(super) fn is_over(agent: &Agent, alive: &CancellationToken) -> bool {
    alive.is_cancelled() || agent.stop.is_cancelled()
}
