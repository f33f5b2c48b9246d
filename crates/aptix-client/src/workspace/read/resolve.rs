//! From a path in a batch to one place on disk, component by component beneath an open root.
//!
//! Links that stay in the root are expanded by hand, so that policy is decided on the real path; every later step
//! opens that real path from the root again and accepts no link in it.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use aptix_engine::target::ValidTarget;
use aptix_model::failure::Failure;
use aptix_model::path::{PathError, WorkspacePath, fold};
use aptix_model::protection::{self, Protection};
use aptix_model::reason::{Detail, Reason};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::policy::paths::Named;
use crate::workspace::Workspace;
use crate::workspace::fs::{beneath, errno};
use crate::workspace::read::listing::Listings;
use crate::workspace::roots::root::Root;

/// How many links may stand on the way to one file.
const MAX_LINKS: usize = 40;

/// Where a file of a batch is, or would be.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path in its root, as the author named it, in its real case.
    pub path: WorkspacePath,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// Which root of the workspace, from 0.
    pub(in crate::workspace) root: usize,
    /// The real path of the file's directory in that root, links expanded, `""` for the root itself.
    pub(in crate::workspace) dir: String,
    /// The real name in it.
    pub(in crate::workspace) name: String,
    /// How many of the directory's last components do not exist yet.
    pub(in crate::workspace) missing: usize,
    /// The device and inode of the file that is there.
    pub(in crate::workspace) found: Option<(u64, u64)>,
    /// Whether the file, or a link on the way to it, has a name that a person has to agree to.
    pub(crate) sensitive: bool,
    /// The real paths of the links on the way to it.
    pub(crate) links: Vec<String>,
}

impl Place {
    /// Records that a file patch claims this place; returns the earlier one that claims the same file, if both cannot.
    pub(crate) fn same_file_as(&self, seen: &mut Claims, index: usize, claim: Claim) -> Option<usize> {
        let by_path = Same::Path(self.root, fold(&self.real()));
        let keys = [Some(by_path), self.found.map(Same::Inode)];
        let others = keys.into_iter().flatten().filter_map(|key| {
            let claims = seen.entry(key).or_default();
            let other = claims.iter().find(|(_, other)| !other.goes_with(claim)).map(|(index, _)| *index);
            claims.push((index, claim));
            other
        });
        others.collect::<Vec<_>>().first().copied()
    }

    /// Whether both are one place.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.at() == other.at()
    }

    /// Where in the workspace.
    pub(in crate::workspace) fn at(&self) -> At<'_> {
        (self.root, &self.dir, &self.name)
    }

    /// Which root of the workspace, from 0.
    pub(crate) const fn root(&self) -> usize {
        self.root
    }

    /// As policy looks at it; `real` is [`Self::real`].
    pub(crate) fn named<'a>(&'a self, real: &'a str) -> Named<'a> {
        Named { root: self.root, path: self.path.as_str(), real }
    }

    /// Whether the file would be a new dot-file at a root, or in a new dot-directory there, that a tool may execute.
    pub(crate) fn is_new_dot_name(&self) -> bool {
        let depth = self.dir.split('/').filter(|name| !name.is_empty()).count();
        self.found.is_none() && self.missing == depth && protection::is_dot_name(&self.real())
    }

    /// Whether a file is there.
    pub(crate) const fn exists(&self) -> bool {
        self.found.is_some()
    }

    /// The real path in the root.
    pub(crate) fn real(&self) -> String {
        join(&self.dir, &self.name)
    }
}

/// A root, and the real path of a directory and a name in it.
pub(in crate::workspace) type At<'p> = (usize, &'p str, &'p str);

/// What a file patch does at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// It renames the file that is there.
    Leaves,
    /// It renames a file to there.
    Arrives,
    /// It does something else.
    Stays,
}

impl Claim {
    /// Whether two file patches can claim one place.
    const fn goes_with(self, other: Self) -> bool {
        matches!((self, other), (Self::Leaves, Self::Arrives) | (Self::Arrives, Self::Leaves))
    }
}

/// The file patches that claim each file.
pub(crate) type Claims = HashMap<Same, Vec<(usize, Claim)>>;

/// What makes two places one file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Same {
    Path(usize, String),
    Inode((u64, u64)),
}

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Its first component names no root.
    #[error("no root of this workspace is named {found:?}, the roots are {known}")]
    UnknownRoot {
        /// The first component.
        found: String,
        /// The names there are.
        known: String,
    },
    /// It has no component but a root's name.
    #[error("the path names a root and no file in it")]
    RootAlone,
    /// The name on disk cannot be reported.
    #[error("{0}")]
    Path(#[from] PathError),
    /// A link that cannot be followed.
    #[error("the link {at:?} {fault}")]
    Link {
        /// The link's real path.
        at: String,
        /// What is wrong with it.
        fault: LinkFault,
    },
    /// A component on the way is something else than a directory.
    #[error("{at:?} is not a directory")]
    NotDirectory {
        /// Its real path.
        at: String,
    },
    /// The last component is something else than a regular file.
    #[error("the target is {kind}, expected a regular file")]
    NotRegular {
        /// What it is.
        kind: &'static str,
    },
    /// A mount on the way.
    #[error("{at:?} lies on another file system than the root")]
    CrossDevice {
        /// The real path of what is mounted.
        at: String,
    },
    /// Names that differ only in case or in Unicode normal form.
    #[error("{wanted:?} could be any of {}", twins.join(", "))]
    Twins {
        /// The component.
        wanted: String,
        /// What is on disk.
        twins: Vec<String>,
    },
    /// Closed to every batch.
    #[error("{protection} ({real:?})")]
    Closed {
        /// The real path.
        real: String,
        /// Why.
        protection: Protection,
    },
    /// The system refuses to look.
    #[error("cannot look up {at:?}: {errno}")]
    System {
        /// The real path.
        at: String,
        /// What the system says.
        errno: Errno,
    },
}

/// What is wrong with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkFault {
    /// Its target begins at the root of the file system.
    #[error("has an absolute target")]
    Absolute,
    /// Its target lies outside.
    #[error("leads out of the root")]
    Outside,
    /// It leads nowhere.
    #[error("leads to something that does not exist")]
    Dangling,
    /// Too many links.
    #[error("is one of more than {MAX_LINKS} on the way to one file")]
    Loop,
    /// A target that no path can name.
    #[error("has a target that is not UTF-8")]
    NotUtf8,
}

impl ResolveError {
    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let invalid =
            |detail, hint: &str| Failure::new(Reason::InvalidPath, self.to_string()).detail(detail).hint(hint);
        match self {
            Self::UnknownRoot { .. } => {
                invalid(Detail::UnknownRoot, "begin the path with the name of one of the roots")
            }
            Self::RootAlone => invalid(Detail::Empty, "name a file in the root"),
            Self::Path(error) => invalid(error.detail(), "rename the file on disk first"),
            Self::Link { .. } => invalid(
                Detail::Symlink,
                "name the file itself, relative to the root; only links that stay in it are followed",
            ),
            Self::NotDirectory { .. } => invalid(Detail::NotDirectory, "choose a path whose parents are directories"),
            Self::NotRegular { .. } => invalid(Detail::NotRegular, "choose the path of a regular file"),
            Self::CrossDevice { .. } => invalid(Detail::CrossDevice, "open what is mounted there as a root of its own"),
            Self::Twins { wanted, twins } => Failure::new(Reason::AmbiguousPath, self.to_string())
                .detail(twin_detail(wanted, twins))
                .hint("use the spelling that is on disk, or have one of the files renamed"),
            Self::Closed { protection, .. } => Failure::new(Reason::PolicyDenied, self.to_string())
                .detail(protection.detail())
                .hint("leave this file out of the batch; no answer opens it"),
            Self::System { errno, .. } => errno::read_failure(*errno, self.to_string()),
        }
    }
}

fn twin_detail(wanted: &str, twins: &[String]) -> Detail {
    let lower = wanted.to_lowercase();
    if twins.iter().all(|twin| twin.to_lowercase() == lower) { Detail::CaseCollision } else { Detail::NormCollision }
}

/// How a component is compared with the names on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// As it is.
    Exact,
    /// By its folded form.
    Folded,
    /// As it is, and it comes from a link.
    Linked,
}

/// Finds out where a target is.
///
/// # Errors
/// When it leads to nothing that may be edited.
pub fn resolve(workspace: &Workspace, listings: &mut Listings, target: &ValidTarget) -> Result<Place, ResolveError> {
    let (root, rest, spelling) = match target {
        ValidTarget::DocPath(key) => (find_root(workspace, key.root())?, key.rest(), Spelling::Folded),
        ValidTarget::Path(path) if workspace.roots().len() == 1 => (0, path.as_str(), Spelling::Exact),
        ValidTarget::Path(path) => {
            let (name, rest) = path.as_str().split_once('/').unwrap_or((path.as_str(), ""));
            let root = find_root(workspace, name)?;
            if rest.is_empty() {
                return Err(ResolveError::RootAlone);
            }
            (root, rest, Spelling::Exact)
        }
    };
    resolve_spelled(workspace, listings, root, rest, spelling)
}

/// As [`resolve`], for a path in a root whose position is known.
pub(crate) fn resolve_in(
    workspace: &Workspace,
    listings: &mut Listings,
    root: usize,
    path: &WorkspacePath,
) -> Result<Place, ResolveError> {
    resolve_spelled(workspace, listings, root, path.as_str(), Spelling::Exact)
}

fn resolve_spelled(
    workspace: &Workspace,
    listings: &mut Listings,
    root: usize,
    path: &str,
    spelling: Spelling,
) -> Result<Place, ResolveError> {
    let names = path.split('/').map(|name| (name.to_owned(), spelling)).collect();
    let place = walk(workspace, listings, root, names)?;
    let real = place.real();
    let own = || workspace.root(root).is_some_and(|root| root.is_own_state(&real));
    match protection::of(&real).or_else(|| own().then_some(Protection::Protected)) {
        Some(protection) => Err(ResolveError::Closed { real, protection }),
        None => Ok(place),
    }
}

fn find_root(workspace: &Workspace, name: &str) -> Result<usize, ResolveError> {
    workspace.roots().iter().position(|root| root.name() == name).ok_or_else(|| ResolveError::UnknownRoot {
        found: name.to_owned(),
        known: workspace.roots().iter().map(|root| format!("{:?}", root.name())).collect::<Vec<_>>().join(", "),
    })
}

/// Where the walk stands: a real directory, and the names as the author would see them.
struct Walk<'w> {
    root: &'w Root,
    real: Vec<String>,
    named: Vec<String>,
    links: usize,
    /// Their real paths.
    passed: Vec<String>,
    /// Whether a link on the way has a sensitive name.
    sensitive: bool,
}

impl Walk<'_> {
    fn dir(&self) -> String {
        self.real.join("/")
    }

    fn at(&self, name: &str) -> String {
        join(&self.dir(), name)
    }

    fn open(&self, listings: &mut Listings, index: usize) -> Result<Rc<OwnedFd>, ResolveError> {
        let dir = self.dir();
        listings.open((index, self.root), &dir).map_err(|errno| self.refused(&dir, errno))
    }

    fn refused(&self, at: &str, errno: Errno) -> ResolveError {
        let at = at.to_owned();
        match errno {
            Errno::XDEV => ResolveError::CrossDevice { at },
            Errno::NOTDIR => ResolveError::NotDirectory { at },
            Errno::LOOP => ResolveError::Link { at, fault: LinkFault::Loop },
            errno => ResolveError::System { at, errno },
        }
    }
}

fn walk(
    workspace: &Workspace,
    listings: &mut Listings,
    index: usize,
    mut names: VecDeque<(String, Spelling)>,
) -> Result<Place, ResolveError> {
    let root = workspace.root(index).ok_or(ResolveError::RootAlone)?;
    let mut walk = Walk { root, real: Vec::new(), named: Vec::new(), links: 0, passed: Vec::new(), sensitive: false };
    while let Some((name, spelling)) = names.pop_front() {
        match name.as_str() {
            "" | "." => continue,
            ".." if walk.real.pop().is_some() => continue,
            ".." => return Err(ResolveError::Link { at: walk.named.join("/"), fault: LinkFault::Outside }),
            _ => {}
        }
        let dir = walk.open(listings, index)?;
        let of_git = listings.is_of_git(index, &walk.dir(), dir.as_fd());
        if of_git.map_err(|errno| walk.refused(&walk.dir(), errno))? {
            return Err(ResolveError::Closed { real: walk.at(&name), protection: Protection::Protected });
        }
        let name = match spelling {
            Spelling::Folded => fold_match(listings, index, &walk, &dir, name)?,
            Spelling::Exact | Spelling::Linked => name,
        };
        let at = walk.at(&name);
        let stat = beneath::look_up(dir.as_fd(), &name).map_err(|errno| walk.refused(&at, errno))?;
        if spelling != Spelling::Linked {
            walk.named.push(name.clone());
        }
        let Some(stat) = stat else {
            if spelling == Spelling::Linked {
                return Err(ResolveError::Link { at: walk.named.join("/"), fault: LinkFault::Dangling });
            }
            refuse_twins(listings, index, &walk, &dir, &name)?;
            return absent(workspace, index, walk, name, names);
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                if let Some(protection) = protection::of_link(&name).or_else(|| protection::of(&at)) {
                    return Err(ResolveError::Closed { real: at, protection });
                }
                walk.sensitive |= protection::is_sensitive(&at);
                let target = read_link(&mut walk, &dir, &name, &at)?;
                walk.passed.push(at);
                for part in target.split('/').rev() {
                    names.push_front((part.to_owned(), Spelling::Linked));
                }
            }
            FileType::Directory => walk.real.push(name),
            _ if !names.iter().all(|(name, _)| name.is_empty() || name == ".") => {
                return Err(ResolveError::NotDirectory { at });
            }
            FileType::RegularFile => return place(workspace, index, walk, name, Some((stat.st_dev, stat.st_ino))),
            kind => return Err(ResolveError::NotRegular { kind: kind_name(kind) }),
        }
    }
    Err(ResolveError::NotRegular { kind: "a directory" })
}

/// The one name on disk that a folded component means; the component itself when there is none.
fn fold_match(
    listings: &mut Listings,
    root: usize,
    walk: &Walk<'_>,
    dir: &OwnedFd,
    name: String,
) -> Result<String, ResolveError> {
    let mut twins =
        listings.twins(root, &walk.dir(), dir.as_fd(), &name).map_err(|errno| walk.refused(&walk.dir(), errno))?;
    match (twins.pop(), twins.is_empty()) {
        (None, _) => Ok(name),
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            twins.push(last);
            Err(ResolveError::Twins { wanted: name, twins })
        }
    }
}

/// A new name must not be one that some file system takes for a name that is there.
fn refuse_twins(
    listings: &mut Listings,
    root: usize,
    walk: &Walk<'_>,
    dir: &OwnedFd,
    name: &str,
) -> Result<(), ResolveError> {
    let mut twins =
        listings.twins(root, &walk.dir(), dir.as_fd(), name).map_err(|errno| walk.refused(&walk.dir(), errno))?;
    // A file of this very name was made just now: the commit finds that the name is taken.
    // A file that the batch renames gives its name up.
    twins.retain(|twin| twin != name && !listings.is_left(root, walk.at(twin)));
    if twins.is_empty() { Ok(()) } else { Err(ResolveError::Twins { wanted: name.to_owned(), twins }) }
}

fn read_link(walk: &mut Walk<'_>, dir: &OwnedFd, name: &str, at: &str) -> Result<String, ResolveError> {
    let fault = |fault| ResolveError::Link { at: at.to_owned(), fault };
    walk.links += 1;
    if walk.links > MAX_LINKS {
        return Err(fault(LinkFault::Loop));
    }
    let target = rustix::fs::readlinkat(dir, name, Vec::new()).map_err(|errno| walk.refused(at, errno))?;
    let target = target.into_string().map_err(|_| fault(LinkFault::NotUtf8))?;
    if target.starts_with('/') { Err(fault(LinkFault::Absolute)) } else { Ok(target) }
}

/// A place whose last components do not exist yet.
fn absent(
    workspace: &Workspace,
    root: usize,
    mut walk: Walk<'_>,
    first: String,
    rest: VecDeque<(String, Spelling)>,
) -> Result<Place, ResolveError> {
    let mut name = first;
    let mut missing = 0;
    for (next, _) in rest {
        walk.real.push(std::mem::replace(&mut name, next.clone()));
        walk.named.push(next);
        missing += 1;
    }
    let place = place(workspace, root, walk, name, None)?;
    Ok(Place { missing, ..place })
}

fn place(
    workspace: &Workspace,
    root: usize,
    walk: Walk<'_>,
    name: String,
    found: Option<(u64, u64)>,
) -> Result<Place, ResolveError> {
    let path = WorkspacePath::new(&walk.named.join("/"))?;
    let root_name = workspace.root(root).map_or("", Root::name);
    let doc_path = format!("{root_name}/{}", fold(path.as_str()));
    let dir = walk.dir();
    let real = join(&dir, &name);
    let sensitive = walk.sensitive
        || protection::is_sensitive(path.as_str())
        || (real != path.as_str() && protection::is_sensitive(&real));
    Ok(Place { path, doc_path, root, dir, name, missing: 0, found, sensitive, links: walk.passed })
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

const fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}
