//! Lists the files below a directory, page by page, without those that the caller is not shown.

use std::mem::take;
use std::ops::ControlFlow;

use aptix_model::failure::Failure;
use aptix_model::live::{FileInfo, FilePage, ListFiles, SkipCause, Skipped};
use aptix_model::path::WorkspacePath;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;

use super::scope::{self, Scope, scopes};
use super::{IsOver, over};
use crate::policy::Policy;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::workspace::read::walk::{Closed, File, Kind, Met, Visit, Way, walk};
use crate::workspace::roots::workspace::Workspace;

/// Files of a page unless the caller asks for more.
const USUAL_FILES: usize = 50;
/// Most files of a page.
const MOST_FILES: usize = 1_000;
/// Bytes of paths that a page holds.
const TEXT_BYTES: usize = 1 << 20;
/// What the tokens of these pages begin with, so that they are no other lists'.
const TOKEN: &str = "disk:";

/// Lists a page.
///
/// # Errors
/// There is no such directory, the caller is not shown it, the token is no token of such a list, or the caller does not wait
/// any more.
pub fn list(
    workspace: &Workspace,
    policy: &Policy,
    call: &ListFiles,
    is_over: IsOver<'_>,
) -> Result<FilePage, Failure> {
    let mut disclosure = Disclosure::new(workspace, policy);
    let scopes = scopes(workspace, call.directory.as_ref(), &mut disclosure)?;
    let after = after(call)?;
    let behind = |scope: &Scope<'_>| after.map(|after| scope.within(after));
    // A root whose files all came before is passed over.
    let first = scopes.iter().position(|scope| behind(scope) != Some(None)).unwrap_or(scopes.len());
    let size = if call.page_size == 0 { USUAL_FILES } else { call.page_size.min(MOST_FILES) };
    let (page, skipped) = (FilePage::default(), Skipped::default());
    let mut lister = Lister { disclosure, is_over, scope: None, page, skipped, size, room: TEXT_BYTES, failure: None };
    for scope in scopes.iter().skip(first) {
        lister.scope = Some(*scope);
        let way = Way { root: scope.root, path: scope.path, after: behind(scope).flatten() };
        walk(way, &mut lister).map_err(|error| scope::failure(&error))?;
        if let Some(failure) = lister.failure {
            return Err(failure);
        }
        if !lister.page.next_page_token.is_empty() {
            return Ok(lister.page);
        }
    }
    lister.page.skipped.append(lister.skipped);
    Ok(lister.page)
}

/// The path of the last file of the page before.
fn after(call: &ListFiles) -> Result<Option<&str>, Failure> {
    if call.page_token.is_empty() {
        return Ok(None);
    }
    let is_below = |path: &str| {
        let directory = call.directory.as_ref().map_or("", WorkspacePath::as_str);
        directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    };
    let path = call.page_token.strip_prefix(TOKEN).filter(|path| is_below(path));
    path.map(Some).ok_or_else(|| {
        Failure::new(Reason::InvalidRequest, "the page token is not one of a list of this directory on disk")
            .field("pageToken")
            .hint("send nextPageToken as it came, with the same directory, or leave it out for the first page")
    })
}

/// A page that is being filled.
struct Lister<'a> {
    disclosure: Disclosure<'a>,
    is_over: IsOver<'a>,
    scope: Option<Scope<'a>>,
    page: FilePage,
    /// What was left out since the last file of the page: the next page begins there, and counts it again.
    skipped: Skipped,
    size: usize,
    /// How many more bytes of paths fit.
    room: usize,
    /// Why it was given up.
    failure: Option<Failure>,
}

impl Visit for Lister<'_> {
    fn may_look(&mut self, path: &str, kind: Kind) -> Result<(), Closed> {
        let index = self.scope.map_or(0, |scope| scope.index);
        self.disclosure.may_be_searched(index, path, kind)
    }

    fn see(&mut self, met: &Met<'_>) -> ControlFlow<()> {
        let Met::File(file) = met else {
            self.failure = (self.is_over)().then(over);
            return if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        };
        let is_file = self.scope.is_some_and(|scope| scope.is_file(file));
        self.failure = if is_file { Some(scope::no_directory(&file.path)) } else { (self.is_over)().then(over) };
        if self.failure.is_some() {
            return ControlFlow::Break(());
        }
        let Some(info) = self.info(file) else { return ControlFlow::Continue(()) };
        let text = info.path.len() + info.doc_path.len();
        match (self.page.files.last(), self.room.checked_sub(text)) {
            (Some(last), None) => self.page.next_page_token = format!("{TOKEN}{}", last.path),
            (Some(last), Some(_)) if self.page.files.len() >= self.size => {
                self.page.next_page_token = format!("{TOKEN}{}", last.path);
            }
            (_, left) => {
                self.room = left.unwrap_or_default();
                self.page.files.push(info);
                self.page.skipped.append(take(&mut self.skipped));
                return ControlFlow::Continue(());
            }
        }
        ControlFlow::Break(())
    }

    fn skip(&mut self, cause: SkipCause, path: Option<&str>) {
        self.skipped.note(cause, self.scope.zip(path).and_then(|(scope, path)| scope.nameable(path)));
    }
}

impl Lister<'_> {
    /// What a file is, if the caller is shown it.
    fn info(&mut self, file: &File<'_>) -> Option<FileInfo> {
        let scope = self.scope?;
        // A name that no path can have is none that could be read.
        if scope.nameable(&file.path).is_none() {
            self.skipped.note(SkipCause::BadName, None);
            return None;
        }
        let opened = file.open().ok().flatten();
        let Some((opened, head)) =
            opened.and_then(|opened| opened.head(KEY_HEAD_BYTES).ok().map(|head| (opened, head)))
        else {
            self.skipped.note(SkipCause::Unreadable, None);
            return None;
        };
        let inside = Inside { names: opened.names(), head: &head };
        if self.disclosure.withheld_at(scope.index, &file.path, inside).is_some() {
            return None;
        }
        let (path, doc_path) = scope.names(&file.path);
        let (size_bytes, is_executable) = (opened.size(), opened.is_executable());
        Some(FileInfo { path, doc_path, size_bytes, is_executable, is_unsaved: false, text: None })
    }
}
