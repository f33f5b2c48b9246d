//! The surroundings of a batch's files: mounts, closed files, running programs, other batches, a root that is replaced.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use aptix_client::apply::Refusal;
use aptix_model::batch::{Batch, Content, CreateFile, FileEdit, FilePatch, Target};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Report;

use crate::faults::apply_while;
use crate::faults::{self, Fault, FaultyDisk, Receipt, Watcher};
use crate::skip::skip;
use crate::tree;

/// A batch that puts content in the place of whatever file there is.
fn overwrite(path: &str, content: &str) -> Batch {
    let edit = FileEdit::CreateFile(CreateFile {
        content: Content::Text(content.to_owned()),
        overwrite: true,
        content_format: None,
    });
    let file = FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit };
    Batch { files: vec![file], ..Batch::default() }
}

fn create(path: &str, content: &str) -> Batch {
    let mut batch = overwrite(path, content);
    batch.files[0].edit = FileEdit::CreateFile(CreateFile {
        content: Content::Text(content.to_owned()),
        overwrite: false,
        content_format: None,
    });
    batch
}

#[test]
fn what_is_mounted_in_a_root_is_not_of_the_root() {
    let place = tempfile::tempdir().unwrap();
    for dir in ["ws/d", "other"] {
        std::fs::create_dir_all(place.path().join(dir)).unwrap();
    }
    for file in ["ws/f", "other/x"] {
        std::fs::write(place.path().join(file), "x\n").unwrap();
    }
    let before = tree::read(place.path());
    for path in ["d/x", "d/new", "d/deep/new", "f"] {
        std::fs::write(
            place.path().join("document"),
            format!(r#"{{"path":"{path}","content":"y\n","overwrite":true}}"#),
        )
        .unwrap();
        // The mounts are the child's alone, and go with it.
        let script = "mount --bind other ws/d && mount --bind other/x ws/f || exit 77
            exec \"$0\" apply --json --root ws=ws document";
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_aptix")])
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env("XDG_CONFIG_HOME", place.path().join("config"))
            .output();
        let Some(output) = output.ok().filter(|output| output.status.code() != Some(77)) else {
            skip("nothing can be mounted here");
            return;
        };
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &answer["errors"][0];
        assert_eq!((&error["code"], &error["detail"]), (&"INVALID_PATH".into(), &"CROSS_DEVICE".into()), "{answer}");
        let mut now = tree::read(place.path());
        now.retain(|name, _| name.starts_with("ws") || name.starts_with("other"));
        tree::assert_same(&now, &before, path);
    }
}

/// Opens what `chattr` has closed, when it is dropped, so that it can be removed.
struct Closed<'a>(&'a Path, &'static str);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let opened = Command::new("chattr").arg(self.1.replace('+', "-")).arg(self.0).status();
        assert!(opened.unwrap().success());
    }
}

fn close<'a>(path: &'a Path, how: &'static str) -> Option<Closed<'a>> {
    let closed = Command::new("chattr").arg(how).arg(path).output();
    let is_closed = closed.is_ok_and(|output| output.status.success());
    if !is_closed {
        skip(&format!("chattr {how} needs root, and a file system that has it"));
    }
    is_closed.then_some(Closed(path, how))
}

fn assert_closed(outcome: Result<Report, Refusal>, what: &str) {
    let failure = outcome.unwrap_err().failures.remove(0);
    assert_eq!((failure.reason, failure.detail), (Reason::WriteFailed, Some(Detail::Immutable)), "{what}: {failure}");
}

#[test]
fn a_file_that_is_closed_to_changes_refuses_the_batch_before_anything_is_written() {
    for (path, how) in [("dir/b.txt", "+i"), ("dir/b.txt", "+a"), ("dir", "+i")] {
        for meanwhile in [false, true] {
            let what = format!("{path}, {how}, closed meanwhile: {meanwhile}");
            let place = tempfile::tempdir().unwrap();
            faults::lay_out(place.path());
            let ws = place.path().join("ws");
            let (before, path) = (tree::read(&ws), ws.join(path));
            let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
            let closed = std::cell::Cell::new(None);
            let close = || {
                let done = close(&path, how);
                let is_done = done.is_some();
                closed.set(done);
                is_done
            };
            if !meanwhile && !close() {
                return;
            }
            let outcome = apply_while(&workspace, &faults::batch(2, 0), &|| {
                if meanwhile {
                    close();
                }
            });
            assert_closed(outcome, &what);
            drop(closed.take());
            tree::assert_same(&tree::read(&ws), &before, &what);
            crate::scenarios::assert_no_debris(place.path(), &what);
        }
    }
}

#[test]
fn a_program_that_is_running_is_replaced_and_runs_on() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let tool = place.path().join("ws/tool");
    std::fs::copy("/bin/sleep", &tool).unwrap();
    let mut running = Command::new(&tool).arg("600").spawn().unwrap();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &overwrite("tool", "#!/bin/sh\n"), Receipt::None).unwrap();
    assert_eq!(std::fs::read_to_string(&tool).unwrap(), "#!/bin/sh\n");
    assert!(running.try_wait().unwrap().is_none(), "it runs on");
    running.kill().unwrap();
    running.wait().unwrap();
    crate::scenarios::assert_no_debris(place.path(), "replaced");
}

#[test]
fn of_two_batches_that_create_one_file_one_wins() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    for round in 0..20 {
        let path = format!("dir/{round}.txt");
        let outcomes = std::thread::scope(|scope| {
            let ours = ["one\n", "other\n"].map(|content| {
                let (place, path) = (place.path(), &path);
                scope.spawn(move || {
                    let (workspace, _) = faults::open(place, Fault::None).unwrap();
                    (faults::commit(&workspace, &create(path, content), Receipt::None), content)
                })
            });
            ours.map(|thread| thread.join().unwrap())
        });
        let found = std::fs::read_to_string(place.path().join("ws").join(&path)).unwrap();
        for (outcome, content) in outcomes {
            match outcome {
                Ok(_) => assert_eq!(found, content),
                Err(refusal) => {
                    assert_ne!(found, content);
                    assert_eq!(refusal.failures[0].reason, Reason::FileExists, "{}", refusal.failures[0]);
                }
            }
        }
    }
    crate::scenarios::assert_no_debris(place.path(), "created");
}

#[test]
fn a_staged_file_that_another_process_writes_is_not_published() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let ws = place.path().join("ws");
    let before = tree::read(&ws);
    let watcher: Watcher = Arc::new({
        let ws = ws.clone();
        move |kind, _, _| {
            let staged = tree::read(&ws).into_keys().find(|name| name.ends_with(".aptix-tmp"));
            if let Some(staged) = staged.filter(|_| kind == "sync") {
                std::fs::write(ws.join(staged), "theirs\n").unwrap();
            }
        }
    });
    let (workspace, _) = faults::open_on(place.path(), FaultyDisk::watched(Fault::None, watcher)).unwrap();
    let refusal = faults::commit(&workspace, &faults::batch(2, 1), Receipt::None).unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::HashFailed, "{}", refusal.failures[0]);
    tree::assert_same(&tree::read(&ws), &before, "tampered with");
    crate::scenarios::assert_no_debris(place.path(), "tampered with");
}

#[test]
fn a_root_that_is_replaced_meanwhile_is_written_where_it_went() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let [ws, moved] = ["ws", "moved"].map(|name| place.path().join(name));
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    apply_while(&workspace, &faults::batch(2, 1), &|| {
        std::fs::rename(&ws, &moved).unwrap();
        faults::lay_out(place.path());
    })
    .unwrap();
    assert_eq!(std::fs::read_to_string(ws.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(!ws.join("new.txt").exists());
    assert_eq!(std::fs::read_to_string(moved.join("a.txt")).unwrap(), "one\ninserted\ntwo\nthree\n");
    crate::scenarios::assert_no_debris(place.path(), "moved");
}

#[test]
fn a_journal_that_cannot_be_read_is_never_taken_for_none() {
    for part in ["staging", "committed", "undoing", "finishing", "elsewhere", "ahead"] {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
        let part = workspace.roots()[0].state().path().join("journal").join(part);
        // Reading a directory fails for every user.
        std::fs::create_dir(&part).unwrap();
        std::fs::write(part.join("x"), "x").unwrap();
        let failure = faults::open(place.path(), Fault::None).unwrap_err().failure();
        assert_eq!(failure.reason, Reason::NeedsOperator, "{part:?}: {failure}");
        assert!(failure.hint.is_some(), "{failure}");
        let refusal = faults::commit(&workspace, &faults::batch(1, 0), Receipt::None).unwrap_err();
        assert_eq!(std::fs::read(place.path().join("ws/a.txt")).unwrap(), b"one\ntwo\nthree\n", "{part:?}");
        assert!(refusal.is_environment(), "{part:?}: {}", refusal.failures[0]);
    }
}

/// What the command says of a file that is written, in a workspace of its own; and what the file has then.
fn apply_behind(wrapper: &[&str], path: &str) -> Option<(String, String, tree::Tree)> {
    let place = tempfile::tempdir().unwrap();
    for dir in ["ws/dir/sub", "outside"] {
        std::fs::create_dir_all(place.path().join(dir)).unwrap();
    }
    for file in ["ws/a", "ws/dir/b", "outside/c"] {
        std::fs::write(place.path().join(file), "x\n").unwrap();
    }
    for (target, link) in [("dir", "in"), ("../outside", "out"), ("dir/b", "file"), ("../outside/c", "leak")] {
        std::os::unix::fs::symlink(target, place.path().join("ws").join(link)).unwrap();
    }
    let document = format!(r#"{{"path":"{path}","content":"y\n","overwrite":true}}"#);
    std::fs::write(place.path().join("document"), document).unwrap();
    let command = [wrapper, &[env!("CARGO_BIN_EXE_aptix"), "apply", "--json", "--root", "ws=ws", "document"]].concat();
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(place.path())
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .output()
        .ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let error = &answer["errors"][0];
    let mut now = tree::read(place.path());
    now.retain(|name, _| name.starts_with("ws") || name.starts_with("outside"));
    Some((error["code"].to_string(), error["detail"].to_string(), now))
}

#[test]
fn a_kernel_that_cannot_open_beneath_is_served_in_the_same_way() {
    let without = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=openat2:error=ENOSYS"];
    for path in
        ["a", "dir/b", "new", "dir/new/deep/x", "in/b", "in/new", "file", "out/c", "out/new", "leak", "dir", "a/x"]
    {
        let expected = apply_behind(&[], path).unwrap();
        let Some(found) = apply_behind(&without, path) else {
            skip("there is no strace, or it may not trace");
            return;
        };
        assert_eq!((&found.0, &found.1), (&expected.0, &expected.1), "{path}");
        tree::assert_same(&found.2, &expected.2, path);
    }
}

#[test]
fn a_directory_that_may_be_written_and_not_be_read_is_refused_before_anything_is_touched() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    /// Root may read everything; this user owns nothing else.
    const NOBODY: u32 = 65534;
    let place = tempfile::tempdir().unwrap();
    let aptix = place.path().join("aptix");
    std::fs::copy(env!("CARGO_BIN_EXE_aptix"), &aptix).unwrap();
    for dir in ["ws", "ws/a", "ws/d", "state", "config"] {
        std::fs::create_dir(place.path().join(dir)).unwrap();
    }
    for file in ["ws/a/f", "ws/d/f"] {
        std::fs::write(place.path().join(file), "x\n").unwrap();
    }
    let edit = |file| format!("*** Update File: {file}\n@@\n-x\n+y\n");
    let document = format!("*** Begin Patch\n{}{}*** End Patch\n", edit("a/f"), edit("d/f"));
    std::fs::write(place.path().join("document"), document).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for entry in ["", "aptix", "document", "ws", "ws/a", "ws/a/f", "ws/d", "ws/d/f", "state", "config"] {
        if is_root {
            std::os::unix::fs::chown(place.path().join(entry), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let closed = place.path().join("ws/d");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o311)).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let mut command = Command::new(&aptix);
        command.args(["apply", "--json", "--root", "ws=ws", "document"]).args(more).current_dir(place.path());
        for (name, dir) in [("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("HOME", "config")] {
            command.env(name, place.path().join(dir));
        }
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &answer["errors"][0];
        assert_eq!(
            (&error["code"], &error["detail"]),
            (&"WRITE_FAILED".into(), &"PERMISSION".into()),
            "{more:?}: {answer}"
        );
        assert_eq!(error["path"], "d/f", "{more:?}: {answer}");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
        let names: Vec<_> = tree::read(&place.path().join("ws")).into_keys().collect();
        assert_eq!(names, ["a", "a/f", "d", "d/f"], "{more:?}");
        assert_eq!(std::fs::read_to_string(place.path().join("ws/a/f")).unwrap(), "x\n");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o311)).unwrap();
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}
