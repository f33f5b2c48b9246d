//! One batch as commands show it: what its author called it and its parts, what it is known as, and what became of it. `text.rs`
//! renders the view for people; the JSON object is rendered from its [`BatchResult`].

use std::borrow::Cow;

use aptix_model::batch::Batch;
use aptix_model::batch_event::EventFacts;
use aptix_model::failure::Failure;
use aptix_model::id_block;
use aptix_model::path_style::PathStyle;
use aptix_model::report::{Report, Warning};
use aptix_model::state::BatchState;
use aptix_model::tools::result::words::{AskedFile, BatchWords, ChangeWords, FileWords};
use aptix_model::tools::result::{BatchResult, Stored};

use super::description::parts;
use crate::apply::{Mode, Refusal};
use crate::workspace::keep::history::summary::{FileSummary, Summary};
use crate::workspace::keep::refused::batch::{RefusedBatch, RefusedFile};

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
    /// Who did what to it, when and why, oldest first, as its server or the history keeps it.
    pub steps: &'a [EventFacts],
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

/// The word for a state as people read it: an approved batch waits for its agent, and nobody need have approved it.
#[must_use]
pub const fn state_for_people(state: BatchState) -> &'static str {
    match state {
        BatchState::Approved => "QUEUED",
        state => state.word(),
    }
}

/// A batch as this machine knows it, if it was tried under a name.
#[must_use]
pub fn stored_here(mode: Mode<'_>, batch: &Batch, is_applied: bool) -> Option<Stored<'static>> {
    let Mode::CommitNamed { batch: id } = mode else { return None };
    let state = if is_applied { BatchState::Applied } else { BatchState::Failed };
    let ids = Cow::Owned(id_block::of(id, batch));
    (!batch.files.is_empty()).then_some(Stored { id, state, ids })
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

    /// The facts of it, as every way to a result renders them.
    #[must_use]
    pub fn result(&self) -> BatchResult<'a> {
        let outcome = self.outcome.map_err(|refusal| refusal.failures.as_slice());
        let is_unchanged = self.is_record && outcome.ok().flatten().is_none();
        BatchResult {
            dry_run: self.dry_run,
            stored: self.stored.clone(),
            undoes: self.undoes.as_ref().map(|undone| undone.id.clone()),
            warnings: self.warnings,
            steps: self.steps,
            asked: if is_unchanged { self.subject.asked() } else { String::new() },
            begins: self.begins,
            ..BatchResult::new(self.subject.words(self.paths, self.root), outcome)
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
}

impl<'a> Subject<'a> {
    /// What the batch is for.
    #[must_use]
    pub fn label(self) -> Option<&'a str> {
        match self {
            Self::Batch(batch) => batch.label.as_deref(),
            Self::Kept(summary) => summary.label.as_deref(),
            Self::Refused(refused) => refused.label.as_deref(),
        }
    }

    fn words(self, paths: PathStyle, root: Option<&str>) -> BatchWords<'a> {
        let (key, files) = match self {
            Self::Batch(batch) => return BatchWords::of(batch, paths, root),
            Self::Kept(summary) => (&summary.key, summary.files.iter().map(of_kept).collect()),
            Self::Refused(refused) => (&refused.key, refused.files.iter().map(of_refused).collect()),
        };
        BatchWords { key: key.as_deref(), label: self.label(), files }
    }

    /// What it asks of each file, in the manner of a diff: of the file, then of each change. Nothing where its content is not
    /// known.
    pub(super) fn parts(self) -> Vec<Vec<Cow<'a, [u8]>>> {
        match self {
            Self::Batch(batch) => {
                batch.files.iter().map(|patch| parts(patch).into_iter().map(Cow::Owned).collect()).collect()
            }
            Self::Kept(_) => Vec::new(),
            Self::Refused(refused) => {
                let parts_of =
                    |file: &'a RefusedFile| file.parts.iter().map(|part| Cow::Borrowed(part.as_bytes())).collect();
                refused.files.iter().map(parts_of).collect()
            }
        }
    }

    /// What it asks for, in the manner of a diff; nothing where its content is not known.
    pub(super) fn asked(self) -> String {
        String::from_utf8_lossy(&self.parts().concat().concat()).into_owned()
    }
}

fn of_kept(file: &FileSummary) -> FileWords<'_> {
    let changes = file
        .changes
        .iter()
        .map(|change| ChangeWords { key: change.key.as_deref(), description: change.description.as_deref() });
    FileWords {
        key: file.key.as_deref(),
        label: file.label.as_deref(),
        change_count: file.change_count,
        changes: changes.collect(),
        asked: None,
    }
}

fn of_refused(file: &RefusedFile) -> FileWords<'_> {
    let changes = file
        .changes
        .iter()
        .map(|change| ChangeWords { key: change.key.as_deref(), description: change.description.as_deref() });
    FileWords {
        key: file.key.as_deref(),
        label: file.label.as_deref(),
        change_count: file.changes.len(),
        changes: changes.collect(),
        asked: Some(AskedFile {
            path: &file.path,
            doc_path: file.doc_path.as_deref().map(Cow::Borrowed),
            moved_to: file.moved_to.as_deref(),
            status: None,
        }),
    }
}
