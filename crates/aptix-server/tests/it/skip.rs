//! Announces the tests that this machine cannot run.

use std::io::Write;

/// Announces that the calling test is skipped, and fails where nothing may be skipped. Output of a test that passes is not
/// shown, so `cargo xtask test` names a file for these lines and prints it at its end.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("APTIX_SKIP_NOTHING").is_none(), "nothing may be skipped here: {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {why}\n");
    eprint!("{line}");
    if let Some(file) = std::env::var_os("APTIX_SKIPPED") {
        let mut file = std::fs::File::options().append(true).create(true).open(file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
