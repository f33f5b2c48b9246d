//! What the author of a refused batch most likely meant: the same batch with the digests, line numbers and old texts
//! that the files have. Given only if it can be proven to apply.

mod lines;
mod white_space;

use alloc::vec::Vec;

use aptix_model::batch::{Batch, FileEdit};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use crate::digest::Original;
use crate::plan::plan;
use crate::planning::observed::Observed;
use crate::planning::presence::read_text;
use crate::planning::settings::Settings;
use crate::validate::validate;

/// Failures that are corrected at once.
const FAILURES: usize = 8;

/// The batch corrected, if every failure has exactly one way out and nothing else is wrong.
///
/// A stale digest is corrected where every expected line still occurs in its place, or in exactly one other place;
/// wrong line numbers, where the expected lines occur in exactly one place; old text, where the lines of exactly one
/// place differ from it in white space alone.
#[must_use]
pub fn correct(
    batch: &Batch,
    snapshot: &[Observed<'_>],
    settings: &Settings<'_>,
    failures: &[Failure],
) -> Option<Batch> {
    if failures.len() > FAILURES || !failures.iter().all(is_correctable) {
        return None;
    }
    let mut files: Vec<usize> = failures.iter().filter_map(|failure| failure.file_index).collect();
    files.dedup();
    let mut corrected = batch.clone();
    for index in files {
        let (file, observed) = (corrected.files.get_mut(index)?, snapshot.get(index)?);
        let original = Original::new(observed.content?, observed.digest);
        let text = read_text(&original, &settings.limits).ok()?;
        match &mut file.edit {
            FileEdit::LinePatch(patch) => lines::correct(patch, &text, original.digest(0))?,
            FileEdit::SearchPatch(patch) => {
                for failure in failures.iter().filter(|failure| failure.file_index == Some(index)) {
                    white_space::correct(patch.changes.get_mut(failure.change_index?)?, &text)?;
                }
            }
            FileEdit::EditorCommands(edit) => {
                for failure in failures.iter().filter(|failure| failure.file_index == Some(index)) {
                    white_space::correct_command(edit.commands.get_mut(failure.change_index?)?, &text)?;
                }
            }
            _ => return None,
        }
    }
    let valid = validate(&corrected, &settings.limits).ok()?;
    let applies = plan(&valid, snapshot, settings).is_ok();
    applies.then_some(corrected)
}

fn is_correctable(failure: &Failure) -> bool {
    match failure.reason {
        Reason::ShaMismatch | Reason::ExpectedMismatch | Reason::TextNotFound => true,
        Reason::LineRange => failure.detail == Some(Detail::PastEnd),
        _ => false,
    }
}
