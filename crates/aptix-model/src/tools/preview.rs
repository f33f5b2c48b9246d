//! A preview as tool results show it: as YAML for models, and under the same keys as JSON for programs (WS-MOD 2.1).

use serde::Serialize;

use crate::id::FilePatchId;
use crate::preview::{Action, BlanklineStyle, Evidence, Preview};
use crate::record::UnixMillis;
use crate::report::Warning;

/// The stage of an edit that its preview shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Planned, to be applied by this id, before this time.
    Planned {
        /// Names the plan.
        hunk: FilePatchId,
        /// When it ends.
        expires: UnixMillis,
    },
    /// Written.
    Applied {
        /// Named the plan.
        hunk: FilePatchId,
    },
}

/// A preview and its stage.
#[derive(Serialize)]
pub struct Summary<'a> {
    status: &'static str,
    mode: &'static str,
    path: &'a str,
    hunk_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    action: &'static str,
    start_line: u32,
    old_lines: usize,
    new_lines: usize,
    normalized: Normalized,
    #[serde(skip_serializing_if = "Option::is_none")]
    blankline_style: Option<Style>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style_warning: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Remark<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    apply_evidence: Option<Shown<'a>>,
}

#[derive(Serialize)]
struct Normalized {
    normalized_file_eof_newline_added: bool,
    normalized_content_eof_newline_added: bool,
}

#[derive(Serialize)]
struct Remark<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Style {
    file_above_blank_lines: u32,
    content_leading_blank_lines: u32,
    content_trailing_blank_lines: u32,
    file_below_blank_lines: u32,
}

#[derive(Serialize)]
struct Shown<'a> {
    before: &'a [String],
    range: &'a [String],
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    after: &'a [String],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the attribute that names it passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'a> Summary<'a> {
    /// Sums a preview up.
    #[must_use]
    pub fn of(preview: &'a Preview, phase: Phase) -> Self {
        let (status, hunk, expires_at_ms) = match phase {
            Phase::Planned { hunk, expires } => ("planned", hunk, Some(expires.0)),
            Phase::Applied { hunk } => ("applied", hunk, None),
        };
        let is_applied = expires_at_ms.is_none();
        Self {
            status,
            mode: preview.kind,
            path: &preview.path,
            hunk_id: format!("{hunk}"),
            expires_at_ms,
            action: match preview.action {
                Action::Create => "create",
                Action::Change => "change",
                Action::Nothing => "none",
            },
            start_line: preview.start_line,
            old_lines: preview.old_lines,
            new_lines: preview.new_lines,
            normalized: Normalized {
                normalized_file_eof_newline_added: preview.file_eof_newline_added,
                normalized_content_eof_newline_added: preview.content_eof_newline_added,
            },
            blankline_style: preview.blankline_style.map(style),
            style_warning: preview.style_warning.as_deref(),
            warnings: preview.warnings.iter().map(|Warning { code, message, .. }| Remark { code, message }).collect(),
            evidence: (!is_applied).then(|| shown(&preview.evidence)),
            apply_evidence: is_applied.then(|| shown(&preview.apply_evidence)),
        }
    }

    /// The summary as one YAML document.
    ///
    /// # Errors
    /// None that a preview can give; writing to memory does not fail.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::ser_error::Error> {
        serde_saphyr::to_string(self)
    }
}

const fn style(style: BlanklineStyle) -> Style {
    Style {
        file_above_blank_lines: style.file_above,
        content_leading_blank_lines: style.content_leading,
        content_trailing_blank_lines: style.content_trailing,
        file_below_blank_lines: style.file_below,
    }
}

fn shown(evidence: &Evidence) -> Shown<'_> {
    let Evidence { before, range, left_out, after } = evidence;
    Shown { before, range, left_out: *left_out, after }
}
