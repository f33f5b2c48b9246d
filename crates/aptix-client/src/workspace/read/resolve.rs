//! From a path in a batch to one place on disk, component by component beneath an open root.
//!
//! Links that stay in the root are expanded by hand, so that policy is decided on the real path; every later step
//! opens that real path from the root again and accepts no link in it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use aptix_engine::target::ValidTarget;
use aptix_model::path::{WorkspacePath, fold};
use aptix_model::path_style::PathStyle;
use aptix_model::protection::{self, Protection};
use rustix::fs::{FileType, Stat};
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
    /// As it is where there is such a name, otherwise by its folded form.
    ExactFirst,
    /// As it is, and it comes from a link.
    Linked,
}

/// Finds the place of a target.
///
/// # Errors
/// When it leads to nothing that may be edited.
pub fn resolve(workspace: &Workspace, listings: &mut Listings, target: &ValidTarget) -> Result<Place, ResolveError> {
    resolve_target(workspace, listings, target, Spelling::Folded)
}

/// As [`resolve`], for a file that is only read: a component of a document path that is a name on disk as it is means that
/// name, so that no directory is listed.
pub(crate) fn resolve_to_read(
    workspace: &Workspace,
    listings: &mut Listings,
    target: &ValidTarget,
) -> Result<Place, ResolveError> {
    resolve_target(workspace, listings, target, Spelling::ExactFirst)
}

/// Finds the place of a target, whose components are compared like this if it is a document path.
fn resolve_target(
    workspace: &Workspace,
    listings: &mut Listings,
    target: &ValidTarget,
    of_key: Spelling,
) -> Result<Place, ResolveError> {
    let (root, rest, spelling) = match target {
        ValidTarget::DocPath(key) => (find_root(workspace, key.root())?, key.rest(), of_key),
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
    index: usize,
    path: &str,
    spelling: Spelling,
) -> Result<Place, ResolveError> {
    let root = workspace.root(index).ok_or(ResolveError::RootAlone)?;
    let names = path.split('/').map(|name| (name.to_owned(), spelling)).collect();
    let (real, named, passed) = (Vec::new(), Vec::new(), Vec::new());
    let style = PathStyle::among(workspace.roots().len());
    let walk = Walk { listings, index, root, style, real, named, passed, sensitive: false };
    let place = walk.along(names)?;
    let real = place.real();
    match protection::of(&real).or_else(|| root.is_own_state(&real).then_some(Protection::Protected)) {
        Some(protection) => Err(ResolveError::Closed { real, protection }),
        None => Ok(place),
    }
}

/// The position of the root of a name.
///
/// # Errors
/// When no root has it.
pub(crate) fn find_root(workspace: &Workspace, name: &str) -> Result<usize, ResolveError> {
    workspace.roots().iter().position(|root| root.name() == name).ok_or_else(|| ResolveError::UnknownRoot {
        found: name.to_owned(),
        known: workspace.roots().iter().map(|root| format!("{:?}", root.name())).collect::<Vec<_>>().join(", "),
    })
}

/// A walk along a path: the real directory that it has reached, and the names as the author would see them.
struct Walk<'w> {
    listings: &'w mut Listings,
    index: usize,
    root: &'w Root,
    style: PathStyle,
    real: Vec<String>,
    named: Vec<String>,
    /// The real paths of the links on the way.
    passed: Vec<String>,
    /// Whether a link on the way has a sensitive name.
    sensitive: bool,
}

impl Walk<'_> {
    fn along(mut self, mut names: VecDeque<(String, Spelling)>) -> Result<Place, ResolveError> {
        while let Some((name, spelling)) = names.pop_front() {
            match name.as_str() {
                "" | "." => continue,
                ".." if self.real.pop().is_some() => continue,
                ".." => {
                    let (at, real) = (self.named.join("/"), self.dir());
                    return Err(ResolveError::Link { at, real, fault: LinkFault::Outside });
                }
                _ => {}
            }
            let path = self.dir();
            let dir = self.listings.open((self.index, self.root), &path).map_err(|errno| refused(&path, errno))?;
            let of_git = self.listings.is_of_git(self.index, &path, dir.as_fd());
            if of_git.map_err(|errno| refused(&path, errno))? {
                return Err(ResolveError::Closed { real: join(&path, &name), protection: Protection::Protected });
            }
            let (name, stat) = self.look_up(&dir, name, spelling)?;
            let at = join(&path, &name);
            if spelling != Spelling::Linked {
                self.named.push(name.clone());
            }
            let Some(stat) = stat else {
                if spelling == Spelling::Linked {
                    return Err(ResolveError::Link { at: self.named.join("/"), real: at, fault: LinkFault::Dangling });
                }
                self.refuse_twins(&dir, &name)?;
                return self.absent(name, names);
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    if let Some(protection) = protection::of_link(&name).or_else(|| protection::of(&at)) {
                        return Err(ResolveError::Closed { real: at, protection });
                    }
                    self.sensitive |= protection::is_sensitive(&at);
                    let target = self.read_link(&dir, &name, &at)?;
                    self.passed.push(at);
                    for part in target.split('/').rev() {
                        names.push_front((part.to_owned(), Spelling::Linked));
                    }
                }
                FileType::Directory => self.real.push(name),
                _ if !names.iter().all(|(name, _)| name.is_empty() || name == ".") => {
                    return Err(ResolveError::NotDirectory(at));
                }
                FileType::RegularFile => return self.place(name, Some((stat.st_dev, stat.st_ino))),
                kind => return Err(ResolveError::NotRegular { real: at, kind: kind_name(kind) }),
            }
        }
        Err(ResolveError::NotRegular { real: self.dir(), kind: "a directory" })
    }

    fn dir(&self) -> String {
        self.real.join("/")
    }

    /// The name on disk that a component means, and what it is there, if it is there.
    fn look_up(
        &mut self,
        dir: &OwnedFd,
        name: String,
        spelling: Spelling,
    ) -> Result<(String, Option<Stat>), ResolveError> {
        let path = self.dir();
        let look = |name: &str| beneath::look_up(dir.as_fd(), name).map_err(|errno| refused(&join(&path, name), errno));
        let found = if spelling == Spelling::Folded { None } else { look(&name)? };
        match spelling {
            Spelling::Folded | Spelling::ExactFirst if found.is_none() => {
                let name = self.fold_match(dir, name)?;
                let found = look(&name)?;
                Ok((name, found))
            }
            _ => Ok((name, found)),
        }
    }

    /// The names in the directory that some file system takes for this one.
    fn twins(&mut self, dir: &OwnedFd, name: &str) -> Result<Vec<String>, ResolveError> {
        let path = self.dir();
        self.listings.twins(self.index, &path, dir.as_fd(), name).map_err(|errno| refused(&path, errno))
    }

    /// The one name on disk that a folded component means; the component itself when there is none.
    fn fold_match(&mut self, dir: &OwnedFd, name: String) -> Result<String, ResolveError> {
        let mut twins = self.twins(dir, &name)?;
        if twins.len() > 1 {
            return Err(ResolveError::Twins { dir: self.dir(), wanted: name, twins });
        }
        Ok(twins.pop().unwrap_or(name))
    }

    /// Refuses a new name that some file system takes for one that is there.
    fn refuse_twins(&mut self, dir: &OwnedFd, name: &str) -> Result<(), ResolveError> {
        let mut twins = self.twins(dir, name)?;
        // A file of this very name was made just now: the commit finds that the name is taken.
        // A file that the batch renames gives its name up.
        twins.retain(|twin| twin != name && !self.listings.is_left(self.index, join(&self.dir(), twin)));
        if twins.is_empty() {
            return Ok(());
        }
        Err(ResolveError::Twins { dir: self.dir(), wanted: name.to_owned(), twins })
    }

    fn read_link(&self, dir: &OwnedFd, name: &str, at: &str) -> Result<String, ResolveError> {
        let fault = |fault| ResolveError::Link { at: at.to_owned(), real: at.to_owned(), fault };
        if self.passed.len() >= MAX_LINKS {
            return Err(fault(LinkFault::Loop));
        }
        let target = rustix::fs::readlinkat(dir, name, Vec::new()).map_err(|errno| refused(at, errno))?;
        let target = target.into_string().map_err(|_| fault(LinkFault::NotUtf8))?;
        if target.starts_with('/') { Err(fault(LinkFault::Absolute)) } else { Ok(target) }
    }

    /// A place whose last components do not exist yet.
    fn absent(mut self, mut name: String, rest: VecDeque<(String, Spelling)>) -> Result<Place, ResolveError> {
        let missing = rest.len();
        for (next, _) in rest {
            self.real.push(std::mem::replace(&mut name, next.clone()));
            self.named.push(next);
        }
        Ok(Place { missing, ..self.place(name, None)? })
    }

    fn place(self, name: String, found: Option<(u64, u64)>) -> Result<Place, ResolveError> {
        let path = WorkspacePath::new(&self.named.join("/"))?;
        let doc_path = format!("{}/{}", self.root.name(), fold(path.as_str()));
        let reported = WorkspacePath::new(&self.style.name(path.as_str(), &doc_path))?;
        let dir = self.dir();
        let real = join(&dir, &name);
        let sensitive = self.sensitive
            || protection::is_sensitive(path.as_str())
            || (real != path.as_str() && protection::is_sensitive(&real));
        let (root, links) = (self.index, self.passed);
        Ok(Place { path, reported, doc_path, root, dir, name, missing: 0, found, sensitive, links })
    }
}

fn refused(at: &str, errno: Errno) -> ResolveError {
    let at = at.to_owned();
    match errno {
        Errno::XDEV => ResolveError::CrossDevice(at),
        Errno::NOTDIR => ResolveError::NotDirectory(at),
        Errno::LOOP => ResolveError::Link { real: at.clone(), at, fault: LinkFault::Loop },
        errno => ResolveError::System { at, errno },
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fs::disk::SystemDisk;
    use aptix_model::path::DocPath;

    /// A document path that is the path on disk costs no directory listing to read; any other, those on its way at most.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn a_path_as_it_is_on_disk_is_read_without_a_listing() {
        let place = tempfile::tempdir().unwrap();
        let ws = place.path().join("ws");
        std::fs::create_dir_all(ws.join("a/Big/c")).unwrap();
        for name in ["a/x.txt", "a/X.TXT", "a/Big/Read.me", "a/Big/c/y"] {
            std::fs::write(ws.join(name), "").unwrap();
        }
        let spec = format!("ws={}", ws.display()).parse().unwrap();
        let workspace = Workspace::hold(&[spec], &place.path().join("state"), Box::new(SystemDisk)).unwrap();
        let key = |path: &str| ValidTarget::DocPath(DocPath::new(path).unwrap());
        let cases = [
            ("ws/a/x.txt", Some("a/x.txt"), 0),
            ("ws/a/big/read.me", Some("a/Big/Read.me"), 2),
            ("ws/a/big/c/y", Some("a/Big/c/y"), 1),
            ("ws/a/big/d/z", Some("a/Big/d/z"), 2),
            ("ws/nowhere/d/z", Some("nowhere/d/z"), 1),
            ("ws/a/x.txt/y", None, 0),
        ];
        for (path, expected, listed) in cases {
            let mut listings = Listings::default();
            let place = resolve_to_read(&workspace, &mut listings, &key(path));
            assert_eq!(place.ok().map(|place| place.real()).as_deref(), expected, "{path}");
            assert_eq!(listings.listed(), listed, "{path}");
        }
        let edited = resolve(&workspace, &mut Listings::default(), &key("ws/a/x.txt"));
        assert!(matches!(edited, Err(ResolveError::Twins { .. })), "an edit does not choose: {edited:?}");
    }
}
