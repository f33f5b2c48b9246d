//! The git-patch document: unified diffs of several files, as `git diff` and `diff -u` write them (FILE-SPEC 3).
//!
//! Read as bytes: the lines of a file need not be UTF-8, and carry their own terminators. Text around the files of a diff is
//! skipped, unless it may be a part of the diff.

mod around;
mod blob_ids;
mod fence;
mod files;
mod header;
mod hunks;
mod letter;
mod malformed;
mod name;
mod series;
pub(super) mod shape;

use std::vec;
use std::vec::Vec;

use self::fence::Fence;
use self::files::Diff;
use self::malformed::{GitPatchError, Place};
use crate::batch::Batch;
use crate::failure::Failure;
use crate::report::Warning;

/// Lines of a diff, each of which takes many times its own room once it is read.
const LINES: usize = 4_000_000;

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
    let mut lines =
        Lines { rest: bytes, number: 1, extent, has_text: false, fence: None, has_returns: false, is_cut: false };
    let mut diff = Diff::default();
    match diff.read(&mut lines) {
        Ok(()) => Ok(diff.finish(&lines)),
        Err((place, error)) => Err(vec![error.failure(&place)]),
    }
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
    /// The fence around them, if the text above opens one.
    fence: Option<Fence>,
    /// Whether the header of a hunk above ends with a carriage return.
    has_returns: bool,
    /// Whether the diff ends in an added line without a line feed, which is the last one of a hunk by its counts.
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

    /// Whether the next line closes the fence around the diff.
    fn is_at_closing_fence(&self) -> bool {
        self.fence.zip(self.peek().and_then(Fence::read)).is_some_and(|(fence, next)| fence.is_closed_by(&next))
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

/// A line of a header without its terminator.
fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
