//! Removes what a workspace keeps no longer, all of it at once.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision};
use aptix_model::state::BatchState;

use super::{State, Workspace};
use crate::store::retention::{Age, Bounds, Counted, HeldBy, Retained, Retention, blobs_of, content_digest};
use crate::store::size::stored_bytes;
use crate::store::{Event, Listed, StoreError};

impl State {
    pub(super) fn grow_older(&mut self, passed: Option<Duration>) -> Age {
        self.age = self.age.after(passed.unwrap_or_default());
        self.age
    }
}

impl Workspace {
    pub(super) fn digest(&self, revision: Revision) -> Option<Sha256Digest> {
        let (trimmed, digest) = self.trimmed;
        self.event(revision).map_or_else(|| digest.filter(|_| trimmed == revision), |event| event.digest)
    }

    pub(super) fn events(&self, after: Revision, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let (trimmed, _) = self.trimmed;
        if after < trimmed {
            return Err(StoreError::Compacted { oldest: trimmed.next() });
        }
        let revisions = (after.0.saturating_add(1)..=self.newest().0).take(limit);
        Ok(revisions.filter_map(|revision| self.event(Revision(revision))).map(Ok).collect())
    }

    pub(super) fn retain(&mut self, order: &Retention) -> Retained {
        let Retention { limits, now, is_rehearsal, .. } = order;
        let bounds = Bounds::of(limits, &self.notes, *now, self.newest());
        let mut retained = Retained::default();
        let contents = self.past_contents(order, bounds, &mut retained);
        let upto = self.past_events(bounds.records, &mut retained);
        let records = self.past_records(upto);
        retained.records = records.len() as u64;
        if !is_rehearsal {
            self.notes.note(*now, self.newest());
            for id in contents {
                self.batches.entry(id).and_modify(|batch| batch.remove_content(content_digest(&batch.batch)));
            }
            self.remove(upto, &records);
        }
        Retained { oldest: self.trimmed.0.next(), ..retained }
    }

    fn past_contents(&self, order: &Retention, bounds: Bounds, retained: &mut Retained) -> Vec<BatchId> {
        let mut counted = Counted::default();
        let newest_first = self.order.values().rev().filter_map(|id| self.batches.get(id));
        let with_content = newest_first.filter(|batch| batch.removed_content.is_none());
        let past = with_content.filter(|batch| {
            let (is_aged, blobs) = (batch.revision <= bounds.content, || Ok::<_, Infallible>(blobs_of(&batch.batch)));
            let Ok((is_past, bytes)) = counted.add(&order.limits, stored_bytes(batch), is_aged, blobs);
            let is_plan = batch.state == BatchState::Failed && batch.preparation().is_some();
            let goes = is_past && !batch.state.is_open() && !(is_plan && batch.revision > bounds.plans);
            retained.contents += u64::from(goes);
            retained.content_bytes += if goes { bytes } else { 0 };
            goes
        });
        past.map(|batch| batch.id).collect()
    }

    fn past_events(&self, limit: Revision, retained: &mut Retained) -> Revision {
        let mut upto = self.trimmed.0;
        while upto < limit {
            let Some(Event { batch, revision, .. }) = self.event(upto.next()) else { break };
            if self.batches.get(&batch).is_some_and(|batch| batch.state.is_open() && batch.revision == revision) {
                retained.held_by = Some(HeldBy::Open(revision, batch));
                break;
            }
            upto = revision;
            retained.events += 1;
        }
        upto
    }

    fn past_records(&self, upto: Revision) -> Vec<(Revision, BatchId)> {
        let open = self.batches.values().filter(|batch| batch.state.is_open());
        let named: HashSet<_> = open
            .flat_map(|batch| [batch.reverts(), batch.preparation().and_then(|preparation| preparation.replaces)])
            .flatten()
            .collect();
        let mut gone = HashSet::new();
        let mut found = Vec::new();
        for (first, id) in self.order.range(..=upto).rev() {
            let Some(batch) = self.batches.get(id) else { continue };
            let by = batch.reverted_by.filter(|by| !gone.contains(by) && self.batches.contains_key(by));
            if !batch.state.is_open() && batch.revision <= upto && by.is_none() && !named.contains(id) {
                gone.insert(*id);
                found.push((*first, *id));
            }
        }
        found
    }

    fn remove(&mut self, upto: Revision, records: &[(Revision, BatchId)]) {
        if upto > self.trimmed.0 {
            self.trimmed = (upto, self.event(upto).and_then(|event| event.digest));
        }
        let trimmed = usize::try_from(upto.0).unwrap_or(usize::MAX);
        self.events.iter_mut().take(trimmed).for_each(|event| *event = None);
        for (first, id) in records {
            self.order.remove(first);
            self.batches.remove(id);
            self.requests.retain(|_, leads| leads != id);
            self.hunks.retain(|_, leads| leads != id);
        }
    }
}
