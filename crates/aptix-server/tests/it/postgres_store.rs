//! What the store in PostgreSQL promises beyond the contract: what it asks of the database, and what it does when another transaction,
//! another server, or a damaged row gets in its way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid};
use aptix_model::path::RootedPath;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::BatchState;
use aptix_model::token::{Ended, Ending, Role, Scope};
use aptix_server::store::access::TokenAdded;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::restore::{RestoredTokens, restore};
use aptix_server::store::fleet::{Grant, Granted};
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::postgres::address::Address;
use aptix_server::store::retention::{Age, HeldBy, Limits, Retention};
use aptix_server::store::{Appended, BatchSelector, Store, StoreError, Transition, Transitioned, Twins, UploadId};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use crate::cluster::Database;
use crate::fleet_store::{self, LONG, member};
use crate::sample::{self, file};
use crate::store_contract::{append, batch, step, workspace};
use crate::until::until;

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A connection beside those of the store.
pub(crate) async fn connect(database: &Database, tasks: &mut JoinSet<()>) -> Client {
    let address = Address::parse(&database.address).unwrap();
    let (client, connection) = address.config().connect(NoTls).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    client
}

pub(crate) async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

pub(crate) async fn end(store: &Arc<PostgresStore>, record: &BatchRecord) -> BatchRecord {
    match store.transition(step(record, BatchState::Applied)).await {
        Ok(Transitioned::Done(batch)) => batch,
        other => panic!("the step is taken, and not {other:?}"),
    }
}

/// Another transaction that holds the row of one workspace keeps the writes of no other one waiting.
#[tokio::test]
async fn a_locked_workspace_fails_no_write_in_another_one() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    for name in ["v", "w"] {
        append(&store, batch(if name == "v" { 1 } else { 2 }, name, "r0")).await;
    }
    let client = connect(&database, &mut tasks).await;
    run(&client, "BEGIN; SELECT FROM workspaces WHERE name = 'w' FOR UPDATE").await;
    let theirs = Arc::clone(&store);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { theirs.append(batch(10, "w", "r1")).await });
    for number in 20..30 {
        append(&store, batch(number, "v", &format!("r{number}"))).await;
        assert!(waiting.try_join_next().is_none(), "it waits for the row while the others are stored");
        if number == 25 {
            // So that the writes above are before and behind those that share its group.
            tokio::task::yield_now().await;
        }
    }
    let failed = timeout(SOON, waiting.join_next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(&failed, Err(StoreError::Busy { cause }) if cause.contains("lock")), "{failed:?}");
    run(&client, "ROLLBACK").await;
    append(&store, batch(11, "w", "r1")).await;
    assert_eq!(store.newest(workspace("w")).await, Ok(Some(Revision(2))));
    assert_eq!(store.newest(workspace("v")).await, Ok(Some(Revision(11))));
}

/// A certificate has one token, whichever servers make one for it at once; one that has ended or expired gives it away.
#[tokio::test]
async fn a_certificate_has_one_token() {
    let Some(database) = Database::new() else { return };
    let stores = [database.open().await, database.open().await];
    let token = |name: &str, created: u64, expires: Option<u64>| {
        let mut kept = sample::token(name, Role::Reader, Scope::All);
        kept.token.certificate = Some("dns:laptop".parse().unwrap());
        (kept.token.created, kept.token.expires) = (UnixMillis(created), expires.map(UnixMillis));
        kept.digest = Sha256Digest::EMPTY;
        kept
    };
    let added = tokio::join!(stores[0].add_token(token("a", 5, None)), stores[1].add_token(token("b", 5, None)));
    let name = match added {
        (Ok(TokenAdded::New), Ok(TokenAdded::CertificateUsed(name))) if name.as_str() == "a" => name,
        (Ok(TokenAdded::CertificateUsed(name)), Ok(TokenAdded::New)) if name.as_str() == "b" => name,
        other => panic!("{other:?}"),
    };
    stores[1].end_token(name, Ended { at: UnixMillis(6), how: Ending::Revoked }).await.unwrap();
    assert_eq!(stores[0].add_token(token("c", 7, Some(9))).await, Ok(TokenAdded::New));
    let used = stores[1].add_token(token("d", 8, None)).await.unwrap();
    assert_eq!(used, TokenAdded::CertificateUsed("c".parse().unwrap()));
    assert_eq!(stores[1].add_token(token("d", 9, None)).await, Ok(TokenAdded::New));
}

/// The leases of a server that died long ago are removed with it when another one starts; those of servers that live stay.
#[tokio::test]
async fn leases_of_dead_servers_are_forgotten() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (database.open().await, JoinSet::new());
    let long = Duration::from_secs(3600);
    for number in [1, 2] {
        store.join(fleet_store::member(number), long).await.unwrap();
        let grant = Grant { workspace: workspace(&format!("w{number}")), ..fleet_store::grant(number, 1, None) };
        assert_eq!(store.take_lease(grant).await, Ok(Granted::Epoch(1)));
    }
    let client = connect(&database, &mut tasks).await;
    let die = "UPDATE servers SET until = now() - interval '2 hours' WHERE id = $1";
    client.execute(die, &[&fleet_store::member(1).id.0]).await.unwrap();
    store.join(fleet_store::member(3), long).await.unwrap();
    let left = client.query("SELECT workspace FROM leases", &[]).await.unwrap();
    assert_eq!(left.iter().map(|row| row.get(0)).collect::<Vec<String>>(), ["w2"]);
    assert_eq!(client.query("SELECT FROM servers", &[]).await.unwrap().len(), 2);
}

/// Servers that start at once in an empty database make its tables once, and are on one store.
#[tokio::test]
async fn servers_that_start_at_once_are_on_one_store() {
    let Some(database) = Database::new() else { return };
    let mut opening = JoinSet::new();
    for _ in 0..3 {
        let address = Address::parse(&database.address).unwrap();
        opening.spawn(async move { PostgresStore::open(&address).await.unwrap().history() });
    }
    let histories = opening.join_all().await;
    assert_eq!(histories, [histories[0]; 3]);
}

/// Servers of two versions share tables as long as the older one can use them; then it is refused by name, and joins no more.
#[tokio::test]
async fn newer_tables_are_used_as_long_as_they_can_be() {
    let Some(database) = Database::new() else { return };
    let older = Arc::new(database.open().await);
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    let newer = "ALTER TABLE batches ADD more text NOT NULL DEFAULT ''; \
        INSERT INTO refinery_schema_history SELECT 99, name, applied_on, checksum FROM refinery_schema_history LIMIT 1";
    run(&client, newer).await;
    append(&older, batch(1, "w", "r1")).await;
    append(&Arc::new(database.open().await), batch(2, "w", "r2")).await;
    older.join(member(1), LONG).await.unwrap();
    run(&client, "UPDATE table_versions SET oldest = 99").await;
    let written = older.append(batch(3, "w", "r3")).await.unwrap_err();
    assert!(matches!(written, StoreError::ReadOnly { .. }), "{written}");
    let refused = older.join(member(2), LONG).await.unwrap_err();
    assert!(refused.to_string().contains("start a newer aptix-server"), "{refused}");
    let error = PostgresStore::open(&Address::parse(&database.address).unwrap()).await.map(drop).unwrap_err();
    assert!(matches!(error, StoreError::OtherSchema { found: 99, .. }), "{error}");
}

/// Tables that a server which lives could not use any more are not made.
#[tokio::test]
async fn no_server_that_lives_loses_its_tables() {
    let Some(database) = Database::new() else { return };
    let living = database.open().await;
    let company = living.join(member(1), LONG).await.unwrap();
    assert_eq!(company.others, []);
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    let migration = "SELECT require_tables(2)";
    let refused = client.batch_execute(migration).await.unwrap_err();
    let refused = refused.as_db_error().unwrap().message();
    assert!(refused.contains("1 servers that know the tables up to version 1"), "{refused}");
    living.leave(member(1).id).await.unwrap();
    run(&client, migration).await;
    let refused = PostgresStore::open(&Address::parse(&database.address).unwrap()).await.map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::OtherSchema { .. }), "{refused}");
}

/// Of servers that write while tables are migrated that they cannot use, nothing comes after the migration.
#[tokio::test(flavor = "multi_thread")]
async fn no_write_of_an_older_server_comes_after_a_migration() {
    let Some(database) = Database::new() else { return };
    let (older, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    let client = connect(&database, &mut tasks).await;
    let (acknowledged, mut writers) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    for writer in 1..=8_u128 {
        let (older, acknowledged) = (Arc::clone(&older), Arc::clone(&acknowledged));
        writers.spawn(async move {
            for number in 1.. {
                match older.append(batch(1000 * writer + number, &format!("w{writer}"), &format!("r{number}"))).await {
                    Ok(_) => drop(acknowledged.fetch_add(1, Ordering::Relaxed)),
                    // It waited for the migration.
                    Err(StoreError::Busy { .. }) => {}
                    Err(StoreError::ReadOnly { cause }) => return cause,
                    Err(other) => panic!("{other}"),
                }
            }
            String::new()
        });
    }
    until(async || (acknowledged.load(Ordering::Relaxed) > 100).then_some(())).await;
    let stored =
        async || client.query_one("SELECT sum(newest)::bigint FROM workspaces", &[]).await.unwrap().get::<_, i64>(0);
    run(&client, "BEGIN; SELECT require_tables(2)").await;
    let before = stored().await;
    let held_up = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let other = connect(&database, &mut tasks).await;
    until(async || (!other.query(held_up, &[]).await.unwrap().is_empty()).then_some(())).await;
    run(&client, "COMMIT").await;
    for cause in writers.join_all().await {
        assert!(cause.contains("migrated"), "{cause}");
    }
    assert_eq!(stored().await, before);
    assert_eq!(before, i64::try_from(acknowledged.load(Ordering::Relaxed)).unwrap());
}

/// A first start that is cut off before it has made the tables is made up for by the next one.
#[tokio::test]
async fn a_history_of_migrations_without_tables_is_no_store() {
    let Some(database) = Database::new() else { return };
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    let begun = "CREATE TABLE refinery_schema_history(version INT4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))";
    run(&client, begun).await;
    append(&Arc::new(database.open().await), batch(1, "w", "r1")).await;
}

/// An upload that lacks a chunk becomes no blob.
#[tokio::test]
async fn an_upload_with_a_hole_becomes_no_blob() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    let (upload, blob) = (UploadId(Uuid::from_u128(7)), sample::blob().0);
    store.claim_upload(upload, workspace("w"), BlobRef { size_bytes: 9, ..blob }).await.unwrap();
    for index in 0..3 {
        store.put_chunk(upload, index, b"abc".as_slice().into()).await.unwrap();
    }
    let client = connect(&database, &mut tasks).await;
    run(&client, "DELETE FROM chunks WHERE index = 1").await;
    let whole = BlobRef { size_bytes: 9, ..blob };
    let resumable = store.unfinished_upload(workspace("w"), whole).await.unwrap().unwrap();
    assert_eq!(resumable.bytes, 3, "as far as there is no hole");
    let committed = store.commit_upload(upload, workspace("w"), whole).await;
    assert!(
        matches!(&committed, Err(StoreError::Failed { cause, .. }) if cause.contains("upload it again")),
        "{committed:?}"
    );
    assert_eq!(store.blob_sizes(workspace("w"), vec![blob.sha256]).await, Ok(vec![None]));
}

/// Of two servers that write one upload, the one that resumed it last has it: chunks of the other change nothing, before the upload is a
/// blob and after, and what the other gives up leaves the blob whole.
#[tokio::test]
async fn an_upload_that_another_server_resumed_is_left_to_it() {
    let Some(database) = Database::new() else { return };
    let (former, latter) = (database.open().await, database.open().await);
    let (upload, w) = (UploadId(Uuid::from_u128(7)), workspace("w"));
    let blob = BlobRef { size_bytes: 6, ..sample::blob().0 };
    former.claim_upload(upload, w.clone(), blob).await.unwrap();
    former.put_chunk(upload, 0, b"abc".as_slice().into()).await.unwrap();
    assert_eq!(latter.upload_chunk(upload, 0).await.unwrap().unwrap(), b"abc".as_slice());
    let late = async || {
        for index in [0, 1] {
            assert!(former.put_chunk(upload, index, b"xyz".as_slice().into()).await.is_err());
        }
    };
    late().await;
    former.release_upload(upload, w.clone(), blob.sha256).await.unwrap();
    assert!(matches!(former.commit_upload(upload, w.clone(), blob).await, Err(StoreError::Busy { .. })));
    latter.put_chunk(upload, 1, b"def".as_slice().into()).await.unwrap();
    latter.commit_upload(upload, w.clone(), blob).await.unwrap();
    late().await;
    former.release_upload(upload, w.clone(), blob.sha256).await.unwrap();
    former.commit_upload(upload, w.clone(), blob).await.unwrap();
    former.sweep_blobs(UnixMillis(0)).await.unwrap();
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    run(&client, "INSERT INTO uploads (id, dropped) SELECT upload, true FROM blobs").await;
    former.sweep_blobs(UnixMillis(0)).await.unwrap();
    for (index, bytes) in [(0, b"abc"), (1, b"def")] {
        let chunk = latter.blob_chunk(w.clone(), blob.sha256, index).await.unwrap();
        assert_eq!(chunk.unwrap(), bytes.as_slice());
    }
}

/// A write that arrives while the last of a workspace is removed is refused for that, or is one in a new workspace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_beside_the_end_of_a_deletion_is_refused_or_begins_anew() {
    let Some(database) = Database::new() else { return };
    let store = Arc::new(database.open().await);
    let ended = Ended { at: UnixMillis(1), how: Ending::Revoked };
    for round in 0..20_u128 {
        let known = store.append(batch(1000 * (round + 1), "w", "r")).await.unwrap();
        assert!(matches!(known, Appended::New(_) | Appended::Known(_)));
        store.begin_deletion(workspace("w"), ended).await.unwrap().unwrap();
        let mut tasks = JoinSet::new();
        for number in 1..=8 {
            let store = Arc::clone(&store);
            tasks.spawn(
                async move { store.append(batch(1000 * (round + 1) + number, "w", &format!("r{number}"))).await },
            );
        }
        while store.continue_deletion(workspace("w")).await.unwrap().is_some_and(|deletion| !deletion.is_done) {}
        let mut stored = 0;
        for appended in tasks.join_all().await {
            match appended {
                Ok(Appended::New(batch)) => stored = stored.max(batch.revision.0),
                Err(StoreError::BeingDeleted { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        let newest = store.newest(workspace("w")).await.unwrap();
        assert_eq!(newest.unwrap_or_default(), Revision(stored));
    }
}

/// A record that cannot be read hides no other, is passed over by retention and is named.
#[tokio::test]
async fn a_damaged_record_stays_alone() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (Arc::new(database.open().await), JoinSet::new());
    let mut ended = Vec::new();
    for number in 1..=4_u128 {
        let stored = append(&store, batch(number, "w", &format!("r{number}"))).await;
        ended.push(end(&store, &stored).await);
    }
    let client = connect(&database, &mut tasks).await;
    let damage = "UPDATE batches SET content = set_byte(content, 20, get_byte(content, 20) # 255) WHERE id = $1";
    client.execute(damage, &[&ended[1].id.0]).await.unwrap();
    let found = store.batch(workspace("w"), BatchSelector::Id(ended[1].id)).await;
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
    assert_eq!(store.batches(workspace("w"), None, 10).await.unwrap().len(), 4);
    let limits = Limits {
        content_batches: Some(0),
        record_events: Some(1),
        content_age: None,
        content_bytes: None,
        record_age: None,
        record_least: Duration::ZERO,
    };
    let order = Retention { workspace: workspace("w"), limits, now: Age(0), is_rehearsal: false };
    let retained = store.retain(order.clone()).await.unwrap();
    assert_eq!((retained.contents, retained.events, retained.records), (3, 7, 2), "{retained:?}");
    assert_eq!(retained.held_by, Some(HeldBy::Damaged(ended[1].revision)));
    let again = store.retain(order).await.unwrap();
    assert_eq!((again.contents, again.events, again.records, again.has_more), (0, 0, 0, false), "{again:?}");
    assert_eq!(again.held_by, Some(HeldBy::Damaged(ended[1].revision)));
}

/// Paths of every length that a path may have are kept, found and listed in order.
#[tokio::test]
async fn the_longest_paths_are_kept_and_listed_in_order() {
    let Some(database) = Database::new() else { return };
    let store = crate::store_contract::with_empty_blob(database.open().await).await;
    let made = append(&store, batch(1, "w", "r1")).await;
    let empty = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    let name = |number: u32| format!("{:x}", u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(14);
    let mut deep = String::from("main");
    for number in 0..15 {
        deep = format!("{deep}/{}", name(number));
    }
    let mut paths: Vec<_> = (0..5).map(|number| format!("{deep}/{number}.txt")).collect();
    paths.extend(["main/a.txt".to_owned(), "main/z.txt".to_owned(), "other/a.txt".to_owned()]);
    let files = paths.iter().map(|path| file(path, Some(empty), Twins::MayExist)).collect();
    let step = Transition { files, ..step(&made, BatchState::Applied) };
    assert!(matches!(store.transition(step).await, Ok(Transitioned::Done(_))));
    paths.sort();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.files(workspace("w"), after.clone(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.as_ref().unwrap().path.clone());
        listed.extend(page.into_iter().map(|file| file.unwrap().path.as_str().to_owned()));
    }
    assert_eq!(listed, paths);
    let longest = RootedPath::new(&paths[2]).unwrap();
    assert!(store.file(workspace("w"), longest).await.unwrap().is_some());
}

/// Where a backup is written to.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn back_up(store: &dyn Store) -> Vec<u8> {
    let written = Written::default();
    store.back_up(Box::new(written.clone())).await.unwrap();
    std::mem::take(&mut *written.0.lock().unwrap())
}

/// The items of a backup without the first one, which has the time and the digest of it.
fn items(backup: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut items) = (&backup[16..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let (item, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        items.push(item.to_vec());
        rest = &after[32..];
    }
    items.remove(0);
    // The end counts bytes, among them those of the first item.
    items.pop();
    items
}

/// What one kind of store backs up, the other kind restores: the same in every item, there and back.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a file of the test")]
async fn a_backup_is_restored_into_the_other_kind_of_store() {
    let (Some(database), Some(empty)) = (Database::new(), Database::new()) else { return };
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let embedded = Arc::new(EmbeddedStore::open(dirs[0].path()).unwrap());
    sample::fill(&embedded).await;
    let first = back_up(&*embedded).await;
    let address = Address::parse(&database.address).unwrap();
    PostgresStore::restore(&address, std::io::Cursor::new(first.clone()), RestoredTokens::Kept).await.unwrap();
    let postgres = database.open().await;
    assert_eq!(postgres.history(), embedded.history());
    for name in ["v", "w", "empty"] {
        let [ours, theirs] = [postgres.used_bytes(workspace(name)).await, embedded.used_bytes(workspace(name)).await];
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(postgres.counts(workspace(name)).await, embedded.counts(workspace(name)).await, "{name}");
    }
    let second = back_up(&postgres).await;
    assert!(items(&second) == items(&first), "{} and {} bytes", second.len(), first.len());
    assert_eq!(postgres.sweep_blobs(UnixMillis(u64::MAX)).await, embedded.sweep_blobs(UnixMillis(u64::MAX)).await);
    let refused = PostgresStore::restore(&address, std::io::Cursor::new(second.clone()), RestoredTokens::Kept).await;
    assert!(refused.is_err(), "another server uses it: {refused:?}");
    postgres.close().await.unwrap();
    let refused = PostgresStore::restore(&address, std::io::Cursor::new(second.clone()), RestoredTokens::Kept).await;
    assert!(refused.unwrap_err().to_string().contains("is not empty"));
    // One that is cut off leaves a database without a store.
    let cut = std::io::Cursor::new(second[..second.len() - 40].to_vec());
    let empty = Address::parse(&empty.address).unwrap();
    assert!(PostgresStore::restore(&empty, cut, RestoredTokens::Kept).await.is_err());
    PostgresStore::restore(&empty, std::io::Cursor::new(second.clone()), RestoredTokens::Revoked).await.unwrap();
    let saved = dirs[1].path().join("backup");
    std::fs::write(&saved, &second).unwrap();
    let restored = dirs[1].path().join("data");
    restore(&saved, &restored, RestoredTokens::Kept).unwrap();
    let third = back_up(&EmbeddedStore::open(&restored).unwrap()).await;
    assert!(items(&third) == items(&first), "there and back");
}

/// What came of uploads that are given up goes, and what no server goes on with is swept. One that another server goes on with stays,
/// whoever opens the store.
#[tokio::test]
async fn uploads_that_are_given_up_go() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (database.open().await, JoinSet::new());
    let uploads: Vec<_> = (1..=200).map(|number| UploadId(Uuid::from_u128(number))).collect();
    for upload in &uploads {
        store.put_chunk(*upload, 0, b"x".as_slice().into()).await.unwrap();
    }
    uploads[1..].iter().for_each(|upload| store.discard_upload(*upload));
    let client = connect(&database, &mut tasks).await;
    let count = async |expected: i64| {
        let chunks = async || client.query_one("SELECT count(*) FROM chunks", &[]).await.unwrap().get::<_, i64>(0);
        until(async || (chunks().await == expected).then_some(())).await;
    };
    count(1).await;
    store.close().await.unwrap();
    let store = database.open().await;
    store.sweep_blobs(UnixMillis(u64::MAX)).await.unwrap();
    count(1).await;
    run(&client, "UPDATE uploads SET touched = now() - interval '2 hours'").await;
    store.sweep_blobs(UnixMillis(u64::MAX)).await.unwrap();
    count(0).await;
    store.close().await.unwrap();
}
