//! One batch as it is shown: what its author called it and its parts, what it is known as, and what became of it. Every command
//! and tool fills in this view, and `answer.rs` and `text.rs` render it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::batch_event::StepRecord;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, ChangeId, FilePatchId};
use aptix_model::id_block;
use aptix_model::record::FileIds;
use aptix_model::report::{FileReport, Report, Warning};
use aptix_model::state::BatchState;

use super::description::parts;
use crate::apply::{Mode, Refusal};
use crate::workspace::keep::history::summary::{FileSummary, Summary};
use crate::workspace::keep::refused::batch::{RefusedBatch, RefusedFile};
use crate::workspace::roots::path_style::PathStyle;

/// What is known about one batch, for people and programs.
pub struct BatchView<'a> {
    /// What it was called, and what it asked for as far as that is known.
    pub subject: Subject<'a>,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// How files are named for people.
    pub paths: PathStyle,
    /// The name of the only root, where it is known.
    pub root: Option<&'a str>,
    /// What it is known as, where it is kept.
    pub stored: Option<Stored<'a>>,
    /// The batch that it takes back, if that is known.
    pub undoes: Option<Undoes<'a>>,
    /// What became of it; `None` while it is open, and where that is not known.
    pub outcome: Result<Option<&'a Report>, &'a Refusal>,
    /// About the workspace, or the document, as a whole.
    pub warnings: &'a [Warning],
    /// Who did what to it, when and why, oldest first, as its server keeps it.
    pub steps: &'a [StepRecord],
    /// Whether a record is looked at, and not the outcome of a command: then it is named, and what it asks for is shown where
    /// no file has changed.
    pub is_record: bool,
    /// Where in its batch the view begins: the positions of its first file and of that file's first change. Failures count
    /// from the beginning of the batch.
    pub begins: (usize, usize),
}

/// Where the words of a batch's author come from.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// The batch itself.
    Batch(&'a Batch),
    /// What the history keeps of it.
    Kept(&'a Summary),
    /// What is kept of a batch that was refused.
    Refused(&'a RefusedBatch),
}

/// A batch that another one takes back.
#[derive(Clone)]
pub struct Undoes<'a> {
    /// Its id; the name of its entry in the history, if it has none.
    pub id: Cow<'a, str>,
    /// What it was for, in its author's words, where they are known.
    pub label: Option<Cow<'a, str>>,
}

/// A batch as the server knows it, or the history of this machine.
#[derive(Clone)]
pub struct Stored<'a> {
    /// Its id.
    pub id: BatchId,
    /// Its state.
    pub state: BatchState,
    /// One entry for each file patch; none where files have no ids.
    pub ids: Cow<'a, [FileIds]>,
}

/// The word for a state as people read it: an approved batch waits for its agent, and nobody need have approved it.
#[must_use]
pub const fn state_for_people(state: BatchState) -> &'static str {
    match state {
        BatchState::Approved => "QUEUED",
        state => state.word(),
    }
}

impl Stored<'_> {
    /// A batch as this machine knows it, if it was tried under a name.
    #[must_use]
    pub fn here(mode: Mode<'_>, batch: &Batch, is_applied: bool) -> Option<Self> {
        let Mode::CommitNamed { batch: id } = mode else { return None };
        let state = if is_applied { BatchState::Applied } else { BatchState::Failed };
        let ids = Cow::Owned(id_block::of(id, batch));
        (!batch.files.is_empty()).then_some(Self { id, state, ids })
    }
}

impl<'a> BatchView<'a> {
    /// A batch that is kept nowhere, in a workspace of one root.
    #[must_use]
    pub const fn new(batch: &'a Batch, outcome: Result<Option<&'a Report>, &'a Refusal>) -> Self {
        Self::of(Subject::Batch(batch), outcome)
    }

    /// Of a batch of which this is known, with nothing else known about it.
    #[must_use]
    pub const fn of(subject: Subject<'a>, outcome: Result<Option<&'a Report>, &'a Refusal>) -> Self {
        Self {
            subject,
            dry_run: false,
            paths: PathStyle::InRoot,
            root: None,
            stored: None,
            undoes: None,
            outcome,
            warnings: &[],
            steps: &[],
            is_record: false,
            begins: (0, 0),
        }
    }

    /// The warnings about the workspace, the document or the batch as a whole.
    pub fn all_warnings(&self) -> impl Iterator<Item = &'a Warning> {
        let of_report = self.outcome.ok().flatten().map_or(&[][..], |report| &report.warnings);
        self.warnings.iter().chain(of_report)
    }

    /// The word for its state.
    #[must_use]
    pub fn state(&self) -> BatchState {
        match (&self.stored, self.outcome, self.dry_run) {
            (Some(stored), ..) => stored.state,
            (None, Err(_), _) => BatchState::Failed,
            (None, Ok(_), true) => BatchState::Prepared,
            (None, Ok(Some(report)), false) => report.outcome.into(),
            (None, Ok(None), false) => BatchState::Applied,
        }
    }

    /// Why it was refused, or some of its files were.
    #[must_use]
    pub fn failures(&self) -> &'a [Failure] {
        match self.outcome {
            Ok(report) => report.map_or(&[], |report| &report.failures),
            Err(refusal) => &refusal.failures,
        }
    }

    pub(super) fn failed(&self) -> Failed {
        let mut failed = Failed { files: HashSet::new(), changes: HashMap::new() };
        for (at, failure) in self.failures().iter().enumerate() {
            let Some(file) = self.file_of(failure) else { continue };
            failed.files.insert(file);
            if let Some(change) = self.change_of(failure) {
                failed.changes.entry((file, change)).or_insert(at);
            }
        }
        failed
    }

    /// What is reported of a file, if anything was or would be done to it.
    #[must_use]
    pub fn report_of(&self, file: usize) -> Option<&'a FileReport> {
        self.outcome.ok().flatten()?.files.get(file)
    }

    /// Its ids of a file.
    #[must_use]
    pub fn ids_of(&self, file: usize) -> Option<&FileIds> {
        self.stored.as_ref()?.ids.get(file)
    }

    /// The id of a file patch.
    #[must_use]
    pub fn file_id(&self, file: usize) -> Option<FilePatchId> {
        Some(self.ids_of(file)?.file)
    }

    /// The id of a change.
    #[must_use]
    pub fn change_id(&self, file: usize, change: usize) -> Option<ChangeId> {
        self.ids_of(file)?.changes.get(change).copied()
    }

    /// The position in this view of the file that a failure is about.
    #[must_use]
    pub fn file_of(&self, failure: &Failure) -> Option<usize> {
        failure.file_index?.checked_sub(self.begins.0)
    }

    /// The position of the change that a failure is about, in its file.
    #[must_use]
    pub fn change_of(&self, failure: &Failure) -> Option<usize> {
        failure.change_index?.checked_sub(self.begins.1)
    }
}

/// Which parts of a batch failed.
pub(super) struct Failed {
    pub(super) files: HashSet<usize>,
    /// The position of the first failure of each change, by the positions of its file and its own.
    pub(super) changes: HashMap<(usize, usize), usize>,
}

/// What the author of a batch wrote about a file.
#[derive(Clone, Copy)]
pub(super) struct FileWords<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) label: Option<&'a str>,
    pub(super) change_count: usize,
    /// What it asked for, where that is known.
    pub(super) asked: Option<Asked<'a>>,
    kept: Option<&'a FileSummary>,
}

/// What a batch asked of a file.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// The edit itself.
    Patch(&'a FilePatch),
    /// What is kept of one that was refused.
    Refused(&'a RefusedFile),
}

impl<'a> Asked<'a> {
    /// In the manner of a diff: what is asked of the file, then of each change.
    pub(super) fn parts(self) -> Vec<Cow<'a, [u8]>> {
        match self {
            Self::Patch(patch) => parts(patch).into_iter().map(Cow::Owned).collect(),
            Self::Refused(file) => file.parts.iter().map(|part| Cow::Borrowed(part.as_bytes())).collect(),
        }
    }

    /// Where the file is to go.
    pub(super) fn moved_to(self) -> Option<&'a str> {
        match self {
            Self::Patch(patch) => patch.edit.moved_to(),
            Self::Refused(file) => file.moved_to.as_deref(),
        }
    }

    /// What its author calls a change.
    fn change(self, change: usize) -> (Option<&'a str>, Option<&'a str>) {
        let (key, description) = match self {
            Self::Patch(FilePatch { edit: FileEdit::LinePatch(lines), .. }) => {
                let change = lines.changes.get(change);
                (change.map(|change| &change.key), change.map(|change| &change.description))
            }
            Self::Patch(_) => (None, None),
            Self::Refused(file) => {
                let change = file.changes.get(change);
                (change.map(|change| &change.key), change.map(|change| &change.description))
            }
        };
        (key.and_then(|key| key.as_deref()), description.and_then(|text| text.as_deref()))
    }
}

impl<'a> Subject<'a> {
    /// The author's name for the batch.
    #[must_use]
    pub fn key(self) -> Option<&'a str> {
        match self {
            Self::Batch(batch) => batch.key.as_deref(),
            Self::Kept(summary) => summary.key.as_deref(),
            Self::Refused(refused) => refused.key.as_deref(),
        }
    }

    /// What the batch is for.
    #[must_use]
    pub fn label(self) -> Option<&'a str> {
        match self {
            Self::Batch(batch) => batch.label.as_deref(),
            Self::Kept(summary) => summary.label.as_deref(),
            Self::Refused(refused) => refused.label.as_deref(),
        }
    }

    pub(super) fn files(self) -> Vec<FileWords<'a>> {
        let of_patch = |patch: &'a FilePatch| FileWords {
            key: patch.key.as_deref(),
            label: patch.label.as_deref(),
            change_count: patch.edit.change_count(),
            asked: Some(Asked::Patch(patch)),
            kept: None,
        };
        let of_summary = |file: &'a FileSummary| FileWords {
            key: file.key.as_deref(),
            label: file.label.as_deref(),
            change_count: file.change_count,
            asked: None,
            kept: Some(file),
        };
        let of_refused = |file: &'a RefusedFile| FileWords {
            key: file.key.as_deref(),
            label: file.label.as_deref(),
            change_count: file.changes.len(),
            asked: Some(Asked::Refused(file)),
            kept: None,
        };
        match self {
            Self::Refused(refused) => refused.files.iter().map(of_refused).collect(),
            Self::Batch(batch) => batch.files.iter().map(of_patch).collect(),
            Self::Kept(summary) => summary.files.iter().map(of_summary).collect(),
        }
    }
}

impl<'a> FileWords<'a> {
    /// The author's name for a change, and the description of it. No other dialect than line patches has them.
    pub(super) fn of_change(self, change: usize) -> (Option<&'a str>, Option<&'a str>) {
        let kept = self.kept.and_then(|file| file.changes.get(change));
        let (key, description) = self.asked.map_or((None, None), |asked| asked.change(change));
        (key.or_else(|| kept?.key.as_deref()), description.or_else(|| kept?.description.as_deref()))
    }
}
