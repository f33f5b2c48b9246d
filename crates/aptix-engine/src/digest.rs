//! SHA-256 of bytes, of the canonical text of a file, and of an edited file whose beginning was hashed before.

use core::cell::OnceCell;

use aptix_model::digest::Sha256Digest;
use memchr::memmem;
use sha2::{Digest, Sha256};

use crate::text::lines::{BOM, Terminator};

/// The SHA-256 of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256Digest {
    finish(Sha256::new_with_prefix(bytes))
}

/// The digest of the canonical text (UTF-8, no byte order mark, `\r\n` as `\n`); none if the bytes are no UTF-8, or
/// canonical as they are. Nothing is copied.
pub(crate) fn canonical(bytes: &[u8]) -> Option<Sha256Digest> {
    let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let mut ends = memmem::find_iter(text, b"\r\n").peekable();
    if text.len() == bytes.len() && ends.peek().is_none() {
        return None;
    }
    core::str::from_utf8(text).ok()?;
    let mut hasher = Sha256::new();
    let mut at = 0;
    for end in ends {
        hasher.update(text.get(at..end)?);
        hasher.update(b"\n");
        at = end + 2;
    }
    hasher.update(text.get(at..)?);
    Some(finish(hasher))
}

/// The digests of the lines of some bytes if all of them ended alike: with the last terminator left out, and with it.
pub(crate) fn ended_with(terminator: Terminator, bytes: &[u8]) -> [Sha256Digest; 2] {
    let mut hasher = Sha256::new();
    let body = bytes.strip_suffix(b"\n").map_or(bytes, |body| body.strip_suffix(b"\r").unwrap_or(body));
    let mut lines = body.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if lines.peek().is_none() {
            hasher.update(line);
        } else {
            hasher.update(line.strip_suffix(b"\r").unwrap_or(line));
            hasher.update(terminator.as_bytes());
        }
    }
    [finish(hasher.clone()), finish(hasher.chain_update(terminator.as_bytes()))]
}

/// The bytes of a file as they were found, hashed at most once, and not at all if their digest is known.
#[derive(Debug)]
pub(crate) struct Original<'a> {
    pub(crate) bytes: &'a [u8],
    known: Option<Sha256Digest>,
    hashed: OnceCell<Hashed>,
}

/// A digest, and the state of the hash after the first bytes.
#[derive(Debug)]
struct Hashed {
    digest: Sha256Digest,
    shared: usize,
    after_shared: Sha256,
}

impl<'a> Original<'a> {
    pub(crate) const fn new(bytes: &'a [u8], known: Option<Sha256Digest>) -> Self {
        Self { bytes, known, hashed: OnceCell::new() }
    }

    /// The digest. If it has to be computed, the state after the first `shared` bytes, which a result will have
    /// too, is kept.
    pub(crate) fn digest(&self, shared: usize) -> Sha256Digest {
        self.known.unwrap_or_else(|| {
            let hash = || {
                let (head, tail) = self.bytes.split_at(shared.min(self.bytes.len()));
                let after_shared = Sha256::new_with_prefix(head);
                let digest = finish(after_shared.clone().chain_update(tail));
                Hashed { digest, shared: head.len(), after_shared }
            };
            self.hashed.get_or_init(hash).digest
        })
    }

    /// The digest of a result that begins with the shared bytes.
    pub(crate) fn digest_of_result(&self, result: &[u8]) -> Sha256Digest {
        let hashed = self.hashed.get().and_then(|hashed| Some((hashed, result.get(hashed.shared..)?)));
        match hashed {
            Some((hashed, tail)) => finish(hashed.after_shared.clone().chain_update(tail)),
            None => sha256(result),
        }
    }
}

fn finish(hasher: Sha256) -> Sha256Digest {
    Sha256Digest::from_bytes(hasher.finalize().into())
}
