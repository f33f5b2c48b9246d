//! Refuses batches whose files would make a directory of git's own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;

use aptix_model::protection::Protection;
use rustix::io::Errno;

use crate::workspace::fs::beneath;
use crate::workspace::read::git_dir::{NAMES, has, is_known_by};
use crate::workspace::read::place::Place;
use crate::workspace::read::resolve_error::ResolveError;
use crate::workspace::roots::workspace::Workspace;

/// Refuses files that, together, make such a directory of one that is none; tells which of them is one of those.
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
        let dir = match beneath::open_dir(root.dir(), &path) {
            Ok(dir) => Some(dir),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(failed(errno)),
        };
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
