//! What the server holds of the workspace's files, and the batches of the workstation itself that correct it.

use aptix_model::actor::Actor;
use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use aptix_model::path::DocPath;
use aptix_model::report::Report;
use aptix_model::wire::v1::file_result::Result as Found;
use aptix_model::wire::v1::file_selector::File;
use aptix_model::wire::{digest, v1};

use super::call_error::CallError;
use super::feed::Lease;
use super::link::{ANSWER, Connection, timed};

/// Files of one page.
const PAGE: i32 = 500;

/// A file as the server holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudState {
    /// Its path; with its root's name in front or without.
    pub path: String,
    /// Its lower-case key.
    pub doc_path: DocPath,
    /// SHA-256 of its content.
    pub sha256: Sha256Digest,
}

/// A page of the files that the server holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudPage {
    /// The files.
    pub files: Vec<CloudState>,
    /// The token of the next page; empty on the last one.
    pub next: String,
}

/// What was done on the workstation itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalBatch {
    /// Its name.
    pub id: BatchId,
    /// The files that changed.
    pub batch: Batch,
    /// What became of them.
    pub report: Report,
    /// The batch that it took back.
    pub reverts: Option<BatchId>,
    /// Who did it.
    pub actor: Actor,
    /// Why, if a reason was given.
    pub reason: Option<String>,
}

impl Connection {
    /// A page of the files that the server holds; the first page with an empty token. Entries that make no sense are left out.
    ///
    /// # Errors
    /// INVALID_REQUEST (PAGE) for another server's token; or the server is lost.
    pub async fn cloud_files(&self, page_token: String) -> Result<CloudPage, CallError> {
        let message = v1::ListFilesRequest {
            workspace_id: self.workspace.to_string(),
            page_size: PAGE,
            page_token,
            source: v1::Source::Cloud.into(),
            ..v1::ListFilesRequest::default()
        };
        let answer = self.answer(self.files().list_files(timed(message, ANSWER))).await?;
        Ok(CloudPage { files: answer.files.into_iter().filter_map(state).collect(), next: answer.next_page_token })
    }

    /// SHA-256 of what the server holds of each of at most 1,000 files; `None` where it holds nothing, or cannot say.
    ///
    /// # Errors
    /// NOT_FOUND if there is no such workspace; INVALID_REQUEST for more files; or the server is lost.
    pub async fn held(&self, files: &[DocPath]) -> Result<Vec<Option<Sha256Digest>>, CallError> {
        let selector = |file: &DocPath| v1::FileSelector { file: Some(File::DocPath(file.to_string())) };
        let message = v1::StatFilesRequest {
            workspace_id: self.workspace.to_string(),
            files: files.iter().map(selector).collect(),
            source: v1::Source::Cloud.into(),
        };
        let answer = self.answer(self.files().stat_files(timed(message, ANSWER))).await?;
        let mut held: Vec<_> = answer.results.into_iter().map(held_digest).collect();
        held.resize(files.len(), None);
        Ok(held)
    }

    /// Records what was done on the workstation itself; repeatable.
    ///
    /// # Errors
    /// LEASE_LOST; REQUEST_ID_REUSED if the server has the batch with other content; INVALID_REQUEST; or the server is lost.
    pub async fn report_local(&self, lease: &Lease, local: LocalBatch) -> Result<(), CallError> {
        let LocalBatch { id, batch, report, reverts, actor, reason } = local;
        let message = v1::ReportLocalBatchRequest {
            workspace_id: self.workspace.to_string(),
            lease_epoch: lease.epoch,
            lease_secret: lease.secret.0.clone(),
            batch_id: id.to_string(),
            edit: Some(batch.into()),
            report: Some(report.into()),
            reverts: reverts.map(|id| id.to_string()).unwrap_or_default(),
            actor: Some(actor.into()),
            reason: reason.unwrap_or_default(),
        };
        self.answer(self.agents().report_local_batch(timed(message, ANSWER))).await.map(drop)
    }
}

fn held_digest(result: v1::FileResult) -> Option<Sha256Digest> {
    let Some(Found::File(file)) = result.result else { return None };
    digest("file.sha256", &file.file?.sha256).ok()
}

fn state(file: v1::FileState) -> Option<CloudState> {
    let sha256 = digest("file.sha256", &file.sha256).ok()?;
    Some(CloudState { doc_path: DocPath::new(&file.doc_path).ok()?, path: file.path, sha256 })
}
