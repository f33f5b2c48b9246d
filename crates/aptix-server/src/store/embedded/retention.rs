//! Removes what workspaces keep no longer: the content of batches that ended, then events, then the records of batches without
//! events. What goes is found at one instant and removed in small commits, each of which leaves a whole store; each looks
//! again at what may have changed since.

use std::collections::HashSet;
use std::time::Duration;

use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use fjall::{Readable, Slice};

use super::batch_record::{self, decode_progress, has_no_content};
use super::committer::{Put, View};
use super::instant::Instant;
use super::keys::{self, Key};
use super::record;
use super::retention_record::{self as records, Trim};
use super::tables::failed;
use super::usage::signed;
use super::writes::counters;
use crate::store::StoreError;
use crate::store::retention::{
    Age, Bounds, Counted, HeldBy, Limits, Notes, Retained, Retention, blobs_of, content_digest,
};

/// Batches whose content is removed by one commit, or whose records are.
pub(super) const BATCHES: usize = 16;
/// Events that are removed by one commit.
pub(super) const EVENTS: usize = 256;
/// Commits of each kind that one call makes.
pub(super) const STEPS: usize = 64;

/// Adds to the age of the store.
pub(super) fn grow_older(view: &View<'_>, passed: Option<Duration>) -> Result<(Age, Vec<Put>), StoreError> {
    let key = keys::AGE.to_vec();
    // An age that cannot be read is begun anew: then everything is taken for young.
    let noted = view.get(&key)?.and_then(|record| records::decode_age(&record).ok());
    let age = noted.unwrap_or_default().after(passed.unwrap_or_default());
    Ok((age, vec![Put::Record(key, records::encode_age(age))]))
}

/// What would go, as far as one call removes it.
pub(super) struct Plan {
    pub(super) notes: Notes,
    /// Batches whose content goes, and how far none that is older has any left.
    pub(super) contents: Vec<BatchId>,
    pub(super) swept: Option<Revision>,
    /// The last event that goes.
    pub(super) upto: Revision,
    pub(super) retained: Retained,
}

/// A commit, if these records are still as they were read.
pub(super) struct Step {
    unchanged: Vec<(Key, Slice)>,
    puts: Vec<Put>,
    /// Batches that it is about.
    pub(super) count: u64,
}

impl Step {
    pub(super) fn commit(self, view: &View<'_>) -> Result<(u64, Vec<Put>), StoreError> {
        for (key, expected) in &self.unchanged {
            if view.get(key)?.as_ref() != Some(expected) {
                return Ok((0, Vec::new()));
            }
        }
        Ok((self.count, self.puts))
    }
}

/// Notes how far a workspace has come by now.
pub(super) fn note(
    view: &View<'_>,
    workspace: &WorkspaceId,
    mut notes: Notes,
    now: Age,
) -> Result<((), Vec<Put>), StoreError> {
    let newest = counters(view, workspace)?.newest;
    if !notes.note(now, newest) {
        return Ok(((), Vec::new()));
    }
    Ok(((), vec![Put::Record(keys::notes(workspace), records::encode_notes(&notes))]))
}

pub(super) fn change_trim(
    view: &View<'_>,
    workspace: &WorkspaceId,
    change: impl FnOnce(&mut Trim),
) -> Result<((), Vec<Put>), StoreError> {
    let key = keys::trim(workspace);
    let mut trim = view.get(&key)?.map(|record| records::decode_trim(&record)).transpose()?.unwrap_or_default();
    let before = trim;
    change(&mut trim);
    let changed = (trim != before).then(|| Put::Record(key, records::encode_trim(&trim)));
    Ok(((), changed.into_iter().collect()))
}

/// Removes the next events up to one; answers how many.
pub(super) fn remove_events(
    view: &View<'_>,
    workspace: &WorkspaceId,
    upto: Revision,
) -> Result<(u64, Vec<Put>), StoreError> {
    let key = keys::trim(workspace);
    let mut trim = view.get(&key)?.map(|record| records::decode_trim(&record)).transpose()?.unwrap_or_default();
    let to = Revision(trim.upto.0.saturating_add(EVENTS as u64)).min(upto);
    if to <= trim.upto {
        return Ok((0, Vec::new()));
    }
    let mut puts: Vec<_> = (trim.upto.0 + 1..=to.0)
        .map(|revision| Put::RemoveRecord(keys::event(workspace, Revision(revision))))
        .collect();
    let last = view.get(&keys::event(workspace, to))?.map(|record| record::decode_event(&record)).transpose()?;
    let removed = to.0 - trim.upto.0;
    (trim.upto, trim.digest) = (to, last.and_then(|event| event.digest));
    puts.push(Put::Record(key, records::encode_trim(&trim)));
    Ok((removed, puts))
}

impl Instant<'_> {
    fn notes(&self, workspace: &WorkspaceId) -> Result<Notes, StoreError> {
        let record = self.get(&keys::notes(workspace))?;
        // Without notes everything is taken for young.
        Ok(record.and_then(|record| records::decode_notes(&record).ok()).unwrap_or_default())
    }

    pub(super) fn plan(&self, order: &Retention) -> Result<Plan, StoreError> {
        let Retention { workspace, limits, now, is_rehearsal } = order;
        let newest = self.newest(workspace)?.unwrap_or_default();
        // One that is damaged ends the retention of this workspace before anything is removed.
        let trim = self.get(&keys::trim(workspace))?.map(|record| records::decode_trim(&record)).transpose()?;
        let (trim, notes) = (trim.unwrap_or_default(), self.notes(workspace)?);
        let bounds = Bounds::of(limits, &notes, *now, newest);
        let mut retained = Retained { oldest: trim.upto.next(), ..Retained::default() };
        let most = if *is_rehearsal { usize::MAX } else { BATCHES * STEPS };
        let (contents, swept) = self.past_contents(workspace, limits, bounds, (trim.swept, most), &mut retained)?;
        let most = if *is_rehearsal { u64::MAX } else { (EVENTS * STEPS) as u64 };
        let upto = self.past_events(
            workspace,
            trim.upto,
            bounds.records.min(Revision(trim.upto.0.saturating_add(most))),
            &mut retained,
        )?;
        retained.has_more |= upto < bounds.records && retained.held_by.is_none();
        let most = if *is_rehearsal { usize::MAX } else { BATCHES };
        retained.records = self.past_records(workspace, upto, most)?.len() as u64;
        Ok(Plan { notes, contents, swept, upto, retained })
    }

    /// The batches whose content is past the limits, newest first, up to a number; and how far none that is older has any left, if
    /// all were looked at.
    fn past_contents(
        &self,
        workspace: &WorkspaceId,
        limits: &Limits,
        bounds: Bounds,
        (swept, most): (Revision, usize),
        retained: &mut Retained,
    ) -> Result<(Vec<BatchId>, Option<Revision>), StoreError> {
        let (mut found, mut counted) = (Vec::new(), Counted::default());
        let (mut left, mut last) = (None, None);
        let range = keys::listed(workspace, swept.next())..=keys::listed(workspace, Revision(u64::MAX));
        if limits.content_age.is_none() && limits.content_batches.is_none() && limits.content_bytes.is_none() {
            return Ok((found, None));
        }
        for entry in self.snapshot.range(&self.tables.records, range).rev() {
            let (key, value) = entry.into_inner().map_err(failed("list batches"))?;
            let Some(revision) = keys::revision_of(&key) else { continue };
            last.get_or_insert(revision);
            // What cannot be read stays.
            let content = record::decode_id(&value).and_then(|id| self.content_of(id));
            let Ok(content) = content
                .and_then(|content| content.map(|content| content.count(&mut counted, limits, bounds)).transpose())
            else {
                left = Some(revision);
                continue;
            };
            let Some((Content { id, newest, state, .. }, is_past, bytes)) = content else { continue };
            if !is_past || state.is_open() || (state == BatchState::Failed && newest > bounds.plans && self.is_plan(id))
            {
                left = Some(revision);
            } else if found.len() < most {
                found.push(id);
                retained.contents += 1;
                retained.content_bytes += bytes;
            } else {
                retained.has_more = true;
                return Ok((found, None));
            }
        }
        let swept = left.map(|left| Revision(left.0.saturating_sub(1))).or(last);
        Ok((found, swept.filter(|_| !retained.has_more)))
    }

    /// The content of a batch; `None` if it has none any more.
    fn content_of(&self, id: BatchId) -> Result<Option<Content>, StoreError> {
        let (Some(batch), Some(state)) = (self.get(&keys::batch(id))?, self.get(&keys::state(id))?) else {
            return Err(StoreError::Corrupt { what: format!("batch {id}"), why: "it is missing".to_owned() });
        };
        if has_no_content(&batch) {
            return Ok(None);
        }
        let (newest, progress) = decode_progress("a batch", &state)?;
        Ok(Some(Content { id, newest, state: progress, records: (batch, state) }))
    }

    /// Whether a batch was prepared: while it can be applied again its content is needed.
    fn is_plan(&self, id: BatchId) -> bool {
        self.whole(id).is_ok_and(|batch| batch.is_some_and(|(batch, _)| batch.preparation().is_some()))
    }

    fn whole(&self, id: BatchId) -> Result<Option<(BatchRecord, [Slice; 2])>, StoreError> {
        let (Some(batch), Some(state)) = (self.get(&keys::batch(id))?, self.get(&keys::state(id))?) else {
            return Ok(None);
        };
        Ok(Some((batch_record::decode_batch(id, &batch, &state)?, [batch, state])))
    }

    /// What removes the content of these batches.
    pub(super) fn without_content(&self, ids: &[BatchId]) -> Result<Step, StoreError> {
        let mut step = Step { unchanged: Vec::new(), puts: Vec::new(), count: 0 };
        for id in ids {
            let Some((mut batch, records)) = self.whole(*id)? else { continue };
            if batch.state.is_open() || batch.removed_content.is_some() {
                continue;
            }
            batch.remove_content(content_digest(&batch.batch));
            let left = [batch_record::encode_batch(&batch), batch_record::encode_state(&batch)];
            step.puts.push(Put::Used(batch.workspace, bytes(&left) - bytes(&records)));
            step.unchanged.extend([keys::batch(*id), keys::state(*id)].into_iter().zip(records));
            step.puts.extend(
                [keys::batch(*id), keys::state(*id)].into_iter().zip(left).map(|(key, left)| Put::Record(key, left)),
            );
            step.count += 1;
        }
        Ok(step)
    }

    /// The last event that goes: up to the limit, or the newest of a batch that is open, or one that cannot be read.
    fn past_events(
        &self,
        workspace: &WorkspaceId,
        trimmed: Revision,
        limit: Revision,
        retained: &mut Retained,
    ) -> Result<Revision, StoreError> {
        let mut upto = trimmed;
        while upto < limit {
            for event in self.events_up_to(workspace, upto, limit, EVENTS)? {
                let Ok(event) = event else {
                    retained.held_by = Some(HeldBy::Damaged(upto.next()));
                    return Ok(upto);
                };
                let state = self.get(&keys::state(event.batch)).ok().flatten();
                match state.map(|state| decode_progress("a batch", &state)) {
                    Some(Ok((newest, state))) if state.is_open() && newest == event.revision => {
                        retained.held_by = Some(HeldBy::Open(event.revision, event.batch));
                        return Ok(upto);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => {
                        retained.held_by = Some(HeldBy::Damaged(event.revision));
                        return Ok(upto);
                    }
                }
                upto = event.revision;
                retained.events += 1;
            }
        }
        Ok(upto)
    }

    /// Batches that ended, none of whose events is kept and which nothing names that is kept, newest first, up to a number.
    fn past_records(
        &self,
        workspace: &WorkspaceId,
        upto: Revision,
        most: usize,
    ) -> Result<Vec<(Revision, BatchRecord, [Slice; 2])>, StoreError> {
        let range = keys::listed(workspace, Revision(0))..=keys::listed(workspace, upto);
        let (mut found, mut gone) = (Vec::new(), HashSet::new());
        let mut named: Option<HashSet<BatchId>> = None;
        for entry in self.snapshot.range(&self.tables.records, range).rev() {
            if found.len() >= most {
                break;
            }
            let (key, value) = entry.into_inner().map_err(failed("list batches"))?;
            let read = record::decode_id(&value).and_then(|id| self.whole(id));
            // What cannot be read stays.
            let (Some(first), Ok(Some((batch, records)))) = (keys::revision_of(&key), read) else { continue };
            if batch.state.is_open() || batch.revision > upto {
                continue;
            }
            if let Some(by) = batch.reverted_by.filter(|by| !gone.contains(by))
                && self.get(&keys::state(by))?.is_some()
            {
                continue;
            }
            let named = match &mut named {
                Some(named) => named,
                None => named.insert(self.named_by_open(workspace)?),
            };
            if !named.contains(&batch.id) {
                gone.insert(batch.id);
                found.push((first, batch, records));
            }
        }
        Ok(found)
    }

    /// The batches that were stored up to a revision and are kept.
    pub(super) fn kept_without_events(&self, workspace: &WorkspaceId, upto: Revision) -> Vec<(BatchId, Revision)> {
        let range = keys::listed(workspace, Revision(0))..=keys::listed(workspace, upto);
        let entries = self.snapshot.range(&self.tables.records, range);
        let kept = entries.filter_map(|entry| {
            let (key, value) = entry.into_inner().ok()?;
            Some((record::decode_id(&value).ok()?, keys::revision_of(&key)?))
        });
        kept.collect()
    }

    /// The batches that open ones take back, or take the place of.
    fn named_by_open(&self, workspace: &WorkspaceId) -> Result<HashSet<BatchId>, StoreError> {
        let mut named = HashSet::new();
        let mut open = self.counts(workspace)?.map_or(0, |counts| counts.open_batches);
        let range = keys::listed(workspace, Revision(0))..=keys::listed(workspace, Revision(u64::MAX));
        for entry in self.snapshot.range(&self.tables.records, range).rev() {
            if open == 0 {
                break;
            }
            let value = entry.value().map_err(failed("list batches"))?;
            let Ok(id) = record::decode_id(&value) else { continue };
            let state = self.get(&keys::state(id))?;
            let progress = state.and_then(|state| decode_progress("a batch", &state).ok());
            if progress.is_some_and(|(_, state)| state.is_open()) {
                open -= 1;
                if let Some((batch, _)) = self.whole(id)? {
                    named.extend(batch.reverts());
                    named.extend(batch.preparation().and_then(|preparation| preparation.replaces));
                }
            }
        }
        Ok(named)
    }

    /// What removes the records of some batches without events.
    pub(super) fn without_records(&self, workspace: &WorkspaceId) -> Result<Step, StoreError> {
        let upto = self.trim(workspace)?.upto;
        let mut step = Step { unchanged: Vec::new(), puts: Vec::new(), count: 0 };
        for (first, batch, records) in self.past_records(workspace, upto, BATCHES)? {
            let id = batch.id;
            step.puts.push(Put::Used(workspace.clone(), -bytes(&records)));
            step.unchanged.extend([keys::batch(id), keys::state(id)].into_iter().zip(records));
            let requests = [Some(&batch.request_id), batch.preparation().and_then(|prepared| prepared.freed.as_ref())];
            let requests = requests.into_iter().flatten().map(|request| keys::request(workspace, request));
            for key in requests.chain(batch.hunk().map(|hunk| keys::hunk(workspace, hunk))) {
                // It may lead to another batch, which is kept.
                let leads = self.get(&key)?.and_then(|record| record::decode_id(&record).ok());
                step.puts.extend((leads == Some(id)).then_some(Put::RemoveRecord(key)));
            }
            step.puts.extend([keys::listed(workspace, first), keys::batch(id), keys::state(id)].map(Put::RemoveRecord));
            step.count += 1;
        }
        Ok(step)
    }
}

/// A batch that has its content.
struct Content {
    id: BatchId,
    newest: Revision,
    state: BatchState,
    /// Of the batch, and of its state.
    records: (Slice, Slice),
}

impl Content {
    /// Counts it; answers whether it is past the limits, and how many bytes it adds to those of newer batches.
    fn count(self, counted: &mut Counted, limits: &Limits, bounds: Bounds) -> Result<(Self, bool, u64), StoreError> {
        let (batch, state) = &self.records;
        let bytes = (batch.len() + state.len()) as u64;
        let blobs = || Ok(blobs_of(&batch_record::decode_batch(self.id, batch, state)?.batch));
        let (is_past, bytes) = counted.add(limits, bytes, self.newest <= bounds.content, blobs)?;
        Ok((self, is_past, bytes))
    }
}

/// The bytes of records.
fn bytes(records: &[Slice]) -> i64 {
    records.iter().map(|record| signed(record.len())).sum()
}
