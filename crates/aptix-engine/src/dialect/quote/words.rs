//! How messages name a block, and what they advise.

use alloc::format;
use alloc::string::String;

use aptix_model::failure::Failure;
use aptix_model::quote::Quote;

use crate::shown::{self, quoted_path};

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
