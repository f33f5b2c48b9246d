//! The words to start a server behind, so that `strace` traces it or lets its system calls fail. The tracer is detached: the
//! server is the child of whoever starts it, and can be killed.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Words to start a program behind, all of whose threads are traced at these calls and get this fault; where paths are given, only
/// at calls on those, and only these are counted.
pub(crate) fn behind(calls: &str, fault: &str, paths: &[PathBuf]) -> Vec<String> {
    let mut words = traced(calls, Path::new("/dev/null"));
    words.extend(paths.iter().flat_map(|path| ["-P".to_owned(), path.display().to_string()]));
    words.extend(["-e".to_owned(), format!("inject={fault}")]);
    words
}

/// A directory, and everything in it.
pub(crate) fn everything_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![directory.to_owned()];
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            paths.extend(everything_in(&entry.path())?);
        } else {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// Words to start a program behind, all of whose threads are traced at these calls into a file, with the paths of descriptors.
pub(crate) fn traced(calls: &str, into: &Path) -> Vec<String> {
    let words = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-y", "-o"].map(str::to_owned);
    words.into_iter().chain([into.display().to_string(), "-e".to_owned(), format!("trace={calls}")]).collect()
}
