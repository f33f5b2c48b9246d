//! The ids of a file's content before and after a change, as the `index` line of a diff has them, and its mode.

use super::malformed::{GitPatchError, quote};

/// How the ids of a blob without bytes begin, as SHA-1 and as SHA-256.
const EMPTY_BLOBS: [&str; 2] =
    ["e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"];

/// Whether two ids of a file are those of different bytes, and not both of none.
pub(super) fn changes_bytes(ids: &[u8]) -> bool {
    let ids = core::str::from_utf8(ids).unwrap_or_default();
    let (before, after) = ids.split(' ').next().unwrap_or_default().split_once("..").unwrap_or_default();
    let is_none =
        |id: &str| id.bytes().all(|digit| digit == b'0') || EMPTY_BLOBS.iter().any(|blob| blob.starts_with(id));
    before != after && !(is_none(before) && is_none(after))
}

/// Whether the second id is shorter than the first one, as it is where a diff was cut off within it; to be asked of a line without its
/// end alone, for git may abbreviate two ids to different lengths.
pub(super) fn is_cut(ids: &[u8]) -> bool {
    let before = ids.iter().position(|byte| *byte == b'.');
    before.is_some_and(|before| !ids.contains(&b' ') && ids.len() < 2 * before + "..".len())
}

/// The shortest abbreviation of a blob's id that is read: what git writes at the least.
const SHORTEST_ID: usize = 7;

/// The ids before and after the change out of `before..after mode`, in full or abbreviated; `None` for one that is shorter
/// than git abbreviates, or all zeros.
pub(super) fn read(ids: &[u8]) -> Result<(Option<String>, Option<String>), GitPatchError> {
    let wrong = || GitPatchError::Garbage { found: quote(ids) };
    let text = core::str::from_utf8(ids).map_err(|_| wrong())?;
    let (ids, mode) = text.split_once(' ').map_or((text, None), |(ids, mode)| (ids, Some(mode)));
    let (before, after) = ids.split_once("..").ok_or_else(wrong)?;
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if before.contains(',') {
        return Err(GitPatchError::Format("a combined diff of a merge"));
    }
    if !is_id(before) || !is_id(after) {
        return Err(wrong());
    }
    mode.map(|mode| Mode::read(mode.as_bytes())).transpose()?;
    let names_blob = |id: &&str| (SHORTEST_ID..=64).contains(&id.len()) && id.bytes().any(|digit| digit != b'0');
    let [before, after] = [before, after].map(|id| Some(id).filter(names_blob).map(str::to_ascii_lowercase));
    Ok((before, after))
}

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
