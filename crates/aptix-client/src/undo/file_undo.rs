//! What has to happen to one file of a batch that is undone.

use aptix_engine::file_plan::FileAction;
use aptix_model::batch::FilePatch;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::reason::Reason;

use super::failure::in_its_place;
use super::merge::{self, Clash};
use super::site::UndoSite;
use super::undone;
use crate::apply::find::Found;
use crate::workspace::keep::history::past_file::{Images, PastFile};
use crate::workspace::read::place::{Claim, Place};
use crate::workspace::read::snapshot::Original;

/// How many places that are in the way are told for one file.
const TOLD: usize = 10;

/// What is to happen to one file.
pub(super) struct FileUndo {
    /// The file, as an author would name it.
    pub(super) name: String,
    pub(super) found: Found,
    pub(super) action: FileAction<'static>,
}

impl FileUndo {
    /// Where a file is afterwards that was not there before; nothing for one that goes.
    pub(super) fn written(&self) -> Option<&Place> {
        let to = self.found.other.as_ref().map_or(&self.found.place, |other| &other.place);
        (self.action != FileAction::Delete).then_some(to)
    }

    /// The edit as an author would have written it.
    pub(super) fn patch(&self) -> FilePatch {
        undone::patch(self.name.clone(), self.action == FileAction::Delete)
    }
}

/// Finds out what has to happen to one file; nothing where it is as before the batch already. `is_taken_over` says whether
/// the batch moved another file to where this one was.
pub(super) fn file_undo(
    site: &mut UndoSite<'_>,
    index: usize,
    file: &PastFile,
    images: &Images,
    is_taken_over: bool,
) -> Result<Option<FileUndo>, Vec<Failure>> {
    let left_at = file.moved_to.as_deref().unwrap_or(&file.path);
    let (name, old_name) = (site.name(file, left_at), site.name(file, &file.path));
    let here = |failure: Failure| vec![failure.file(index, &name)];
    let in_its_place = || vec![in_its_place(&file.path).file(index, &old_name)];
    let (here_is, there_is) = match file.moved_to {
        Some(_) => (Claim::Leaves, Claim::Arrives),
        None => (Claim::Stays, Claim::Stays),
    };
    let mut found = site.find(index, file, left_at, here_is).map_err(here)?;
    if file.moved_to.is_some() {
        let there = site.find(index, file, &file.path, there_is);
        let there = there.map_err(|failure| vec![failure.file(index, &old_name)])?;
        let is_own = |bytes| [&images.before, &images.after].into_iter().flatten().any(|own| own == bytes);
        let is = |original: &Original, image: &Option<Vec<u8>>| image.as_ref() == Some(&original.bytes);
        match (&found.original, &there.original) {
            // Another process has moved the files back.
            (Some(now), Some(back)) if is_taken_over && is(back, &images.before) && !is(now, &images.after) => {
                found = there
            }
            (Some(_), Some(_)) if is_taken_over => found.other = Some(Box::new(there)),
            (None, _) if is_taken_over => return Err(here(site.gone(file, left_at))),
            (Some(_), Some(_)) => return Err(in_its_place()),
            // Somebody has moved it back by hand.
            (None, Some(back)) if is_own(&back.bytes) => found = there,
            (None, _) => return Err(here(site.gone(file, left_at))),
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
        (None, Some(_), None) => match site.taken_by(file, left_at) {
            Some((_, Some(_))) => return Err(here(site.gone(file, left_at))),
            _ => return Ok(None),
        },
        (None, None, _) => return Ok(None),
        (Some(_), Some(_), None) => return Err(here(site.gone(file, left_at))),
    };
    Ok(Some(FileUndo { name, found, action }))
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).chars().take(200).collect()
}

fn clashed(clash: &Clash) -> Failure {
    let (start_line, end_line) = clash.now;
    let message = format!("later edits stand where the batch left {:?}; now there is {:?}", clash.left, clash.text);
    let excerpt = Excerpt { start_line, end_line, text: clash.text.clone() };
    Failure { line: Some(start_line), nearest: vec![excerpt], ..Failure::new(Reason::ExpectedMismatch, message) }
        .hint("undo the batches that came later first, newest first, or edit these lines by hand")
}
