//! The kernel's wall: nothing is written outside, however it is tried; inside, all that a commit does still works.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use aptix_client::workspace::wall::{Wall, raise};

use crate::skip::skip;

/// Does this behind a wall around `inside`, in a thread of its own, which alone is behind it.
fn behind_the_wall(inside: &Path, attempt: impl FnOnce() + Send) {
    let behind = || match raise(&[inside.to_owned(), inside.join("never-made")]) {
        Wall::Up { .. } => attempt(),
        Wall::Absent(why) => skip(&format!("the kernel has no Landlock: {why}")),
    };
    std::thread::scope(|scope| scope.spawn(behind).join().unwrap());
}

#[test]
fn nothing_is_written_outside_the_wall() {
    let place = tempfile::tempdir().unwrap();
    let [inside, outside] = ["inside", "outside"].map(|name| place.path().join(name));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    for path in [inside.join("a"), outside.join("a"), outside.join("b")] {
        fs::write(path, "before").unwrap();
    }
    symlink(&outside, inside.join("way-out")).unwrap();
    symlink(outside.join("a"), inside.join("link-out")).unwrap();
    behind_the_wall(&inside, || {
        let attempts: [(&str, std::io::Result<()>); 11] = [
            ("write", fs::write(outside.join("a"), "after")),
            ("create", fs::write(outside.join("new"), "after")),
            ("write through a link", fs::write(inside.join("link-out"), "after")),
            ("create through a link", fs::write(inside.join("way-out/new"), "after")),
            ("write by ..", fs::write(inside.join("../outside/a"), "after")),
            ("remove", fs::remove_file(outside.join("b"))),
            ("make a directory", fs::create_dir(outside.join("dir"))),
            ("rename there", fs::rename(outside.join("a"), outside.join("c"))),
            ("move out", fs::rename(inside.join("a"), outside.join("c"))),
            ("move in", fs::rename(outside.join("a"), inside.join("c"))),
            ("link out", fs::hard_link(inside.join("a"), outside.join("c"))),
        ];
        for (attempt, outcome) in attempts {
            let kind = outcome.map_err(|error| error.kind());
            assert!(
                matches!(kind, Err(ErrorKind::PermissionDenied | ErrorKind::CrossesDevices)),
                "{attempt}: {kind:?}"
            );
        }
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "before", "reading is not what it is about");
        symlink("a", inside.join("link")).unwrap_err();
    });
    let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn inside_the_wall_all_that_a_commit_does_still_works() {
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("inside");
    fs::create_dir(&inside).unwrap();
    behind_the_wall(&inside, || {
        fs::create_dir_all(inside.join("x/y")).unwrap();
        fs::write(inside.join("x/y/a"), "1").unwrap();
        fs::write(inside.join("x/y/a"), "2").unwrap();
        fs::rename(inside.join("x/y/a"), inside.join("a")).unwrap();
        fs::hard_link(inside.join("a"), inside.join("b")).unwrap();
        fs::remove_file(inside.join("a")).unwrap();
        fs::remove_dir(inside.join("x/y")).unwrap();
        fs::write("/dev/null", "x").unwrap();
    });
}

/// Commands that open a root are behind the wall before they read their document: the kernel shows it of the process. Those
/// that only read the files are too, since opening a root finishes an interrupted batch.
#[test]
fn commands_that_open_a_root_are_behind_the_wall() {
    if let Wall::Absent(why) = std::thread::spawn(|| raise(&[])).join().unwrap() {
        return skip(&format!("the kernel has no Landlock: {why}"));
    }
    for arguments in [&["apply", "--json"][..], &["apply", "--dry-run"], &["convert", "--to", "git-patch"]] {
        is_behind_the_wall(arguments);
    }
}

fn is_behind_the_wall(arguments: &[&str]) {
    use std::process::{Command, Stdio};
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("ws")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(arguments)
        .current_dir(place.path().join("ws"))
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let tasks = format!("/proc/{}/task", child.id());
    let threads = || {
        let tasks = fs::read_dir(&tasks).unwrap().filter_map(Result::ok);
        tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).collect::<Vec<_>>()
    };
    let is_behind = |status: &String| status.lines().any(|line| line == "NoNewPrivs:\t1");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    // It waits for its document, with threads that were all started behind the wall.
    while !(threads().len() > 1 && threads().iter().all(is_behind)) {
        assert!(std::time::Instant::now() < deadline, "{arguments:?} is not behind the wall");
        std::thread::yield_now();
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}
