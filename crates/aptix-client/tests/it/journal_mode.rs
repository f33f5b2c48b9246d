//! Mode `journal`: one flush for any number of files; what a power cut takes is healed, what somebody wrote since stays.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use aptix_client::workspace::Workspace;
use aptix_client::workspace::transaction::{CommitError, Durability, Notice, Terms};
use aptix_client::workspace::{history, outbox};
use aptix_engine::digest::sha256;
use aptix_model::reason::Reason;
use rustix::fs::{Stat, Timespec, Timestamps};

use crate::faults::{self, Fault, FaultyDisk, Watcher};
use crate::moves::{self, DEEDS, Deed};
use crate::tree::{self, Entry, Tree};

/// Commits everything that can be done to files, with a receipt.
fn commit(workspace: &Workspace, deeds: &[Deed]) -> Result<Vec<Notice>, CommitError> {
    let receipt = moves::receipt();
    let terms = Terms { receipt: Some(&receipt), durability: Durability::Journal, ..Terms::default() };
    moves::commit_by(workspace, deeds, terms, &|| {})
}

/// The tree before and after, and how many operations it takes.
fn reference() -> (Tree, Tree, usize) {
    let place = tempfile::tempdir().unwrap();
    let before = tree::read(&moves::lay_out(place.path()));
    let (workspace, count) = faults::open(place.path(), Fault::None).unwrap();
    commit(&workspace, DEEDS).unwrap();
    (before, tree::read(&place.path().join("ws")), count.load(Ordering::SeqCst))
}

fn inodes(ws: &Path) -> BTreeSet<u64> {
    files(ws).iter().map(|path| path.metadata().unwrap().ino()).collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = tree::read(dir).into_iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
    entries.map(|(name, _)| dir.join(name)).collect()
}

/// What a power cut takes at most: the bytes of every file that was never flushed, and the journal's records with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    Contents,
    ContentsAndRecords,
}

/// Cuts a file to a length, or makes it longer by zeros.
fn set_length(path: &Path, length: u64) {
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty()).unwrap();
    let found = rustix::fs::fstat(&file).unwrap();
    rustix::fs::ftruncate(&file, length).unwrap();
    set_written(file, &found);
}

/// Lets a file say that nobody has written it since.
fn set_written(file: impl AsFd, found: &Stat) {
    let at = |seconds, nanoseconds: u64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds.try_into().unwrap() };
    let times = Timestamps {
        last_access: at(found.st_atime, found.st_atime_nsec),
        last_modification: at(found.st_mtime, found.st_mtime_nsec),
    };
    rustix::fs::futimens(file, &times).unwrap();
}

fn cut_power(place: &Path, old: &BTreeSet<u64>, lost: Lost) {
    for (number, path) in files(&place.join("ws")).into_iter().enumerate() {
        if !old.contains(&path.metadata().unwrap().ino()) {
            let length = path.metadata().unwrap().len();
            set_length(&path, 0);
            if number % 2 == 0 {
                set_length(&path, length);
            }
        }
    }
    for path in files(&place.join("state")) {
        let name = path.to_str().unwrap();
        if lost == Lost::ContentsAndRecords && !name.ends_with("/ahead") && !name.ends_with("lock") {
            set_length(&path, 0);
        }
    }
}

/// Whoever opens the workspace after the power cut finds it whole; tells whether it is new.
#[track_caller]
fn healed(place: &Path, before: &Tree, after: &Tree, what: &str) -> bool {
    let disk = FaultyDisk::new(Fault::None).booted();
    let (workspace, _) = faults::open_on(place, disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut now = tree::read(&place.join("ws"));
    let is_new = now == *after;
    if !is_new {
        // Whose the empty directories are of a batch whose record is lost, nobody knows.
        now.retain(|name, entry| before.contains_key(name) || !matches!(entry, Entry::Dir { .. }));
        tree::assert_same(&now, before, what);
    }
    if is_new {
        let pending = outbox::waiting(&workspace).unwrap();
        assert_eq!(pending.len(), 1, "{what}");
        let found = outbox::find(&workspace, pending[0]).unwrap().unwrap();
        assert_eq!(found.receipt, b"done", "{what}");
        let content = outbox::content(&workspace, pending[0], sha256(b"new\n")).unwrap();
        assert_eq!(content.as_deref(), Some(&b"new\n"[..]), "{what}");
        outbox::acknowledge(&workspace, pending[0]).unwrap();
    }
    crate::scenarios::assert_no_debris(place, what);
    is_new
}

#[test]
fn any_number_of_files_takes_one_flush() {
    let place = tempfile::tempdir().unwrap();
    moves::lay_out(place.path());
    let disk = FaultyDisk::new(Fault::None);
    let syncs = Arc::clone(&disk.syncs);
    let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
    commit(&workspace, DEEDS).unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst), 1);
    // What was published is flushed when there is time; then nothing is left to be healed.
    workspace.settle().unwrap();
    let flushed = syncs.load(Ordering::SeqCst);
    assert!(flushed > 1);
    workspace.settle().unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst), flushed);
}

#[test]
fn bytes_of_an_earlier_round_are_not_read_as_those_of_a_later_one() {
    for batches in 1..4 {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        for number in 0..batches {
            commit(&workspace, &[Deed::Write("a.txt", ["ant\n", "bee\n", "cat\n"][number], None)]).unwrap();
        }
        workspace.settle().unwrap();
        // A batch of the same lengths takes the first one's place; those after it are still there.
        commit(&workspace, &[Deed::Write("a.txt", "ten\n", None)]).unwrap();
        drop(workspace);
        cut_power(place.path(), &BTreeSet::new(), Lost::ContentsAndRecords);
        faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
        assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"ten\n", "{batches} batches before");
    }
}

#[test]
fn stopping_after_any_operation_leaves_all_old_or_all_new() {
    let (before, after, operations) = reference();
    let mut ends = [0, 0];
    for last in 0..=operations {
        for again in [None, Some(6)] {
            let what = format!("stopped after {last} of {operations}, recovery after {again:?}");
            let place = tempfile::tempdir().unwrap();
            moves::lay_out(place.path());
            let (workspace, _) = faults::open(place.path(), Fault::StopAfter(last)).unwrap();
            let outcome = commit(&workspace, DEEDS);
            drop(workspace);
            if let Some(again) = again {
                drop(faults::open(place.path(), Fault::StopAfter(again)));
            }
            let is_new = moves::recovered(place.path(), &before, &after, &what);
            ends[usize::from(is_new)] += 1;
            assert!(is_new || outcome.is_err(), "{what}: it was said to be applied");
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "both ends are met: {ends:?}");
}

#[test]
fn a_power_cut_after_any_operation_leaves_all_old_or_all_new() {
    let (before, after, operations) = reference();
    let (mut ends, mut torn) = ([0, 0], 0);
    for last in 0..=operations {
        for (lost, again) in [
            (Lost::Contents, None),
            (Lost::ContentsAndRecords, None),
            (Lost::ContentsAndRecords, Some(3)),
            (Lost::ContentsAndRecords, Some(20)),
        ] {
            // Healing that is stopped is the same wherever the batch was.
            if again.is_some() && last % 4 != 0 {
                continue;
            }
            let what = format!("stopped after {last} of {operations}, {lost:?} lost, healing stopped after {again:?}");
            let place = tempfile::tempdir().unwrap();
            let old = inodes(&moves::lay_out(place.path()));
            let (workspace, _) = faults::open(place.path(), Fault::StopAfter(last)).unwrap();
            let outcome = commit(&workspace, DEEDS);
            drop(workspace);
            cut_power(place.path(), &old, lost);
            let found = tree::read(&place.path().join("ws"));
            torn += usize::from(found != before && found != after);
            if let Some(again) = again {
                drop(faults::open_on(place.path(), FaultyDisk::new(Fault::StopAfter(again)).booted()));
            }
            let is_new = healed(place.path(), &before, &after, &what);
            ends[usize::from(is_new)] += 1;
            assert!(is_new || outcome.is_err(), "{what}: it was said to be applied");
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0 && torn > 0, "both ends are met: {ends:?}, {torn} torn");
}

#[test]
fn a_power_cut_while_a_batch_is_taken_back_leaves_it_old() {
    let (before, after, operations) = reference();
    for last in 0..=2 * operations {
        let what = format!("stopped after {last}");
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let mut old = inodes(&ws);
        let watcher: Watcher = Arc::new({
            let ws = ws.clone();
            // The last but one of the new names is taken just before it is published.
            move |kind, _, to| {
                if (kind, to) == ("rename_new", "new.sh") {
                    std::fs::write(ws.join("new.sh"), "mine\n").unwrap();
                }
            }
        });
        let (workspace, _) =
            faults::open_on(place.path(), FaultyDisk::watched(Fault::StopAfter(last), watcher)).unwrap();
        let outcome = commit(&workspace, DEEDS);
        drop(workspace);
        let error = outcome.unwrap_err();
        let mine = ws.join("new.sh").metadata().map(|found| found.ino()).ok();
        let is_mine = std::fs::read(ws.join("new.sh")).is_ok_and(|bytes| bytes == b"mine\n");
        old.extend(mine.filter(|_| is_mine));
        cut_power(place.path(), &old, Lost::Contents);
        let mut expected = before.clone();
        if is_mine {
            expected.insert("new.sh".to_owned(), tree::read(&ws)["new.sh"].clone());
        }
        let mut almost = after.clone();
        almost.insert("new.sh".to_owned(), expected.get("new.sh").cloned().unwrap_or(Entry::Dir { mode: 0 }));
        // Until it is said, durably, that the batch is taken back it is carried on, but for what somebody else has made.
        let disk = FaultyDisk::new(Fault::None).booted();
        faults::open_on(place.path(), disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut now = tree::read(&ws);
        let refused = error.failure().reason == Reason::FileExists;
        if now != almost && now != after {
            now.retain(|name, entry| expected.contains_key(name) || !matches!(entry, Entry::Dir { .. }));
            tree::assert_same(&now, &expected, &what);
        } else {
            assert!(!refused, "{what}: it was said to be refused");
        }
    }
}

#[test]
fn what_somebody_did_between_the_batch_and_the_power_cut_stands() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let old = inodes(&ws);
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    commit(&workspace, DEEDS).unwrap();
    drop(workspace);
    cut_power(place.path(), &old, Lost::ContentsAndRecords);
    // One is written, one removed, one put back as it was before the batch.
    std::fs::write(ws.join("a.txt"), "mine\n").unwrap();
    let removed = ws.metadata().map(|found| (found.ctime(), found.ctime_nsec())).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while ws.metadata().map(|found| (found.ctime(), found.ctime_nsec())).unwrap() == removed {
        std::fs::write(ws.join("save"), "").unwrap();
        std::fs::remove_file(ws.join("save")).unwrap();
        assert!(Instant::now() < deadline, "directories are told when they change");
    }
    std::fs::remove_file(ws.join("new.sh")).unwrap();
    std::fs::write(ws.join("dir/gone.txt"), "gone\n").unwrap();
    faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"mine\n");
    assert!(!ws.join("new.sh").exists());
    assert_eq!(std::fs::read(ws.join("dir/gone.txt")).unwrap(), b"gone\n");
    // What nobody has touched is healed all the same.
    assert_eq!(std::fs::read(ws.join("deep/er/moved.sh")).unwrap(), b"#!/bin/sh\nexit\n");
    assert_eq!(std::fs::read(ws.join("run.sh")).unwrap(), b"plain\n");
}

#[test]
fn a_file_that_somebody_emptied_after_the_batch_stays_empty() {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    commit(&workspace, DEEDS).unwrap();
    drop(workspace);
    let written = || ws.join("a.txt").metadata().map(|found| (found.mtime(), found.mtime_nsec())).unwrap();
    let (before, deadline) = (written(), Instant::now() + Duration::from_secs(10));
    while written() == before {
        rustix::fs::ftruncate(std::fs::File::options().append(true).open(ws.join("a.txt")).unwrap(), 0).unwrap();
        assert!(Instant::now() < deadline, "files are told when they are written");
    }
    faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"");
}

#[test]
fn a_file_that_was_flushed_in_parts_is_healed_and_one_of_other_bytes_is_not() {
    let planned: &str = (0..400).map(|line| format!("line {line} of the file\n")).collect::<String>().leak();
    let zeros = |from: usize, to: usize| {
        let mut bytes = planned.as_bytes().to_vec();
        bytes[from..to].fill(0);
        bytes
    };
    let other = [&planned.as_bytes()[..700], b"mine", &planned.as_bytes()[704..]].concat();
    let cases = [
        ("the first block is missing", zeros(0, 512), true),
        ("some blocks are missing", zeros(1024, 4096), true),
        ("the last ones are missing", zeros(4096, planned.len()), true),
        ("the end is missing", planned.as_bytes()[..4096].to_vec(), true),
        ("half a block is missing", zeros(512, 800), false),
        ("a block is another", other, false),
    ];
    for (what, left, heals) in cases {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        commit(&workspace, &[Deed::Write("a.txt", planned, None)]).unwrap();
        drop(workspace);
        let file = std::fs::File::options().write(true).open(ws.join("a.txt")).unwrap();
        let found = rustix::fs::fstat(&file).unwrap();
        rustix::fs::ftruncate(&file, 0).unwrap();
        assert_eq!(rustix::io::pwrite(&file, &left, 0).unwrap(), left.len());
        set_written(&file, &found);
        faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
        let expected = if heals { planned.as_bytes() } else { &left };
        assert!(std::fs::read(ws.join("a.txt")).unwrap() == expected, "{what}");
    }
}

#[test]
fn batches_on_top_of_each_other_are_healed_to_the_last_however_often_healing_is_cut_short() {
    for again in (0..60).step_by(4) {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let old = inodes(&ws);
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        commit(&workspace, DEEDS).unwrap();
        commit(&workspace, &[Deed::Write("new.sh", "newer\n", None), Deed::Write("a.txt", "three\n", None)]).unwrap();
        commit(&workspace, &[Deed::Move("new.sh", "dir/newest.sh", "newest\n")]).unwrap();
        let expected = tree::read(&ws);
        drop(workspace);
        cut_power(place.path(), &old, Lost::ContentsAndRecords);
        assert_ne!(tree::read(&ws), expected);
        for last in [again, again / 2] {
            drop(faults::open_on(place.path(), FaultyDisk::new(Fault::StopAfter(last)).booted()));
        }
        faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
        tree::assert_same(&tree::read(&ws), &expected, &format!("healed, after stopping at {again}"));
    }
}

#[test]
fn a_batch_that_dies_before_its_commit_point_costs_no_later_one_its_healing() {
    let (.., operations) = reference();
    for more in 0.. {
        let what = format!("died after {more} more operations");
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::StopAfter(operations + more)).unwrap();
        commit(&workspace, DEEDS).unwrap();
        let died = commit(&workspace, &[Deed::Write("new.sh", "lost\n", None)]).is_err();
        drop(workspace);
        if !died {
            break;
        }
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        // What was published until now has been flushed.
        let old = inodes(&ws);
        commit(&workspace, &[Deed::Write("new.sh", "newer\n", None), Deed::Write("a.txt", "three\n", None)]).unwrap();
        let expected = tree::read(&ws);
        drop(workspace);
        cut_power(place.path(), &old, Lost::ContentsAndRecords);
        assert_ne!(tree::read(&ws), expected, "{what}");
        faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
        tree::assert_same(&tree::read(&ws), &expected, &what);
    }
}

#[test]
fn what_was_being_staged_when_the_power_went_is_cleared_away_beside_what_is_healed() {
    let (.., operations) = reference();
    // The name of the record may be the one that an earlier record of the same file had, and its bytes may be lost.
    for (name, lost) in [
        ("staging", Lost::ContentsAndRecords),
        ("committed", Lost::ContentsAndRecords),
        ("committed", Lost::Contents),
        ("finishing", Lost::Contents),
    ] {
        let mut staged = 0;
        for more in 0.. {
            let what = format!("died after {more} more operations, with a record named {name}");
            let place = tempfile::tempdir().unwrap();
            let ws = moves::lay_out(place.path());
            let old = inodes(&ws);
            let (workspace, _) = faults::open(place.path(), Fault::StopAfter(operations + more)).unwrap();
            commit(&workspace, DEEDS).unwrap();
            let expected = tree::read(&ws);
            let terms = Terms { durability: Durability::Journal, ..Terms::default() };
            let died = moves::commit_by(&workspace, &[Deed::Write("new.sh", "newer\n", None)], terms, &|| {}).is_err();
            let journal = workspace.roots()[0].state().path().join("journal");
            drop(workspace);
            let now = tree::read(&ws);
            if !died || now["new.sh"] != expected["new.sh"] {
                break;
            }
            staged += now.len() - expected.len();
            if journal.join("staging").exists() {
                std::fs::rename(journal.join("staging"), journal.join(name)).unwrap();
            }
            cut_power(place.path(), &old, lost);
            faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
            let mut now = tree::read(&ws);
            // The second batch is carried out from the moment at which it is written ahead, whole.
            if matches!(&now["new.sh"], Entry::File { bytes, .. } if bytes == b"newer\n") {
                now.insert("new.sh".to_owned(), expected["new.sh"].clone());
            }
            tree::assert_same(&now, &expected, &what);
            let state = tree::read(&place.path().join("state")).into_keys();
            let left: Vec<_> =
                state.filter(|name| name.ends_with(".draft") || name.ends_with("/journal/staging")).collect();
            assert!(left.is_empty(), "{what}: {left:?}");
        }
        assert!(staged > 1, "{name}: {staged}");
    }
}

#[test]
fn what_undoes_a_batch_outlives_a_power_cut_with_it() {
    for settled in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let (old, before) = (inodes(&ws), tree::read(&ws));
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let terms = Terms { durability: Durability::Journal, ..Terms::default() };
        moves::commit_by(&workspace, DEEDS, terms, &|| {}).unwrap();
        let after = tree::read(&ws);
        // While it is only ahead, it is found all the same.
        if settled {
            assert_eq!(history::list(&workspace).unwrap().len(), 1);
        }
        drop(workspace);
        if !settled {
            cut_power(place.path(), &old, Lost::ContentsAndRecords);
        }
        let (workspace, _) = faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
        tree::assert_same(&tree::read(&ws), &after, "healed");
        crate::undo::take_back(&workspace, None).unwrap();
        tree::assert_same(&tree::read(&ws), &before, "undone");
    }
}
