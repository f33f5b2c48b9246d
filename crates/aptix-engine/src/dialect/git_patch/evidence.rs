//! What the ids of an index line prove: that the file is the one that the diff was made from, and that the result is the
//! one that it makes.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use aptix_model::batch::GitPatch;
use aptix_model::failure::Failure;
use aptix_model::hunk_counts::UNTERMINATED_HINT;
use aptix_model::reason::Reason;
use aptix_model::report::Warning;

use super::{counts, refusal};
use crate::digest::Original;
use crate::findings::warning;
use crate::git_id;

/// What the id of a diff says of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Evidence {
    /// It states none.
    Absent,
    /// The file is the one that the diff was made from.
    Fits,
    /// It is abbreviated, and the file is another one.
    Differs,
}

impl Evidence {
    pub(super) fn warning(self, patch: &GitPatch) -> Option<Warning> {
        let id = patch.base_id.as_deref().filter(|_| self == Self::Differs)?;
        let message = format!("the index line says that the diff was made from blob {id}, and the file is another one");
        Some(warning("INDEX_DIFFERS", message))
    }
}

/// Holds the id of a diff against the file.
///
/// # Errors
/// When it is a full one of another file, or that of an empty file and this one has text.
pub(super) fn check_id(patch: &GitPatch, original: &Original<'_>) -> Result<Evidence, Failure> {
    let Some(id) = &patch.base_id else { return Ok(Evidence::Absent) };
    if git_id::is_of(id, original.bytes) {
        Ok(Evidence::Fits)
    } else if git_id::is_full(id) {
        Err(refusal::other_blob(id, original))
    } else if git_id::is_of(id, &[]) {
        Err(refusal::not_empty(id, original))
    } else {
        Ok(Evidence::Differs)
    }
}

/// Compares what a diff makes with the new id of its index line, where that decides something: it alone proves that a diff
/// without a last line feed is whole, and it shows damage to a diff that was made from exactly this file.
///
/// # Errors
/// When the diff may lack the end of its last line.
pub(super) fn check(
    patch: &GitPatch,
    evidence: Evidence,
    result: impl FnOnce() -> Vec<u8>,
) -> Result<Option<Warning>, Failure> {
    let open = patch.hunks.iter().position(counts::ends_openly);
    let Some(id) = patch.result_id.as_deref() else {
        return open.map_or(Ok(None), |index| Err(unproven(patch).change(index)));
    };
    let is_full = evidence == Evidence::Fits && patch.base_id.as_deref().is_some_and(git_id::is_full);
    let is_exact = is_full && patch.hunks.iter().all(counts::are_right);
    if open.is_none() && !is_exact {
        return Ok(None);
    }
    let fits = git_id::is_of(id, &result());
    match open {
        Some(_) if fits => Ok(Some(warning(
            "DIFF_UNTERMINATED",
            format!("the diff ends without a line feed; it is whole, for it makes blob {id} of the index line"),
        ))),
        Some(index) => Err(unproven(patch).change(index)),
        None if fits => Ok(None),
        None => Ok(Some(warning(
            "INDEX_DIFFERS",
            format!(
                "the diff was made from this file, and makes another blob of it than {id}, which the index line names: \
                 check that no part of the diff is missing"
            ),
        ))),
    }
}

/// A diff that ends in an added line without a line feed, which no id proves to be whole.
pub(crate) fn unproven(patch: &GitPatch) -> Failure {
    let id = patch.result_id.as_deref().map_or_else(
        || "no id of the result proves that the line is whole".to_string(),
        |id| format!("the result is not blob {id}, which the index line names"),
    );
    let message = format!("the diff ends in an added line without a line feed, and {id}");
    Failure::new(Reason::PatchTruncated, message).hint(UNTERMINATED_HINT)
}
