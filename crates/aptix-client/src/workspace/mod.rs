//! The directories a person opened for editing, and the only code that reads or writes in them.

pub mod commit;
pub mod fs;
pub mod keep;
pub mod read;
pub mod roots;
pub mod wall;

use std::fmt;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use commit::displaced_writes::{self, DisplacedWrite, Indexes, Sweeping};
use commit::journal::JournalError;
use commit::recovery::{self, RecoveryError};
use fs::disk::{self, Disk};
use keep::history::{self, Retention};
use roots::root::{self, Root, RootError, RootSpec};
use roots::state::{self, Lock, StateError};

/// One or more roots, held open, with nothing of an earlier commit left half-way.
pub struct Workspace {
    roots: Vec<Root>,
    disk: Box<dyn Disk>,
    past: Mutex<Past>,
}

/// What a workspace has to do when there is nothing else to be done.
#[derive(Default)]
struct Past {
    /// How many bytes the history takes, and the uptime when it was looked at; unknown until then.
    history: Option<(u64, Duration)>,
    newest: Option<history::Newest>,
    sweeping: Sweeping,
    /// Indexes in which every displaced write is named.
    named: Option<Indexes>,
    /// Whether there was time for what can wait.
    has_rested: bool,
}

/// How often the age of the history is looked at.
const HISTORY_LOOK: Duration = Duration::from_hours(1);

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root is not one that can be opened.
    #[error(transparent)]
    Root(#[from] RootError),
    /// No root was given.
    #[error("a workspace has at least one root")]
    NoRoot,
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// An earlier commit cannot be brought to an end.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

impl OpenError {
    /// Tells it to whoever wanted the workspace.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Root(_) | Self::NoRoot => Failure::new(Reason::InvalidRequest, self.to_string())
                .hint("give every root as [NAME=]DIR: an existing directory, outside of every other root"),
            Self::State(error) => error.failure(),
            Self::Recovery(error) => error.failure(),
        }
    }
}

impl Workspace {
    /// Opens roots, and brings to an end whatever an earlier process left half-way in them.
    ///
    /// `state_home` is the directory for the state of programs: `$XDG_STATE_HOME`, or what stands for it.
    ///
    /// # Errors
    /// When a root cannot be opened, two of them overlap, or an earlier commit cannot be brought to an end.
    pub fn open(specs: &[RootSpec], state_home: &Path, disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let state = state_home.join("aptix");
        disk::private_dir(&state).map_err(|source| StateError::System { path: state.clone(), source })?;
        let workspace = Self::hold(specs, &state, disk)?;
        workspace.recover()?;
        Ok(workspace)
    }

    /// Opens roots to look at them and change nothing. Where nothing was ever kept about them there is nothing to bring
    /// to an end, and nothing is made: no state, and no lock. Otherwise as [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_look(specs: &[RootSpec], state_home: &Path, disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let workspace = Self::hold(specs, &state_home.join("aptix"), disk)?;
        if workspace.roots.iter().any(|root| root.state().exists()) {
            workspace.recover()?;
        } else {
            recovery::recover_moved(&workspace)?;
        }
        Ok(workspace)
    }

    fn hold(specs: &[RootSpec], state: &Path, disk: Box<dyn Disk>) -> Result<Self, OpenError> {
        let state = state::real_path(state).map_err(|source| StateError::System { path: state.to_owned(), source })?;
        let roots = specs.iter().map(|spec| Root::open(spec, &state)).collect::<Result<Vec<_>, _>>()?;
        root::check_disjoint(&roots)?;
        if roots.is_empty() {
            return Err(OpenError::NoRoot);
        }
        Ok(Self { roots, disk, past: Mutex::default() })
    }

    fn recover(&self) -> Result<(), OpenError> {
        let _locks = self.lock()?;
        for root in &self.roots {
            if let Some(tmp) = root.state().find_tmp()? {
                let swept = roots::own_file::sweep(self.disk(), tmp.as_fd());
                swept.map_err(|errno| StateError::of(root.state().path().join("tmp"), errno))?;
            }
        }
        match recovery::recover(self) {
            // Who only looks can look; the next commit finds it again.
            Err(error) if error.is_for_lack_of_room() => {
                tracing::warn!(%error, "an applied batch is not cleared away yet")
            }
            recovered => drop(recovered?),
        }
        recovery::recover_moved(self)?;
        self.sweep();
        Ok(())
    }

    /// Forgets the oldest of what was kept for undoing, once it is too much with so many bytes more.
    fn bound_history(&self, added: u64, retention: Retention) {
        let mut past = self.past();
        let known = past.history.filter(|(_, looked)| self.is_recent(*looked));
        let now = known.map(|(bytes, looked)| (bytes + added, looked)).filter(|(bytes, _)| *bytes <= retention.bytes);
        past.history = now.or_else(|| self.look_at_history(retention));
        past.newest = past.newest.take().and_then(|newest| newest.confirmed(self));
    }

    fn look_at_history(&self, retention: Retention) -> Option<(u64, Duration)> {
        let pruned = history::prune::prune(self, retention);
        let pruned = pruned.inspect_err(|error| tracing::warn!(%error, "what was kept for undoing is not bounded"));
        Some((pruned.ok()?, self.disk().uptime()))
    }

    fn is_recent(&self, looked: Duration) -> bool {
        self.disk().uptime().checked_sub(looked).is_some_and(|ago| ago < HISTORY_LOOK)
    }

    /// Looks at the files that batches have displaced. The caller holds the lock.
    fn sweep(&self) {
        let sweeping = displaced_writes::sweep(self);
        self.past().sweeping = sweeping;
    }

    /// Logs the displaced writes that no result has named, when there are new ones.
    fn log_displaced(&self) {
        let is_first = !std::mem::replace(&mut self.past().has_rested, true);
        if (is_first || self.past().sweeping.found > 0)
            && let Ok(writes) = self.displaced_writes()
        {
            for write in writes.into_iter().filter(|write| !write.is_named) {
                tracing::warn!(Code = DisplacedWrite::CODE, "{}", write.warning(self).message);
            }
        }
    }

    /// Removes the oldest displaced files, once they are too much with so many bytes more. The caller holds the lock.
    fn bound_displaced(&self, added: u64) {
        let is_over = {
            let mut past = self.past();
            past.sweeping.bytes += added;
            past.sweeping.is_over() && past.sweeping.is_due()
        };
        if is_over {
            self.sweep();
        }
    }

    /// The displaced writes of the roots that are kept, oldest first: what other processes wrote to files after batches had
    /// replaced or removed them.
    ///
    /// # Errors
    /// When the state directory cannot be read.
    pub fn displaced_writes(&self) -> Result<Vec<DisplacedWrite>, StateError> {
        displaced_writes::list(self).map_err(|errno| self.displaced_failed(errno))
    }

    /// The displaced writes that no result has named yet. From now on they count as named.
    ///
    /// # Errors
    /// When another process holds the workspace for long, or the state directory cannot be read or written.
    pub fn unnamed_displaced_writes(&self) -> Result<Vec<DisplacedWrite>, StateError> {
        let failed = |errno| self.displaced_failed(errno);
        let known = self.past().named.take();
        // Reading the indexes takes as long as there are displaced files.
        let known = known.filter(|indexes| indexes.are_current(self).is_ok_and(|are_current| are_current));
        let indexes = known.map_or_else(|| self.hold_if_named(), |indexes| Ok(Some(indexes))).map_err(failed)?;
        if let Some(indexes) = indexes {
            self.past().named = Some(indexes);
            return Ok(Vec::new());
        }
        let _locks = self.lock()?;
        displaced_writes::take_unnamed(self).map_err(|errno| self.displaced_failed(errno))
    }

    /// The indexes, if results have named every displaced write in them.
    fn hold_if_named(&self) -> Result<Option<Indexes>, rustix::io::Errno> {
        let indexes = Indexes::hold(self)?;
        Ok(displaced_writes::list(self)?.iter().all(|write| write.is_named).then_some(indexes))
    }

    fn displaced_failed(&self, errno: rustix::io::Errno) -> StateError {
        StateError::System { path: self.primary().state().displaced(), source: errno.into() }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what can wait: looks whether another process has written to files that were replaced, and forgets what has become
    /// too old. To be called again and again, with a pause.
    ///
    /// # Errors
    /// When another process holds the workspace for long, or the disk fails.
    pub fn rest(&self, retention: impl FnOnce() -> Option<Retention>) -> Result<(), OpenError> {
        if self.past().sweeping.is_due() && self.roots.iter().any(|root| root.state().displaced().exists()) {
            let locks = self.lock()?;
            self.sweep();
            drop(locks);
            self.log_displaced();
        }
        let is_old = self.past().history.is_none_or(|(_, looked)| !self.is_recent(looked));
        if is_old && let Some(retention) = retention() {
            let _locks = self.lock()?;
            let looked = self.look_at_history(retention);
            self.past().history = looked;
        }
        Ok(())
    }

    /// The roots, in the order given.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    fn root(&self, index: usize) -> Option<&Root> {
        self.roots.get(index)
    }

    fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The root whose state holds the record of a commit, and the outbox.
    #[expect(clippy::indexing_slicing, reason = "a workspace is never opened without a root")]
    fn primary(&self) -> &Root {
        let first = (0..self.roots.len()).min_by_key(|index| self.roots.get(*index).map(Root::path));
        &self.roots[first.unwrap_or_default()]
    }

    /// Takes the commit locks of all roots, in the one order that everybody takes them in.
    fn lock(&self) -> Result<Vec<Lock>, StateError> {
        let mut states: Vec<_> = self.roots.iter().map(|root| root.state()).collect();
        states.sort_by_key(|state| state.path());
        states.into_iter().map(state::StateDir::lock_commit).collect()
    }

    /// Where a record of the workspace's journal stands.
    fn record_path(&self, name: &str) -> PathBuf {
        self.primary().state().path().join("journal").join(name)
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

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        Self::Recovery(error.into())
    }
}
