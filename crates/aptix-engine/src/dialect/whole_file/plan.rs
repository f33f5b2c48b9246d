//! What becomes of a file whose whole content is given, or that is deleted.

use alloc::format;
use alloc::vec::Vec;

use aptix_model::batch::Content;
use aptix_model::failure::Failure;

use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect_of_caller};
use crate::planning::draft::{Draft, finish, plan_whole};
use crate::planning::observed::Observed;
use crate::planning::presence::check_deleted;
use crate::target::Base;
use crate::text::whole_text;

/// Plans a file whose content is brought into the form in which files are created.
pub(crate) fn create<'a>(
    base: Base,
    content: &'a Content,
    is_blind: bool,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    plan_whole(base, whole_text::create(text_of(content)?, seen(is_blind, observed)), observed)
}

/// Plans a file whose content is written as it is given, in the form of the file in its place.
pub(crate) fn write<'a>(
    base: Base,
    content: &'a Content,
    is_blind: bool,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    plan_whole(base, whole_text::keep_form(text_of(content)?, seen(is_blind, observed)), observed)
}

/// Plans a file that is deleted.
pub(crate) fn delete<'a>(precondition: Base, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Failure> {
    let original = check_deleted(precondition, observed)?;
    let (normalized, warnings, changes) = (Vec::new(), Vec::new(), Vec::new());
    Ok(finish(observed, original, Draft { action: FileAction::Delete, normalized, warnings, changes }))
}

/// What a whole text may be brought into the form of.
fn seen<'o>(is_blind: bool, observed: &Observed<'o>) -> Option<&'o [u8]> {
    observed.content.filter(|_| !is_blind)
}

fn text_of(content: &Content) -> Result<&str, Failure> {
    match content {
        Content::Text(text) => Ok(text),
        Content::Blob(blob) => {
            let message = format!("the content is still blob {}, which has to be fetched before planning", blob.sha256);
            Err(defect_of_caller(message))
        }
    }
}
