//! Cloud files in PostgreSQL: statements change them that were not read, and count which blobs they name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::{CloudFile, FileUpdate, Store, Transition, Transitioned, Twins, UploadId};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;
use tokio_util::bytes::Bytes;

use crate::cluster::Database;
use crate::postgres_store::{connect, run};
use crate::sample::file;
use crate::store_contract::{append, batch, step, workspace};

/// Reports of a round, which are asked for at once, and rounds.
const REPORTS: u128 = 24;
const ROUNDS: u128 = 12;

/// Paths of three keys.
const PATHS: [&str; 7] = ["app/a", "app/A", "app/b", "app/B", "app/bB", "app/BB", "app/Bb"];

/// The blobs that files name: one byte each.
fn blob(number: u8) -> (BlobRef, Bytes) {
    let sha256 = Sha256Digest::from_bytes(Sha256::digest([number]).into());
    (BlobRef { sha256, size_bytes: 1 }, Bytes::copy_from_slice(&[number]))
}

/// What a report names: one to four files, no path twice.
fn files(seed: u128) -> Vec<FileUpdate> {
    let digest = Sha256::digest(seed.to_be_bytes());
    let count = usize::from(digest[0] % 4) + 1;
    let mut updates = BTreeMap::new();
    for bytes in digest[1..].chunks(3).take(count) {
        let path = PATHS[usize::from(bytes[0]) % PATHS.len()];
        let content = (bytes[1] % 4 > 0).then(|| blob(bytes[1] % 4).0);
        let twins = if bytes[2] % 3 == 0 { Twins::Gone } else { Twins::MayExist };
        updates.insert(path, file(path, content, twins));
    }
    updates.into_values().collect()
}

async fn all_files(store: &Arc<impl Store>) -> Vec<CloudFile> {
    store.files(workspace("w"), None, 100).await.unwrap().into_iter().map(Result::unwrap).collect()
}

/// Stores the batch of a report.
async fn stored(store: &Arc<impl Store>, number: u128) -> BatchRecord {
    append(store, batch(number, "w", &format!("r{number}"))).await
}

/// Whatever reports share a group, files are as they would be one report after the other, and each blob counts those that name it.
#[tokio::test]
async fn reports_that_share_a_group_leave_the_files_that_each_left() {
    let Some(database) = Database::new() else { return };
    let (store, model, mut tasks) = (Arc::new(database.open().await), Arc::<MemoryStore>::default(), JoinSet::new());
    let client = connect(&database, &mut tasks).await;
    for number in 1..=3 {
        let (blob, bytes) = blob(number);
        let upload = UploadId(Uuid::from_u128(number.into()));
        for store in [&*store as &dyn Store, &*model] {
            store.put_chunk(upload, 0, bytes.clone()).await.unwrap();
            store.commit_upload(upload, workspace("w"), blob).await.unwrap();
        }
    }
    let mut commits = 0;
    for round in 0..ROUNDS {
        let numbers = || round * REPORTS + 1..(round + 1) * REPORTS + 1;
        let mut reports = Vec::new();
        for number in numbers() {
            let made = [stored(&store, number).await, stored(&model, number).await];
            assert_eq!(made[0].revision, made[1].revision);
            reports.push(Transition { files: files(number), ..step(&made[0], BatchState::Applied) });
        }
        let before = store.asked().commits;
        let asked = reports.clone().into_iter().map(|report| {
            let store = Arc::clone(&store);
            async move { store.transition(report).await.unwrap() }
        });
        let mut taken = Vec::new();
        for answer in asked.collect::<JoinSet<_>>().join_all().await {
            let Transitioned::Done(batch) = answer else { panic!("the report is taken, and not {answer:?}") };
            taken.push((batch.revision, batch.id));
        }
        commits += store.asked().commits - before;
        taken.sort_unstable();
        for (revision, id) in taken {
            let report = reports.iter().find(|report| report.batch == id).unwrap();
            let done = model.transition(report.clone()).await;
            assert!(matches!(done, Ok(Transitioned::Done(batch)) if batch.revision == revision));
        }
        let files = all_files(&store).await;
        assert_eq!(files, all_files(&model).await, "round {round}");
        let mut named = BTreeMap::from([1, 2, 3].map(|number| (blob(number).0.sha256, 0)));
        for file in &files {
            *named.get_mut(&file.content.sha256).unwrap() += 1;
        }
        let counted = client.query("SELECT digest, names FROM blobs", &[]).await.unwrap();
        let digest = |bytes: Vec<u8>| Sha256Digest::from_bytes(bytes.try_into().unwrap());
        let counted = counted.iter().map(|row| (digest(row.get(0)), row.get::<_, i64>(1)));
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), named, "round {round}");
    }
    assert!(commits < 4 * ROUNDS as u64, "reports share groups: {commits} commits");
}

/// A file that is reported again keeps its row: PostgreSQL logs less for a change than for a removal and a new row.
#[tokio::test]
async fn a_file_that_is_reported_again_keeps_its_row() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (crate::store_contract::with_empty_blob(database.open().await).await, JoinSet::new());
    let client = connect(&database, &mut tasks).await;
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''removed''; END'; \
        CREATE TRIGGER refuse BEFORE DELETE ON files FOR EACH ROW EXECUTE FUNCTION refuse()";
    run(&client, refuse).await;
    let empty = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    let report = async |number, path| {
        let files = vec![file(path, Some(empty), Twins::Gone)];
        store.transition(Transition { files, ..step(&stored(&store, number).await, BatchState::Applied) }).await
    };
    for number in 1..=3 {
        assert!(matches!(report(number, "app/a").await, Ok(Transitioned::Done(_))), "{number}");
    }
    assert!(report(4, "app/A").await.is_err(), "the other file with its key is removed");
}

/// A report of many files, all of which are there, takes time in proportion to their number, also where PostgreSQL has taken the table for
/// a small one and keeps plans for that.
#[tokio::test]
async fn a_report_of_many_files_takes_no_more_time_for_each() {
    let Some(database) = Database::new() else { return };
    let (store, mut tasks) = (crate::store_contract::with_empty_blob(database.open().await).await, JoinSet::new());
    let client = connect(&database, &mut tasks).await;
    let small = "ALTER TABLE files SET (autovacuum_enabled = off); \
        INSERT INTO files SELECT 'w' || n, 'app/a', 'app/a', sha256(''), '' FROM generate_series(1, 100) n; ANALYZE files";
    run(&client, small).await;
    let empty = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    let mut number = 0;
    let mut report = async |count: u32| {
        number += 1;
        let paths = (0..count).map(|file| format!("app/{count}/{file}"));
        let files = paths.map(|path| file(&path, Some(empty), Twins::Gone)).collect();
        let report = Transition { files, ..step(&stored(&store, number).await, BatchState::Applied) };
        let begun = Instant::now();
        assert!(matches!(store.transition(report).await, Ok(Transitioned::Done(_))));
        begun.elapsed()
    };
    for _ in 0..8 {
        report(1).await;
    }
    let mut took = Vec::new();
    for count in [500, 20_000] {
        // None of them is there yet.
        report(count).await;
        let mut best = Duration::MAX;
        for _ in 0..5 {
            best = best.min(report(count).await);
        }
        took.push(best);
    }
    assert!(took[1] < took[0] * 200, "40 times as many files: {took:?}");
}
