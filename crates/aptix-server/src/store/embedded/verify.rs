//! Reads everything in a data directory and names every damage. It changes nothing: it reads a look-alike.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use fjall::Readable;
use sha2::{Digest, Sha256};

use super::format;
use super::guard::{self, Opening};
use super::keys::{self, Key};
use super::lock::lock;
use super::record;
use super::retention_record;
use super::scan;
use super::session_record;
use super::tables::Tables;
use super::{deletion, marks, parts, token_record, usage};
use crate::store::{BatchSelector, StoreError};

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// Everything that is not as it was written, each named.
    pub damages: Vec<String>,
    /// What is no damage and may be of interest.
    pub notes: Vec<String>,
    /// Records that were read.
    pub records: u64,
    /// Bytes of blobs that were read and have the right digest.
    pub blob_bytes: u64,
}

/// Reads everything in a data directory that no server uses.
///
/// # Errors
/// When there is no data directory, a server uses it, or the system refuses.
pub fn verify(dir: &Path) -> Result<Findings, StoreError> {
    if !format::is_store(dir) {
        let cause = format!("{} has no store in it", dir.display());
        return Err(StoreError::Failed { action: "verify the data directory", cause });
    }
    let _locked = lock(dir)?;
    format::read(dir)?;
    let mut found = Findings::default();
    let marks = marks::read(dir)?;
    found.damages.extend(marks.iter().flat_map(|marks| marks.damaged.clone()));
    let journals = scan::journals(dir)?;
    let view = guard::view(dir, &journals)?;
    let broken: Vec<_> = (journals.files.iter())
        .filter_map(|journal| {
            Some(format!("{} from byte {}: {}", journal.path.display(), journal.end, journal.broken?))
        })
        .collect();
    let parts = parts::damaged(dir);
    if !parts.is_empty() {
        // The database would remove, or stumble over, what is damaged.
        found.damages.extend(broken.into_iter().chain(parts));
        return Ok(found);
    }
    match Tables::open(view.path(), Opening::default().open_files) {
        Err(error) => found.damages.extend(broken.into_iter().chain([error.to_string()])),
        Ok(tables) => {
            let lost = guard::lost(&tables, marks.as_ref(), &journals)?;
            if lost.is_empty() {
                // What follows was not acknowledged.
                let unneeded = |broken: String| format!("{broken}: nothing that follows was acknowledged");
                found.notes.extend(broken.into_iter().map(unneeded));
            } else {
                found.damages.extend(broken);
            }
            found.damages.extend(lost);
            // The database panics on some damaged tables.
            if catch_unwind(AssertUnwindSafe(|| read_all(&tables, marks.as_ref(), &mut found))).is_err() {
                found.damages.push("the database failed to read a table, and the rest was not read".to_owned());
            }
        }
    }
    found.damages.dedup();
    Ok(found)
}

fn read_all(tables: &Tables, marks: Option<&marks::Marks>, found: &mut Findings) {
    let workspaces = tables.now().every_workspace(marks);
    for (workspace, counters) in &workspaces {
        if tables.now().counters_of(workspace).is_none() {
            found.damages.push(format!("workspace {workspace}: its counters cannot be read"));
        }
        found.damages.extend(guard::unreadable(tables, workspace, counters.newest));
        batches(tables, workspace, counters.newest, found);
    }
    found.damages.extend(tables.now().missing(&workspaces));
    let deleted = tables.now().every_deletion();
    found.notes.extend(deleted.iter().map(|workspace| {
        format!("workspace {workspace} is being deleted: the server removes the rest of it when it starts")
    }));
    tables_entries(tables, found);
}

/// Every batch that an event names, and those that are kept although their events are not.
fn batches(tables: &Tables, workspace: &WorkspaceId, newest: Revision, found: &mut Findings) {
    let mut seen: BTreeMap<BatchId, Revision> = BTreeMap::new();
    let trimmed = tables.now().trim(workspace).map_or(Revision(0), |trim| trim.upto);
    for (batch, revision) in tables.now().kept_without_events(workspace, trimmed) {
        seen.entry(batch).or_insert(revision);
    }
    for revision in (trimmed.0 + 1..=newest.0).map(Revision) {
        let Ok(Some(event)) = tables.now().event(workspace, revision) else { continue };
        found.records += 1;
        seen.entry(event.batch).or_insert(revision);
    }
    for (batch, revision) in seen {
        let what = format!("workspace {workspace}: revision {revision}: batch {batch}");
        match tables.now().batch(workspace, &BatchSelector::Id(batch)) {
            Ok(Some(record)) => {
                found.records += 2;
                let by_request = BatchSelector::Request(record.request_id.clone());
                match tables.now().batch(workspace, &by_request) {
                    Ok(Some(same)) if same.id == batch => {}
                    Ok(_) => found.damages.push(format!("{what}: its request id does not lead to it")),
                    Err(error) => found.damages.push(format!("{what}: its request id: {error}")),
                }
                let missing = tables.now().missing_of(&record, trimmed);
                found.damages.extend(missing.into_iter().map(|missing| format!("{what}: {missing}")));
            }
            Ok(None) => found.damages.push(format!("{what} is missing")),
            Err(error) => found.damages.push(format!("{what}: {error}")),
        }
    }
}

/// Every record of the other tables, and every blob.
fn tables_entries(tables: &Tables, found: &mut Findings) {
    let snapshot = tables.db.snapshot();
    for entry in snapshot.iter(&tables.records) {
        let (key, value) = match entry.into_inner() {
            Ok(entry) => entry,
            Err(error) => {
                found.damages.push(format!("a part of the records cannot be read: {error}"));
                // What follows is named where another record leads to it.
                break;
            }
        };
        let damage = match key.first() {
            Some(b'D') => deletion::decode(&value).map(drop).err(),
            Some(b'f') => record::decode_file(&value).map(drop).err(),
            Some(b'd') => record::decode_former_path(&value).map(drop).err(),
            Some(b'g') => paths(tables, &key, &value).err(),
            Some(b'h') => record::decode_history(&value).map(drop).err(),
            Some(b'j') if *key != *keys::USAGE => usage::decode(&value).map(drop).err(),
            Some(b'a' | b'j' | b'k' | b'l' | b'r' | b'u' | b'x') => record::decode_id(&value).map(drop).err(),
            Some(b'o' | b'p') => record::decode_texts(&value).map(drop).err(),
            Some(b'q') => token_record::decode(&value).map(drop).err(),
            Some(b't') => session_record::decode_any(&value).map(drop).err(),
            Some(b'c' | b'Q') => session_record::decode_count(&value).map(drop).err(),
            Some(b'n') => record::decode_head(&value).map(drop).err(),
            Some(b'y') => retention_record::decode_trim(&value).map(drop).err(),
            Some(b'v') => retention_record::decode_notes(&value).map(drop).err(),
            Some(b'z') => retention_record::decode_age(&value).map(drop).err(),
            Some(b'i') => record::decode_marker(&value).map(drop).err(),
            Some(b'm') => match blob(tables, &key, &value) {
                Ok(bytes) => {
                    found.blob_bytes += bytes;
                    None
                }
                Err(error) => Some(error),
            },
            _ => continue,
        };
        found.records += 1;
        found.damages.extend(damage.map(|error| format!("record {}: {error}", shown(&key))));
    }
}

/// Holds the paths with a key against the records of their files.
fn paths(tables: &Tables, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let what = || "the paths with a key".to_owned();
    let malformed = || StoreError::Corrupt { what: what(), why: "it is the record of no key".to_owned() };
    let (workspace, doc_path) = keys::paths_of(key).ok_or_else(malformed)?;
    let paths = record::decode_paths(value)?;
    if tables.now().is_deleted(&workspace)? {
        return Ok(());
    }
    for path in paths {
        let file = tables.now().file(&workspace, &path)?;
        if file.is_none_or(|file| file.doc_path != doc_path) {
            let why = format!("file {path} is not there, or has another key");
            return Err(StoreError::Corrupt { what: what(), why });
        }
    }
    Ok(())
}

/// Reads a blob and holds it against its digest.
fn blob(tables: &Tables, key: &[u8], marker: &[u8]) -> Result<u64, StoreError> {
    let marker = record::decode_marker(marker)?;
    let digest = key.last_chunk::<32>().copied().map(Sha256Digest::from_bytes);
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    for index in 0.. {
        let chunk =
            tables.chunks.get(keys::chunk(marker.upload, index)).map_err(super::tables::failed("read a chunk"))?;
        let Some(chunk) = chunk else { break };
        hasher.update(&chunk);
        bytes += chunk.len() as u64;
    }
    let is_whole = bytes == marker.size_bytes && digest == Some(Sha256Digest::from_bytes(hasher.finalize().into()));
    let what = digest.map_or_else(|| "a blob".to_owned(), |digest| format!("blob {digest}"));
    let why = "its bytes have another digest".to_owned();
    if is_whole { Ok(bytes) } else { Err(StoreError::Corrupt { what, why }) }
}

/// A key as people read it.
fn shown(key: &[u8]) -> String {
    Key::from(key).escape_ascii().to_string()
}
