//! Removes what a workspace keeps no longer, commit by commit: between two of them other writes have their turn.

use super::EmbeddedStore;
use super::committer::Flush;
use super::retention::{BATCHES, EVENTS, Plan, STEPS, change_trim, note, remove_events};
use crate::store::StoreError;
use crate::store::retention::{Retained, Retention};

impl EmbeddedStore {
    /// Removes what a workspace keeps no longer, or counts it.
    pub(super) async fn retain_steps(&self, order: Retention) -> Result<Retained, StoreError> {
        let asked = order.clone();
        let plan = self.read(move |now| now.plan(&asked)).await?;
        let Plan { notes, contents, swept, upto, retained: planned } = plan;
        if order.is_rehearsal {
            return Ok(planned);
        }
        let Retention { workspace, now, .. } = order;
        let noted = workspace.clone();
        self.write(Flush::WithNext, move |view| note(view, &noted, notes, now)).await?;
        let mut done = Retained { contents: 0, records: 0, events: 0, ..planned };
        for ids in contents.chunks(BATCHES) {
            let ids = ids.to_vec();
            let step = self.read(move |now| now.without_content(&ids)).await?;
            done.contents += self.write(Flush::Now, move |view| step.commit(view)).await?;
        }
        if let Some(swept) = swept.filter(|_| done.contents == planned.contents) {
            let of = workspace.clone();
            self.write(Flush::WithNext, move |view| change_trim(view, &of, |trim| trim.swept = trim.swept.max(swept)))
                .await?;
        }
        for _ in 0..STEPS {
            let of = workspace.clone();
            let removed = self.write(Flush::Now, move |view| remove_events(view, &of, upto)).await?;
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
            done.records += self.write(Flush::Now, move |view| step.commit(view)).await?;
        }
        done.has_more |= done.events < planned.events || has_records;
        let of = workspace.clone();
        done.oldest = self.read(move |now| Ok(now.trim(&of)?.upto.next())).await?;
        Ok(done)
    }
}
