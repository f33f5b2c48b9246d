//! The SHA-256 of a file's bytes, as a value. Computing one is the engine's business.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A SHA-256 digest: 32 bytes, written as 64 lower-case hex digits and read in either case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest of no bytes at all.
    pub const EMPTY: Self = Self([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ]);

    /// Wraps 32 bytes that a hash function produced.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Why a text is not a SHA-256.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DigestError {
    /// The text does not have 64 characters.
    #[error("a SHA-256 has 64 hex digits, this has {found} characters")]
    Length {
        /// How many characters it has.
        found: usize,
    },
    /// A character is not a hex digit.
    #[error("a SHA-256 has only the digits 0-9 and a-f, found {found:?} at position {position}")]
    Digit {
        /// The offending character.
        found: char,
        /// Its position, from 1.
        position: usize,
    },
}

impl FromStr for Sha256Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let found = text.chars().count();
        if found != 64 {
            return Err(DigestError::Length { found });
        }
        let mut bytes = [0; 32];
        for (index, character) in text.chars().enumerate() {
            let digit = character.to_digit(16).ok_or(DigestError::Digit { found: character, position: index + 1 })?;
            if let Some(byte) = bytes.get_mut(index / 2) {
                *byte = (*byte << 4) | u8::try_from(digit).unwrap_or_default();
            }
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + (nibble - 10) };
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> Self {
        alloc::format!("{digest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn upper_case_is_read_and_lower_case_is_written() {
        let text = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
        let digest: Sha256Digest = text.parse().unwrap();
        assert_eq!(digest, Sha256Digest::EMPTY);
        assert_eq!(digest.to_string(), text.to_lowercase());
    }

    #[test]
    fn wrong_length_and_wrong_digit_are_told_apart() {
        assert_eq!("ab".parse::<Sha256Digest>(), Err(DigestError::Length { found: 2 }));
        let text = "g".repeat(64);
        assert_eq!(text.parse::<Sha256Digest>(), Err(DigestError::Digit { found: 'g', position: 1 }));
    }
}
