//! Staged files whose record a power cut has taken, known again by their names alone.
//!
//! The name of a staged file is random, and ends in what only this root and these random digits come to. A file of such
//! a name that no record speaks of was never published: nobody has ever seen it as anything else.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use aptix_model::protection::{self, Protection};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk;
use crate::workspace::keep::{history, outbox};
use crate::workspace::roots::root::Root;

/// How the name of a staged file ends.
const ENDING: &str = ".aptix-tmp";
/// Hexadecimal digits that nobody can foresee, and as many that follow from them.
const DIGITS: usize = 16;

/// A name that nothing else has, for a file that is staged in a root.
pub(in crate::workspace) fn staged_name(root: &OsStr) -> String {
    let random = disk::random_digits();
    let random = random.get(..DIGITS).unwrap_or_default();
    format!(".{random}{}{ENDING}", mark(root, random))
}

/// Whether a file of this name was staged in a root.
fn is_staged_in(root: &OsStr, name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING));
    let parts = digits.and_then(|digits| digits.split_at_checked(DIGITS));
    parts.is_some_and(|(random, rest)| rest == mark(root, random))
}

/// Whether a file of this name may have been staged in some root, wherever that was then.
pub(in crate::workspace) fn is_staged(name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING)).unwrap_or_default();
    digits.len() == 2 * DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn mark(root: &OsStr, random: &str) -> String {
    let mut text = aptix_engine::digest::sha256(&[root.as_bytes(), b"\n", random.as_bytes()].concat()).to_string();
    text.truncate(DIGITS);
    text
}

/// Removes what commits had staged in a root, and kept in its state, that never came to their commit point and whose
/// record is lost.
///
/// # Errors
/// When the system refuses to look or to remove.
pub(in crate::workspace) fn sweep(workspace: &Workspace, root: &Root) -> Result<(), Errno> {
    let mut removed = 0;
    let mut dirs = vec![String::new()];
    while let Some(path) = dirs.pop() {
        // What is not to be entered was not written in either: other mounts, directories closed to us.
        let Ok(dir) = beneath::open_dir(root.dir(), &path) else { continue };
        let Ok(readable) = disk::open_readable(dir.as_fd()) else { continue };
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    beneath::look_up(dir.as_fd(), name)?.map(|stat| FileType::from_raw_mode(stat.st_mode))
                }
                kind => Some(kind),
            };
            let is_closed = || protection::of(name) == Some(Protection::Protected);
            match kind {
                Some(FileType::Directory) if !matches!(name, "." | "..") && !is_closed() => {
                    dirs.push(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") });
                }
                Some(FileType::RegularFile) if is_staged_in(root.path().as_os_str(), name) => {
                    disk::unlink_if_there(workspace.disk(), dir.as_fd(), name)?;
                    removed += 1;
                }
                _ => {}
            }
        }
    }
    if removed > 0 {
        tracing::warn!(removed, "a power cut had left files that a batch had staged; they are cleared away");
    }
    history::discard_drafts(workspace.disk(), root.state()).map_err(|error| error.errno())?;
    outbox::drop_unclaimed(workspace.disk(), root.state()).map_err(|error| error.errno())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_file_is_known_by_its_name_in_its_own_root_alone() {
        let [here, there] = ["/here/project", "/there/project"].map(OsStr::new);
        let name = staged_name(here);
        assert!(is_staged_in(here, &name), "{name}");
        assert_ne!(name, staged_name(here));
        assert!(!is_staged_in(there, &name), "{name}");
        let uuid = ".0190b3a000007000800000000000000f.aptix-tmp";
        for other in [uuid, ".aptix-tmp", "..aptix-tmp", "x", ".é.aptix-tmp", &name[1..], &format!("{name}-old")] {
            assert!(!is_staged_in(here, other), "{other}");
        }
        assert!(is_staged(&name));
        for other in [".aptix-tmp", "x", "../x.aptix-tmp", ".é.aptix-tmp", &name[1..], &format!("../{name}")] {
            assert!(!is_staged(other), "{other}");
        }
    }
}
