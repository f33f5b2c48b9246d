//! Power cuts that leave names and contents of different times.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_client::workspace::keep::history::entries;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_client::workspace::transaction::{self, CommitOptions, Receipt};
use aptix_engine::digest::sha256;

use crate::faults::{self, BATCH, Fault, FaultyDisk, Watcher};
use crate::moves::{self, Edit};
use crate::tree;

fn state(place: &Path) -> PathBuf {
    let roots = place.join("state/aptix/roots");
    std::fs::read_dir(roots).unwrap().next().unwrap().unwrap().path()
}

/// A workspace that is laid out and open.
fn laid_out(place: &Path) -> Workspace {
    moves::lay_out(place);
    faults::open_on(place, FaultyDisk::watched(Fault::None, keeper(place))).unwrap().0
}

fn write(workspace: &Workspace, path: &'static str, text: &'static str, terms: CommitOptions<'_>) {
    moves::commit_by(workspace, &[Edit::Write(path, text, None)], terms, &|| {}).unwrap();
}

/// Keeps the record of each batch as it was when its name was flushed.
fn keeper(place: &Path) -> Watcher {
    let place = place.to_owned();
    Arc::new(move |kind, from, to| {
        if (kind, from, to) == ("rename", "committed", "finishing") {
            let kept = place.join(format!("kept-{}", kept(&place)));
            std::fs::copy(state(&place).join("journal/committed"), kept).unwrap();
        }
    })
}

fn kept(place: &Path) -> usize {
    (0..).find(|number| !place.join(format!("kept-{number}")).exists()).unwrap()
}

/// The record of the first batch comes back by the name under which it was flushed.
fn bring_back(place: &Path) {
    std::fs::rename(place.join("kept-0"), state(place).join("journal/committed")).unwrap();
}

/// Commits, and dies just before an operation.
fn die(place: &Path, at: fn(&str, &str, &str) -> bool, edits: &[Edit], terms: CommitOptions<'_>) {
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
    let (workspace, _) = faults::open_on(place, disk).unwrap();
    armed.store(true, Ordering::SeqCst);
    let died = catch_unwind(AssertUnwindSafe(|| moves::commit_by(&workspace, edits, terms, &|| {}))).is_err();
    assert!(died);
    armed.store(false, Ordering::SeqCst);
}

fn publishes(kind: &str, _: &str, _: &str) -> bool {
    matches!(kind, "exchange" | "rename_new")
}

fn booted(place: &Path) -> Workspace {
    faults::open_on(place, FaultyDisk::new(Fault::None).booted()).unwrap_or_else(|error| panic!("{error}")).0
}

fn staged(place: &Path) -> Vec<String> {
    tree::read(&place.join("ws")).into_keys().filter(|name| name.contains(".aptix-tmp")).collect()
}

/// A batch that recovery carried on, and whose record comes back by its old name.
#[test]
fn a_batch_that_recovery_carried_on_keeps_its_receipt_and_its_history() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let receipt = moves::receipt();
    die(
        place.path(),
        publishes,
        &[Edit::Write("a.txt", "two\n", None)],
        CommitOptions { receipt: Some(&receipt), ..CommitOptions::default() },
    );
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::watched(Fault::None, keeper(place.path()))).unwrap();
    assert_eq!(outbox::waiting(&workspace).unwrap().len(), 1);
    drop(workspace);
    // The cut: that the record is gone has not reached the disk.
    bring_back(place.path());
    let workspace = booted(place.path());
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"two\n", "the batch is wholly new");
    let waiting = outbox::waiting(&workspace).unwrap().len();
    let undoable = entries::list(&workspace).unwrap().len();
    assert_eq!((waiting, undoable), (1, 1), "receipts, entries of the history");
}

/// What is not on the receipt is stored before the receipt is read.
#[test]
fn a_record_that_is_damaged_as_its_batch_ends_costs_no_history() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let damager: Watcher = Arc::new({
        let place = place.path().to_owned();
        move |kind, from, to| {
            if (kind, from, to) == ("rename", "committed", "finishing") {
                std::fs::write(state(&place).join("journal/committed"), "damaged").unwrap();
            }
        }
    });
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::watched(Fault::None, damager)).unwrap();
    let receipt = moves::receipt();
    write(&workspace, "a.txt", "two\n", CommitOptions { receipt: Some(&receipt), ..CommitOptions::default() });
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"two\n");
    assert_eq!(entries::list(&workspace).unwrap().len(), 1, "the batch can be undone");
    assert!(state(place.path()).join("journal/finishing").exists(), "the record is kept for the operator");
}

/// Each process reads the history anew.
#[test]
fn a_batch_of_another_process_is_found_to_be_undone() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    let (mine, _) = faults::open(place.path(), Fault::None).unwrap();
    let (theirs, _) = faults::open(place.path(), Fault::None).unwrap();
    write(&theirs, "a.txt", "two\n", CommitOptions::default());
    assert_eq!(entries::list(&mine).unwrap().len(), 1);
}

/// Files that are held while more are published; the limit is a child's alone.
#[test]
fn a_batch_of_more_files_than_descriptors_is_applied_or_refused() {
    const FILES: usize = 200;
    let place = tempfile::tempdir().unwrap();
    let file = |number| place.path().join(format!("ws/d{number:03}/f"));
    let mut document = "*** Begin Patch\n".to_owned();
    for number in 0..FILES {
        std::fs::create_dir_all(file(number).parent().unwrap()).unwrap();
        std::fs::write(file(number), "old\n").unwrap();
        document += &format!("*** Update File: d{number:03}/f\n@@\n-old\n+new\n");
    }
    std::fs::write(place.path().join("document"), document + "*** End Patch\n").unwrap();
    let apply = |open_files: usize| {
        let output = Command::new("prlimit")
            .args([&format!("--nofile={open_files}:{open_files}"), "--", env!("CARGO_BIN_EXE_aptix")])
            .args(["apply", "--json", "--root", "ws=ws", "document"])
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env("XDG_CONFIG_HOME", place.path().join("config"))
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let is_applied = answer["success"] == true;
        let expected = if is_applied { "new\n" } else { "old\n" };
        for number in 0..FILES {
            assert_eq!(std::fs::read_to_string(file(number)).unwrap(), expected, "{number}: {answer}");
        }
        (is_applied, answer)
    };
    let (is_applied, answer) = apply(160);
    assert_ne!(answer["errors"][0]["code"], "NEEDS_OPERATOR", "{answer}");
    if !is_applied {
        let (is_applied, answer) = apply(1024);
        assert!(is_applied, "with enough descriptors: {answer}");
    }
}

/// A torn record beside one that has to be carried on.
#[test]
fn a_torn_record_costs_another_batch_nothing() {
    let place = tempfile::tempdir().unwrap();
    let workspace = laid_out(place.path());
    let receipt = moves::receipt();
    let terms = CommitOptions { receipt: Some(&receipt), ..CommitOptions::default() };
    write(&workspace, "a.txt", "two\n", terms);
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
    write(&mine, "run.sh", "later\n", CommitOptions::default());
    die(
        place.path(),
        |kind, from, _| kind == "rename" && from == "staging",
        &[Edit::Write("a.txt", "two\n", None)],
        CommitOptions::default(),
    );
    let entries = entries::list(&mine).unwrap();
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
    transaction::commit(&workspace, &[], CommitOptions { receipt: Some(&one), ..CommitOptions::default() }).unwrap();
    transaction::commit(&workspace, &[], CommitOptions { receipt: Some(&other), ..CommitOptions::default() }).unwrap();
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
    moves::commit_by(&workspace, &[Edit::Remove("dir/gone.txt")], CommitOptions::default(), &|| {}).unwrap_err();
    write(&workspace, "a.txt", "two\n", CommitOptions::default());
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
