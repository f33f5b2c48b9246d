//! Corrects the server's copies of files that are not what is on disk, after a connection was opened: what was applied, undone
//! or changed in any other way while no agent was connected reaches the server as a batch of the workstation itself.

use aptix_model::actor::{Actor, ActorKind};
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
use crate::live::difference::{Difference, HeldFile, OnDisk, described, differences};
use crate::policy::choices::ReportLocal;

/// What a batch of differences is for, for people.
const LABEL: &str = "changed outside of a batch";
/// How often files are looked at again that batches changed while they were reported.
const ROUNDS: usize = 8;

/// Why the server's copies are not corrected now.
enum Unfinished {
    /// The server refuses, or is lost: the next connection compares again.
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

/// Compares every file that the server holds with the disk, page by page, and corrects those that differ.
pub(super) async fn correct(session: &Session) -> Result<(), AgentError> {
    match correct_all(session).await {
        Ok(0) | Err(Unfinished::Over) => Ok(()),
        Ok(count) => {
            tracing::info!(count, "files that the server holds differed from the disk and were reported");
            Ok(())
        }
        Err(Unfinished::Call(error)) => {
            tracing::warn!(%error, "what the server holds of files is not compared with the disk before the next connection");
            Ok(())
        }
        Err(Unfinished::Agent(error)) => Err(error),
    }
}

async fn correct_all(session: &Session) -> Result<usize, Unfinished> {
    let (mut page, mut count) = (String::new(), 0);
    loop {
        let held = match session.connection.cloud_files(page).await {
            // No batch has made the workspace known yet.
            Err(error) if error.reason() == Some(Reason::NotFound) => return Ok(count),
            held => held?,
        };
        let local = &session.agent.local;
        let of_key = |file: CloudState| HeldFile::of_key(local, file.doc_path, &file.path, Some(file.sha256));
        count += correct_files(session, held.files.into_iter().filter_map(of_key).collect()).await?;
        page = held.next;
        if page.is_empty() {
            return Ok(count);
        }
    }
}

/// Corrects what differs of these files; answers how many did. A batch may write them meanwhile, and its report may come to the
/// server before this one: then they are looked at again.
async fn correct_files(session: &Session, mut files: Vec<HeldFile>) -> Result<usize, Unfinished> {
    let mut count = 0;
    for _ in 0..ROUNDS {
        let found = compare(session, files).await?;
        let found = upload(session, found).await?;
        if found.is_empty() {
            break;
        }
        count = count.max(found.len());
        let (batch, report) = described(&session.agent.local, Some(LABEL.to_owned()), None, &found);
        let actor = Actor { kind: ActorKind::Agent, name: Some(session.agent.id.to_string()) };
        let id = mint();
        let local = LocalBatch { id, batch, report, reverts: None, actor };
        session.connection.report_local(&session.lease, local).await?;
        files = found.into_iter().filter_map(Difference::reported).collect();
    }
    Ok(count)
}

async fn compare(session: &Session, files: Vec<HeldFile>) -> Result<Vec<Difference>, Unfinished> {
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

fn is_over(agent: &Agent, alive: &CancellationToken) -> bool {
    alive.is_cancelled() || agent.stop.is_cancelled()
}
