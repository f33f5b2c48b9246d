//! Directories of a few roots, held open while one commit needs them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::workspace::fs::beneath;

/// How many directories are remembered in which names of our own were made.
const MARKED: usize = 64;

/// The roots of a record, by their positions in it, and directories beneath them.
pub(crate) struct DirCache {
    roots: Vec<Arc<OwnedFd>>,
    /// The directory that was opened last.
    held: RefCell<Option<Held>>,
    /// The directories in which names of our own were made, by root and path: to be cleared wherever they are moved.
    marked: RefCell<BTreeMap<(usize, String), Arc<OwnedFd>>>,
}

struct Held {
    root: usize,
    path: String,
    dir: Arc<OwnedFd>,
}

impl DirCache {
    pub(crate) fn new(roots: Vec<Arc<OwnedFd>>) -> Self {
        Self { roots, held: RefCell::new(None), marked: RefCell::new(BTreeMap::new()) }
    }

    /// Lets go of the directory that is held, so that none is taken for one that has its path by now.
    pub(crate) fn let_go(&self) {
        self.held.replace(None);
    }

    /// Opens a directory, unless it is a root or the one that was opened last.
    pub(crate) fn open_dir(&self, root: usize, path: &str) -> Result<Arc<OwnedFd>, Errno> {
        let top = self.roots.get(root).ok_or(Errno::NOENT)?;
        if path.is_empty() {
            return Ok(Arc::clone(top));
        }
        let is_held = |held: &&Held| held.root == root && held.path == path;
        if let Some(held) = self.held.borrow().as_ref().filter(is_held) {
            return Ok(Arc::clone(&held.dir));
        }
        let dir = Arc::new(beneath::open_dir(top.as_fd(), path)?);
        self.held.replace(Some(Held { root, path: path.to_owned(), dir: Arc::clone(&dir) }));
        Ok(dir)
    }

    /// Remembers a directory in which a name of our own is about to be made, unless there are many; returns whether it is
    /// the one that was remembered for its path before.
    pub(crate) fn mark(&self, root: usize, path: &str, dir: &Arc<OwnedFd>) -> Result<bool, Errno> {
        let mut marked = self.marked.borrow_mut();
        let Some(known) = marked.get(&(root, path.to_owned())) else {
            if marked.len() < MARKED {
                marked.insert((root, path.to_owned()), Arc::clone(dir));
            }
            return Ok(true);
        };
        Ok(Arc::ptr_eq(known, dir) || {
            let [known, dir] = [known, dir].map(|dir| rustix::fs::fstat(dir).map(|stat| (stat.st_dev, stat.st_ino)));
            known? == dir?
        })
    }

    /// The directory in which names of our own were made for a path, wherever it is now; else the one that has the path.
    pub(crate) fn find_marked(&self, root: usize, path: &str) -> Result<Option<Arc<OwnedFd>>, Errno> {
        let marked = self.marked.borrow().get(&(root, path.to_owned())).map(Arc::clone);
        marked.map_or_else(|| self.find_dir(root, path), |dir| Ok(Some(dir)))
    }

    /// As [`Self::open_dir`]; `None` when another process removed or replaced the directory.
    pub(crate) fn find_dir(&self, root: usize, path: &str) -> Result<Option<Arc<OwnedFd>>, Errno> {
        match self.open_dir(root, path) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}
