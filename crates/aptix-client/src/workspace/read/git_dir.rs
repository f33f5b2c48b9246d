//! Detects directories that git takes for its own whatever their name, and obeys; refuses batches that would make one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};

use aptix_model::protection::Protection;
use rustix::io::Errno;

use crate::workspace::fs::{beneath, errno};
use crate::workspace::read::place::Place;
use crate::workspace::read::resolve_error::ResolveError;
use crate::workspace::roots::workspace::Workspace;

/// By these git knows a directory for its own: the first, and either the second or both others.
const NAMES: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Whether git would take a directory for its own that has the names of which `has` is true.
fn is_known_by(has: impl Fn(&str) -> Result<bool, Errno>) -> Result<bool, Errno> {
    let [head, common, objects, refs] = NAMES;
    Ok(has(head)? && (has(common)? || (has(objects)? && has(refs)?)))
}

/// Whether git takes a directory for its own.
pub(crate) fn is_of_git(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    is_known_by(|name| has(dir, name))
}

fn has(dir: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    Ok(beneath::look_up(dir, name)?.is_some())
}

/// Refuses files that together make a directory git's own; the error names one of them.
///
/// # Errors
/// The position of the file, and what is wrong with its place.
pub(crate) fn refuse_made<'p>(
    workspace: &Workspace,
    written: impl Iterator<Item = (usize, &'p Place)>,
) -> Result<(), (usize, ResolveError)> {
    let mut made: BTreeMap<(usize, String), (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (index, place) in written {
        let real = place.real();
        let mut end = 0;
        for part in real.split('/') {
            let dir = real.split_at(end).0.trim_end_matches('/');
            if let Some(name) = NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(part)) {
                made.entry((place.root(), dir.to_owned())).or_insert((index, BTreeSet::new())).1.insert(name);
            }
            end += part.len() + 1;
        }
    }
    for ((root, path), (index, names)) in made {
        let failed = |errno| (index, ResolveError::System { at: path.clone(), errno });
        let root = workspace.root(root).ok_or_else(|| failed(Errno::NOENT))?;
        let dir = errno::optional(beneath::open_dir(root.dir(), &path)).map_err(failed)?;
        let is_there = |name: &str| match &dir {
            _ if names.contains(name) => Ok(true),
            Some(dir) => has(dir.as_fd(), name),
            None => Ok(false),
        };
        if is_known_by(is_there).map_err(failed)? {
            return Err((index, ResolveError::Closed { real: path, protection: Protection::Protected }));
        }
    }
    Ok(())
}
