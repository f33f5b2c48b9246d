//! From a path in a batch to one place on disk, component by component beneath an open root.
//!
//! Links that stay in the root are expanded by hand, so that policy is decided on the real path; every later step
//! opens that real path from the root again and accepts no link in it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use aptix_engine::target::ValidTarget;
use aptix_model::path::{WorkspacePath, fold};
use aptix_model::protection::{self, Protection};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::workspace::fs::beneath;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::place::{Place, join};
use crate::workspace::read::resolve_error::{LinkFault, MAX_LINKS, ResolveError};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

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

const fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}
