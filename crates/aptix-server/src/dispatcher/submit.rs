//! Submitting a batch: checked in full, then stored once for each request id, then sent to watchers (TUL-002 8.6).

use std::sync::Arc;
use std::time::Instant;

use aptix_engine::validate::{validate_open, validate_part};
use aptix_model::batch::{Batch, BlobRef, Content, Origin};
use aptix_model::documents::PartialDocument;
use aptix_model::documents::terms::in_terms_of_part;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, RequestId, Revision, WorkspaceId};
use aptix_model::id_block;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Preparation, Sent, Source, UnixMillis};
use aptix_model::state::BatchState;
use aptix_telemetry::{Kind, Span};

use super::Dispatcher;
use super::refusal::{Refusal, broken_off, shutting_down};
use super::stored_bytes::Reservation;
use crate::metrics::Metric;
use crate::mint;
use crate::quota::{CallQuota, Reserved};
use crate::store::{Appended, BatchSelector, Known, retention};

/// A batch as it comes in.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Whose files it changes.
    pub workspace: WorkspaceId,
    /// What it is submitted under.
    pub request_id: RequestId,
    /// What is to happen.
    pub batch: Batch,
    /// Whose turn it comes from.
    pub origin: Origin,
    /// What is known of the call.
    pub sent: Sent,
}

impl Submission {
    /// The batch with new ids, as [`Dispatcher::keep`] stores it, submitted at `now` ([`Dispatcher::now`]). It has no revision yet.
    #[must_use]
    pub fn into_record(self, now: UnixMillis) -> BatchRecord {
        let Self { workspace, request_id, batch, origin, sent } = self;
        let id = id_block::batch_id(mint::uuid());
        BatchRecord {
            id,
            workspace,
            revision: Revision::default(),
            state: BatchState::Approved,
            ids: id_block::of(id, &batch),
            batch,
            origin,
            request_id,
            created: now,
            updated: now,
            report: None,
            source: Source::Submitted,
            reverted_by: None,
            is_restricted: false,
            removed_content: None,
            sent,
        }
    }
}

impl Dispatcher {
    /// Checks everything about a batch that can be checked without its files. Nothing is stored.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub async fn check(&self, submission: &Submission) -> Result<(), Refusal> {
        let Submission { workspace, batch, origin, .. } = submission;
        if self.closing.is_cancelled() {
            return Err(Refusal::denied(shutting_down()));
        }
        let mut failures = check_origin(origin, self.settings.limits.text_bytes);
        if let Err(found) = validate_open(batch, &self.settings.limits) {
            let patch = |failure: &Failure| batch.files.get(failure.file_index?);
            failures.extend(found.into_iter().map(|failure| match patch(&failure) {
                Some(patch) => patch.name(failure),
                None => failure,
            }));
        }
        if !failures.is_empty() {
            return Err(Refusal::Invalid(failures));
        }
        let blobs: Vec<_> = referenced(batch).collect();
        if !blobs.is_empty() {
            let digests = blobs.iter().map(|(_, blob)| blob.sha256).collect();
            let sizes = self.store.blob_sizes(workspace.clone(), digests).await?;
            let absent = blobs.into_iter().zip(sizes).filter(|((_, blob), size)| *size != Some(blob.size_bytes));
            let absent: Vec<_> = absent.map(|(blob, _)| blob).collect();
            if !absent.is_empty() {
                return Err(blobs_missing(&absent));
            }
        }
        Ok(())
    }

    /// Refuses a call of the wrong shape with everything that is wrong with it: `failures` of other fields, then those of the
    /// edit and of the origin. What can be read of the edit is checked as well, in the terms of its document if it has one.
    #[must_use]
    pub fn refuse(&self, mut failures: Vec<Failure>, origin: &Origin, edit: Option<PartialDocument>) -> Refusal {
        if let Some(edit) = edit {
            let patch =
                |position| edit.part.batch.files.get(edit.part.positions.iter().position(|at| *at == position)?);
            let in_terms = |failure: Failure| {
                let failure = match failure.file_index.and_then(patch) {
                    Some(patch) => patch.name(failure),
                    None => failure,
                };
                in_terms_of_part(&edit, failure)
            };
            failures.extend(validate_part(&edit.part, &self.settings.limits, in_terms));
        }
        failures.extend(check_origin(origin, self.settings.limits.text_bytes));
        Refusal::Invalid(failures)
    }

    /// What is wrong with the texts of an origin.
    #[must_use]
    pub fn check_origin(&self, origin: &Origin) -> Vec<Failure> {
        check_origin(origin, self.settings.limits.text_bytes)
    }

    /// Stores a checked batch, to be applied or to wait for a person, unless it was stored before under its request id. It came at
    /// `began`.
    ///
    /// # Errors
    /// When the request id has another content, the token or the workspace had as many batches in a day as it may, the workspace has no
    /// room for it, or the store fails.
    pub async fn keep(
        self: &Arc<Self>,
        record: BatchRecord,
        quota: &CallQuota,
        began: Instant,
    ) -> Result<BatchRecord, Refusal> {
        let state = self.state_when_free(&record.workspace, &record.batch);
        let record = BatchRecord { state, ..record };
        let reserved = self.reserve(&record, quota).await?;
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let id = record.id;
            this.append(record, began).await.inspect(|kept| count(reserved, id, kept))
        })
        .await
    }

    async fn append(&self, record: BatchRecord, began: Instant) -> Result<BatchRecord, Refusal> {
        self.check_disk_for(&record.workspace, &record.request_id).await?;
        let span = Span::below("store", Kind::Internal, record.sent.traceparent);
        let appended = self.store.append(record).await?;
        drop(span);
        match appended {
            Appended::New(stored) => {
                Trace::of(Via::Server, &stored).log(began.elapsed(), Event::Stored(&stored.batch, stored.revision));
                Metric::BatchSteps.add(&[stored.state.word()], 1.0);
                self.wakes.wake(&stored.workspace, stored.id);
                Ok(*stored)
            }
            Appended::Known(known) => {
                let Known { stored, offered } = *known;
                same(stored, &offered.batch, &offered.origin, &offered.source)
                    .inspect(|stored| log_repeated(stored, began))
            }
            Appended::Restricted(failure) => Err(Refusal::Denied(failure)),
            // Only a prepared batch replaces another one.
            Appended::NotReplaced(_) => Err(Refusal::denied(broken_off())),
        }
    }

    /// The batch that was stored under the request id of a submission; `None` if there is none.
    ///
    /// # Errors
    /// When that batch has another content, or the store fails.
    pub async fn stored_before(&self, submission: &Submission) -> Result<Option<BatchRecord>, Refusal> {
        let which = BatchSelector::Request(submission.request_id.clone());
        let stored = self.store.batch(submission.workspace.clone(), which).await?;
        stored.map(|stored| same(stored, &submission.batch, &submission.origin, &Source::Submitted)).transpose()
    }

    /// What a checked batch would be, had it been stored; nothing is.
    ///
    /// # Errors
    /// When the request id has another content, or the store fails.
    pub async fn rehearse(&self, submission: Submission) -> Result<BatchRecord, Refusal> {
        self.stored_before(&submission).await?;
        let record = submission.into_record(self.clock.now());
        Ok(BatchRecord { state: self.state_when_free(&record.workspace, &record.batch), ..record })
    }
}

/// Lets a batch count if it was stored as the new one of this id, and not before.
pub(super) fn count(reserved: Reservation, id: BatchId, kept: &BatchRecord) {
    if kept.id == id {
        reserved.counted.into_iter().for_each(Reserved::stored);
    }
}

/// Logs that a batch which came at `began` is stored already.
pub fn log_repeated(stored: &BatchRecord, began: Instant) {
    Trace::of(Via::Server, stored).log(began.elapsed(), Event::Repeated(stored.state));
}

/// The stored batch, if it has the content that is offered under its request id, and came in the same way.
pub(super) fn same(
    stored: BatchRecord,
    batch: &Batch,
    origin: &Origin,
    source: &Source,
) -> Result<BatchRecord, Refusal> {
    let came_alike = match (&stored.source, source) {
        (Source::Prepared(one), Source::Prepared(other)) => {
            // Of a plan that tools know by its id, another batch may be the newest now.
            let of = |preparation: &Preparation| match preparation.hunk {
                Some(hunk) => (Some(hunk), None),
                None => (None, preparation.replaces),
            };
            one.owner == other.owner && of(one) == of(other)
        }
        (Source::Revert(one), Source::Revert(other)) => one.of == other.of,
        (one, other) => one == other,
    };
    let has_same_content = match stored.removed_content {
        Some(removed) => removed == retention::content_digest(batch),
        None => stored.batch == *batch,
    };
    if came_alike && has_same_content && stored.origin == *origin {
        return Ok(stored);
    }
    Err(request_reused(stored.id))
}

/// Refuses a call whose request id was used for something else.
pub(super) fn request_reused(stored: BatchId) -> Refusal {
    let message = format!("its request id was used for batch {stored}, which has other content");
    let hint = "choose a new request id for each batch; repeat one only with the same content";
    Refusal::denied(Failure::new(Reason::RequestIdReused, message).field("requestId").hint(hint))
}

/// Refuses a batch that names these blobs, each with the index of its file patch.
fn blobs_missing(blobs: &[(usize, BlobRef)]) -> Refusal {
    let named =
        |(index, blob): &(usize, BlobRef)| format!("files[{index}]: {} ({} bytes)", blob.sha256, blob.size_bytes);
    let named = blobs.iter().take(20).map(named).collect::<Vec<_>>().join(", ");
    let message = format!("{} blobs it names were not uploaded to the workspace: {named}", blobs.len());
    let failure = Failure::new(Reason::BlobMissing, message)
        .hint("upload each with UploadBlob, with this digest and size, then submit again");
    Refusal::BlobsMissing(Box::new(failure), blobs.iter().map(|(_, blob)| blob.sha256).collect())
}

pub(super) fn check_origin(origin: &Origin, most: usize) -> Vec<Failure> {
    let fields = [
        ("origin.sessionId", &origin.session_id),
        ("origin.conversationId", &origin.conversation_id),
        ("origin.turnId", &origin.turn_id),
    ];
    let found = fields.iter().filter_map(|(field, text)| {
        let length = text.as_deref().map_or(0, str::len);
        (length > most).then(|| {
            Failure::new(Reason::TooLarge, format!("{field} has {length} bytes, at most {most} are kept"))
                .detail(Detail::Text)
                .field(*field)
        })
    });
    found.collect()
}

fn referenced(batch: &Batch) -> impl Iterator<Item = (usize, BlobRef)> + '_ {
    batch.files.iter().enumerate().filter_map(|(index, patch)| match patch.edit.content()? {
        Content::Blob(blob) => Some((index, *blob)),
        Content::Text(_) => None,
    })
}
