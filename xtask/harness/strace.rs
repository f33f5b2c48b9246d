//! Programs behind `strace`, which lets system calls of theirs fail.

use std::process::Command;

/// Why `strace` cannot be used here.
pub(crate) fn obstacle() -> Option<String> {
    match Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output() {
        Err(error) => Some(format!("strace cannot be started ({error}); install the package strace")),
        Ok(output) if !output.status.success() => {
            Some(format!("strace may not trace here: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
        Ok(_) => None,
    }
}
