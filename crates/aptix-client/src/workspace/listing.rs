//! The names in directories, by the form in which some file systems take two of them for one.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use aptix_model::path::fold;
use rustix::fs::Dir;
use rustix::io::Errno;

use super::disk;

/// Directories that were listed while one batch is resolved, by root and real path.
#[derive(Debug, Default)]
pub struct Listings {
    known: HashMap<(usize, String), HashMap<String, Vec<String>>>,
}

impl Listings {
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
