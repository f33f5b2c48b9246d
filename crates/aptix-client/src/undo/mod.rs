//! Undoes a batch: as a batch of its own, whose edits take back what the other one did, and nothing that came later.

mod completed;
pub(crate) mod failure;
mod file_undo;
mod merge;
mod site;
mod undone;

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_engine::plan::BatchPlan;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::draft;
use aptix_engine::planning::observed::Observed;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::FileStatus;

pub use self::undone::Undone;

use self::failure::{history_failure, in_its_place, not_found};
use self::file_undo::{FileUndo, file_undo};
use self::site::UndoSite;
use self::undone::label;
use crate::apply::find::{Found, Search};
use crate::apply::planned::{Planned, carry_out, refuse_removed};
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode, Refusal};
use crate::workspace::keep::history::effect::Reversal;
use crate::workspace::keep::history::find::{self, Found as FoundEntry, Wanted};
use crate::workspace::keep::history::past_file::PastFile;
use crate::workspace::keep::history::{entries, pending};
use crate::workspace::read::made_git_dir;
use crate::workspace::read::place::Place;
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
    if let Some(undone) = completed::completed(workspace, wanted).map_err(|error| history_failure(&error))? {
        return Ok(undone);
    }
    let FoundEntry { entry, later } = find::find(workspace, wanted).map_err(|error| not_found(&error))?;
    let images = entries::images(&entry).map_err(|error| history_failure(&error))?;
    let mut site = UndoSite { workspace, search: Search::new(workspace, options.policy), later: &later };
    for file in &entry.files {
        site.leave(file);
    }
    let mut undos = Vec::new();
    let mut failures = Vec::new();
    for (index, (file, images)) in entry.files.iter().zip(&images).enumerate() {
        let is_taken_over = entry.files.iter().any(|other| other.moves_to(file));
        match file_undo(&mut site, index, file, images, is_taken_over) {
            Ok(undo) => undos.extend(undo.map(|undo| (undo, file))),
            Err(found) => failures.extend(found),
        }
    }
    failures.extend(blocked(&undos).map(|(index, file)| in_its_place(&file.path).file(index, &file.path)));
    if !failures.is_empty() {
        return Err(failures.into());
    }
    let written = undos.iter().filter_map(|(undo, file)| {
        let index = entry.files.iter().position(|other| std::ptr::eq(other, *file))?;
        undo.written().map(|place| (index, undo.name.as_str(), place))
    });
    refuse_git_dirs(workspace, written.collect())?;
    let batch = Batch {
        label: Some(label(&entry)),
        files: undos.iter().map(|(undo, _)| undo.patch()).collect(),
        ..Batch::default()
    };
    let (found, rest): (Vec<_>, Vec<_>) =
        undos.into_iter().map(|(FileUndo { found, action, .. }, file)| (found, (action, file))).unzip();
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let files = observed.iter().zip(rest).map(|(observed, (action, file))| planned(observed, action, file));
    let plan =
        BatchPlan { files: files.collect::<Result<_, _>>()?, warnings: Vec::new(), clipboards: Clipboards::new() };
    if plan.files.iter().all(|file| file.status == FileStatus::Unchanged) {
        let message = "nothing of the batch is left to undo: its files are as they were before it";
        return Err(Failure::new(Reason::AlreadyApplied, message).hint("look at `aptix log`").into());
    }
    let reversal = Reversal::of(&entry);
    let planned =
        Planned { batch: &batch, found: &found, plan: &plan, undoes: Some(&reversal), taken: None, hidden: &[] };
    if !matches!(options.mode, Mode::DryRun) {
        pending::note(workspace, &reversal).map_err(|error| history_failure(&error))?;
    }
    let report = carry_out(workspace, planned, options, confirm).inspect_err(|_| {
        if !matches!(options.mode, Mode::DryRun)
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
    pending::forget(workspace).map_err(|error| history_failure(&error))
}

/// Refuses files that, with others, would make a directory one that git takes for its own, as for any batch.
fn refuse_git_dirs(workspace: &Workspace, written: Vec<(usize, &str, &Place)>) -> Result<(), Failure> {
    let places = written.iter().enumerate().map(|(at, (.., place))| (at, *place));
    made_git_dir::refuse_made(workspace, places).map_err(|(at, error)| match written.get(at) {
        Some((index, name, _)) => error.failure().file(*index, name),
        None => error.failure(),
    })
}

/// The files that would be moved back to where another one is that is not moved away from there.
fn blocked<'d>(undos: &'d [(FileUndo, &PastFile)]) -> impl Iterator<Item = (usize, &'d PastFile)> {
    let moves = || {
        let undos = undos.iter().enumerate();
        undos.filter_map(|(index, (undo, file))| Some((&undo.found.place, undo.found.other.as_ref()?, (index, *file))))
    };
    moves().filter_map(move |(_, to, file)| {
        let is_free = to.original.is_none() || moves().any(|(from, ..)| from.is_at(&to.place));
        (!is_free).then_some(file)
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
