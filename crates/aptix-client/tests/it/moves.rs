//! Files that are deleted, renamed or made executable: all of a batch or nothing, after any crash, fault or interference.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aptix_client::workspace::commit::change::{Becomes, Change, Content};
use aptix_client::workspace::commit::commit_error::CommitError;
use aptix_client::workspace::commit::notice::Notice;
use aptix_client::workspace::read::listing::Listings;
use aptix_client::workspace::read::place::Place;
use aptix_client::workspace::read::resolve::resolve;
use aptix_client::workspace::read::snapshot::{self, Original};
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_client::workspace::transaction::{self, CommitOptions, Receipt};
use aptix_engine::digest::sha256;
use aptix_engine::target::ValidTarget;
use aptix_model::batch::FileEdit;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;
use aptix_model::report::FileStatus;
use rustix::io::Errno;

use crate::faults::Receipt::Kept;
use crate::faults::{self, BATCH, Fault, FaultyDisk, recovered, save};
use crate::races::replace;
use crate::skip::skip;
use crate::tree::{self, Tree};

/// What is to become of one file.
pub(crate) enum Edit {
    Remove(&'static str),
    Move(&'static str, &'static str, &'static str),
    Write(&'static str, &'static str, Option<bool>),
}

/// Everything that a commit can do to a file, at once.
pub(crate) const EDITS: &[Edit] = &[
    Edit::Remove("dir/gone.txt"),
    Edit::Move("old.sh", "deep/er/moved.sh", "#!/bin/sh\nexit\n"),
    Edit::Write("run.sh", "plain\n", Some(true)),
    Edit::Move("same.txt", "dir/same.txt", "plain\n"),
    Edit::Write("new.sh", "new\n", Some(true)),
    Edit::Write("a.txt", "two\n", Some(false)),
];

/// Two files swap their names, two of equal bytes do too, one takes over that of another, and one gets another case.
pub(crate) const SWAPS: &[Edit] = &[
    Edit::Move("left.txt", "right.sh", "left\n"),
    Edit::Move("right.sh", "left.txt", "right, changed\n"),
    Edit::Move("equal", "equal.sh", "equal\n"),
    Edit::Move("equal.sh", "equal", "equal\n"),
    Edit::Move("chain/1", "chain/2", "1\n"),
    Edit::Move("chain/2", "chain/3", "2, changed\n"),
    Edit::Move("Readme.MD", "README.md", "read\n"),
    Edit::Write("new.sh", "new\n", Some(true)),
];

pub(crate) fn lay_out(place: &Path) -> std::path::PathBuf {
    let ws = place.join("ws");
    std::fs::create_dir_all(ws.join("dir")).unwrap();
    std::fs::create_dir_all(ws.join("chain")).unwrap();
    let files = [
        ("dir/gone.txt", "gone\n", 0o640),
        ("old.sh", "#!/bin/sh\n", 0o754),
        ("run.sh", "plain\n", 0o640),
        ("same.txt", "plain\n", 0o600),
        ("a.txt", "one\n", 0o755),
        ("left.txt", "left\n", 0o600),
        ("right.sh", "right\n", 0o755),
        ("chain/1", "1\n", 0o644),
        ("chain/2", "2\n", 0o600),
        ("equal", "equal\n", 0o644),
        ("equal.sh", "equal\n", 0o755),
        ("Readme.MD", "read\n", 0o644),
    ];
    for (name, text, mode) in files {
        std::fs::write(ws.join(name), text).unwrap();
        std::fs::set_permissions(ws.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    ws
}

/// A place in which the files are laid out, and the root in it.
pub(crate) fn laid_out() -> (tempfile::TempDir, std::path::PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let ws = lay_out(place.path());
    (place, ws)
}

fn find(workspace: &Workspace, path: &str) -> (Place, Option<Original>) {
    find_beside(workspace, path, None)
}

/// Finds a file, where the one at another path is renamed.
fn find_beside(workspace: &Workspace, path: &str, left: Option<&str>) -> (Place, Option<Original>) {
    let target = ValidTarget::Path(WorkspacePath::new(path).unwrap());
    let mut listings = Listings::default();
    left.into_iter().for_each(|left| listings.leave(0, left.to_owned()));
    let place = resolve(workspace, &mut listings, &target).unwrap();
    let original = snapshot::read(workspace, &mut listings, &place, 1 << 20).unwrap();
    (place, original)
}

pub(crate) fn commit(
    workspace: &Workspace,
    edits: &[Edit],
    receipt: Option<&Receipt>,
    meanwhile: &dyn Fn(),
) -> Result<Vec<Notice>, CommitError> {
    commit_by(workspace, edits, CommitOptions { receipt, ..CommitOptions::default() }, meanwhile)
}

pub(crate) fn commit_by(
    workspace: &Workspace,
    edits: &[Edit],
    options: CommitOptions<'_>,
    meanwhile: &dyn Fn(),
) -> Result<Vec<Notice>, CommitError> {
    let found: Vec<_> = edits
        .iter()
        .map(|edit| match edit {
            Edit::Remove(path) => (find(workspace, path), None, Vec::new(), None),
            Edit::Move(from, to, text) => {
                (find(workspace, from), Some(find_beside(workspace, to, Some(from)).0), text.as_bytes().to_vec(), None)
            }
            Edit::Write(path, text, executable) => (find(workspace, path), None, text.as_bytes().to_vec(), *executable),
        })
        .collect();
    let changes: Vec<_> = edits
        .iter()
        .zip(&found)
        .map(|(edit, ((place, original), to, bytes, executable))| {
            let content = Content { digest: sha256(bytes), executable: *executable, attributes: None, bytes };
            let becomes = match (edit, to) {
                (Edit::Remove(_), _) => Becomes::Nothing,
                (_, Some(to)) => Becomes::Moved(to, content),
                (_, None) => Becomes::Content(content),
            };
            let before = original.as_ref().map(|original| sha256(&original.bytes));
            Change { place, original: original.as_ref(), before, becomes }
        })
        .collect();
    meanwhile();
    transaction::commit(workspace, &changes, options)
}

pub(crate) fn receipt() -> Receipt {
    Receipt { batch: BATCH.parse().unwrap(), bytes: b"done".to_vec() }
}

/// The tree before and after a commit without faults, and how many operations it takes.
pub(crate) fn reference(edits: &[Edit], fault: Fault) -> (Tree, Tree, usize) {
    let (place, ws) = laid_out();
    let before = tree::read(&ws);
    let (workspace, count) = faults::open(place.path(), fault).unwrap();
    commit(&workspace, edits, Some(&receipt()), &|| {}).unwrap();
    (before, tree::read(&ws), count.load(Ordering::SeqCst))
}

/// Gives a file to another owner, where this machine lets us.
fn give_away(file: &Path) -> bool {
    let done = std::os::unix::fs::chown(file, Some(4321), Some(4321)).is_ok();
    if !done {
        skip("the owner of files that move: only root can give files away");
    }
    done
}

#[test]
fn files_go_and_move_and_keep_what_they_have_besides_their_bytes() {
    let (place, ws) = laid_out();
    let marked = rustix::fs::setxattr(ws.join("old.sh"), "user.mark", b"x", rustix::fs::XattrFlags::empty()).is_ok();
    let owned = give_away(&ws.join("old.sh"));
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    assert_eq!(commit(&workspace, EDITS, None, &|| {}).unwrap(), []);
    let found: Vec<_> = tree::read(&ws).into_iter().map(|(name, entry)| format!("{name}: {entry:?}")).collect();
    let expected = [
        r"Readme.MD: file 644 of 5 bytes read\n",
        r"a.txt: file 644 of 4 bytes two\n",
        "chain: directory 755",
        r"chain/1: file 644 of 2 bytes 1\n",
        r"chain/2: file 600 of 2 bytes 2\n",
        "deep: directory 755",
        "deep/er: directory 755",
        r"deep/er/moved.sh: file 754 of 15 bytes #!/bin/sh\nexit\n",
        "dir: directory 755",
        r"dir/same.txt: file 600 of 6 bytes plain\n",
        r"equal: file 644 of 6 bytes equal\n",
        r"equal.sh: file 755 of 6 bytes equal\n",
        r"left.txt: file 600 of 5 bytes left\n",
        r"new.sh: file 755 of 4 bytes new\n",
        r"right.sh: file 755 of 6 bytes right\n",
        r"run.sh: file 750 of 6 bytes plain\n",
    ];
    assert_eq!(found, expected);
    let moved = ws.join("deep/er/moved.sh");
    if marked {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(&moved, "user.mark", value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], b"x");
    }
    if owned {
        use std::os::unix::fs::MetadataExt;
        assert_eq!((moved.metadata().unwrap().uid(), moved.metadata().unwrap().gid()), (4321, 4321));
    }
    crate::scenarios::assert_no_debris(place.path(), "moved");
}

/// Each file takes its bytes, its mode and its owner along.
#[test]
fn files_that_take_over_names_keep_what_they_have_besides_their_bytes() {
    let (place, ws) = laid_out();
    let owned = give_away(&ws.join("left.txt"));
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    assert_eq!(commit(&workspace, SWAPS, None, &|| {}).unwrap(), []);
    let found = tree::read(&ws);
    let names = ["README.md", "chain/2", "chain/3", "equal", "equal.sh", "left.txt", "right.sh"];
    let expected = [
        r"file 644 of 5 bytes read\n",
        r"file 644 of 2 bytes 1\n",
        r"file 600 of 11 bytes 2, changed\n",
        r"file 755 of 6 bytes equal\n",
        r"file 644 of 6 bytes equal\n",
        r"file 755 of 15 bytes right, changed\n",
        r"file 600 of 5 bytes left\n",
    ];
    assert_eq!(names.map(|name| format!("{:?}", found[name])), expected);
    assert!(!found.contains_key("Readme.MD") && !found.contains_key("chain/1"), "{found:?}");
    if owned {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(["left.txt", "right.sh"].map(|name| ws.join(name).metadata().unwrap().uid() == 4321), [false, true]);
    }
    crate::scenarios::assert_no_debris(place.path(), "swapped");
}

/// A save of a file whose name another one takes over refuses the batch and stays.
#[test]
fn a_file_that_is_saved_before_another_one_takes_its_name_keeps_what_was_saved() {
    for name in ["left.txt", "right.sh", "chain/2", "Readme.MD", "equal"] {
        let (place, ws) = laid_out();
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let saved = std::sync::Mutex::new(Tree::new());
        let outcome = commit(&workspace, SWAPS, None, &|| {
            save(&ws, name, "mine\n");
            *saved.lock().unwrap() = tree::read(&ws);
        });
        assert_eq!(outcome.unwrap_err().failure().reason, Reason::FileChanged, "{name}");
        tree::assert_same(&tree::read(&ws), &saved.lock().unwrap(), name);
        crate::scenarios::assert_no_debris(place.path(), name);
    }
}

#[test]
fn a_directory_that_loses_its_last_file_stays() {
    let (place, ws) = laid_out();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let batch = faults::batch_of([faults::patch("dir/gone.txt", FileEdit::DeleteFile)]);
    let report = faults::commit(&workspace, &batch, faults::Receipt::None).unwrap();
    let file = &report.files[0];
    assert_eq!((file.status, file.written), (FileStatus::Deleted, None));
    assert_eq!(file.sha256_before, Some(sha256(b"gone\n")));
    assert_eq!(std::fs::read_dir(ws.join("dir")).unwrap().count(), 0);
    // What is gone already cannot be removed once more.
    let refusal = faults::commit(&workspace, &batch, faults::Receipt::None).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::FileMissing);
}

#[test]
fn stopping_after_any_operation_leaves_all_old_or_all_new() {
    let lacking = Fault::WithoutAny(&["exchange", "rename_new"], Errno::INVAL);
    let (again, once) = (&[None, Some(2), Some(7)][..], &[None][..]);
    let cases = [
        (EDITS, Fault::None, again),
        (EDITS, lacking, once),
        (SWAPS, Fault::None, &again[..2]),
        (SWAPS, lacking, once),
    ];
    for (edits, fault, recoveries) in cases {
        let (before, after, operations) = reference(edits, fault);
        let mut ends = [0, 0];
        for last in 0..=operations {
            for again in recoveries {
                let what = format!("stopped after {last} of {operations}, recovery after {again:?}");
                let (place, _) = laid_out();
                let disk = FaultyDisk::new(Fault::StopAfter(last)).lacking(fault);
                let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
                let outcome = commit(&workspace, edits, Some(&receipt()), &|| {});
                drop(workspace);
                if let Some(again) = again {
                    let disk = FaultyDisk::new(Fault::StopAfter(*again)).lacking(fault);
                    drop(faults::open_on(place.path(), disk));
                }
                let is_new = recovered(place.path(), &before, &after, Kept, &what);
                ends[usize::from(is_new)] += 1;
                assert!(is_new || outcome.is_err(), "{what}: it was said to be applied");
            }
        }
        assert!(ends[0] > 0 && ends[1] > 0, "both ends are met: {ends:?}");
    }
}

#[test]
fn any_error_of_any_operation_is_refused_and_leaves_nothing() {
    for (edits, errno) in [(EDITS, Errno::NOSPC), (EDITS, Errno::IO), (SWAPS, Errno::NOSPC)] {
        let (before, after, operations) = reference(edits, Fault::None);
        for at in 1..=operations {
            let what = format!("{errno:?} at operation {at} of {operations}");
            let (place, _) = laid_out();
            let (workspace, _) = faults::open(place.path(), Fault::FailAt(at, errno)).unwrap();
            let outcome = commit(&workspace, edits, Some(&receipt()), &|| {});
            if let Err(error) = &outcome {
                let reasons = [Reason::WriteFailed, Reason::DirectoryCreateFailed];
                assert!(reasons.contains(&error.failure().reason), "{what}: {error}");
                // The refusal is final at once, not only after the next command has cleared up.
                tree::assert_same(&tree::read(&place.path().join("ws")), &before, &what);
            }
            drop(workspace);
            assert_eq!(recovered(place.path(), &before, &after, Kept, &what), outcome.is_ok(), "{what}");
        }
    }
}

type Action = (&'static str, fn(&Path), Reason);

/// What another process may do to files that are removed or moved.
const ACTIONS: &[Action] = &[
    ("written in place", |ws| std::fs::write(ws.join("dir/gone.txt"), "mine\n").unwrap(), Reason::FileChanged),
    ("saved by renaming", |ws| save(ws, "old.sh", "mine\n"), Reason::FileChanged),
    ("saved where only the mode changes", |ws| save(ws, "run.sh", "mine\n"), Reason::FileChanged),
    ("made where a file moves to", |ws| std::fs::write(ws.join("dir/same.txt"), "mine\n").unwrap(), Reason::FileExists),
    ("removed", |ws| std::fs::remove_file(ws.join("dir/gone.txt")).unwrap(), Reason::FileChanged),
    ("made a directory", |ws| replace(&ws.join("dir/gone.txt"), |path| std::fs::create_dir(path)), Reason::FileChanged),
];

#[test]
fn whatever_happens_between_plan_and_commit_is_noticed_and_kept() {
    for (what, action, reason) in ACTIONS {
        let (place, ws) = laid_out();
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let expected = std::sync::Mutex::new(Tree::new());
        let error = commit(&workspace, EDITS, None, &|| {
            action(&ws);
            *expected.lock().unwrap() = tree::read(&ws);
        })
        .unwrap_err();
        assert_eq!(error.failure().reason, *reason, "{what}: {error}");
        tree::assert_same(&tree::read(&ws), &expected.lock().unwrap(), what);
        crate::scenarios::assert_no_debris(place.path(), what);
    }
}

#[test]
fn what_another_process_writes_before_any_move_is_never_lost() {
    for (what, action, _) in ACTIONS {
        let mut ends = [0, 0];
        for number in 1.. {
            let what = format!("{what}, before move {number}");
            let (place, ws) = laid_out();
            let (count, done) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
            let (is_done, action) = (Arc::clone(&done), *action);
            let workspace = faults::open_watched(place.path(), Fault::None, move |ws, kind, _, _| {
                // A batch that has taken the file away already leaves nothing to act on.
                let gone = !ws.join("dir/gone.txt").exists() || !ws.join("old.sh").exists();
                if kind != "sync" && count.fetch_add(1, Ordering::SeqCst) + 1 == number && !gone {
                    action(ws);
                    is_done.store(true, Ordering::SeqCst);
                }
            });
            let outcome = commit(&workspace, EDITS, None, &|| {});
            drop(workspace);
            let found = tree::read(&ws);
            let theirs = |entry: &tree::Entry| matches!(entry, tree::Entry::File { bytes, .. } if bytes == b"mine\n");
            if !done.load(Ordering::SeqCst) {
                break;
            }
            ends[usize::from(outcome.is_ok())] += 1;
            if !matches!(what.split(',').next(), Some("removed" | "made a directory")) {
                assert!(found.values().any(theirs), "{what}: {outcome:?}, {found:?}");
            }
            if outcome.is_err() {
                assert!(found.contains_key("old.sh") && found.contains_key("same.txt"), "{what}: {found:?}");
                assert!(!found.contains_key("new.sh") && !found.contains_key("deep"), "{what}: {found:?}");
            }
            crate::scenarios::assert_no_debris(place.path(), &what);
            faults::open(place.path(), Fault::None).unwrap();
        }
        assert!(ends[0] > 0, "{what}: {ends:?}");
    }
}

#[test]
fn a_file_that_is_saved_while_it_is_removed_stays_with_what_was_saved() {
    let (place, ws) = laid_out();
    // One save just before the file is taken away, another one before it is put back.
    let workspace = faults::open_watched(place.path(), Fault::None, |ws, kind, from, to| match (kind, from, to) {
        ("rename", "gone.txt", _) => save(ws, "dir/gone.txt", "mine\n"),
        ("rename_new", _, "gone.txt") => std::fs::write(ws.join("dir/gone.txt"), "mine too\n").unwrap(),
        _ => {}
    });
    let error = commit(&workspace, &[Edit::Remove("dir/gone.txt")], None, &|| {}).unwrap_err();
    assert_eq!(error.failure().reason, Reason::FileChanged, "{error}");
    assert_eq!(std::fs::read(ws.join("dir/gone.txt")).unwrap(), b"mine too\n");
    // The save before was displaced by us and is never removed.
    let kept = tree::read(&ws).into_keys().find(|name| name.contains(".kept-")).unwrap();
    assert_eq!(std::fs::read(ws.join(kept)).unwrap(), b"mine\n");
    crate::scenarios::assert_no_debris(place.path(), "kept");
}
