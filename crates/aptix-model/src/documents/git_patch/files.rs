//! All files of a diff, with what the text around them says of them.

use super::around::{self, Around};
use super::header::{Header, Section, not_a_header};
use super::hunks;
use super::lines::Lines;
use super::malformed::{GitPatchError, Place};
use super::name::Prefixes;
use super::series::{self, Part};
use crate::batch::{Batch, FileEdit, FilePatch, GitKind, GitPatch, Target};
use crate::limits::Limits;
use crate::report::Warning;

/// What was read of a diff so far.
#[derive(Default)]
pub(super) struct Diff {
    /// Its files, a file that has several parts as often.
    parts: Vec<Part>,
    /// Its files, once all are read.
    files: Vec<FilePatch>,
    /// How many mails and commits have begun, and whether the last one is of a log.
    letters: (usize, bool),
    /// The messages of the mails and commits that it is made of.
    messages: Vec<String>,
    /// Names in which a backslash was read as `/`.
    backslashes: Vec<String>,
    /// Files that a comparison of directories leaves out.
    left_out: Vec<String>,
    /// What some of its names prove of all of them.
    proofs: Vec<Prefixes>,
    /// How many files the last diffstat announces, and how many were read above it.
    announced: Option<(usize, usize)>,
}

impl Diff {
    /// Reads all of its files, and the text around them.
    pub(super) fn read(&mut self, lines: &mut Lines<'_>) -> Result<(), (Place, GitPatchError)> {
        let first = *lines;
        loop {
            let around = around::skip(lines).map_err(|error| (self.at(lines.number), error))?;
            self.take_around(around, lines)?;
            if lines.peek().is_none() {
                break;
            }
            let start = lines.number;
            let header = Header::read(lines).map_err(|error| (self.at(lines.number), error))?;
            let hunks = hunks::read(lines).map_err(|error| (self.at(lines.number), error))?;
            if hunks.is_empty() && header.has_sides() {
                return Err((self.at(lines.number), GitPatchError::CutFile));
            }
            if hunks.is_empty() && header.may_lack_content() && lines.peek_past_blank().peek().is_none() {
                return Err((self.at(lines.number), GitPatchError::CutNewFile));
            }
            if lines.is_cut && !header.names_result() {
                return Err((self.at(lines.number - 1), GitPatchError::CutLine));
            }
            let section = header.section(hunks).map_err(|error| (self.at(start), error))?;
            if self.parts.len() == Limits::DEFAULT.files {
                return Err((self.at(start), GitPatchError::Files { limit: Limits::DEFAULT.files }));
            }
            let Section { file, proof, backslashes } = section;
            let (letter, is_of_log) = self.letters;
            self.parts.push(Part { file, line: start, letter, is_of_log });
            self.proofs.extend(proof.filter(|proof| !self.proofs.contains(proof)));
            self.backslashes.extend(backslashes);
        }
        if lines.fence.is_some() && !self.parts.is_empty() {
            let error = GitPatchError::Truncated("a fence is opened, and never closed");
            return Err((self.at(lines.number), error));
        }
        if !self.parts.is_empty() {
            return self.fold();
        }
        let first = first.peek_past_blank();
        let error = if first.peek().is_none() { GitPatchError::NoFile } else { not_a_header(first) };
        Err((self.at(first.number), error))
    }

    /// Puts the parts of each file together, under names that are read in one way.
    fn fold(&mut self) -> Result<(), (Place, GitPatchError)> {
        let are_directories = has_both_prefixes(&self.parts);
        let files = self.parts.iter_mut().map(|part| &mut part.file);
        match self.proofs.as_slice() {
            [Prefixes::Git] => files.for_each(take_stripped),
            [Prefixes::None] => files.for_each(take_written),
            [] if are_directories => files.for_each(take_written),
            // Diffs of several origins: the files that exist decide.
            _ => {}
        }
        let folded = series::fold(core::mem::take(&mut self.parts));
        self.files = folded.map_err(|(file, line, error)| (Place { line, file }, error))?;
        Ok(())
    }

    fn at(&self, line: usize) -> Place {
        Place { line, file: self.parts.len() }
    }

    /// Takes over what the text above the next file says, and holds the files above it against their diffstat.
    fn take_around(&mut self, around: Around, lines: &Lines<'_>) -> Result<(), (Place, GitPatchError)> {
        let Around { letters, announced, left_out } = around;
        let ends = !letters.is_empty() || announced.is_some() || lines.peek().is_none();
        if let Some((files, above)) = self.announced.take_if(|_| ends)
            && self.parts.len() - above < files
        {
            let error = GitPatchError::Truncated("its diffstat counts more files than it has");
            return Err((self.at(lines.number), error));
        }
        if let Some(files) = announced {
            if lines.peek().is_none() && files > 0 {
                return Err((
                    self.at(lines.number),
                    GitPatchError::Truncated("a diffstat counts files, and none follows"),
                ));
            }
            self.announced = Some((files, self.parts.len()));
        }
        self.letters = letters.iter().fold(self.letters, |(count, _), letter| (count + 1, letter.is_of_log));
        self.messages.extend(letters.into_iter().map(|letter| letter.message).filter(|message| !message.is_empty()));
        self.left_out.extend(left_out);
        Ok(())
    }

    /// The batch, and what its author should know.
    pub(super) fn finish(self, lines: &Lines<'_>) -> (Batch, Vec<Warning>) {
        let warn = |code: &str, message: String| Warning { code: code.into(), message, line: None };
        let mut warnings = Vec::from_iter(endings(lines, &self.files));
        if !self.backslashes.is_empty() {
            let names = quoted(&self.backslashes);
            warnings.push(warn("BACKSLASH", format!("a backslash in a file name was read as '/': {names}")));
        }
        if !self.left_out.is_empty() {
            let names = quoted(&self.left_out);
            warnings
                .push(warn("FILE_LEFT_OUT", format!("the diff names files without saying what is in them: {names}")));
        }
        warnings.extend(self.files.iter().filter_map(|file| match &file.target {
            Target::Readings(readings) if readings.stripped.len() > 1 => {
                let names = quoted(&readings.stripped);
                Some(warn(
                    "NAMES_DIFFER",
                    format!("the two sides have different names, and the file that exists is meant: {names}"),
                ))
            }
            _ => None,
        }));
        let mut label = self.messages.join("\n\n");
        label.truncate(label.floor_char_boundary(Limits::DEFAULT.text_bytes));
        let label = Some(label).filter(|label| !label.is_empty());
        (Batch { label, files: self.files, ..Batch::default() }, warnings)
    }
}

/// Takes the names of a file as ones with prefixes, since others of the diff have some.
fn take_stripped(file: &mut FilePatch) {
    let Target::Readings(readings) = &mut file.target else { return };
    if let [path] = readings.stripped.as_mut_slice() {
        let path = core::mem::take(path);
        if let FileEdit::GitPatch(patch) = &mut file.edit {
            patch.is_unprefixed = false;
        }
        file.target = Target::Path(path);
    } else {
        readings.written.clone_from(&readings.stripped);
    }
}

/// Takes a name that is on both sides of a file as it is, since others of the diff have no prefixes.
fn take_written(file: &mut FilePatch) {
    if let Some(path) = alike(file).map(String::from) {
        file.target = Target::Path(path);
    }
}

/// The name that is on both sides of a file, if its beginning can be a prefix and a directory.
fn alike(file: &FilePatch) -> Option<&str> {
    match (&file.target, &file.edit) {
        (Target::Readings(readings), FileEdit::GitPatch(patch)) if patch.is_unprefixed => {
            readings.written.first().map(String::as_str)
        }
        _ => None,
    }
}

/// Whether one file has the prefix of old names on both sides, and another one that of new names, as only directories do.
fn has_both_prefixes(parts: &[Part]) -> bool {
    let has = |prefix: &str| parts.iter().any(|part| alike(&part.file).is_some_and(|name| name.starts_with(prefix)));
    has("a/") && has("b/")
}

/// The first of some names, as a message shows them.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// Warns of a new file whose lines end with carriage returns as those of the diff do.
fn endings(lines: &Lines<'_>, files: &[FilePatch]) -> Option<Warning> {
    let created = if lines.has_returns { files.iter().find(|file| has_returns(file)) } else { None };
    let path = created?.target.as_str();
    let message = format!("every line of the diff ends with \\r\\n, and so do the lines of the new file {path:?}");
    Some(Warning { code: "CRLF_DIFF".into(), message, line: None })
}

/// Whether a file is made all of whose lines end with a carriage return.
fn has_returns(file: &FilePatch) -> bool {
    let FileEdit::GitPatch(GitPatch { kind: GitKind::Create, hunks, .. }) = &file.edit else { return false };
    let mut lines = hunks.iter().flat_map(|hunk| hunk.lines.iter().chain(&hunk.surplus)).peekable();
    lines.peek().is_some() && lines.all(|line| line.bytes.ends_with(b"\r\n"))
}
