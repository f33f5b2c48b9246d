//! What a submit says: an edit as such, or a document, which is read here as the command line reads it.

use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, BlobRef, Content};
use aptix_model::documents::terms::in_terms_of;
use aptix_model::documents::{self, Dialect, Document, PartialDocument};
use aptix_model::failure::Failure;
use aptix_model::id::{RequestId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Warning;
use aptix_model::wire::{self, View, v1};
use prost::Message;
use tokio_util::bytes::Bytes;

use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::submit::Submission;

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
    pub(super) fn read(dispatcher: &Dispatcher, request: v1::SubmitBatchRequest) -> Result<Self, Refusal> {
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
                let submission = Submission { workspace, request_id, batch: part.batch, origin };
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
        if self.document.is_none() {
            return Vec::new();
        }
        let detach = |content: &mut Content| {
            let Content::Text(text) = content else { return None };
            let bytes = Bytes::from(std::mem::take(text));
            let blob = BlobRef { sha256: sha256(&bytes), size_bytes: bytes.len() as u64 };
            *content = Content::Blob(blob);
            Some((blob, bytes))
        };
        self.submission.batch.large_contents().filter_map(detach).collect()
    }
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
