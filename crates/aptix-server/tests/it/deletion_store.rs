//! The deletion of a workspace, held against every store; and what the one on disk promises when it is cut off.

#![expect(clippy::disallowed_methods, reason = "they write into data directories of their own")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::UnixMillis;
use aptix_model::session::SessionMode;
use aptix_model::state::BatchState;
use aptix_model::token::{Ended, Ending, Role, Scope};
use aptix_server::store::access::TokenAdded;
use aptix_server::store::deletion::Deletion;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::restore::{RestoredTokens, restore};
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::retention::{Age, Limits, Retained, Retention};
use aptix_server::store::session::ModeChange;
use aptix_server::store::{BatchSelector, Lease, LeaseProof, Store, StoreError, UploadId};
use fjall::{Database, KeyspaceCreateOptions};

use crate::place::healing;
use crate::sample;
use crate::store_contract::{append, batch, step, workspace};

const ENDED: Ended = Ended { at: UnixMillis(77), how: Ending::Revoked };

fn upload(number: u128) -> UploadId {
    UploadId(Uuid::from_u128(number))
}

/// Everything that a store answers about a workspace.
async fn told(store: &Arc<dyn Store>, name: &str) -> String {
    let w = || workspace(name);
    let ((blob, _), path) = (sample::blob(), || RootedPath::new("main/a.txt").unwrap());
    let revisions = [1, 2, 5].map(Revision);
    let mut digests = Vec::new();
    for revision in revisions {
        digests.push(store.digest(w(), revision).await);
    }
    let mut batches = Vec::new();
    for number in [1, 2, 3, 8, 10] {
        let record = batch(number, name, "r");
        batches.push(store.batch(w(), BatchSelector::Id(record.id)).await);
        batches.push(store.batch(w(), BatchSelector::Request(format!("r{number}").parse().unwrap())).await);
        batches.push(store.steps(w(), record.id, Revision(3)).await.map(|_| None));
    }
    let unfinished = BlobRef { sha256: Sha256Digest::from_bytes([3; 32]), size_bytes: 9 };
    let lists = (
        store.batches(w(), None, 100).await,
        store.events(w(), Revision(0), 100).await,
        store.files(w(), None, 100).await,
        store.file(w(), path()).await,
        store.files_with_key(w(), DocPath::new("main/a.txt").unwrap()).await,
    );
    let others = (
        store.counts(w()).await,
        store.newest(w()).await,
        store.lease(w()).await,
        store.roots(w()).await,
        store.used_bytes(w()).await,
        store.session(w(), "session".parse().unwrap()).await,
        store.blob_sizes(w(), vec![blob.sha256, Sha256Digest::EMPTY]).await,
        store.blob_chunk(w(), blob.sha256, 0).await,
        store.unfinished_upload(w(), unfinished).await,
    );
    let listed = store.workspaces(None, 100).await.unwrap().iter().any(|(id, _)| id.as_str() == name);
    let due = store.due(UnixMillis(u64::MAX), None, 100).await.unwrap();
    let due: Vec<_> = due.into_iter().filter(|due| due.workspace.as_str() == name).collect();
    format!("{digests:?} {batches:?} {lists:?} {others:?} {listed} {due:?}")
}

fn mode(name: &str) -> ModeChange {
    ModeChange {
        workspace: workspace(name),
        session: "closed".parse().unwrap(),
        owner: "ann".parse().unwrap(),
        request: "m9".parse().unwrap(),
        to: SessionMode::Restricted,
        by: None,
        at: UnixMillis(3),
    }
}

/// Every write in a workspace, and whether it was refused because the workspace is being deleted.
async fn refused(store: &Arc<dyn Store>, name: &str) -> Vec<bool> {
    let (w, (blob, _)) = (|| workspace(name), sample::blob());
    let kept = append_to(store, name).await;
    let lease = LeaseProof { epoch: 1, secret: Some(Sha256Digest::EMPTY) };
    let local = sample::of_workstation(batch(41, name, "r41"), lease, Vec::new());
    let is = |error: Option<StoreError>| error == Some(StoreError::BeingDeleted { workspace: w() });
    vec![
        is(kept),
        is(store.append_local(local).await.err()),
        is(store.transition(step(&batch(1, name, "r1"), BatchState::Applied)).await.err()),
        is(store.set_mode(mode(name)).await.err()),
        is(store.create_workspace(w()).await.err()),
        is(store.grant_lease(w(), Sha256Digest::EMPTY, Vec::new()).await.err()),
        is(store.claim_upload(upload(60), w(), blob).await.err()),
        is(store.commit_upload(upload(61), w(), BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 }).await.err()),
    ]
}

async fn append_to(store: &Arc<dyn Store>, name: &str) -> Option<StoreError> {
    store.append(batch(40, name, "r40")).await.err()
}

/// Takes every step of a deletion; answers its end, and how many steps there were.
async fn delete_rest(store: &Arc<dyn Store>, name: &str) -> (Deletion, usize) {
    for steps in 1.. {
        let deletion = store.continue_deletion(workspace(name)).await.unwrap().expect("it goes on");
        if deletion.is_done {
            return (deletion, steps);
        }
    }
    unreachable!()
}

/// A store with the sample, and with blobs of the same bytes in two workspaces.
async fn filled(store: impl Store) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(store);
    sample::fill(&store).await;
    let (blob, bytes) = sample::blob();
    for (index, chunk) in (0..).zip(bytes.chunks(1200)) {
        store.put_chunk(upload(7), index, chunk.to_vec().into()).await.unwrap();
    }
    store.commit_upload(upload(7), workspace("v"), blob).await.unwrap();
    let unfinished = BlobRef { sha256: Sha256Digest::from_bytes([3; 32]), size_bytes: 9 };
    store.claim_upload(upload(30), workspace("w"), unfinished).await.unwrap();
    store.put_chunk(upload(30), 0, vec![1, 2, 3].into()).await.unwrap();
    store
}

async fn a_deleted_workspace_is_gone_and_can_be_created_anew(store: Arc<dyn Store>) {
    let w = || workspace("w");
    let (absent, other) = (told(&store, "absent").await, told(&store, "v").await);
    let (used, counts) = (store.used_bytes(w()).await.unwrap(), store.counts(w()).await.unwrap().unwrap());
    let batches = store.batches(w(), None, 100).await.unwrap().len() as u64;
    let digest = store.digest(w(), Revision(1)).await.unwrap();
    assert_eq!(store.begin_deletion(workspace("absent"), ENDED).await, Ok(None));
    assert_eq!(store.continue_deletion(w()).await, Ok(None), "one that was not begun");

    assert_eq!(store.begin_deletion(w(), ENDED).await, Ok(Some(vec!["agent".parse().unwrap()])));
    assert_eq!(store.begin_deletion(w(), ENDED).await, Ok(Some(vec![])));
    assert_eq!(store.deletions().await, Ok(vec![w()]));
    assert_eq!(told(&store, "w").await, absent);
    assert_eq!(refused(&store, "w").await, [true; 8]);
    let token = sample::token("late", Role::Agent, Scope::One(w()));
    assert_eq!(store.add_token(token).await, Ok(TokenAdded::NoWorkspace));
    let limits = Limits { record_events: Some(1), content_batches: Some(0), ..Limits::default() };
    let order = Retention { workspace: w(), limits, now: Age(9), is_rehearsal: false };
    assert_eq!(store.retain(order).await, Ok(Retained::default()));
    let tokens = store.tokens().await.unwrap().readable.into_iter();
    let ended: Vec<_> = tokens.filter(|kept| kept.token.ended == Some(ENDED)).map(|kept| kept.token.name).collect();
    assert_eq!(ended, ["agent".parse().unwrap()], "those for it alone");

    let (deletion, _) = delete_rest(&store, "w").await;
    let expected = Deletion { batches, bytes: used, open_batches: counts.open_batches, is_done: true };
    assert_eq!(deletion, expected);
    assert_eq!(store.deletions().await, Ok(vec![]));
    assert_eq!(store.continue_deletion(w()).await, Ok(None));
    assert_eq!(store.begin_deletion(w(), ENDED).await, Ok(None));
    assert_eq!(told(&store, "w").await, absent);
    assert_eq!(told(&store, "v").await, other, "another workspace");

    assert_eq!(store.create_workspace(w()).await, Ok(true));
    assert_eq!(store.newest(w()).await, Ok(Some(Revision(0))));
    assert_eq!((store.lease(w()).await, store.used_bytes(w()).await), (Ok(Lease::default()), Ok(0)));
    let anew = append(&store, batch(50, "w", "r1")).await;
    assert_eq!(anew.revision, Revision(1));
    assert_ne!(store.digest(w(), Revision(1)).await.unwrap(), digest);
    assert_eq!(store.events(w(), Revision(0), 100).await.unwrap().len(), 1);
    assert_eq!(refused(&store, "w").await, [false; 8]);
}

#[tokio::test]
async fn in_memory() {
    a_deleted_workspace_is_gone_and_can_be_created_anew(filled(MemoryStore::default()).await).await;
}

#[tokio::test]
async fn on_disk() {
    let dir = tempfile::tempdir().unwrap();
    a_deleted_workspace_is_gone_and_can_be_created_anew(filled(EmbeddedStore::open(dir.path()).unwrap()).await).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn in_a_database() {
    let Some(store) = crate::cluster::store().await else { return };
    a_deleted_workspace_is_gone_and_can_be_created_anew(filled(store).await).await;
}

#[tokio::test]
async fn healing_from_failed_writes() {
    let dir = tempfile::tempdir().unwrap();
    a_deleted_workspace_is_gone_and_can_be_created_anew(filled(healing(dir.path())).await).await;
}

/// Every record of a closed directory, and every chunk.
fn all(dir: &Path) -> BTreeMap<(&'static str, Vec<u8>), Vec<u8>> {
    let database = Database::builder(dir).open().unwrap();
    let mut found = BTreeMap::new();
    for table in ["records", "chunks"] {
        for entry in database.keyspace(table, KeyspaceCreateOptions::default).unwrap().iter() {
            let (key, value) = entry.into_inner().unwrap();
            found.insert((table, key.to_vec()), value.to_vec());
        }
    }
    found
}

fn memory_or_disk() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Nothing is left of a deleted workspace, and of another one each byte is as before, also where both have a blob of the same bytes.
#[tokio::test]
async fn no_record_of_it_is_left_and_those_of_others_are_as_before() {
    let dir = memory_or_disk();
    filled(EmbeddedStore::open(dir.path()).unwrap()).await.close().await.unwrap();
    let before = all(dir.path());
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let listed = store.batches(workspace("w"), None, 100).await.unwrap();
    let ids: BTreeSet<_> = listed.iter().flatten().map(|event| event.batch.0.as_bytes().to_vec()).collect();
    store.begin_deletion(workspace("w"), ENDED).await.unwrap();
    delete_rest(&store, "w").await;
    store.close().await.unwrap();
    drop(store);
    assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
    let after = all(dir.path());
    let is_of_w = |(table, key): &(&str, Vec<u8>)| match (*table, key[0]) {
        ("chunks", _) => [5, 30].iter().any(|number| key.starts_with(upload(*number).0.as_bytes())),
        (_, b'b' | b's') => ids.contains(&key[1..]),
        (_, b'p') => ids.contains(&key[9..]),
        (_, b'u') => key[1..] == *upload(30).0.as_bytes(),
        _ => key[1..].starts_with(b"w\0"),
    };
    // The number of the newest commit, and the token that was for it alone.
    let changed = [b"n".to_vec(), b"qagent".to_vec()];
    let left: Vec<_> = after.keys().filter(|key| is_of_w(key)).map(|(_, key)| key.escape_ascii().to_string()).collect();
    assert_eq!(left, Vec::<String>::new());
    for (key, value) in before.iter().filter(|(key, _)| !is_of_w(key) && !changed.contains(&key.1)) {
        assert_eq!(after.get(key), Some(value), "{} {}", key.0, key.1.escape_ascii());
    }
    assert!(after.keys().all(|key| before.contains_key(key)), "nothing is added");
}

/// A deletion that is cut off after any of its steps goes on after the next start. Until then the directory is whole, and a backup
/// of it has nothing of the workspace.
#[tokio::test]
async fn one_that_is_cut_off_goes_on_after_the_next_start() {
    let dir = memory_or_disk();
    let mut store = filled(EmbeddedStore::open(dir.path()).unwrap()).await;
    for number in 100..400 {
        append(&store, batch(number, "w", &format!("r{number}"))).await;
    }
    let other = told(&store, "v").await;
    let batches = store.batches(workspace("w"), None, 1000).await.unwrap().len() as u64;
    store.begin_deletion(workspace("w"), ENDED).await.unwrap();
    let absent = told(&store, "absent").await;
    let mut steps = 0;
    let done = loop {
        store.close().await.unwrap();
        drop(store);
        let found = verify(dir.path()).unwrap();
        assert_eq!(found.damages, Vec::<String>::new(), "after {steps} steps");
        assert!(found.notes.iter().any(|note| note.contains("workspace w is being deleted")), "{:?}", found.notes);
        store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
        assert_eq!((told(&store, "w").await, told(&store, "v").await), (absent.clone(), other.clone()), "{steps}");
        assert_eq!(refused(&store, "w").await, [true; 8], "after {steps} steps");
        assert_eq!(store.deletions().await, Ok(vec![workspace("w")]));
        if steps == 1 {
            has_no_backup(&store, &dir.path().join("backup")).await;
            std::fs::remove_file(dir.path().join("backup")).unwrap();
        }
        let deletion = store.continue_deletion(workspace("w")).await.unwrap().unwrap();
        steps += 1;
        if deletion.is_done {
            break deletion;
        }
    };
    assert_eq!(done.batches, batches);
    assert!(steps >= 4, "{steps} steps");
    store.close().await.unwrap();
    drop(store);
    let found = verify(dir.path()).unwrap();
    assert_eq!((found.damages, found.notes), (Vec::new(), Vec::new()));
}

/// A backup has no workspace that is being deleted.
async fn has_no_backup(store: &Arc<dyn Store>, file: &Path) {
    store.back_up(Box::new(std::fs::File::create(file).unwrap())).await.unwrap();
    let restored = memory_or_disk();
    restore(file, restored.path(), RestoredTokens::Kept).unwrap();
    assert_eq!(verify(restored.path()).unwrap().damages, Vec::<String>::new());
    let copy: Arc<dyn Store> = Arc::new(EmbeddedStore::open(restored.path()).unwrap());
    assert_eq!((copy.deletions().await, copy.newest(workspace("w")).await), (Ok(vec![]), Ok(None)));
    assert_eq!(copy.create_workspace(workspace("w")).await, Ok(true));
    copy.close().await.unwrap();
}

/// A start takes nothing for lost that was deleted: neither with marks from before the deletion, nor while the journal still has
/// the first events of a workspace that was created anew.
#[tokio::test]
async fn what_was_deleted_is_not_lost() {
    let dir = memory_or_disk();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    for number in 1..=130 {
        append(&store, batch(number, "w", &format!("r{number}"))).await;
    }
    store.close().await.unwrap();
    let marks = dir.path().join("acknowledged");
    let before = std::fs::read(&marks).unwrap();
    drop(store);
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    store.begin_deletion(workspace("w"), ENDED).await.unwrap();
    // After these its newest event is removed, and some other records are not.
    for _ in 0..2 {
        assert!(!store.continue_deletion(workspace("w")).await.unwrap().unwrap().is_done);
    }
    store.close().await.unwrap();
    drop(store);
    std::fs::write(&marks, before).unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    delete_rest(&store, "w").await;
    append(&store, batch(200, "w", "r200")).await;
    store.close().await.unwrap();
    drop(store);
    assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.newest(workspace("w")).await, Ok(Some(Revision(1))));
    store.close().await.unwrap();
}

/// Where the record of a deletion is missing, the batches that it left show it.
#[tokio::test]
async fn a_deletion_without_its_record_is_named() {
    let dir = memory_or_disk();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    append(&store, batch(1, "w", "r1")).await;
    let _: Option<_> = store.begin_deletion(workspace("w"), ENDED).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let database = Database::builder(dir.path()).open().unwrap();
    database.keyspace("records", KeyspaceCreateOptions::default).unwrap().remove(b"Dw\0").unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop(database);
    let damages = verify(dir.path()).unwrap().damages;
    let of_w: WorkspaceId = workspace("w");
    assert!(
        damages.contains(&format!("workspace {of_w}: it has batches, and its counters are missing")),
        "{damages:?}"
    );
}
