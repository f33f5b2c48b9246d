//! File names in a diff: quoted or not, with the prefixes `a/` and `b/`, with other ones, or with none.

use std::string::String;
use std::vec::Vec;

use super::malformed::GitPatchError;
use crate::path::document_spelling;

/// A name as it stands in a diff.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Name {
    text: String,
    is_quoted: bool,
}

/// A path that two names agree on, or that one name gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Agreed {
    /// The path.
    pub(super) path: String,
    /// Whether there was no prefix to take away.
    pub(super) is_unprefixed: bool,
}

impl Name {
    /// A name that fills the rest of a line, or stands in quotes there.
    pub(super) fn read(line: &[u8]) -> Result<Self, GitPatchError> {
        if !line.starts_with(b"\"") {
            return Self::plain(line);
        }
        match unquote(line)? {
            (name, rest) if rest.trim_ascii().is_empty() => Ok(name),
            _ => Err(GitPatchError::Quote),
        }
    }

    /// The two names of a `diff --git` line, which do not say where they end: none, unless they are quoted or alike.
    pub(super) fn read_pair(line: &[u8]) -> Result<Option<(Self, Self)>, GitPatchError> {
        if line.starts_with(b"\"") {
            let (old, rest) = unquote(line)?;
            let new = rest.strip_prefix(b" ").ok_or(GitPatchError::Quote)?;
            return Ok(Some((old, Self::read(new)?)));
        }
        if let Some(at) = line.windows(2).position(|pair| pair == b" \"") {
            let (old, new) = line.split_at(at);
            return Ok(Some((Self::plain(old)?, Self::read(new.get(1..).unwrap_or_default())?)));
        }
        let (old, new) = line.split_at(line.len() / 2);
        match new.strip_prefix(b" ") {
            Some(new) if new.len() == old.len() => Ok(Some((Self::plain(old)?, Self::plain(new)?))),
            _ => Ok(None),
        }
    }

    fn plain(bytes: &[u8]) -> Result<Self, GitPatchError> {
        let text = core::str::from_utf8(bytes).map_err(|_| GitPatchError::NameEncoding)?;
        Ok(Self { text: text.into(), is_quoted: false })
    }

    /// The name as a path: the separators of a quoted one are what they are.
    fn path_of(&self, text: &str) -> String {
        if self.is_quoted { text.into() } else { document_spelling(text) }
    }

    /// The whole name as a path.
    pub(super) fn path(&self) -> String {
        self.path_of(&self.text)
    }

    /// The name without its first component.
    fn stripped(&self) -> Option<&str> {
        self.text.split_once('/').map(|(_, rest)| rest)
    }

    fn has_usual_prefix(&self) -> bool {
        self.text.starts_with("a/") || self.text.starts_with("b/")
    }

    /// The path that the names of both sides mean, if they mean one.
    pub(super) fn agreed(&self, new: &Self) -> Option<Agreed> {
        match (self.stripped(), new.stripped()) {
            (Some(old_rest), Some(new_rest))
                if old_rest == new_rest && (self.text != new.text || self.has_usual_prefix()) =>
            {
                Some(Agreed { path: new.path_of(new_rest), is_unprefixed: false })
            }
            _ if self.text == new.text => Some(Agreed { path: new.path(), is_unprefixed: true }),
            _ => None,
        }
    }

    /// The path that a name means by itself: only the usual prefixes are known for what they are.
    pub(super) fn alone(&self) -> Agreed {
        match self.stripped().filter(|_| self.has_usual_prefix()) {
            Some(rest) => Agreed { path: self.path_of(rest), is_unprefixed: false },
            None => Agreed { path: self.path(), is_unprefixed: true },
        }
    }

    /// Whether the name means a path, with a prefix or without.
    pub(super) fn means(&self, path: &str) -> bool {
        self.path() == path || self.stripped().is_some_and(|rest| self.path_of(rest) == path)
    }
}

/// The name between the quotes that a line begins with, and what comes after them.
fn unquote(line: &[u8]) -> Result<(Name, &[u8]), GitPatchError> {
    let mut bytes = Vec::new();
    let mut rest = line.get(1..).unwrap_or_default();
    loop {
        rest = match rest {
            [b'"', rest @ ..] => {
                let text = String::from_utf8(bytes).map_err(|_| GitPatchError::NameEncoding)?;
                return Ok((Name { text, is_quoted: true }, rest));
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', escape, rest @ ..] => {
                bytes.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    _ => return Err(GitPatchError::Quote),
                });
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
            [] => return Err(GitPatchError::Quote),
        };
    }
}
