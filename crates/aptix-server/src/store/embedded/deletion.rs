//! Deletes a workspace. One commit puts a record of the deletion in the place of the workspace's counters; from then on reads find no
//! such workspace and writes in it are refused. Its other records are removed in bounded commits, each of which notes where the
//! next one begins, so that no record is passed twice. The last commit removes the record of the deletion.

use std::collections::HashSet;

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::{Ended, Scope};
use fjall::Slice;

use super::committer::{Put, View};
use super::instant::Instant;
use super::keys::{self, Key};
use super::record::{self, Marker, Writer};
use super::tables::failed;
use super::{token_record, usage, writes};
use crate::store::deletion::Deletion;
use crate::store::{StoreError, UploadId};

/// The tables that are emptied of a workspace, in this order; one that expires is listed among those of all workspaces.
const TABLES: &[u8] = b"lrekatfgmip";

/// What one commit removes at most, by weight.
const MOST: usize = 256;

/// The weight of a blob or an upload: up to so many records are removed in its place. Its chunks are removed behind the commit.
const BLOB: usize = 16;

/// How far a deletion has come, as its record has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Progress {
    open_batches: u64,
    bytes: u64,
    batches: u64,
    /// The key at which the next commit begins; empty before the first.
    next: Key,
}

pub(super) fn encode(progress: &Progress) -> Slice {
    let Progress { open_batches, bytes, batches, next } = progress;
    Writer::new().number(*open_batches).number(*bytes).number(*batches).bytes(next).finish()
}

pub(super) fn decode(record: &[u8]) -> Result<Progress, StoreError> {
    record::read("the deletion of a workspace", record, |fields| {
        let (open_batches, bytes, batches) = (fields.number()?, fields.number()?, fields.number()?);
        Some(Progress { open_batches, bytes, batches, next: fields.bytes()?.to_vec() })
    })
}

/// Begins a deletion; answers the tokens that end with it, or `None` if there is no such workspace.
pub(super) fn begin(
    view: &View<'_>,
    workspace: &WorkspaceId,
    ended: Ended,
) -> Result<(Option<Vec<TokenName>>, Vec<Put>), StoreError> {
    let (key, mark) = (keys::workspace(workspace), keys::deletion(workspace));
    if view.get(&mark)?.is_some() {
        return Ok((Some(Vec::new()), Vec::new()));
    }
    if view.get(&key)?.is_none() {
        return Ok((None, Vec::new()));
    }
    let open_batches = writes::counters(view, workspace)?.open.unwrap_or_default();
    // A sum that is damaged is reported as 0: the deletion does not depend on it.
    let sum = view.get(&keys::usage(workspace))?.and_then(|sum| usage::decode(&sum).ok());
    let progress = Progress { open_batches, bytes: sum.unwrap_or_default(), ..Progress::default() };
    let mut puts = vec![Put::RemoveRecord(key), Put::Record(mark, encode(&progress))];
    let mut names = Vec::new();
    for (key, value) in view.beginning_with(keys::TOKENS)? {
        let Ok(mut kept) = token_record::decode(&value) else { continue };
        if kept.token.scope == Scope::One(workspace.clone()) && kept.token.ended.is_none() {
            kept.token.ended = Some(ended);
            puts.push(Put::Record(key, token_record::encode(&kept)));
            names.push(kept.token.name);
        }
    }
    view.count_deletion();
    Ok((Some(names), puts))
}

/// How far a deletion came with a commit, and the uploads whose chunks are to be removed behind it.
pub(super) type Committed = (Deletion, Vec<UploadId>);

/// One commit of a deletion.
pub(super) struct Step {
    /// The record of the deletion, as it was when the step was planned.
    before: Slice,
    progress: Progress,
    removed: Vec<Key>,
    /// Blobs and uploads, with the uploads that their bytes came by.
    uploads: Vec<(Key, UploadId)>,
    is_last: bool,
}

impl Step {
    /// Takes a record of the workspace; answers its weight.
    fn take(&mut self, now: &Instant<'_>, key: Key, value: &[u8]) -> Result<usize, StoreError> {
        match key.first() {
            Some(b'm' | b'i') => {
                match record::decode_marker(value) {
                    Ok(Marker { upload, .. }) => self.uploads.push((key, upload)),
                    // What its bytes are is not known; they stay, and no record names them.
                    Err(_) => self.removed.push(key),
                }
                return Ok(BLOB);
            }
            Some(b'l') => {
                self.progress.batches += 1;
                if let Ok(id) = record::decode_id(value) {
                    self.removed.extend([keys::batch(id), keys::state(id)]);
                }
            }
            // Where the entry of a batch in the list was damaged, its request leads to it.
            Some(b'r') => {
                if let Ok(id) = record::decode_id(value)
                    && now.get(&keys::batch(id))?.is_some()
                {
                    self.removed.extend([keys::batch(id), keys::state(id)]);
                }
            }
            _ => {}
        }
        self.removed.push(key);
        Ok(1)
    }

    /// What the commit puts, unless another one came first.
    pub(super) fn commit(
        self,
        view: &View<'_>,
        workspace: &WorkspaceId,
    ) -> Result<(Option<Committed>, Vec<Put>), StoreError> {
        let mark = keys::deletion(workspace);
        if view.get(&mark)?.as_ref() != Some(&self.before) {
            return Ok((None, Vec::new()));
        }
        let Progress { open_batches, bytes, batches, .. } = self.progress;
        let mut puts: Vec<_> = self.removed.into_iter().map(Put::RemoveRecord).collect();
        let mut uploads = Vec::new();
        for (key, upload) in self.uploads {
            // A sweep may have removed it meanwhile.
            if view.get(&key)?.is_some() {
                puts.push(Put::RemoveRecord(key));
                puts.push(Put::Record(keys::upload(upload), record::encode_id(upload.0)));
                uploads.push(upload);
            }
        }
        if self.is_last {
            let single = [keys::session_count, keys::roots, keys::trim, keys::notes, keys::usage, keys::deletion];
            puts.extend(single.map(|key| Put::RemoveRecord(key(workspace))));
        } else {
            puts.push(Put::Record(mark, encode(&self.progress)));
        }
        Ok((Some((Deletion { batches, bytes, open_batches, is_done: self.is_last }, uploads)), puts))
    }
}

impl View<'_> {
    /// Whether a workspace is being deleted.
    pub(super) fn is_deleted(&self, workspace: &WorkspaceId) -> Result<bool, StoreError> {
        Ok(self.deletions() > 0 && self.get(&keys::deletion(workspace))?.is_some())
    }
}

impl Instant<'_> {
    /// Whether a workspace is being deleted.
    pub(super) fn is_deleted(&self, workspace: &WorkspaceId) -> Result<bool, StoreError> {
        Ok(self.tables.deletions() > 0 && self.get(&keys::deletion(workspace))?.is_some())
    }

    /// The workspaces that are being deleted.
    pub(super) fn deletions(&self) -> Result<Vec<WorkspaceId>, StoreError> {
        let mut found = Vec::new();
        for entry in self.prefix(keys::DELETIONS) {
            let key = entry.key().map_err(failed("list deletions"))?;
            found.extend(keys::owner_of(&key));
        }
        Ok(found)
    }

    /// The same, as far as they can be read.
    pub(super) fn every_deletion(&self) -> HashSet<WorkspaceId> {
        self.deletions().unwrap_or_default().into_iter().collect()
    }

    /// The next step of a deletion; `None` if the workspace is not being deleted.
    pub(super) fn step_of_deletion(&self, workspace: &WorkspaceId) -> Result<Option<Step>, StoreError> {
        let Some(before) = self.get(&keys::deletion(workspace))? else { return Ok(None) };
        // One that is damaged begins anew.
        let progress = decode(&before).unwrap_or_default();
        let first = progress.next.clone();
        let at = TABLES.iter().position(|table| first.first() == Some(table)).unwrap_or_default();
        let mut step = Step { before, progress, removed: Vec::new(), uploads: Vec::new(), is_last: false };
        let mut weight = 0;
        for table in TABLES.iter().skip(at) {
            let is_due = [*table] == keys::DUE;
            let begins = if is_due { keys::DUE.to_vec() } else { keys::in_table(*table, workspace) };
            let from = if first.first() == Some(table) { first.clone() } else { begins.clone() };
            for entry in self.range(from..) {
                let (key, value) = entry.into_inner().map_err(failed("list records of a workspace"))?;
                if !key.starts_with(&begins) {
                    break;
                }
                if is_due && !is_of(workspace, &value) {
                    continue;
                }
                if weight >= MOST {
                    step.progress.next = key.to_vec();
                    return Ok(Some(step));
                }
                weight += step.take(self, key.to_vec(), &value)?;
            }
        }
        step.is_last = true;
        Ok(Some(step))
    }
}

/// Whether an entry in the list of batches that expire is of a workspace.
fn is_of(workspace: &WorkspaceId, entry: &[u8]) -> bool {
    record::decode_texts(entry).is_ok_and(|texts| texts.first().is_some_and(|text| *text == workspace.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let progress = Progress { open_batches: 1, bytes: 2, batches: 3, next: b"lw\0".to_vec() };
        assert_eq!(decode(&encode(&progress)), Ok(progress));
        assert!(decode(b"").is_err());
    }
}
