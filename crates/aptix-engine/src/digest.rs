//! SHA-256 of bytes, of the canonical text of a file, and of an edited file whose beginning was hashed before.

use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

use crate::text::BOM;

/// The SHA-256 of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256Digest {
    finish(Sha256::new_with_prefix(bytes))
}

/// Whether `stated` is the digest of the canonical text: UTF-8, no byte order mark, `\r\n` as `\n`.
pub(crate) fn is_canonical(stated: Sha256Digest, bytes: &[u8]) -> bool {
    canonical(bytes) == Some(stated)
}

/// Whether `stated` is the digest of the bytes or of their canonical text.
pub(crate) fn is_digest_of(stated: Sha256Digest, bytes: &[u8]) -> bool {
    sha256(bytes) == stated || is_canonical(stated, bytes)
}

/// The digest of the canonical text, if the bytes are UTF-8. Nothing is copied.
fn canonical(bytes: &[u8]) -> Option<Sha256Digest> {
    core::str::from_utf8(bytes).ok()?;
    let mut rest = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let mut hasher = Sha256::new();
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        let (head, tail) = rest.split_at(at);
        hasher.update(head);
        hasher.update(b"\n");
        rest = tail.get(2..).unwrap_or_default();
    }
    hasher.update(rest);
    Some(finish(hasher))
}

/// The digest of a base, and the state of the hash where the edited text begins to differ from it.
#[derive(Debug)]
pub(crate) struct BaseDigest {
    /// The digest of the base.
    pub(crate) digest: Sha256Digest,
    shared: usize,
    after_shared: Sha256,
}

impl BaseDigest {
    /// Hashes a base whose first `shared` bytes will be the result's too.
    pub(crate) fn new(base: &[u8], shared: usize) -> Self {
        let shared = shared.min(base.len());
        let (head, tail) = base.split_at(shared);
        let after_shared = Sha256::new_with_prefix(head);
        let digest = finish(after_shared.clone().chain_update(tail));
        Self { digest, shared, after_shared }
    }

    /// The digest of a result that begins with the shared bytes.
    pub(crate) fn of_result(&self, result: &[u8]) -> Sha256Digest {
        match result.get(self.shared..) {
            Some(tail) => finish(self.after_shared.clone().chain_update(tail)),
            None => sha256(result),
        }
    }
}

fn finish(hasher: Sha256) -> Sha256Digest {
    Sha256Digest::from_bytes(hasher.finalize().into())
}
