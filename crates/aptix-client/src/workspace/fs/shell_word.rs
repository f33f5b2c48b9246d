//! Paths in commands that a message offers.

use std::path::Path;

/// A path as one word of a shell's command line.
pub(crate) fn shell_word(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,@%".contains(&byte);
    if !path.is_empty() && path.bytes().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
