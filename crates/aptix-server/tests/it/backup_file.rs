//! A backup holds every record of a store, and a store is made of it again; whatever byte of it is lost or changed is named.

#![expect(clippy::disallowed_methods, reason = "the tests damage backups of their own")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid};
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;
use aptix_server::store::backup::{self, BackupError, Summary};
use aptix_server::store::embedded::restore::{RestoredTokens, restore};
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::embedded::{EmbeddedStore, format};
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::retention::{Age, Limits, Retention};
use aptix_server::store::{Store, StoreError, Transitioned, UploadId};
use fjall::KeyspaceCreateOptions;

use crate::sample;
use crate::store_contract::{append, batch, step, workspace};
use crate::upgrade::of_format_1;

/// What of the tables says how they came to be and not what they keep: the newest commit, whether batches in flight are listed,
/// the names that the bytes of blobs and of uploads are kept under; and the sums of stored bytes, which count unfinished uploads.
const INCIDENTAL: &[u8] = b"nxmuij";

/// Every record of a data directory, by its key.
fn records(dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let database = fjall::Database::builder(dir).open().unwrap();
    let records = database.keyspace("records", KeyspaceCreateOptions::default).unwrap();
    let all = records.iter().map(|entry| entry.into_inner().unwrap());
    let kept = all.filter(|(key, _)| !INCIDENTAL.contains(&key[0]));
    kept.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Backs a store up and closes it.
async fn back_up(store: EmbeddedStore, to: &Path) -> Summary {
    let made = store.back_up(Box::new(File::create_new(to).unwrap())).await;
    store.close().await.unwrap();
    drop(store);
    made.unwrap()
}

/// A backup of a store with records of every kind, and the directory of that.
async fn sample() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(&dir.path().join("data")).unwrap());
    sample::fill(&store).await;
    store.grow_older(Some(Duration::from_secs(60))).await.unwrap();
    let unfinished = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 7 };
    let upload = UploadId(Uuid::from_u128(77));
    store.put_chunk(upload, 0, b"unf".to_vec().into()).await.unwrap();
    store.claim_upload(upload, workspace("w"), unfinished).await.unwrap();
    let backup = dir.path().join("backup");
    back_up(Arc::into_inner(store).unwrap(), &backup).await;
    (dir, backup)
}

#[tokio::test]
async fn every_record_is_restored_as_it_was() {
    let (dir, backup) = sample().await;
    let summary = backup::verify(&backup).unwrap();
    let counted = (summary.workspaces, summary.batches, summary.sessions, summary.tokens, summary.blobs, summary.files);
    assert_eq!(counted, (3, 6, 3, 3, 2, 3));
    assert_eq!(summary.bytes, backup.metadata().unwrap().len());
    let restored = dir.path().join("restored");
    assert_eq!(restore(&backup, &restored, RestoredTokens::Kept).unwrap(), summary);
    assert_eq!(verify(&restored).unwrap().damages, Vec::<String>::new());
    let expected = records(&dir.path().join("data"));
    assert_eq!(records(&restored), expected);

    // It opens without a loss to be accepted, and goes on where the other one was.
    let store = Arc::new(EmbeddedStore::open(&restored).unwrap());
    let newest = store.newest(workspace("w")).await.unwrap().unwrap();
    let next = append(&store, batch(20, "w", "r20")).await;
    assert_eq!(next.revision, newest.next());
    let (blob, bytes) = sample::blob();
    let mut found = Vec::new();
    for index in 0.. {
        let Some(chunk) = store.blob_chunk(workspace("w"), blob.sha256, index).await.unwrap() else { break };
        found.extend_from_slice(&chunk);
    }
    assert_eq!(found, bytes);
    assert_eq!(store.unfinished_upload(workspace("w"), blob).await, Ok(None));
    assert!(store.tokens().await.unwrap().are_needed);
    store.close().await.unwrap();
    drop(store);

    // And a backup of the restored store has the same in it.
    let again = dir.path().join("again");
    let summary = back_up(EmbeddedStore::open(&restored).unwrap(), &again).await;
    let twice = dir.path().join("twice");
    assert_eq!(restore(&again, &twice, RestoredTokens::Kept).unwrap(), summary);
    assert_eq!(records(&twice), records(&restored));
}

#[tokio::test]
async fn tokens_are_revoked_if_that_is_asked_for() {
    let (dir, backup) = sample().await;
    let restored = dir.path().join("restored");
    restore(&backup, &restored, RestoredTokens::Revoked).unwrap();
    let store = EmbeddedStore::open(&restored).unwrap();
    let tokens = store.tokens().await.unwrap();
    assert!(tokens.are_needed && tokens.readable.len() == 3);
    let ended: Vec<_> = tokens.readable.iter().map(|kept| kept.token.ended.unwrap().at).collect();
    assert!(ended[0] > UnixMillis(7) && ended[2] > UnixMillis(7), "{ended:?}");
    assert_eq!(ended[1], UnixMillis(7), "the end of one that had ended stays");
}

/// A workspace of which events, content and records were removed keeps the digest that its readers go on from.
#[tokio::test]
async fn what_retention_removed_is_not_missing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(&dir.path().join("data")).unwrap());
    for number in 1..=40 {
        let stored = append(&store, batch(number, "w", &format!("r{number}"))).await;
        if number != 20 {
            let ended = store.transition(step(&stored, BatchState::Applied)).await;
            assert!(matches!(ended, Ok(Transitioned::Done(_))));
        }
    }
    let (record_events, content_batches) = (Some(50), Some(10));
    let limits = Limits { record_events, content_batches, ..Limits::default() };
    let now = store.grow_older(Some(Duration::from_secs(60))).await.unwrap();
    let order = Retention { workspace: workspace("w"), limits, now, is_rehearsal: false };
    let retained = store.retain(order).await.unwrap();
    assert!(retained.events > 20 && retained.records > 10 && retained.contents > 10, "{retained:?}");
    let upto = Revision(retained.oldest.0 - 1);
    let digest = store.digest(workspace("w"), upto).await.unwrap();
    assert!(digest.is_some());
    let backup = dir.path().join("backup");
    let summary = back_up(Arc::into_inner(store).unwrap(), &backup).await;
    assert_eq!(summary.events, 79 - upto.0);
    let restored = dir.path().join("restored");
    restore(&backup, &restored, RestoredTokens::Kept).unwrap();
    assert_eq!(verify(&restored).unwrap().damages, Vec::<String>::new());
    assert_eq!(records(&restored), records(&dir.path().join("data")));
    let store = EmbeddedStore::open(&restored).unwrap();
    assert_eq!(store.digest(workspace("w"), upto).await, Ok(digest));
    let compacted = store.events(workspace("w"), Revision(upto.0 - 1), 1).await;
    assert_eq!(compacted, Err(StoreError::Compacted { oldest: retained.oldest }));
    assert_eq!(store.grow_older(None).await, Ok(Age(60_000)));
}

/// A store of an older format is backed up as the newest one.
#[tokio::test]
async fn a_backup_of_an_older_format_restores_to_this_one() {
    let former = of_format_1();
    let dir = tempfile::tempdir().unwrap();
    let (backup, restored) = (dir.path().join("backup"), dir.path().join("restored"));
    back_up(EmbeddedStore::look(former.path()).unwrap(), &backup).await;
    restore(&backup, &restored, RestoredTokens::Kept).unwrap();
    assert!(!format::is_old(&restored).unwrap());
    assert_eq!(verify(&restored).unwrap().damages, Vec::<String>::new());
}

/// Every place near the beginning and the end, and every 37th between; all of them pass as well, in two minutes.
fn tried(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |at| *at < 100 || *at + 60 >= length || at % 37 == 0)
}

/// Where a damaged backup is found damaged, if it is.
fn found(path: &Path, bytes: &[u8]) -> Result<Summary, BackupError> {
    std::fs::write(path, bytes).unwrap();
    backup::verify(path)
}

#[tokio::test]
async fn every_flipped_byte_and_every_cut_is_named_by_its_offset() {
    let (dir, backup) = sample().await;
    let (bytes, damaged) = (std::fs::read(&backup).unwrap(), dir.path().join("damaged"));
    // Where each item begins.
    let mut begins = vec![16];
    while let Some(length) = bytes.get(begins[begins.len() - 1]..).and_then(<[u8]>::first_chunk::<4>) {
        begins.push(begins[begins.len() - 1] + 36 + u32::from_be_bytes(*length) as usize);
    }
    assert_eq!(begins.pop(), Some(bytes.len()));
    let item_of = |at: usize| begins[begins.partition_point(|begin| *begin <= at) - 1] as u64;
    for at in tried(bytes.len()) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        match found(&damaged, &flipped) {
            Err(BackupError::NoBackup | BackupError::OtherVersion { .. }) => assert!(at < 16, "byte {at}"),
            Err(BackupError::Damaged { offset, .. }) => assert_eq!(offset, item_of(at), "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    for length in tried(bytes.len()) {
        match found(&damaged, &bytes[..length]) {
            Err(BackupError::NoBackup) => assert!(length < 16, "{length} bytes"),
            Err(BackupError::Damaged { offset, why }) => {
                assert!(why.contains("cut off"), "{why}");
                assert_eq!(offset, item_of(length), "{length} bytes");
            }
            other => panic!("{length} bytes: {other:?}"),
        }
    }
    let longer = found(&damaged, &[bytes.as_slice(), b"x"].concat()).unwrap_err().to_string();
    assert!(longer.contains("the file goes on"), "{longer}");
    let without_one = [&bytes[..begins[3]], &bytes[begins[4]..]].concat();
    assert!(
        matches!(found(&damaged, &without_one), Err(BackupError::Damaged { offset, .. }) if offset == begins[3] as u64)
    );

    // What is damaged is restored nowhere, and leaves the directory as it was.
    let restored = dir.path().join("restored");
    for cut in [begins[begins.len() - 1], begins[begins.len() / 2], 20, 3] {
        std::fs::write(&damaged, &bytes[..cut]).unwrap();
        restore(&damaged, &restored, RestoredTokens::Kept).unwrap_err();
        let left = std::fs::read_dir(&restored)
            .map_or(0, |left| left.filter(|entry| entry.as_ref().unwrap().file_name() != "server.lock").count());
        assert_eq!(left, 0, "{cut} bytes");
    }
    restore(&backup, &restored, RestoredTokens::Kept).unwrap();
    assert_eq!(records(&restored), records(&dir.path().join("data")));
    let refused = restore(&backup, &restored, RestoredTokens::Kept).unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty { .. }), "{refused}");
}

/// There is no backup of a store that has lost a record, and none of one that keeps nothing.
#[tokio::test]
async fn a_damaged_store_is_not_backed_up() {
    let (dir, _) = sample().await;
    let data = dir.path().join("data");
    let all = records(&data);
    let mut tried = 0;
    for key in all.keys().filter(|key| b"esb".contains(&key[0])) {
        alter(&data, |records| records.remove(key.clone()).unwrap());
        let store = EmbeddedStore::look(&data);
        if let Ok(store) = store {
            tried += 1;
            let made = store.back_up(Box::new(std::io::sink())).await;
            assert!(matches!(made, Err(StoreError::Corrupt { .. })), "{}: {made:?}", key.escape_ascii());
            store.close().await.unwrap();
        }
        alter(&data, |records| records.insert(key.clone(), all[key].clone()).unwrap());
    }
    assert!(tried > 15, "{tried} records were removed");
    assert!(MemoryStore::default().back_up(Box::new(std::io::sink())).await.is_err());

    // A receiver that goes ends the backup.
    let store = EmbeddedStore::look(&data).unwrap();
    let made = store.back_up(Box::new(Gone)).await;
    assert!(made.unwrap_err().to_string().contains("gone"));
}

fn alter(dir: &Path, change: impl FnOnce(&fjall::Keyspace)) {
    let database = fjall::Database::builder(dir).open().unwrap();
    change(&database.keyspace("records", KeyspaceCreateOptions::default).unwrap());
    database.persist(fjall::PersistMode::SyncAll).unwrap();
}

/// A receiver that is gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("gone"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
