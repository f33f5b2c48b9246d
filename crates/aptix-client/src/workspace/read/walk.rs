//! Goes through the files of a root that git does not ignore, from directory to directory, each opened from the one
//! above it. No link is followed and no mount is entered; what is closed to every batch is passed over.
//!
//! Git's rules are those of `.gitignore` files in the root, of `.git/info/exclude` and of the user's own excludes. An ignored
//! file that is tracked nevertheless counts as ignored.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::protection::{self, Protection};
use aptix_model::reason::{Detail, Reason};
use ignore::gitignore::Gitignore;
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::workspace::fs::{beneath, disk, errno, reads};
use crate::workspace::read::ignored::{decision, within};
use crate::workspace::read::place::join;
use crate::workspace::read::{git_dir, ignore_files, regular};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// Directories within one another.
const DEPTH: usize = 64;
/// Bytes of a file of ignore rules.
const RULE_BYTES: u64 = 256 << 10;

/// Why a path may not be looked at.
pub(crate) struct Closed {
    pub(crate) detail: Detail,
    pub(crate) why: String,
}

/// Whether the path of a file or directory in the first root may be looked at.
pub(crate) type IsOpen<'a> = &'a dyn Fn(&str) -> Result<(), Closed>;

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
    /// Its bytes; none if there are more than `limit`, or it is no regular file any more.
    pub(crate) fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
        read(self.dir, &self.name, limit)
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

/// Shows what is at or beneath a path of the first root to `see`, in the order of the names, until it has seen enough. Returns
/// how many directories could not be read.
///
/// # Errors
/// When there is nothing at the path that may be looked at.
pub(crate) fn walk(
    workspace: &Workspace,
    path: Option<&WorkspacePath>,
    is_open: IsOpen<'_>,
    see: &mut dyn FnMut(&Met<'_>) -> ControlFlow<()>,
) -> Result<u32, WalkError> {
    let root = workspace.primary();
    let (global, _) = Gitignore::global();
    let mut walk = Walk { root, is_open, global, stack: Vec::new() };
    let top = beneath::open_dir(root.dir(), "").map_err(|errno| WalkError::System { at: ".".to_owned(), errno })?;
    walk.enter(String::new(), top)?;
    let mut names = path.map_or("", WorkspacePath::as_str).split('/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let Some(level) = walk.stack.last() else { break };
        let at = join(&level.path, name);
        let stat = match beneath::look_up(level.dir.as_fd(), name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Err(WalkError::Missing { at }),
            Err(errno) => return Err(WalkError::System { at, errno }),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_dir = kind == FileType::Directory;
        match kind {
            FileType::Symlink => return Err(WalkError::Link { at }),
            FileType::RegularFile if names.peek().is_some() => return Err(WalkError::Missing { at }),
            FileType::RegularFile | FileType::Directory => {}
            _ => return Err(WalkError::Other { at }),
        }
        walk.check(&at)?;
        if walk.is_ignored(&at, is_dir) {
            return Err(WalkError::Ignored { at });
        }
        if !is_dir {
            let _ = see(&Met::File(File { path: at, dir: level.dir.as_fd(), name: name.to_owned() }));
            return Ok(0);
        }
        let dir = beneath::open_dir(level.dir.as_fd(), name).map_err(|errno| match errno {
            Errno::XDEV => WalkError::Other { at: at.clone() },
            errno => WalkError::System { at: at.clone(), errno },
        })?;
        walk.enter(at, dir)?;
    }
    Ok(walk.go_through(see))
}

struct Walk<'w> {
    root: &'w Root,
    is_open: IsOpen<'w>,
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

    /// Goes through the directory on top of the stack, and forgets it.
    fn go_through(&mut self, see: &mut dyn FnMut(&Met<'_>) -> ControlFlow<()>) -> u32 {
        let mut unread = 0;
        let base = self.stack.len();
        let mut pending = vec![self.list(&mut unread).into_iter()];
        while let Some(names) = pending.last_mut() {
            let Some(level) = self.stack.last() else { break };
            let Some((name, kind)) = names.next() else {
                pending.pop();
                if self.stack.len() > base {
                    self.stack.pop();
                }
                continue;
            };
            let at = join(&level.path, &name);
            let is_dir = kind == FileType::Directory;
            if self.check(&at).is_err() || self.is_ignored(&at, is_dir) {
                continue;
            }
            if !is_dir {
                if see(&Met::File(File { path: at, dir: level.dir.as_fd(), name })).is_break() {
                    break;
                }
                continue;
            }
            if see(&Met::Directory).is_break() {
                break;
            }
            if self.stack.len() > DEPTH {
                unread += 1;
                continue;
            }
            match beneath::open_dir(level.dir.as_fd(), &name) {
                Ok(dir) => {
                    if self.enter(at, dir).is_ok() {
                        pending.push(self.list(&mut unread).into_iter());
                    }
                }
                // Another mount, or something else by now.
                Err(_) => unread += 1,
            }
        }
        unread
    }

    /// The files and directories of the directory on top of the stack, by name.
    fn list(&self, unread: &mut u32) -> Vec<(String, FileType)> {
        let listed = self.stack.last().map_or(Ok(Vec::new()), |level| list(level.dir.as_fd()));
        *unread += u32::from(listed.is_err());
        listed.unwrap_or_default()
    }

    /// Whether a path may be looked at.
    fn check(&self, at: &str) -> Result<(), WalkError> {
        let closed = |detail, why: String| WalkError::Closed { at: at.to_owned(), detail, why };
        if let Some(protection) = protection::of(at) {
            return Err(closed(protection.detail(), protection.to_string()));
        }
        if self.root.is_own_state(at) {
            return Err(closed(Detail::Protected, "it belongs to Aptix itself".to_owned()));
        }
        (self.is_open)(at).map_err(|Closed { detail, why }| closed(detail, why))
    }

    /// Whether git ignores a path whose directory is on top of the stack: the nearest rules decide.
    fn is_ignored(&self, at: &str, is_dir: bool) -> bool {
        let in_file = |level: &Level| decision(&level.rules, within(&level.path, at), is_dir);
        let in_files = self.stack.iter().rev().find_map(in_file);
        let in_excludes = || decision(&self.stack.first()?.excludes, at, is_dir);
        in_files.or_else(in_excludes).or_else(|| decision(&self.global, at, is_dir)).unwrap_or(false)
    }
}

/// The regular files and directories of a directory, by name. Names that are not UTF-8 are left out: no path can have them.
fn list(dir: BorrowedFd<'_>) -> Result<Vec<(String, FileType)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(disk::open_readable(dir)?)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                beneath::look_up(dir, name)?.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        if matches!(kind, FileType::RegularFile | FileType::Directory) {
            names.push((name.to_owned(), kind));
        }
    }
    names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

/// The rules of a file; none where there is no such file.
fn rules(dir: BorrowedFd<'_>, name: &str) -> Gitignore {
    let Ok(Some(bytes)) = read(dir, name, RULE_BYTES) else { return Gitignore::empty() };
    // A search at the workstation shows ignored files when it is asked for them; what a server reads is decided elsewhere.
    ignore_files::of_git(&bytes).unwrap_or_else(|_| Gitignore::empty())
}

fn read(dir: BorrowedFd<'_>, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    let Some((file, _)) = regular::open(dir, name)?.filter(|(_, stat)| regular::stated_size(stat) <= limit) else {
        return Ok(None);
    };
    Ok(Some(reads::read_rest(file, limit + 1)?).filter(|bytes| bytes.len() as u64 <= limit))
}
