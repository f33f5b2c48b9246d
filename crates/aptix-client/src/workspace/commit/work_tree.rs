//! The files that a record is about: its roots, the disk they are on, and where displaced files go.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::workspace::commit::displaced_writes::displacer::Displacer;
use crate::workspace::fs::dir_cache::DirCache;
use crate::workspace::fs::disk::Disk;
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// Where a record is carried out or rolled back.
pub(crate) struct WorkTree<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dirs: DirCache,
    /// Takes what is displaced out of the roots.
    pub(crate) displacer: Displacer<'a>,
}

impl<'a> WorkTree<'a> {
    /// Of roots, each with its state.
    pub(crate) fn new(disk: &'a dyn Disk, roots: Vec<(Arc<OwnedFd>, StateDir)>) -> Self {
        let (roots, states) = roots.into_iter().unzip();
        Self { disk, dirs: DirCache::new(roots), displacer: Displacer::new(disk, states) }
    }

    /// Of the roots of a workspace, for a commit whose own result names the copies that are kept beside files.
    pub(crate) fn of(workspace: &'a Workspace) -> Self {
        let roots = workspace.roots().iter().map(|root| (root.held(), root.state().clone()));
        let mut tree = Self::new(workspace.disk(), roots.collect());
        tree.displacer.names_copies = true;
        tree
    }
}
