//! Paths that lead to no file that can be read, and the reason that a reader is answered for each.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// What every file holds.
pub(crate) const TEXT: &str = "zebra\n";

/// The files that can be read, and whose names say what they are, in the order of a list.
pub(crate) const LISTED: [&str; 5] = ["Lone.txt", "a.txt", "dir/TWIN.txt", "dir/Twin.txt", "sparse.bin"];

/// Lays out a root called `ws`, and the directory `elsewhere` beside it. Answers paths with what a read of them is refused for;
/// one that begins with `key:` is a docPath.
pub(crate) fn lay_out(root: &Path, elsewhere: &Path) -> Vec<(&'static str, &'static str)> {
    for directory in [root.join("dir"), elsewhere.to_owned()] {
        fs::create_dir_all(directory).unwrap();
    }
    for name in ["a.txt", "dir/Twin.txt", "dir/TWIN.txt", "Lone.txt"] {
        fs::write(root.join(name), TEXT).unwrap();
    }
    fs::write(elsewhere.join("x.txt"), TEXT).unwrap();
    let not_utf8 = root.join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&not_utf8).unwrap();
    fs::write(not_utf8.join("x.txt"), TEXT).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"not\xffutf8.txt")), TEXT).unwrap();
    let make = |path: &str, kind| mknodat(CWD, root.join(path), kind, Mode::from_raw_mode(0o600), makedev(1, 3));
    make("fifo", FileType::Fifo).unwrap();
    // Only a privileged user can make one.
    let has_device = make("device", FileType::CharacterDevice).is_ok();
    UnixListener::bind(root.join("socket")).unwrap();
    fs::File::create(root.join("sparse.bin")).unwrap().set_len(10 << 30).unwrap();
    for (target, link) in [
        ("../elsewhere/x.txt", "out"),
        ("../elsewhere", "outdir"),
        ("/etc/passwd", "absolute"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("fifo", "to-fifo"),
        ("a.txt", "inside"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let mut rows = vec![
        ("nowhere.txt", "NOT_FOUND"),
        ("no/where.txt", "NOT_FOUND"),
        ("caf\u{fffd}/x.txt", "NOT_FOUND"),
        ("not\u{fffd}utf8.txt", "NOT_FOUND"),
        ("A.txt", "AMBIGUOUS_PATH.CASE_COLLISION"),
        ("key:ws/dir/twin.txt", "AMBIGUOUS_PATH.CASE_COLLISION"),
        ("key:nowhere/a.txt", "INVALID_PATH.UNKNOWN_ROOT"),
        ("dir", "INVALID_PATH.NOT_REGULAR"),
        ("key:ws/dir", "INVALID_PATH.NOT_REGULAR"),
        ("fifo", "INVALID_PATH.NOT_REGULAR"),
        ("socket", "INVALID_PATH.NOT_REGULAR"),
        ("to-fifo", "INVALID_PATH.NOT_REGULAR"),
        ("a.txt/x", "INVALID_PATH.NOT_DIRECTORY"),
        ("out", "INVALID_PATH.SYMLINK"),
        ("outdir/x.txt", "INVALID_PATH.SYMLINK"),
        ("absolute", "INVALID_PATH.SYMLINK"),
        ("dangling", "INVALID_PATH.SYMLINK"),
        ("loop", "INVALID_PATH.SYMLINK"),
        ("sparse.bin", "TOO_LARGE.FILE"),
    ];
    rows.extend(has_device.then_some(("device", "INVALID_PATH.NOT_REGULAR")));
    rows
}
