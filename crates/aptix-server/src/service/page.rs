//! Page sizes and page tokens. A token says where the page before ended, of what list it is, and of which history.

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::path::RootedPath;
use aptix_model::reason::{Detail, Reason};

use crate::dispatcher::read::Page;

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

/// The token after a batch, and where the events stood there.
pub(super) fn after_batch(revision: Revision, cursor: Option<Cursor>) -> String {
    format!("b{revision}{}", bound(cursor))
}

/// The batch that a token stands after; none for the first page.
pub(super) fn batch(token: &str) -> Result<Page<Revision>, Failure> {
    if token.is_empty() {
        return Ok(Page { after: None, cursor: None });
    }
    let (place, cursor) = unbound(token.strip_prefix('b').ok_or_else(foreign)?)?;
    let revision = place.parse().ok().map(Revision).filter(|revision| revision.to_string() == place);
    Ok(Page { after: Some(revision.ok_or_else(foreign)?), cursor })
}

/// The token after a file, and where the events stood when it was read.
pub(super) fn after_file(path: &RootedPath, cursor: Option<Cursor>) -> String {
    format!("f{path}{}", bound(cursor))
}

/// The file that a token stands after; none for the first page.
pub(super) fn file(token: &str) -> Result<Page<RootedPath>, Failure> {
    if token.is_empty() {
        return Ok(Page { after: None, cursor: None });
    }
    let (place, cursor) = unbound(token.strip_prefix('f').ok_or_else(foreign)?)?;
    Ok(Page { after: Some(RootedPath::new(place).map_err(|_| foreign())?), cursor })
}

/// A cursor at the end of a token. No path has a line feed.
fn bound(cursor: Option<Cursor>) -> String {
    cursor.map_or_else(String::new, |Cursor { history, revision, digest }| format!("\n{history}.{revision}.{digest}"))
}

fn unbound(token: &str) -> Result<(&str, Option<Cursor>), Failure> {
    let Some((place, bound)) = token.split_once('\n') else { return Ok((token, None)) };
    let cursor = read_cursor(bound).ok_or_else(foreign)?;
    Ok((place, Some(cursor)))
}

fn read_cursor(bound: &str) -> Option<Cursor> {
    let mut words = bound.splitn(3, '.');
    let history = words.next()?.parse().ok()?;
    let revision = Revision(words.next()?.parse().ok()?);
    Some(Cursor { history, revision, digest: words.next()?.parse().ok()? })
}

fn foreign() -> Failure {
    refused("pageToken", "the page token is not one that this list gave".to_owned()).hint("leave it out to begin anew")
}

fn refused(field: &str, message: String) -> Failure {
    Failure::new(Reason::InvalidRequest, message).detail(Detail::Page).field(field)
}
