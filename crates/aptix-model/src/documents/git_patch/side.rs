//! One side of a file, as a line with `---` or `+++` names it: a name, and perhaps the time of the file.

use super::lines::{Lines, trim_end};
use super::malformed::GitPatchError;
use super::name::Name;

/// One side of a file as `---` or `+++` names it.
#[derive(Clone)]
pub(super) enum Side {
    /// There is no file.
    Null,
    /// There is one, unless it says that it was last written at the beginning of time.
    File { name: Name, is_epoch: bool },
}

impl Side {
    /// Reads the line of one side: a name, and perhaps a time.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, GitPatchError> {
        let line = lines.peek().unwrap_or_default();
        if line.contains(&0) {
            return Err(GitPatchError::Nul);
        }
        lines.skip();
        let text = trim_end(line.strip_prefix(b"--- ").or_else(|| line.strip_prefix(b"+++ ")).unwrap_or(line));
        let (name, time) = split_time(text);
        let name = match name {
            b"/dev/null" => return Ok(Self::Null),
            b"dev/null" => return Err(GitPatchError::Names("the side that is not there is written /dev/null")),
            b"" => return Err(GitPatchError::Names("a side has no name")),
            name => Name::read(name)?,
        };
        let is_epoch = time.starts_with(b"1970-01-01 ") || time.starts_with(b"1969-12-31 ");
        Ok(Self::File { name, is_epoch })
    }

    /// The name, unless the side is `/dev/null`.
    pub(super) const fn name(&self) -> Option<&Name> {
        match self {
            Self::Null => None,
            Self::File { name, .. } => Some(name),
        }
    }

    /// Whether there is no file. `diff -N` names one that is not there too, with the time that no file has.
    pub(super) fn is_absent(&self, is_empty: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Null => true,
            Self::File { is_epoch, .. } => *is_epoch && is_empty(),
        }
    }
}

/// The name of a side and its time, which is behind a tab, or behind blanks where tabs became some.
fn split_time(text: &[u8]) -> (&[u8], &[u8]) {
    if text.starts_with(b"\"") {
        return (text, &[]);
    }
    if let Some(tab) = text.iter().position(|byte| *byte == b'\t') {
        let (name, time) = text.split_at(tab);
        return (name, time.strip_prefix(b"\t").unwrap_or(time));
    }
    let blanks = text.windows(2).enumerate().filter(|(_, pair)| matches!(pair, [b' ', next] if *next != b' '));
    let mut rests = blanks.map(|(at, _)| text.split_at(at + 1));
    let found = rests.find(|(_, rest)| is_time(rest));
    found.map_or((text, &[]), |(name, time)| (name.trim_ascii_end(), time))
}

/// `2024-01-01 10:00:00`, perhaps with a fraction and a zone. No path has the colons.
fn is_time(text: &[u8]) -> bool {
    const SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let (start, rest) = text.split_at(SHAPE.len().min(text.len()));
    let is_alike = |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    let is_rest = |byte: &u8| byte.is_ascii_digit() || b" .+-:Z".contains(byte);
    start.len() == SHAPE.len() && start.iter().zip(SHAPE).all(is_alike) && rest.len() < 24 && rest.iter().all(is_rest)
}
