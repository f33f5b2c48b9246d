//! Undoes a batch: as a batch of its own, whose edits take back what the other one did, and nothing that came later.

mod completed;
mod merge;

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::plan::BatchPlan;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::draft;
use aptix_engine::planning::observed::Observed;
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::id::BatchId;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Report};

use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{self, Found, Mode, Order, Planned, Refusal, Search};
use crate::workspace::Workspace;
use crate::workspace::fs::errno;
use crate::workspace::keep::history::find::{FindError, Found as FoundEntry, Wanted};
use crate::workspace::keep::history::{self, Entry, HistoryError, Images, PastFile, Reversal, pending};
use crate::workspace::read::git_dir;

use crate::workspace::read::resolve::{Claim, Place};
use crate::workspace::read::snapshot::Original;

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
    /// What an earlier run called it, if that was interrupted and this one changed nothing.
    pub name: Option<BatchId>,
}

/// Takes a batch back. Until [`acknowledge`] is called, the same request is answered with the same batch: a command that was
/// interrupted can be run again and takes back no other batch.
///
/// # Errors
/// When there is no such batch, when what it changed was changed again, and whatever keeps a batch from being applied.
pub fn undo(
    workspace: &Workspace,
    wanted: Wanted<'_>,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Undone, Refusal> {
    order.policy.may_write()?;
    apply::refuse_removed(workspace)?;
    if let Some(undone) = completed::completed(workspace, wanted).map_err(|error| told(&error))? {
        return Ok(undone);
    }
    let FoundEntry { entry, later } = history::find::find(workspace, wanted).map_err(|error| not_found(&error))?;
    let images = history::images(&entry).map_err(|error| told(&error))?;
    let mut ground = Ground { workspace, search: Search::new(workspace, order.policy), later: &later };
    for file in &entry.files {
        ground.leave(file);
    }
    let mut deeds = Vec::new();
    let mut failures = Vec::new();
    for (index, (file, images)) in entry.files.iter().zip(&images).enumerate() {
        let is_taken_over = entry.files.iter().any(|other| other.moves_to(file));
        match deed(&mut ground, index, file, images, is_taken_over) {
            Ok(deed) => deeds.extend(deed.map(|deed| (deed, file))),
            Err(found) => failures.extend(found),
        }
    }
    failures.extend(blocked(&deeds).map(|(index, file)| in_its_place(&file.path).file(index, &file.path)));
    if !failures.is_empty() {
        return Err(failures.into());
    }
    let written = deeds.iter().filter_map(|(deed, file)| {
        let index = entry.files.iter().position(|other| std::ptr::eq(other, *file))?;
        deed.written().map(|place| (index, deed.name.as_str(), place))
    });
    refuse_git_dirs(workspace, written.collect())?;
    let batch = Batch {
        label: Some(label(&entry)),
        files: deeds.iter().map(|(deed, _)| deed.patch()).collect(),
        ..Batch::default()
    };
    let (found, rest): (Vec<_>, Vec<_>) =
        deeds.into_iter().map(|(Deed { found, action, .. }, file)| (found, (action, file))).unzip();
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let files = observed.iter().zip(rest).map(|(observed, (action, file))| planned(observed, action, file));
    let plan = BatchPlan { files: files.collect(), warnings: Vec::new(), clipboards: Clipboards::new() };
    if plan.files.iter().all(|file| file.status == FileStatus::Unchanged) {
        let message = "nothing of the batch is left to undo: its files are as they were before it";
        return Err(Failure::new(Reason::AlreadyApplied, message).hint("look at `aptix log`").into());
    }
    let reversal = Reversal::of(&entry);
    let planned =
        Planned { batch: &batch, found: &found, plan: &plan, undoes: Some(&reversal), taken: None, hidden: &[] };
    if !matches!(order.mode, Mode::DryRun) {
        pending::note(workspace, &reversal).map_err(|error| told(&error))?;
    }
    let report = apply::carry_out(workspace, planned, order, confirm).inspect_err(|_| {
        if !matches!(order.mode, Mode::DryRun)
            && let Err(error) = pending::forget(workspace)
        {
            tracing::warn!(%error, "the note of an undo that was refused stays");
        }
    })?;
    Ok(Undone { batch, report, name: None })
}

/// Notes that the answer of [`undo`] was delivered: the next request is a new one.
///
/// # Errors
/// When the state directory cannot be written.
pub fn acknowledge(workspace: &Workspace) -> Result<(), Failure> {
    pending::forget(workspace).map_err(|error| told(&error))
}

fn label(undone: &Entry) -> String {
    format!("{} {}", if undone.is_undo() { "redo of undo" } else { "undo" }, undone.name())
}

fn not_found(error: &FindError) -> Failure {
    let hint = match error {
        FindError::History(error) => return told(error),
        FindError::AllUndone => "`aptix undo --redo` takes the newest undo back; `aptix log` lists what was done",
        FindError::NoUndo => {
            "`aptix log` lists what was undone, and `aptix undo BATCH_ID` takes back a batch by its name"
        }
        FindError::InEffect(_) => {
            let hint = "`aptix log` lists what is undone";
            return Failure::new(Reason::AlreadyApplied, error.to_string()).hint(hint);
        }
        FindError::Unknown(_) | FindError::Nothing => {
            "`aptix log` lists the batches of a root that are known; `days` and `bytes` of `[history]` in the policy file \
             say for how long, and how much of them is kept"
        }
    };
    Failure::new(Reason::NotFound, error.to_string()).hint(hint)
}

/// Tells why the history cannot be used.
pub(crate) fn told(error: &HistoryError) -> Failure {
    match error {
        HistoryError::State(error) => error.failure(),
        HistoryError::System { errno, .. } => errno::read_failure(*errno, error.to_string()),
        HistoryError::Damaged { .. } | HistoryError::NotKept { .. } => {
            Failure::new(Reason::NotFound, error.to_string()).hint(
                "take the files back from version control, or edit them by hand; `aptix undo BATCH_ID` takes back \
                     another batch that `aptix log` lists",
            )
        }
    }
}

/// What an author would have written about a file.
fn patch(name: String, is_deleted: bool) -> FilePatch {
    let edit = if is_deleted {
        FileEdit::DeleteFile
    } else {
        FileEdit::WriteFile(WriteFile {
            content: Content::Text(String::new()),
            presence: Presence::Either,
            content_format: None,
        })
    };
    FilePatch { target: Target::Path(name), key: None, label: None, edit }
}

/// What is to happen to one file.
struct Deed {
    /// The file, as an author would name it.
    name: String,
    found: Found,
    action: FileAction<'static>,
}

impl Deed {
    /// Where a file is afterwards that was not there before; nothing for one that goes.
    fn written(&self) -> Option<&Place> {
        let to = self.found.other.as_ref().map_or(&self.found.place, |other| &other.place);
        (self.action != FileAction::Delete).then_some(to)
    }

    /// The deed as an author would have written it.
    fn patch(&self) -> FilePatch {
        patch(self.name.clone(), self.action == FileAction::Delete)
    }
}

/// Refuses files that, with others, would make a directory one that git takes for its own, as for any batch.
fn refuse_git_dirs(workspace: &Workspace, written: Vec<(usize, &str, &Place)>) -> Result<(), Failure> {
    let places = written.iter().enumerate().map(|(at, (.., place))| (at, *place));
    git_dir::refuse_made(workspace, places).map_err(|(at, error)| match written.get(at) {
        Some((index, name, _)) => error.failure().file(*index, name),
        None => error.failure(),
    })
}

/// Where a batch is undone.
struct Ground<'a> {
    workspace: &'a Workspace,
    search: Search<'a>,
    /// What came after the batch, newest first.
    later: &'a [Entry],
}

impl Ground<'_> {
    /// Notes that a file that the batch moved is moved back, so that its name is free.
    fn leave(&mut self, file: &PastFile) {
        let root = self.workspace.roots().iter().position(|root| root.path() == file.root);
        let path = file.moved_to.as_deref().and_then(|path| WorkspacePath::new(path).ok());
        if let Some((root, path)) = root.zip(path) {
            self.search.leave_in(root, &path);
        }
    }

    /// What there is now at a path in the root of a file.
    fn find(&mut self, index: usize, file: &PastFile, path: &str, claim: Claim) -> Result<Found, Failure> {
        let mut roots = self.workspace.roots().iter();
        let root = roots.position(|root| root.path() == file.root).ok_or_else(|| {
            let message = format!("the batch changed files in {} as well", file.root.display());
            Failure::new(Reason::InvalidRequest, message).hint("name this root, too, with --root")
        })?;
        let path = WorkspacePath::new(path)
            .map_err(|error| Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()))?;
        self.search.find_in(index, (root, &path), claim)
    }

    /// How an author would name a path in the root of a file.
    fn name(&self, file: &PastFile, path: &str) -> String {
        let mut roots = self.workspace.roots().iter();
        match roots.find(|root| root.path() == file.root) {
            Some(root) if self.workspace.roots().len() > 1 => format!("{}/{path}", root.name()),
            _ => path.to_owned(),
        }
    }

    /// The batch that, as the last one that came later, moved the file at a path away or deleted it, and where it went.
    fn taken_by(&self, file: &PastFile, path: &str) -> Option<(&Entry, Option<&str>)> {
        let mut later = self.later.iter().flat_map(|entry| entry.files.iter().map(move |past| (entry, past)));
        let is_of = |past: &PastFile| past.path == path || past.moved_to.as_deref() == Some(path);
        let (entry, past) = later.find(|(_, past)| past.root == file.root && is_of(past))?;
        let is_taken = past.path == path && (past.moved_to.is_some() || past.after.is_none());
        is_taken.then_some((entry, past.moved_to.as_deref()))
    }

    /// That a file is not where the batch left it.
    fn gone(&self, file: &PastFile, path: &str) -> Failure {
        let (message, hint) = match self.taken_by(file, path) {
            Some((batch, to)) => {
                let deed = to.map_or_else(|| "deleted it".to_owned(), |to| format!("moved it to {to:?}"));
                let name = batch.name();
                (format!("batch {name}, which came later, {deed}"), format!("undo that one first: `aptix undo {name}`"))
            }
            None => (
                "the file was removed after the batch, so that there is nothing to undo the edit in".to_owned(),
                "bring the file back to this path first".to_owned(),
            ),
        };
        Failure::new(Reason::FileMissing, message).hint(hint)
    }
}

/// The files that would be moved back to where another one is that is not moved away from there.
fn blocked<'d>(deeds: &'d [(Deed, &PastFile)]) -> impl Iterator<Item = (usize, &'d PastFile)> {
    let moves = || {
        let deeds = deeds.iter().enumerate();
        deeds.filter_map(|(index, (deed, file))| Some((&deed.found.place, deed.found.other.as_ref()?, (index, *file))))
    };
    moves().filter_map(move |(_, to, file)| {
        let is_free = to.original.is_none() || moves().any(|(from, ..)| from.is_at(&to.place));
        (!is_free).then_some(file)
    })
}

/// Finds out what has to happen to one file; nothing where it is as before the batch already. `is_taken_over` says whether
/// the batch moved another file to where this one was.
fn deed(
    ground: &mut Ground<'_>,
    index: usize,
    file: &PastFile,
    images: &Images,
    is_taken_over: bool,
) -> Result<Option<Deed>, Vec<Failure>> {
    let left_at = file.moved_to.as_deref().unwrap_or(&file.path);
    let (name, old_name) = (ground.name(file, left_at), ground.name(file, &file.path));
    let here = |failure: Failure| vec![failure.file(index, &name)];
    let in_its_place = || vec![in_its_place(&file.path).file(index, &old_name)];
    let (here_is, there_is) = match file.moved_to {
        Some(_) => (Claim::Leaves, Claim::Arrives),
        None => (Claim::Stays, Claim::Stays),
    };
    let mut found = ground.find(index, file, left_at, here_is).map_err(here)?;
    if file.moved_to.is_some() {
        let there = ground.find(index, file, &file.path, there_is);
        let there = there.map_err(|failure| vec![failure.file(index, &old_name)])?;
        let is_own = |bytes| [&images.before, &images.after].into_iter().flatten().any(|own| own == bytes);
        let is = |original: &Original, image: &Option<Vec<u8>>| image.as_ref() == Some(&original.bytes);
        match (&found.original, &there.original) {
            // Another process has moved the files back.
            (Some(now), Some(back)) if is_taken_over && is(back, &images.before) && !is(now, &images.after) => {
                found = there
            }
            (Some(_), Some(_)) if is_taken_over => found.other = Some(Box::new(there)),
            (None, _) if is_taken_over => return Err(here(ground.gone(file, left_at))),
            (Some(_), Some(_)) => return Err(in_its_place()),
            // Somebody has moved it back by hand.
            (None, Some(back)) if is_own(&back.bytes) => found = there,
            (None, _) => return Err(here(ground.gone(file, left_at))),
            (Some(_), None) => found.other = Some(Box::new(there)),
        }
    }
    let now = found.original.as_ref().map(|original| original.bytes.as_slice());
    let action = match (&images.before, &images.after, now) {
        (Some(before), Some(after), Some(now)) => match merge::way_back(before, after, now) {
            Ok(edit) => FileAction::Edit(edit),
            Err(clashes) => return Err(clashes.iter().take(TOLD).flat_map(|clash| here(clashed(clash))).collect()),
        },
        (None, Some(after), Some(now)) if after.as_slice() == now => FileAction::Delete,
        (None, Some(_), Some(now)) => {
            let message = "the batch created the file, and it was edited since";
            let excerpt = Excerpt { start_line: 1, end_line: 1, text: first_line(now) };
            let failure = Failure { nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) };
            let hint = "undo the batches that came later first, newest first, or delete the file by hand";
            return Err(here(failure.hint(hint)));
        }
        (Some(before), None, Some(now)) if before.as_slice() == now => return Ok(None),
        (Some(_), None, Some(_)) => return Err(in_its_place()),
        (Some(before), None, None) => {
            found.attributes = file.before.as_ref().map(|before| before.attributes.clone());
            FileAction::Write(before.clone().into())
        }
        // What was deleted since is as it was before; what was moved is not.
        (None, Some(_), None) => match ground.taken_by(file, left_at) {
            Some((_, Some(_))) => return Err(here(ground.gone(file, left_at))),
            _ => return Ok(None),
        },
        (None, None, _) => return Ok(None),
        (Some(_), Some(_), None) => return Err(here(ground.gone(file, left_at))),
    };
    Ok(Some(Deed { name, found, action }))
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

/// The plan for one file.
fn planned<'a>(observed: &'a Observed<'a>, action: FileAction<'a>, file: &PastFile) -> FilePlan<'a> {
    let mut plan = draft::decided(observed, action);
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
