//! A backup of the tables at one instant. What cannot be read, or is missing, ends it: a backup is whole, or there is none.

use std::io::Write;

use aptix_model::batch::BlobRef;
use aptix_model::id::{FilePatchId, HistoryId, Revision, Uuid, WorkspaceId};
use fjall::{Guard, Readable, Slice};

use super::batch_record;
use super::instant::Instant;
use super::keys;
use super::record::{self, Counters, Happened};
use super::retention_record::{decode_age, decode_notes, decode_trim};
use super::session_record;
use super::tables::failed;
use super::tokens::Needed;
use crate::mint;
use crate::store::access::Tokens;
use crate::store::backup::{Item, StoreFacts, Summary, WorkspaceFacts, Writer};
use crate::store::{Event, StoreError};

/// What a backup is written with.
type Backup = Writer<Box<dyn Write + Send>>;

fn corrupt(what: String, why: &str) -> StoreError {
    StoreError::Corrupt { what, why: why.to_owned() }
}

/// The key and the value of an entry.
fn entry(found: Guard) -> Result<(Slice, Slice), StoreError> {
    found.into_inner().map_err(failed("list records"))
}

impl Instant<'_> {
    /// Writes a backup.
    pub(super) fn back_up(
        &self,
        history: HistoryId,
        needed: &Needed,
        out: Box<dyn Write + Send>,
    ) -> Result<Summary, StoreError> {
        let mut backup = Writer::begin(out)?;
        let Tokens { readable, damaged, .. } = self.tokens()?;
        if let Some(damaged) = damaged.first() {
            return Err(corrupt("a token".to_owned(), damaged));
        }
        backup.item(&Item::Store(StoreFacts {
            history,
            taken: mint::now(),
            server: env!("CARGO_PKG_VERSION").to_owned(),
            age: self.get(&keys::AGE.to_vec())?.map(|age| decode_age(&age)).transpose()?,
            tokens_needed: needed.is_said(),
        }))?;
        readable.into_iter().try_for_each(|token| backup.item(&Item::Token(token)))?;
        for found in self.snapshot.prefix(&self.tables.records, keys::WORKSPACES) {
            let (key, value) = entry(found)?;
            let malformed = || corrupt("a workspace".to_owned(), "its key is none");
            let workspace = keys::workspace_of(&key).ok_or_else(malformed)?;
            self.back_up_workspace(&workspace, record::decode_counters(&value)?, &mut backup)?;
        }
        backup.finish()
    }

    fn back_up_workspace(
        &self,
        workspace: &WorkspaceId,
        counters: Counters,
        backup: &mut Backup,
    ) -> Result<(), StoreError> {
        let Counters { newest, digest, lease, .. } = counters;
        let trim = self.get(&keys::trim(workspace))?.map(|trim| decode_trim(&trim)).transpose()?.unwrap_or_default();
        let notes = self.get(&keys::notes(workspace))?.map(|notes| decode_notes(&notes)).transpose()?;
        let (id, roots, notes) = (workspace.clone(), self.roots(workspace)?, notes.unwrap_or_default());
        backup.item(&Item::Workspace(Box::new(WorkspaceFacts { id, newest, digest, lease, roots, trim, notes })))?;
        for found in self.snapshot.prefix(&self.tables.records, keys::sessions(workspace)) {
            backup.item(&Item::Session(session_record::decode_any(&entry(found)?.1)?))?;
        }
        self.back_up_batches(workspace, backup)?;
        for found in self.snapshot.prefix(&self.tables.records, keys::hunks(workspace)) {
            let (key, value) = entry(found)?;
            let hunk = key.last_chunk().copied().map_or_else(Uuid::nil, Uuid::from_bytes);
            backup.item(&Item::Plan(FilePatchId(hunk), record::decode_id(&value)?))?;
        }
        for found in self.snapshot.prefix(&self.tables.records, keys::events(workspace)) {
            let (key, value) = entry(found)?;
            let revision = keys::revision_of(&key).unwrap_or_default();
            let Happened { batch, digest, facts, previous } = record::decode_event(&value)?;
            backup.item(&Item::Event(Box::new(Event { revision, batch, digest, facts }), previous))?;
        }
        let files = keys::files(workspace);
        for found in self.snapshot.prefix(&self.tables.records, &files) {
            let (key, value) = entry(found)?;
            let file = record::decode_file(&value)?;
            if keys::file(workspace, &file.path) != *key {
                return Err(corrupt(format!("file {}", file.path), "it is the record of another file"));
            }
            backup.item(&Item::File(file))?;
        }
        self.back_up_blobs(workspace, backup)
    }

    fn back_up_batches(&self, workspace: &WorkspaceId, backup: &mut Backup) -> Result<(), StoreError> {
        let range = keys::listed(workspace, Revision(0))..=keys::listed(workspace, Revision(u64::MAX));
        for found in self.snapshot.range(&self.tables.records, range) {
            let (key, value) = entry(found)?;
            let (first, id) = (keys::revision_of(&key).unwrap_or_default(), record::decode_id(&value)?);
            let (batch, state) = (self.get(&keys::batch(id))?, self.get(&keys::state(id))?);
            let (Some(batch), Some(state)) = (batch, state) else {
                return Err(corrupt(format!("batch {id}"), "it is missing although another record names it"));
            };
            let batch = batch_record::decode_batch(id, &batch, &state)?;
            backup.item(&Item::Batch(first, Box::new(batch)))?;
        }
        Ok(())
    }

    /// Every blob with its bytes, those of uploads that were not finished left out.
    fn back_up_blobs(&self, workspace: &WorkspaceId, backup: &mut Backup) -> Result<(), StoreError> {
        for found in self.snapshot.prefix(&self.tables.records, keys::blobs(workspace)) {
            let (key, value) = entry(found)?;
            let malformed = || corrupt("a blob".to_owned(), "its key is none");
            let (_, sha256) = keys::blob_of(&key).ok_or_else(malformed)?;
            let marker = record::decode_marker(&value)?;
            backup.item(&Item::Blob(BlobRef { sha256, size_bytes: marker.size_bytes }))?;
            for index in 0.. {
                let Some(chunk) = self.upload_chunk(marker.upload, index)? else { break };
                backup.item(&Item::Chunk(chunk))?;
            }
        }
        Ok(())
    }
}
