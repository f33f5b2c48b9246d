//! The check of one plan: what is suspect about its new text, and whether that is refused.

use alloc::collections::BTreeSet;
use alloc::format;
use core::ops::Range;

use aptix_model::batch::{AnchorPlace, FileEdit, GitKind, GitPatch, LineKind};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::FileStatus;

use super::scan::{is_whole, lines, text_start};
use super::{diff, elision, marks};
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::warning;
use crate::git_id;
use crate::planning::settings::Suspicion;
use crate::shown::cut;
use crate::text::edit::slice;

/// Characters of a line that is shown.
const LINE_CHARS: usize = 80;
/// Files that hold diffs.
const PATCHES: [&str; 3] = ["diff", "patch", "rej"];
/// Files of prose, which quote diffs, blocks and markers.
const PROSE: [&str; 3] = ["md", "rst", "txt"];

/// What is suspect about new text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Suspect {
    #[error("the whole text is one fenced block: its first and its last line are the fences")]
    Fenced,
    #[error("the whole text is a diff")]
    Diff,
    #[error("the whole text is SEARCH/REPLACE blocks")]
    Blocks,
    #[error("the text contains conflict markers")]
    Markers,
    #[error("a comment replaces lines that were left out")]
    Elision,
}

impl Suspect {
    const fn detail_and_hint(self) -> (Detail, &'static str) {
        match self {
            Self::Fenced => (Detail::Fenced, "send the text without the fences"),
            Self::Diff => (Detail::LooksLikeDiff, "to apply the diff, send it as a git patch"),
            Self::Blocks => (Detail::LooksLikeDiff, "to apply the blocks, send them as such"),
            Self::Markers => (Detail::ConflictMarkers, "send the text without the lines <<<<<<<, ======= and >>>>>>>"),
            Self::Elision => {
                (Detail::Elision, "send the lines that the comment stands for, or edit only the lines that change")
            }
        }
    }
}

/// A suspect place: its offset in the file as it would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Found {
    suspect: Suspect,
    offset: usize,
}

/// Refuses a plan, or adds a warning to it, where its new text does not look like the content of a file.
///
/// # Errors
/// `SUSPECT_CONTENT`, with the line in the file as it would be.
pub(crate) fn check(
    edit: &FileEdit,
    is_blind: bool,
    plan: &mut FilePlan<'_>,
    suspicion: Suspicion,
) -> Result<(), Failure> {
    if suspicion == Suspicion::Off || is_declared(edit) {
        return Ok(());
    }
    // What a file that is not to be looked at holds must not show in whether text is written over it.
    let base = if is_blind { &[] } else { plan.base().unwrap_or_default() };
    if plan.status == FileStatus::Unchanged && !is_blind {
        return Ok(());
    }
    // First, because most edits of a file have evidence, and then nothing is searched.
    if has_evidence(edit, base) {
        return Ok(());
    }
    let path = plan.moved_to.unwrap_or(plan.path).folded();
    if PATCHES.contains(&extension(&path)) {
        return Ok(());
    }
    let Some(found) = look(plan, base) else { return Ok(()) };
    let content = plan.content();
    let line = memchr::memchr_iter(b'\n', slice(&content, 0..found.offset)).count() + 1;
    let shown = slice(&content, found.offset..content.len());
    let shown = cut(lines(shown).next().map_or(&[][..], |(_, line)| line).trim_ascii(), LINE_CHARS);
    let message = format!("{}, at line {line} of the file as it would be: {shown:?}", found.suspect);
    if suspicion == Suspicion::Warn || quotes(&path) {
        plan.warnings.push(warning(Reason::SuspectContent.code(), message));
        return Ok(());
    }
    let (detail, hint) = found.suspect.detail_and_hint();
    let failure = Failure::new(Reason::SuspectContent, message).detail(detail).hint(hint).line(line);
    let is_change = |start: u32, end: u32| (start as usize..=end as usize).contains(&line);
    let change = plan.changes.iter().position(|change| is_change(change.start_line, change.end_line));
    Err(match change {
        Some(change) => failure.change(change),
        None => failure,
    })
}

/// Whether the content of a plan would be refused in a whole-file edit.
pub(crate) fn is_suspect(plan: &FilePlan<'_>) -> bool {
    plan.status != FileStatus::Unchanged && look(plan, plan.base().unwrap_or_default()).is_some()
}

/// Whether the author declares the content to be meant as it is.
fn is_declared(edit: &FileEdit) -> bool {
    match edit {
        FileEdit::CreateFile(create) => create.content_format.is_some(),
        FileEdit::WriteFile(write) => write.content_format.is_some(),
        FileEdit::AnchorEdit(edit) => matches!(&edit.place, AnchorPlace::Whole { content_format: Some(_) }),
        _ => false,
    }
}

/// Whether a stated digest, or the context of a diff, shows that the author knows the file.
fn has_evidence(edit: &FileEdit, base: &[u8]) -> bool {
    match edit {
        FileEdit::LinePatch(_) => true,
        FileEdit::GitPatch(patch) => knows(patch, base),
        FileEdit::GitSeries(parts) => parts.iter().all(|part| knows(part, base)),
        _ => false,
    }
}

/// Whether every hunk of a diff holds lines of the file, or its id is that of a file with text.
fn knows(patch: &GitPatch, base: &[u8]) -> bool {
    let has_context = || patch.hunks.iter().all(|hunk| hunk.lines.iter().any(|line| line.kind != LineKind::Added));
    match patch.kind {
        GitKind::Create => false,
        GitKind::Copy { .. } => has_context(),
        GitKind::Modify | GitKind::Delete | GitKind::Rename { .. } => {
            !base.is_empty() && (has_context() || git_id::names_base(patch, base))
        }
    }
}

/// The first suspect place of a plan that is made for these bytes.
fn look(plan: &FilePlan<'_>, base: &[u8]) -> Option<Found> {
    whole(plan, base).or_else(|| markers(plan, base)).or_else(|| elisions(plan, base))
}

fn whole(plan: &FilePlan<'_>, base: &[u8]) -> Option<Found> {
    if !is_whole(plan, base) {
        return None;
    }
    let content = plan.content();
    let start = text_start(&content);
    let (new, old) = (slice(&content, start..content.len()), slice(base, text_start(base)..base.len()));
    // What the file was before, it may stay.
    let suspect = |text: &[u8]| {
        let offset = marks::first_fence_of_pair(text).map(|offset| (Suspect::Fenced, offset));
        let offset = offset.or_else(|| diff::is_diff(text).map(|offset| (Suspect::Diff, offset)));
        offset.or_else(|| marks::is_blocks(text).map(|offset| (Suspect::Blocks, offset)))
    };
    let (found, offset) = suspect(new)?;
    if suspect(old).is_some_and(|(before, _)| before == found) || holds(base, new.trim_ascii()) {
        return None;
    }
    Some(Found { suspect: found, offset: start + offset })
}

fn markers(plan: &FilePlan<'_>, base: &[u8]) -> Option<Found> {
    if !new_texts(plan).any(|new| marks::RUNS.iter().any(|run| holds(new, run))) {
        return None;
    }
    let content = plan.content();
    let (before, after) = (marks::conflicts(base), marks::conflicts(&content));
    if after.len() <= before.len() {
        return None;
    }
    let known: BTreeSet<&[u8]> = before.into_iter().map(|conflict| slice(base, conflict)).collect();
    let is_new = |conflict: &&Range<usize>| !known.contains(slice(&content, (*conflict).clone()));
    let conflict = after.iter().find(is_new).or(after.first())?;
    Some(Found { suspect: Suspect::Markers, offset: conflict.start })
}

fn elisions(plan: &FilePlan<'_>, base: &[u8]) -> Option<Found> {
    let found = |offset| Found { suspect: Suspect::Elision, offset };
    let known = elision::Known::of(base);
    match &plan.action {
        FileAction::Write(bytes) if elision::is_shorter(bytes, base) => known.find_other(bytes).map(found),
        FileAction::Edit(edit) => {
            let (mut added, mut removed) = (0, 0);
            for (range, new) in edit.replacements() {
                if !new.is_empty() && elision::is_shorter(new, slice(base, range.clone())) {
                    let (lines, kept) = elision::whole_lines(base, &range, new);
                    if let Some(at) = known.find_other(&lines) {
                        return Some(found((range.start + added + at).saturating_sub(removed + kept)));
                    }
                }
                added += new.len();
                removed += range.len();
            }
            None
        }
        FileAction::Write(_) | FileAction::Delete => None,
    }
}

/// The new texts of a plan.
fn new_texts<'p>(plan: &'p FilePlan<'_>) -> impl Iterator<Item = &'p [u8]> {
    let (whole, edit) = match &plan.action {
        FileAction::Write(bytes) => (Some(&**bytes), None),
        FileAction::Edit(edit) => (None, Some(edit)),
        FileAction::Delete => (None, None),
    };
    whole.into_iter().chain(edit.into_iter().flat_map(|edit| edit.replacements().map(|(_, new)| new)))
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether files of this path, in lower case, quote what elsewhere is suspect: prose, tests and their data.
fn quotes(path: &str) -> bool {
    let (directories, _) = path.rsplit_once('/').unwrap_or_default();
    let is_test = |name: &str| name.starts_with("test") || name == "fixtures" || name == "testdata";
    PROSE.contains(&extension(path)) || directories.split('/').any(is_test)
}
