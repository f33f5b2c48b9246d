//! Directories that are looked at more than once, and their names, by the form in which some file systems take two of them for one.

use std::collections::{HashMap, HashSet};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use aptix_model::path::fold;
use rustix::io::Errno;

use crate::workspace::fs::{beneath, disk};
use crate::workspace::read::git_dir;
use crate::workspace::roots::root::Root;

/// How many directories are held open at a time.
const HELD: usize = 64;

/// Directories that were looked at while one batch is resolved, by root and real path.
#[derive(Debug, Default)]
pub struct Listings {
    held: HashMap<(usize, String), Rc<OwnedFd>>,
    of_git: HashMap<(usize, String), bool>,
    known: HashMap<(usize, String), HashMap<String, Vec<String>>>,
    /// The real paths of files that the batch renames, by root.
    leaving: HashSet<(usize, String)>,
}

impl Listings {
    /// Opens a directory, unless it is held. Whether it has changed since is checked before anything is committed.
    pub(crate) fn open(&mut self, root: (usize, &Root), path: &str) -> Result<Rc<OwnedFd>, Errno> {
        let (index, root) = root;
        let key = (index, path.to_owned());
        if let Some(held) = self.held.get(&key) {
            return Ok(Rc::clone(held));
        }
        let dir = Rc::new(beneath::open_dir(root.dir(), path)?);
        if self.held.len() >= HELD {
            self.held.clear();
        }
        self.held.insert(key, Rc::clone(&dir));
        Ok(dir)
    }

    /// Whether git takes a directory for its own.
    pub(crate) fn is_of_git(&mut self, root: usize, path: &str, dir: BorrowedFd<'_>) -> Result<bool, Errno> {
        if let Some(known) = self.of_git.get(&(root, path.to_owned())) {
            return Ok(*known);
        }
        let found = git_dir::is_of_git(dir)?;
        self.of_git.insert((root, path.to_owned()), found);
        Ok(found)
    }

    /// Notes that the batch renames the file at a real path in a root: its name is free for another file.
    pub fn leave(&mut self, root: usize, real: String) {
        self.leaving.insert((root, real));
    }

    /// Whether the batch renames the file at a real path in a root.
    pub(crate) fn is_left(&self, root: usize, real: String) -> bool {
        self.leaving.contains(&(root, real))
    }

    /// How many directories were listed.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> usize {
        self.known.len()
    }

    /// The names in a directory that fold to the same text as this one, itself included, in order. Names that are not UTF-8
    /// are left out: no path can have them.
    pub(crate) fn twins(
        &mut self,
        root: usize,
        path: &str,
        dir: BorrowedFd<'_>,
        name: &str,
    ) -> Result<Vec<String>, Errno> {
        let key = (root, path.to_owned());
        if !self.known.contains_key(&key) {
            self.known.insert(key.clone(), list(dir)?);
        }
        Ok(self.known.get(&key).and_then(|names| names.get(&fold(name))).cloned().unwrap_or_default())
    }
}

fn list(dir: BorrowedFd<'_>) -> Result<HashMap<String, Vec<String>>, Errno> {
    let mut names: HashMap<String, Vec<String>> = HashMap::new();
    for name in disk::names(dir)? {
        names.entry(fold(&name)).or_default().push(name);
    }
    Ok(names)
}
