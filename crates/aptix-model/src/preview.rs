//! What an author sees of a prepared edit before it is applied, and after (WS-MOD 2.1).

use alloc::string::String;
use alloc::vec::Vec;

use crate::report::{FileReport, FileStatus, Normalization, Warning};

/// A prepared edit of one file, to be looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The path relative to its root.
    pub path: String,
    /// The kind of edit.
    pub kind: &'static str,
    /// What applying it would do.
    pub action: Action,
    /// The first line of the place, from 1.
    pub start_line: u32,
    /// How many lines go.
    pub old_lines: usize,
    /// How many lines come.
    pub new_lines: usize,
    /// Whether the file's last line gets the terminator that it lacks (WS-MOD 5.1).
    pub file_eof_newline_added: bool,
    /// Whether the content's last line gets the terminator that it lacks (WS-MOD 5.1).
    pub content_eof_newline_added: bool,
    /// Blank lines where old and new text meet; absent for a whole file (WS-MOD 5.2).
    pub blankline_style: Option<BlanklineStyle>,
    /// What may look wrong about them.
    pub style_warning: Option<String>,
    /// The place as it is.
    pub evidence: Evidence,
    /// The place as it will be.
    pub apply_evidence: Evidence,
    /// What else the author should know: that a program generates the file, say.
    pub warnings: Vec<Warning>,
    /// The change as a unified diff; absent if it is too long.
    pub diff: Option<String>,
}

/// What of a [`Preview`] depends on the lines of the file: its place, before and after the edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EditEvidence {
    /// How many lines go.
    pub old_lines: usize,
    /// Blank lines where old and new text meet; absent for a whole file and for empty content (WS-MOD 5.2).
    pub blankline_style: Option<BlanklineStyle>,
    /// What may look wrong about them.
    pub style_warning: Option<String>,
    /// The place as it is.
    pub evidence: Evidence,
    /// The place as it will be.
    pub apply_evidence: Evidence,
}

impl EditEvidence {
    /// Bytes of its texts.
    #[must_use]
    pub fn size(&self) -> usize {
        let of = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let shown = [&self.evidence, &self.apply_evidence];
        shown.iter().map(|shown| of(&shown.before) + of(&shown.range) + of(&shown.after)).sum::<usize>()
            + self.style_warning.as_ref().map_or(0, String::len)
    }
}

impl Preview {
    /// The preview of an edit of this kind, from the report that it has or would have; `None` for a report without a change.
    #[must_use]
    pub fn of(kind: &'static str, report: &FileReport, evidence: EditEvidence, diff: Option<String>) -> Option<Self> {
        let change = report.changes.first()?;
        let has = |flag| report.normalized.contains(&flag);
        let EditEvidence { old_lines, blankline_style, style_warning, evidence, apply_evidence } = evidence;
        Some(Self {
            path: report.path.clone(),
            kind,
            action: match report.status {
                FileStatus::Created => Action::Create,
                FileStatus::Unchanged | FileStatus::Failed | FileStatus::Skipped => Action::Nothing,
                FileStatus::Modified | FileStatus::Deleted | FileStatus::Renamed => Action::Change,
            },
            start_line: change.start_line,
            old_lines,
            new_lines: (change.end_line as usize + 1).saturating_sub(change.start_line as usize),
            file_eof_newline_added: has(Normalization::FileEofNewlineAdded),
            content_eof_newline_added: has(Normalization::ContentEofNewlineAdded),
            blankline_style,
            style_warning,
            evidence,
            apply_evidence,
            warnings: report.warnings.clone(),
            diff,
        })
    }
}

/// What applying a prepared edit does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The file is new.
    Create,
    /// The file gets other content.
    Change,
    /// The file stays as it is.
    Nothing,
}

/// Lines at a place of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Evidence {
    /// Lines above.
    pub before: Vec<String>,
    /// The lines that go or came.
    pub range: Vec<String>,
    /// How many more of them there are.
    pub left_out: usize,
    /// Lines below.
    pub after: Vec<String>,
}

/// Blank lines where old and new text meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlanklineStyle {
    /// Blank lines of the file right above the place.
    pub file_above: u32,
    /// Blank lines that the content begins with.
    pub content_leading: u32,
    /// Blank lines that the content ends with.
    pub content_trailing: u32,
    /// Blank lines of the file right below the place.
    pub file_below: u32,
    /// Whether there is any line above.
    pub has_above: bool,
    /// Whether there is any line below.
    pub has_below: bool,
}
