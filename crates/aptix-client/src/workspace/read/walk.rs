//! Goes through the files of a root that git does not ignore, from directory to directory, each opened from the one
//! above it. No link is followed and no mount is entered; what is closed to every batch is passed over.
//!
//! Git's rules are those of `.gitignore` files in the root, of `.git/info/exclude` and of the user's own excludes. An ignored
//! file that is tracked nevertheless counts as ignored.
//!
//! The names of a directory come in order and [`TOGETHER`] at a time, so that memory is bounded in directories of any size.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_model::failure::Failure;
use aptix_model::live::SkipCause;
use aptix_model::protection::{self, Protection};
use aptix_model::reason::{Detail, Reason};
use ignore::gitignore::Gitignore;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::workspace::fs::{beneath, disk, errno};
use crate::workspace::read::ignored::{decision, within};
use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::place::join;
use crate::workspace::read::{git_dir, ignore_files};
use crate::workspace::roots::root::Root;

/// Directories within one another.
const DEPTH: usize = 64;
/// Bytes of a file of ignore rules.
const RULE_BYTES: u64 = 256 << 10;
/// Names of one directory that are held at a time.
const TOGETHER: usize = 16 << 10;

/// Why a path may not be looked at.
pub(crate) struct Closed {
    pub(crate) detail: Detail,
    pub(crate) why: String,
}

/// What a path in a root names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Directory,
}

/// Who goes through a root.
pub(crate) trait Visit {
    /// Whether the path of a file or directory in the root may be looked at.
    fn may_look(&mut self, path: &str, kind: Kind) -> Result<(), Closed>;
    /// Sees what is there, until it has seen enough.
    fn see(&mut self, met: &Met<'_>) -> ControlFlow<()>;
    /// Whether the file that was just seen is enough of the child it is in, of the directory that is gone through.
    fn leaves(&mut self) -> bool {
        false
    }
    /// Notes what is not shown, though it may be looked at: the directory at a path, or something in it whose name no path can
    /// have. The path is absent where its name may not be passed on.
    fn skip(&mut self, _cause: SkipCause, _path: Option<&str>) {}
}

/// Where to go through a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    /// The root.
    pub(crate) root: &'a Root,
    /// The path in it of the file or directory to go through; absent for the whole root.
    pub(crate) path: Option<&'a str>,
    /// The path in the root of the last file that was seen before; what is there and above it in the order is passed over.
    pub(crate) after: Option<&'a str>,
}

/// What was met.
#[derive(Debug)]
pub(crate) enum Met<'w> {
    /// A file.
    File(File<'w>),
    /// A directory, before anything in it.
    Directory,
}

/// A file that was met.
#[derive(Debug)]
pub(crate) struct File<'w> {
    /// Its path in the root.
    pub(crate) path: String,
    dir: BorrowedFd<'w>,
    name: String,
}

impl File<'_> {
    /// Opens it; none if it is no regular file any more.
    pub(crate) fn open(&self) -> Result<Option<OpenFile>, Errno> {
        OpenFile::of_name(self.dir, &self.name)
    }
}

/// Why there is nothing to go through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    /// There is nothing at the path.
    #[error("there is no file or directory {at:?}")]
    Missing { at: String },
    /// A link is in the way.
    #[error("{at:?} is a link, and a search follows none")]
    Link { at: String },
    /// It is no file that could be searched.
    #[error("{at:?} is neither a regular file nor a directory, or lies on another file system")]
    Other { at: String },
    /// Git ignores it.
    #[error("git ignores {at:?}, and what git ignores is not searched")]
    Ignored { at: String },
    /// It is closed.
    #[error("{at:?} is closed: {why}")]
    Closed { at: String, detail: Detail, why: String },
    /// The system refuses to look.
    #[error("cannot look at {at:?}: {errno}")]
    System { at: String, errno: Errno },
}

impl WalkError {
    /// The path is closed.
    pub(crate) fn closed(at: &str, Closed { detail, why }: Closed) -> Self {
        Self::Closed { at: at.to_owned(), detail, why }
    }

    /// The failure that the author of the call gets.
    pub(crate) fn failure(&self) -> Failure {
        let refused = |reason, hint: &str| Failure::new(reason, self.to_string()).hint(hint);
        match self {
            Self::Missing { .. } => refused(Reason::FileMissing, "search a directory above it, or leave path out"),
            Self::Link { .. } => {
                refused(Reason::InvalidPath, "give the path that the link leads to").detail(Detail::Symlink)
            }
            Self::Other { .. } => {
                refused(Reason::InvalidPath, "give the path of a file or directory").detail(Detail::NotRegular)
            }
            Self::Ignored { .. } => {
                refused(Reason::PolicyDenied, "read the file by its path, if you know which one it is")
            }
            Self::Closed { detail, .. } => refused(Reason::PolicyDenied, "search somewhere else").detail(*detail),
            Self::System { errno, .. } => errno::read_failure(*errno, self.to_string()),
        }
    }
}

/// Shows what is at or beneath a path of a root to a visitor, in the order of the names, until that has seen enough.
///
/// # Errors
/// When there is nothing at the path that may be looked at.
pub(crate) fn walk(way: Way<'_>, visitor: &mut dyn Visit) -> Result<(), WalkError> {
    let Way { root, path, after } = way;
    let (global, _) = Gitignore::global();
    let mut walk = Walk { root, visitor, global, stack: Vec::new() };
    let top = beneath::open_dir(root.dir(), "").map_err(|errno| WalkError::System { at: ".".to_owned(), errno })?;
    walk.enter(String::new(), top)?;
    let mut names = path.unwrap_or_default().split('/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let Some(level) = walk.stack.last() else { break };
        let at = join(&level.path, name);
        let stat = match beneath::look_up(level.dir.as_fd(), name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Err(WalkError::Missing { at }),
            Err(errno) => return Err(WalkError::System { at, errno }),
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => return Err(WalkError::Link { at }),
            FileType::RegularFile if names.peek().is_some() => return Err(WalkError::Missing { at }),
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            _ => return Err(WalkError::Other { at }),
        };
        walk.check(&at, kind)?;
        let Some(level) = walk.stack.last() else { break };
        if walk.is_ignored(&at, kind) {
            return Err(WalkError::Ignored { at });
        }
        if kind == Kind::File {
            let file = File { path: at, dir: level.dir.as_fd(), name: name.to_owned() };
            let _ = walk.visitor.see(&Met::File(file));
            return Ok(());
        }
        let dir = beneath::open_dir(level.dir.as_fd(), name).map_err(|errno| match errno {
            Errno::XDEV => WalkError::Other { at: at.clone() },
            errno => WalkError::System { at: at.clone(), errno },
        })?;
        walk.enter(at, dir)?;
    }
    let base = walk.stack.last().map_or("", |level| level.path.as_str());
    let after = after.filter(|after| is_in(base, after)).map(|after| within(base, after).to_owned());
    walk.go_through(after);
    Ok(())
}

/// Whether a path is in a directory, `""` for the root.
fn is_in(dir: &str, path: &str) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

struct Walk<'w> {
    root: &'w Root,
    visitor: &'w mut dyn Visit,
    /// The user's own excludes.
    global: Gitignore,
    stack: Vec<Level>,
}

/// An open directory, and the rules of its `.gitignore`.
struct Level {
    path: String,
    dir: OwnedFd,
    rules: Gitignore,
    /// The rules of `.git/info/exclude`, at the top.
    excludes: Gitignore,
}

impl Walk<'_> {
    /// Puts a directory on top of the stack, unless it is git's own.
    fn enter(&mut self, path: String, dir: OwnedFd) -> Result<(), WalkError> {
        if git_dir::is_of_git(dir.as_fd()).unwrap_or(true) {
            let why = Protection::Protected;
            return Err(WalkError::Closed { at: path, detail: why.detail(), why: why.to_string() });
        }
        let rules = rules(dir.as_fd(), ".gitignore");
        let git = path.is_empty().then(|| beneath::open_dir(dir.as_fd(), ".git/info").ok()).flatten();
        let excludes = git.map_or_else(Gitignore::empty, |git| self::rules(git.as_fd(), "exclude"));
        self.stack.push(Level { path, dir, rules, excludes });
        Ok(())
    }

    /// Goes through the directory on top of the stack, behind a path in it, and forgets it.
    fn go_through(&mut self, after: Option<String>) {
        let base = self.stack.len();
        let mut pending = vec![Names::behind(after)];
        while let Some(names) = pending.last_mut() {
            let Some(level) = self.stack.last() else { break };
            let next = names.next(level.dir.as_fd());
            for _ in 0..std::mem::take(&mut names.bad) {
                self.visitor.skip(SkipCause::BadName, None);
            }
            let Ok(Some((name, kind))) = next else {
                if next.is_err() {
                    let path = level.path.clone();
                    self.skip(SkipCause::Unreadable, &path);
                }
                pending.pop();
                if self.stack.len() > base {
                    self.stack.pop();
                }
                continue;
            };
            let at = join(&level.path, &name);
            let behind = names.take_behind(&name);
            if self.check(&at, kind).is_err() || self.is_ignored(&at, kind) {
                continue;
            }
            let Some(level) = self.stack.last() else { break };
            if kind == Kind::File {
                let file = File { path: at, dir: level.dir.as_fd(), name };
                if self.visitor.see(&Met::File(file)).is_break() {
                    break;
                }
                if self.visitor.leaves() {
                    pending.truncate(1);
                    self.stack.truncate(base);
                }
                continue;
            }
            if self.visitor.see(&Met::Directory).is_break() {
                break;
            }
            if self.stack.len() >= DEPTH {
                self.skip(SkipCause::TooDeep, &at);
                continue;
            }
            match beneath::open_dir(level.dir.as_fd(), &name) {
                Ok(dir) => {
                    if self.enter(at, dir).is_ok() {
                        pending.push(Names::behind(behind));
                    }
                }
                // Another mount, or something else by now.
                Err(_) => self.skip(SkipCause::Unreadable, &at),
            }
        }
    }

    /// Notes a directory that is not read. Its name is passed on where that of a file in it would be.
    fn skip(&mut self, cause: SkipCause, path: &str) {
        let is_shown = !path.is_empty() && self.check(&join(path, "file"), Kind::File).is_ok();
        self.visitor.skip(cause, is_shown.then_some(path));
    }

    /// Whether a path may be looked at.
    fn check(&mut self, at: &str, kind: Kind) -> Result<(), WalkError> {
        let closed = |detail, why: String| WalkError::closed(at, Closed { detail, why });
        if let Some(protection) = protection::of(at) {
            return Err(closed(protection.detail(), protection.to_string()));
        }
        if self.root.is_own_state(at) {
            return Err(closed(Detail::Protected, "it belongs to Aptix itself".to_owned()));
        }
        self.visitor.may_look(at, kind).map_err(|why| WalkError::closed(at, why))
    }

    /// Whether git ignores a path whose directory is on top of the stack: the nearest rules decide.
    fn is_ignored(&self, at: &str, kind: Kind) -> bool {
        let is_dir = kind == Kind::Directory;
        let in_file = |level: &Level| decision(&level.rules, within(&level.path, at), is_dir);
        let in_files = self.stack.iter().rev().find_map(in_file);
        let in_excludes = || decision(&self.stack.first()?.excludes, at, is_dir);
        in_files.or_else(in_excludes).or_else(|| decision(&self.global, at, is_dir)).unwrap_or(false)
    }
}

/// The regular files and directories of a directory, by name, a part of them at a time. Names that are not UTF-8 are counted: no
/// path can have them.
struct Names {
    /// The names that were listed and are not handed out yet, the last one first.
    listed: Vec<(String, Kind)>,
    /// The last name that was listed, or where to begin; names up to it are passed over, and it too unless `is_met`.
    last: Option<String>,
    /// Whether that name itself is still to come.
    is_met: bool,
    /// Whether there may be names behind it.
    has_more: bool,
    /// A name, and the path in that directory behind which to begin there.
    behind: Option<(String, String)>,
    /// How many files and directories have names that are not UTF-8; of a directory that is begun within, none are counted.
    bad: usize,
}

impl Names {
    /// The names behind a path in the directory.
    fn behind(after: Option<String>) -> Self {
        let (last, behind) = match after {
            None => (None, None),
            Some(path) => match path.split_once('/') {
                Some((name, rest)) => (Some(name.to_owned()), Some((name.to_owned(), rest.to_owned()))),
                None => (Some(path), None),
            },
        };
        Self { listed: Vec::new(), last, is_met: behind.is_some(), has_more: true, behind, bad: 0 }
    }

    /// The next name, and what it is.
    fn next(&mut self, dir: BorrowedFd<'_>) -> Result<Option<(String, Kind)>, Errno> {
        if self.listed.is_empty() && self.has_more {
            self.has_more = false;
            self.list(dir)?;
        }
        Ok(self.listed.pop())
    }

    /// The path behind which to begin in the directory of this name.
    fn take_behind(&mut self, name: &str) -> Option<String> {
        self.behind.take().filter(|(of, _)| of == name).map(|(_, rest)| rest)
    }

    /// Lists the next names.
    fn list(&mut self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut names = Vec::new();
        let is_begun = self.last.is_some();
        for entry in Dir::new(disk::open_readable(dir)?)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                let is_shown = matches!(entry.file_type(), FileType::RegularFile | FileType::Directory);
                self.bad += usize::from(is_shown && !is_begun);
                continue;
            };
            let is_behind =
                self.last.as_deref().is_none_or(|last| if self.is_met { name >= last } else { name > last });
            if matches!(name, "." | "..") || !is_behind {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    beneath::look_up(dir, name)?.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                kind => kind,
            };
            match kind {
                FileType::RegularFile => names.push((name.to_owned(), Kind::File)),
                FileType::Directory => names.push((name.to_owned(), Kind::Directory)),
                _ => {}
            }
            if names.len() >= 2 * TOGETHER {
                self.keep_first(&mut names);
            }
        }
        self.keep_first(&mut names);
        if let Some((last, _)) = names.last() {
            (self.last, self.is_met) = (Some(last.clone()), false);
        }
        names.reverse();
        self.listed = names;
        Ok(())
    }

    /// Sorts names, and leaves those out that are too many to be held.
    fn keep_first(&mut self, names: &mut Vec<(String, Kind)>) {
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if names.len() > TOGETHER {
            names.truncate(TOGETHER);
            self.has_more = true;
        }
    }
}

/// The rules of a file; none where there is no such file.
fn rules(dir: BorrowedFd<'_>, name: &str) -> Gitignore {
    let opened = OpenFile::of_name(dir, name).and_then(|file| file.map_or(Ok(None), |file| file.bytes(RULE_BYTES)));
    let Ok(Some(bytes)) = opened else { return Gitignore::empty() };
    // A search at the workstation shows ignored files when it is asked for them; what a server reads is decided elsewhere.
    ignore_files::of_git(&bytes).unwrap_or_else(|_| Gitignore::empty())
}
