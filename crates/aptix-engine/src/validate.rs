//! Everything that can be said about a batch without a file: all violations at once, each with its field.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use aptix_model::batch::{Batch, FileEdit, PartialBatch};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;

use crate::checking::site::{Keys, Site};
use crate::checking::targets;
use crate::checking::violation::Violation;
use crate::dialect::{
    anchor_edit, context_patch, git_patch, line_patch, quote, replacements, search_patch, whole_file,
};
use crate::findings::Findings;
use crate::readings;
use crate::target::Base;
use crate::valid::{ValidBatch, ValidEdit, ValidFile};

/// Checks a batch against everything that needs no file.
///
/// # Errors
/// What is wrong with the batch, everything at once: up to a hundred failures, then how many more there are.
pub fn validate<'a>(batch: &'a Batch, limits: &Limits) -> Result<ValidBatch<'a>, Vec<Failure>> {
    check(batch, None, limits).map_err(Findings::into_failures)
}

/// Checks a batch, or what can be read of one: then `positions` has the index of each of its file patches in the whole.
fn check<'a>(batch: &'a Batch, positions: Option<&[usize]>, limits: &Limits) -> Result<ValidBatch<'a>, Findings> {
    let mut findings = Findings::default();
    let is_whole = positions.is_none();
    if let Some((field, violation)) = too_many(batch, is_whole, limits) {
        findings.add(|| violation.failure().field(field));
        return Err(findings);
    }
    let mut site = Site::new(&mut findings, limits, positions);
    site.check_text("batchLabel", batch.label.as_deref());
    site.check_text("batchKey", batch.key.as_deref());
    let mut files = Vec::with_capacity(batch.files.len());
    let mut keys = Keys::default();
    for (index, patch) in batch.files.iter().enumerate() {
        let index = site.position(index);
        site.file = Some((index, patch));
        site.check_text("fileKey", patch.key.as_deref());
        keys.check("fileKey", index, patch.key.as_deref(), &mut site);
        site.check_text("fileLabel", patch.label.as_deref());
        let target = targets::check(&patch.target, &mut site);
        let other = targets::check_other(patch, &mut site);
        let edit = check_edit(&patch.edit, &mut site);
        if let (Some(target), Ok(other), Some((base, edit))) = (target, other, edit) {
            files.push(ValidFile { is_blind: false, patch, target, other, base, edit });
        }
    }
    targets::check_twins(batch, &mut site);
    site.file = None;
    let mut quotes = Vec::with_capacity(batch.quotes.len());
    for quote in &batch.quotes {
        match quote::check(quote) {
            Ok(quote) => quotes.push(quote),
            Err(failure) => site.refuse(&format!("line {}", quote.first_line), || failure),
        }
    }
    findings.check().map(|()| ValidBatch { batch, files, quotes })
}

/// Checks everything about a batch that needs no file, under each way of reading its names.
///
/// # Errors
/// What is wrong with it, whichever files exist.
pub fn validate_open(batch: &Batch, limits: &Limits) -> Result<(), Vec<Failure>> {
    check_open(batch, None, limits).map_err(Findings::into_failures)
}

/// Everything that is wrong with a batch of which some file patches have the wrong shape, in the order of the files: up to a
/// hundred failures, then how many more there are. The other file patches are checked as [`validate_open`] checks a whole batch,
/// and what is found wrong with them is completed by `complete`. What is about no single file comes last.
#[must_use]
pub fn validate_part(part: &PartialBatch, limits: &Limits, complete: impl Fn(Failure) -> Failure) -> Vec<Failure> {
    let PartialBatch { batch, positions, failures } = part;
    let mut findings = Findings::default();
    failures.iter().for_each(|failure| findings.add(|| failure.clone()));
    let positions = (!failures.is_empty()).then_some(positions.as_slice());
    if let Err(found) = check_open(batch, positions, limits) {
        findings.absorb(found, complete);
    }
    findings.sort_by_key(|failure| failure.file_index.unwrap_or(usize::MAX));
    findings.into_failures()
}

fn check_open(batch: &Batch, positions: Option<&[usize]>, limits: &Limits) -> Result<(), Findings> {
    let mut readings = readings::assumptions(batch).peekable();
    if readings.peek().is_none() {
        return check(batch, positions, limits).map(drop);
    }
    let mut first = None;
    for reading in readings {
        match check(&reading, positions, limits) {
            Ok(_) => return Ok(()),
            Err(failures) => drop(first.get_or_insert(failures)),
        }
    }
    first.map_or(Ok(()), Err)
}

/// Sizes that are not even looked into when they are passed.
fn too_many(batch: &Batch, is_whole: bool, limits: &Limits) -> Option<(&'static str, Violation)> {
    if is_whole && batch.files.is_empty() {
        return Some(("files", Violation::Empty { what: "file patch" }));
    }
    let found = batch.files.len().saturating_add(batch.quotes.len());
    if found > limits.files {
        return Some(("files", Violation::Files { found, limit: limits.files }));
    }
    // A part without hunks is work too.
    let changes = batch.files.iter().map(|patch| match &patch.edit {
        FileEdit::GitSeries(parts) => parts.iter().map(|part| part.hunks.len().max(1)).sum(),
        edit => edit.change_count(),
    });
    let found = changes.fold(0, usize::saturating_add);
    (found > limits.changes).then_some(("files", Violation::Changes { found, limit: limits.changes }))
}

fn check_edit<'a>(edit: &'a FileEdit, site: &mut Site<'_, 'a>) -> Option<(Base, ValidEdit<'a>)> {
    Some(match edit {
        FileEdit::LinePatch(patch) => {
            line_patch::check(patch, site).map(|(base, lines)| (base, ValidEdit::Lines(lines)))?
        }
        FileEdit::CreateFile(create) => (whole_file::check_created(create, site), ValidEdit::Content(&create.content)),
        FileEdit::WriteFile(write) => (whole_file::check_written(write, site), ValidEdit::Verbatim(&write.content)),
        FileEdit::DeleteFile => (Base::MustExist, ValidEdit::Delete),
        FileEdit::AnchorEdit(edit) => {
            anchor_edit::check(edit, site).map(|(base, edit)| (base, ValidEdit::Anchor(Box::new(edit))))?
        }
        FileEdit::SearchPatch(patch) => {
            search_patch::check(&patch.changes, site).map(|(base, changes)| (base, ValidEdit::Search(changes)))?
        }
        FileEdit::EditorCommands(edit) => {
            search_patch::check_commands(&edit.commands, site).map(|(base, all)| (base, ValidEdit::Search(all)))?
        }
        FileEdit::Replacements(patch) => {
            replacements::check(&patch.steps, site).map(|(base, steps)| (base, ValidEdit::Steps(steps)))?
        }
        FileEdit::ContextPatch(patch) => (Base::MustExist, ValidEdit::Context(context_patch::check(patch, site)?)),
        FileEdit::GitPatch(patch) => (git_patch::check(patch, site)?, ValidEdit::Diff(patch)),
        FileEdit::GitSeries(parts) => (git_patch::check_series(parts, site)?, ValidEdit::Series(parts)),
        FileEdit::LocalChange => {
            site.report("localChange", || Violation::LocalChange);
            return None;
        }
        FileEdit::Revert(_) => {
            site.report("revert", || Violation::Revert);
            return None;
        }
    })
}
