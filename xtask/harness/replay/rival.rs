//! `git apply` on the same patches, in a folder of its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::history::FileChange;
use crate::memory::File;

/// Whether git makes of the files what the commit made of them, and how long it took.
#[expect(clippy::disallowed_methods, reason = "git works on files in a folder of its own")]
pub(crate) fn git_apply(patch: &[u8], files: &[&FileChange]) -> Result<(bool, Duration)> {
    let folder = tempfile::tempdir()?;
    for file in files {
        let Some(before) = &file.before else { continue };
        let path = folder.path().join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &before.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(if before.is_executable { 0o755 } else { 0o644 }))?;
    }
    let start = Instant::now();
    let mut git = Command::new("git")
        .current_dir(folder.path())
        .args(["apply", "--whitespace=nowarn", "-"])
        .env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap_or(folder.path()))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    git.stdin.take().context("stdin is a pipe")?.write_all(patch)?;
    let status = git.wait()?;
    let time = start.elapsed();
    let is_as_committed = |file: &FileChange| {
        let path = folder.path().join(&file.path);
        let now = fs::read(&path).ok().map(|bytes| File {
            bytes,
            is_executable: fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o100 != 0),
        });
        now == file.after
    };
    Ok((status.success() && files.iter().all(|file| is_as_committed(file)), time))
}
