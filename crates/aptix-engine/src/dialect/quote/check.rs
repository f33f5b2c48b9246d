//! A quote checked without its file: its lines, its size, and which of its names can be paths.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::limits::INLINE_BYTES;
use aptix_model::path::WorkspacePath;
use aptix_model::protection;
use aptix_model::quote::{Quote, QuoteName};
use aptix_model::reason::{Detail, Reason};

use crate::shown::{self, quoted_path};
use crate::target::ValidTarget;

/// Most names of one block.
pub(crate) const NAMES: usize = 100;

/// A quote in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct ValidQuote<'a> {
    /// The quote as its author wrote it.
    pub quote: &'a Quote,
    /// Those of its names that can be paths.
    pub names: Vec<ValidName<'a>>,
}

/// A name that can be a path.
#[derive(Clone, Debug)]
pub struct ValidName<'a> {
    /// The name as its author wrote it.
    pub name: &'a QuoteName,
    /// Which file it would be.
    pub target: ValidTarget,
}

/// Checks a quote against everything that needs no file.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(quote: &Quote) -> Result<ValidQuote<'_>, Failure> {
    let invalid = |detail, message: String| {
        let hint = "leave the block out of the answer";
        Failure::new(Reason::InvalidRequest, format!("{} {message}", place(quote))).detail(detail).hint(hint)
    };
    if quote.first_line == 0 || quote.last_line < quote.first_line {
        return Err(invalid(Detail::Zero, "has impossible lines, expected the first from 1 and the last below".into()));
    }
    if quote.names.is_empty() || quote.names.len() > NAMES {
        return Err(invalid(Detail::Text, format!("has {} names, expected 1 to {NAMES}", quote.names.len())));
    }
    if quote.text.len() > INLINE_BYTES {
        let message = format!("{} has {} bytes, expected at most {INLINE_BYTES}", place(quote), quote.text.len());
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Text)
            .hint("leave the block out of the answer"));
    }
    let mut names = Vec::new();
    for name in &quote.names {
        match WorkspacePath::new(&name.path) {
            Ok(path) => match protection::of(&name.path) {
                None => names.push(ValidName { name, target: ValidTarget::Path(path) }),
                Some(protection) if name.is_path => {
                    let message = format!("{}: {protection}", named(quote, &name.path));
                    let failure = Failure::new(Reason::PolicyDenied, message).detail(protection.detail());
                    return Err(about(&name.path, failure).hint(HINT));
                }
                Some(_) => {}
            },
            Err(error) if name.is_path => {
                let message = format!("{}, and that is no path of the workspace: {error}", named(quote, &name.path));
                let failure = Failure::new(Reason::InvalidPath, message).detail(error.detail());
                return Err(about(&name.path, failure).hint(HINT));
            }
            // A word that no path can be.
            Err(_) => {}
        }
    }
    Ok(ValidQuote { quote, names })
}

/// What to do about a block that is named for a file.
pub(super) const HINT: &str = "send a whole file in a file bundle, and a part of one between SEARCH and REPLACE markers or as a diff; \
                    leave the block out if it only shows code";

/// A failure of the file at this path.
pub(super) fn about(path: &str, failure: Failure) -> Failure {
    Failure { path: Some(shown::path(path).into_owned()), ..failure }
}

/// The block, and the path that it is named for.
pub(super) fn named(quote: &Quote, path: &str) -> String {
    let by = if quote.is_announced { "announced" } else { "named" };
    format!("{} is {by} for {}", place(quote), quoted_path(path))
}

/// The block by its lines.
pub(super) fn place(quote: &Quote) -> String {
    format!("the block at lines {} to {} of the answer", quote.first_line, quote.last_line)
}
