//! Counts batches that have not ended, where no record has their number: in stores of earlier versions, and where a
//! workspace's counters are damaged.

use aptix_model::id::{Revision, WorkspaceId};
use fjall::PersistMode;

use super::batch_record;
use super::instant::Instant;
use super::keys;
use super::record::{self, Counters};
use super::tables::{Tables, failed};
use crate::store::StoreError;

/// Batches looked at in one go.
const PAGE: usize = 1000;

/// Counts the open batches of workspaces whose counters were written by an earlier version, and keeps their number.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) fn count_unknown(tables: &Tables) -> Result<(), StoreError> {
    let now = tables.now();
    let mut counted = tables.db.batch().durability(Some(PersistMode::SyncAll));
    for (workspace, _) in now.every_workspace(None) {
        let Some(counters @ Counters { open: None, .. }) = now.counters_of(&workspace) else { continue };
        let open = Some(now.count_open(&workspace, counters.newest)?);
        let record = record::encode_counters(Counters { open, ..counters });
        counted.insert(&tables.records, keys::workspace(&workspace), record);
    }
    if counted.is_empty() { Ok(()) } else { counted.commit().map_err(failed("keep the numbers of open batches")) }
}

impl Instant<'_> {
    /// How many batches of a workspace have not ended. Those whose state cannot be read are not counted.
    pub(super) fn count_open(&self, workspace: &WorkspaceId, newest: Revision) -> Result<u64, StoreError> {
        let (mut before, mut open) = (newest.next(), 0);
        loop {
            let page = self.batches(workspace, before, PAGE)?;
            let Some(last) = page.last() else { return Ok(open) };
            before = last.as_ref().map_or_else(|damaged| damaged.revision, |entry| entry.revision);
            for entry in page.iter().flatten() {
                let state = self.get(&keys::state(entry.batch)).ok().flatten();
                let state = state.and_then(|state| batch_record::decode_state("a batch", &state).ok());
                open += u64::from(state.is_some_and(|state| state.state.is_open()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aptix_model::batch::{Batch, Origin};
    use aptix_model::id::{BatchId, Uuid};
    use aptix_model::record::{BatchRecord, Sent, Source, UnixMillis};
    use aptix_model::state::BatchState;

    use super::*;
    use crate::store::Store;
    use crate::store::embedded::{EmbeddedStore, Opening};

    /// A store of an earlier version says of no workspace how many batches are open.
    #[tokio::test]
    async fn what_an_earlier_version_did_not_count_is_counted_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let workspace: WorkspaceId = "w".parse().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        for (number, state) in [BatchState::Approved, BatchState::Failed, BatchState::Approved].into_iter().enumerate()
        {
            let record = BatchRecord {
                id: BatchId(Uuid::from_u128(number as u128)),
                workspace: workspace.clone(),
                revision: Revision(0),
                state,
                batch: Batch::default(),
                ids: Vec::new(),
                origin: Origin::default(),
                request_id: format!("r{number}").parse().unwrap(),
                created: UnixMillis(1),
                updated: UnixMillis(2),
                report: None,
                source: Source::Submitted,
                reverted_by: None,
                is_restricted: false,
                removed_content: None,
                sent: Sent::default(),
            };
            store.append(record).await.unwrap();
        }
        store.close().await.unwrap();
        drop(store);

        let tables = Tables::open(dir.path(), Opening::default().open_files).unwrap();
        let kept = tables.now().counters_of(&workspace).unwrap();
        assert_eq!(kept.open, Some(2));
        let former = record::encode_counters(Counters { open: None, ..kept });
        tables.records.insert(keys::workspace(&workspace), former).unwrap();
        assert_eq!(tables.now().count_open(&workspace, kept.newest), Ok(2));
        drop(tables);

        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.counts(workspace.clone()).await.unwrap().unwrap().open_batches, 2);
        store.close().await.unwrap();
        drop(store);
        let tables = Tables::open(dir.path(), Opening::default().open_files).unwrap();
        assert_eq!(tables.now().counters_of(&workspace), Some(kept));
    }
}
