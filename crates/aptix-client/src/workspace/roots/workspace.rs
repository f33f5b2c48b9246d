//! A workspace: one or more roots held open, and caches of what is known of them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::workspace::fs::disk::Disk;
use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::root::{self, Root, RootError, RootSpec};
use crate::workspace::roots::state::{self, StateDir, StateError};

/// What the rooms above remember between calls: one value of each type that was asked for.
type Caches = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// One or more roots, held open.
pub struct Workspace {
    roots: Vec<Root>,
    disk: Box<dyn Disk>,
    caches: Mutex<Caches>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Why roots cannot be held open.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    State(#[from] StateError),
}

impl Workspace {
    /// Holds roots open; `state` is the directory under which Aptix keeps the state of all roots. Writes nothing.
    pub(crate) fn hold(specs: &[RootSpec], state: &Path, disk: Box<dyn Disk>) -> Result<Self, HoldError> {
        let state = state::real_path(state).map_err(|source| StateError::System { path: state.to_owned(), source })?;
        let roots = specs.iter().map(|spec| Root::open(spec, &state)).collect::<Result<Vec<_>, _>>()?;
        root::check_disjoint(&roots)?;
        if roots.is_empty() {
            return Err(RootError::NoRoot.into());
        }
        Ok(Self { roots, disk, caches: Mutex::default() })
    }

    /// Works on the cache of a type, empty at first, while no other thread does.
    pub(crate) fn with_cache<T: Default + Send + 'static, R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Mutex::new(T::default())));
        // Each is found by the type that it was made of.
        let cache: Arc<Mutex<T>> = Arc::clone(cache).downcast().unwrap_or_default();
        drop(caches);
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut cache)
    }

    /// The roots, in the order given.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub(crate) fn root(&self, index: usize) -> Option<&Root> {
        self.roots.get(index)
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The root whose state holds the record of a commit, and the outbox.
    #[expect(clippy::indexing_slicing, reason = "a workspace is never opened without a root")]
    pub(crate) fn primary(&self) -> &Root {
        let first = (0..self.roots.len()).min_by_key(|index| self.roots.get(*index).map(Root::path));
        &self.roots[first.unwrap_or_default()]
    }

    /// Takes the commit locks of all roots, in the one order in which every process takes them.
    pub(crate) fn lock(&self) -> Result<Vec<Lock>, StateError> {
        let mut states: Vec<_> = self.roots.iter().map(|root| root.state()).collect();
        states.sort_by_key(|state| state.path());
        states.into_iter().map(StateDir::lock_commit).collect()
    }

    /// Takes the lock that keeps every other agent away from these roots, for as long as it is held.
    ///
    /// # Errors
    /// When another agent serves one of the roots, a directory in one, or one around it.
    pub fn lock_agent(&self) -> Result<Vec<Lock>, StateError> {
        let mut roots: Vec<_> = self.roots.iter().collect();
        roots.sort_by_key(|root| root.state().path());
        roots.into_iter().map(|root| root.state().lock_agent(root.path())).collect()
    }
}
