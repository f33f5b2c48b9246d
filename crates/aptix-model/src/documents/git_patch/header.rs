//! What stands above the hunks of one file: its names, modes and ids, and what happens to it as a whole.

use std::string::String;
use std::vec::Vec;

use super::malformed::{GitPatchError, quote};
use super::name::{Agreed, Name};
use super::{Lines, trim_end};
use crate::batch::{FileEdit, FilePatch, GitKind, GitPatch, Hunk, Target};

/// The lines above the hunks of one file.
#[derive(Default)]
pub(super) struct Header {
    /// Whether a `diff --git` line begins it.
    is_git: bool,
    /// The path that the names of that line, or of both sides, agree on.
    path: Option<Agreed>,
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    created: Option<Mode>,
    deleted: Option<Mode>,
    rename_from: Option<Name>,
    rename_to: Option<Name>,
    copy_from: Option<Name>,
    copy_to: Option<Name>,
    base_id: Option<String>,
    sides: Option<(Side, Side)>,
}

/// The mode of a regular file, as far as git keeps it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode {
    is_executable: bool,
}

/// One side of a file as `---` or `+++` names it.
#[derive(Clone)]
enum Side {
    /// There is no file.
    Null,
    /// There is one, unless it says that it was last written at the beginning of time.
    File { name: Name, is_epoch: bool },
}

impl Header {
    /// Reads down to the first hunk, or to what belongs to no header.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, GitPatchError> {
        let mut header = Self::default();
        let first = lines.peek().unwrap_or_default();
        if let Some(names) = first.strip_prefix(b"diff --git ") {
            refuse_nul(first)?;
            header.is_git = true;
            header.path = Name::read_pair(trim_end(names))?.and_then(|(old, new)| old.agreed(&new));
            lines.skip();
            while let Some(line) = lines.peek() {
                refuse_nul(line)?;
                if !header.read_extended(trim_end(line))? {
                    break;
                }
                lines.skip();
            }
        }
        if lines.is_at_sides() {
            let (old, new) = (Side::read(lines)?, Side::read(lines)?);
            if let (false, Side::File { name, .. }, Side::File { name: other, .. }) = (header.is_git, &old, &new) {
                header.path = name.agreed(other);
            }
            header.sides = Some((old, new));
        } else if !header.is_git {
            return Err(not_a_header(*lines));
        }
        if let Some(line) = lines.peek() {
            refuse_binary(line)?;
        }
        Ok(header)
    }

    /// Whether it names the two sides of the file, below which there are hunks.
    pub(super) const fn has_sides(&self) -> bool {
        self.sides.is_some()
    }

    /// Takes a line between `diff --git` and the names of the sides; whether it is one.
    fn read_extended(&mut self, line: &[u8]) -> Result<bool, GitPatchError> {
        let value = |prefix: &str| line.strip_prefix(prefix.as_bytes());
        if let Some(mode) = value("old mode ") {
            self.old_mode = Some(Mode::read(mode)?);
        } else if let Some(mode) = value("new mode ") {
            self.new_mode = Some(Mode::read(mode)?);
        } else if let Some(mode) = value("new file mode ") {
            self.created = Some(Mode::read(mode)?);
        } else if let Some(mode) = value("deleted file mode ") {
            self.deleted = Some(Mode::read(mode)?);
        } else if let Some(name) = value("rename from ").or_else(|| value("rename old ")) {
            self.rename_from = Some(Name::read(name)?);
        } else if let Some(name) = value("rename to ").or_else(|| value("rename new ")) {
            self.rename_to = Some(Name::read(name)?);
        } else if let Some(name) = value("copy from ") {
            self.copy_from = Some(Name::read(name)?);
        } else if let Some(name) = value("copy to ") {
            self.copy_to = Some(Name::read(name)?);
        } else if let Some(ids) = value("index ") {
            self.base_id = base_id(ids)?;
        } else {
            return Ok(value("similarity index ").is_some() || value("dissimilarity index ").is_some());
        }
        Ok(true)
    }

    /// What happens to which file, with its hunks.
    pub(super) fn file(self, hunks: Vec<Hunk>) -> Result<FilePatch, GitPatchError> {
        let (path, kind, is_unprefixed) = self.kind(&hunks)?;
        let executable = match (self.old_mode, self.new_mode) {
            (Some(_), Some(new)) => Some(new.is_executable),
            (None, None) => None,
            _ => return Err(GitPatchError::Contradiction("one of 'old mode' and 'new mode' without the other")),
        };
        let is_whole = matches!(kind, GitKind::Create | GitKind::Delete);
        if is_whole && executable.is_some() {
            return Err(GitPatchError::Contradiction("a change of mode for a file that comes or goes"));
        }
        let created = self.created.is_some_and(|mode| mode.is_executable).then_some(true);
        if kind == GitKind::Modify && hunks.is_empty() && executable.is_none() {
            return Err(GitPatchError::NoHunks);
        }
        let (executable, base_id) = (executable.or(created), self.base_id);
        let edit = FileEdit::GitPatch(GitPatch { kind, executable, base_id, is_unprefixed, hunks });
        Ok(FilePatch { target: Target::Path(path), key: None, label: None, edit })
    }

    /// The target, what happens to it as a whole, and whether its names had no prefix.
    fn kind(&self, hunks: &[Hunk]) -> Result<(String, GitKind, bool), GitPatchError> {
        let comes_or_goes = self.created.is_some() || self.deleted.is_some();
        match (&self.rename_from, &self.rename_to, &self.copy_from, &self.copy_to) {
            (None, None, None, None) => {}
            (Some(from), Some(to), None, None) if !comes_or_goes => {
                let (from, to) = self.moved(from, to)?;
                return Ok((from, GitKind::Rename { to }, false));
            }
            (None, None, Some(from), Some(to)) if !comes_or_goes => {
                let (from, to) = self.moved(from, to)?;
                return Ok((to, GitKind::Copy { from }, false));
            }
            _ => return Err(GitPatchError::Contradiction("lines of a rename, a copy, a creation or a deletion")),
        }
        let sides = self.sides.as_ref().map(|(old, new)| {
            (old.file_if(|| is_empty_side(hunks, old_side)), new.file_if(|| is_empty_side(hunks, new_side)))
        });
        let (named, kind) = match sides {
            None if self.created.is_some() && self.deleted.is_some() => {
                return Err(GitPatchError::Contradiction("'new file mode' and 'deleted file mode'"));
            }
            None => (None, self.whole()),
            Some((None, None)) => return Err(GitPatchError::Names("both sides are /dev/null")),
            Some((None, Some(new))) if self.deleted.is_none() => (Some(self.one(new)?), GitKind::Create),
            Some((Some(old), None)) if self.created.is_none() => (Some(self.one(old)?), GitKind::Delete),
            Some((Some(old), Some(new))) if !comes_or_goes => {
                let agreed = old.agreed(new).ok_or(GitPatchError::Names(
                    "the two sides have different names, and no lines 'rename from' and 'rename to' say so",
                ))?;
                (Some(agreed), GitKind::Modify)
            }
            Some(_) => {
                return Err(GitPatchError::Names(
                    "a file that comes or goes has /dev/null for the side that is not there",
                ));
            }
        };
        let agreed = match (&self.path, named) {
            (Some(path), Some(named)) if path.path != named.path => {
                return Err(GitPatchError::Names("the names of 'diff --git', '---' and '+++' are different ones"));
            }
            (Some(path), _) => path.clone(),
            (None, Some(named)) => named,
            (None, None) => {
                return Err(GitPatchError::Names("the 'diff --git' line has different names, and no line says why"));
            }
        };
        Ok((agreed.path, kind, agreed.is_unprefixed))
    }

    /// What the extended header alone says.
    fn whole(&self) -> GitKind {
        match (self.created, self.deleted) {
            (Some(_), _) => GitKind::Create,
            (_, Some(_)) => GitKind::Delete,
            (None, None) => GitKind::Modify,
        }
    }

    /// The path of a file whose other side is not there.
    fn one(&self, name: &Name) -> Result<Agreed, GitPatchError> {
        match &self.path {
            Some(path) if name.means(&path.path) => Ok(path.clone()),
            Some(_) => Err(GitPatchError::Names("the names of 'diff --git', '---' and '+++' are different ones")),
            None => Ok(name.alone()),
        }
    }

    /// The two paths of a rename or a copy.
    fn moved(&self, from: &Name, to: &Name) -> Result<(String, String), GitPatchError> {
        let (from, to) = (from.path(), to.path());
        if from == to {
            return Err(GitPatchError::NoOp);
        }
        let fits = |side: &Side, path: &str| matches!(side, Side::File { name, .. } if name.means(path));
        match &self.sides {
            Some((old, new)) if !fits(old, &from) || !fits(new, &to) => {
                Err(GitPatchError::Names("'---' and '+++' do not name the two files of the rename or copy"))
            }
            _ => Ok((from, to)),
        }
    }
}

impl Side {
    /// Reads the line of one side: a name, and perhaps a tab and a time.
    fn read(lines: &mut Lines<'_>) -> Result<Self, GitPatchError> {
        let line = lines.peek().unwrap_or_default();
        refuse_nul(line)?;
        lines.skip();
        let text = trim_end(line.get(4..).unwrap_or_default());
        let (name, time) = match text.iter().position(|byte| *byte == b'\t') {
            Some(tab) if !text.starts_with(b"\"") => {
                (text.get(..tab).unwrap_or_default(), text.get(tab + 1..).unwrap_or_default())
            }
            _ => (text, &[][..]),
        };
        let name = match name {
            b"/dev/null" => return Ok(Self::Null),
            b"dev/null" => return Err(GitPatchError::Names("the side that is not there is written /dev/null")),
            b"" => return Err(GitPatchError::Names("a side has no name")),
            name => Name::read(name)?,
        };
        let is_epoch = time.starts_with(b"1970-01-01 ") || time.starts_with(b"1969-12-31 ");
        Ok(Self::File { name, is_epoch })
    }

    /// The file of the side. `diff -N` names one that is not there too, with the time that no file has.
    fn file_if(&self, is_empty: impl FnOnce() -> bool) -> Option<&Name> {
        match self {
            Self::Null => None,
            Self::File { is_epoch: true, .. } if is_empty() => None,
            Self::File { name, .. } => Some(name),
        }
    }
}

/// Whether the only hunk says that one side has no lines.
fn is_empty_side(hunks: &[Hunk], side: impl FnOnce(&Hunk) -> (i64, i64)) -> bool {
    matches!(hunks, [hunk] if side(hunk) == (0, 0))
}

const fn old_side(hunk: &Hunk) -> (i64, i64) {
    (hunk.old_start, hunk.old_count)
}

const fn new_side(hunk: &Hunk) -> (i64, i64) {
    (hunk.new_start, hunk.new_count)
}

impl Mode {
    fn read(text: &[u8]) -> Result<Self, GitPatchError> {
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

/// The id before the change out of `before..after mode`, if it is one in full.
fn base_id(ids: &[u8]) -> Result<Option<String>, GitPatchError> {
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
    let is_whole = matches!(before.len(), 40 | 64) && before.bytes().any(|digit| digit != b'0');
    Ok(is_whole.then(|| before.to_ascii_lowercase()))
}

fn refuse_nul(line: &[u8]) -> Result<(), GitPatchError> {
    if line.contains(&0) { Err(GitPatchError::Nul) } else { Ok(()) }
}

fn refuse_binary(line: &[u8]) -> Result<(), GitPatchError> {
    if line.starts_with(b"GIT binary patch") || line.starts_with(b"Binary files ") {
        return Err(GitPatchError::Binary);
    }
    Ok(())
}

/// Why a line that begins no file stands where one should.
fn not_a_header(mut lines: Lines<'_>) -> GitPatchError {
    let line = lines.peek().unwrap_or_default();
    lines.skip();
    let next = lines.peek().unwrap_or_default();
    let starts = |start: &str| line.starts_with(start.as_bytes());
    if let Err(error) = refuse_nul(line).and_then(|()| refuse_binary(line)) {
        error
    } else if starts("diff --c") || starts("@@@") {
        GitPatchError::Format("a combined diff of a merge")
    } else if starts("*** ") && next.starts_with(b"--- ") {
        GitPatchError::Format("a context diff")
    } else if starts("Only in ") {
        GitPatchError::Format("a comparison of directories that leaves out the files only one of them has")
    } else if is_command_of_ed(trim_end(line)) {
        GitPatchError::Format("an ed script or a diff without context")
    } else if starts("@@") {
        GitPatchError::Names("a hunk stands above the names of its file")
    } else {
        GitPatchError::Garbage { found: quote(trim_end(line)) }
    }
}

/// `12c`, `1,2d3` and the like.
fn is_command_of_ed(line: &[u8]) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b',';
    let mut parts = line.splitn(2, |byte| matches!(byte, b'a' | b'c' | b'd'));
    let (head, tail) = (parts.next().unwrap_or_default(), parts.next());
    let is_number = head.first().is_some_and(u8::is_ascii_digit) && head.iter().all(digits);
    is_number && tail.is_some_and(|tail| tail.iter().all(digits))
}
