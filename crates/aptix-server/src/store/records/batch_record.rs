//! How a batch is written: what never changes about it, and apart from that its state.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::Origin;
use aptix_model::id::{BatchId, FilePatchId, RequestId, Revision, Uuid};
use aptix_model::id_block::{self, ENTRIES};
use aptix_model::record::{BatchRecord, Preparation, Reverting, Sent, Source, UnixMillis};
use aptix_model::report::Report;
use aptix_model::state::BatchState;
use aptix_model::trace_parent::TraceParent;
use aptix_model::wire::bytes::{
    batch_from_bytes, batch_to_bytes, plan_from_bytes, plan_to_bytes, report_from_bytes, report_to_bytes,
};
use fjall::Slice;

use super::record::{Fields, VERSION, Writer, read_version};
use crate::store::StoreError;

/// A batch of the workstation itself, which says who carried it out; the state of a batch that was taken back.
const LOCAL: u8 = 4;
/// A prepared batch; the state of one that its owner let be applied.
const PREPARED: u8 = 5;
/// A prepared batch whose plan tools know by the id of another batch's.
const NAMED: u8 = 8;
/// A batch that takes another one back.
const REVERT: u8 = 7;
/// A batch whose content was removed: the digest of that, how many changes each file had, and the record of what is left.
const REMOVED: u8 = 9;
/// A batch of which the call that stored it is known: whose token it had, its trace, and the record of the batch.
const SENT: u8 = 10;

/// What never changes about a batch but by the removal of its content. Its ids follow from its own.
pub(in crate::store) fn encode_batch(batch: &BatchRecord) -> Slice {
    let Some(removed) = batch.removed_content else { return encode_whole(batch) };
    let record = Writer::with_version(REMOVED).bytes(removed.as_bytes()).number(batch.ids.len() as u64);
    let counts = batch.ids.iter().map(|ids| ids.changes.len() as u64);
    counts.fold(record, Writer::number).bytes(&encode_whole(batch)).finish()
}

/// Whether this is the record of a batch whose content was removed.
pub(in crate::store) fn has_no_content(record: &[u8]) -> bool {
    record.first() == Some(&REMOVED)
}

fn encode_whole(batch: &BatchRecord) -> Slice {
    let Sent { by, traceparent } = &batch.sent;
    if batch.sent == Sent::default() {
        return encode_described(batch);
    }
    let traceparent = traceparent.as_ref().map(ToString::to_string);
    Writer::with_version(SENT)
        .optional(by.as_deref().map(str::as_bytes))
        .optional(traceparent.as_deref().map(str::as_bytes))
        .bytes(&encode_described(batch))
        .finish()
}

fn encode_described(batch: &BatchRecord) -> Slice {
    let version = match &batch.source {
        Source::Submitted => VERSION,
        Source::Prepared(preparation) if preparation.hunk.is_some() => NAMED,
        Source::Prepared(_) => PREPARED,
        Source::Local { .. } => LOCAL,
        Source::Revert(_) => REVERT,
    };
    let record = Writer::with_version(version)
        .bytes(batch.workspace.as_str().as_bytes())
        .bytes(batch.request_id.as_str().as_bytes())
        .optional(batch.origin.session_id.as_deref().map(str::as_bytes))
        .optional(batch.origin.conversation_id.as_deref().map(str::as_bytes))
        .optional(batch.origin.turn_id.as_deref().map(str::as_bytes))
        .number(batch.created.0)
        .bytes(&batch_to_bytes(&batch.batch));
    match &batch.source {
        Source::Submitted => record.finish(),
        Source::Prepared(preparation) => {
            let record = record
                .bytes(preparation.owner.as_str().as_bytes())
                .number(preparation.expires.0)
                .optional(preparation.replaces.as_ref().map(|id| id.0.as_bytes().as_slice()))
                .optional(preparation.plan.as_ref().map(plan_to_bytes).as_deref());
            match preparation.hunk {
                Some(hunk) => record.bytes(hunk.0.as_bytes()).finish(),
                None => record.finish(),
            }
        }
        Source::Local { author, reverts } => record
            .bytes(author.kind.word().as_bytes())
            .optional(author.name.as_deref().map(str::as_bytes))
            .optional(reverts.as_ref().map(|id| id.0.as_bytes().as_slice()))
            .finish(),
        Source::Revert(Reverting { of, author, reason }) => record
            .bytes(of.0.as_bytes())
            .bytes(author.kind.word().as_bytes())
            .optional(author.name.as_deref().map(str::as_bytes))
            .optional(reason.as_deref().map(str::as_bytes))
            .finish(),
    }
}

/// What changes about a batch: its state and report, which batch took it back, and which request had it applied.
pub(in crate::store) fn encode_state(batch: &BatchRecord) -> Slice {
    let freed = batch.preparation().and_then(|preparation| preparation.freed.as_ref());
    let version = match (freed, batch.reverted_by) {
        (Some(_), _) => PREPARED,
        (None, Some(_)) => LOCAL,
        (None, None) => VERSION,
    };
    let record = Writer::with_version(version)
        .number(batch.revision.0)
        .bytes(batch.state.word().as_bytes())
        .number(batch.updated.0)
        .optional(batch.report.as_ref().map(report_to_bytes).as_deref());
    let reverted_by = batch.reverted_by.as_ref().map(|id| id.0.as_bytes().as_slice());
    match (freed, reverted_by) {
        (Some(freed), reverted_by) => record.optional(reverted_by).bytes(freed.as_str().as_bytes()).finish(),
        (None, Some(id)) => record.bytes(id).finish(),
        (None, None) => record.finish(),
    }
}

/// How far a batch has come: its newest event, and its state.
pub(in crate::store) fn decode_progress(what: &str, record: &[u8]) -> Result<(Revision, BatchState), StoreError> {
    let version = record.first().copied().filter(|version| [LOCAL, PREPARED].contains(version)).unwrap_or(VERSION);
    read_version(version, what, record, |fields| {
        let (revision, state) = (Revision(fields.number()?), BatchState::from_word(fields.text()?)?);
        let (_updated, _report) = (fields.number()?, fields.optional()?);
        match version {
            LOCAL => drop(fields.id()?),
            PREPARED => drop((fields.optional()?, fields.text()?)),
            _ => {}
        }
        Some((revision, state))
    })
}

/// What changes about a batch.
pub(in crate::store) struct State {
    pub(in crate::store) revision: Revision,
    pub(in crate::store) state: BatchState,
    updated: UnixMillis,
    report: Option<Report>,
    reverted_by: Option<BatchId>,
    freed: Option<RequestId>,
}

pub(in crate::store) fn decode_state(what: &str, record: &[u8]) -> Result<State, StoreError> {
    let version = record.first().copied().filter(|version| [LOCAL, PREPARED].contains(version)).unwrap_or(VERSION);
    read_version(version, what, record, |fields| {
        let revision = Revision(fields.number()?);
        let word = fields.text()?;
        let state = BatchState::from_word(word)?;
        let updated = UnixMillis(fields.number()?);
        let report = match fields.optional()? {
            Some(report) => Some(report_from_bytes(report).ok()?),
            None => None,
        };
        let (reverted_by, freed) = match version {
            LOCAL => (Some(BatchId(fields.id()?)), None),
            PREPARED => (optional_id(fields)?, Some(fields.text()?.parse().ok()?)),
            _ => (None, None),
        };
        Some(State { revision, state, updated, report, reverted_by, freed })
    })
}

pub(in crate::store) fn decode_batch(id: BatchId, batch: &[u8], state: &[u8]) -> Result<BatchRecord, StoreError> {
    if has_no_content(batch) {
        return decode_removed(id, batch, state);
    }
    if batch.first() == Some(&SENT) {
        return decode_sent(id, batch, state);
    }
    let what = format!("batch {id}");
    let State { revision, state, updated, report, reverted_by, freed } = decode_state(&what, state)?;
    let known = [LOCAL, PREPARED, REVERT, NAMED];
    let version = batch.first().copied().filter(|version| known.contains(version)).unwrap_or(VERSION);
    read_version(version, &what, batch, |fields| {
        let workspace = fields.text()?.parse().ok()?;
        let request_id = fields.text()?.parse().ok()?;
        let origin = Origin {
            session_id: fields.optional_text()?,
            conversation_id: fields.optional_text()?,
            turn_id: fields.optional_text()?,
        };
        let created = UnixMillis(fields.number()?);
        let batch = batch_from_bytes(fields.bytes()?).ok()?;
        let ids = id_block::of(id, &batch);
        let source = match version {
            LOCAL => local(fields)?,
            REVERT => Source::Revert(reverting(fields)?),
            PREPARED => Source::Prepared(Box::new(preparation(fields, freed)?)),
            NAMED => {
                let preparation = preparation(fields, freed)?;
                let hunk = Some(FilePatchId(fields.id()?));
                Source::Prepared(Box::new(Preparation { hunk, ..preparation }))
            }
            _ => Source::Submitted,
        };
        Some(BatchRecord {
            id,
            workspace,
            revision,
            state,
            batch,
            ids,
            origin,
            request_id,
            created,
            updated,
            report,
            source,
            reverted_by,
            is_restricted: false,
            removed_content: None,
            sent: Sent::default(),
        })
    })
}

/// A batch whose content was removed. Its changes have the ids that they always had.
fn decode_removed(id: BatchId, batch: &[u8], state: &[u8]) -> Result<BatchRecord, StoreError> {
    let (removed, counts, whole) = read_version(REMOVED, &format!("batch {id}"), batch, |fields| {
        let (removed, files) = (fields.digest()?, fields.number()?);
        let counts = (0..files).map(|_| usize::try_from(fields.number()?).ok().filter(|count| *count <= ENTRIES));
        Some((removed, counts.collect::<Option<Vec<_>>>()?, fields.bytes()?.to_vec()))
    })?;
    let left = decode_batch(id, &whole, state)?;
    Ok(BatchRecord { ids: id_block::counted(id, counts.into_iter()), removed_content: Some(removed), ..left })
}

/// A batch of which the call that stored it is known.
fn decode_sent(id: BatchId, batch: &[u8], state: &[u8]) -> Result<BatchRecord, StoreError> {
    let (sent, described) = read_version(SENT, &format!("batch {id}"), batch, |fields| {
        let by = fields.optional_text()?;
        let traceparent = match fields.optional()? {
            Some(text) => Some(TraceParent::from_bytes(text)?),
            None => None,
        };
        let described = fields.bytes()?;
        (described.first() != Some(&SENT)).then(|| (Sent { by, traceparent }, described.to_vec()))
    })?;
    Ok(BatchRecord { sent, ..decode_batch(id, &described, state)? })
}

/// Who carried a batch out on the workstation, and which one it took back.
fn local(fields: &mut Fields<'_>) -> Option<Source> {
    let author = Actor { kind: ActorKind::from_word(fields.text()?)?, name: fields.optional_text()? };
    Some(Source::Local { author, reverts: optional_id(fields)? })
}

/// Which batch a revert takes back, for whom and why.
fn reverting(fields: &mut Fields<'_>) -> Option<Reverting> {
    Some(Reverting {
        of: BatchId(fields.id()?),
        author: Actor { kind: ActorKind::from_word(fields.text()?)?, name: fields.optional_text()? },
        reason: fields.optional_text()?,
    })
}

/// How a batch was prepared, and which request had it applied.
fn preparation(fields: &mut Fields<'_>, freed: Option<RequestId>) -> Option<Preparation> {
    Some(Preparation {
        owner: fields.text()?.parse().ok()?,
        expires: UnixMillis(fields.number()?),
        replaces: optional_id(fields)?,
        plan: match fields.optional()? {
            Some(plan) => Some(plan_from_bytes(plan).ok()?),
            None => None,
        },
        hunk: None,
        freed,
    })
}

fn optional_id(fields: &mut Fields<'_>) -> Option<Option<BatchId>> {
    match fields.optional()? {
        Some(id) => Some(Some(BatchId(Uuid::from_slice(id).ok()?))),
        None => Some(None),
    }
}
