//! Recording what was done on the workstation itself: a batch that is stored as ended, with the files that it left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use aptix_model::actor::Actor;
use aptix_model::batch::{Batch, FileEdit, Origin, Target};
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::id_block;
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Sent, Source};
use aptix_model::report::{Outcome, Report};
use aptix_model::state::BatchState;

use super::Dispatcher;
use super::fit::{Fitted, fit};
use super::refusal::Refusal;
use super::report::lease_lost;
use crate::metrics::Metric;
use crate::store::{BatchSelector, FileUpdate, LeaseProof, LocalAppended, LocalBatch, StoreError, retention};

/// What was done on a workstation itself, as its agent reports it.
#[derive(Clone, Debug)]
pub struct LocalReport {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The name of the batch, minted by the workstation.
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

impl Dispatcher {
    /// Stores a batch of the workstation itself. Repeating it is a no-op with the same answer, also from an agent that has
    /// lost the lease.
    ///
    /// # Errors
    /// When its id names another batch, the lease is lost, or it is no such batch.
    pub async fn report_local(self: &Arc<Self>, local: LocalReport, lease: LeaseProof) -> Result<BatchRecord, Refusal> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.store_local(local, lease).await }).await
    }

    async fn store_local(&self, local: LocalReport, lease: LeaseProof) -> Result<BatchRecord, Refusal> {
        let began = Instant::now();
        let (checked, fitted) = (check(&local, &self.settings.limits), fit(&local.batch, &local.report));
        let LocalReport { workspace, id, batch, report, reverts, actor, reason } = local;
        let request_id = id.to_string().parse().map_err(|_| misfit("batchId", "it is no request id".to_owned()))?;
        let now = self.clock.now();
        let record = BatchRecord {
            id,
            workspace,
            revision: Revision::default(),
            state: BatchState::Applied,
            ids: id_block::of(id, &batch),
            batch,
            origin: Origin::default(),
            request_id,
            created: now,
            updated: now,
            report: Some(report),
            source: Source::Local { author: actor.clone(), reverts },
            reverted_by: None,
            is_restricted: false,
            removed_content: None,
            sent: Sent::default(),
        };
        let files = match checked.and(fitted) {
            Ok(fitted) => self.local_files(&record.workspace, fitted).await?,
            // It may be the retry of a batch that was stored under other limits: that is answered, not refused.
            Err(failures) => {
                let known = self.store.batch(record.workspace.clone(), BatchSelector::Id(id)).await?;
                return same(known.ok_or(Refusal::Invalid(failures))?, record);
            }
        };
        let offered = record.clone();
        match self.store.append_local(LocalBatch { batch: record, actor, reason, reverts, lease, files }).await? {
            LocalAppended::New(stored) => {
                let reported =
                    Event::Reported(stored.state, stored.report.as_ref().map(|report| (&stored.batch, report)));
                Trace::of(Via::Server, &stored).log(began.elapsed(), reported);
                Metric::BatchSteps.add(&[stored.state.word()], 1.0);
                self.wakes.wake(&stored.workspace, stored.id);
                Ok(*stored)
            }
            LocalAppended::Known(known) => same(*known, offered),
            LocalAppended::OtherLease => Err(lease_lost(lease.epoch)),
        }
    }

    /// How the report changes the cloud files. One whose content was not uploaded stays as it is.
    async fn local_files(&self, workspace: &WorkspaceId, updates: Vec<Fitted>) -> Result<Vec<FileUpdate>, StoreError> {
        let digests = updates.iter().filter_map(|fitted| Some(fitted.update.content?.sha256)).collect();
        let mut sizes = self.store.blob_sizes(workspace.clone(), digests).await?.into_iter();
        let has_content = |update: &FileUpdate| {
            update.content.is_none_or(|content| sizes.next().flatten() == Some(content.size_bytes))
        };
        Ok(updates.into_iter().map(|fitted| fitted.update).filter(has_content).collect())
    }
}

/// The stored batch, if it is the one that is offered under its id.
fn same(stored: BatchRecord, mut offered: BatchRecord) -> Result<BatchRecord, Refusal> {
    // The first actor stays: an agent whose state was restored may not know it any more.
    if let (Source::Local { author: first, .. }, Source::Local { author, .. }) = (&stored.source, &mut offered.source) {
        author.clone_from(first);
    }
    if stored.removed_content.is_some() {
        offered.remove_content(retention::content_digest(&offered.batch));
    }
    let BatchRecord { revision, created, updated, reverted_by, .. } = stored;
    if (BatchRecord { revision, created, updated, reverted_by, ..offered }) == stored {
        return Ok(stored);
    }
    let failure = Failure::new(Reason::RequestIdReused, "the id names another batch, or this one with other content");
    Err(Refusal::denied(
        failure.field("batchId").hint("keep the batch that is stored, and mint a new id for another one"),
    ))
}

/// Everything that keeps this from being a batch of the workstation itself.
fn check(local: &LocalReport, limits: &Limits) -> Result<(), Vec<Failure>> {
    let LocalReport { id, batch, report, actor, reason, .. } = local;
    let mut found = Vec::new();
    if id_block::batch_id(id.0) != *id {
        found.push(misfit("batchId", format!("{id} is not the id of a batch: its last 17 bits are not zero")));
    }
    if report.outcome != Outcome::Applied {
        found.push(misfit(
            "report.outcome",
            "a batch of the workstation was applied: expected OUTCOME_APPLIED".to_owned(),
        ));
    }
    if batch.files.is_empty() || batch.files.len() > limits.files || !batch.quotes.is_empty() {
        let message = format!("expected 1 to {} files and no quotes, found {}", limits.files, batch.files.len());
        found.push(misfit("edit.files", message));
    }
    let files = batch.files.iter().flat_map(|patch| [&patch.key, &patch.label]);
    let texts = [&batch.label, &batch.key, &actor.name, reason].into_iter().chain(files);
    if let Some(long) = texts.flatten().find(|text| text.len() > limits.text_bytes) {
        let message =
            format!("a label, key, name or reason has {} bytes, at most {} are kept", long.len(), limits.text_bytes);
        found.push(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("edit"));
    }
    for (index, patch) in batch.files.iter().enumerate().take(limits.files) {
        if patch.edit != FileEdit::LocalChange || !matches!(patch.target, Target::Path(_)) {
            found.push(misfit(&format!("edit.files[{index}]"), "expected a path and localChange".to_owned()));
            break;
        }
    }
    let mut paths = BTreeSet::new();
    if let Some(twice) = report.files.iter().find(|file| !paths.insert((&file.doc_path, &file.path))) {
        found.push(misfit("report.files", format!("{} is named twice", aptix_model::failure::Visible(&twice.path))));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn misfit(field: &str, message: String) -> Failure {
    Failure::new(Reason::InvalidRequest, message).field(field)
}
