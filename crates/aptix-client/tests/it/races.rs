//! Another process changes the files between the plan and the commit: what it wrote stays.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aptix_client::workspace::transaction::CommitOptions;
use aptix_model::batch::{Batch, FileEdit};
use aptix_model::reason::Detail;
use aptix_model::reason::Reason::{self, FileChanged, FileExists, WriteFailed};
use rustix::io::Errno;

use crate::faults::{self, Fault, FaultyDisk, Watcher, apply_while, save};
use crate::moves;
use crate::tree;

type Action = fn(&Path);

/// What another process may do to a workspace, and how a batch ends for that.
const ACTIONS: &[(&str, Action, Reason, Option<Detail>)] = &[
    ("written in place", |ws| std::fs::write(ws.join("a.txt"), "mine\n").unwrap(), FileChanged, None),
    ("saved by renaming", |ws| save(ws, "a.txt", "mine\n"), FileChanged, None),
    ("removed", |ws| std::fs::remove_file(ws.join("a.txt")).unwrap(), FileChanged, None),
    ("made a link", |ws| replace(&ws.join("a.txt"), |path| symlink("/etc/hostname", path)), FileChanged, None),
    ("made a directory", |ws| replace(&ws.join("a.txt"), |path| std::fs::create_dir(path)), FileChanged, None),
    ("created", |ws| std::fs::write(ws.join("new.txt"), "mine\n").unwrap(), FileExists, None),
    (
        "created as a link",
        |ws| {
            symlink("/tmp/nowhere", ws.join("save")).unwrap();
            std::fs::rename(ws.join("save"), ws.join("new.txt")).unwrap();
        },
        FileExists,
        None,
    ),
    (
        "its directory removed",
        |ws| std::fs::remove_dir_all(ws.join("dir")).unwrap(),
        WriteFailed,
        Some(Detail::ParentGone),
    ),
    (
        "its directory made a link out",
        |ws| replace(&ws.join("dir"), |path| symlink("../outside", path)),
        WriteFailed,
        None,
    ),
    (
        "given another mode",
        |ws| std::fs::set_permissions(ws.join("a.txt"), Permissions::from_mode(0o600)).unwrap(),
        FileChanged,
        None,
    ),
    (
        "its directory made, and the file",
        |ws| {
            std::fs::create_dir_all(ws.join("deep")).unwrap();
            std::fs::write(ws.join("new.txt"), "new\n").unwrap();
        },
        FileExists,
        None,
    ),
];

/// Makes something else in the place of a file or a directory.
pub(crate) fn replace(path: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    make(path).unwrap();
}

#[test]
fn whatever_happens_between_plan_and_commit_is_noticed_and_kept() {
    for (what, action, reason, detail) in ACTIONS {
        let (place, ws) = laid_out();
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let expected = std::sync::Mutex::new(tree::Tree::new());
        let refusal = apply_while(&workspace, &faults::batch(2, 2), &|| {
            action(&ws);
            *expected.lock().unwrap() = tree::read(&ws);
        })
        .unwrap_err();
        let failure = &refusal.failures[0];
        assert_eq!((failure.reason, failure.detail), (*reason, *detail), "{what}: {failure}");
        tree::assert_same(&tree::read(&ws), &expected.lock().unwrap(), what);
        assert_eq!(std::fs::read(place.path().join("outside/b.txt")).unwrap(), b"one\ntwo\nthree\n");
        crate::scenarios::assert_no_debris(place.path(), what);
    }
}

/// A workspace laid out anew, with a directory outside that links may lead to.
fn laid_out() -> (tempfile::TempDir, std::path::PathBuf) {
    let (place, ws) = faults::laid_out();
    std::fs::create_dir(place.path().join("outside")).unwrap();
    std::fs::write(place.path().join("outside/b.txt"), "one\ntwo\nthree\n").unwrap();
    (place, ws)
}

/// How a tree looks when another process does something to it before a batch, or after one.
fn afterwards(batch: Option<&Batch>, action: Action) -> tree::Tree {
    let (place, ws) = laid_out();
    if let Some(batch) = batch {
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        apply_while(&workspace, batch, &|| {}).unwrap();
    }
    action(&ws);
    tree::read(&ws)
}

#[test]
fn whatever_happens_before_any_move_is_kept_and_the_batch_is_whole() {
    let batch = faults::batch(2, 2);
    // What comes of these two depends on what the batch has made already.
    let dependent = ["given another mode", "its directory made, and the file"];
    for (what, action, reason, _) in ACTIONS.iter().filter(|(what, ..)| !dependent.contains(what)) {
        let (old, new) = (afterwards(None, *action), afterwards(Some(&batch), *action));
        let mut ends = [0, 0];
        for number in 1.. {
            let what = format!("{what}, before move {number}");
            let (place, ws) = laid_out();
            let moves = Arc::new(AtomicUsize::new(0));
            let (counted, action) = (Arc::clone(&moves), *action);
            let workspace = faults::open_watched(place.path(), Fault::None, move |ws, kind, _, _| {
                if kind != "sync" && counted.fetch_add(1, Ordering::SeqCst) + 1 == number {
                    action(ws);
                }
            });
            let outcome = apply_while(&workspace, &batch, &|| {});
            drop(workspace);
            if moves.load(Ordering::SeqCst) < number {
                break;
            }
            ends[usize::from(outcome.is_ok())] += 1;
            if let Err(refusal) = &outcome {
                assert_eq!(refusal.failures[0].reason, *reason, "{what}: {}", refusal.failures[0]);
            }
            tree::assert_same(&tree::read(&ws), if outcome.is_ok() { &new } else { &old }, &what);
            assert_eq!(std::fs::read(place.path().join("outside/b.txt")).unwrap(), b"one\ntwo\nthree\n", "{what}");
            crate::scenarios::assert_no_debris(place.path(), &what);
            faults::open(place.path(), Fault::None).unwrap();
        }
        assert!(ends[0] > 0 && ends[1] > 0, "{what}: both ends are met: {ends:?}");
    }
}

#[test]
fn a_directory_that_is_replaced_by_another_at_any_moment_is_whole_wherever_it_went() {
    let (old, new, _) = moves::reference(moves::EDITS, Fault::None);
    let mut ends = [0, 0];
    for number in 1.. {
        let what = format!("before operation {number}");
        let (place, ws) = moves::laid_out();
        let (dir, away) = (ws.join("dir"), place.path().join("away"));
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let workspace = faults::open_watched(place.path(), Fault::None, move |ws, _, _, _| {
            if counted.fetch_add(1, Ordering::SeqCst) + 1 == number {
                std::fs::rename(ws.join("dir"), ws.with_file_name("away")).unwrap();
                std::fs::create_dir(ws.join("dir")).unwrap();
                std::fs::write(ws.join("dir/mine"), "mine\n").unwrap();
            }
        });
        count.store(0, Ordering::SeqCst);
        let outcome = moves::commit_by(&workspace, moves::EDITS, CommitOptions::default(), &|| {});
        drop(workspace);
        if count.load(Ordering::SeqCst) < number {
            break;
        }
        ends[usize::from(outcome.is_ok())] += 1;
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"], "{what}");
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::rename(&away, &dir).unwrap();
        tree::assert_same(&tree::read(&ws), if outcome.is_ok() { &new } else { &old }, &what);
        crate::scenarios::assert_no_debris(place.path(), &what);
        faults::open(place.path(), Fault::None).unwrap();
    }
    assert!(ends[0] > 0 && ends[1] > 0, "both ends are met: {ends:?}");
}

#[test]
fn a_file_that_another_process_creates_with_the_same_bytes_stays() {
    for published_by in ["rename_new", "link"] {
        let (place, ws) = laid_out();
        let fault = if published_by == "link" { Fault::Without("rename_new", Errno::INVAL) } else { Fault::None };
        let workspace = faults::open_watched(place.path(), fault, move |ws, kind, _, to| {
            if (kind, to) == (published_by, "new.txt") {
                std::fs::write(ws.join("new.txt"), "new\n").unwrap();
            }
        });
        let refusal = apply_while(&workspace, &faults::batch(2, 2), &|| {}).unwrap_err();
        assert_eq!(refusal.failures[0].reason, FileExists, "{}", refusal.failures[0]);
        let left: Vec<_> = tree::read(&ws).into_keys().collect();
        assert_eq!(left, ["a.txt", "dir", "dir/b.txt", "new.txt"], "{published_by}");
        assert_eq!(std::fs::read(ws.join("new.txt")).unwrap(), b"new\n");
    }
}

#[test]
fn undoing_a_creation_takes_out_nothing_of_another_process() {
    let (place, ws) = laid_out();
    let workspace = faults::open_watched(place.path(), Fault::None, |ws, kind, from, _| match (kind, from) {
        // The last file cannot be created, so that the first is taken out again; just then another process saves it.
        ("rename_new", _) if ws.join("new.txt").exists() => {
            let _ = std::fs::write(ws.join("deep/er/new.txt"), "mine\n");
        }
        ("rename", "new.txt") => save(ws, "new.txt", "mine too\n"),
        _ => {}
    });
    let refusal = apply_while(&workspace, &faults::batch(2, 2), &|| {}).unwrap_err();
    assert_eq!(refusal.failures[0].reason, FileExists, "{}", refusal.failures[0]);
    assert_eq!(std::fs::read(ws.join("new.txt")).unwrap(), b"mine too\n");
    assert_eq!(std::fs::read(ws.join("deep/er/new.txt")).unwrap(), b"mine\n");
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
    assert!(tree::read(&ws).keys().all(|name| !name.contains("aptix") && !name.contains("kept")));
    crate::scenarios::assert_no_debris(place.path(), "undone");
}

#[test]
fn a_save_that_is_kept_is_named_where_the_file_is_gone_as_well() {
    let (place, ws) = laid_out();
    let exchanges = AtomicUsize::new(0);
    let workspace = faults::open_watched(place.path(), Fault::None, move |ws, kind, _, _| {
        match (kind, exchanges.fetch_add(usize::from(kind == "exchange"), Ordering::SeqCst)) {
            ("exchange", 0) => save(ws, "a.txt", "mine\n"),
            // Before theirs is given back, another process removes what has its name.
            ("exchange", 1) => std::fs::remove_file(ws.join("a.txt")).unwrap(),
            _ => {}
        }
    });
    let refusal = apply_while(&workspace, &faults::batch(1, 0), &|| {}).unwrap_err();
    let kept = tree::read(&ws).into_keys().find(|name| name.contains(".kept-")).unwrap();
    assert_eq!(std::fs::read(ws.join(&kept)).unwrap(), b"mine\n");
    assert!(refusal.failures[0].message.contains(&kept), "{}", refusal.failures[0]);
    assert!(!ws.join("a.txt").exists());
}

#[test]
fn a_kept_copy_of_a_file_with_the_longest_name_has_a_name_too() {
    // File systems without a rename that spares what has the name keep it all the same.
    for fault in [Fault::None, Fault::Without("rename_new", Errno::INVAL)] {
        let (place, ws) = laid_out();
        let long = "\u{e4}".repeat(127);
        std::fs::rename(ws.join("a.txt"), ws.join(&long)).unwrap();
        // Another process that has the old file open writes it after it was replaced.
        let workspace = faults::open_watched(place.path(), fault, |ws, kind, _, to| {
            if (kind, to) == ("rename", "finishing") {
                let staged = tree::read(ws).into_keys().find(|name| name.ends_with(".aptix-tmp")).unwrap();
                std::fs::write(ws.join(staged), "mine\n").unwrap();
            }
        });
        let mut batch = faults::batch(1, 0);
        batch.files[0].target = aptix_model::batch::Target::DocPath(format!("ws/{long}"));
        let report = apply_while(&workspace, &batch, &|| {}).unwrap();
        assert_eq!(report.files[0].warnings[0].code, "LATE_WRITE");
        let kept = tree::read(&ws).into_keys().find(|name| name.contains(".kept-")).unwrap();
        assert_eq!(std::fs::read(ws.join(&kept)).unwrap(), b"mine\n");
        assert!(kept.len() <= 255 && long.starts_with(kept.split(".kept-").next().unwrap()), "{kept}");
        crate::scenarios::assert_no_debris(place.path(), "kept");
    }
}

#[test]
fn a_crash_while_saves_are_given_back_leaves_nothing_that_needs_a_person() {
    let mut saves = 0;
    for last in 0.. {
        let (place, ws) = laid_out();
        let saved = Arc::new(AtomicUsize::new(0));
        // Another process saves the file anew before each of the first exchanges.
        let watcher: Watcher = Arc::new({
            let (ws, saved) = (ws.clone(), Arc::clone(&saved));
            move |kind, _, to| {
                if kind == "exchange" && to == "a.txt" && saved.load(Ordering::SeqCst) < 3 {
                    save(&ws, "a.txt", &format!("mine {}\n", saved.fetch_add(1, Ordering::SeqCst) + 1));
                }
            }
        });
        let disk = FaultyDisk::watched(Fault::StopAfter(last), watcher);
        let count = Arc::clone(&disk.count);
        let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
        apply_while(&workspace, &faults::batch(2, 2), &|| {}).unwrap_err();
        drop(workspace);
        let (workspace, _) =
            faults::open(place.path(), Fault::None).unwrap_or_else(|error| panic!("stopped after {last}: {error}"));
        let now = tree::read(&ws);
        let writes = workspace.displaced_writes().unwrap();
        for kept in now.keys().filter(|name| name.contains(".kept-")) {
            let is_named = writes.iter().any(|write| write.kept_as == workspace.roots()[0].path().join(kept));
            assert!(is_named, "stopped after {last}: the log does not name {kept}: {writes:?}");
        }
        let holds = |text: &str| {
            now.values().any(|entry| matches!(entry, tree::Entry::File { bytes, .. } if bytes == text.as_bytes()))
        };
        saves = saved.load(Ordering::SeqCst);
        // A save replaces the one before, wherever that is by then.
        let last_save = format!("mine {saves}\n");
        assert!(saves == 0 || holds(&last_save), "stopped after {last}: save {saves} is lost: {now:?}");
        // A batch whose process died before the first save may be carried on.
        let is_old = std::fs::read(ws.join("dir/b.txt")).unwrap() == b"one\ntwo\nthree\n";
        assert!(is_old || saves == 0, "stopped after {last}");
        assert!(now.keys().all(|name| !name.ends_with(".aptix-tmp")), "stopped after {last}: {now:?}");
        if count.load(Ordering::SeqCst) <= last {
            break;
        }
    }
    assert_eq!(saves, 3);
}

#[test]
fn no_save_by_renaming_is_ever_lost() {
    let (place, ws) = faults::laid_out();
    let target = ws.join("a.txt");
    std::fs::write(&target, "user 0\n").unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let (stop, saved) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut applied = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let next = saved.load(Ordering::SeqCst) + 1;
                std::fs::write(place.path().join("save"), format!("user {next}\n")).unwrap();
                std::fs::rename(place.path().join("save"), &target).unwrap();
                saved.store(next, Ordering::SeqCst);
            }
        });
        for _ in 0..1500 {
            let base = std::fs::read(&target).unwrap();
            let mut batch = faults::batch(1, 0);
            if let FileEdit::LinePatch(patch) = &mut batch.files[0].edit {
                patch.original_sha256 = aptix_engine::digest::sha256(&base).to_string();
            }
            applied += usize::from(apply_while(&workspace, &batch, &|| {}).is_ok());
        }
        stop.store(true, Ordering::SeqCst);
    });
    let last = format!("user {}\n", saved.load(Ordering::SeqCst));
    let found = std::fs::read_to_string(&target).unwrap();
    assert!(found.starts_with(&last), "the last save is in place: {last:?}, found {found:?}");
    let left: Vec<_> = tree::read(&ws).into_keys().filter(|name| name.contains("aptix")).collect();
    assert!(left.is_empty(), "{left:?}");
    eprintln!("{applied} of 1500 were applied between {last:?} saves");
}

#[test]
fn every_reader_at_every_moment_finds_a_whole_file() {
    // TUL-004-5.1.5.3, TUL-004-5.4.1
    let (place, _) = faults::laid_out();
    let target = place.path().join("ws/a.txt");
    let content = |letter: &str| format!("{}\n", letter.repeat(100_000));
    std::fs::write(&target, content("a")).unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let stop = AtomicBool::new(false);
    let reads = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let found = std::fs::read(&target).unwrap();
                reads.fetch_add(1, Ordering::SeqCst);
                assert!(found == content("a").as_bytes() || found == content("b").as_bytes(), "{} bytes", found.len());
            }
        });
        for round in 0..200 {
            let letter = if round % 2 == 0 { "b" } else { "a" };
            let batch = faults::batch_of([faults::write("a.txt", &content(letter), true)]);
            apply_while(&workspace, &batch, &|| {}).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(reads.load(Ordering::SeqCst) >= 100, "a race needs both sides");
}
