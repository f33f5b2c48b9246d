//! What each write of batches changes: a new batch, or a step of one with the files that it left.

use aptix_model::batch_event::EventFacts;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::id_block;
use aptix_model::record::BatchRecord;
use aptix_model::report::Report;

use super::numbers::signed;
use super::rows::{Batch, Decided, Needs, NewEvent, Put, Rows, Stop, Workspace};
use super::sessions;
use crate::store::append::{former, replacement, submitted};
use crate::store::records::batch_record::{encode_batch, encode_state};
use crate::store::records::record::{self, Happened};
use crate::store::retention::blobs_of;
use crate::store::session::{self, lets_go};
use crate::store::{
    Appended, CloudFile, FileUpdate, Known, LocalAppended, LocalBatch, StoreError, Transition, Transitioned, Twins,
    chain, links,
};

/// A new batch, with the record of its content.
pub(super) struct Append {
    pub(super) batch: BatchRecord,
    pub(super) content: Vec<u8>,
}

impl Append {
    pub(super) fn new(batch: BatchRecord) -> Self {
        let content = encode_batch(&batch).to_vec();
        Self { batch, content }
    }

    pub(super) fn needs(&self, needs: &mut Needs) {
        let Self { batch, .. } = self;
        let workspace = &batch.workspace;
        needs.lock(workspace, true);
        needs.requests.insert((workspace.clone(), batch.request_id.clone()));
        needs.sessions.extend(session::of(&batch.origin).map(|id| (workspace.clone(), id)));
        needs.blobs.extend(blobs_of(&batch.batch).into_iter().map(|blob| (workspace.clone(), blob.sha256)));
        needs.batches.extend(former(batch));
        let hunk = batch.preparation().and_then(|preparation| preparation.hunk).filter(|_| former(batch).is_some());
        needs.hunks.extend(hunk.map(|hunk| (workspace.clone(), hunk)));
    }
}

/// Stores a new batch under the next revision, unless its request id is known.
pub(super) fn append(new: &Append, rows: &Rows) -> Decided<Appended> {
    let Append { batch, content } = new;
    if let Some(stored) = requested(rows, batch)? {
        let offered = batch.clone();
        return Ok((Appended::Known(Box::new(Known { stored, offered })), Vec::new()));
    }
    let mut counters = rows.counters(&batch.workspace)?;
    let mut puts = match sessions::admit(rows, &mut counters, batch)? {
        Ok(puts) => puts,
        Err(failure) => return Ok((Appended::Restricted(failure), Vec::new())),
    };
    rows.are_there(&batch.workspace, blobs_of(&batch.batch).into_iter().map(|blob| blob.sha256))?;
    if let Some(former) = former(batch) {
        let former = rows.stored(former)?.filter(|former| former.workspace == batch.workspace);
        let hunk = batch.preparation().and_then(|preparation| preparation.hunk);
        let newest = match hunk {
            Some(hunk) => {
                let newest = rows.newest_of(&batch.workspace, hunk)?;
                Some(newest.unwrap_or_else(|| id_block::batch_id(hunk.0)))
            }
            None => None,
        };
        match former.as_ref().and_then(|former| replacement(batch, former, newest)) {
            Some(step) => {
                if let Some((former, step)) = former.zip(step) {
                    puts.extend(put_step(rows, &mut counters, former, step)?.1);
                }
            }
            None => return Ok((Appended::NotReplaced(former.map(Box::new)), Vec::new())),
        }
        puts.extend(hunk.map(|hunk| Put::Hunk((batch.workspace.clone(), hunk), batch.id)));
    }
    let mut batch = batch.clone();
    puts.extend(put_new(counters, &mut batch, content.clone(), submitted(&new.batch)));
    Ok((Appended::New(Box::new(batch)), puts))
}

/// The batch that is stored under the request id of another one.
fn requested(rows: &Rows, batch: &BatchRecord) -> Result<Option<BatchRecord>, Stop> {
    // Before anything else: that the workspace is being deleted.
    rows.counters(&batch.workspace)?;
    let Some(id) = rows.used(&batch.workspace, &batch.request_id)? else { return Ok(None) };
    let missing = || StoreError::Corrupt {
        what: format!("batch {id}"),
        why: format!("it is missing although request {} names it", batch.request_id),
    };
    Ok(Some(rows.stored(id)?.ok_or_else(missing)?))
}

/// What [`append_local`] decides by.
pub(super) fn needs_of_local(local: &LocalBatch, needs: &mut Needs) {
    let workspace = &local.batch.workspace;
    needs.lock(workspace, true);
    needs.requests.insert((workspace.clone(), local.batch.request_id.clone()));
    needs.new_batches.insert(local.batch.id);
    needs.chains.extend(local.reverts);
    needs_of_files(workspace, &local.files, needs);
}

/// Stores a batch of the workstation itself, with the files that it left, unless its id or its request id is known.
pub(super) fn append_local(local: &LocalBatch, rows: &Rows) -> Decided<LocalAppended> {
    let mut counters = rows.counters(&local.batch.workspace)?;
    let known = match rows.stored(local.batch.id)? {
        Some(known) => Some(known),
        None => requested(rows, &local.batch)?,
    };
    if let Some(known) = known {
        return Ok((LocalAppended::Known(Box::new(known)), Vec::new()));
    }
    if !counters.lease.admits(local.lease) {
        return Ok((LocalAppended::OtherLease, Vec::new()));
    }
    let LocalBatch { reverts, files, .. } = local;
    let mut batch = local.batch.clone();
    rows.has_chain(*reverts)?;
    let find = |id| Ok(rows.in_chain(id)?.filter(|found| found.workspace == batch.workspace));
    let linked = links::changed(batch.id, *reverts, find)?;
    let mut puts = Vec::new();
    for linked in linked {
        puts.push(put_link(rows, &mut counters, linked)?);
    }
    let content = encode_batch(&batch).to_vec();
    puts.extend(put_new(counters, &mut batch, content, local.facts()));
    puts.extend(put_files(rows, &batch.workspace, files, batch.revision)?);
    Ok((LocalAppended::New(Box::new(batch)), puts))
}

/// What keeps which batch took this one back.
fn put_link(rows: &Rows, counters: &mut Workspace, linked: BatchRecord) -> Result<Put, Stop> {
    let progress = encode_state(&linked).to_vec();
    let records = with_progress(rows, counters, linked.id, progress)?;
    Ok(Put::Changed(Box::new(linked), records))
}

/// The records of a batch with another one of its state, whose bytes are counted.
fn with_progress(rows: &Rows, counters: &mut Workspace, id: BatchId, progress: Vec<u8>) -> Result<Batch, Stop> {
    let missing =
        || StoreError::Corrupt { what: format!("batch {id}"), why: "it is missing although it was read".to_owned() };
    let former = rows.batch(id)?.ok_or_else(missing)?;
    counters.added_bytes += signed(progress.len()) - signed(former.progress.len());
    Ok(Batch { progress, ..former.clone() })
}

/// What stores a batch under the next revision.
fn put_new(mut counters: Workspace, batch: &mut BatchRecord, content: Vec<u8>, facts: EventFacts) -> Vec<Put> {
    counters.is_known = true;
    counters.newest = counters.newest.next();
    counters.open += u64::from(batch.state.is_open());
    batch.revision = counters.newest;
    let progress = encode_state(batch).to_vec();
    counters.added_bytes += signed(content.len() + progress.len());
    let parts = [batch.id.0.as_bytes().as_slice(), &content, &progress, &record::encode_facts(&facts)];
    counters.digest = Some(chain::next(counters.digest, parts));
    let happened = Happened { batch: batch.id, digest: counters.digest, facts: Some(facts), previous: None };
    let workspace = batch.workspace.clone();
    let records = Batch { first: batch.revision, content, progress };
    let mut puts = vec![
        Put::Event(workspace.clone(), NewEvent::of(batch.revision, &happened)),
        Put::Request((workspace.clone(), batch.request_id.clone()), batch.id),
        Put::Workspace(workspace, Box::new(counters)),
    ];
    puts.extend(sessions::put_flight(None, batch));
    puts.push(Put::New(Box::new(batch.clone()), records));
    puts
}

/// What [`transition`] decides by.
pub(super) fn needs_of_step(step: &Transition, needs: &mut Needs) {
    needs.lock(&step.workspace, false);
    needs.batches.insert(step.batch);
    needs.requests.extend(step.freed.iter().map(|request| (step.workspace.clone(), request.clone())));
    needs_of_files(&step.workspace, &step.files, needs);
}

/// Moves a batch from one state to another one, with the files that it left.
pub(super) fn transition(step: &Transition, rows: &Rows) -> Decided<Transitioned> {
    let mut counters = rows.counters(&step.workspace)?;
    let Some(batch) = rows.stored(step.batch)?.filter(|batch| batch.workspace == step.workspace) else {
        return Ok((Transitioned::Unknown, Vec::new()));
    };
    if batch.state != step.from {
        return Ok((Transitioned::OtherState(batch), Vec::new()));
    }
    if lets_go(step.to)
        && let Some(failure) = sessions::restricts(rows, &batch)?
    {
        return Ok((Transitioned::Restricted(failure), Vec::new()));
    }
    if step.lease.is_some_and(|proof| !counters.lease.admits(proof)) {
        return Ok((Transitioned::OtherLease, Vec::new()));
    }
    if let Some(request) = &step.freed
        && let Some(other) = rows.used(&step.workspace, request)?.filter(|other| *other != step.batch)
    {
        return Ok((Transitioned::Reused(other), Vec::new()));
    }
    let reverted = links::reverted(&batch, step);
    rows.has_chain(reverted)?;
    let find = |id| Ok(rows.in_chain(id)?.filter(|found| found.workspace == step.workspace));
    let linked = links::changed(step.batch, reverted, find)?;
    let mut puts = Vec::new();
    for linked in linked {
        puts.push(put_link(rows, &mut counters, linked)?);
    }
    let (batch, stepped) = put_step(rows, &mut counters, batch, step.clone())?;
    puts.extend(stepped);
    let freed = step.freed.clone().map(|request| Put::Request((step.workspace.clone(), request), batch.id));
    puts.extend(freed);
    puts.extend(put_files(rows, &step.workspace, &step.files, counters.newest)?);
    Ok((Transitioned::Done(batch), puts))
}

/// What takes a step of a batch, without its files, under the next revision.
fn put_step(
    rows: &Rows,
    counters: &mut Workspace,
    mut batch: BatchRecord,
    step: Transition,
) -> Result<(BatchRecord, Vec<Put>), Stop> {
    counters.newest = counters.newest.next();
    let (facts, previous) = (step.facts(), Some(batch.revision));
    counters.open = (counters.open + u64::from(step.to.is_open())).saturating_sub(u64::from(batch.state.is_open()));
    let former = batch.state;
    step.apply(&mut batch, counters.newest);
    let progress = encode_state(&batch).to_vec();
    let parts = [batch.id.0.as_bytes().as_slice(), &progress, &record::encode_facts(&facts)];
    counters.digest = Some(chain::next(counters.digest, parts));
    let happened = Happened { batch: batch.id, digest: counters.digest, facts: Some(facts), previous };
    let records = with_progress(rows, counters, batch.id, progress)?;
    let workspace = batch.workspace.clone();
    let mut puts = vec![
        Put::Event(workspace.clone(), NewEvent::of(batch.revision, &happened)),
        Put::Workspace(workspace, Box::new(counters.clone())),
    ];
    puts.extend(sessions::put_flight(Some(former), &batch));
    puts.push(Put::Changed(Box::new(batch.clone()), records));
    Ok((batch, puts))
}

fn needs_of_files(workspace: &WorkspaceId, files: &[FileUpdate], needs: &mut Needs) {
    needs.blobs.extend(files.iter().filter_map(|file| Some((workspace.clone(), file.content?.sha256))));
}

/// What takes over files as they are since an event; the bytes of each are there.
fn put_files(rows: &Rows, workspace: &WorkspaceId, files: &[FileUpdate], revision: Revision) -> Result<Vec<Put>, Stop> {
    rows.are_there(workspace, files.iter().filter_map(|file| Some(file.content?.sha256)))?;
    let mut puts = Vec::new();
    for file in files.iter().filter(|file| file.twins == Twins::Gone) {
        puts.push(Put::RemoveFiles((workspace.clone(), file.doc_path.clone())));
    }
    for file in files.iter().filter(|file| file.content.is_none()) {
        puts.push(Put::RemoveFile((workspace.clone(), file.doc_path.clone()), file.path.clone()));
    }
    for file in files {
        let Some(content) = file.content else { continue };
        let (path, doc_path) = (file.path.clone(), file.doc_path.clone());
        puts.push(Put::File(workspace.clone(), CloudFile { path, doc_path, content, revision }));
    }
    Ok(puts)
}

/// Bytes that a file counts for in a group: about as many as PostgreSQL logs for it.
const FILE_BYTES: usize = 1024;

/// About how many bytes a report writes, with the files that it names.
pub(super) fn bytes_of(report: Option<&Report>, files: &[FileUpdate]) -> usize {
    report.map_or(0, |report| report.diff.len()) + files.len() * FILE_BYTES
}
