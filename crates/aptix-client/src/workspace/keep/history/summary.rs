//! What a batch was called, file by file and change by change, and how its changes found their places: what an entry keeps of
//! a batch besides bytes.

use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::batch_event::EventFacts;
use aptix_model::path_style::PathStyle;
use aptix_model::report::{
    ChangeReport, FileReport, FileStatus, Normalization, Outcome, Report, Tier, Warning, Written,
};
use serde::{Deserialize, Serialize};

use super::steps::KeptStep;
use crate::workspace::commit::record::Hex;

/// Bytes of a summary. One that has more leaves out its changes; if that is not enough, all of its files.
const BYTES: usize = 1 << 20;

/// What a batch was called, and what became of its files.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// What the batch was for, in its author's words.
    pub label: Option<String>,
    /// Its author's name for it.
    pub key: Option<String>,
    /// Its files, in its order; also those that stayed as they were.
    pub files: Vec<FileSummary>,
    /// Whether some of its files were refused: only of a batch that was applied file by file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    warnings: Vec<KeptWarning>,
    /// What was done to the batch; earlier versions did not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<KeptStep>,
}

/// What a batch called a file, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileSummary {
    /// What the entry was for, in its author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its author's name for the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether a file that it created can be run, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// How many changes it had, each with an id; they are listed unless they took too much room.
    pub change_count: usize,
    /// Its changes, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSummary>,
    /// In its root, like `renamed_to`.
    path: String,
    doc_path: String,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Hex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<(Hex, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    normalized: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<KeptWarning>,
}

/// What a batch called a change, and how it found its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// Its author's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it does, in its author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    tier: String,
    candidates: u32,
    lines: (u32, u32),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct KeptWarning {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl Summary {
    /// What is kept of a batch and its report.
    #[must_use]
    pub fn of(batch: &Batch, files: &[FileReport], warnings: &[Warning]) -> Self {
        let is_partial = files.iter().any(|file| !file.status.is_applied());
        let files = batch.files.iter().zip(files).map(|(patch, report)| file_summary(patch, report)).collect();
        let (label, key) = (batch.label.clone(), batch.key.clone());
        let mut summary = Self { label, key, files, is_partial, warnings: kept(warnings), steps: Vec::new() };
        if summary.bytes() > BYTES {
            summary.files.iter_mut().for_each(|file| file.changes.clear());
        }
        if summary.bytes() > BYTES {
            summary.files.clear();
        }
        summary
    }

    /// Keeps what was done to the batch, oldest first.
    pub fn keep_steps(&mut self, steps: &[EventFacts]) {
        self.steps = steps.iter().map(KeptStep::from).collect();
    }

    /// What was done to the batch, oldest first; none where an earlier version did not keep it. Steps of later versions that
    /// this one does not know are left out.
    #[must_use]
    pub fn steps(&self) -> Vec<EventFacts> {
        self.steps.iter().filter_map(KeptStep::facts).collect()
    }

    /// With these files, for which its author's words are not known.
    #[must_use]
    pub fn with_reports(self, files: &[FileReport]) -> Self {
        Self { files: files.iter().map(without_words).collect(), ..self }
    }

    /// With the file at this position alone.
    #[must_use]
    pub fn keep_file(self, file: usize) -> Self {
        Self { files: self.files.into_iter().skip(file).take(1).collect(), ..self }
    }

    /// The files that were refused and stayed as they were, with paths in this style.
    pub fn refused(&self, style: PathStyle) -> impl Iterator<Item = FileReport> {
        self.files.iter().map(move |file| file.report(style)).filter(|file| !file.status.is_applied())
    }

    fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |bytes| bytes.len())
    }

    /// The report of the batch, without its diff; with paths in this style.
    #[must_use]
    pub fn report(&self, style: PathStyle) -> Report {
        let files = self.files.iter().map(|file| file.report(style)).collect();
        let outcome = if self.is_partial { Outcome::Partial } else { Outcome::Applied };
        Report { outcome, warnings: given(&self.warnings), ..Report::applied(files) }
    }
}

impl FileSummary {
    /// Its key when the batch was carried out, with the name that its root had then.
    #[must_use]
    pub fn doc_path(&self) -> &str {
        &self.doc_path
    }

    /// The name that its root had when the batch was carried out.
    #[must_use]
    pub fn root(&self) -> &str {
        self.doc_path.split('/').next().unwrap_or_default()
    }

    /// The path in its root where it was.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where in its root it went, if it was renamed.
    #[must_use]
    pub fn renamed_to(&self) -> Option<&str> {
        self.renamed_to.as_deref()
    }

    /// Whether the batch left it as it was.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.status == FileStatus::Unchanged.word()
    }

    /// Drops every change but the one at this position.
    pub fn keep_change(&mut self, change: usize) {
        self.changes = self.changes.get(change).cloned().into_iter().collect();
        self.change_count = 1;
    }

    fn report(&self, style: PathStyle) -> FileReport {
        FileReport {
            path: style.name(&self.path, &self.doc_path).into_owned(),
            doc_path: self.doc_path.clone(),
            status: FileStatus::from_word(&self.status).unwrap_or(FileStatus::Modified),
            renamed_to: self.renamed_to.as_deref().map(|path| style.name(path, &self.doc_path).into_owned()),
            sha256_before: self.before.map(|digest| digest.0),
            written: self.written.map(|(digest, size_bytes)| Written { sha256: digest.0, size_bytes }),
            normalized: self.normalized.iter().filter_map(|word| Normalization::from_word(word)).collect(),
            warnings: given(&self.warnings),
            changes: self.changes.iter().map(ChangeSummary::report).collect(),
            withheld: None,
        }
    }
}

impl ChangeSummary {
    fn report(&self) -> ChangeReport {
        let tier = Tier::from_word(&self.tier).unwrap_or(Tier::Exact);
        ChangeReport { tier, candidates: self.candidates, start_line: self.lines.0, end_line: self.lines.1 }
    }
}

fn file_summary(patch: &FilePatch, report: &FileReport) -> FileSummary {
    // No other dialect has words of its author about a change.
    let named = |index| if let FileEdit::LinePatch(lines) = &patch.edit { lines.changes.get(index) } else { None };
    let changes =
        report.changes.iter().take(patch.edit.change_count()).enumerate().map(|(index, change)| ChangeSummary {
            key: named(index).and_then(|named| named.key.clone()),
            description: named(index).and_then(|named| named.description.clone()),
            tier: change.tier.word().to_owned(),
            candidates: change.candidates,
            lines: (change.start_line, change.end_line),
        });
    FileSummary {
        label: patch.label.clone(),
        key: patch.key.clone(),
        change_count: patch.edit.change_count(),
        changes: changes.collect(),
        ..without_words(report)
    }
}

fn without_words(report: &FileReport) -> FileSummary {
    let (path, renamed_to) = report.paths_in_root();
    FileSummary {
        label: None,
        key: None,
        executable: None,
        change_count: 0,
        changes: Vec::new(),
        path: path.to_owned(),
        doc_path: report.doc_path.clone(),
        status: report.status.word().to_owned(),
        renamed_to: renamed_to.map(ToOwned::to_owned),
        before: report.sha256_before.map(Hex),
        written: report.written.map(|written| (Hex(written.sha256), written.size_bytes)),
        normalized: report.normalized.iter().map(|normalization| normalization.word().to_owned()).collect(),
        warnings: kept(&report.warnings),
    }
}

fn kept(warnings: &[Warning]) -> Vec<KeptWarning> {
    let kept = |Warning { code, message, line }: &Warning| KeptWarning {
        code: code.clone(),
        message: message.clone(),
        line: *line,
    };
    warnings.iter().map(kept).collect()
}

fn given(warnings: &[KeptWarning]) -> Vec<Warning> {
    let given = |KeptWarning { code, message, line }: &KeptWarning| Warning {
        code: code.clone(),
        message: message.clone(),
        line: *line,
    };
    warnings.iter().map(given).collect()
}
