//! The content of a whole file: its size, its characters, and the format that it is declared to be in.

use aptix_model::batch::{Content, CreateFile, Presence, VERBATIM, WriteFile};

use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::shown;
use crate::target::Base;

/// Checks a file that is created, and says what may be in its place.
pub(crate) fn check_created(create: &CreateFile, site: &mut Site<'_, '_>) -> Base {
    check_content(&create.content, site);
    check_format(create.content_format.as_deref(), site);
    if create.overwrite { Base::Any } else { Base::MustNotExist }
}

/// Checks a file that is written, and says what may be in its place.
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
