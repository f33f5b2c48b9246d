//! The ids that git gives to the contents of files.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use memchr::memmem;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Whether a full id, by its length of SHA-1 or SHA-256, is that of a file's bytes, or of its text with `\n` alone, which
/// is what git keeps of a file that it wrote with other line endings.
pub(super) fn is_of(id: &str, bytes: &[u8]) -> bool {
    if hex(id, bytes).eq_ignore_ascii_case(id) {
        return true;
    }
    let ends: Vec<usize> = memmem::find_iter(bytes, b"\r\n").collect();
    if ends.is_empty() {
        return false;
    }
    let mut text = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for end in ends {
        text.extend_from_slice(bytes.get(from..end).unwrap_or_default());
        from = end + 1;
    }
    text.extend_from_slice(bytes.get(from..).unwrap_or_default());
    hex(id, &text).eq_ignore_ascii_case(id)
}

/// The id of a blob, made in the way in which another id was.
pub(super) fn hex(like: &str, bytes: &[u8]) -> String {
    let head = format!("blob {}\0", bytes.len());
    if like.len() == 64 {
        digits(&Sha256::new_with_prefix(head).chain_update(bytes).finalize())
    } else {
        digits(&Sha1::new_with_prefix(head).chain_update(bytes).finalize())
    }
}

fn digits(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
