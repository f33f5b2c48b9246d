//! Whether the lines of a block occur in a file: as a whole, or as runs in order between elision lines, at one uniform
//! indentation. White space at the ends of lines, and in blank lines, does not count.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use memchr::memmem::Finder;

use crate::content::elision;
use crate::text::edit::slice;
use crate::text::find::{Budget, FindError};
use crate::text::lines::BOM;

/// Most different indentations that are tried.
const SHIFTS: usize = 64;
/// Marks that comments begin or end with.
const MARKS: &[char] =
    &['/', '*', '#', '-', ';', '%', '<', '>', '!', '{', '}', '(', ')', '[', ']', '\'', '"', ' ', '\t'];

/// The lines of a block, in runs between elision lines.
pub(super) struct Excerpt<'a> {
    runs: Vec<Vec<&'a str>>,
}

/// How a file's indentation differs from that of a block.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Shift<'a> {
    /// Its lines have this before them.
    More(&'a [u8]),
    /// Its lines lack this.
    Less(&'a str),
}

impl<'a> Excerpt<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim_ascii_end).collect();
        let runs = lines.split(|line| is_elision(line)).map(without_blank_edges);
        Self { runs: runs.filter(|run| !run.is_empty()).map(<[&str]>::to_vec).collect() }
    }

    /// Whether the lines occur in a file of these bytes. A block without lines occurs nowhere.
    pub(super) fn occurs_in(&self, content: &[u8], budget: &mut Budget) -> Result<bool, FindError> {
        let Some(first) = self.runs.first().and_then(|run| run.first()) else { return Ok(false) };
        budget.charge(content.len())?;
        let content = content.strip_prefix(BOM).unwrap_or(content);
        let lines = || content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        // A line feed before each line, so that whole lines are found.
        let mut file = Vec::with_capacity(content.len() + 2);
        for line in lines() {
            file.push(b'\n');
            file.extend_from_slice(line);
        }
        file.push(b'\n');
        let mut shifts = BTreeSet::new();
        let words = first.trim_ascii_start();
        let (indent, _) = first.split_at(first.len() - words.len());
        for line in lines().filter(|line| line.trim_ascii_start() == words.as_bytes()) {
            let (found, _) = line.split_at(line.len() - words.len());
            let more = found.strip_suffix(indent.as_bytes()).map(Shift::More);
            let less = || Some(Shift::Less(indent.strip_suffix(core::str::from_utf8(found).ok()?)?));
            shifts.extend(more.or_else(less));
            if shifts.len() == SHIFTS {
                break;
            }
        }
        for shift in &shifts {
            budget.charge(file.len())?;
            if self.occurs_at(shift, &file) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the runs occur in order in a file whose lines each have a line feed before them.
    fn occurs_at(&self, shift: &Shift<'_>, file: &[u8]) -> bool {
        let mut from = 0;
        self.runs.iter().all(|run| {
            let Some(needle) = needle(run, shift) else { return false };
            let rest = slice(file, from..file.len());
            let Some(at) = Finder::new(&needle).find(rest) else { return false };
            // The line feed behind a run may be the one before the next.
            from += at + needle.len() - 1;
            true
        })
    }
}

/// A run as it would be in a file, if its lines have the indentation for it.
fn needle(run: &[&str], shift: &Shift<'_>) -> Option<Vec<u8>> {
    let mut needle = Vec::new();
    for line in run {
        needle.push(b'\n');
        if line.is_empty() {
            continue;
        }
        let line = match shift {
            Shift::More(indent) => {
                needle.extend_from_slice(indent);
                Cow::Borrowed(*line)
            }
            Shift::Less(indent) => Cow::Borrowed(line.strip_prefix(indent)?),
        };
        needle.extend_from_slice(line.as_bytes());
    }
    needle.push(b'\n');
    Some(needle)
}

fn without_blank_edges<'l, 'a>(mut run: &'l [&'a str]) -> &'l [&'a str] {
    while let [inner @ .., ""] | ["", inner @ ..] = run {
        run = inner;
    }
    run
}

/// Whether a line stands for lines that were left out: three dots, alone or at an end of a comment, or a comment that says
/// so.
fn is_elision(line: &str) -> bool {
    let words = line.trim_matches(MARKS);
    let is_comment = words.len() < line.trim().len();
    let dots = ["...", "\u{2026}"];
    dots.contains(&words)
        || is_comment && dots.iter().any(|dots| words.starts_with(dots) || words.ends_with(dots))
        || elision::is_elision(line.trim().as_bytes())
}
