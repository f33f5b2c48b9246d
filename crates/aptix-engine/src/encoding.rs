//! New text in a file of another encoding: text beyond ASCII is written as UTF-8, and would be other characters there.

use alloc::format;

use aptix_model::batch::FileEdit;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use crate::content::is_whole;
use crate::file_plan::{FileAction, FilePlan};
use crate::text_edit::slice;
use crate::validate::ValidFile;

/// Refuses text beyond ASCII that is edited into a file that is not valid UTF-8. Characters that the file has as UTF-8
/// already may come again, and the bytes of a diff that states the file's id are those of the file.
///
/// # Errors
/// `NOT_TEXT` (`ENCODING`), with the first line of the file that is not UTF-8.
pub(crate) fn check(file: &ValidFile<'_>, plan: &FilePlan<'_>) -> Result<(), Failure> {
    let FileAction::Edit(edit) = &plan.action else { return Ok(()) };
    if edit.replacements().all(|(_, new)| new.is_ascii()) {
        return Ok(());
    }
    let base = plan.base().unwrap_or_default();
    let Err(error) = core::str::from_utf8(base) else { return Ok(()) };
    let (is_diff, is_of_file) = match &file.patch.edit {
        FileEdit::GitPatch(patch) => (true, patch.base_id.is_some()),
        _ => (false, false),
    };
    let foreign = |new: &[u8]| match core::str::from_utf8(new) {
        Ok(text) => text.split(|character: char| character.is_ascii()).any(|run| !stands(base, run)),
        // Bytes of a diff that are no UTF-8 are in the file's own encoding.
        Err(_) => !is_diff,
    };
    if is_of_file || is_whole(plan, base) || !edit.replacements().any(|(_, new)| foreign(new)) {
        return Ok(());
    }
    let line = memchr::memchr_iter(b'\n', slice(base, 0..error.valid_up_to())).count() + 1;
    let message = format!(
        "line {line} of the file is not valid UTF-8, and the new text has characters beyond ASCII that are not in the file; \
         written as UTF-8 they would be other characters in the file's own encoding"
    );
    let hint = "write the new text in ASCII, or replace the whole file";
    Err(Failure::new(Reason::NotText, message).detail(Detail::Encoding).hint(hint).line(line))
}

fn stands(base: &[u8], run: &str) -> bool {
    memchr::memmem::find(base, run.as_bytes()).is_some()
}
