//! The git-patch document: unified diffs of several files, as `git diff` and `diff -u` write them (FILE-SPEC 3).
//!
//! Read as bytes: the lines of a file need not be UTF-8, and carry their own terminators. What is not part of a diff is
//! refused, not skipped.

mod header;
mod hunks;
mod malformed;
mod name;

use std::vec::Vec;
use std::{format, vec};

use self::header::Header;
use self::malformed::{GitPatchError, Place};
use super::recognise::Shape;
use crate::batch::{Batch, FileEdit, FilePatch, GitKind, GitPatch};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::report::Warning;

/// Lines of a diff, each of which takes many times its own room once it is read.
const LINES: usize = 4_000_000;

/// How a git patch is recognised: by the first line of a diff, of whatever kind.
pub(super) const SHAPE: Shape = Shape::Text(|text| {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    first.starts_with("diff -")
        || first.starts_with("@@ -")
        || (first.starts_with("--- ") && second.starts_with("+++ "))
        || (first.starts_with("*** ") && second.starts_with("--- "))
});

/// What bounds the text of a diff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// Nothing: it is a document, which may have been cut off anywhere.
    Document,
    /// A fence that is closed.
    Fence,
}

/// Reads the diffs of a text.
pub(super) fn parse(bytes: &[u8], extent: Extent) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    if bytes.iter().filter(|byte| **byte == b'\n').count() > LINES {
        let place = Place { line: LINES + 1, file: 0 };
        return Err(vec![GitPatchError::Lines { limit: LINES }.failure(&place)]);
    }
    let mut lines = Lines { rest: bytes, number: 1, extent, has_text: false, has_returns: false, is_cut: false };
    match read_files(&mut lines) {
        Ok(files) => {
            let warnings = warnings(&lines, &files);
            Ok((Batch { files, ..Batch::default() }, warnings))
        }
        Err((place, error)) => Err(vec![error.failure(&place)]),
    }
}

fn read_files(lines: &mut Lines<'_>) -> Result<Vec<FilePatch>, (Place, GitPatchError)> {
    let mut files = Vec::new();
    while let Some(line) = lines.peek() {
        let place = |number: usize| Place { line: number, file: files.len() };
        if line.trim_ascii().is_empty() || is_command(line) {
            lines.skip();
            continue;
        }
        let start = lines.number;
        let header = Header::read(lines).map_err(|error| (place(lines.number), error))?;
        let hunks = hunks::read(lines).map_err(|error| (place(lines.number), error))?;
        if hunks.is_empty() && header.has_sides() {
            return Err((place(lines.number), GitPatchError::CutFile));
        }
        let file = header.file(hunks).map_err(|error| (place(start), error))?;
        if files.len() == Limits::DEFAULT.files {
            return Err((place(start), GitPatchError::Files { limit: Limits::DEFAULT.files }));
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err((Place { line: lines.number, file: 0 }, GitPatchError::NoFile));
    }
    Ok(files)
}

/// What the author is told about how the lines of a diff end.
fn warnings(lines: &Lines<'_>, files: &[FilePatch]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if lines.is_cut {
        let message = "the diff ends without a line feed, and its last line was taken as it is: check that it is whole";
        warnings.push(Warning {
            code: "DIFF_UNTERMINATED".into(),
            message: message.into(),
            line: Some(lines.number - 1),
        });
    }
    let created = files.iter().filter(|file| has_returns(file)).map(|file| file.target.as_str());
    if let Some(path) = created.take(usize::from(lines.has_returns)).next() {
        let message = format!("every line of the diff ends with \\r\\n, and so do the lines of the new file {path:?}");
        warnings.push(Warning { code: "CRLF_DIFF".into(), message, line: None });
    }
    warnings
}

/// Whether a file is made all of whose lines end with a carriage return.
fn has_returns(file: &FilePatch) -> bool {
    let FileEdit::GitPatch(GitPatch { kind: GitKind::Create, hunks, .. }) = &file.edit else { return false };
    let mut lines = hunks.iter().flat_map(|hunk| hunk.lines.iter().chain(&hunk.surplus)).peekable();
    lines.peek().is_some() && lines.all(|line| line.bytes.ends_with(b"\r\n"))
}

/// The lines of a diff that are still to be read.
#[derive(Clone, Copy)]
struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the next line, from 1.
    number: usize,
    /// What bounds them.
    extent: Extent,
    /// Whether some of the lines above are no lines of a diff.
    has_text: bool,
    /// Whether the header of a hunk above ends with a carriage return.
    has_returns: bool,
    /// Whether the diff ends in an added line without a line feed.
    is_cut: bool,
}

impl<'a> Lines<'a> {
    /// The next line with its terminator.
    fn peek(&self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |feed| feed + 1);
        self.rest.get(..end).filter(|line| !line.is_empty())
    }

    fn skip(&mut self) {
        let end = self.peek().map_or(0, <[u8]>::len);
        self.rest = self.rest.get(end..).unwrap_or_default();
        self.number += 1;
    }

    /// The next line that is not blank.
    fn peek_past_blank(mut self) -> Self {
        while self.peek().is_some_and(|line| line.trim_ascii().is_empty()) {
            self.skip();
        }
        self
    }

    /// Whether the next lines name the two sides of a file.
    fn is_at_sides(mut self) -> bool {
        let is_old = self.peek().is_some_and(|line| line.starts_with(b"--- "));
        self.skip();
        is_old && self.peek().is_some_and(|line| line.starts_with(b"+++ "))
    }

    /// Whether the next lines are the signature of a mail: dashes, and below them the version of a program or the end.
    fn is_at_signature(mut self) -> bool {
        let Some(dashes) = self.peek().map(trim_end).filter(|line| matches!(*line, b"-- " | b"--")) else {
            return false;
        };
        self.skip();
        match self.peek_past_blank().peek() {
            Some(line) => line.first().is_some_and(u8::is_ascii_digit) && line.contains(&b'.'),
            None => dashes == b"-- ",
        }
    }
}

/// Whether a line is the command that a diff of directories begins each file with.
fn is_command(line: &[u8]) -> bool {
    line.starts_with(b"diff -")
        && ![&b"diff --git "[..], b"diff --cc ", b"diff --combined "].iter().any(|other| line.starts_with(other))
}

/// A line of a header without its terminator.
fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
