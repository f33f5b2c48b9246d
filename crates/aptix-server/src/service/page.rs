//! Page sizes and page tokens. A token names the last entry of the page before, its list, and the history.

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::path::RootedPath;
use aptix_model::reason::{Detail, Reason};

use crate::dispatcher::read::Page;

const DEFAULT_SIZE: usize = 50;
const LARGEST_SIZE: usize = 1000;

/// How many entries a page has at most; a size above the limit is lowered to it.
pub(super) fn size(asked: i32) -> Result<usize, Failure> {
    match usize::try_from(asked) {
        Ok(0) => Ok(DEFAULT_SIZE),
        Ok(size) => Ok(size.min(LARGEST_SIZE)),
        Err(_) => Err(refused("pageSize", format!("a page has at least 1 entry, {asked} were asked for"))),
    }
}

/// The token after a batch, and the position among the events there.
pub(super) fn after_batch(revision: Revision, cursor: Option<Cursor>) -> String {
    format!("b{revision}{}", suffix(cursor))
}

/// The batch that a token names; none for the first page.
pub(super) fn batch(token: &str) -> Result<Page<Revision>, Failure> {
    parse(token, 'b', |entry| entry.parse().ok().map(Revision).filter(|revision| revision.to_string() == entry))
}

/// The token after a file, and the position among the events when it was read.
pub(super) fn after_file(path: &RootedPath, cursor: Option<Cursor>) -> String {
    format!("f{path}{}", suffix(cursor))
}

/// The file that a token names; none for the first page.
pub(super) fn file(token: &str) -> Result<Page<RootedPath>, Failure> {
    parse(token, 'f', |entry| RootedPath::new(entry).ok())
}

/// The token after a workspace.
pub(super) fn after_workspace(workspace: &WorkspaceId) -> String {
    format!("w{workspace}")
}

/// The workspace that a token names; none for the first page. Workspaces are of every history.
pub(super) fn workspace(token: &str) -> Result<Option<WorkspaceId>, Failure> {
    parse(token, 'w', |entry| entry.parse().ok()).map(|page| page.after)
}

/// A cursor at the end of a token. No path has a line feed.
fn suffix(cursor: Option<Cursor>) -> String {
    cursor.map_or_else(String::new, |Cursor { history, revision, digest }| format!("\n{history}.{revision}.{digest}"))
}

fn parse<T>(token: &str, list: char, entry: impl FnOnce(&str) -> Option<T>) -> Result<Page<T>, Failure> {
    if token.is_empty() {
        return Ok(Page { after: None, cursor: None });
    }
    let parsed = || {
        let token = token.strip_prefix(list)?;
        let Some((after, cursor)) = token.split_once('\n') else {
            return Some(Page { after: Some(entry(token)?), cursor: None });
        };
        Some(Page { cursor: Some(parse_cursor(cursor)?), after: Some(entry(after)?) })
    };
    parsed().ok_or_else(foreign)
}

fn parse_cursor(text: &str) -> Option<Cursor> {
    let mut words = text.splitn(3, '.');
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
