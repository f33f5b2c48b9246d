//! The names in directories, by the form in which some file systems take two of them for one.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use aptix_model::path::fold;
use rustix::fs::Dir;
use rustix::io::Errno;

use super::{disk, git_dir};

/// Directories that were listed while one batch is resolved, by root and real path.
#[derive(Debug, Default)]
pub struct Listings {
    of_git: HashMap<(usize, String), bool>,
    known: HashMap<(usize, String), HashMap<String, Vec<String>>>,
}

impl Listings {
    /// Whether git takes a directory for its own.
    pub(super) fn is_of_git(&mut self, root: usize, path: &str, dir: BorrowedFd<'_>) -> Result<bool, Errno> {
        if let Some(known) = self.of_git.get(&(root, path.to_owned())) {
            return Ok(*known);
        }
        let found = git_dir::is_of_git(dir)?;
        self.of_git.insert((root, path.to_owned()), found);
        Ok(found)
    }

    /// The names in a directory that fold to the same text as this one, itself included, in order.
    ///
    /// Names that are not UTF-8 cannot be meant by anybody and are left out.
    pub(super) fn twins(
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
    for entry in Dir::new(disk::open_readable(dir)?)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !matches!(name, "." | "..") {
            names.entry(fold(name)).or_default().push(name.to_owned());
        }
    }
    names.values_mut().for_each(|twins| twins.sort_unstable());
    Ok(names)
}
