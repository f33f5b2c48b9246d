//! Bytes of write-ahead log that a batch costs in PostgreSQL, beside the bytes of its content. They are counted without images of whole
//! pages: how many of those are logged depends on checkpoints.

use std::sync::Arc;

use aptix_model::batch::{BlobRef, Content, CreateFile, FileEdit};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::BatchRecord;
use aptix_model::report::Report;
use aptix_model::state::BatchState;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::{Store, Transition, Twins, UploadId};
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use crate::cluster::{self, Cluster};
use crate::postgres_known::take;
use crate::sample::file;
use crate::store_contract::{append, batch, step};

/// The database of the test.
const NAME: &str = "wal";

/// Bytes of the newest batch and of the newest report.
const CONTENT: &str = "SELECT octet_length(content) FROM batches ORDER BY first DESC LIMIT 1";
const PROGRESS: &str = "SELECT octet_length(progress) FROM batch_states ORDER BY newest DESC LIMIT 1";

/// How many batches are written at once, or one after the other.
const MANY: usize = 128;

/// Bytes of text in a batch.
const SIZES: [usize; 5] = [16, 1 << 10, 4 << 10, 64 << 10, 1 << 20];

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

/// Reads how far PostgreSQL's log has come.
struct Meter<'c> {
    cluster: &'c Cluster,
    position: u64,
}

impl<'c> Meter<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        let mut meter = Self { cluster, position: 0 };
        meter.spent();
        meter
    }

    fn ask(&self, sql: &str) -> u64 {
        self.cluster.sql(NAME, sql).parse().unwrap()
    }

    /// How many bytes were logged since this was asked last.
    fn spent(&mut self) -> u64 {
        let position = self.ask("SELECT pg_current_wal_insert_lsn() - '0/0'");
        position - std::mem::replace(&mut self.position, position)
    }
}

/// What one write costs.
#[derive(Debug)]
struct Cost {
    what: &'static str,
    /// Bytes of what it writes, as it is given.
    content: u64,
    /// Bytes of log.
    log: u64,
}

/// What the writes of batches with so many bytes of text cost: that one is stored, that a file of as many bytes is uploaded, and that the batch
/// is reported as applied, with a diff of as many bytes.
async fn measure(
    cluster: &Cluster,
    store: &Arc<PostgresStore>,
    numbers: std::ops::Range<u128>,
    bytes: usize,
    at_once: bool,
) -> [Cost; 3] {
    let (mut meter, count) = (Meter::new(cluster), numbers.clone().count() as u64);
    let append_one = |new| {
        let store = Arc::clone(store);
        async move { append(&store, new).await }
    };
    let stored = each(at_once, numbers.map(|number| sized(number, bytes)).collect(), append_one).await;
    let (log, content) = (meter.spent() / count, meter.ask(CONTENT));
    let of_append = Cost { what: "append", content, log };
    let upload_one = |stored: BatchRecord| {
        let store = Arc::clone(store);
        async move {
            upload(&store, &stored, 0, bytes).await;
            stored
        }
    };
    let stored = each(at_once, stored, upload_one).await;
    let of_upload = Cost { what: "upload", content: bytes as u64, log: meter.spent() / count };
    let report_one = |stored: BatchRecord| {
        let store = Arc::clone(store);
        async move {
            let step = step(&stored, BatchState::Applied);
            let diff = noise(!stored.id.0.as_u128(), bytes);
            let report = Some(Report { diff, ..step.report.unwrap() });
            take(&store, Transition { report, ..step }).await
        }
    };
    each(at_once, stored, report_one).await;
    let (log, content) = (meter.spent() / count, meter.ask(PROGRESS));
    [of_append, of_upload, Cost { what: "report", content, log }]
}

/// Stores one of the files that a batch leaves.
async fn upload(store: &PostgresStore, stored: &BatchRecord, number: u32, bytes: usize) -> BlobRef {
    let id = stored.id.0.as_u128() * 1000 + u128::from(number);
    let (upload, text) = (UploadId(Uuid::from_u128(id)), noise(!id, bytes));
    let sha256 = Sha256Digest::from_bytes(Sha256::digest(&text).into());
    let blob = BlobRef { sha256, size_bytes: bytes as u64 };
    store.put_chunk(upload, 0, text.into()).await.unwrap();
    store.commit_upload(upload, stored.workspace.clone(), blob).await.unwrap();
    blob
}

/// A store in the database of a cluster that logs no images of whole pages.
async fn store() -> Option<(Cluster, Arc<PostgresStore>)> {
    let cluster = Cluster::start()?;
    cluster.create_database(NAME);
    for setting in ["full_page_writes = off", "wal_compression = off", "autovacuum = off"] {
        cluster.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    let store = Arc::new(cluster::open(&cluster.address(NAME)).await);
    // The first ones create tables' first pages, the workspace and the session.
    measure(&cluster, &store, 1..1 + 2 * MANY as u128, SIZES[0], true).await;
    Some((cluster, store))
}

/// Each write of a batch takes at most 1.5 times what it writes and 1 KiB of log, alone and in a group; an upload 1 KiB more.
#[tokio::test]
async fn a_batch_takes_little_more_log_than_its_content() {
    let Some((cluster, store)) = store().await else { return };
    let mut first = 1;
    for bytes in SIZES {
        for at_once in [false, true] {
            first += 1000;
            let count = if bytes <= 4 << 10 { MANY } else { 8 };
            for cost in measure(&cluster, &store, first..first + count as u128, bytes, at_once).await {
                let more = if cost.what == "upload" { 2048 } else { 1024 };
                assert!(cost.log <= cost.content * 3 / 2 + more, "{cost:?} of {bytes} bytes, at once: {at_once}");
            }
        }
    }
}

/// Each file that a report names takes at most 1.5 KiB of log and seven times its path, whether it is new or was there, however large it is,
/// and however many there are.
#[tokio::test]
async fn a_report_takes_little_log_for_each_of_its_files() {
    let Some((cluster, store)) = store().await else { return };
    let (mut meter, mut number) = (Meter::new(&cluster), 1000);
    for (count, path, bytes) in [(10, 30, 16), (10, 30, 256 << 10), (320, 30, 16), (10, 800, 16), (10, 2000, 16)] {
        for _ in ["new", "there", "once more"] {
            number += 1;
            let stored = append(&store, sized(number, SIZES[0])).await;
            let mut files = Vec::new();
            for place in 0..count {
                let blob = upload(&store, &stored, place, bytes).await;
                let name = |(at, byte): (usize, char)| match byte {
                    _ if at % 50 == 49 => '/',
                    byte if byte.is_ascii_alphanumeric() => byte,
                    _ => '_',
                };
                let name: String = noise(place.into(), path).chars().enumerate().map(name).collect();
                files.push(file(&format!("app/{bytes}/{name}.rs"), Some(blob), Twins::Gone));
            }
            meter.spent();
            take(&store, Transition { files, ..step(&stored, BatchState::Applied) }).await;
            let log = meter.spent();
            let most = 1024 + meter.ask(PROGRESS) * 3 / 2 + u64::from(count) * (1536 + 7 * path as u64);
            assert!(
                log <= most,
                "{log} bytes for {count} files of {bytes} bytes with {path} bytes of path, at most {most}"
            );
        }
    }
}
