//! The mode that a diff gives a file.

use super::malformed::{GitPatchError, quote};

/// The mode of a regular file, as far as git keeps it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) is_executable: bool,
}

impl Mode {
    pub(super) fn read(text: &[u8]) -> Result<Self, GitPatchError> {
        let is_octal = text.len() == 6 && text.iter().all(|digit| (b'0'..=b'7').contains(digit));
        match text {
            b"100644" => Ok(Self { is_executable: false }),
            b"100755" => Ok(Self { is_executable: true }),
            b"120000" => Err(GitPatchError::Symlink),
            b"160000" => Err(GitPatchError::Submodule),
            _ if is_octal && text.starts_with(b"10") => Err(GitPatchError::ModeBits { found: quote(text) }),
            _ => Err(GitPatchError::Mode { found: quote(text) }),
        }
    }
}
