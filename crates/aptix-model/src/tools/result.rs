//! What became of a batch, as tools, commands and the server render it: the author's words, what the batch is known as, and its
//! report or the failures. `batch_object` renders the JSON object, `tool_result` the answers of tools.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::batch_event::EventFacts;
use crate::failure::Failure;
use crate::id::{BatchId, ChangeId, FilePatchId};
use crate::record::FileIds;
use crate::report::{FileReport, Report, Warning};
use crate::state::BatchState;

use self::words::BatchWords;

pub mod batch_object;
pub mod file_object;
pub mod tool_result;
pub mod words;

/// What is known about one batch.
#[derive(Clone, Debug)]
pub struct BatchResult<'a> {
    /// What its author called it and its parts.
    pub words: BatchWords<'a>,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// What it is known as, where it is kept.
    pub stored: Option<Stored<'a>>,
    /// The batch that it takes back, if that is known.
    pub undoes: Option<Cow<'a, str>>,
    /// Its report; `None` while it is open, and where no report is known. Or why it was refused.
    pub outcome: Result<Option<&'a Report>, &'a [Failure]>,
    /// About the workspace, or the document, as a whole.
    pub warnings: &'a [Warning],
    /// Who did what to it, when and why, oldest first; empty where no server was asked for a record.
    pub steps: &'a [EventFacts],
    /// Of a record where no file has changed, what the batch asks for: in the manner of a diff. Empty otherwise.
    pub asked: String,
    /// Where in its batch the result begins: the positions of its first file and of that file's first change. Failures count
    /// from the beginning of the batch.
    pub begins: (usize, usize),
}

/// A batch as the server knows it, or the history of a workstation.
#[derive(Clone, Debug)]
pub struct Stored<'a> {
    /// Its id.
    pub id: BatchId,
    /// Its state.
    pub state: BatchState,
    /// One entry for each file patch; none where files have no ids.
    pub ids: Cow<'a, [FileIds]>,
}

impl<'a> BatchResult<'a> {
    /// The result of a batch that is kept nowhere.
    #[must_use]
    pub const fn new(words: BatchWords<'a>, outcome: Result<Option<&'a Report>, &'a [Failure]>) -> Self {
        Self {
            words,
            dry_run: false,
            stored: None,
            undoes: None,
            outcome,
            warnings: &[],
            steps: &[],
            asked: String::new(),
            begins: (0, 0),
        }
    }

    /// The warnings about the workspace, the document or the batch as a whole.
    pub fn all_warnings(&self) -> impl Iterator<Item = &'a Warning> {
        let of_report = self.outcome.ok().flatten().map_or(&[][..], |report| &report.warnings);
        self.warnings.iter().chain(of_report)
    }

    /// Its state: the stored one, else the one that follows from the outcome.
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

    /// Whether nothing was refused: neither the call nor a file of the batch.
    #[must_use]
    pub fn is_success(&self) -> bool {
        let has_failed = matches!(
            self.state(),
            BatchState::Failed
                | BatchState::Rejected
                | BatchState::Partial
                | BatchState::Cancelled
                | BatchState::Expired
        );
        self.outcome.is_ok() && !has_failed
    }

    /// Why it was refused, or some of its files were.
    #[must_use]
    pub fn failures(&self) -> &'a [Failure] {
        match self.outcome {
            Ok(report) => report.map_or(&[], |report| &report.failures),
            Err(failures) => failures,
        }
    }

    /// Which of its parts failed.
    #[must_use]
    pub fn failed(&self) -> Failed {
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

    /// The report of a file, if anything was or would be done to it.
    #[must_use]
    pub fn report_of(&self, file: usize) -> Option<&'a FileReport> {
        self.outcome.ok().flatten()?.files.get(file)
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

    fn ids_of(&self, file: usize) -> Option<&FileIds> {
        self.stored.as_ref()?.ids.get(file)
    }

    /// The position in this result of the file that a failure is about.
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

/// The parts of a batch that failed.
#[derive(Debug)]
pub struct Failed {
    /// The positions of files.
    pub files: HashSet<usize>,
    /// The position of the first failure of each change, by the positions of its file and its own.
    pub changes: HashMap<(usize, usize), usize>,
}
