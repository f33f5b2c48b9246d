//! Whether git ignores a path: by the files `.gitignore` and `.ignore` above it, `.git/info/exclude`, and the excludes that
//! the configuration of the repository or of the user names. Rules that are there and cannot be read are an error, never no rules.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, gitconfig_excludes_path};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::workspace::fs::{beneath, errno, reads};
use crate::workspace::read::ignore_files;
use crate::workspace::read::place::join;
use crate::workspace::roots::root::Root;

/// Bytes of a file of ignore rules.
const RULE_BYTES: u64 = 256 << 10;
/// Bytes of a file of git's configuration.
const CONFIG_BYTES: u64 = 256 << 10;
/// Bytes of a file `.git` or `commondir`, which hold a path.
const POINTER_BYTES: u64 = 16 << 10;

/// Directories whose rules are remembered; a walk through many more reads some of them again.
const LEVELS: usize = 4096;

/// The rules above the paths that were asked about so far.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    /// The user's own excludes.
    global: Option<Rc<Gitignore>>,
    /// The paths of rule files that a configuration names.
    named: HashSet<PathBuf>,
    /// By root and real path of a directory; nothing where there is no such directory.
    levels: HashMap<(usize, String), Option<Rc<Level>>>,
    /// By root.
    above: HashMap<usize, Rc<Above>>,
}

/// The rules of one directory.
#[derive(Debug)]
struct Level {
    git: Gitignore,
    other: Gitignore,
    excludes: Gitignore,
    /// The rules of the files that the repository's own configuration names.
    configured: Gitignore,
    /// The paths of those files.
    named: Vec<PathBuf>,
    /// Whether the directory is the top of a repository.
    is_top: bool,
}

/// What lies above a root in the repository that it is in.
#[derive(Debug, Default)]
struct Above {
    /// The path of the root in the repository; empty where it is the top of one, or in none.
    within: String,
    /// The directories above it, by their paths in the repository, outermost first.
    levels: Vec<(String, Rc<Level>)>,
}

/// Rules that may mention a path, and the path relative to their directory.
struct Ruled<'a> {
    level: &'a Level,
    path: &'a str,
}

impl Ignored {
    /// Whether a file or directory at a path in a root is ignored, itself or with a directory that it is in.
    ///
    /// # Errors
    /// Rules above it cannot be read.
    pub(crate) fn is_ignored(&mut self, index: usize, root: &Root, path: &str, is_dir: bool) -> Result<bool, Errno> {
        let above = self.above(index, root)?;
        let global = self.global()?;
        // The root itself may be ignored by what is above it.
        let whole = join(&above.within, path);
        let mut levels = above.levels.clone();
        levels.extend(self.level(index, root, "")?.map(|top| (above.within.clone(), top)));
        for end in whole.match_indices('/').map(|(end, _)| end).chain([whole.len()]) {
            let at = whole.split_at(end).0;
            let is_last = end == whole.len();
            let is_dir = !is_last || is_dir;
            let higher = levels.iter().rev().filter(|(dir, _)| dir.len() < at.len());
            let ruled: Vec<_> = higher.map(|(dir, level)| Ruled { level, path: within(dir, at) }).collect();
            if is_ignored_by(&ruled, &global, is_dir) {
                return Ok(true);
            }
            if !is_last
                && at.len() > above.within.len()
                && let Some(level) = self.level(index, root, within(&above.within, at))?
            {
                levels.push((at.to_owned(), level));
            }
        }
        Ok(false)
    }

    /// The user's own excludes.
    fn global(&mut self) -> Result<Rc<Gitignore>, Errno> {
        if let Some(known) = &self.global {
            return Ok(Rc::clone(known));
        }
        let own = gitconfig_excludes_path();
        let rules = own.as_deref().map_or_else(|| Ok(Gitignore::empty()), rules_at)?;
        self.named.extend(own.map(real));
        Ok(Rc::clone(self.global.insert(Rc::new(rules))))
    }

    /// Whether a file that was asked about is one that a configuration names for its rules, whatever it is called.
    pub(crate) fn has_rules(&self, root: &Root, real: &str) -> bool {
        self.named.contains(&root.path().join(real))
    }

    fn level(&mut self, index: usize, root: &Root, dir: &str) -> Result<Option<Rc<Level>>, Errno> {
        let key = (index, dir.to_owned());
        if let Some(known) = self.levels.get(&key) {
            return Ok(known.clone());
        }
        let level = match beneath::open_dir(root.dir(), dir) {
            Ok(opened) => {
                let at = root.path().join(dir);
                Some(Rc::new(Level::read(&at, |name| read(opened.as_fd(), name), |name| kind(opened.as_fd(), name))?))
            }
            // A link on the way: git takes that for a file, and looks at nothing behind it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(errno) => return Err(errno),
        };
        self.named.extend(level.iter().flat_map(|level| level.named.clone()));
        if self.levels.len() >= LEVELS {
            self.levels.clear();
        }
        self.levels.insert(key, level.clone());
        Ok(level)
    }

    /// What lies above a root, as far as the top of the repository that it is in.
    fn above(&mut self, index: usize, root: &Root) -> Result<Rc<Above>, Errno> {
        if let Some(known) = self.above.get(&index) {
            return Ok(Rc::clone(known));
        }
        let mut above = Above::default();
        if root.path().join(".git").symlink_metadata().is_err() {
            let mut levels = Vec::new();
            for top in root.path().ancestors().skip(1) {
                let path_in_top = |dir: &Path| dir.strip_prefix(top).ok().and_then(Path::to_str).map(str::to_owned);
                let Some(within) = path_in_top(root.path()) else { break };
                let read = |name: &str| read_at(&top.join(name), RULE_BYTES);
                levels.push((top, Rc::new(Level::read(top, read, |name| kind_at(&top.join(name)))?)));
                if levels.last().is_some_and(|(_, level)| level.is_top) {
                    let levels = levels.into_iter().rev();
                    let levels = levels.map(|(dir, level)| (path_in_top(dir).unwrap_or_default(), level)).collect();
                    above = Above { within, levels };
                    break;
                }
            }
        }
        self.named.extend(above.levels.iter().flat_map(|(_, level)| level.named.clone()));
        Ok(Rc::clone(self.above.entry(index).insert_entry(Rc::new(above)).get()))
    }
}

/// Whether rules, nearest first, ignore a path: git's or those of `.ignore`, each by itself, so that neither opens what the
/// other closes.
fn is_ignored_by(rules: &[Ruled<'_>], global: &Gitignore, is_dir: bool) -> bool {
    let nearest =
        |of: fn(&Level) -> &Gitignore| rules.iter().find_map(|ruled| decision(of(ruled.level), ruled.path, is_dir));
    let git = nearest(|level| &level.git)
        .or_else(|| nearest(|level| &level.excludes))
        .or_else(|| nearest(|level| &level.configured))
        .or_else(|| decision(global, rules.last()?.path, is_dir));
    git == Some(true) || nearest(|level| &level.other) == Some(true)
}

/// A path relative to a directory that it is in.
pub(super) fn within<'p>(dir: &str, path: &'p str) -> &'p str {
    path.strip_prefix(dir).map_or(path, |rest| rest.trim_start_matches('/'))
}

/// Whether rules ignore a path; `None` where they do not mention it.
pub(super) fn decision(rules: &Gitignore, path: &str, is_dir: bool) -> Option<bool> {
    match rules.matched(path, is_dir) {
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
        Match::None => None,
    }
}

impl Level {
    fn read(
        at: &Path,
        read: impl Fn(&str) -> Result<Option<Vec<u8>>, Errno>,
        kind: impl Fn(&str) -> Result<Option<FileType>, Errno>,
    ) -> Result<Self, Errno> {
        let none = || Ok(Gitignore::empty());
        let git = kind(".git")?;
        let own = match git {
            Some(FileType::RegularFile) => OwnDir::of_link(at)?,
            Some(_) => Some(OwnDir { common: at.join(".git"), git: at.join(".git") }),
            None => None,
        };
        let (named, configured) = match &own {
            Some(own) => own.configured(at)?,
            None => (Vec::new(), none()?),
        };
        Ok(Self {
            git: read(".gitignore")?.map_or_else(none, |bytes| ignore_files::of_git(&bytes))?,
            other: read(".ignore")?.map_or_else(none, |bytes| ignore_files::of_searches(&bytes))?,
            excludes: own.as_ref().map_or_else(none, |own| rules_at(&own.common.join("info/exclude")))?,
            configured,
            named,
            is_top: git.is_some(),
        })
    }
}

/// Where git keeps what belongs to a repository.
struct OwnDir {
    /// For all its worktrees.
    common: PathBuf,
    /// For this one.
    git: PathBuf,
}

impl OwnDir {
    /// That of a repository whose `.git` is a file with its path: a worktree's, or a submodule's.
    fn of_link(at: &Path) -> Result<Option<Self>, Errno> {
        let path_in = |file: &Path| -> Result<Option<PathBuf>, Errno> {
            let text = read_at(file, POINTER_BYTES)?.and_then(|bytes| String::from_utf8(bytes).ok());
            let path = |text: &str| PathBuf::from(text.strip_prefix("gitdir:").unwrap_or(text).trim_start());
            Ok(text.map(|text| path(text.trim_end())))
        };
        let Some(git) = path_in(&at.join(".git"))? else { return Ok(None) };
        let git = at.join(git);
        let common = path_in(&git.join("commondir"))?.map_or_else(|| git.clone(), |common| git.join(common));
        Ok(Some(Self { common, git }))
    }

    /// The files that its configuration names, and their rules; those of a worktree count although they may be switched
    /// off.
    fn configured(&self, top: &Path) -> Result<(Vec<PathBuf>, Gitignore), Errno> {
        let read = |path: &Path| read_at(path, CONFIG_BYTES);
        let (mut named, mut rules) = (Vec::new(), Vec::new());
        for config in [self.common.join("config"), self.git.join("config.worktree")] {
            for file in ignore_files::named_in(&config, top, &read)? {
                rules.extend(read_at(&file, RULE_BYTES)?.unwrap_or_default());
                rules.push(b'\n');
                named.push(real(file));
            }
        }
        Ok((named, ignore_files::of_git(&rules)?))
    }
}

/// The path of a file with links expanded, if there is such a file.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn rules_at(path: &Path) -> Result<Gitignore, Errno> {
    read_at(path, RULE_BYTES)?.map_or_else(|| Ok(Gitignore::empty()), |bytes| ignore_files::of_git(&bytes))
}

/// The bytes of a file of rules in a directory; nothing where there is none. Git follows no link in the place of its own.
fn read(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    match beneath::open_file(dir, name) {
        Ok(file) => whole(file, RULE_BYTES),
        Err(Errno::NOENT | Errno::NXIO) => Ok(None),
        Err(Errno::LOOP) if name == ".gitignore" => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn kind(dir: BorrowedFd<'_>, name: &str) -> Result<Option<FileType>, Errno> {
    Ok(beneath::look_up(dir, name)?.map(|stat| FileType::from_raw_mode(stat.st_mode)))
}

/// As [`read`], for a file outside of every root, which git reads for its rules.
fn read_at(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    // Something else than a file is not opened: that could wait.
    if !found(path.metadata())?.is_some_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    found(File::open(path))?.map_or(Ok(None), |file| whole(file.into(), limit))
}

fn kind_at(path: &Path) -> Result<Option<FileType>, Errno> {
    Ok(found(path.symlink_metadata())?.map(|metadata| FileType::from_raw_mode(metadata.mode())))
}

/// `None` where there is nothing at a path.
fn found<T>(outcome: io::Result<T>) -> Result<Option<T>, Errno> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(errno::of(&error)),
    }
}

fn whole(file: OwnedFd, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    if !FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
        return Ok(None);
    }
    let bytes = reads::read_rest(file, limit + 1)?;
    if bytes.len() as u64 > limit { Err(Errno::FBIG) } else { Ok(Some(bytes)) }
}
