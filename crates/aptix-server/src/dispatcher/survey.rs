//! What there is in all workspaces together.

use aptix_model::record::UnixMillis;

use super::Dispatcher;
use crate::metrics::{self, Metric};
use crate::store::{Space, StoreError};

/// Entries read at once.
const PAGE: usize = 256;

/// What there is in all workspaces together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// Workspaces.
    pub workspaces: u64,
    /// Of these, those whose counts cannot be read.
    pub damaged_workspaces: u64,
    /// Batches that have not ended.
    pub open_batches: u64,
    /// Of these, those that expire unless their owner or a person lets them be applied.
    pub waiting_batches: u64,
    /// The space of the store's file system, if it has one.
    pub space: Option<Space>,
    /// Bytes of that space that stay free.
    pub reserve: u64,
}

impl Survey {
    /// Shows it in the metrics.
    pub fn publish(self) {
        if let Some(Space { free, size }) = self.space {
            Metric::DiskFree.set(&[], metrics::number(free));
            Metric::DiskSize.set(&[], metrics::number(size));
        }
        Metric::Workspaces.set(&[], metrics::number(self.workspaces));
        Metric::OpenBatches.set(&[], metrics::number(self.open_batches));
        Metric::WaitingBatches.set(&[], metrics::number(self.waiting_batches));
    }
}

impl Dispatcher {
    /// How many workspaces an agent serves.
    #[must_use]
    pub fn served_workspaces(&self) -> u64 {
        self.leases.count()
    }

    /// Counts what there is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn survey(&self) -> Result<Survey, StoreError> {
        let space = self.store.space().await?;
        let reserve = space.map_or(0, |space| self.disk.reserve_of(space));
        let mut survey = Survey { space, reserve, ..Survey::default() };
        let mut after = None;
        loop {
            let page = self.store.workspaces(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(workspace, _)| workspace.clone());
            for (_, counts) in page {
                survey.workspaces += 1;
                match counts {
                    Some(counts) => survey.open_batches += counts.open_batches,
                    None => survey.damaged_workspaces += 1,
                }
            }
            if is_last {
                break;
            }
        }
        let mut after = None;
        loop {
            let page = self.store.due(UnixMillis(u64::MAX), after, PAGE).await?;
            survey.waiting_batches += page.len() as u64;
            after = page.last().map(|due| due.key);
            if page.len() < PAGE {
                return Ok(survey);
            }
        }
    }
}
