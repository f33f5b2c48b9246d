//! How the calls of the store read and write. A workspace that is being deleted has nothing to be read, and takes no write.

use aptix_model::id::WorkspaceId;

use super::EmbeddedStore;
use super::committer::{Flush, Job, Put, View};
use super::instant::Instant;
use crate::cpu_pool::Turnkeeper;
use crate::store::{Answer, StoreError};

impl EmbeddedStore {
    /// A write: it decides on what there is, and is answered when its changes are written.
    pub(super) fn write<T: Send + 'static>(
        &self,
        flush: Flush,
        work: impl FnOnce(&View<'_>) -> Result<(T, Vec<Put>), StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        let waited = Turnkeeper::waited();
        Box::pin(async move {
            let (job, answer) = Job::write(flush, work);
            self.groups.send(&self.jobs, job, waited).await.map_err(|_| self.gone())?;
            answer.await.map_err(|_| self.gone())?
        })
    }

    /// A write in one workspace; it is refused while the workspace is being deleted.
    pub(super) fn write_in<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        flush: Flush,
        work: impl FnOnce(&View<'_>, &WorkspaceId) -> Result<(T, Vec<Put>), StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        self.write(flush, move |view| match view.is_deleted(&workspace)? {
            true => Err(StoreError::BeingDeleted { workspace }),
            false => work(view, &workspace),
        })
    }

    /// Why no more writes are taken.
    pub(super) fn gone(&self) -> StoreError {
        if self.closing.is_cancelled() {
            StoreError::Closed
        } else {
            StoreError::ReadOnly { cause: "its writer ended unasked".to_owned() }
        }
    }

    /// A read of everything as it is at one instant.
    pub(super) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Instant<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        let tables = self.tables.clone();
        let reading = tokio::task::spawn_blocking(move || read(&tables.now()));
        Box::pin(async move {
            reading.await.map_err(|error| StoreError::Failed { action: "read", cause: error.to_string() })?
        })
    }

    /// A read about one workspace. One that is being deleted has nothing.
    pub(super) fn read_in<T: Default + Send + 'static>(
        &self,
        workspace: WorkspaceId,
        read: impl FnOnce(&Instant<'_>, &WorkspaceId) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        self.read(move |now| if now.is_deleted(&workspace)? { Ok(T::default()) } else { read(now, &workspace) })
    }
}
