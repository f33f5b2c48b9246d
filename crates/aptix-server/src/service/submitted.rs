//! What a submit says: an edit as such, or a document, which is read here as the command line reads it.

use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, BlobRef, Content};
use aptix_model::documents::terms::in_terms_of;
use aptix_model::documents::{self, Dialect, Document, PartialDocument};
use aptix_model::failure::Failure;
use aptix_model::id::{RequestId, WorkspaceId};
use aptix_model::id_block;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::Sent;
use aptix_model::report::Warning;
use aptix_model::wire::{self, View, fit, v1};
use prost::Message;
use tokio_util::bytes::Bytes;

use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::submit::Submission;

/// Room for what the server adds to a batch beside ids: its own id, state, revision, times.
const MARGIN: usize = 4096;

/// The most that each id adds to a batch, with the lengths around it that grow.
const ID_BYTES: usize = 48;

/// Bytes that a batch may be submitted with.
const SUBMITTED: usize = fit::ROOM - MARGIN;

/// Warnings about a document that an answer has room for.
pub(super) const WARNINGS: usize = 100;

/// A submit of the right shape.
pub(super) struct Submitted {
    pub(super) submission: Submission,
    /// The dialect of its document, and what was read of it but has no effect; none if the edit came as such.
    pub(super) document: Option<(Dialect, Vec<Warning>)>,
    /// How much of the batch the answer holds.
    pub(super) view: View,
}

impl Submitted {
    /// Decodes a submit.
    ///
    /// # Errors
    /// Everything that is wrong with its shape, and with what can be read of it all the same.
    pub(super) fn read(dispatcher: &Dispatcher, request: v1::SubmitBatchRequest, sent: Sent) -> Result<Self, Refusal> {
        use v1::submit_batch_request::Content;
        let mut failures = Vec::new();
        let workspace = wire::id::<WorkspaceId>("workspaceId", &request.workspace_id);
        let workspace = workspace.map_err(|failure| failures.push(failure));
        let request_id = wire::id::<RequestId>("requestId", &request.request_id);
        let request_id = request_id.map_err(|failure| failures.push(failure));
        let view = View::asked(request.view).map_err(|failure| failures.push(failure));
        let origin = request.origin.map(Into::into).unwrap_or_default();
        let (content, warnings) = match request.content {
            Some(Content::Edit(edit)) => (Some(PartialDocument { dialect: None, part: edit.into() }), Vec::new()),
            Some(Content::Document(document)) => match parse(&document) {
                Ok(Document { dialect, batch, warnings }) => {
                    (Some(PartialDocument { dialect: Some(dialect), part: batch.into() }), warnings)
                }
                Err(document) => (Some(document), Vec::new()),
            },
            None => {
                failures.push(wire::missing("content", "edit or document"));
                (None, Vec::new())
            }
        };
        match (workspace, request_id, view, content) {
            (Ok(workspace), Ok(request_id), Ok(view), Some(PartialDocument { dialect, part }))
                if part.failures.is_empty() =>
            {
                let submission = Submission { workspace, request_id, batch: part.batch, origin, sent };
                Ok(Self { submission, document: dialect.map(|dialect| (dialect, warnings)), view })
            }
            (.., content) => Err(dispatcher.refuse(failures, &origin, content)),
        }
    }

    /// A refusal of the batch, in the terms of its document.
    pub(super) fn in_terms(&self, refusal: Refusal) -> Refusal {
        match (refusal, &self.document) {
            (Refusal::Invalid(failures), Some((dialect, _))) => {
                Refusal::Invalid(in_terms_of(*dialect, &self.submission.batch, failures))
            }
            (refusal, _) => refusal,
        }
    }

    /// Takes out of a document what travels in blobs: the batch names them then, as the batch of an author who uploaded
    /// them does.
    pub(super) fn detach_contents(&mut self) -> Vec<(BlobRef, Bytes)> {
        if self.document.is_none() { Vec::new() } else { detached(&mut self.submission.batch) }
    }
}

/// Takes out of a batch what travels in blobs.
pub(super) fn detached(batch: &mut Batch) -> Vec<(BlobRef, Bytes)> {
    let detach = |content: &mut Content| {
        let Content::Text(text) = content else { return None };
        let bytes = Bytes::from(std::mem::take(text));
        let blob = BlobRef { sha256: sha256(&bytes), size_bytes: bytes.len() as u64 };
        *content = Content::Blob(blob);
        Some((blob, bytes))
    };
    batch.large_contents().filter_map(detach).collect()
}

/// Refuses an edit that would not fit into one message together with its ids.
pub(super) fn check_size(edit_bytes: usize, batch: &Batch) -> Result<(), Failure> {
    let entries: usize = batch.files.iter().map(|patch| 1 + patch.edit.change_count()).sum();
    let bytes = edit_bytes.saturating_add(entries.saturating_mul(ID_BYTES));
    if bytes <= SUBMITTED && entries <= id_block::ENTRIES {
        return Ok(());
    }
    let message = format!("the batch takes up to {bytes} bytes with its {entries} ids, a message carries {SUBMITTED}");
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::Document)
        .hint("split it into several, each with some of the files"))
}

/// The bytes that a batch takes in a message.
pub(super) fn edit_bytes(batch: &Batch) -> usize {
    v1::Edit::from(batch.clone()).encoded_len()
}

fn parse(document: &v1::Document) -> Result<Document, PartialDocument> {
    let dialect = match document.dialect.as_str() {
        "" => None,
        name => Some(name.parse::<Dialect>().map_err(|error| {
            let failure = Failure::new(Reason::InvalidRequest, error.to_string()).detail(Detail::UnknownEnum);
            failure.field("document.dialect").hint("leave it empty to have it detected")
        })?),
    };
    documents::parse_part(&document.text, dialect)
}
