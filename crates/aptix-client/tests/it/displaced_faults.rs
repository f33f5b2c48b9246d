//! Displaced writes beside everything that can go wrong: a process that dies, a disk that fails, another mount, clocks.
//!
//! The law: whatever another process wrote is afterwards in place, in a kept copy that is named, or was the base.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aptix_client::workspace::commit::displaced_writes::{HELD_AT_LEAST, HELD_BYTES, HELD_FOR};
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, FileEdit, FilePatch, GitKind, GitPatch};
use rustix::io::Errno;

use crate::faults::{self, Fault, FaultyDisk, Receipt, apply_while, batch_of, patch, take_back};
use crate::tree::{self, Entry};

fn renamed(path: &str, to: &str) -> FilePatch {
    let kind = GitKind::Rename { to: to.to_owned() };
    let git =
        GitPatch { kind, executable: None, base_id: None, result_id: None, is_unprefixed: false, hunks: Vec::new() };
    patch(path, FileEdit::GitPatch(git))
}

/// One batch of each kind: edits, deletes, renames, and something new beside them.
fn kinds() -> Vec<(&'static str, Batch)> {
    let delete = |path| patch(path, FileEdit::DeleteFile);
    let new = || faults::batch(0, 1).files.remove(0);
    vec![
        ("edit", faults::batch(2, 1)),
        ("delete", batch_of([delete("a.txt"), delete("dir/b.txt"), new()])),
        ("rename", batch_of([renamed("a.txt", "moved.txt"), renamed("dir/b.txt", "dir/moved.txt")])),
    ]
}

/// Opens for appending what a batch is going to displace.
fn open_files(ws: &Path) -> Vec<File> {
    let open = |name| File::options().append(true).open(ws.join(name)).unwrap();
    ["a.txt", "dir/b.txt"].map(open).into()
}

fn write(files: &mut [File], mark: &str) {
    for (number, file) in files.iter_mut().enumerate() {
        file.write_all(format!("{mark} {number}\n").as_bytes()).unwrap();
    }
}

/// Everything that is in place, and in kept copies that are named.
fn everything(workspace: &Workspace, ws: &Path) -> String {
    let mut text = String::new();
    for (name, entry) in tree::read(ws) {
        assert!(!name.ends_with(".aptix-tmp"), "{name} is left");
        if let Entry::File { bytes, .. } = entry {
            text.push_str(&String::from_utf8(bytes).unwrap());
        }
    }
    for write in workspace.displaced_writes().unwrap() {
        text.push_str(&std::fs::read_to_string(&write.kept_as).unwrap());
    }
    text
}

#[track_caller]
fn assert_nothing_lost(workspace: &Workspace, ws: &Path, marks: &[&str], what: &str) {
    let found = everything(workspace, ws);
    for mark in marks {
        for number in 0..2 {
            assert!(found.contains(&format!("{mark} {number}\n")), "{what}: {mark} {number} is lost: {found:?}");
        }
    }
}

#[test]
fn whenever_a_commit_stops_what_is_written_to_its_old_files_before_and_after_recovery_is_not_lost() {
    for undoes in [false, true] {
        for (kind, batch) in kinds() {
            for last in 0.. {
                let what = format!("{kind}, undone: {undoes}, stopped after {last}");
                let (place, ws) = faults::laid_out();
                if undoes {
                    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
                    apply_while(&workspace, &batch, &|| {}).unwrap();
                }
                let names: Vec<_> = tree::read(&ws).into_keys().filter(|name| ws.join(name).is_file()).collect();
                let open = |name: &String| File::options().append(true).open(ws.join(name)).unwrap();
                let mut files: Vec<_> = names.iter().filter(|name| *name != "new.txt").map(open).collect();
                let (workspace, count) = faults::open(place.path(), Fault::StopAfter(last)).unwrap();
                let outcome = if undoes {
                    take_back(&workspace, Wanted::Newest).map(drop)
                } else {
                    apply_while(&workspace, &batch, &|| {}).map(drop)
                };
                drop(workspace);
                write(&mut files, "before");
                let (workspace, _) =
                    faults::open(place.path(), Fault::None).unwrap_or_else(|error| panic!("{what}: {error}"));
                write(&mut files, "after");
                drop(workspace);
                let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
                let marks: &[&str] = if files.len() == 2 { &["before", "after"] } else { &[] };
                assert_nothing_lost(&workspace, &ws, marks, &what);
                crate::scenarios::assert_no_debris(place.path(), &what);
                if outcome.is_ok() && count.load(Ordering::SeqCst) <= last {
                    break;
                }
            }
        }
    }
}

#[test]
fn whenever_an_operation_fails_what_is_written_to_old_and_to_rolled_back_files_is_not_lost() {
    for (kind, batch) in kinds() {
        for at in 1.. {
            let what = format!("{kind}, operation {at} fails");
            let (place, ws) = faults::laid_out();
            let mut files = open_files(&ws);
            let published: Arc<std::sync::Mutex<Vec<File>>> = Arc::default();
            // Another process opens the new files as soon as they are published, before they may be taken back.
            let watcher: crate::faults::Watcher = Arc::new({
                let (published, ws) = (Arc::clone(&published), ws.clone());
                move |kind, _, _| {
                    let file = File::options().append(true).open(ws.join("a.txt"));
                    let is_new = std::fs::read_to_string(ws.join("a.txt")).is_ok_and(|text| text.contains("inserted"));
                    let mut published = published.lock().unwrap();
                    if kind == "exchange" && is_new && published.is_empty() {
                        published.extend(file);
                    }
                }
            });
            let disk = FaultyDisk::watched(Fault::FailAt(at, Errno::IO), watcher);
            let count = Arc::clone(&disk.count);
            let (workspace, _) = faults::open_on(place.path(), disk).unwrap();
            let _ = apply_while(&workspace, &batch, &|| {});
            let is_last = count.load(Ordering::SeqCst) < at;
            drop(workspace);
            write(&mut files, "old");
            let mut opened = std::mem::take(&mut *published.lock().unwrap());
            write(&mut opened, "published");
            let (workspace, _) =
                faults::open(place.path(), Fault::None).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_nothing_lost(&workspace, &ws, &["old"], &what);
            let found = everything(&workspace, &ws);
            assert!(
                opened.is_empty() || found.contains("published 0\n"),
                "{what}: a published file is lost: {found:?}"
            );
            if is_last {
                break;
            }
        }
    }
}

/// A workspace that has displaced `a.txt`, and the file.
struct Scene {
    place: tempfile::TempDir,
    disk: FaultyDisk,
    workspace: Workspace,
    file: File,
}

impl Scene {
    fn displaced(disk: FaultyDisk) -> Self {
        let (place, _) = faults::laid_out();
        let (workspace, _) = faults::open_on(place.path(), disk.clone()).unwrap();
        let file = File::options().append(true).open(place.path().join("ws/a.txt")).unwrap();
        apply_while(&workspace, &faults::batch(1, 0), &|| {}).unwrap();
        Self { place, disk, workspace, file }
    }

    fn ws(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    /// Another command opens the root.
    fn sweep(&self) {
        drop(faults::open_on(self.place.path(), self.disk.clone()).unwrap());
    }

    /// How many displaced files the state directory and the workspace hold, changed or not.
    fn held(&self) -> usize {
        let names = tree::read(self.place.path()).into_keys();
        let is_held = |name: &String| {
            (name.contains("/displaced/") && !name.ends_with("index-1")) || name.ends_with(".aptix-displaced")
        };
        names.filter(is_held).count()
    }

    fn kept(&self) -> Vec<String> {
        let writes = self.workspace.displaced_writes().unwrap();
        writes.iter().map(|write| std::fs::read_to_string(&write.kept_as).unwrap()).collect()
    }
}

#[test]
fn an_unchanged_file_is_held_for_its_time_whatever_the_clock_says() {
    let scene = Scene::displaced(FaultyDisk::new(Fault::None));
    let seconds = |seconds| scene.disk.seconds.store(seconds, Ordering::SeqCst);
    let skew = |hours| scene.disk.skew.store(hours, Ordering::SeqCst);
    scene.sweep();
    assert_eq!(scene.held(), 1);
    // A clock that is set forward by years, or back, ends nothing.
    for hours in [100_000, -100_000, 0] {
        skew(hours);
        scene.sweep();
        assert_eq!(scene.held(), 1, "{hours} hours");
    }
    seconds(HELD_FOR.as_secs() - 60);
    scene.sweep();
    assert_eq!(scene.held(), 1);
    seconds(HELD_FOR.as_secs() + 60);
    scene.sweep();
    assert_eq!((scene.held(), scene.kept()), (0, Vec::new()));
    skew(-100_000);
    scene.sweep();
    assert_eq!(scene.held(), 0, "what is over does not come back");
}

#[test]
fn a_changed_file_outlives_its_time_and_every_clock() {
    for (hours, boots) in [(0, false), (100_000, false), (-100_000, false), (100_000, true), (-100_000, true)] {
        let mut scene = Scene::displaced(FaultyDisk::new(Fault::None));
        scene.file.write_all(b"mine\n").unwrap();
        scene.disk.skew.store(hours, Ordering::SeqCst);
        scene.disk.seconds.store(2 * HELD_FOR.as_secs(), Ordering::SeqCst);
        if boots {
            // Whether an earlier command has looked makes no difference.
            let disk = scene.disk.clone().booted();
            scene.workspace = faults::open_on(scene.place.path(), disk).unwrap().0;
        }
        scene.sweep();
        assert_eq!(scene.kept(), ["one\ntwo\nthree\nmine\n"], "{hours} hours, booted: {boots}");
    }
}

#[test]
fn a_change_that_leaves_the_stamp_alone_is_found_before_the_file_is_removed() {
    let mut scene = Scene::displaced(FaultyDisk::new(Fault::None));
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    scene.disk.seconds.store(10, Ordering::SeqCst);
    scene.sweep();
    // As if through memory: the bytes change, and the index says that the stamp is of the bytes from before.
    scene.file.write_all(b"mine\n").unwrap();
    scene.file.set_modified(old).unwrap();
    scene.disk.seconds.store(2 * HELD_FOR.as_secs(), Ordering::SeqCst);
    scene.sweep();
    assert_eq!(scene.kept(), ["one\ntwo\nthree\nmine\n"]);
}

#[test]
fn beyond_so_many_bytes_the_oldest_unchanged_files_are_removed_and_a_changed_one_is_kept() {
    let (place, ws) = faults::laid_out();
    let disk = FaultyDisk::new(Fault::None);
    let (workspace, _) = faults::open_on(place.path(), disk.clone()).unwrap();
    // Three together are too much; they take no room on disk.
    let names = ["one", "two", "three"];
    for name in names {
        File::create(ws.join(name)).unwrap().set_len(HELD_BYTES / 5 * 2).unwrap();
    }
    let mut changed = File::options().write(true).open(ws.join("one")).unwrap();
    for (at, name) in (0..).zip(names) {
        disk.seconds.store(at * 120, Ordering::SeqCst);
        apply_while(&workspace, &batch_of([patch(name, FileEdit::DeleteFile)]), &|| {}).unwrap();
        if at == 0 {
            changed.write_all(b"mine").unwrap();
        }
    }
    let held = || {
        let names = tree_names(place.path());
        names.into_iter().filter(|name| name.contains("/displaced/") && !name.ends_with("index-1")).collect::<Vec<_>>()
    };
    disk.seconds.store(120 * 2 + HELD_AT_LEAST.as_secs() + 1, Ordering::SeqCst);
    drop(workspace);
    let open = || faults::open_on(place.path(), disk.clone()).unwrap().0;
    let workspace = open();
    assert_eq!(held().len(), 3, "the changed one does not count: {:?}", held());
    for (at, name) in (3..).zip(["four", "five"]) {
        File::create(ws.join(name)).unwrap().set_len(HELD_BYTES / 5 * 2).unwrap();
        disk.seconds.store(at * 120, Ordering::SeqCst);
        apply_while(&workspace, &batch_of([patch(name, FileEdit::DeleteFile)]), &|| {}).unwrap();
    }
    drop(workspace);
    let workspace = open();
    let ends: Vec<_> = held().iter().filter_map(|name| name.rsplit('-').next().map(str::to_owned)).collect();
    assert!(ends.contains(&"one".to_owned()) && !ends.contains(&"two".to_owned()), "{ends:?}");
    assert!(ends.contains(&"four".to_owned()) && ends.contains(&"five".to_owned()), "{ends:?}");
    assert_eq!(workspace.displaced_writes().unwrap().len(), 1);
}

fn tree_names(place: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![place.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                names.push(entry.path().to_str().unwrap().to_owned());
            }
        }
    }
    names
}

#[test]
fn on_another_mount_the_old_file_stays_beside_its_file_until_its_time_is_over_and_is_then_copied() {
    for errno in [Errno::XDEV, Errno::NOSPC, Errno::ACCESS, Errno::ROFS] {
        let disk = FaultyDisk::new(Fault::Without("displace", errno));
        let mut scene = Scene::displaced(disk);
        let beside = |scene: &Scene| {
            let names = tree::read(&scene.ws()).into_keys();
            names.filter(|name| name.ends_with(".aptix-displaced")).collect::<Vec<_>>()
        };
        assert_eq!(beside(&scene).len(), 1, "{errno:?}");
        scene.file.write_all(b"mine\n").unwrap();
        scene.sweep();
        let text = "one\ntwo\nthree\nmine\n";
        assert_eq!(scene.kept(), [text], "{errno:?}: it is named where it is");
        scene.file.write_all(b"more\n").unwrap();
        scene.disk.seconds.store(HELD_FOR.as_secs() + 120, Ordering::SeqCst);
        scene.sweep();
        assert_eq!((scene.kept(), beside(&scene)), (vec![format!("{text}more\n")], Vec::new()), "{errno:?}");

        // One that no process wrote to is removed.
        let scene = Scene::displaced(FaultyDisk::new(Fault::Without("displace", errno)));
        scene.disk.seconds.store(HELD_FOR.as_secs() + 120, Ordering::SeqCst);
        scene.sweep();
        assert_eq!((scene.held(), scene.kept()), (0, Vec::new()), "{errno:?}");

        // Once it can be moved it is.
        let mut scene = Scene::displaced(FaultyDisk::new(Fault::Without("displace", errno)));
        scene.workspace = faults::open(scene.place.path(), Fault::None).unwrap().0;
        assert_eq!((beside(&scene).len(), scene.held()), (0, 1), "{errno:?}");
        scene.file.write_all(b"mine\n").unwrap();
        scene.sweep();
        assert_eq!(scene.kept(), [text], "{errno:?}");
    }
}

#[test]
fn a_copy_that_is_cut_short_anywhere_loses_nothing() {
    for last in 0.. {
        let lacks = Fault::Without("displace", Errno::XDEV);
        let mut scene = Scene::displaced(FaultyDisk::new(lacks));
        scene.file.write_all(b"mine\n").unwrap();
        let disk = FaultyDisk::new(Fault::StopAfter(last)).lacking(lacks);
        disk.seconds.store(HELD_FOR.as_secs() + 120, Ordering::SeqCst);
        let count = Arc::clone(&disk.count);
        let _ = faults::open_on(scene.place.path(), disk);
        let disk = FaultyDisk::new(lacks);
        disk.seconds.store(HELD_FOR.as_secs() + 240, Ordering::SeqCst);
        scene.workspace = faults::open_on(scene.place.path(), disk).unwrap().0;
        assert_eq!(scene.kept(), ["one\ntwo\nthree\nmine\n"], "stopped after {last}");
        assert_eq!(tree::read(&scene.ws()).len(), 3, "stopped after {last}");
        if count.load(Ordering::SeqCst) < last {
            break;
        }
    }
}

#[test]
fn without_its_index_a_displaced_file_is_known_by_its_name() {
    for changes in [false, true] {
        let mut scene = Scene::displaced(FaultyDisk::new(Fault::None));
        let index = tree_names(scene.place.path()).into_iter().find(|name| name.ends_with("index-1")).unwrap();
        // A power cut takes it, or leaves a part.
        let text = std::fs::read(&index).unwrap();
        std::fs::write(&index, &text[..text.len() / 2]).unwrap();
        if changes {
            scene.file.write_all(b"mine\n").unwrap();
        }
        scene.workspace = faults::open(scene.place.path(), Fault::None).unwrap().0;
        let writes = scene.workspace.displaced_writes().unwrap();
        assert_eq!(writes.len(), usize::from(changes));
        assert!(writes.iter().all(|write| write.path == "a.txt"), "{writes:?}");
        assert_eq!(scene.held(), 1);
    }
}

#[test]
fn a_state_directory_that_takes_nothing_loses_no_write() {
    let (place, ws) = faults::laid_out();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let displaced = workspace.roots()[0].state().path().join("displaced");
    std::fs::write(&displaced, "in the way").unwrap();
    let mut files = open_files(&ws);
    apply_while(&workspace, &faults::batch(2, 0), &|| {}).unwrap();
    drop(workspace);
    write(&mut files, "mine");
    // Nothing can be noted: the record stays, and the next command says why it does nothing.
    let error = faults::open(place.path(), Fault::None).unwrap_err().failure();
    assert!(error.hint.is_some(), "{error}");
    std::fs::remove_file(&displaced).unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    assert_nothing_lost(&workspace, &ws, &["mine"], "in the way");
}

#[test]
fn a_full_disk_does_not_stop_the_commit_and_loses_no_write() {
    let (place, ws) = faults::laid_out();
    let lacks = Fault::WithoutAny(&["displace", "write_at", "open_own"], Errno::NOSPC);
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::new(lacks)).unwrap();
    let mut files = open_files(&ws);
    apply_while(&workspace, &faults::batch(2, 0), &|| {}).unwrap();
    assert!(std::fs::read_to_string(ws.join("a.txt")).unwrap().contains("inserted"), "the batch is applied");
    drop(workspace);
    write(&mut files, "mine");
    // Reading is possible; a batch is refused because the disk is full.
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::new(lacks)).unwrap();
    let refusal = faults::commit(&workspace, &faults::batch(0, 1), Receipt::None).unwrap_err();
    assert!(refusal.is_environment(), "{refusal:?}");
    drop(workspace);
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    assert_nothing_lost(&workspace, &ws, &["mine"], "the disk was full");
}

#[test]
fn what_has_another_name_is_not_kept_twice_and_is_deleted_with_its_last_name_alone() {
    let (place, ws) = faults::laid_out();
    // Two names of one file, replaced one after the other.
    std::fs::hard_link(ws.join("a.txt"), ws.join("c.txt")).unwrap();
    let mut file = File::options().append(true).open(ws.join("a.txt")).unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    apply_while(&workspace, &batch_of([faults::write("a.txt", "a\n", true)]), &|| {}).unwrap();
    file.write_all(b"mine\n").unwrap();
    drop(faults::open(place.path(), Fault::None).unwrap());
    assert_eq!(workspace.displaced_writes().unwrap(), []);
    apply_while(&workspace, &batch_of([faults::write("c.txt", "c\n", true)]), &|| {}).unwrap();
    file.write_all(b"more\n").unwrap();
    drop(faults::open(place.path(), Fault::None).unwrap());
    let [kept] = <[_; 1]>::try_from(workspace.displaced_writes().unwrap()).unwrap();
    assert_eq!(std::fs::read_to_string(&kept.kept_as).unwrap(), "one\ntwo\nthree\nmine\nmore\n");
}
