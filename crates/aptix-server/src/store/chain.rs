//! The digests that tell histories apart: each covers a commit's content and, through the digest before it, every commit
//! before that one.

use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

/// The digest after a commit that wrote these parts.
pub(super) fn next<'a>(previous: Option<Sha256Digest>, parts: impl IntoIterator<Item = &'a [u8]>) -> Sha256Digest {
    let mut hasher = Sha256::new();
    hasher.update(previous.map_or([0; 32], |digest| *digest.as_bytes()));
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    Sha256Digest::from_bytes(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_that_differ_once_differ_for_ever() {
        let (one, other) = (next(None, [b"a".as_slice()]), next(None, [b"b".as_slice()]));
        assert_ne!(next(Some(one), [b"c".as_slice()]), next(Some(other), [b"c".as_slice()]));
        assert_eq!(next(Some(one), [b"c".as_slice()]), next(Some(one), [b"c".as_slice()]));
        assert_ne!(next(None, [b"ab".as_slice(), b"c"]), next(None, [b"a".as_slice(), b"bc"]));
    }
}
