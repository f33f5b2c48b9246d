//! What each write of the store puts: a new batch, or a step of one with the files that it left.

use aptix_model::batch_event::EventFacts;
use aptix_model::id::{BatchId, FilePatchId, RequestId, Revision, WorkspaceId};
use aptix_model::id_block;
use aptix_model::record::BatchRecord;

use super::batch_record;
use super::cloud_files::put_files;
use super::committer::{Put, View};
use super::keys;
use super::record::{self, Counters, Happened};
use super::sessions;
use super::unnamed::{are_there, named_by};
use super::usage::signed;
use crate::store::append::{former, replacement, submitted};
use crate::store::session::lets_go;
use crate::store::{Appended, Known, LocalAppended, LocalBatch, StoreError, Transition, Transitioned, chain, links};

/// The counters of a workspace. Where their record is damaged, what was last acknowledged is taken instead, and is written
/// with the next commit.
pub(super) fn counters(view: &View<'_>, workspace: &WorkspaceId) -> Result<Counters, StoreError> {
    let read = view.get(&keys::workspace(workspace)).and_then(|record| match record {
        Some(record) => record::decode_counters(&record),
        None => Ok(Counters::default()),
    });
    read.or_else(|error| view.known(workspace).ok_or(error))
}

fn stored(view: &View<'_>, id: BatchId) -> Result<Option<BatchRecord>, StoreError> {
    let (Some(batch), Some(state)) = (view.get(&keys::batch(id))?, view.get(&keys::state(id))?) else {
        return Ok(None);
    };
    batch_record::decode_batch(id, &batch, &state).map(Some)
}

/// Stores a new batch under the next revision, unless its request id is known.
pub(super) fn append(view: &View<'_>, mut batch: BatchRecord) -> Result<(Appended, Vec<Put>), StoreError> {
    if let Some(known) = requested(view, &batch)? {
        return Ok((Appended::Known(Box::new(Known { stored: known, offered: batch })), Vec::new()));
    }
    let mut puts = match sessions::admit(view, &batch)? {
        Ok(puts) => puts,
        Err(failure) => return Ok((Appended::Restricted(failure), Vec::new())),
    };
    are_there(view, &batch.workspace, named_by(&batch))?;
    let facts = submitted(&batch);
    let mut counters = counters(view, &batch.workspace)?;
    if let Some(former) = former(&batch) {
        let former = stored(view, former)?.filter(|former| former.workspace == batch.workspace);
        let hunk = batch.preparation().and_then(|preparation| preparation.hunk);
        let newest = hunk.map(|hunk| newest_of(view, &batch.workspace, hunk)).transpose()?;
        match former.as_ref().and_then(|former| replacement(&batch, former, newest)) {
            Some(step) => {
                if let Some((former, step)) = former.zip(step) {
                    puts.extend(put_step(view, &mut counters, former, step)?.1);
                }
            }
            None => return Ok((Appended::NotReplaced(former.map(Box::new)), Vec::new())),
        }
        let id = record::encode_id(batch.id.0);
        puts.extend(hunk.map(|hunk| Put::Record(keys::hunk(&batch.workspace, hunk), id)));
    }
    puts.extend(put_new(counters, &mut batch, facts));
    Ok((Appended::New(Box::new(batch)), puts))
}

/// The newest batch of a plan that tools know by this id.
fn newest_of(view: &View<'_>, workspace: &WorkspaceId, hunk: FilePatchId) -> Result<BatchId, StoreError> {
    let newest = view.get(&keys::hunk(workspace, hunk))?.map(|id| record::decode_id(&id)).transpose()?;
    Ok(newest.unwrap_or_else(|| id_block::batch_id(hunk.0)))
}

/// The batch that a request id was used for.
fn used(view: &View<'_>, workspace: &WorkspaceId, request: &RequestId) -> Result<Option<BatchId>, StoreError> {
    view.get(&keys::request(workspace, request))?.map(|id| record::decode_id(&id)).transpose()
}

/// The batch that is stored under the request id of another one.
fn requested(view: &View<'_>, batch: &BatchRecord) -> Result<Option<BatchRecord>, StoreError> {
    let Some(id) = used(view, &batch.workspace, &batch.request_id)? else { return Ok(None) };
    let known = stored(view, id)?.ok_or_else(|| StoreError::Corrupt {
        what: format!("batch {id}"),
        why: format!("it is missing although request {} names it", batch.request_id),
    })?;
    Ok(Some(known))
}

/// Stores a batch of the workstation itself, with the files that it left, unless its id or its request id is known.
pub(super) fn append_local(view: &View<'_>, local: LocalBatch) -> Result<(LocalAppended, Vec<Put>), StoreError> {
    let facts = local.facts();
    let LocalBatch { mut batch, reverts, lease, files, .. } = local;
    let known = match stored(view, batch.id)? {
        Some(known) => Some(known),
        None => requested(view, &batch)?,
    };
    if let Some(known) = known {
        return Ok((LocalAppended::Known(Box::new(known)), Vec::new()));
    }
    let counters = counters(view, &batch.workspace)?;
    if !counters.lease.admits(lease) {
        return Ok((LocalAppended::OtherLease, Vec::new()));
    }
    let find = |id| Ok(stored(view, id)?.filter(|found| found.workspace == batch.workspace));
    let linked = links::changed(batch.id, reverts, find)?;
    let mut puts = put_new(counters, &mut batch, facts);
    for linked in &linked {
        puts.extend(put_link(view, linked)?);
    }
    puts.extend(put_files(view, &batch.workspace, files, batch.revision)?);
    Ok((LocalAppended::New(Box::new(batch)), puts))
}

/// What keeps which batch took this one back.
fn put_link(view: &View<'_>, linked: &BatchRecord) -> Result<[Put; 2], StoreError> {
    let state = batch_record::encode_state(linked);
    Ok([used_by_state(view, linked, state.len())?, Put::Record(keys::state(linked.id), state)])
}

/// What counts that the record of a batch's state has another length from now on.
fn used_by_state(view: &View<'_>, batch: &BatchRecord, length: usize) -> Result<Put, StoreError> {
    let former = view.get(&keys::state(batch.id))?.map_or(0, |record| record.len());
    Ok(Put::Used(batch.workspace.clone(), signed(length) - signed(former)))
}

/// What stores a batch under the next revision.
fn put_new(mut counters: Counters, batch: &mut BatchRecord, facts: EventFacts) -> Vec<Put> {
    counters.newest = counters.newest.next();
    // The first batch of a workspace, or one more.
    counters.open = if counters.newest == Revision(1) { Some(0) } else { counters.open };
    counters.open = counters.open.map(|open| open + u64::from(batch.state.is_open()));
    batch.revision = counters.newest;
    let id = record::encode_id(batch.id.0);
    let (content, state) = (batch_record::encode_batch(batch), batch_record::encode_state(batch));
    let parts = [batch.id.0.as_bytes().as_slice(), &content, &state, &record::encode_facts(&facts)];
    counters.digest = Some(chain::next(counters.digest, parts));
    let happened = Happened { batch: batch.id, digest: counters.digest, facts: Some(facts), previous: None };
    let event = record::encode_event(&happened);
    let puts = [
        Put::Used(batch.workspace.clone(), signed(content.len() + state.len())),
        Put::Record(keys::batch(batch.id), content),
        Put::Record(keys::state(batch.id), state),
        Put::Record(keys::request(&batch.workspace, &batch.request_id), id.clone()),
        Put::Record(keys::event(&batch.workspace, batch.revision), event),
        Put::Record(keys::listed(&batch.workspace, batch.revision), id),
        Put::Record(keys::workspace(&batch.workspace), record::encode_counters(counters)),
    ];
    puts.into_iter().chain(put_due(batch)).chain(sessions::put_flight(None, batch)).collect()
}

/// Where a batch that can expire is listed by that time.
fn due(batch: &BatchRecord) -> Option<keys::Key> {
    Some(keys::due(batch.expires()?, batch.id))
}

/// What lists a batch that can expire by that time.
pub(super) fn put_due(batch: &BatchRecord) -> Option<Put> {
    due(batch).map(|key| Put::Record(key, record::encode_texts(&[batch.workspace.to_string()])))
}

/// Moves a batch from one state to another one, with the files that it left.
pub(super) fn transition(view: &View<'_>, step: Transition) -> Result<(Transitioned, Vec<Put>), StoreError> {
    let Some(batch) = stored(view, step.batch)?.filter(|batch| batch.workspace == step.workspace) else {
        return Ok((Transitioned::Unknown, Vec::new()));
    };
    if batch.state != step.from {
        return Ok((Transitioned::OtherState(batch), Vec::new()));
    }
    if lets_go(step.to)
        && let Some(failure) = sessions::restricts(view, &batch)?
    {
        return Ok((Transitioned::Restricted(failure), Vec::new()));
    }
    let mut counters = counters(view, &step.workspace)?;
    if step.lease.is_some_and(|proof| !counters.lease.admits(proof)) {
        return Ok((Transitioned::OtherLease, Vec::new()));
    }
    let freed = step
        .freed
        .as_ref()
        .map(|request| Ok((keys::request(&step.workspace, request), used(view, &step.workspace, request)?)));
    let freed = freed.transpose()?;
    if let Some((_, Some(other))) = &freed
        && *other != step.batch
    {
        return Ok((Transitioned::Reused(*other), Vec::new()));
    }
    let (workspace, files) = (step.workspace.clone(), step.files.clone());
    let find = |id| Ok(stored(view, id)?.filter(|found| found.workspace == workspace));
    let linked = links::changed(step.batch, links::reverted(&batch, &step), find)?;
    let (batch, mut puts) = put_step(view, &mut counters, batch, step)?;
    puts.extend(freed.map(|(key, _)| Put::Record(key, record::encode_id(batch.id.0))));
    for linked in &linked {
        puts.extend(put_link(view, linked)?);
    }
    puts.extend(put_files(view, &workspace, files, counters.newest)?);
    Ok((Transitioned::Done(batch), puts))
}

/// What takes a step of a batch, without its files, under the next revision.
fn put_step(
    view: &View<'_>,
    counters: &mut Counters,
    mut batch: BatchRecord,
    step: Transition,
) -> Result<(BatchRecord, Vec<Put>), StoreError> {
    counters.newest = counters.newest.next();
    let (facts, previous) = (step.facts(), Some(batch.revision));
    counters.open = counters
        .open
        .map(|open| (open + u64::from(step.to.is_open())).saturating_sub(u64::from(batch.state.is_open())));
    let no_longer_due = due(&batch).map(Put::RemoveRecord);
    let former = batch.state;
    step.apply(&mut batch, counters.newest);
    let state = batch_record::encode_state(&batch);
    let parts = [batch.id.0.as_bytes().as_slice(), &state, &record::encode_facts(&facts)];
    counters.digest = Some(chain::next(counters.digest, parts));
    let happened = Happened { batch: batch.id, digest: counters.digest, facts: Some(facts), previous };
    let event = record::encode_event(&happened);
    let puts = [
        used_by_state(view, &batch, state.len())?,
        Put::Record(keys::state(batch.id), state),
        Put::Record(keys::event(&batch.workspace, counters.newest), event),
        Put::Record(keys::workspace(&batch.workspace), record::encode_counters(*counters)),
    ];
    let flight = sessions::put_flight(Some(former), &batch);
    let due = put_due(&batch);
    Ok((batch, puts.into_iter().chain(no_longer_due).chain(due).chain(flight).collect()))
}
