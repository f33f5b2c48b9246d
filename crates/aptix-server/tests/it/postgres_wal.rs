//! Bytes of write-ahead log that a batch costs in PostgreSQL, beside the bytes of its content. They are counted without images of whole
//! pages: how many of those are logged depends on checkpoints.

use std::sync::Arc;

use aptix_model::batch::{Content, CreateFile, FileEdit};
use aptix_model::id::Uuid;
use aptix_model::record::BatchRecord;
use aptix_server::store::postgres::PostgresStore;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use crate::cluster::{self, Cluster};
use crate::postgres_store::end;
use crate::store_contract::{append, batch};

/// The database of the test.
const NAME: &str = "wal";

/// How many batches are written at once, or one after the other.
const MANY: usize = 64;

/// Bytes of text in a batch.
const SIZES: [usize; 5] = [1, 1 << 10, 4 << 10, 64 << 10, 1 << 20];

/// Text that PostgreSQL cannot compress.
fn noise(seed: u128, bytes: usize) -> String {
    let block = |block: u64| Sha256::digest([seed.to_be_bytes(), u128::from(block).to_be_bytes()].concat());
    // It repeats itself after more bytes than PostgreSQL looks back.
    let noise: Vec<_> = (0..256).flat_map(block).map(|byte| char::from(b' ' + byte % 95)).collect();
    noise.into_iter().cycle().take(bytes).collect()
}

/// A batch with so many bytes of text, and names as long as usual.
fn sized(number: u128, bytes: usize) -> BatchRecord {
    let digest = Sha256::digest(number.to_be_bytes());
    let request = Uuid::from_slice(&digest[..16]).unwrap().to_string();
    let mut record = batch(number, "web-frontend", &request);
    record.origin.session_id = Some("0198c7a2-5d1e-7b60-a3f4-8e2b91d07c65".to_owned());
    let content = Content::Text(noise(number, bytes));
    record.batch.files[0].edit = FileEdit::CreateFile(CreateFile { content, overwrite: false, content_format: None });
    record
}

/// Carries out `act` for all items at once, or for one after the other.
async fn each<T, F: Future<Output = BatchRecord> + Send + 'static>(
    at_once: bool,
    items: Vec<T>,
    act: impl Fn(T) -> F,
) -> Vec<BatchRecord> {
    if at_once {
        return items.into_iter().map(act).collect::<JoinSet<_>>().join_all().await;
    }
    let mut done = Vec::new();
    for item in items {
        done.push(act(item).await);
    }
    done
}

/// What batches cost.
#[derive(Debug)]
#[expect(dead_code, reason = "one that is too high is shown with what it is of")]
struct Cost {
    at_once: bool,
    /// Bytes of the record of the content of one.
    content: u64,
    /// Bytes of log to store one.
    append: u64,
    /// Bytes of log until it is reported as applied.
    life: u64,
}

/// Stores batches with so many bytes of text, and reports them as applied.
async fn measure(
    cluster: &Cluster,
    store: &Arc<PostgresStore>,
    numbers: std::ops::Range<u128>,
    bytes: usize,
    at_once: bool,
) -> Cost {
    let ask = |sql: &str| cluster.sql(NAME, sql).parse::<u64>().unwrap();
    let position = || ask("SELECT pg_current_wal_insert_lsn() - '0/0'");
    let new: Vec<_> = numbers.map(|number| sized(number, bytes)).collect();
    let (count, before) = (new.len() as u64, position());
    let stored = each(at_once, new, |new| {
        let store = Arc::clone(store);
        async move { append(&store, new).await }
    });
    let stored = stored.await;
    let between = position();
    let ended = each(at_once, stored, |stored| {
        let store = Arc::clone(store);
        async move { end(&store, &stored).await }
    });
    ended.await;
    let after = position();
    let content = ask("SELECT octet_length(content) FROM batches ORDER BY first DESC LIMIT 1");
    Cost { at_once, content, append: (between - before) / count, life: (after - before) / count }
}

/// A batch takes at most 1.5 times its content and 1 KiB of log when it is stored, and 1 KiB more until its agent has reported it: alone,
/// and in a group.
#[tokio::test]
async fn a_batch_takes_little_more_log_than_its_content() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database(NAME);
    for setting in ["full_page_writes = off", "wal_compression = off", "autovacuum = off"] {
        cluster.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    let store = Arc::new(cluster::open(&cluster.address(NAME)).await);
    // The first ones create tables' first pages, the workspace and the session.
    let mut first = 1;
    measure(&cluster, &store, first..first + 2 * MANY as u128, 1, true).await;
    for bytes in SIZES {
        for at_once in [false, true] {
            first += 1000;
            let count = if at_once || bytes <= 4 << 10 { MANY } else { 4 };
            let cost = measure(&cluster, &store, first..first + count as u128, bytes, at_once).await;
            let Cost { content, append, life, .. } = cost;
            assert!(append <= content * 3 / 2 + 1024, "{cost:?}");
            assert!(life <= content * 3 / 2 + 2048, "{cost:?}");
        }
    }
}
