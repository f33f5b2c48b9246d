//! The ids that git gives to the contents of files, in full or abbreviated.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use aptix_model::batch::GitPatch;
use memchr::memmem;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Digits of a full id made with SHA-1, and with SHA-256.
const SHA1_DIGITS: usize = 40;
const SHA256_DIGITS: usize = 64;

/// Whether an id is a full one, which names one content and no other.
pub(crate) const fn is_full(id: &str) -> bool {
    matches!(id.len(), SHA1_DIGITS | SHA256_DIGITS)
}

/// Whether an id, in full or abbreviated, names a file's bytes, or its text with `\n` alone, which is what git keeps of
/// a file that it wrote with other line endings.
pub(crate) fn is_of(id: &str, bytes: &[u8]) -> bool {
    if names(id, bytes) {
        return true;
    }
    if memmem::find(bytes, b"\r\n").is_none() {
        return false;
    }
    let mut text = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            None => text.extend_from_slice(line),
        }
    }
    names(id, &text)
}

/// Whether the id of a diff, in full or abbreviated, is that of a file's bytes.
pub(crate) fn names_base(patch: &GitPatch, bytes: &[u8]) -> bool {
    patch.base_id.as_ref().is_some_and(|id| is_of(id, bytes))
}

/// The id that git gives to these bytes, in full.
pub(crate) fn full(bytes: &[u8]) -> String {
    hex(SHA1_DIGITS, bytes)
}

/// Whether an id is the one of these bytes. The length of a full id shows how it was made; an abbreviated one may be
/// either.
fn names(id: &str, bytes: &[u8]) -> bool {
    let may_be_sha1 = id.len() <= SHA1_DIGITS;
    let may_be_sha256 = id.len() != SHA1_DIGITS;
    (may_be_sha1 && begins(&sha1(bytes), id)) || (may_be_sha256 && begins(&sha256(bytes), id))
}

fn begins(full: &str, id: &str) -> bool {
    full.get(..id.len()).is_some_and(|head| head.eq_ignore_ascii_case(id))
}

/// The id of a file's bytes, with so many digits of the one that another id of that length would be.
pub(crate) fn hex(digits: usize, bytes: &[u8]) -> String {
    let mut id = if digits > SHA1_DIGITS { sha256(bytes) } else { sha1(bytes) };
    id.truncate(digits);
    id
}

fn sha1(bytes: &[u8]) -> String {
    digits(&Sha1::new_with_prefix(head(bytes)).chain_update(bytes).finalize())
}

fn sha256(bytes: &[u8]) -> String {
    digits(&Sha256::new_with_prefix(head(bytes)).chain_update(bytes).finalize())
}

fn head(bytes: &[u8]) -> String {
    format!("blob {}\0", bytes.len())
}

fn digits(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
