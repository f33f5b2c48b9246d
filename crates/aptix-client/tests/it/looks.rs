//! Counts how often a command looks at files, whatever it looks at them for, and how often it waits for the disk.

use std::path::Path;
use std::process::{Command, Stdio};

/// How many system calls that look at files a command makes in a place; `None` where they cannot be counted. Up to a dozen
/// depend on which of its threads is first.
pub(crate) fn looks(place: &Path, arguments: &[&str], document: &str) -> Option<usize> {
    // A call that another thread interrupts has a second line, and how much memory threads take depends on their order.
    let is_look = |call: &&str| !call.contains(" resumed>") && !call.contains("MAP_ANONYMOUS");
    traced(place, arguments, document, 0).map(|calls| calls.lines().filter(is_look).count())
}

/// How often a command waits in a place until a disk has what was written; `None` where that cannot be counted.
pub(crate) fn flushes(place: &Path, arguments: &[&str], document: &str, code: i32) -> Option<usize> {
    let is_flush = |call: &&str| ["fsync(", "fdatasync(", "syncfs("].iter().any(|name| call.contains(name));
    traced(place, arguments, document, code).map(|calls| calls.lines().filter(is_flush).count())
}

/// The system calls about files of a command that ends with this code.
fn traced(place: &Path, arguments: &[&str], document: &str, code: i32) -> Option<String> {
    let (trace, input) = (place.join("trace"), place.join("document"));
    std::fs::write(&input, document).unwrap();
    let status = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=%file,%desc,getdents64", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_aptix"))
        .args(arguments)
        .current_dir(place.join("ws"))
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.code() == Some(code)).then(|| std::fs::read_to_string(&trace).unwrap())
}
