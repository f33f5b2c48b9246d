//! Removes what a workspace keeps no longer, commit by commit: between two of them other writes have their turn.

use super::EmbeddedStore;
use super::committer::{Flush, Put, View};
use super::retention::{BATCHES, EVENTS, Plan, STEPS, change_trim, note, remove_events};
use crate::store::retention::{Retained, Retention};
use crate::store::{Answer, StoreError};

impl EmbeddedStore {
    /// Removes what a workspace keeps no longer, or counts it.
    pub(super) async fn retain_steps(&self, order: Retention) -> Result<Retained, StoreError> {
        // Counted by the committer: a deletion that is counted is found by the reads that follow.
        let begun = self.write(Flush::WithNext, |view| Ok((view.deletions(), Vec::new()))).await?;
        let asked = order.clone();
        let plan = self.read_in(order.workspace.clone(), move |now, _| now.plan(&asked).map(Some)).await?;
        let Some(plan) = plan else { return Ok(Retained::default()) };
        let Plan { notes, contents, swept, upto, retained: planned } = plan;
        if order.is_rehearsal {
            return Ok(planned);
        }
        let Retention { workspace, now, .. } = order;
        let noted = workspace.clone();
        self.remove_by(begun, Flush::WithNext, move |view| note(view, &noted, notes, now)).await?;
        let mut done = Retained { contents: 0, records: 0, events: 0, ..planned };
        for ids in contents.chunks(BATCHES) {
            let ids = ids.to_vec();
            let step = self.read(move |now| now.without_content(&ids)).await?;
            done.contents += self.remove_by(begun, Flush::Now, move |view| step.commit(view)).await?;
        }
        if let Some(swept) = swept.filter(|_| done.contents == planned.contents) {
            let of = workspace.clone();
            let sweep = move |view: &View<'_>| change_trim(view, &of, |trim| trim.swept = trim.swept.max(swept));
            self.remove_by(begun, Flush::WithNext, sweep).await?;
        }
        for _ in 0..STEPS {
            let of = workspace.clone();
            let removed = self.remove_by(begun, Flush::Now, move |view| remove_events(view, &of, upto)).await?;
            done.events += removed;
            if removed < EVENTS as u64 {
                break;
            }
        }
        let mut has_records = true;
        for _ in 0..STEPS {
            let of = workspace.clone();
            let step = self.read(move |now| now.without_records(&of)).await?;
            has_records = step.count > 0;
            if !has_records {
                break;
            }
            done.records += self.remove_by(begun, Flush::Now, move |view| step.commit(view)).await?;
        }
        done.has_more |= done.contents < planned.contents || done.events < planned.events || has_records;
        let of = workspace.clone();
        done.oldest = self.read(move |now| Ok(now.trim(&of)?.upto.next())).await?;
        Ok(done)
    }

    /// A write of retention. Once the deletion of any workspace has begun it does nothing: the one that it is about may have been
    /// deleted and created anew.
    fn remove_by<T: Default + Send + 'static>(
        &self,
        begun: u64,
        flush: Flush,
        work: impl FnOnce(&View<'_>) -> Result<(T, Vec<Put>), StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        self.write(
            flush,
            move |view| if view.deletions() == begun { work(view) } else { Ok((T::default(), Vec::new())) },
        )
    }
}

#[cfg(test)]
mod tests {
    use aptix_model::digest::Sha256Digest;
    use aptix_model::id::{Revision, WorkspaceId};
    use aptix_model::record::UnixMillis;
    use aptix_model::token::{Ended, Ending};

    use super::*;
    use crate::store::Store;

    /// A write of retention that waited while its workspace was deleted and created anew removes nothing of the new one.
    #[tokio::test]
    async fn retention_removes_nothing_of_a_workspace_that_was_created_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let w: WorkspaceId = "w".parse().unwrap();
        store.grant_lease(w.clone(), Sha256Digest::EMPTY, Vec::new()).await.unwrap();
        let begun = store.tables.deletions();
        let ended = Ended { at: UnixMillis(1), how: Ending::Revoked };
        store.begin_deletion(w.clone(), ended).await.unwrap();
        assert!(store.continue_deletion(w.clone()).await.unwrap().unwrap().is_done);
        assert_eq!(store.create_workspace(w.clone()).await, Ok(true));
        let of = w.clone();
        let late = store.remove_by(begun, Flush::Now, move |view| remove_events(view, &of, Revision(5)));
        assert_eq!(late.await, Ok(0));
        assert_eq!(store.tables.now().trim(&w).unwrap().upto, Revision(0));
        let (of, begun) = (w.clone(), store.tables.deletions());
        let now = store.remove_by(begun, Flush::Now, move |view| remove_events(view, &of, Revision(5)));
        assert_eq!(now.await, Ok(5), "one that begins later is carried out");
    }
}
