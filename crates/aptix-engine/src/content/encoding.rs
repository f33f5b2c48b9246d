//! New text in a file of another encoding: text beyond ASCII is written as UTF-8, and would be other characters there.

use alloc::collections::BTreeSet;
use alloc::format;

use aptix_model::batch::FileEdit;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::scan::is_whole;
use crate::file_plan::{FileAction, FilePlan};
use crate::git_id;
use crate::text::edit::slice;

/// Refuses text beyond ASCII that is edited into a file that is not valid UTF-8. Characters that the file has as UTF-8
/// already may occur again, and the text of a diff that states the file's id is that of the file.
///
/// # Errors
/// `NOT_TEXT` (`ENCODING`), with the first line of the file that is not UTF-8.
pub(crate) fn check(author: &FileEdit, plan: &FilePlan<'_>) -> Result<(), Failure> {
    let FileAction::Edit(edit) = &plan.action else { return Ok(()) };
    if edit.is_ascii() {
        return Ok(());
    }
    let base = plan.base().unwrap_or_default();
    let Err(error) = core::str::from_utf8(base) else { return Ok(()) };
    let parts = match author {
        FileEdit::GitPatch(patch) => core::slice::from_ref(patch),
        FileEdit::GitSeries(parts) => parts,
        _ => &[],
    };
    let mut known = None;
    let mut is_known = |character| known.get_or_insert_with(|| characters(base)).contains(&character);
    let mut is_foreign = |new: &[u8]| match core::str::from_utf8(new) {
        Ok(text) => text.chars().any(|character| !character.is_ascii() && !is_known(character)),
        // Bytes of a diff that are no UTF-8 are in the file's own encoding.
        Err(_) => parts.is_empty(),
    };
    if is_whole(plan, base) || !edit.replacements().any(|(_, new)| is_foreign(new)) {
        return Ok(());
    }
    if parts.first().is_some_and(|part| git_id::names_base(part, base)) {
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

/// The characters beyond ASCII that a file has as UTF-8.
fn characters(base: &[u8]) -> BTreeSet<char> {
    base.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).filter(|character| !character.is_ascii()).collect()
}
