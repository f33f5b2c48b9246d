//! Follows what the other servers on the store do: readers here learn of events that another server stored, and leases that were taken
//! over there end here. Hints tell at once; looking at intervals tells what no hint did.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::pending;

use aptix_model::id::WorkspaceId;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{MissedTickBehavior, interval};

use super::Dispatcher;
use crate::store::StoreError;
use crate::store::fleet::{Hint, Hints, Seen};

/// Workspaces that are looked at with one question to the store.
const AT_ONCE: usize = 1000;

/// What was found when it was looked last.
#[derive(Default)]
struct Known {
    /// How far each workspace had come.
    workspaces: HashMap<WorkspaceId, Option<Seen>>,
    tokens: Option<u64>,
}

impl Dispatcher {
    /// Follows the other servers, for as long as it is polled.
    pub async fn follow(&self) -> Infallible {
        if !self.fleet.is_shared() {
            return pending().await;
        }
        let mut hints = self.store.hints();
        let mut looks = interval(self.fleet.options().poll);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = Known::default();
        loop {
            tokio::select! {
                hint = next(&mut hints) => {
                    let (workspaces, is_lost) = self.take(hint, &mut hints);
                    for some in workspaces.chunks(AT_ONCE) {
                        self.look_logged(&mut known, (some.to_vec(), true)).await;
                    }
                    if is_lost {
                        self.fleet.look_at_tokens();
                        looks.reset_immediately();
                    }
                }
                _ = looks.tick() => {
                    let waited = self.wakes.workspaces();
                    let waited_for: HashSet<_> = waited.iter().collect();
                    known.workspaces.retain(|workspace, _| waited_for.contains(workspace));
                    // Tokens are looked at also where nothing is waited for.
                    self.look_logged(&mut known, (waited.iter().take(AT_ONCE).cloned().collect(), false)).await;
                    for some in waited.chunks(AT_ONCE).skip(1) {
                        self.look_logged(&mut known, (some.to_vec(), false)).await;
                    }
                }
            }
        }
    }

    /// Takes a hint, and those that wait behind it. Answers the workspaces that are to be looked at, of those that somebody waits for,
    /// and whether hints were lost.
    fn take(&self, hint: Hint, hints: &mut Option<Hints>) -> (Vec<WorkspaceId>, bool) {
        let (mut workspaces, mut is_lost) = (HashSet::new(), false);
        let mut next = Some(hint);
        while let Some(hint) = next {
            match hint {
                Hint::Event(workspace, batch) => self.wakes.wake(&workspace, batch),
                Hint::Workspace(workspace) if self.wakes.has(&workspace) => drop(workspaces.insert(workspace)),
                Hint::Workspace(_) => {}
                Hint::Tokens => self.fleet.look_at_tokens(),
                Hint::Anything => is_lost = true,
            }
            next = match hints.as_mut().map(Hints::try_recv) {
                Some(Ok(hint)) => Some(hint),
                Some(Err(TryRecvError::Lagged(_))) => {
                    is_lost = true;
                    None
                }
                _ => None,
            };
        }
        (workspaces.into_iter().collect(), is_lost)
    }

    async fn look_logged(&self, known: &mut Known, wanted: (Vec<WorkspaceId>, bool)) {
        if let Err(error) = self.look(known, wanted).await {
            tracing::debug!(%error, "what other servers changed cannot be read");
        }
    }

    /// Wakes who waits for something of workspaces that changed, or of which a hint says so, and ends leases and waits that others
    /// ended.
    async fn look(
        &self,
        known: &mut Known,
        (workspaces, is_hinted): (Vec<WorkspaceId>, bool),
    ) -> Result<(), StoreError> {
        let held: Vec<_> = workspaces.iter().map(|workspace| self.leases.epoch(workspace)).collect();
        let looked = self.store.look(workspaces.clone()).await?;
        // Those of the first look may differ from what this server read when it started.
        if known.tokens.replace(looked.tokens) != Some(looked.tokens) {
            self.fleet.look_at_tokens();
        }
        for ((workspace, held), seen) in workspaces.into_iter().zip(held).zip(looked.seen) {
            let former = known.workspaces.insert(workspace.clone(), seen);
            // The lease that is held here was granted before it was looked.
            let is_lost = seen.is_some_and(|seen| held > Some(seen.lease.epoch));
            if former == Some(seen) && !is_hinted && !is_lost {
                continue;
            }
            if let Some(seen) = seen {
                self.leases.supersede(&workspace, seen.lease);
            }
            match changed(former.flatten(), seen, is_hinted || held.is_some()) {
                Change::Deleted => {
                    self.leases.forget(&workspace);
                    self.wakes.end_workspace(&workspace);
                }
                Change::SetBack => self.wakes.set_back(&workspace),
                Change::Other if is_lost => self.wakes.set_back(&workspace),
                Change::Other => self.wakes.wake_all_of(&workspace),
            }
        }
        Ok(())
    }
}

/// What became of a workspace.
enum Change {
    Deleted,
    /// Its history went back.
    SetBack,
    Other,
}

fn changed(former: Option<Seen>, seen: Option<Seen>, is_hinted: bool) -> Change {
    match (former, seen) {
        (Some(former), Some(seen)) if seen.instance != former.instance => Change::Deleted,
        (Some(former), Some(seen)) if seen.newest < former.newest || seen.lease.epoch < former.lease.epoch => {
            Change::SetBack
        }
        (Some(_), None) => Change::Deleted,
        // One that somebody waits for may come to be. A hint is about one that there is, or was.
        (None, None) if is_hinted => Change::Deleted,
        _ => Change::Other,
    }
}

/// The next hint; none ever comes where the store gives none.
async fn next(hints: &mut Option<Hints>) -> Hint {
    let Some(receiver) = hints else { return pending().await };
    match receiver.recv().await {
        Ok(hint) => hint,
        Err(RecvError::Lagged(_)) => Hint::Anything,
        Err(RecvError::Closed) => {
            *hints = None;
            pending().await
        }
    }
}
