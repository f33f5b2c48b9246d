//! Whether a diff makes the file that its index line names, as far as the line says so.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use aptix_model::batch::GitPatch;
use aptix_model::failure::Failure;
use aptix_model::hunk_counts::UNTERMINATED_HINT;
use aptix_model::reason::Reason;
use aptix_model::report::Warning;

use super::{Evidence, blob, counts};

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
    let is_full = evidence == Evidence::Fits && patch.base_id.as_deref().is_some_and(blob::is_full);
    let is_exact = is_full && patch.hunks.iter().all(counts::are_right);
    if open.is_none() && !is_exact {
        return Ok(None);
    }
    let fits = blob::is_of(id, &result());
    match open {
        Some(_) if fits => Ok(Some(Warning {
            code: "DIFF_UNTERMINATED".to_string(),
            message: format!(
                "the diff ends without a line feed; it is whole, for it makes blob {id} of the index line"
            ),
            line: None,
        })),
        Some(index) => Err(unproven(patch).change(index)),
        None if fits => Ok(None),
        None => Ok(Some(Warning {
            code: "INDEX_DIFFERS".to_string(),
            message: format!(
                "the diff was made from this file, and makes another blob of it than {id}, which the index line names: \
                 check that no part of the diff is missing"
            ),
            line: None,
        })),
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
