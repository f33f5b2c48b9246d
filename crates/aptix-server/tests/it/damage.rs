//! Bits that flip and pages that come back as zeros in a data directory: whatever was acknowledged is there as it was, or the
//! server names what is missing. It never takes damage for the torn end of a write, and never for other data.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::embedded::{EmbeddedStore, OnLoss, Opening};
use aptix_server::store::{BatchSelector, Store, StoreError, Transitioned, UploadId};
use sha2::{Digest, Sha256};

use crate::server::{Server, applied, create_text, next_event, submit};
use crate::store_contract::{append, batch, step, workspace};

const PAGE: u64 = 4096;
const ACCEPT: Opening = Opening { open_files: 64, on_loss: OnLoss::Accept };

/// A directory in memory, where there is one: nothing here needs a disk, and much is flushed.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What was acknowledged: batches as they are now, the events of both workspaces, and a blob.
struct Acknowledged {
    batches: Vec<BatchRecord>,
    newest: Vec<(&'static str, u64)>,
    blob: (BlobRef, Vec<u8>),
}

/// Fills a store with batches of two workspaces, some of them ended, and a blob of three chunks.
async fn fill(directory: &Path, count: u128) -> Acknowledged {
    let store = Arc::new(EmbeddedStore::open(directory).unwrap());
    let bytes: Vec<u8> = (0..3000_u32).flat_map(|number| Sha256::digest(number.to_be_bytes())).collect();
    let sha256 = Sha256Digest::from_bytes(Sha256::digest(&bytes).into());
    let blob = BlobRef { sha256, size_bytes: bytes.len() as u64 };
    let mut batches = Vec::new();
    for number in 1..=count {
        let name = if number % 3 == 0 { "v" } else { "w" };
        let stored = append(&store, batch(number, name, &format!("r{number}"))).await;
        if number % 2 == 0 {
            let Ok(Transitioned::Done(ended)) = store.transition(step(&stored, BatchState::Cancelled)).await else {
                panic!("the step is taken")
            };
            batches.push(ended);
        } else {
            batches.push(stored);
        }
        if number == count / 2 {
            let upload = UploadId(Uuid::from_u128(5));
            for (index, chunk) in (0..).zip(bytes.chunks(32_000)) {
                store.put_chunk(upload, index, chunk.to_vec().into()).await.unwrap();
            }
            store.commit_upload(upload, workspace("w"), blob).await.unwrap();
        }
    }
    let mut newest = Vec::new();
    for name in ["v", "w"] {
        newest.push((name, store.newest(workspace(name)).await.unwrap().unwrap().0));
    }
    store.close().await.unwrap();
    Acknowledged { batches, newest, blob: (blob, bytes) }
}

/// What became of what was acknowledged.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Intact,
    /// The store does not open, and reports why.
    Refused(String),
    /// It opens, and reports what it cannot read when that is requested.
    Reported,
    /// Something is missing or different, and is not reported.
    Silent(String),
}

async fn look(directory: &Path, acknowledged: &Acknowledged) -> Outcome {
    let store = match EmbeddedStore::open(directory) {
        Ok(store) => Arc::new(store),
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let mut reported = false;
    for batch in &acknowledged.batches {
        match store.batch(batch.workspace.clone(), BatchSelector::Id(batch.id)).await {
            Ok(Some(found)) if found == *batch => {}
            Ok(found) => {
                return Outcome::Silent(format!("batch {}: {:?}", batch.id, found.map(|found| found.revision)));
            }
            Err(_) => reported = true,
        }
    }
    for (name, newest) in &acknowledged.newest {
        match store.events(workspace(name), Revision(0), 10_000).await {
            Ok(events) if events.len() as u64 == *newest => reported |= events.iter().any(Result::is_err),
            Ok(events) => return Outcome::Silent(format!("{} of {newest} events of {name}", events.len())),
            Err(_) => reported = true,
        }
    }
    let (blob, bytes) = &acknowledged.blob;
    match store.blob_sizes(workspace("w"), vec![blob.sha256]).await.as_deref() {
        Ok([Some(_)]) => {
            let mut found = Vec::new();
            for index in 0..4 {
                match store.blob_chunk(workspace("w"), blob.sha256, index).await {
                    Ok(chunk) => found.extend_from_slice(chunk.as_deref().unwrap_or_default()),
                    Err(_) => reported = true,
                }
            }
            // The server checks the digest before sending it.
            reported |= found != *bytes;
        }
        Ok(found) => return Outcome::Silent(format!("the blob: {found:?}")),
        Err(_) => reported = true,
    }
    store.close().await.unwrap();
    if reported { Outcome::Reported } else { Outcome::Intact }
}

/// A copy in which one file is damaged.
fn damaged(original: &Path, file: &Path, damage: impl FnOnce(&File)) -> tempfile::TempDir {
    let copy = place();
    let copied = Command::new("cp").args(["-a", "--sparse=always"]).arg(original.join(".")).arg(copy.path()).status();
    assert!(copied.unwrap().success());
    damage(&File::options().read(true).write(true).open(copy.path().join(file)).unwrap());
    copy
}

fn flip(file: &File, bit: u64) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, bit / 8).unwrap();
    file.write_all_at(&[byte[0] ^ (1 << (bit % 8))], bit / 8).unwrap();
}

fn zero(mut file: &File, page: u64, length: u64) {
    file.seek(SeekFrom::Start(page * PAGE)).unwrap();
    let count = usize::try_from(PAGE.min(length - page * PAGE)).unwrap();
    file.write_all(&vec![0; count]).unwrap();
}

/// How many bytes of the journal are used.
fn used(directory: &Path) -> u64 {
    let (journal, zeros) = (std::fs::read(directory.join("0.jnl")).unwrap(), vec![0; 1 << 16]);
    let blocks = journal.chunks(zeros.len()).rposition(|block| !zeros.starts_with(block)).unwrap() + 1;
    let part = &journal[..journal.len().min(blocks * zeros.len())];
    part.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A flipped bit, or a page of zeros.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit(u64),
    Page(u64),
}

/// Damages the journal in each way, and sees what becomes of what was acknowledged.
async fn damage_journal(directory: &Path, acknowledged: &Acknowledged, damages: &[Damage]) -> Vec<(Damage, Outcome)> {
    let length = used(directory);
    let mut outcomes = Vec::new();
    for damage in damages {
        let copy = damaged(directory, &PathBuf::from("0.jnl"), |file| match damage {
            Damage::Bit(bit) => flip(file, *bit),
            Damage::Page(page) => zero(file, *page, length),
        });
        outcomes.push((*damage, look(copy.path(), acknowledged).await));
    }
    outcomes
}

/// Damages of the journal, the same ones for a seed.
fn damages(directory: &Path, seed: u64, bits: usize, pages: usize) -> Vec<Damage> {
    let (length, mut random) = (used(directory), Random(seed));
    let flips: Vec<_> = (0..bits).map(|_| Damage::Bit(random.below(length * 8))).collect();
    let zeros = (0..pages).map(|_| Damage::Page(random.below(length.div_ceil(PAGE))));
    flips.into_iter().chain(zeros).collect()
}

fn count(outcomes: &[(Damage, Outcome)], of: impl Fn(&Outcome) -> bool) -> usize {
    outcomes.iter().filter(|(_, outcome)| of(outcome)).count()
}

/// How many bits flip and how many pages become zeros; a thousand and two hundred where `APTIX_LONG` is set.
#[expect(clippy::disallowed_methods, reason = "a test is asked for its long form")]
fn sizes() -> (usize, usize) {
    if std::env::var("APTIX_LONG").is_ok() { (1000, 200) } else { (60, 25) }
}

#[tokio::test]
async fn no_flipped_bit_and_no_zeroed_page_of_the_journal_is_silent() {
    let (seed, (bits, pages)) = (0x5eed_2026, sizes());
    let directory = place();
    let acknowledged = fill(directory.path(), 60).await;
    let damages = damages(directory.path(), seed, bits, pages);
    let outcomes = damage_journal(directory.path(), &acknowledged, &damages).await;
    let silent: Vec<_> = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Silent(_))).collect();
    assert!(silent.is_empty(), "{} of {}: {silent:#?}", silent.len(), outcomes.len());
    let refused = count(&outcomes, |outcome| matches!(outcome, Outcome::Refused(_)));
    let named = |outcome: &Outcome| matches!(outcome, Outcome::Refused(why) if why.contains("revision"));
    println!(
        "seed {seed:#x}: {bits} flipped bits and {pages} zeroed pages: {refused} refused, {} of them by revision, {} reported, \
         {} intact, 0 silent",
        count(&outcomes, named),
        count(&outcomes, |outcome| *outcome == Outcome::Reported),
        count(&outcomes, |outcome| *outcome == Outcome::Intact),
    );
    assert_eq!(refused, count(&outcomes, named), "what is missing is named by its revision: {outcomes:#?}");
    assert!(refused > outcomes.len() / 2);
}

/// The control: with the mark of a store that acknowledged nothing, the same damages are silent, and this suite sees it.
#[tokio::test]
async fn without_the_high_water_mark_the_same_damages_are_silent() {
    let (directory, empty) = (place(), place());
    let acknowledged = fill(directory.path(), 60).await;
    let store = EmbeddedStore::open(empty.path()).unwrap();
    store.close().await.unwrap();
    put(&directory.path().join(MARKS), &std::fs::read(empty.path().join(MARKS)).unwrap());
    let damages = damages(directory.path(), 0x5eed_2026, 20, 10);
    let outcomes = damage_journal(directory.path(), &acknowledged, &damages).await;
    assert!(count(&outcomes, |outcome| matches!(outcome, Outcome::Silent(_))) > 10, "{outcomes:#?}");
}

/// The file with the high-water mark.
const MARKS: &str = "acknowledged";

fn put(path: &Path, bytes: &[u8]) {
    let mut file = File::options().write(true).truncate(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Every file of a directory with its digest.
fn digests(directory: &Path) -> Vec<(PathBuf, [u8; 32])> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(digests(&path));
        } else if path.file_name().is_some_and(|name| name != "server.lock") {
            let mut bytes = std::fs::read(&path).unwrap();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                bytes.truncate(1 << 20);
            }
            found.push((path.clone(), Sha256::digest(bytes).into()));
        }
    }
    found.sort();
    found
}

/// A start is refused until its loss is accepted, and changes nothing. Then the journal is copied aside as it was, what is
/// left is served, and numbering continues from there. `verify` changes nothing either, and names what is lost.
#[tokio::test]
async fn a_loss_is_refused_until_it_is_accepted() {
    let directory = place();
    let acknowledged = fill(directory.path(), 20).await;
    assert_eq!(verify(directory.path()).unwrap().damages, Vec::<String>::new());
    let page = used(directory.path()) / PAGE / 2;
    let copy = damaged(directory.path(), Path::new("0.jnl"), |file| zero(file, page, used(directory.path())));
    let before = digests(copy.path());
    let Err(StoreError::Lost { lost }) = EmbeddedStore::open(copy.path()) else { panic!("the start is refused") };
    assert!(lost.iter().any(|lost| lost.starts_with("workspace w: revisions ")), "{lost:?}");
    let found = verify(copy.path()).unwrap().damages;
    assert!(lost.iter().all(|lost| found.contains(lost)), "{lost:?} in {found:?}");
    assert_eq!(digests(copy.path()), before, "nothing is changed");

    let store = Arc::new(EmbeddedStore::open_with(copy.path(), ACCEPT).unwrap());
    let left = store.newest(workspace("w")).await.unwrap().unwrap();
    assert!(left.0 > 0 && left.0 < acknowledged.newest[1].1, "{left}");
    assert!(
        lost.contains(&format!("workspace w: revisions {} to {}", left.0 + 1, acknowledged.newest[1].1)),
        "{lost:?}"
    );
    assert_eq!(append(&store, batch(900, "w", "next")).await.revision, left.next());
    store.close().await.unwrap();
    drop(store);
    let kept = std::fs::read(aside(copy.path()).join("0.jnl")).unwrap();
    assert!(
        std::fs::read(directory.path().join("0.jnl"))
            .unwrap()
            .starts_with(&kept[..usize::try_from(page * PAGE).unwrap()])
    );
    assert!(kept.len() as u64 > (page + 1) * PAGE, "what is behind the damage is kept as well");
    EmbeddedStore::open(copy.path()).unwrap().close().await.unwrap();
    assert_eq!(verify(copy.path()).unwrap().damages, Vec::<String>::new());
}

/// A process that dies, or a power cut, leaves the end of a write that was not acknowledged. It is cut off without a
/// question, wherever it ends; once the write was acknowledged it never is.
#[tokio::test]
async fn the_torn_end_of_an_unacknowledged_write_is_cut_off() {
    let directory = place();
    let acknowledged = fill(directory.path(), 8).await;
    let (length, before) = (used(directory.path()), std::fs::read(directory.path().join(MARKS)).unwrap());
    let store = Arc::new(EmbeddedStore::open(directory.path()).unwrap());
    append(&store, batch(100, "w", "last")).await;
    store.close().await.unwrap();
    drop(store);
    let (whole, after) = (used(directory.path()), std::fs::read(directory.path().join(MARKS)).unwrap());
    // The first page names the commit that is being written, the second the newest that was flushed.
    let page = usize::try_from(PAGE).unwrap();
    let torn = [&after[..page], &before[page..2 * page], &after[2 * page..]].concat();
    for cut in (length..whole).step_by(7).chain([length + 1, whole - 1]) {
        for hole in [false, true] {
            for (marks, is_acknowledged) in [(&torn, false), (&after, true)] {
                let copy = damaged(directory.path(), Path::new("0.jnl"), |file| {
                    if hole {
                        file.write_all_at(&vec![0; usize::try_from((whole - cut).min(40)).unwrap()], cut).unwrap();
                    } else {
                        file.set_len(cut).unwrap();
                    }
                });
                put(&copy.path().join(MARKS), marks);
                let outcome = look(copy.path(), &acknowledged).await;
                match (is_acknowledged, &outcome) {
                    (false, Outcome::Intact) => {}
                    (true, Outcome::Refused(why)) if why.contains("workspace w: revisions 10 to 10") => {}
                    _ => panic!("cut at {cut}, hole {hole}, acknowledged {is_acknowledged}: {outcome:?}"),
                }
            }
        }
    }
}

/// Without the file of what was acknowledged, an incomplete write looks like damage: the store reports the missing file.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
async fn a_high_water_mark_that_is_gone_is_missed() {
    let directory = place();
    fill(directory.path(), 4).await;
    std::fs::remove_file(directory.path().join(MARKS)).unwrap();
    let Err(error) = EmbeddedStore::open(directory.path()) else { panic!("the start is refused") };
    assert!(error.to_string().contains(MARKS), "{error}");
    EmbeddedStore::open_with(directory.path(), ACCEPT).unwrap().close().await.unwrap();
    EmbeddedStore::open(directory.path()).unwrap().close().await.unwrap();
}

/// Where the high-water mark is gone as well, a journal that cannot be read to its end is left as it is until its loss is
/// accepted, and is copied aside then.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
async fn a_damaged_journal_without_a_high_water_mark_is_not_cut_off_before_its_loss_is_accepted() {
    let directory = place();
    fill(directory.path(), 20).await;
    let page = used(directory.path()) / PAGE / 2;
    let copy = damaged(directory.path(), Path::new("0.jnl"), |file| zero(file, page, used(directory.path())));
    std::fs::remove_file(copy.path().join(MARKS)).unwrap();
    let (before, length) = (digests(copy.path()), used(copy.path()));
    let Err(StoreError::Lost { lost }) = EmbeddedStore::open(copy.path()) else { panic!("the start is refused") };
    assert!(lost.iter().any(|lost| lost.contains(MARKS)), "{lost:?}");
    assert_eq!((digests(copy.path()), used(copy.path())), (before, length), "nothing is changed");
    EmbeddedStore::open_with(copy.path(), ACCEPT).unwrap().close().await.unwrap();
    assert_eq!(used(&aside(copy.path())), length, "what is behind the damage is kept");
}

/// A journal whose end is gone as if it had never been written can be read to its end. It is copied aside all the same.
#[tokio::test]
async fn an_accepted_loss_copies_whole_journals_aside_too() {
    let directory = place();
    fill(directory.path(), 8).await;
    let length = used(directory.path());
    let store = Arc::new(EmbeddedStore::open(directory.path()).unwrap());
    append(&store, batch(100, "w", "last")).await;
    store.close().await.unwrap();
    drop(store);
    let copy = damaged(directory.path(), Path::new("0.jnl"), |file| file.set_len(length).unwrap());
    let Err(StoreError::Lost { .. }) = EmbeddedStore::open(copy.path()) else { panic!("the start is refused") };
    EmbeddedStore::open_with(copy.path(), ACCEPT).unwrap().close().await.unwrap();
    assert_eq!(used(&aside(copy.path())), length);
}

/// The directory that the journals were copied to.
fn aside(directory: &Path) -> PathBuf {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("aside-");
    entries.into_iter().find(is_aside).unwrap()
}

/// One bit, or a page, in any file at all, of a store with a journal alone and of one whose records are in tables: what was
/// acknowledged is there, or the store says what is not.
#[tokio::test]
async fn no_damage_of_any_file_is_silent() {
    let (seed, rounds) = (0xf11e_2026, sizes().0 / 10);
    for in_tables in [false, true] {
        let directory = place();
        let acknowledged = fill(directory.path(), 12).await;
        if in_tables {
            flush(directory.path());
        }
        let (mut random, journal, mut counts) = (Random(seed), used(directory.path()), [0; 3]);
        for (file, _) in digests(directory.path()) {
            let name = file.strip_prefix(directory.path()).unwrap().to_owned();
            let length = std::fs::metadata(&file).unwrap().len().min(journal.max(PAGE));
            for round in 0..rounds.min(usize::try_from(length).unwrap()) {
                let bit = random.below(length * 8);
                let copy = damaged(directory.path(), &name, |file| match round % 6 {
                    5 => zero(file, bit / 8 / PAGE, length),
                    _ => flip(file, bit),
                });
                let outcome = look(copy.path(), &acknowledged).await;
                if outcome != Outcome::Intact && round < 2 {
                    let found = verify(copy.path());
                    assert!(found.is_err() || !found.unwrap().damages.is_empty(), "{} bit {bit}", name.display());
                }
                let named = format!("tables {in_tables}, {} round {round} bit {bit}", name.display());
                counts[match outcome {
                    Outcome::Intact => 0,
                    Outcome::Refused(_) => 1,
                    Outcome::Reported => 2,
                    Outcome::Silent(what) => panic!("{named}: {what}"),
                }] += 1;
            }
        }
        println!(
            "seed {seed:#x}, tables {in_tables}: {} intact, {} refused, {} reported, 0 silent",
            counts[0], counts[1], counts[2]
        );
    }
}

/// Writes everything there is into tables.
fn flush(directory: &Path) {
    let database = fjall::Database::builder(directory).open().unwrap();
    for name in ["records", "chunks"] {
        database.keyspace(name, fjall::KeyspaceCreateOptions::default).unwrap().rotate_memtable_and_wait().unwrap();
    }
}

/// A record that cannot be read stops neither the feed nor the lists: it is reported in its place, and all others are served.
#[tokio::test]
async fn one_damaged_record_stops_nothing() {
    let directory = place();
    let acknowledged = fill(directory.path(), 12).await;
    let broken: Vec<_> = acknowledged.batches.iter().filter(|batch| batch.workspace.as_str() == "w").take(2).collect();
    let database = fjall::Database::builder(directory.path()).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    records.insert([b"b", broken[0].id.0.as_bytes().as_slice()].concat(), "damaged").unwrap();
    records.insert([b"e", b"w\0".as_slice(), &4_u64.to_be_bytes()].concat(), "damaged").unwrap();
    records.insert([b"w", b"w\0".as_slice()].concat(), "damaged").unwrap();
    records.insert([b"f", b"w\0".as_slice(), b"app/b"].concat(), "damaged").unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((records, database));
    let found = verify(directory.path()).unwrap().damages;
    for named in ["revision 4", &broken[0].id.to_string(), "counters", "app/b"] {
        assert!(found.iter().any(|damage| damage.contains(named)), "{named} in {found:?}");
    }

    let server = Server::over(Arc::new(EmbeddedStore::open(directory.path()).unwrap()), Options::default());
    let mut client = server.connect().await;
    let newest = acknowledged.newest[1].1;
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let mut reported = Vec::new();
    for revision in 1..=newest {
        let event = next_event(&mut feed).await.unwrap();
        assert_eq!(event.revision, revision);
        reported.extend(event.damage.map(|damage| (revision, damage.batch_id)));
    }
    assert_eq!(reported[0], (1, broken[0].id.to_string()));
    assert!(reported.contains(&(4, String::new())), "{reported:?}");
    let next = client.submit(submit("w", "next", vec![create_text("a", "")])).await.unwrap();
    assert_eq!(next.revision, newest + 1, "numbering continues from the high-water mark");
    assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().batch_id, next.batch_id);
    let list =
        v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 0, ..v1::ListBatchesRequest::default() };
    let page = client.batches.list_batches(list).await.unwrap().into_inner();
    assert_eq!((page.batches.len(), page.damaged.len()), (8, 1), "{:?}", page.damaged);
    assert_eq!(page.damaged[0].batch_id, broken[0].id.to_string());
    let (epoch, _feed) = client.lease("w", "agent", newest + 1).await.unwrap();
    client.upload("w", b"").await.unwrap();
    client.report("w", &next.batch_id, epoch, applied(&[("app", "a", b"")])).await.unwrap();
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), page_size: 0, ..v1::ListFilesRequest::default() };
    let page = client.files.list_files(list).await.unwrap().into_inner();
    assert_eq!((page.files[0].path.as_str(), page.damaged[0].path.as_str()), ("a", "b"));
    let skipped = v1::Skipped { unreadable: 1, paths: vec!["b".to_owned()], ..Default::default() };
    assert_eq!(page.skipped, Some(skipped));
    let status = client.get("w", &broken[0].id.to_string()).await.unwrap_err();
    assert!(status.message().contains("damaged"), "{status:?}");
}
