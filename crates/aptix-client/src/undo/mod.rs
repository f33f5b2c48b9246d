//! Undoes a batch: as a batch of its own, whose edits take back what the other one did, and nothing that came later.

pub(crate) mod failure;
mod file_undo;
pub(crate) mod merge;
mod passage_undo;
mod revert;
pub(crate) mod undone;

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::plan::BatchPlan;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::draft;
use aptix_engine::planning::observed::Observed;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Report};

pub use self::revert::revert;
pub use self::undone::Undone;

use self::failure::{history_failure, not_found, nothing_left};
use self::file_undo::{FileUndo, UndoSite, file_undo};
use self::undone::{completed, label, patch};
use crate::apply::find::Found;
use crate::apply::planned::{Planned, carry_out, refuse_removed};
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Hidden, Refusal};
use crate::policy::caller::Caller;
use crate::workspace::keep::history::entries::{Entry, HistoryError, Reversal};
use crate::workspace::keep::history::find::{self, Found as FoundEntry, Wanted};
use crate::workspace::keep::history::past_file::{Kept, PastFile};
use crate::workspace::keep::history::{entries, pending};
use crate::workspace::read::git_dir;
use crate::workspace::roots::workspace::Workspace;

/// Takes a batch back. Until [`acknowledge`] is called, the same request is answered with the same batch: a command that was
/// interrupted can be run again and takes back no other batch.
///
/// # Errors
/// When there is no such batch, when what it changed was changed again, and whatever keeps a batch from being applied.
pub fn undo(
    workspace: &Workspace,
    wanted: Wanted<'_>,
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Undone, Refusal> {
    options.policy.may_write()?;
    refuse_removed(workspace)?;
    let caller = options.policy.caller;
    let in_history = |error: HistoryError| history_failure(&error, caller);
    if let Some(undone) = completed(workspace, wanted).map_err(in_history)? {
        return Ok(undone);
    }
    let FoundEntry { entry, later } = find::find(workspace, wanted).map_err(|error| not_found(&error, caller))?;
    let kept = entries::kept(&entry).map_err(in_history)?;
    let undos = file_undos(&mut UndoSite::new(workspace, options.policy, (&entry, &later)), &kept)?;
    let batch = Batch {
        label: Some(label(&entry)),
        files: undos.iter().map(|undo| patch(undo.name.clone(), undo.action == FileAction::Delete)).collect(),
        ..Batch::default()
    };
    if !options.mode.is_dry_run() {
        pending::note(workspace, &Reversal::of(&entry)).map_err(in_history)?;
    }
    let report = take_back(workspace, (&entry, &batch, undos), &[], options, confirm).inspect_err(|_| {
        if !options.mode.is_dry_run()
            && let Err(error) = pending::forget(workspace)
        {
            tracing::warn!(%error, "the note of an undo that was refused stays");
        }
    })?;
    Ok(Undone { batch, report, reverts: entry.name(), reverts_label: entry.label(), name: None })
}

/// Carries out what takes the batch of an entry back: `batch` has a file patch for each file that has to change, and `hidden`
/// those that are withheld from its author.
fn take_back(
    workspace: &Workspace,
    (entry, batch, undos): (&Entry, &Batch, Vec<FileUndo<'_>>),
    hidden: &[Hidden<'_>],
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    refuse_git_dirs(workspace, &undos)?;
    let (found, rest): (Vec<_>, Vec<_>) =
        undos.into_iter().map(|FileUndo { found, action, file, .. }| (found, (action, file))).unzip();
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let files = observed.iter().zip(rest).map(|(observed, (action, file))| planned(observed, action, file));
    let plan =
        BatchPlan { files: files.collect::<Result<_, _>>()?, warnings: Vec::new(), clipboards: Clipboards::new() };
    if plan.files.iter().all(|file| file.status == FileStatus::Unchanged) {
        let message = "nothing of the batch is left to undo: its files are as they were before it";
        return Err(Failure::new(Reason::AlreadyApplied, message).hint(nothing_left(options.policy.caller)).into());
    }
    let reversal = Reversal::of(entry);
    let planned =
        Planned { batch, found: &found, plan: &plan, undoes: Some(&reversal), taken: None, hidden, whole: None };
    carry_out(workspace, planned, options, &mut |proposal| confirm(proposal).check(proposal))
}

/// Notes that the answer of [`undo`] was delivered: the next request is a new one.
///
/// # Errors
/// When the state directory cannot be written.
pub fn acknowledge(workspace: &Workspace) -> Result<(), Failure> {
    pending::forget(workspace).map_err(|error| history_failure(&error, Caller::Shell))
}

/// What has to happen to each file of a batch, as far as anything has to.
fn file_undos<'e>(site: &mut UndoSite<'e>, kept: &[Kept]) -> Result<Vec<FileUndo<'e>>, Vec<Failure>> {
    let entry = site.entry;
    entry.files.iter().for_each(|file| site.leave(file));
    let (mut undos, mut failures) = (Vec::new(), Vec::new());
    for (index, (file, kept)) in entry.files.iter().zip(kept).enumerate() {
        let is_taken_over = entry.files.iter().any(|other| other.moves_to(file));
        match file_undo(site, index, file, kept, is_taken_over) {
            Ok(undo) => undos.extend(undo),
            Err(found) => failures.extend(found),
        }
    }
    // A file can only move back to where none is, or one that moves away.
    let moves = || undos.iter().filter_map(|undo| Some((&undo.found.place, undo.found.other.as_ref()?, undo)));
    for (_, to, FileUndo { index, file, .. }) in moves() {
        if to.original.is_some() && !moves().any(|(from, ..)| from.at() == to.place.at()) {
            failures.push(site.blocked(*index, file));
        }
    }
    if failures.is_empty() { Ok(undos) } else { Err(failures) }
}

/// Refuses files that, with others, would make a directory one that git takes for its own, as for any batch.
fn refuse_git_dirs(workspace: &Workspace, undos: &[FileUndo<'_>]) -> Result<(), Failure> {
    let written = undos.iter().enumerate().filter_map(|(at, undo)| Some((at, undo.written()?)));
    git_dir::refuse_made(workspace, written).map_err(|(at, error)| match undos.get(at) {
        Some(undo) => error.failure().file(undo.index, &undo.name),
        None => error.failure(),
    })
}

/// The plan for one file.
fn planned<'a>(observed: &'a Observed<'a>, action: FileAction<'a>, file: &PastFile) -> Result<FilePlan<'a>, Failure> {
    let mut plan = draft::decided(observed, action)?;
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
    Ok(plan)
}
