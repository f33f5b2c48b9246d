//! File names in a diff: quoted or not, with the prefixes `a/` and `b/`, with other ones, or with none.

use super::malformed::GitPatchError;
use crate::batch::Target;
use crate::path::document_spelling;
use crate::path_readings::PathReadings;

/// A name as it is in a diff; outside of quotes, with `/` where it has a backslash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Name {
    text: String,
    is_quoted: bool,
    /// Whether a backslash in it was read as `/`.
    pub(super) had_backslash: bool,
}

/// What the names of one file mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// One path, whichever files exist. The names have prefixes, or none.
    Path { path: String, has_prefix: bool },
    /// One of several. Names are alike where both sides have the same one, as git writes them only without prefixes.
    Open { readings: PathReadings, are_alike: bool },
}

impl Meaning {
    /// The target of a file patch, and whether its names are known or likely to have no prefix.
    pub(super) fn into_target(self) -> (Target, bool) {
        match self {
            Self::Path { path, has_prefix } => (Target::Path(path), !has_prefix),
            Self::Open { readings, are_alike } => (Target::Readings(readings), are_alike),
        }
    }

    /// Whether it is one file under each reading.
    pub(super) fn is_of_one(&self) -> bool {
        match self {
            Self::Path { .. } => true,
            Self::Open { readings, .. } => readings.stripped.len() == 1,
        }
    }

    /// Whether two names can mean one of the paths.
    pub(super) fn is_in(&self, names: &NamePair) -> bool {
        let is_one = |name: &Name, path: &str| name.text == "/dev/null" || name.means(path);
        let fits = |path: &str| is_one(&names.0, path) && is_one(&names.1, path);
        match self {
            Self::Path { path, .. } => fits(path),
            Self::Open { readings, .. } => readings.all().any(fits),
        }
    }

    /// The path that is meant, the one without prefixes if there are several.
    pub(super) fn first(&self) -> &str {
        match self {
            Self::Path { path, .. } => path,
            Self::Open { readings, .. } => readings.all().next().unwrap_or_default(),
        }
    }

    /// Whether a path is one of those that are meant.
    pub(super) fn has(&self, path: &str) -> bool {
        match self {
            Self::Path { path: one, .. } => one == path,
            Self::Open { readings, .. } => readings.all().any(|one| one == path),
        }
    }

    /// The meaning without what other names of the same file exclude.
    pub(super) fn narrowed(self, is_meant: impl Fn(&str) -> bool) -> Self {
        let Self::Open { readings, .. } = &self else { return self };
        let ([stripped], [written]) = (readings.stripped.as_slice(), readings.written.as_slice()) else { return self };
        match (is_meant(stripped), is_meant(written)) {
            (true, false) => Self::Path { path: stripped.clone(), has_prefix: true },
            (false, true) => Self::Path { path: written.clone(), has_prefix: false },
            _ => self,
        }
    }
}

/// Whether the names of a diff have prefixes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefixes {
    /// They do.
    Git,
    /// They do not.
    None,
}

/// The old name and the new one.
pub(super) type NamePair = (Name, Name);

/// The names of a `diff --git` line, which does not say where the first one ends.
#[derive(Clone, Debug)]
pub(super) struct GitLine {
    /// Each way of taking the line apart.
    pairs: Vec<NamePair>,
}

/// Ways of taking a `diff --git` line apart that are looked at. A name has fewer blanks.
const PAIRS: usize = 256;
/// Bytes of such a line; two names have fewer.
const LINE_BYTES: usize = 16 << 10;

impl GitLine {
    /// Reads what comes after `diff --git `.
    pub(super) fn read(line: &[u8]) -> Result<Self, GitPatchError> {
        if line.starts_with(b"\"") {
            let (old, rest) = unquote(line)?;
            let new = rest.strip_prefix(b" ").ok_or(GitPatchError::Quote)?;
            return Ok(Self { pairs: vec![(old, Name::read(new)?)] });
        }
        if let Some(at) = line.windows(2).position(|pair| pair == b" \"") {
            let (old, new) = line.split_at(at);
            let pair = (Name::plain(old)?, Name::read(new.strip_prefix(b" ").unwrap_or(new))?);
            return Ok(Self { pairs: vec![pair] });
        }
        let text = core::str::from_utf8(line).map_err(|_| GitPatchError::NameEncoding)?;
        let text = if text.len() > LINE_BYTES { "" } else { text };
        let blanks = text.match_indices(' ').map(|(at, _)| text.split_at(at));
        let pairs = blanks.map(|(old, new)| (Name::of(old), Name::of(new.strip_prefix(' ').unwrap_or(new))));
        Ok(Self { pairs: pairs.take(PAIRS).collect() })
    }

    /// Whether a backslash in it was read as `/`.
    pub(super) fn had_backslash(&self) -> bool {
        self.pairs.iter().any(|(old, new)| old.had_backslash || new.had_backslash)
    }

    /// What the line means where it says everything: its names are those of one path.
    pub(super) fn meaning(&self) -> Option<Meaning> {
        let mut found = self.pairs.iter().filter_map(|(old, new)| old.with_in_git(new));
        match (found.next(), found.next()) {
            (Some(one), None) => Some(one),
            // Of names with blanks, halves that are alike come first.
            (Some(_), Some(_)) => {
                let halves = self.pairs.iter().filter(|(old, new)| old.text.len() == new.text.len());
                halves.filter_map(|(old, new)| old.with_in_git(new)).next()
            }
            (None, _) => None,
        }
    }

    /// Whether both names can be those of what the lines below mean.
    pub(super) fn agrees_with(&self, meaning: &Meaning) -> bool {
        self.pairs.iter().any(|names| meaning.is_in(names))
    }

    /// Whether the names of two paths have prefixes here; `None` if they are not those of the paths.
    pub(super) fn has_prefixes(&self, from: &str, to: &str) -> Option<bool> {
        let means = self.pairs.iter().any(|(old, new)| old.means(from) && new.means(to));
        means.then(|| self.pairs.iter().any(|(old, new)| old.is_behind_prefix(from) && new.is_behind_prefix(to)))
    }
}

impl Name {
    /// A name that fills the rest of a line, or is in quotes there.
    pub(super) fn read(line: &[u8]) -> Result<Self, GitPatchError> {
        if !line.starts_with(b"\"") {
            return Self::plain(line);
        }
        match unquote(line)? {
            (name, rest) if rest.trim_ascii().is_empty() => Ok(name),
            _ => Err(GitPatchError::Quote),
        }
    }

    fn plain(bytes: &[u8]) -> Result<Self, GitPatchError> {
        core::str::from_utf8(bytes).map(Self::of).map_err(|_| GitPatchError::NameEncoding)
    }

    fn of(text: &str) -> Self {
        Self { text: text.replace('\\', "/"), is_quoted: false, had_backslash: text.contains('\\') }
    }

    /// The name as a path: what a quoted one has is what it means.
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

    /// The path behind one of the usual prefixes.
    fn behind_prefix(&self) -> Option<String> {
        let rest = self.text.strip_prefix("a/").or_else(|| self.text.strip_prefix("b/"))?;
        Some(self.path_of(rest))
    }

    /// Whether the name begins with a prefix, or a directory of that name.
    pub(super) fn is_in(&self, prefix: &str) -> bool {
        self.text.starts_with(prefix)
    }

    /// Two names that differ in their first component alone, as prefixes do.
    fn same_behind_prefixes(&self, new: &Self) -> Option<String> {
        let (old_rest, new_rest) = (self.stripped()?, new.stripped()?);
        (old_rest == new_rest && self.text != new.text).then(|| new.path_of(new_rest))
    }

    /// What both names of a file mean in a section that begins with `diff --git`; none if they are those of two files.
    pub(super) fn with_in_git(&self, new: &Self) -> Option<Meaning> {
        match self.same_behind_prefixes(new) {
            Some(path) => Some(Meaning::Path { path, has_prefix: true }),
            None if self.text == new.text => Some(self.twice()),
            None => None,
        }
    }

    /// What both names of a file mean in a diff without `diff --git`, where they may be those of an old copy and the file.
    pub(super) fn with(&self, new: &Self) -> Meaning {
        if self.text == new.text {
            return self.twice();
        }
        let each = |path: fn(&Self) -> String| vec![path(self), path(new)];
        let stripped = match self.same_behind_prefixes(new) {
            Some(path) => vec![path],
            None => each(|name| name.behind_prefix().unwrap_or_else(|| name.path())),
        };
        let readings = PathReadings { stripped: distinct(stripped), written: distinct(each(Self::path)) };
        Meaning::Open { readings, are_alike: false }
    }

    /// The path that a name means by itself: only the usual prefixes can be some, and may be directories.
    pub(super) fn alone(&self) -> Meaning {
        match self.behind_prefix() {
            Some(path) => {
                let readings = PathReadings { stripped: vec![path], written: vec![self.path()] };
                Meaning::Open { readings, are_alike: false }
            }
            None => Meaning::Path { path: self.path(), has_prefix: false },
        }
    }

    /// The path of a name that is on both sides.
    fn twice(&self) -> Meaning {
        match self.alone() {
            Meaning::Open { readings, .. } => Meaning::Open { readings, are_alike: true },
            path => path,
        }
    }

    /// Whether the name means a path, with a prefix or without.
    pub(super) fn means(&self, path: &str) -> bool {
        self.path() == path || self.is_behind_prefix(path)
    }

    /// Whether the name means a path with a prefix above it.
    fn is_behind_prefix(&self, path: &str) -> bool {
        self.stripped().is_some_and(|rest| self.path_of(rest) == path)
    }
}

fn distinct(mut paths: Vec<String>) -> Vec<String> {
    paths.dedup();
    paths
}

/// The name between the quotes that a line begins with, and what comes after them.
fn unquote(line: &[u8]) -> Result<(Name, &[u8]), GitPatchError> {
    let mut bytes = Vec::new();
    let mut rest = line.strip_prefix(b"\"").unwrap_or(line);
    loop {
        rest = match rest {
            [b'"', rest @ ..] => {
                let text = String::from_utf8(bytes).map_err(|_| GitPatchError::NameEncoding)?;
                return Ok((Name { text, is_quoted: true, had_backslash: false }, rest));
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
