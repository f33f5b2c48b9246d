//! Undoes a batch: as a batch of its own, whose edits take back what the other one did, and nothing that came later.

mod merge;

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::plan::{self, BatchPlan, Clipboards, Observed};
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::failure::{Excerpt, Failure, Visible};
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Report};

use crate::apply::{self, Found, Order, Planned, Refusal, Search};
use crate::proposal::{Decision, Proposal};
use crate::workspace::Workspace;
use crate::workspace::errno;
use crate::workspace::history::{self, Entry, HistoryError, Images, PastFile};

use self::merge::Clash;

/// How many places that are in the way are told for one file.
const TOLD: usize = 10;

/// What came of undoing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undone {
    /// The batch that did it, file by file.
    pub batch: Batch,
    /// What it did.
    pub report: Report,
}

/// Undoes a batch, by its name or the name of its entry in the history; without one, the newest.
///
/// # Errors
/// When there is no such batch, when what it changed was changed again, and whatever keeps a batch from being applied.
pub fn undo(
    workspace: &Workspace,
    name: Option<&str>,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Undone, Refusal> {
    order.policy.may_write()?;
    let entry = find_entry(workspace, name)?;
    let images = history::images(&entry).map_err(|error| told(&error))?;
    let mut search = Search::new(workspace, order.policy);
    let mut deeds = Vec::new();
    let mut failures = Vec::new();
    for (index, (file, images)) in entry.files.iter().zip(&images).enumerate() {
        match deed(workspace, &mut search, index, file, images) {
            Ok(deed) => deeds.extend(deed.map(|deed| (deed, file))),
            Err(found) => failures.extend(found.into_iter().map(|failure| failure.file(index, &file.path))),
        }
    }
    if !failures.is_empty() {
        return Err(failures.into());
    }
    let batch = Batch {
        label: Some(format!("undo {}", entry.name())),
        files: deeds.iter().map(|(deed, _)| deed.patch()).collect(),
        ..Batch::default()
    };
    let (found, rest): (Vec<_>, Vec<_>) =
        deeds.into_iter().map(|(Deed { found, action }, file)| (found, (action, file))).unzip();
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let files = observed.iter().zip(rest).map(|(observed, (action, file))| planned(observed, action, file));
    let plan = BatchPlan { files: files.collect(), clipboards: Clipboards::new() };
    if plan.files.iter().all(|file| file.status == FileStatus::Unchanged) {
        let message = "nothing of the batch is left to undo: its files are as they were before it";
        return Err(Failure::new(Reason::AlreadyApplied, message).hint("look at `aptix log`").into());
    }
    let planned = Planned { batch: &batch, found: &found, plan: &plan, undoes: Some(entry.id), taken: None };
    let report = apply::carry_out(workspace, planned, order, confirm)?;
    if let Err(error) = history::remove_made(workspace, &entry) {
        tracing::warn!(%error, "a directory that the batch had made stays");
    }
    Ok(Undone { batch, report })
}

fn find_entry(workspace: &Workspace, name: Option<&str>) -> Result<Entry, Failure> {
    let entries = history::list(workspace).map_err(|error| told(&error))?;
    let found = match name {
        Some(name) => entries.into_iter().find(|entry| entry.name() == name || entry.id.to_string() == name),
        None => entries.into_iter().next(),
    };
    found.ok_or_else(|| {
        let message = match name {
            Some(name) => format!("no batch {} is known here", Visible(name)),
            None => "no batch is known here".to_owned(),
        };
        Failure::new(Reason::NotFound, message)
            .hint("`aptix log` lists the batches of a root whose files are still kept as they were before")
    })
}

/// Tells why the history cannot be used.
pub(crate) fn told(error: &HistoryError) -> Failure {
    match error {
        HistoryError::State(error) => error.failure(),
        HistoryError::Settle(error) => error.failure(),
        HistoryError::System { errno, .. } => errno::read_failure(*errno, error.to_string()),
        HistoryError::Damaged { .. } | HistoryError::NotKept { .. } => {
            Failure::new(Reason::NotFound, error.to_string())
                .hint("take the files back from version control, or edit them by hand")
        }
    }
}

/// What is to happen to one file.
struct Deed {
    found: Found,
    action: FileAction<'static>,
}

impl Deed {
    /// The deed as an author would have written it.
    fn patch(&self) -> FilePatch {
        let edit = match &self.action {
            FileAction::Delete => FileEdit::DeleteFile,
            FileAction::Write(_) | FileAction::Edit(_) => {
                FileEdit::WriteFile(WriteFile { content: Content::Text(String::new()), presence: Presence::Either })
            }
        };
        FilePatch { target: Target::Path(self.found.place.path.to_string()), key: None, label: None, edit }
    }
}

/// Finds out what has to happen to one file; nothing where it is as before the batch already.
fn deed(
    workspace: &Workspace,
    search: &mut Search<'_>,
    index: usize,
    file: &PastFile,
    images: &Images,
) -> Result<Option<Deed>, Vec<Failure>> {
    let mut find = |path: &str| find(workspace, search, index, file, path).map_err(|failure| vec![failure]);
    let mut found = find(file.moved_to.as_deref().unwrap_or(&file.path))?;
    if file.moved_to.is_some() {
        let there = find(&file.path)?;
        if there.original.is_some() {
            return Err(vec![in_its_place(&file.path)]);
        }
        found.other = Some(Box::new(there));
    }
    let now = found.original.as_ref().map(|original| original.bytes.as_slice());
    let action = match (&images.before, &images.after, now) {
        (Some(before), Some(after), Some(now)) => match merge::way_back(before, after, now) {
            Ok(edit) => FileAction::Edit(edit),
            Err(clashes) => return Err(clashes.iter().take(TOLD).map(clashed).collect()),
        },
        (None, Some(after), Some(now)) if after.as_slice() == now => FileAction::Delete,
        (None, Some(_), Some(now)) => {
            let message = "the batch created the file, and it was edited since";
            let excerpt = Excerpt { start_line: 1, end_line: 1, text: first_line(now) };
            return Err(vec![
                Failure { nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) }
                    .hint("undo the batches that came later first, newest first, or delete the file by hand"),
            ]);
        }
        (Some(before), None, Some(now)) if before.as_slice() == now => return Ok(None),
        (Some(_), None, Some(_)) => return Err(vec![in_its_place(&file.path)]),
        (Some(before), None, None) => {
            found.attributes = file.before.as_ref().map(|before| before.attributes.clone());
            FileAction::Write(before.clone().into())
        }
        (None, Some(_), None) | (None, None, _) => return Ok(None),
        (Some(_), Some(_), None) => {
            let message = "the file was removed after the batch, so that there is nothing to undo the edit in";
            return Err(vec![Failure::new(Reason::FileMissing, message).hint("bring the file back first")]);
        }
    };
    Ok(Some(Deed { found, action }))
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).chars().take(200).collect()
}

fn in_its_place(path: &str) -> Failure {
    let message = format!("there is another file at {path:?} now");
    Failure::new(Reason::FileExists, message).hint("move it away, then undo again")
}

fn clashed(clash: &Clash) -> Failure {
    let (start_line, end_line) = clash.now;
    let message = format!("later edits stand where the batch left {:?}; now there is {:?}", clash.left, clash.text);
    let excerpt = Excerpt { start_line, end_line, text: clash.text.clone() };
    Failure { line: Some(start_line), nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) }
        .hint("undo the batches that came later first, newest first, or edit these lines by hand")
}

/// What there is now at a path in the root of a file.
fn find(
    workspace: &Workspace,
    search: &mut Search<'_>,
    index: usize,
    file: &PastFile,
    path: &str,
) -> Result<Found, Failure> {
    let root = workspace.roots().iter().position(|root| root.path() == file.root).ok_or_else(|| {
        let message = format!("the batch changed files in {} as well", file.root.display());
        Failure::new(Reason::InvalidRequest, message).hint("name this root, too, with --root")
    })?;
    let path = WorkspacePath::new(path)
        .map_err(|error| Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()))?;
    search.find_in(index, root, &path)
}

/// The plan for one file.
fn planned<'a>(observed: &'a Observed<'a>, action: FileAction<'a>, file: &PastFile) -> FilePlan<'a> {
    let mut plan = plan::decided(observed, action);
    // Whether it can be run goes back only if it is still as the batch left it.
    let flipped = file.after.as_ref().and_then(|after| after.executable);
    plan.executable = flipped.filter(|left| observed.is_executable == *left).map(|left| !left);
    if plan.status == FileStatus::Unchanged && plan.executable.is_some() {
        plan.status = FileStatus::Modified;
    }
    if let Some(other) = &observed.other {
        plan.status = FileStatus::Renamed;
        plan.moved_to = Some(&other.path);
    }
    plan
}
