//! A failure in JSON, as it is kept with the batch that it refused.

use aptix_model::failure::{Excerpt, Failure, NextAction};
use aptix_model::reason::{Detail, Reason};
use serde::{Deserialize, Serialize};

use crate::workspace::commit::record::Hex;

/// A failure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptFailure {
    code: String,
    detail: Option<String>,
    message: String,
    hint: Option<String>,
    field: Option<String>,
    file: Option<usize>,
    path: Option<String>,
    doc_path: Option<String>,
    change: Option<usize>,
    line: Option<usize>,
    /// First line, last line, text.
    nearest: Vec<(usize, usize, String)>,
    current: Option<Hex>,
    /// Dialect, document.
    next: Option<(String, String)>,
}

impl KeptFailure {
    /// Whether it belongs to a file of the batch, or to one of its changes if one is named.
    pub(super) fn is_about(&self, file: usize, change: Option<usize>) -> bool {
        self.file == Some(file) && (change.is_none() || self.change.is_none() || self.change == change)
    }

    /// Drops what may be long.
    pub(super) fn leave_out_content(&mut self) {
        self.nearest.clear();
        self.next = None;
    }
}

impl From<&Failure> for KeptFailure {
    fn from(failure: &Failure) -> Self {
        let nearest = |excerpt: &Excerpt| (excerpt.start_line, excerpt.end_line, excerpt.text.clone());
        Self {
            code: failure.reason.code().to_owned(),
            detail: failure.detail.map(|detail| detail.code().to_owned()),
            message: failure.message.clone(),
            hint: failure.hint.clone(),
            field: failure.field.clone(),
            file: failure.file_index,
            path: failure.path.clone(),
            doc_path: failure.doc_path.clone(),
            change: failure.change_index,
            line: failure.line,
            nearest: failure.nearest.iter().map(nearest).collect(),
            current: failure.current_sha256.map(Hex),
            next: failure.next_action.as_ref().map(|next| (next.dialect.clone(), next.document.clone())),
        }
    }
}

impl From<&KeptFailure> for Failure {
    fn from(kept: &KeptFailure) -> Self {
        let nearest = |(start_line, end_line, text): &(usize, usize, String)| Excerpt {
            start_line: *start_line,
            end_line: *end_line,
            text: text.clone(),
        };
        let next = |(dialect, document): &(String, String)| NextAction {
            dialect: dialect.clone(),
            document: document.clone(),
        };
        // A reason that this version does not know was found by a later one.
        let reason = Reason::from_code(&kept.code).unwrap_or(Reason::Internal);
        Self {
            detail: kept.detail.as_deref().and_then(Detail::from_code),
            hint: kept.hint.clone(),
            field: kept.field.clone(),
            file_index: kept.file,
            path: kept.path.clone(),
            doc_path: kept.doc_path.clone(),
            change_index: kept.change,
            line: kept.line,
            nearest: kept.nearest.iter().map(nearest).collect(),
            current_sha256: kept.current.map(|digest| digest.0),
            next_action: kept.next.as_ref().map(next),
            ..Self::new(reason, kept.message.as_str())
        }
    }
}
