//! How many bytes each workspace stores: the records of its batches, its blobs, and what was announced of uploads that can be
//! resumed. Every commit that changes one of them changes the sum in a record of its own, so that neither a write nor a reader adds
//! them up.

use std::collections::BTreeMap;

use aptix_model::id::{Uuid, WorkspaceId};
use fjall::{PersistMode, Slice};

use super::instant::Instant;
use super::keys;
use super::record::{self, Writer, read};
use super::session_record;
use super::tables::{Tables, failed};
use crate::store::StoreError;

pub(super) fn encode(bytes: u64) -> Slice {
    Writer::new().number(bytes).finish()
}

pub(super) fn decode(record: &[u8]) -> Result<u64, StoreError> {
    read("the stored bytes of a workspace", record, |fields| fields.number())
}

/// A number of bytes as a change.
pub(super) fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// How stored bytes change when so many take the place of others.
pub(super) fn change(before: u64, after: u64) -> i64 {
    after.cast_signed().saturating_sub(before.cast_signed())
}

/// The record of a sum after a change of it.
///
/// # Errors
/// When the sum is damaged.
pub(super) fn changed(before: Option<&Slice>, by: i64) -> Result<Slice, StoreError> {
    let before = before.map_or(Ok(0), |record| decode(record))?;
    Ok(encode(before.saturating_add_signed(by)))
}

/// Adds up what every workspace stores, and counts the tokens, unless the store has these sums: a store of an earlier version has none.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) fn count_unknown(tables: &Tables) -> Result<(), StoreError> {
    let now = tables.now();
    if now.get(&keys::USAGE.to_vec())?.is_some() {
        return Ok(());
    }
    let mut batch = tables.db.batch().durability(Some(PersistMode::SyncAll));
    for entry in now.prefix(keys::USAGE) {
        batch.remove(&tables.records, entry.key().map_err(failed("list records"))?);
    }
    for (workspace, bytes) in now.used() {
        batch.insert(&tables.records, keys::usage(&workspace), encode(bytes));
    }
    let tokens = now.prefix(keys::TOKENS).count() as u64;
    batch.insert(&tables.records, keys::TOKEN_COUNT, session_record::encode_count(tokens));
    batch.insert(&tables.records, keys::USAGE, record::encode_id(Uuid::nil()));
    batch.commit().map_err(failed("keep the stored bytes of workspaces"))
}

impl Instant<'_> {
    /// The bytes that a workspace stores. Where the record of their sum is damaged they are added up.
    pub(super) fn used_bytes(&self, workspace: &WorkspaceId) -> Result<u64, StoreError> {
        let Some(record) = self.get(&keys::usage(workspace))? else { return Ok(0) };
        Ok(decode(&record).unwrap_or_else(|_| self.used().remove(workspace).unwrap_or_default()))
    }

    /// The bytes that each workspace stores, added up. What cannot be read is not counted.
    pub(super) fn used(&self) -> BTreeMap<WorkspaceId, u64> {
        let mut used = BTreeMap::<_, u64>::new();
        for entry in self.prefix(keys::LISTED) {
            let Ok((key, value)) = entry.into_inner() else { break };
            let Some((workspace, id)) = keys::owner_of(&key).zip(record::decode_id(&value).ok()) else { continue };
            let length = |key| self.get(&key).ok().flatten().map_or(0, |record| record.len() as u64);
            *used.entry(workspace).or_default() += length(keys::batch(id)) + length(keys::state(id));
        }
        for entry in self.prefix(keys::BLOBS).chain(self.prefix(keys::UNFINISHED)) {
            let Ok((key, value)) = entry.into_inner() else { break };
            let Some((workspace, marker)) = keys::owner_of(&key).zip(record::decode_marker(&value).ok()) else {
                continue;
            };
            *used.entry(workspace).or_default() += marker.size_bytes;
        }
        used
    }
}
