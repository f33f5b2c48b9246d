//! What a commit makes durable, and what becomes of one whose end a power cut has taken back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aptix_model::reason::Reason;

use crate::faults::{self, Fault, FaultyDisk, Receipt};
use crate::looks::looks;
use crate::skip::skip;
use crate::tree;

/// The journal of the one root there is.
fn journal(place: &Path) -> PathBuf {
    let root = std::fs::read_dir(place.join("state/aptix/roots")).unwrap().next().unwrap().unwrap().path();
    root.join("journal")
}

/// Applies a batch of two edits and a new file, and restores its record as it was before its end.
fn apply_and_bring_back(place: &Path) {
    faults::lay_out(place);
    let kept = place.join("kept");
    let copy = kept.clone();
    let workspace = faults::open_watched(place, Fault::None, move |ws, kind, from, to| {
        if (kind, from, to) == ("rename", "committed", "finishing") {
            std::fs::copy(journal(ws.parent().unwrap()).join("committed"), &copy).unwrap();
        }
    });
    faults::commit(&workspace, &faults::batch(2, 1), Receipt::None).unwrap();
    std::fs::rename(kept, journal(place).join("committed")).unwrap();
}

#[test]
fn a_record_that_a_power_cut_restores_is_ended_again_whatever_was_written_since() {
    let place = tempfile::tempdir().unwrap();
    apply_and_bring_back(place.path());
    let ws = place.path().join("ws");
    std::fs::write(ws.join("a.txt"), "mine\n").unwrap();
    std::fs::remove_file(ws.join("new.txt")).unwrap();
    let found = tree::read(&ws);
    // Within one start of the system nothing that was done is undone: then this is no commit's end.
    let refused = faults::open(place.path(), Fault::None).unwrap_err().failure();
    assert_eq!(refused.reason, Reason::NeedsOperator, "{refused}");
    tree::assert_same(&tree::read(&ws), &found, "same boot");
    faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
    tree::assert_same(&tree::read(&ws), &found, "after a boot");
    crate::scenarios::assert_no_debris(place.path(), "after a boot");
}

#[test]
fn a_record_cut_short_before_its_commit_point_counts_for_nothing() {
    let place = tempfile::tempdir().unwrap();
    apply_and_bring_back(place.path());
    let journal = journal(place.path());
    let whole = std::fs::read(journal.join("committed")).unwrap();
    std::fs::remove_file(journal.join("committed")).unwrap();
    let found = tree::read(&place.path().join("ws"));
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(journal.join("staging"), &whole[..length]).unwrap();
        faults::open(place.path(), Fault::None).unwrap();
        tree::assert_same(&tree::read(&place.path().join("ws")), &found, "cut short");
        crate::scenarios::assert_no_debris(place.path(), "cut short");
    }
}

#[test]
fn a_commit_flushes_each_new_file_its_record_and_each_directory_once() {
    for (edited, created, directories) in [(1, 0, 1), (0, 1, 1), (2, 0, 2), (2, 1, 2)] {
        let (place, _) = faults::laid_out();
        let disk = FaultyDisk::new(Fault::None);
        let syncs = Arc::clone(&disk.syncs);
        let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
        faults::commit(&workspace, &faults::batch(edited, created), Receipt::None).unwrap();
        // The record takes two: one for its bytes, one for its name.
        let expected = edited + created + 2 + directories;
        assert_eq!(syncs.load(Ordering::SeqCst), expected, "{edited} edited, {created} created");
    }
}

/// A batch of one file.
const DOCUMENT: &str = r#"{"path":"a.txt","content":"TEXT\n","overwrite":true}"#;

/// How many system calls a commit of one file adds to a dry run; `None` where they cannot be counted.
fn cost_of_a_commit() -> Option<usize> {
    let (place, _) = faults::laid_out();
    let count = |arguments: &[&str], text| looks(place.path(), arguments, &DOCUMENT.replace("TEXT", text));
    // The first makes what is there from then on.
    count(&["apply"], "1")?;
    let looked = count(&["apply", "--dry-run"], "2")?;
    Some(count(&["apply"], "3")?.abs_diff(looked))
}

#[test]
fn a_commit_of_one_file_makes_few_system_calls() {
    let mut costs = Vec::new();
    // On a busy machine some more are made by chance, but not each time.
    for _ in 0..8 {
        let Some(cost) = cost_of_a_commit() else {
            skip("there is no strace, or it may not trace");
            return;
        };
        // Each file of our own that is opened once more costs three or four, one that is made and removed ten.
        if cost <= 142 {
            return;
        }
        costs.push(cost);
    }
    panic!("{costs:?} more for a commit than without one");
}

#[test]
fn a_power_cut_before_the_commit_point_leaves_nothing_behind() {
    let (mut staged, mut cut) = (0, 0);
    for last in 0.. {
        for with_next in [false, true] {
            let what = format!("stopped after {last}, everything of ours lost: {with_next}");
            let (place, ws) = faults::laid_out();
            // Not ours, though it looks like it.
            std::fs::write(ws.join("dir/.0190b3a000007000800000000000000f.aptix-tmp"), "mine\n").unwrap();
            let before = tree::read(&ws);
            let (workspace, _) = faults::open(place.path(), Fault::StopAfter(last)).unwrap();
            let outcome = faults::commit(&workspace, &faults::batch(2, 2), Receipt::Kept);
            drop(workspace);
            let journal = journal(place.path());
            if journal.join("committed").exists() || outcome.is_ok() {
                cut += 1;
                break;
            }
            staged += usize::from(tree::read(&ws).len() > before.len());
            // Names are there, and what they had held is lost.
            for part in ["staging", "next"].map(|name| journal.join(name)) {
                if part.exists() && (with_next || part.ends_with("staging")) {
                    std::fs::write(&part, "").unwrap();
                }
            }
            faults::open_on(place.path(), FaultyDisk::new(Fault::None).booted()).unwrap();
            let mut now = tree::read(&ws);
            now.retain(|name, entry| before.contains_key(name) || !matches!(entry, tree::Entry::Dir { .. }));
            tree::assert_same(&now, &before, &what);
            crate::scenarios::assert_no_debris(place.path(), &what);
        }
        if cut > 0 {
            break;
        }
    }
    assert!(staged > 10, "{staged}");
}
