//! Somebody else changes the files between the plan and the commit: what they wrote stands.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aptix_client::apply::{Decision, Mode, Order, Refusal, apply};
use aptix_client::workspace::Workspace;
use aptix_model::batch::{Batch, FileEdit, Origin};
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Report;

use crate::faults::{self, Fault};
use crate::tree;

fn apply_while(workspace: &Workspace, batch: &Batch, meanwhile: &dyn Fn()) -> Result<Report, Refusal> {
    let order = Order { limits: Limits::DEFAULT, origin: &Origin::default(), diff_bytes: 1 << 20, mode: Mode::Commit };
    apply(workspace, batch, order, &mut |_| {
        meanwhile();
        Decision::Apply
    })
}

#[test]
fn whatever_happens_between_plan_and_commit_is_noticed_and_kept() {
    type Deed = fn(&Path);
    let cases: &[(&str, Deed, Reason, Option<Detail>)] = &[
        ("written in place", |ws| std::fs::write(ws.join("a.txt"), "mine\n").unwrap(), Reason::FileChanged, None),
        (
            "saved by renaming",
            |ws| {
                std::fs::write(ws.join("save"), "mine\n").unwrap();
                std::fs::rename(ws.join("save"), ws.join("a.txt")).unwrap();
            },
            Reason::FileChanged,
            None,
        ),
        ("removed", |ws| std::fs::remove_file(ws.join("a.txt")).unwrap(), Reason::FileChanged, None),
        (
            "made a link",
            |ws| {
                std::fs::remove_file(ws.join("a.txt")).unwrap();
                symlink("/etc/hostname", ws.join("a.txt")).unwrap();
            },
            Reason::FileChanged,
            None,
        ),
        (
            "made a directory",
            |ws| {
                std::fs::remove_file(ws.join("a.txt")).unwrap();
                std::fs::create_dir(ws.join("a.txt")).unwrap();
            },
            Reason::FileChanged,
            None,
        ),
        ("created", |ws| std::fs::write(ws.join("new.txt"), "mine\n").unwrap(), Reason::FileExists, None),
        ("created as a link", |ws| symlink("/tmp/nowhere", ws.join("new.txt")).unwrap(), Reason::FileExists, None),
        (
            "its directory removed",
            |ws| std::fs::remove_dir_all(ws.join("dir")).unwrap(),
            Reason::WriteFailed,
            Some(Detail::ParentGone),
        ),
        (
            "its directory made a link out",
            |ws| {
                std::fs::remove_dir_all(ws.join("dir")).unwrap();
                symlink("../outside", ws.join("dir")).unwrap();
            },
            Reason::WriteFailed,
            None,
        ),
    ];
    for (what, deed, reason, detail) in cases {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let ws = place.path().join("ws");
        std::fs::create_dir(place.path().join("outside")).unwrap();
        std::fs::write(place.path().join("outside/b.txt"), "one\ntwo\nthree\n").unwrap();
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let expected = std::sync::Mutex::new(tree::Tree::new());
        let refusal = apply_while(&workspace, &faults::batch(2, 2), &|| {
            deed(&ws);
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

#[test]
fn no_save_by_renaming_is_ever_lost() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let ws = place.path().join("ws");
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
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let target = place.path().join("ws/a.txt");
    let content = |letter: &str| format!("{}\n", letter.repeat(100_000));
    std::fs::write(&target, content("a")).unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let found = std::fs::read(&target).unwrap();
                assert!(found == content("a").as_bytes() || found == content("b").as_bytes(), "{} bytes", found.len());
            }
        });
        for round in 0..200 {
            let mut batch = faults::batch(0, 1);
            batch.files[0].target = aptix_model::batch::Target::Path("a.txt".to_owned());
            let letter = if round % 2 == 0 { "b" } else { "a" };
            batch.files[0].edit = FileEdit::CreateFile(aptix_model::batch::CreateFile {
                content: aptix_model::batch::Content::Text(content(letter)),
                overwrite: true,
            });
            apply_while(&workspace, &batch, &|| {}).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    });
}
