//! Simulated time, which stands still while anything works and moves on to the next timer when all is idle; and the time of day, which
//! jumps. One time of day is that of every history which is played at that moment.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// Names the file that has the distance from the true time of day, in seconds with a sign.
const FILE: &str = "FAKETIME_TIMESTAMP_FILE";

/// Lets simulated time pass.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Lets real time pass on a thread for blocking work, meanwhile simulated time stands still.
pub(crate) fn pass_really(time: Duration) {
    std::thread::sleep(time);
}

/// Starts this program once more with a time of day that it can set, and exits as that does. Where the library for it is missing, names
/// what is skipped and returns; nothing may be skipped if `skip_nothing`.
///
/// # Errors
/// When the library is missing and nothing may be skipped, or the program cannot be started.
#[expect(clippy::disallowed_methods, reason = "the files of a harness are no user's")]
pub(crate) fn own_time_of_day(skip_nothing: bool) -> Result<()> {
    if env::var_os(FILE).is_some() {
        return Ok(());
    }
    let Some(library) = library() else {
        ensure!(!skip_nothing, "libfaketime is missing (Debian: apt-get install faketime)");
        println!("jumps of the time of day are skipped: libfaketime is missing (Debian: apt-get install faketime)");
        return Ok(());
    };
    let place = tempfile::tempdir()?;
    let file = place.path().join("time");
    fs::write(&file, "+0")?;
    let status = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env("LD_PRELOAD", library)
        .env(FILE, &file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .status()?;
    place.close()?;
    exit(status.code().unwrap_or(1))
}

/// Sets the time of day, by seconds from the true one. Does nothing where it cannot be set.
#[expect(clippy::disallowed_methods, reason = "the files of a harness are no user's")]
pub(crate) fn set(seconds: i64) -> Result<()> {
    let Some(file) = env::var_os(FILE).map(PathBuf::from) else { return Ok(()) };
    let next = tempfile::NamedTempFile::new_in(file.parent().context("the time's file has no directory")?)?;
    fs::write(next.path(), format!("{seconds:+}"))?;
    next.persist(&file)?;
    Ok(())
}

fn library() -> Option<PathBuf> {
    let directories =
        ["/usr/lib", "/usr/local/lib"].map(Path::new).into_iter().filter_map(|path| fs::read_dir(path).ok());
    let places =
        directories.flatten().filter_map(Result::ok).map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    places.into_iter().find(|path| path.exists())
}
