//! Lists the files below a directory, or the children of a directory, page by page, without what the caller is not shown.

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

/// A page of the children of a directory, in order of their names.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// Its directories in which there is a file, at any depth, that the caller is shown; its roots, where it is the workspace.
    pub(crate) directories: Vec<String>,
    /// Its files.
    pub(crate) files: FilePage,
}

/// Lists a page of the files below a directory.
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
    page(workspace, policy, call, None, is_over).map(|children| children.files)
}

/// Lists a page of the children of a directory.
///
/// # Errors
/// As of [`list`].
pub(crate) fn list_children(
    workspace: &Workspace,
    policy: &Policy,
    call: &ListFiles,
    is_over: IsOver<'_>,
) -> Result<Children, Failure> {
    let base = call.directory.as_ref().map_or(0, |directory| directory.as_str().len() + 1);
    page(workspace, policy, call, Some(base), is_over)
}

/// Lists a page: of children, if it is given where their names begin in their paths.
fn page(
    workspace: &Workspace,
    policy: &Policy,
    call: &ListFiles,
    base: Option<usize>,
    is_over: IsOver<'_>,
) -> Result<Children, Failure> {
    let mut disclosure = Disclosure::new(workspace, policy);
    let scopes = scopes(workspace, call.directory.as_ref(), &mut disclosure)?;
    let after = after(call)?;
    let behind = |scope: &Scope<'_>| after.map(|after| scope.within(after));
    let lists_roots = base == Some(0) && workspace.roots().len() > 1;
    // A root whose files all came before is passed over.
    let is_past = |scope: &Scope<'_>| match lists_roots {
        true => after.is_some_and(|after| scope.root.name() <= after),
        false => behind(scope) == Some(None),
    };
    let first = scopes.iter().position(|scope| !is_past(scope)).unwrap_or(scopes.len());
    let size = if call.page_size == 0 { USUAL_FILES } else { call.page_size.min(MOST_FILES) };
    let mut lister = Lister::new(disclosure, base, size, is_over);
    for scope in scopes.iter().skip(first) {
        lister.scope = Some(*scope);
        let way = Way { root: scope.root, path: scope.path, after: behind(scope).flatten() };
        walk(way, &mut lister).map_err(|error| scope::failure(&error))?;
        if let Some(failure) = lister.failure {
            return Err(failure);
        }
        if !lister.page.files.next_page_token.is_empty() {
            return Ok(lister.page);
        }
    }
    lister.page.files.skipped.append(lister.skipped);
    Ok(lister.page)
}

/// The path of the last file or directory of the page before.
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
    /// Where the names of children begin in their paths, if they alone are listed.
    base: Option<usize>,
    page: Children,
    /// The last path of the page.
    last: Option<String>,
    /// Whether it is that of a directory in which the walk still is.
    is_inside: bool,
    /// What was left out since the last path of the page: the next page begins there, and counts it again.
    skipped: Skipped,
    /// How many more paths fit.
    left: usize,
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
        match self.child(&info.path).map(str::to_owned) {
            None => {
                self.reserve(&info.path, info.path.len() + info.doc_path.len())?;
                self.page.files.files.push(info);
            }
            Some(directory) => {
                self.reserve(&directory, directory.len())?;
                // A root is left by the end of its walk.
                let is_root = self.scope.is_some_and(|scope| scope.within(&directory).is_none());
                self.page.directories.push(directory);
                if is_root {
                    return ControlFlow::Break(());
                }
                self.is_inside = true;
            }
        }
        ControlFlow::Continue(())
    }

    fn leaves(&mut self) -> bool {
        take(&mut self.is_inside)
    }

    fn skip(&mut self, cause: SkipCause, path: Option<&str>) {
        self.skipped.note(cause, self.scope.zip(path).and_then(|(scope, path)| scope.nameable(path)));
    }
}

impl<'a> Lister<'a> {
    fn new(disclosure: Disclosure<'a>, base: Option<usize>, size: usize, is_over: IsOver<'a>) -> Self {
        Self {
            disclosure,
            is_over,
            scope: None,
            base,
            page: Children::default(),
            last: None,
            is_inside: false,
            skipped: Skipped::default(),
            left: size,
            room: TEXT_BYTES,
            failure: None,
        }
    }

    /// The child directory that a file is in; `None` if it is a child itself, or children are not asked for.
    fn child<'p>(&self, path: &'p str) -> Option<&'p str> {
        let base = self.base?;
        let name = path.get(base..)?.find('/')?;
        path.get(..base + name)
    }

    /// Makes room for a path, or ends the page. A page has one path at least.
    fn reserve(&mut self, path: &str, bytes: usize) -> ControlFlow<()> {
        let room = self.room.checked_sub(bytes);
        if let Some(last) = &self.last
            && (room.is_none() || self.left == 0)
        {
            self.page.files.next_page_token = format!("{TOKEN}{last}");
            return ControlFlow::Break(());
        }
        self.room = room.unwrap_or_default();
        self.left = self.left.saturating_sub(1);
        self.last = Some(path.to_owned());
        self.page.files.skipped.append(take(&mut self.skipped));
        ControlFlow::Continue(())
    }

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
