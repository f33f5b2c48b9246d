//! Power cuts that leave names and contents of different times, in mode `journal` and where the modes meet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_client::workspace::Workspace;
use aptix_client::workspace::transaction::{self, Durability, Receipt, Terms};
use aptix_client::workspace::{history, outbox};
use aptix_engine::digest::sha256;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::faults::{self, BATCH, Fault, FaultyDisk, Watcher};
use crate::moves::{self, Deed};
use crate::tree;

/// The first bytes of `ahead`: the name of its round.
const START: usize = 64;

fn journal_mode() -> Terms<'static> {
    Terms { durability: Durability::Journal, ..Terms::default() }
}

fn state(place: &Path) -> PathBuf {
    let roots = place.join("state/aptix/roots");
    std::fs::read_dir(roots).unwrap().next().unwrap().unwrap().path()
}

/// A workspace that is laid out and open.
fn laid_out(place: &Path) -> Workspace {
    moves::lay_out(place);
    faults::open(place, Fault::None).unwrap().0
}

fn write(workspace: &Workspace, path: &'static str, text: &'static str, terms: Terms<'_>) {
    moves::commit_by(workspace, &[Deed::Write(path, text, None)], terms, &|| {}).unwrap();
}

/// The record of the batch that ended with a receipt comes back by the name under which it was flushed.
fn bring_back(place: &Path) {
    let state = state(place);
    std::fs::rename(state.join("outbox").join(BATCH), state.join("journal/committed")).unwrap();
}

/// Commits, and dies just before an operation.
fn die(place: &Path, booted: bool, at: fn(&str, &str, &str) -> bool, deeds: &[Deed], terms: Terms<'_>) {
    let armed = Arc::new(AtomicBool::new(false));
    let watcher: Watcher = Arc::new({
        let armed = Arc::clone(&armed);
        move |kind, from, to| {
            if armed.load(Ordering::SeqCst) && at(kind, from, to) {
                std::panic::panic_any("killed");
            }
        }
    });
    let disk = FaultyDisk::watched(Fault::None, watcher);
    let (workspace, _) = faults::open_on(place, if booted { disk.booted() } else { disk }).unwrap();
    armed.store(true, Ordering::SeqCst);
    let died = catch_unwind(AssertUnwindSafe(|| moves::commit_by(&workspace, deeds, terms, &|| {}))).is_err();
    assert!(died);
    armed.store(false, Ordering::SeqCst);
}

fn publishes(kind: &str, _: &str, _: &str) -> bool {
    matches!(kind, "exchange" | "rename_new")
}

fn syncs(kind: &str, _: &str, _: &str) -> bool {
    kind == "sync"
}

fn booted(place: &Path) -> Workspace {
    faults::open_on(place, FaultyDisk::new(Fault::None).booted()).unwrap_or_else(|error| panic!("{error}")).0
}

/// Opens as whoever comes next in the same time since a start; tells whether the record was named `committed` when names
/// were flushed last.
fn reopened(place: &Path, committed: &Path) -> (Workspace, bool) {
    let flushed = Arc::new(AtomicBool::new(true));
    let watcher: Watcher = Arc::new({
        let (committed, flushed) = (committed.to_owned(), Arc::clone(&flushed));
        move |kind, _, _| {
            if kind == "sync" {
                flushed.store(committed.exists(), Ordering::SeqCst);
            }
        }
    });
    let (workspace, _) = faults::open_on(place, FaultyDisk::watched(Fault::None, watcher)).unwrap();
    let was = flushed.load(Ordering::SeqCst);
    (workspace, was)
}

fn staged(place: &Path) -> Vec<String> {
    tree::read(&place.join("ws")).into_keys().filter(|name| name.contains(".aptix-tmp")).collect()
}

/// A batch that was carried on after it was settled, and whose record comes back by its old name.
#[test]
fn a_settled_batch_that_recovery_carried_on_keeps_its_receipt_and_its_history() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let receipt = moves::receipt();
    die(
        place.path(),
        false,
        publishes,
        &[Deed::Write("a.txt", "two\n", None)],
        Terms { receipt: Some(&receipt), ..journal_mode() },
    );
    // Opening settles with the record named `committed`, durably, and only then carries the batch on.
    let state = state(place.path());
    let (workspace, comes_back) = reopened(place.path(), &state.join("journal/committed"));
    assert_eq!(outbox::waiting(&workspace).unwrap().len(), 1);
    write(&workspace, "run.sh", "later\n", journal_mode());
    drop(workspace);
    // The cut: of the names in the state, what opening has flushed is the last that reached the disk.
    if comes_back {
        bring_back(place.path());
    }
    let workspace = booted(place.path());
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"two\n", "the batch is wholly new");
    let told = outbox::waiting(&workspace).unwrap().len();
    let undoable = history::list(&workspace).unwrap().len();
    assert_eq!((told, undoable), (1, 2), "receipts, entries of the history");
}

/// The record's name has reached the disk, and of its bytes only those of the batch before, which was settled.
#[test]
fn old_bytes_under_a_new_name_cost_no_settled_batch_its_history() {
    let mut wrong = Vec::new();
    for (name, at) in [("staging", syncs as fn(&str, &str, &str) -> bool), ("committed", publishes)] {
        let place = tempfile::tempdir().unwrap();
        moves::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        write(&workspace, "a.txt", "two\n", journal_mode());
        workspace.settle().unwrap();
        drop(workspace);
        let journal = state(place.path()).join("journal");
        let before = std::fs::read(journal.join("spare")).unwrap();
        die(place.path(), false, at, &[Deed::Write("run.sh", "later\n", None)], journal_mode());
        if name == "staging" {
            // Nothing of the second batch was flushed.
            let ahead = std::fs::read(journal.join("ahead")).unwrap();
            std::fs::write(journal.join("ahead"), &ahead[..START]).unwrap();
        }
        std::fs::write(journal.join(name), &before).unwrap();
        let workspace = booted(place.path());
        let entries = history::list(&workspace).unwrap();
        let known = entries.iter().any(|entry| entry.files.iter().any(|file| file.path == "a.txt"));
        if !known || !staged(place.path()).is_empty() {
            wrong.push((name, known, staged(place.path())));
        }
    }
    assert!(wrong.is_empty(), "the first batch cannot be undone any more, or files are left: {wrong:?}");
}

/// The same, with the batch before still ahead.
#[test]
fn old_bytes_under_a_new_name_leave_no_staged_files() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    let armed = Arc::new(AtomicBool::new(false));
    let watcher: Watcher = Arc::new({
        let armed = Arc::clone(&armed);
        move |kind, _, _| {
            if kind == "sync" && armed.load(Ordering::SeqCst) {
                std::panic::panic_any("killed");
            }
        }
    });
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::watched(Fault::None, watcher)).unwrap();
    write(&workspace, "a.txt", "two\n", journal_mode());
    let journal = state(place.path()).join("journal");
    let (record, ahead) =
        (std::fs::read(journal.join("spare")).unwrap(), std::fs::read(journal.join("ahead")).unwrap());
    armed.store(true, Ordering::SeqCst);
    let second = [Deed::Write("run.sh", "later\n", None)];
    assert!(catch_unwind(AssertUnwindSafe(|| moves::commit_by(&workspace, &second, journal_mode(), &|| {}))).is_err());
    drop(workspace);
    // The names reached the disk (a file system does so every few seconds), and nothing that was written over.
    std::fs::write(journal.join("ahead"), &ahead).unwrap();
    std::fs::write(journal.join("staging"), &record).unwrap();
    assert!(!staged(place.path()).is_empty());
    drop(booted(place.path()));
    assert!(staged(place.path()).is_empty(), "{:?}", staged(place.path()));
}

/// The file of a record whose name was made durable half-way is written over with nothing ahead.
#[test]
fn a_record_that_was_settled_half_way_is_not_written_over() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    die(place.path(), false, publishes, &[Deed::Write("a.txt", "two\n", None)], journal_mode());
    // Opening makes the name `committed` durable, carries the batch on, and gives its file to the next batch.
    let journal = state(place.path()).join("journal");
    let (workspace, comes_back) = reopened(place.path(), &journal.join("committed"));
    drop(workspace);
    die(place.path(), false, syncs, &[Deed::Write("run.sh", "later\n", None)], journal_mode());
    let ahead = std::fs::read(journal.join("ahead")).unwrap();
    std::fs::write(journal.join("ahead"), &ahead[..START]).unwrap();
    let mut record = std::fs::read(journal.join("staging")).unwrap();
    let half = record.len() / 2;
    record[half..].fill(b' ');
    std::fs::write(journal.join("staging"), &record).unwrap();
    if comes_back {
        std::fs::rename(journal.join("staging"), journal.join("committed")).unwrap();
    }
    drop(booted(place.path()));
}

/// Another process has settled nothing.
#[test]
fn a_batch_of_another_process_is_found_to_be_undone() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    let (mine, _) = faults::open(place.path(), Fault::None).unwrap();
    let (theirs, _) = faults::open(place.path(), Fault::None).unwrap();
    write(&theirs, "a.txt", "two\n", journal_mode());
    assert_eq!(history::list(&mine).unwrap().len(), 1);
}

/// What is ahead in a root that is not the first of its workspace.
#[test]
fn a_root_is_healed_whatever_other_roots_it_is_opened_with() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    write(&workspace, "new.sh", "new\n", journal_mode());
    drop(workspace);
    // The cut takes the bytes.
    let file = std::fs::File::options().write(true).open(ws.join("new.sh")).unwrap();
    let found = file.metadata().unwrap().modified().unwrap();
    file.set_len(0).unwrap();
    file.set_modified(found).unwrap();
    drop(file);
    std::fs::create_dir(place.path().join("aa")).unwrap();
    let specs = ["aa", "ws"].map(|name| format!("{name}={}", place.path().join(name).display()).parse().unwrap());
    let disk = Box::new(FaultyDisk::new(Fault::None).booted());
    let workspace = Workspace::open(&specs, &place.path().join("state"), disk).unwrap();
    let listed = history::list(&workspace).unwrap().len();
    assert_eq!((std::fs::read(ws.join("new.sh")).unwrap(), listed), (b"new\n".to_vec(), 1));
}

/// The record of a flushed batch comes back beside what was written ahead after it.
#[test]
fn a_flushed_batch_before_one_that_is_written_ahead_keeps_its_receipt() {
    let place = tempfile::tempdir().unwrap();
    let workspace = laid_out(place.path());
    let receipt = moves::receipt();
    let flushed = Terms { receipt: Some(&receipt), ..Terms::default() };
    write(&workspace, "a.txt", "two\n", flushed);
    // Taken back by a batch in mode `journal`, which flushes no name.
    write(&workspace, "a.txt", "one\n", journal_mode());
    drop(workspace);
    // The state lies on another file system than the root; its names are those of the last flush.
    bring_back(place.path());
    let workspace = booted(place.path());
    assert_eq!(outbox::waiting(&workspace).unwrap().len(), 1);
}

/// No space for the history.
#[test]
fn a_full_disk_keeps_nobody_from_opening_a_root() {
    let place = tempfile::tempdir().unwrap();
    let workspace = laid_out(place.path());
    write(&workspace, "a.txt", "two\n", journal_mode());
    drop(workspace);
    faults::open(place.path(), Fault::Without("write", Errno::NOSPC)).unwrap_or_else(|error| panic!("{error}"));
}

/// The directory was replaced after its last batch, and the system started again.
#[test]
fn a_directory_that_was_made_anew_can_be_opened_after_a_boot() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    write(&workspace, "a.txt", "two\n", journal_mode());
    drop(workspace);
    std::fs::rename(&ws, place.path().join("gone")).unwrap();
    moves::lay_out(place.path());
    std::fs::remove_dir_all(place.path().join("gone")).unwrap();
    drop(booted(place.path()));
}

/// Files that are held while more are published.
#[test]
fn a_batch_of_more_files_than_descriptors_is_applied_or_refused() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let deeds: Vec<_> = (0..200)
        .map(|number| {
            std::fs::create_dir(ws.join(format!("d{number:03}"))).unwrap();
            std::fs::write(ws.join(format!("d{number:03}/f")), "old\n").unwrap();
            Deed::Write(Box::leak(format!("d{number:03}/f").into_boxed_str()), "new\n", None)
        })
        .collect();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let limit =
        rustix::process::Rlimit { current: Some(160), ..rustix::process::getrlimit(rustix::process::Resource::Nofile) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let outcome = moves::commit_by(&workspace, &deeds, journal_mode(), &|| {});
    let reason = outcome.map_err(|error| (error.failure().reason, error.to_string()));
    assert!(!matches!(reason, Err((Reason::NeedsOperator, _))), "{reason:?}");
}

/// What was never durable of a batch becomes so by a later one of the same beginning.
#[test]
fn a_batch_that_a_power_cut_took_does_not_come_back() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let long: &str = "a line of a file\n".repeat(200).leak();
    die(
        place.path(),
        false,
        syncs,
        &[Deed::Write("a.txt", long, None), Deed::Write("run.sh", "later\n", None)],
        journal_mode(),
    );
    let ahead = state(place.path()).join("journal/ahead");
    let written = std::fs::read(&ahead).unwrap();
    // The first cut takes one block of the batch.
    let mut cut = written.clone();
    cut[512..1024].fill(0);
    std::fs::write(&ahead, &cut).unwrap();
    drop(booted(place.path()));
    assert_eq!(std::fs::read(ws.join("run.sh")).unwrap(), b"plain\n", "the batch is wholly old");
    // Of another batch with the same first content just that block reaches the disk before the next cut.
    die(place.path(), true, syncs, &[Deed::Write("a.txt", long, None)], journal_mode());
    let now = std::fs::read(&ahead).unwrap();
    cut[512..1024].copy_from_slice(&now[512..1024]);
    cut[..START].copy_from_slice(&now[..START]);
    std::fs::write(&ahead, &cut).unwrap();
    drop(booted(place.path()));
    assert_eq!(std::fs::read(ws.join("run.sh")).unwrap(), b"plain\n", "it stays old");
}

/// A torn record beside one that has to be carried on.
#[test]
fn a_torn_record_costs_another_batch_nothing() {
    let place = tempfile::tempdir().unwrap();
    let workspace = laid_out(place.path());
    let receipt = moves::receipt();
    let flushed = Terms { receipt: Some(&receipt), ..Terms::default() };
    write(&workspace, "a.txt", "two\n", flushed);
    write(&workspace, "run.sh", "later\n", journal_mode());
    drop(workspace);
    let state = state(place.path());
    bring_back(place.path());
    std::fs::write(state.join("journal/staging"), "").unwrap();
    let workspace = booted(place.path());
    let content = outbox::content(&workspace, BATCH.parse().unwrap(), sha256(b"two\n")).unwrap();
    assert_eq!(content.as_deref(), Some(&b"two\n"[..]));
}

/// An entry of a batch that is not carried out.
#[test]
fn a_batch_that_was_never_carried_out_is_not_listed() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    let (mine, _) = faults::open(place.path(), Fault::None).unwrap();
    write(&mine, "run.sh", "later\n", journal_mode());
    die(
        place.path(),
        false,
        |kind, from, _| kind == "rename" && from == "staging",
        &[Deed::Write("a.txt", "two\n", None)],
        journal_mode(),
    );
    let entries = history::list(&mine).unwrap();
    let found: Vec<_> = entries.iter().flat_map(|entry| &entry.files).map(|file| file.path.as_str()).collect();
    assert_eq!(found, ["run.sh"]);
}

/// Batches without files are all alike.
#[test]
fn a_batch_without_files_is_not_taken_for_another() {
    let place = tempfile::tempdir().unwrap();
    let workspace = laid_out(place.path());
    let one = moves::receipt();
    let other = Receipt { batch: "0190b3a0-0000-7000-8000-000000000002".parse().unwrap(), bytes: b"done".to_vec() };
    transaction::commit(&workspace, &[], Terms { receipt: Some(&one), ..Terms::default() }).unwrap();
    transaction::commit(&workspace, &[], Terms { receipt: Some(&other), ..journal_mode() }).unwrap();
    drop(workspace);
    // The name under which the first one's record was flushed comes back.
    bring_back(place.path());
    assert_eq!(outbox::waiting(&booted(place.path())).unwrap().len(), 2);
}

/// A batch that was being taken back is not one that was never published.
#[test]
fn what_was_kept_while_a_batch_was_taken_back_is_kept_after_a_power_cut() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let record = Arc::new(std::sync::Mutex::new(Vec::new()));
    let watcher: Watcher = Arc::new({
        let (ws, place, record) = (ws.clone(), place.path().to_owned(), Arc::clone(&record));
        move |kind, from, to| match (kind, from, to) {
            ("rename", "gone.txt", _) => {
                std::fs::write(ws.join("save"), "mine\n").unwrap();
                std::fs::rename(ws.join("save"), ws.join("dir/gone.txt")).unwrap();
            }
            ("rename_new", _, "gone.txt") => std::fs::write(ws.join("dir/gone.txt"), "mine too\n").unwrap(),
            ("rename", "committed", "undoing") => {
                *record.lock().unwrap() = std::fs::read(state(&place).join("journal/committed")).unwrap();
            }
            _ => {}
        }
    });
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::watched(Fault::None, watcher)).unwrap();
    moves::commit_by(&workspace, &[Deed::Remove("dir/gone.txt")], journal_mode(), &|| {}).unwrap_err();
    write(&workspace, "a.txt", "two\n", journal_mode());
    drop(workspace);
    // The cut: neither that the record ended nor what was cleared away after `undoing` was flushed has reached the disk.
    let record = record.lock().unwrap().clone();
    let text = String::from_utf8(record.clone()).unwrap();
    let name = text.split("\"staged\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let kept = tree::read(&ws).into_keys().find(|name| name.contains(".kept-")).unwrap();
    std::fs::rename(ws.join(kept), ws.join("dir").join(name)).unwrap();
    std::fs::write(state(place.path()).join("journal/undoing"), &record).unwrap();
    drop(booted(place.path()));
    assert!(staged(place.path()).is_empty(), "{:?}", staged(place.path()));
}

/// A flush that failed leaves a gap in what is ahead, and everything after it is not found.
#[test]
fn a_failed_flush_costs_no_later_batch_its_healing() {
    let long: &str = "a line of a file\n".repeat(200).leak();
    for at in 1.. {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let disk = FaultyDisk::new(Fault::FailAt(at, Errno::IO));
        let syncs = Arc::clone(&disk.syncs);
        let Ok((workspace, _)) = faults::open_on(place.path(), disk) else { continue };
        let first = moves::commit_by(&workspace, &[Deed::Write("a.txt", long, None)], journal_mode(), &|| {});
        assert!(at < 200, "the first flush can be made to fail");
        // Before that nothing is flushed.
        if first.is_ok() || syncs.load(Ordering::SeqCst) == 0 {
            continue;
        }
        let ahead = state(place.path()).join("journal/ahead");
        let failed = std::fs::read(&ahead).unwrap();
        write(&workspace, "new.sh", "new\n", journal_mode());
        drop(workspace);
        // What failed to be flushed and was not written again is not on the disk; nor are the bytes of the new file.
        let mut bytes = std::fs::read(&ahead).unwrap();
        if bytes[512..1024] == failed[512..1024] {
            bytes[512..1024].fill(0);
        }
        std::fs::write(&ahead, &bytes).unwrap();
        let file = std::fs::File::options().write(true).open(ws.join("new.sh")).unwrap();
        let found = file.metadata().unwrap().modified().unwrap();
        file.set_len(0).unwrap();
        file.set_modified(found).unwrap();
        drop(file);
        drop(booted(place.path()));
        assert_eq!(std::fs::read(ws.join("new.sh")).unwrap(), b"new\n");
        return;
    }
}
