//! Opens a workspace, and recovers what an earlier process left half-way in it.

use std::os::fd::AsFd;
use std::path::Path;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::workspace::commit::commit_error::RecoveryError;
use crate::workspace::commit::displaced_writes::sweep;
use crate::workspace::commit::recovery;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::ending::Keeping;
#[cfg(feature = "mcp")]
use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::own_file;
use crate::workspace::roots::root::{RootError, RootSpec};
use crate::workspace::roots::state::{Part, StateError};
use crate::workspace::roots::workspace::{HoldError, Workspace};

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root is not one that can be opened.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// An earlier commit cannot be brought to an end.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

impl OpenError {
    /// The failure that the caller gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Root(_) => Failure::new(Reason::InvalidRequest, self.to_string())
                .hint("give every root as [NAME=]DIR: an existing directory, outside of every other root"),
            Self::State(error) => error.failure(),
            Self::Recovery(error) => error.failure(),
        }
    }
}

impl Workspace {
    /// Opens roots, and recovers what an earlier process left half-way in them.
    ///
    /// `state_home` is the directory for the state of programs: `$XDG_STATE_HOME`, or its default.
    ///
    /// # Errors
    /// When a root cannot be opened, two of them overlap, or an earlier commit cannot be recovered.
    pub fn open(specs: &[RootSpec], state_home: &Path, disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let state = state_home.join("aptix");
        disk::private_dir(&state).map_err(|source| StateError::System { path: state.clone(), source })?;
        let workspace = Self::hold(specs, &state, disk)?;
        workspace.recover()?;
        Ok(workspace)
    }

    /// Opens roots to read them and change nothing. Where nothing was ever kept about them there is nothing to recover, and
    /// nothing is made: no state, and no lock. Otherwise as [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_look(specs: &[RootSpec], state_home: &Path, disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let workspace = Self::hold(specs, &state_home.join("aptix"), disk)?;
        if workspace.roots().iter().any(|root| root.state().exists()) {
            workspace.recover()?;
        } else {
            // A look leaves nothing.
            recovery::recover_moved(&workspace, &Keeping, false)?;
        }
        Ok(workspace)
    }

    fn recover(&self) -> Result<(), OpenError> {
        let _locks = self.lock()?;
        for root in self.roots() {
            if let Some(tmp) = root.state().find(Part::TMP)? {
                let swept = own_file::sweep(self.disk(), tmp.as_fd());
                swept.map_err(root.state().failed(Part::TMP, "clear"))?;
            }
        }
        match recovery::recover(self, &Keeping) {
            // Reading is possible; the next commit finds it again.
            Err(error) if error.is_for_lack_of_room() => {
                tracing::warn!(%error, "an applied batch is not cleared away yet")
            }
            recovered => drop(recovered?),
        }
        recovery::recover_moved(self, &Keeping, true)?;
        sweep::sweep(self);
        Ok(())
    }
}

#[cfg(feature = "mcp")]
impl Workspace {
    /// Takes the lock of the prepared edits, and recovers a commit that another process left half-way: it may have applied one.
    pub(crate) fn lock_prepared(&self) -> Result<Lock, OpenError> {
        let lock = self.primary().state().lock_prepared()?;
        let _locks = self.lock()?;
        recovery::recover(self, &Keeping)?;
        Ok(lock)
    }
}

impl From<HoldError> for OpenError {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Root(error) => Self::Root(error),
            HoldError::State(error) => Self::State(error),
        }
    }
}
