//! What each workspace keeps of batches that have ended, as its operator configured it, and the task that removes the rest.
//!
//! The task works in rounds. A round makes one bounded call to the store for each workspace that has limits; what is left over
//! is removed by the next round, which begins after a pause of at least the time that this one took.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::id::{Revision, WorkspaceId};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use crate::fleet::Fleet;
use crate::metrics;
use crate::store::retention::{Age, Limits, Retained, Retention};
use crate::store::{Store, StoreError};

/// Workspaces that are read at once.
const PAGE: usize = 256;

/// The least pause before a round that goes on with what the one before left over.
const PAUSE: Duration = Duration::from_millis(100);

/// What workspaces keep. By default everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RetentionRules {
    /// The limits of every workspace that has none of its own.
    pub usual: Limits,
    /// The limits of these workspaces.
    pub workspaces: BTreeMap<WorkspaceId, Limits>,
}

impl RetentionRules {
    /// The limits of one workspace.
    #[must_use]
    pub fn of(&self, workspace: &WorkspaceId) -> Limits {
        *self.workspaces.get(workspace).unwrap_or(&self.usual)
    }

    /// Whether no workspace has a limit.
    #[must_use]
    pub fn keep_all(&self) -> bool {
        self.usual.keep_all() && self.workspaces.values().all(Limits::keep_all)
    }
}

/// The rules of now: the configuration may be read again.
#[derive(Clone, Debug)]
pub struct CurrentRetention(watch::Receiver<RetentionRules>);

impl From<watch::Receiver<RetentionRules>> for CurrentRetention {
    fn from(current: watch::Receiver<RetentionRules>) -> Self {
        Self(current)
    }
}

/// They stay as they are.
impl From<RetentionRules> for CurrentRetention {
    fn from(fixed: RetentionRules) -> Self {
        Self(watch::channel(fixed).1)
    }
}

/// Everything is kept.
impl Default for CurrentRetention {
    fn default() -> Self {
        RetentionRules::default().into()
    }
}

/// What was removed of one workspace, or would be, and what it keeps then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The limits that counted.
    pub limits: Limits,
    /// What was removed, or would be.
    pub retained: Retained,
    /// The newest event of the workspace; 0 if there was none yet.
    pub newest: Revision,
    /// Its batches that have not ended.
    pub open_batches: u64,
}

/// Removes what workspaces keep no longer.
pub struct Retainer {
    store: Arc<dyn Store>,
    rules: CurrentRetention,
    fleet: Arc<Fleet>,
    /// Up to when the time that the store was served is counted in its age; `None` before the first count, and while another server
    /// counts it.
    counted: Mutex<Option<Instant>>,
}

impl fmt::Debug for Retainer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Retainer").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Retainer {
    /// Removes from this store, by these rules, what workspaces keep no longer.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, rules: CurrentRetention, fleet: Arc<Fleet>) -> Arc<Self> {
        Arc::new(Self { store, rules, fleet, counted: Mutex::new(None) })
    }

    /// Removes at these intervals what workspaces keep no longer, while no other server on the store has to.
    pub async fn run(&self, every: Duration) -> Infallible {
        let mut pause = every;
        loop {
            sleep(pause).await;
            let began = Instant::now();
            if !self.fleet.is_first() {
                *self.counted.lock().await = None;
                pause = every;
                continue;
            }
            let has_more = self.round().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "what workspaces keep no longer could not be removed");
                false
            });
            // Writers have the store to themselves for at least as long as the round took.
            pause = began.elapsed().max(if has_more { PAUSE } else { every });
        }
    }

    /// Removes a bounded part of what each workspace keeps no longer; answers whether any of them has more.
    async fn round(&self) -> Result<bool, StoreError> {
        if self.rules.0.borrow().keep_all() {
            return Ok(false);
        }
        let now = self.age().await?;
        let (mut has_more, mut after) = (false, None);
        loop {
            let page = self.store.workspaces(after, PAGE).await?;
            for (workspace, _) in &page {
                let limits = self.rules.0.borrow().of(workspace);
                if limits.keep_all() {
                    continue;
                }
                // A damaged record of one workspace hinders no other.
                match self.remove(workspace.clone(), limits, now).await {
                    Ok(retained) => has_more |= retained.has_more,
                    Err(error) if error.will_pass() => return Err(error),
                    Err(error) => tracing::warn!(%workspace, %error, "what it keeps no longer could not be removed"),
                }
            }
            after = page.last().map(|(workspace, _)| workspace.clone());
            if page.len() < PAGE {
                return Ok(has_more);
            }
        }
    }

    /// Removes a bounded part of what one workspace keeps no longer; `None` if there is no such workspace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn retain(&self, workspace: WorkspaceId) -> Result<Option<Outcome>, StoreError> {
        let Some(counts) = self.store.counts(workspace.clone()).await? else { return Ok(None) };
        let limits = self.rules.0.borrow().of(&workspace);
        let now = self.age().await?;
        let retained = self.remove(workspace, limits, now).await?;
        Ok(Some(Outcome { limits, retained, newest: counts.newest, open_batches: counts.open_batches }))
    }

    /// Counts what one workspace would lose, by its limits or by others, and removes nothing; `None` if there is no such workspace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rehearse(
        &self,
        workspace: WorkspaceId,
        others: Option<Limits>,
    ) -> Result<Option<Outcome>, StoreError> {
        let Some(counts) = self.store.counts(workspace.clone()).await? else { return Ok(None) };
        let limits = others.unwrap_or_else(|| self.rules.0.borrow().of(&workspace));
        let now = self.age().await?;
        let mut retained = self.store.retain(Retention { workspace, limits, now, is_rehearsal: true }).await?;
        // The store answers the oldest event that there is before.
        retained.oldest = Revision(retained.oldest.0.saturating_add(retained.events));
        Ok(Some(Outcome { limits, retained, newest: counts.newest, open_batches: counts.open_batches }))
    }

    async fn remove(&self, workspace: WorkspaceId, limits: Limits, now: Age) -> Result<Retained, StoreError> {
        let order = Retention { workspace: workspace.clone(), limits, now, is_rehearsal: false };
        let retained = self.store.retain(order).await?;
        let Retained { contents, records, events, .. } = retained;
        if contents + records + events > 0 {
            for (kind, count) in [("content", contents), ("record", records), ("event", events)] {
                metrics::retention_removed(kind, count);
            }
            tracing::info!(%workspace, contents, records, events, "what the workspace keeps no longer was removed");
        }
        Ok(retained)
    }

    /// Counts the time since the last count in the age of the store, and answers it.
    async fn age(&self) -> Result<Age, StoreError> {
        let mut counted = self.counted.lock().await;
        let now = Instant::now();
        let is_first = self.fleet.is_first();
        let passed = counted.filter(|_| is_first).map(|before| now.saturating_duration_since(before));
        let age = self.store.grow_older(passed).await?;
        *counted = is_first.then_some(now);
        Ok(age)
    }
}
