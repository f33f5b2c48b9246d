//! A batch that was to be applied, and what became of it.

use std::borrow::Cow;

use aptix_model::batch::Batch;
use aptix_model::id::BatchId;
use aptix_model::path_style::PathStyle;
use aptix_model::record::FileIds;
use aptix_model::report::Report;
use aptix_model::state::BatchState;
use aptix_model::tools::result::words::BatchWords;
use aptix_model::tools::result::{BatchResult, Stored};

use crate::apply::Refusal;

/// A batch that was to be applied.
pub(super) struct Tried {
    pub(super) batch: BatchId,
    pub(super) ids: Vec<FileIds>,
    /// The name of the root.
    pub(super) root: String,
    pub(super) outcome: Result<Report, Refusal>,
}

impl Tried {
    /// The result of the batch, which this one was.
    pub(super) fn result<'a>(&'a self, batch: &'a Batch) -> BatchResult<'a> {
        let state = if self.outcome.is_ok() { BatchState::Applied } else { BatchState::Failed };
        let outcome = self.outcome.as_ref().map(Some).map_err(|refusal| refusal.failures.as_slice());
        BatchResult {
            stored: Some(Stored { id: self.batch, state, ids: Cow::Borrowed(&self.ids) }),
            ..BatchResult::new(BatchWords::of(batch, PathStyle::InRoot, Some(&self.root)), outcome)
        }
    }
}
