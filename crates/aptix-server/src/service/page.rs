//! Page sizes and page tokens. A token says where the page before ended, and of what list it is.

use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::path::RootedPath;
use aptix_model::reason::{Detail, Reason};

const DEFAULT_SIZE: usize = 50;
const LARGEST_SIZE: usize = 1000;

/// How many entries a page has at most.
pub(super) fn size(asked: i32) -> Result<usize, Failure> {
    match usize::try_from(asked) {
        Ok(0) => Ok(DEFAULT_SIZE),
        Ok(size) if size <= LARGEST_SIZE => Ok(size),
        _ => Err(refused("pageSize", format!("a page has 1 to {LARGEST_SIZE} entries, {asked} were asked for"))),
    }
}

/// The token after a batch.
pub(super) fn after_batch(revision: Revision) -> String {
    format!("b{revision}")
}

/// The batch that a token stands after; `None` for the first page.
pub(super) fn batch(token: &str) -> Result<Option<Revision>, Failure> {
    if token.is_empty() {
        return Ok(None);
    }
    let revision = token.strip_prefix('b').and_then(|number| number.parse().ok()).map(Revision);
    revision.filter(|revision| after_batch(*revision) == token).map(Some).ok_or_else(foreign)
}

/// The token after a file.
pub(super) fn after_file(path: &RootedPath) -> String {
    format!("f{path}")
}

/// The file that a token stands after; `None` for the first page.
pub(super) fn file(token: &str) -> Result<Option<RootedPath>, Failure> {
    if token.is_empty() {
        return Ok(None);
    }
    let path = token.strip_prefix('f').and_then(|path| RootedPath::new(path).ok());
    path.map(Some).ok_or_else(foreign)
}

fn foreign() -> Failure {
    refused("pageToken", "the page token is not one that this list gave".to_owned()).hint("leave it out to begin anew")
}

fn refused(field: &str, message: String) -> Failure {
    Failure::new(Reason::InvalidRequest, message).detail(Detail::Page).field(field)
}
