//! Every record of a data directory, damaged and removed one at a time: `aptix-server verify` names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::{BlobRef, Content, CreateFile, FileEdit};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;
use aptix_model::token::{Ended, Ending};
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::retention::{Limits, Retention};
use aptix_server::store::{Store, UploadId};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::sample;
use crate::store_contract::{append, batch, step, workspace};

/// Records whose removal nothing shows, because the next start makes them again, or because nothing follows from them: that the
/// batches in flight are listed, and that stored bytes are counted; the age of the store and how far a workspace had come, without
/// which all of it is young; the deletion of a workspace of which nothing else is left.
const MADE_AGAIN: [&[u8]; 5] = [b"x", b"j", b"z", b"vw\0", b"Dleaving\0"];

/// Every kind of record that a store of this version has, by the first byte of its key.
const KINDS: &[u8] = b"DQabcefghijklmnopqrstuvwxyz";

/// Fills a directory with records of every kind.
async fn fill(dir: &Path) {
    let store = Arc::new(EmbeddedStore::open(dir).unwrap());
    sample::fill(&store).await;
    // A batch that only its list leads to, and one that names a blob.
    let early = append(&store, batch(20, "w", "r20")).await;
    for (number, blob) in [(21, sample::blob().0), (22, BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 })] {
        let create = CreateFile { content: Content::Blob(blob), overwrite: false, content_format: None };
        let mut naming = batch(number, "w", &format!("r{number}"));
        naming.batch.files[0].edit = FileEdit::CreateFile(create);
        append(&store, BatchRecord { state: BatchState::PendingApproval, ..naming }).await;
    }
    store.transition(step(&early, BatchState::Cancelled)).await.unwrap();
    let unfinished = BlobRef { sha256: Sha256Digest::from_bytes([3; 32]), size_bytes: 9 };
    // Its bytes are held against its digest once all of them are there.
    store.claim_upload(UploadId(Uuid::from_u128(30)), workspace("w"), unfinished).await.unwrap();
    let now = store.grow_older(Some(Duration::from_secs(1))).await.unwrap();
    let limits = Limits { record_events: Some(1), content_batches: Some(2), ..Limits::default() };
    let order = Retention { workspace: workspace("w"), limits, now, is_rehearsal: false };
    assert!(store.retain(order).await.unwrap().events > 0);
    store.create_workspace(workspace("leaving")).await.unwrap();
    let ended = Ended { at: UnixMillis(7), how: Ending::Revoked };
    store.begin_deletion(workspace("leaving"), ended).await.unwrap();
    store.close().await.unwrap();
}

/// The records of a directory, or its chunks, while nothing else has it open.
fn with<T>(dir: &Path, table: &str, work: impl FnOnce(&Keyspace) -> T) -> T {
    let database = Database::builder(dir).open().unwrap();
    let worked = work(&database.keyspace(table, KeyspaceCreateOptions::default).unwrap());
    database.persist(PersistMode::SyncAll).unwrap();
    worked
}

fn all(dir: &Path, table: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entry = |entry: fjall::Guard| entry.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
    with(dir, table, |records| records.iter().map(entry).collect())
}

fn put(dir: &Path, table: &str, key: &[u8], value: Option<Vec<u8>>) {
    with(dir, table, |records| match value {
        Some(value) => records.insert(key, value).unwrap(),
        None => records.remove(key).unwrap(),
    });
}

/// What `verify` names; an error names what ends it.
fn named(dir: &Path) -> Vec<String> {
    verify(dir).map_or_else(|error| vec![error.to_string()], |found| found.damages)
}

#[tokio::test]
async fn every_record_that_is_damaged_or_removed_is_named() {
    // In memory, where there is such a place: nothing here needs a disk, and much is flushed.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fill(dir.path()).await;
    assert_eq!(named(dir.path()), Vec::<String>::new());
    let (records, chunks) = (all(dir.path(), "records"), all(dir.path(), "chunks"));
    let kinds: BTreeSet<u8> = records.keys().map(|key| key[0]).collect();
    assert_eq!(kinds, KINDS.iter().copied().collect(), "a new kind of record needs its check");
    let mut unnamed = Vec::new();
    for (table, key, value) in records
        .iter()
        .map(|(key, value)| ("records", key, value))
        .chain(chunks.iter().map(|(key, value)| ("chunks", key, value)))
    {
        let mut flipped = value.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for (what, change) in [("damaged", Some(flipped)), ("removed", None)] {
            let is_made_again = change.is_none() && table == "records" && MADE_AGAIN.contains(&&key[..]);
            put(dir.path(), table, key, change);
            let found = named(dir.path());
            put(dir.path(), table, key, Some(value.clone()));
            if found.is_empty() != is_made_again {
                unnamed.push(format!("{what}: {table} {}: {found:?}", key.escape_ascii()));
            }
        }
    }
    assert!(unnamed.is_empty(), "{} of {}:\n{}", unnamed.len(), records.len() + chunks.len(), unnamed.join("\n"));
    assert_eq!(named(dir.path()), Vec::<String>::new(), "as it was");
    for key in MADE_AGAIN {
        put(dir.path(), "records", key, None);
    }
    EmbeddedStore::open(dir.path()).unwrap().close().await.unwrap();
    assert_eq!(named(dir.path()), Vec::<String>::new());
}
