//! The names of staged files: random digits, and a checksum of these digits and the root.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::workspace::fs::disk;

/// How the name of a staged file ends.
const ENDING: &str = ".aptix-tmp";
/// Hexadecimal digits that cannot be predicted, and as many of the checksum.
const DIGITS: usize = 16;

/// A name that nothing else has, for a file that is staged in a root.
pub(crate) fn staged_name(root: &OsStr) -> String {
    let random = disk::random_digits();
    let (random, _) = random.split_at(DIGITS);
    format!(".{random}{}{ENDING}", mark(root, random))
}

/// Whether a file of this name was staged in a root.
pub(crate) fn is_staged_in(root: &OsStr, name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING));
    let parts = digits.and_then(|digits| digits.split_at_checked(DIGITS));
    parts.is_some_and(|(random, rest)| rest == mark(root, random))
}

/// Whether a file of this name may have been staged in some root, wherever that was then.
pub(crate) fn is_staged(name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|name| name.strip_suffix(ENDING)).unwrap_or_default();
    digits.len() == 2 * DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn mark(root: &OsStr, random: &str) -> String {
    let mut text = aptix_engine::digest::sha256(&[root.as_bytes(), b"\n", random.as_bytes()].concat()).to_string();
    text.truncate(DIGITS);
    text
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
