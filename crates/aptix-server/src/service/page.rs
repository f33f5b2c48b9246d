//! Page sizes and page tokens. A token names the last entry of the page before, its list with the filter, and the history.

use aptix_model::cursor::Cursor;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::path::RootedPath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::v1;
use prost::Message as _;
use sha2::{Digest as _, Sha256};

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

/// The token after a batch, the filter of its list, and the position among the events there.
pub(super) fn after_batch(revision: Revision, filter: Option<&FilterMark>, cursor: Option<Cursor>) -> String {
    let filter = filter.map_or_else(String::new, |FilterMark(mark)| format!("~{mark}"));
    format!("b{revision}{filter}{}", suffix(cursor))
}

/// The batch that a token names; none for the first page. The token must be of a list with this filter.
pub(super) fn batch(token: &str, filter: Option<&FilterMark>) -> Result<Page<Revision>, Failure> {
    let page = parse(token, 'b', |entry| {
        let (revision, mark) = entry.split_once('~').map_or((entry, None), |(revision, mark)| (revision, Some(mark)));
        let parsed = revision.parse().ok().map(Revision).filter(|parsed| parsed.to_string() == revision)?;
        Some((parsed, mark.map(|mark| FilterMark(mark.to_owned()))))
    })?;
    if page.after.as_ref().is_some_and(|(_, mark)| mark.as_ref() != filter) {
        let message = "the page token is of a list with another filter".to_owned();
        return Err(refused("pageToken", message).hint("send the filter of the first page, or leave the token out"));
    }
    Ok(Page { after: page.after.map(|(revision, _)| revision), cursor: page.cursor })
}

/// Tells the filters of lists apart, in their tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FilterMark(String);

impl FilterMark {
    /// The mark of a filter; `None` for one that everything fits.
    pub(super) fn of(filter: &v1::BatchFilter) -> Option<Self> {
        let bytes = filter.encode_to_vec();
        let digest = Sha256Digest::from_bytes(Sha256::digest(&bytes).into());
        (!bytes.is_empty()).then(|| Self(digest.to_string()))
    }
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
