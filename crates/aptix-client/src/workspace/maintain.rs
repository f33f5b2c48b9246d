//! Does what can wait: compares displaced files, and forgets what has become too old.

use crate::workspace::commit::displaced_writes::list::DisplacedWrite;
use crate::workspace::commit::displaced_writes::sweep::{self, Sweeping};
use crate::workspace::keep::history::prune::{self, Retention};
use crate::workspace::keep::{prepared, refused};
use crate::workspace::open::OpenError;
use crate::workspace::roots::state::Part;
use crate::workspace::roots::workspace::Workspace;

/// Whether this process has logged displaced writes before.
#[derive(Default)]
struct HasLogged(bool);

impl Workspace {
    /// Looks whether another process has written to files that were replaced, and forgets what has become too old. To be
    /// called again and again, with a pause.
    ///
    /// # Errors
    /// When another process holds the workspace for long, or the disk fails.
    pub fn maintain(&self, retention: impl FnOnce() -> Option<Retention>) -> Result<(), OpenError> {
        let is_due = self.with_cache(|sweeping: &mut Sweeping| sweeping.is_due());
        if is_due && self.roots().iter().any(|root| root.state().part(Part::DISPLACED).exists()) {
            let locks = self.lock()?;
            sweep::sweep(self);
            drop(locks);
            log_displaced(self);
        }
        if prune::is_due(self)
            && let Some(retention) = retention()
        {
            let _locks = self.lock()?;
            prune::look(self, retention);
            let swept = refused::sweep(self.disk(), self.primary().state(), (retention.age, retention.bytes));
            if let Err(error) = swept {
                tracing::warn!(%error, "batches that were refused are kept longer");
            }
            if let Err(error) = prepared::sweep(self.disk(), self.primary().state()) {
                tracing::warn!(%error, "prepared edits that expired are kept longer");
            }
        }
        Ok(())
    }
}

/// Logs the displaced writes that no result has named, when there are new ones.
fn log_displaced(workspace: &Workspace) {
    let is_first = !workspace.with_cache(|HasLogged(has_logged)| std::mem::replace(has_logged, true));
    if (is_first || workspace.with_cache(|sweeping: &mut Sweeping| sweeping.found) > 0)
        && let Ok(writes) = workspace.displaced_writes()
    {
        for write in writes.into_iter().filter(|write| !write.is_named) {
            tracing::warn!(Code = DisplacedWrite::CODE, "{}", write.warning(workspace).message);
        }
    }
}
