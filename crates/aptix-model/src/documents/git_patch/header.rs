//! What is above the hunks of one file: its names, modes and ids, and what happens to it as a whole.

use super::blob_ids::{self, Mode, changes_bytes};
use super::lines::{Extent, Lines, trim_end};
use super::malformed::{GitPatchError, quote};
use super::name::{GitLine, Meaning, Name, Prefixes};
use super::side::Side;
use crate::batch::{FileEdit, FilePatch, GitKind, GitPatch, Hunk};

/// The lines above the hunks of one file.
#[derive(Default)]
pub(super) struct Header {
    /// The names of the `diff --git` line that begins it, if one does.
    git_line: Option<GitLine>,
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    created: Option<Mode>,
    deleted: Option<Mode>,
    rename_from: Option<Name>,
    rename_to: Option<Name>,
    copy_from: Option<Name>,
    copy_to: Option<Name>,
    base_id: Option<String>,
    result_id: Option<String>,
    /// Whether it says that bytes change, which only hunks can tell.
    announces_hunks: bool,
    /// Whether it has the ids of the file.
    has_ids: bool,
    sides: Option<(Side, Side)>,
}

/// One file of a diff, and what is known of its names.
pub(super) struct Section {
    pub(super) file: FilePatch,
    /// What the names prove of those of the whole diff, if git wrote them.
    pub(super) proof: Option<Prefixes>,
    /// Names in which a backslash was read as `/`.
    pub(super) backslashes: Vec<String>,
}

/// How the lines between `diff --git` and `---` begin.
const EXTENDED: [&str; 14] = [
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "rename old ",
    "rename new ",
    "copy from ",
    "copy to ",
    "index ",
    "GIT binary patch",
];

const DISAGREE: GitPatchError =
    GitPatchError::Names("the names of 'diff --git', '---' and '+++' are different ones, or one was cut short");

impl Header {
    /// Reads down to the first hunk, or to what belongs to no header.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, GitPatchError> {
        let mut header = Self::default();
        let first = lines.peek().unwrap_or_default();
        if let Some(names) = first.strip_prefix(b"diff --git ") {
            refuse_nul(first)?;
            header.git_line = Some(GitLine::read(trim_end(names))?);
            lines.skip();
            while let Some(line) = lines.peek() {
                refuse_nul(line)?;
                if !header.read_extended(trim_end(line))? {
                    break;
                }
                if !line.ends_with(b"\n") {
                    if line.strip_prefix(b"index ").is_some_and(blob_ids::is_cut) {
                        return Err(GitPatchError::CutHeader);
                    }
                    // What is left of an id that was cut short may begin that of any file.
                    header.has_ids &= header.names_result();
                }
                lines.skip();
            }
            if is_cut_extended(lines) {
                return Err(GitPatchError::CutHeader);
            }
        }
        if lines.is_at_sides() {
            header.sides = Some((Side::read(lines)?, Side::read(lines)?));
        } else if header.git_line.is_none() {
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
            (self.base_id, self.result_id) = blob_ids::read(ids)?;
            self.announces_hunks |= changes_bytes(ids);
            self.has_ids = true;
        } else if let Some(similarity) = value("similarity index ").or_else(|| value("dissimilarity index ")) {
            self.announces_hunks |= similarity != b"100%";
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether it makes a file without saying that the file is empty: what it holds may have been cut off.
    pub(super) const fn may_lack_content(&self) -> bool {
        self.created.is_some() && self.deleted.is_none() && !self.has_ids
    }

    /// Whether it says which bytes the file has in the end.
    pub(super) const fn names_result(&self) -> bool {
        self.result_id.is_some()
    }

    /// What happens to which file, with its hunks.
    pub(super) fn section(self, hunks: Vec<Hunk>) -> Result<Section, GitPatchError> {
        let (meaning, kind) = self.kind(&hunks)?;
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
        if hunks.is_empty() && self.announces_hunks {
            return Err(GitPatchError::Truncated("its header says that lines change, and no hunk follows"));
        }
        if kind == GitKind::Modify && hunks.is_empty() && executable.is_none() {
            return Err(GitPatchError::NoHunks);
        }
        let proof = self.proof(&meaning);
        let backslashes = self.backslashes(&meaning);
        let (executable, base_id, result_id) = (executable.or(created), self.base_id, self.result_id);
        let (target, is_unprefixed) = meaning.into_target();
        let edit = FileEdit::GitPatch(GitPatch { kind, executable, base_id, result_id, is_unprefixed, hunks });
        Ok(Section { file: FilePatch { target, key: None, label: None, edit }, proof, backslashes })
    }

    /// What its names mean, and what happens to the file as a whole.
    fn kind(&self, hunks: &[Hunk]) -> Result<(Meaning, GitKind), GitPatchError> {
        let comes_or_goes = self.created.is_some() || self.deleted.is_some();
        match (&self.rename_from, &self.rename_to, &self.copy_from, &self.copy_to) {
            (None, None, None, None) => {}
            (Some(from), Some(to), None, None) if !comes_or_goes => {
                let (from, to, has_prefix) = self.moved(from, to)?;
                return Ok((Meaning::Path { path: from, has_prefix }, GitKind::Rename { to }));
            }
            (None, None, Some(from), Some(to)) if !comes_or_goes => {
                let (from, to, has_prefix) = self.moved(from, to)?;
                return Ok((Meaning::Path { path: to, has_prefix }, GitKind::Copy { from }));
            }
            _ => return Err(GitPatchError::Contradiction("lines of a rename, a copy, a creation or a deletion")),
        }
        if self.created.is_some() && self.deleted.is_some() {
            return Err(GitPatchError::Contradiction("'new file mode' and 'deleted file mode'"));
        }
        let Some((old_side, new_side)) = &self.sides else { return Ok((self.of_git_line()?, self.whole())) };
        let is_new = old_side.is_absent(|| is_empty_side(hunks, |hunk| (hunk.old_start, hunk.old_count)));
        let is_gone = new_side.is_absent(|| is_empty_side(hunks, |hunk| (hunk.new_start, hunk.new_count)));
        match (old_side.name(), new_side.name()) {
            (None, None) => Err(GitPatchError::Names("both sides are /dev/null")),
            (Some(old), Some(new)) if !is_new && !is_gone && !comes_or_goes => {
                let meaning = match &self.git_line {
                    Some(_) => old.with_in_git(new).ok_or(GitPatchError::Names(
                        "the two sides have different names, and no lines 'rename from' and 'rename to' say so",
                    ))?,
                    None => old.with(new),
                };
                Ok((self.held_to_git_line(meaning)?, GitKind::Modify))
            }
            (old, Some(new)) if is_new && !is_gone && self.deleted.is_none() => {
                Ok((self.one(new, old)?, GitKind::Create))
            }
            (Some(old), new) if is_gone && !is_new && self.created.is_none() => {
                Ok((self.one(old, new)?, GitKind::Delete))
            }
            _ => Err(GitPatchError::Names("a file that comes or goes has /dev/null for the side that is not there")),
        }
    }

    /// What the extended header alone says.
    const fn whole(&self) -> GitKind {
        match (&self.created, &self.deleted) {
            (Some(_), _) => GitKind::Create,
            (_, Some(_)) => GitKind::Delete,
            (None, None) => GitKind::Modify,
        }
    }

    /// What the `diff --git` line alone means.
    fn of_git_line(&self) -> Result<Meaning, GitPatchError> {
        self.git_line.as_ref().and_then(GitLine::meaning).ok_or(GitPatchError::Names(
            "the 'diff --git' line has different names, and no line says why; perhaps one was cut short",
        ))
    }

    /// What the sides mean, if the `diff --git` line can mean it as well.
    fn held_to_git_line(&self, meaning: Meaning) -> Result<Meaning, GitPatchError> {
        match &self.git_line {
            Some(line) if !line.agrees_with(&meaning) => Err(DISAGREE),
            Some(line) => {
                let of_line = line.meaning();
                Ok(meaning.narrowed(|path| of_line.as_ref().is_none_or(|meaning| meaning.has(path))))
            }
            None => Ok(meaning),
        }
    }

    /// The path of a file whose other side is not there, even if a name is there.
    fn one(&self, name: &Name, other: Option<&Name>) -> Result<Meaning, GitPatchError> {
        if self.git_line.is_none() {
            let both = other.map(|other| other.with(name)).filter(|both| both.is_of_one());
            return Ok(both.unwrap_or_else(|| name.alone()));
        }
        let meaning = self.of_git_line()?;
        if !meaning.is_in(&(name.clone(), name.clone())) {
            return Err(DISAGREE);
        }
        Ok(meaning.narrowed(|path| name.means(path)))
    }

    /// What the names prove of the prefixes of the whole diff, once it is known what they mean.
    fn proof(&self, meaning: &Meaning) -> Option<Prefixes> {
        self.git_line.as_ref()?;
        match meaning {
            Meaning::Path { has_prefix: true, .. } => Some(Prefixes::Git),
            // The lines of a rename or a copy may have been given prefixes as well.
            Meaning::Path { has_prefix: false, .. } => (!self.moves_between_prefixes()).then_some(Prefixes::None),
            Meaning::Open { .. } => None,
        }
    }

    /// Whether the file of a rename or a copy comes from `a/` and goes to `b/`, which are prefixes or directories.
    fn moves_between_prefixes(&self) -> bool {
        let moves = [(&self.rename_from, &self.rename_to), (&self.copy_from, &self.copy_to)];
        moves.iter().any(|(from, to)| {
            from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from.is_in("a/") && to.is_in("b/"))
        })
    }

    /// The two paths of a rename or a copy, and whether its other names have prefixes.
    fn moved(&self, from: &Name, to: &Name) -> Result<(String, String, bool), GitPatchError> {
        let (from, to) = (from.path(), to.path());
        if from == to {
            return Err(GitPatchError::NoOp);
        }
        let has_prefix =
            self.git_line.as_ref().and_then(|line| line.has_prefixes(&from, &to)).ok_or(GitPatchError::Names(
                "'diff --git' does not name the two files of the rename or copy; perhaps a name was cut short",
            ))?;
        let fits = |side: &Side, path: &str| side.name().is_some_and(|name| name.means(path));
        match &self.sides {
            Some((old, new)) if !fits(old, &from) || !fits(new, &to) => {
                Err(GitPatchError::Names("'---' and '+++' do not name the two files of the rename or copy"))
            }
            _ => Ok((from, to, has_prefix)),
        }
    }

    /// The names, as they were read, in which a backslash separates directories.
    fn backslashes(&self, meaning: &Meaning) -> Vec<String> {
        let sides = self.sides.iter().flat_map(|(old, new)| [old.name(), new.name()]).flatten();
        let others = [&self.rename_from, &self.rename_to, &self.copy_from, &self.copy_to].into_iter().flatten();
        let mut found: Vec<String> = sides.chain(others).filter(|name| name.had_backslash).map(Name::path).collect();
        found.dedup();
        if found.is_empty() && self.git_line.as_ref().is_some_and(GitLine::had_backslash) {
            found.push(meaning.first().into());
        }
        found
    }
}

/// Whether the only hunk says that one side has no lines.
fn is_empty_side(hunks: &[Hunk], range: impl FnOnce(&Hunk) -> (i64, i64)) -> bool {
    matches!(hunks, [hunk] if range(hunk) == (0, 0))
}

/// Whether the document ends within what may be a further line between `diff --git` and `---`.
fn is_cut_extended(lines: &Lines<'_>) -> bool {
    let begun = lines.peek().filter(|line| lines.extent == Extent::Document && !line.ends_with(b"\n"));
    begun.is_some_and(|begun| EXTENDED.iter().any(|start| start.as_bytes().starts_with(begun)))
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

/// Why a line that begins no file is where one should be.
pub(super) fn not_a_header(mut lines: Lines<'_>) -> GitPatchError {
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
    } else if starts("Cannot display: file marked as a binary type") {
        GitPatchError::Binary
    } else if starts("Property changes on: ") {
        GitPatchError::Format("a change of Subversion's properties")
    } else if is_command_of_ed(trim_end(line)) {
        GitPatchError::Format("an ed script or a diff without context")
    } else if starts("@@") {
        GitPatchError::Names("a hunk is above the names of its file")
    } else {
        GitPatchError::Garbage { found: quote(trim_end(line)) }
    }
}

/// `12c`, `1,2d3` and the like.
pub(super) fn is_command_of_ed(line: &[u8]) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b',';
    let mut parts = line.splitn(2, |byte| matches!(byte, b'a' | b'c' | b'd'));
    let (head, tail) = (parts.next().unwrap_or_default(), parts.next());
    let is_number = head.first().is_some_and(u8::is_ascii_digit) && head.iter().all(digits);
    is_number && tail.is_some_and(|tail| tail.iter().all(digits))
}
