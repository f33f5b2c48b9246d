//! Undoing: a batch restores exactly what it changed, keeps later edits, and reports what prevents it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::undo::{Undone, undo};
use aptix_client::workspace::keep::history::entries;
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::keep::history::prune::Retention;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::Origin;
use aptix_model::reason::Reason;
use aptix_model::report::FileStatus;

use crate::faults::{self, Fault, FaultyDisk, Receipt};
use crate::moves::{self, Edit};
use crate::tree;

/// Takes back the batch of this name, or the newest.
pub(crate) fn take_back(workspace: &Workspace, name: Option<&str>) -> Result<Undone, Refusal> {
    take_back_within(workspace, Wanted::new(name, false), Retention::DEFAULT)
}

fn redo(workspace: &Workspace) -> Result<Undone, Refusal> {
    take_back_within(workspace, Wanted::NewestUndo, Retention::DEFAULT)
}

fn take_back_within(workspace: &Workspace, wanted: Wanted<'_>, retention: Retention) -> Result<Undone, Refusal> {
    let mut policy = Policy::unstated(Caller::Shell);
    policy.retention = retention;
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 1 << 20,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    let undone = undo(workspace, wanted, options, &mut |_| Decision::Apply)?;
    aptix_client::undo::acknowledge(workspace).unwrap();
    Ok(undone)
}

#[test]
fn everything_that_a_batch_can_do_is_undone_and_done_again() {
    undone_and_done_again(moves::SWAPS);
    let undone = undone_and_done_again(moves::EDITS);
    let statuses: Vec<_> = undone.report.files.iter().map(|file| file.status).collect();
    let expected = [
        FileStatus::Created,
        FileStatus::Renamed,
        FileStatus::Modified,
        FileStatus::Renamed,
        FileStatus::Deleted,
        FileStatus::Modified,
    ];
    assert_eq!(statuses, expected);
}

/// Takes a batch back and does it again, a few times; what came of the first undo.
fn undone_and_done_again(edits: &[Edit]) -> Undone {
    let place = tempfile::tempdir().unwrap();
    let ws = moves::lay_out(place.path());
    std::fs::set_permissions(ws.join("dir/gone.txt"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = tree::read(&ws);
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    moves::commit(&workspace, edits, None, &|| {}).unwrap();
    let after = tree::read(&ws);
    let undone = take_back(&workspace, None).unwrap();
    tree::assert_same(&tree::read(&ws), &before, "undone");
    for (what, expected) in [("done again", &after), ("undone again", &before), ("and again", &after)] {
        let taken_back = if *expected == before { take_back(&workspace, None) } else { redo(&workspace) };
        taken_back.unwrap();
        tree::assert_same(&tree::read(&ws), expected, what);
    }
    let entries = entries::list(&workspace).unwrap();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries[0].undoes.as_ref(), Some(&entries[1].id.to_string()));
    crate::scenarios::assert_no_debris(place.path(), "undone");
    undone
}

/// Files that swapped their names swap them again, with what came later; one that was moved or replaced since is in the way.
#[test]
fn files_that_swapped_their_names_get_them_back() {
    let swap: &[Edit] = &[Edit::Move("left.txt", "right.sh", "left\n"), Edit::Move("right.sh", "left.txt", "right\n")];
    let read = |ws: &Path| ["left.txt", "right.sh"].map(|name| std::fs::read_to_string(ws.join(name)).ok());
    type Case = (&'static str, fn(&Path), Result<[&'static str; 2], Reason>);
    let cases: &[Case] = &[
        ("untouched", |_| {}, Ok(["left\n", "right\n"])),
        ("edited", |ws| std::fs::write(ws.join("right.sh"), "left\nmore\n").unwrap(), Ok(["left\nmore\n", "right\n"])),
        ("removed", |ws| std::fs::remove_file(ws.join("right.sh")).unwrap(), Err(Reason::FileMissing)),
        (
            "swapped by hand",
            |ws| {
                std::fs::rename(ws.join("left.txt"), ws.join("aside")).unwrap();
                std::fs::rename(ws.join("right.sh"), ws.join("left.txt")).unwrap();
                std::fs::rename(ws.join("aside"), ws.join("right.sh")).unwrap();
            },
            Err(Reason::AlreadyApplied),
        ),
        (
            "one copied over the other",
            |ws| assert_eq!(std::fs::copy(ws.join("right.sh"), ws.join("left.txt")).unwrap(), 5),
            Ok(["left\n", "left\n"]),
        ),
    ];
    for (what, meddle, expected) in cases {
        let place = tempfile::tempdir().unwrap();
        let ws = moves::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        moves::commit(&workspace, swap, None, &|| {}).unwrap();
        meddle(&ws);
        let found = tree::read(&ws);
        let undone = take_back(&workspace, None);
        match expected {
            Ok(texts) => {
                undone.unwrap_or_else(|refusal| panic!("{what}: {refusal:?}"));
                assert_eq!(read(&ws), texts.map(|text| Some(text.to_owned())), "{what}");
                redo(&workspace).unwrap();
                tree::assert_same(&tree::read(&ws), &found, what);
            }
            Err(reason) => {
                assert_eq!(undone.unwrap_err().failures[0].reason, *reason, "{what}");
                tree::assert_same(&tree::read(&ws), &found, what);
            }
        }
        crate::scenarios::assert_no_debris(place.path(), what);
    }
}

#[test]
fn later_edits_elsewhere_stay_and_those_in_the_way_are_reported() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let ws = place.path().join("ws");
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(2, 1), Receipt::None).unwrap();
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "one\ninserted\ntwo\nthree\n");
    // In one file another line is edited, in another the very line, and the new file is edited too.
    std::fs::write(ws.join("a.txt"), "zero\none\ninserted\ntwo\nthree\nfour\n").unwrap();
    std::fs::write(ws.join("dir/b.txt"), "one\ninserted by me\ntwo\nthree\n").unwrap();
    std::fs::write(ws.join("new.txt"), "new\nand more\n").unwrap();
    let found = tree::read(&ws);
    let refusal = take_back(&workspace, None).unwrap_err();
    tree::assert_same(&tree::read(&ws), &found, "nothing is undone by half");
    let reported: Vec<_> = refusal.failures.iter().map(|failure| (failure.path.as_deref(), failure.reason)).collect();
    let expected = [(Some("dir/b.txt"), Reason::ExpectedMismatch), (Some("new.txt"), Reason::ExpectedMismatch)];
    assert_eq!(reported, expected);
    let first = &refusal.failures[0];
    assert!(first.message.contains("\"inserted\"") && first.message.contains("\"inserted by me\""), "{first}");
    assert_eq!((first.line, first.nearest[0].text.as_str()), (Some(2), "inserted by me"));
    let second = &refusal.failures[1];
    assert!(second.message.contains("created the file") && second.nearest[0].text == "new", "{second}");
    // Once they are out of the way, what came later elsewhere stays.
    std::fs::write(ws.join("dir/b.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::remove_file(ws.join("new.txt")).unwrap();
    take_back(&workspace, None).unwrap();
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "zero\none\ntwo\nthree\nfour\n");
    assert_eq!(std::fs::read_to_string(ws.join("dir/b.txt")).unwrap(), "one\ntwo\nthree\n");
    // Nothing is left of the first batch.
    let entries = entries::list(&workspace).unwrap();
    let refusal = take_back(&workspace, Some(&entries[1].id.to_string())).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::AlreadyApplied);
}

#[test]
fn an_older_batch_is_undone_under_a_newer_one() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let ws = place.path().join("ws");
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 0), Receipt::Kept).unwrap();
    faults::commit(&workspace, &faults::batch(0, 1), Receipt::None).unwrap();
    // A batch of a server is known by the name that the server gave it.
    take_back(&workspace, Some(faults::BATCH)).unwrap();
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(ws.join("new.txt").exists());
    let log = crate::command_line::aptix(place.path(), &["log"], "");
    let log = crate::command_line::text(&log.stdout);
    assert!(log.lines().next().unwrap().ends_with(&format!("  (undid {})", faults::BATCH)), "{log}");
    let refusal = take_back(&workspace, Some("unknown")).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::NotFound);
}

#[test]
fn only_so_much_of_the_past_is_kept() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let within = |bytes| Retention { age: Duration::from_secs(60), bytes };
    let (local, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&local, &faults::batch(2, 0), Receipt::None).unwrap();
    for round in 0..9 {
        let wanted = Wanted::new(None, round % 2 == 1);
        take_back_within(&local, wanted, within(2500)).unwrap();
    }
    let size = |place: &Path| {
        let files = tree::read(&place.join("state"));
        let sizes = files.iter().filter(|(name, _)| name.contains("/history/")).map(|(_, entry)| match entry {
            tree::Entry::File { bytes, .. } => bytes.len(),
            _ => 0,
        });
        sizes.sum::<usize>()
    };
    let kept = entries::list(&local).unwrap().len();
    assert!((1..10).contains(&kept), "{kept}");
    assert!(size(place.path()) <= 2500, "{} bytes", size(place.path()));
    // What is too much by itself is not kept.
    take_back_within(&local, Wanted::NewestUndo, within(20)).unwrap();
    let refusal = take_back(&local, None).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::NotFound);
}

#[test]
fn a_past_that_is_damaged_is_never_brought_back() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::new(Fault::None)).unwrap();
    faults::commit(&workspace, &faults::batch(2, 0), Receipt::None).unwrap();
    let name = entries::list(&workspace).unwrap()[0].id.to_string();
    let roots = place.path().join("state/aptix/roots");
    let root = std::fs::read_dir(roots).unwrap().next().unwrap().unwrap().path();
    let entry = root.join("history").join(&name);
    let whole = std::fs::read(&entry).unwrap();
    let found = tree::read(&place.path().join("ws"));
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&entry, &flipped).unwrap();
        let refusal = take_back(&workspace, None).unwrap_err();
        assert_eq!(refusal.failures[0].reason, Reason::NotFound, "byte {at}: {}", refusal.failures[0]);
        std::fs::write(&entry, &whole[..at]).unwrap();
        take_back(&workspace, None).unwrap_err();
    }
    tree::assert_same(&tree::read(&place.path().join("ws")), &found, "damaged");
    std::fs::write(&entry, &whole).unwrap();
    take_back(&workspace, None).unwrap();
}

#[test]
fn directories_that_a_batch_made_are_removed_with_it_unless_in_use() {
    for (used, left) in [
        (None, &[][..]),
        (Some("deep/mine"), &["deep", "deep/mine"]),
        (Some("deep/er/mine"), &["deep", "deep/er", "deep/er/mine"]),
    ] {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let ws = place.path().join("ws");
        let before = tree::read(&ws);
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        faults::commit(&workspace, &faults::batch(1, 2), Receipt::None).unwrap();
        if let Some(used) = used {
            std::fs::write(ws.join(used), "mine").unwrap();
        }
        take_back(&workspace, None).unwrap();
        let now = tree::read(&ws);
        let found: Vec<_> = now.keys().filter(|name| !before.contains_key(*name)).collect();
        assert_eq!(found, left, "{used:?}");
    }
}

#[test]
fn what_is_too_old_is_forgotten_by_whoever_runs_for_long() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let disk = FaultyDisk::new(Fault::None);
    let days = Arc::clone(&disk.days);
    let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
    faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
    let kept_after = |passed| {
        days.store(passed, Ordering::SeqCst);
        workspace.maintain(|| Some(Retention::DEFAULT)).unwrap();
        entries::list(&workspace).unwrap().len()
    };
    assert_eq!([29, 31].map(kept_after), [1, 0]);
}

#[test]
fn nothing_is_undone_in_a_root_that_was_removed() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap();
    std::fs::remove_dir_all(place.path().join("ws")).unwrap();
    let refusal = take_back(&workspace, None).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::NeedsOperator, "{}", refusal.failures[0]);
}
