//! The items of a backup as bytes: a kind, then fields in a fixed order. What has a record in the store on disk is written as that
//! record, which has its own version.

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, HistoryId, Revision, Uuid};
use aptix_model::record::UnixMillis;
use tokio_util::bytes::Bytes;

use super::item::{Item, StoreFacts, WorkspaceFacts};
use crate::store::records::record::{self, Counters, Fields, Happened};
use crate::store::records::{batch_record, retention_record, session_record, token_record};
use crate::store::{Event, StoreError};

/// The kind of an item, and its fields.
pub(super) fn encode(item: &Item) -> (u8, Vec<u8>) {
    let fields = record::Writer::new();
    match item {
        Item::Store(facts) => {
            let age = facts.age.map(retention_record::encode_age);
            let fields = fields.bytes(facts.history.0.as_bytes()).number(facts.taken.0).bytes(facts.server.as_bytes());
            (b's', fields.optional(age.as_deref()).number(u64::from(facts.tokens_needed)).into_fields())
        }
        Item::Token(kept) => (b'q', token_record::encode(kept).to_vec()),
        Item::Workspace(facts) => {
            let WorkspaceFacts { id, newest, digest, lease, roots, trim, notes } = &**facts;
            let counters = Counters { newest: *newest, digest: *digest, lease: *lease, open: None };
            let fields = fields
                .bytes(id.as_str().as_bytes())
                .bytes(&record::encode_counters(counters))
                .bytes(&record::encode_texts(roots))
                .bytes(&retention_record::encode_trim(trim))
                .bytes(&retention_record::encode_notes(notes));
            (b'w', fields.into_fields())
        }
        Item::Session(session) => (b't', session_record::encode(session).to_vec()),
        Item::Batch(first, batch) => {
            let (content, state) = (batch_record::encode_batch(batch), batch_record::encode_state(batch));
            let fields = fields.number(first.0).bytes(batch.id.0.as_bytes()).bytes(&content).bytes(&state);
            (b'b', fields.into_fields())
        }
        Item::Plan(hunk, batch) => (b'k', fields.bytes(hunk.0.as_bytes()).bytes(batch.0.as_bytes()).into_fields()),
        Item::Event(event, previous) => {
            let Event { revision, batch, digest, facts } = &**event;
            let happened = Happened { batch: *batch, digest: *digest, facts: facts.clone(), previous: *previous };
            (b'e', fields.number(revision.0).bytes(&record::encode_event(&happened)).into_fields())
        }
        Item::File(file) => (b'f', record::encode_file(file).to_vec()),
        Item::Blob(blob) => (b'm', fields.bytes(blob.sha256.as_bytes()).number(blob.size_bytes).into_fields()),
        Item::Chunk(bytes) => (b'c', bytes.to_vec()),
    }
}

/// The item of these bytes: a kind, and its fields.
///
/// # Errors
/// Why there is none.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Item, String> {
    let said = |error: StoreError| error.to_string();
    let Some((kind, fields)) = bytes.split_first() else { return Err("an item without a kind".to_owned()) };
    match kind {
        b'c' => Ok(Item::Chunk(Bytes::from(bytes).slice(1..))),
        b'q' => token_record::decode(fields).map(Item::Token).map_err(said),
        b't' => session_record::decode_any(fields).map(Item::Session).map_err(said),
        b'f' => record::decode_file(fields).map(Item::File).map_err(said),
        b's' | b'w' | b'b' | b'k' | b'e' | b'm' => {
            let mut fields = Fields::of(fields);
            let item = compound(*kind, &mut fields).map_err(said)?;
            let item = item.filter(|_| fields.is_empty());
            item.ok_or_else(|| {
                format!("an item of kind {:?} has a field that is missing or malformed", char::from(*kind))
            })
        }
        other => Err(format!("an item of unknown kind {:?}", char::from(*other))),
    }
}

/// An item of several fields; `None` where one is missing or malformed.
fn compound(kind: u8, fields: &mut Fields<'_>) -> Result<Option<Item>, StoreError> {
    Ok(match kind {
        b's' => store(fields)?,
        b'w' => workspace(fields)?,
        b'b' => batch(fields)?,
        b'e' => event(fields)?,
        b'k' => plan(fields),
        _ => blob(fields),
    })
}

fn store(fields: &mut Fields<'_>) -> Result<Option<Item>, StoreError> {
    let read = (|| Some((fields.id()?, fields.number()?, fields.text()?, fields.optional()?, fields.number()?)))();
    let Some((history, taken, server, age, needed)) = read else { return Ok(None) };
    Ok(Some(Item::Store(StoreFacts {
        history: HistoryId(history),
        taken: UnixMillis(taken),
        server: server.to_owned(),
        age: age.map(retention_record::decode_age).transpose()?,
        tokens_needed: needed != 0,
    })))
}

fn workspace(fields: &mut Fields<'_>) -> Result<Option<Item>, StoreError> {
    let read =
        (|| Some((fields.text()?.parse().ok()?, fields.bytes()?, fields.bytes()?, fields.bytes()?, fields.bytes()?)))();
    let Some((id, counters, roots, trim, notes)) = read else { return Ok(None) };
    let Counters { newest, digest, lease, .. } = record::decode_counters(counters)?;
    Ok(Some(Item::Workspace(Box::new(WorkspaceFacts {
        id,
        newest,
        digest,
        lease,
        roots: record::decode_texts(roots)?,
        trim: retention_record::decode_trim(trim)?,
        notes: retention_record::decode_notes(notes)?,
    }))))
}

fn batch(fields: &mut Fields<'_>) -> Result<Option<Item>, StoreError> {
    let read = (|| Some((fields.number()?, fields.id()?, fields.bytes()?, fields.bytes()?)))();
    let Some((first, id, content, state)) = read else { return Ok(None) };
    let record = batch_record::decode_batch(BatchId(id), content, state)?;
    Ok(Some(Item::Batch(Revision(first), Box::new(record))))
}

fn event(fields: &mut Fields<'_>) -> Result<Option<Item>, StoreError> {
    let read = (|| Some((fields.number()?, fields.bytes()?)))();
    let Some((revision, happened)) = read else { return Ok(None) };
    let Happened { batch, digest, facts, previous } = record::decode_event(happened)?;
    let event = Event { revision: Revision(revision), batch, digest, facts };
    Ok(Some(Item::Event(Box::new(event), previous)))
}

fn plan(fields: &mut Fields<'_>) -> Option<Item> {
    let mut id = || fields.id();
    let (hunk, batch): (Uuid, Uuid) = (id()?, id()?);
    Some(Item::Plan(FilePatchId(hunk), BatchId(batch)))
}

fn blob(fields: &mut Fields<'_>) -> Option<Item> {
    let sha256: Sha256Digest = fields.digest()?;
    Some(Item::Blob(BlobRef { sha256, size_bytes: fields.number()? }))
}
