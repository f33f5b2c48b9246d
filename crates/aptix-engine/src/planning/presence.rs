//! What there is of a file, held to what an edit needs: whether it may or must be there, and be text.

use alloc::format;
use alloc::string::ToString;

use aptix_model::failure::{Failure, REPLACE_HINT};
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};

use crate::digest::Original;
use crate::planning::observed::Observed;
use crate::target::Base;
use crate::text::lines::{NotText, Text, UTF_32_BE};

/// What there is of a file, held to whether it may, or must, be there.
pub(crate) fn check_presence<'a>(precondition: Base, observed: &Observed<'a>) -> Result<Option<Original<'a>>, Failure> {
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    match (precondition, original) {
        (Base::MustNotExist, Some(original)) => {
            Err(Failure::new(Reason::FileExists, "the file is to be created, and it already exists")
                .current(original.digest(0))
                .hint(REPLACE_HINT))
        }
        (Base::MustExist | Base::MustMatch(_), None) => {
            Err(absent("edited").hint("check the path, or create the file instead"))
        }
        (_, original) => Ok(original),
    }
}

/// A failure with the digest that a file has now, if there is one.
pub(crate) fn with_current(failure: Failure, original: Option<&Original<'_>>) -> Failure {
    original.map(|original| original.digest(0)).into_iter().fold(failure, Failure::current)
}

/// A file that is not there, and what was to be done with it.
pub(crate) fn absent(purpose: &str) -> Failure {
    Failure::new(Reason::FileMissing, format!("the file is to be {purpose}, and there is none")).hint("check the path")
}

/// What there is of a file to delete.
pub(crate) fn check_deleted<'a>(base: Base, observed: &Observed<'a>) -> Result<Option<Original<'a>>, Failure> {
    match observed.content {
        None if base != Base::Any => {
            Err(absent("deleted").hint("check the path; if the file is gone already, leave it out of the batch"))
        }
        _ => check_presence(base, observed),
    }
}

pub(crate) fn read_text<'a>(original: &Original<'a>, limits: &Limits) -> Result<Text<'a>, Failure> {
    let bytes = original.bytes;
    let (found, limit) = (bytes.len() as u64, limits.file_bytes);
    if found > limit {
        let message = format!("a file to be edited has at most {limit} bytes, this has {found}");
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::File)
            .current(original.digest(0))
            .hint("leave this file out of the batch; the limit can only be raised where the batch is applied"));
    }
    Text::new(bytes).map_err(|error| {
        let (detail, error) = match error {
            NotText::Nul(_) if bytes.starts_with(UTF_32_BE) => (Detail::Encoding, NotText::Encoding),
            NotText::Encoding => (Detail::Encoding, error),
            NotText::Nul(_) => (Detail::Binary, error),
        };
        Failure::new(Reason::NotText, error.to_string())
            .detail(detail)
            .current(original.digest(0))
            .hint("only text can be edited; leave this file out of the batch")
    })
}
