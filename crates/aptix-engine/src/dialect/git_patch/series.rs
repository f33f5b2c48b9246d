//! A file that a diff has in several parts: each one is planned for what the parts before it leave, and all of them make
//! one plan.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use aptix_model::batch::{GitKind, GitPatch};
use aptix_model::failure::Failure;
use aptix_model::report::{ChangeReport, FileStatus, Warning};

use super::plan::plan;
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::planning::draft::{Draft, finish, rename as move_file};
use crate::planning::observed::Observed;
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::edit::TextEdit;

/// What the parts so far leave of a file.
struct State {
    content: Option<Vec<u8>>,
    is_executable: bool,
    /// The edit that leads to the content, as long as it is that of the file with edits.
    edit: Option<TextEdit>,
    changes: Vec<ChangeReport>,
    warnings: Vec<Warning>,
}

/// Plans all parts.
pub(crate) fn plan_series<'a>(
    base: Base,
    parts: &'a [GitPatch],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let mut state = State {
        content: observed.content.map(<[u8]>::to_vec),
        is_executable: observed.is_executable,
        edit: observed.content.map(|_| TextEdit::default()),
        changes: Vec::new(),
        warnings: Vec::new(),
    };
    let mut is_renamed = false;
    for (index, part) in parts.iter().enumerate() {
        is_renamed |= matches!(part.kind, GitKind::Rename { .. });
        work.take_room(state.content.as_ref().map_or(0, Vec::len))?;
        take(index, base, part, observed, work, &mut state)?;
    }
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    let State { content, is_executable, edit, changes, warnings } = state;
    let action = match (content, edit) {
        (None, _) => FileAction::Delete,
        (Some(_), Some(edit)) => FileAction::Edit(edit),
        (Some(content), None) => FileAction::Write(Cow::Owned(content)),
    };
    let is_there = action != FileAction::Delete;
    let mut plan = finish(observed, original, Draft { action, normalized: Vec::new(), warnings, changes });
    plan.executable = Some(is_executable).filter(|is_executable| is_there && *is_executable != observed.is_executable);
    if plan.executable.is_some() && plan.status == FileStatus::Unchanged {
        plan.status = FileStatus::Modified;
    }
    if is_renamed { Ok(move_file(plan, observed, work)?) } else { Ok(plan) }
}

/// A failure of a part as one of the file, below so many changes.
fn of_part(failure: Failure, index: usize, above: usize) -> Failure {
    let failure = Failure { change_index: failure.change_index.map(|change| change + above), ..failure };
    if index == 0 {
        return failure;
    }
    // The digest and the hint speak of a file that is nowhere.
    let message = format!("in part {} of the file, after the parts above it: {}", index + 1, failure.message);
    Failure { message, current_sha256: None, ..failure }
}

/// Plans one part for what the parts before it leave.
fn take(
    index: usize,
    base: Base,
    part: &GitPatch,
    observed: &Observed<'_>,
    work: &mut Work<'_>,
    state: &mut State,
) -> Result<(), Findings> {
    let above = state.changes.len();
    let other = match part.kind {
        GitKind::Copy { .. } => observed.other.clone(),
        // Where the file ends up is looked at once.
        _ => None,
    };
    let before = Observed {
        path: observed.path.clone(),
        doc_path: observed.doc_path.clone(),
        content: state.content.as_deref(),
        digest: observed.digest.filter(|_| index == 0),
        is_executable: state.is_executable,
        other,
    };
    let kind = if let GitKind::Rename { .. } = part.kind { GitKind::Modify } else { part.kind.clone() };
    let is_first = index == 0;
    let patch = GitPatch { kind, is_unprefixed: part.is_unprefixed && is_first, ..part.clone() };
    let base = if is_first { base } else { Base::Any };
    let planned =
        plan(base, &patch, &before, work).map_err(|found| found.map(|failure| of_part(failure, index, above)))?;
    let content = match planned.action {
        FileAction::Delete => None,
        _ => Some(planned.content().into_owned()),
    };
    let edit = match (&planned.action, state.edit.take()) {
        (FileAction::Edit(later), Some(edit)) => Some(edit.then(later)),
        _ => None,
    };
    let is_executable = match planned.status {
        FileStatus::Created => planned.executable.unwrap_or(false),
        _ => planned.executable.unwrap_or(state.is_executable),
    };
    let warnings = planned.warnings.iter().cloned().map(|warning| match is_first {
        true => warning,
        false => Warning { message: format!("in part {} of the file: {}", index + 1, warning.message), ..warning },
    });
    let (warnings, changes): (Vec<_>, Vec<_>) = (warnings.collect(), planned.changes.clone());
    state.warnings.extend(warnings);
    state.changes.extend(changes);
    (state.content, state.edit, state.is_executable) = (content, edit, is_executable);
    Ok(())
}
