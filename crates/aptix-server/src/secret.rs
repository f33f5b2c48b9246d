//! What the holder of a token sends: a prefix by which it is recognised, 32 random bytes and a checksum, in hex.

use std::fmt;

use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

use crate::mint;

/// How every token begins, for people and for tools that look for tokens where none may be.
const PREFIX: &str = "aptix_";

/// Random bytes.
const RANDOM: usize = 32;

/// Bytes of the checksum: the first of the SHA-256 of the random ones.
const CHECKSUM: usize = 4;

/// A token's secret. It is shown to whoever has it made, and otherwise nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; RANDOM]);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn mint() -> Result<Self, getrandom::Error> {
        mint::secret().map(Self)
    }

    /// Reads one; `None` if the text is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let (random, sum) = digits.split_at_checked(2 * RANDOM)?;
        let secret = Self(bytes(random)?);
        (secret.checksum() == bytes(sum)?).then_some(secret)
    }

    /// What the server keeps of it.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::from_bytes(Sha256::digest(self.text()).into())
    }

    /// The text that its holder sends.
    pub(crate) fn text(&self) -> String {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
        let mut text = String::with_capacity(PREFIX.len() + 2 * (RANDOM + CHECKSUM));
        text.push_str(PREFIX);
        text.extend(self.0.iter().chain(&self.checksum()).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        text
    }

    fn checksum(&self) -> [u8; CHECKSUM] {
        let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(self.0).into();
        [a, b, c, d]
    }
}

/// So many bytes in lower-case hex.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, []) = digits.as_bytes().as_chunks() else { return None };
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token's secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_back_and_nothing_else_does() {
        let secret = Secret::mint().unwrap();
        let text = secret.to_string();
        assert_eq!((text.len(), Secret::read(&text)), (78, Some(secret.clone())));
        assert!(!format!("{secret:?}").contains(&text[6..20]));
        for length in 0..text.len() {
            assert_eq!(Secret::read(&text[..length]), None);
        }
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(Secret::read(str::from_utf8(&other).unwrap()), None, "character {at}");
        }
        assert_eq!(Secret::read(&text.to_uppercase()), None);
        assert_eq!(Secret::read(&format!("{text}0")), None);
        assert_eq!(Secret::read("aptix_\u{e9}"), None);
    }
}
