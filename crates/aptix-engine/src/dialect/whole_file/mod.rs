//! A whole file: created, written or deleted (TUL-004, FILE-SPEC 1).

use alloc::format;

use aptix_model::batch::{Content, CreateFile, Presence, VERBATIM, WriteFile};
use aptix_model::failure::Failure;

use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect_of_caller};
use crate::planning::draft::{finish, plan_whole};
use crate::planning::observed::Observed;
use crate::planning::presence::check_deleted;
use crate::shown;
use crate::target::Base;
use crate::text::whole_text::Formed;

/// Checks a file that is created, and returns what may be in its place.
pub(crate) fn check_created(create: &CreateFile, site: &mut Site<'_, '_>) -> Base {
    check_content(&create.content, site);
    check_format(create.content_format.as_deref(), site);
    if create.overwrite { Base::Any } else { Base::MustNotExist }
}

/// Checks a file that is written, and returns what may be in its place.
pub(crate) fn check_written(write: &WriteFile, site: &mut Site<'_, '_>) -> Base {
    check_content(&write.content, site);
    check_format(write.content_format.as_deref(), site);
    match write.presence {
        Presence::Absent => Base::MustNotExist,
        Presence::Present => Base::MustExist,
        Presence::Either => Base::Any,
    }
}

fn check_content(content: &Content, site: &mut Site<'_, '_>) {
    let (found, has_nul) = match content {
        Content::Text(text) => (text.len() as u64, memchr::memchr(0, text.as_bytes()).is_some()),
        Content::Blob(blob) => (blob.size_bytes, false),
    };
    let limit = site.limits.created_bytes;
    if found > limit {
        site.report("content", || Violation::Content { found, limit });
    } else if has_nul {
        site.report("content", || Violation::Nul);
    }
}

fn check_format(format: Option<&str>, site: &mut Site<'_, '_>) {
    if let Some(found) = format.filter(|format| *format != VERBATIM) {
        let found = shown::cut(found.as_bytes(), 40).into_owned();
        site.report("contentFormat", || Violation::ContentFormat { found });
    }
}

/// Plans a file whose content is given, once `form` has converted it to the form for the file at its path.
pub(crate) fn write<'a>(
    base: Base,
    content: &'a Content,
    form: impl FnOnce(&'a str, Option<&[u8]>) -> Formed<'a>,
    is_blind: bool,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    let seen = observed.content.filter(|_| !is_blind);
    plan_whole(base, form(text_of(content)?, seen), observed)
}

/// Plans a file that is deleted.
pub(crate) fn delete<'a>(precondition: Base, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Failure> {
    let original = check_deleted(precondition, observed)?;
    Ok(finish(observed, original, FileAction::Delete.into()))
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
