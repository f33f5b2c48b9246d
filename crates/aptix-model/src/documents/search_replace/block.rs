//! One block: its markers, what divides it, and the replacements that it makes.
//!
//! A line of the file that looks like a marker is written with a backslash before it, or between longer markers. Where
//! neither determines which line divides a block, it is refused.

use crate::batch::{Replacement, Scope};
use crate::documents::text_lines::{Line, malformed, quoted};
use crate::failure::Failure;
use crate::reason::Detail;
use crate::report::Warning;

pub(super) const ESCAPE: &str =
    "write a backslash before a line of the file that looks like a marker, or use longer markers around it";

/// A line that begins, divides or ends a block, and how long its run of marks is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Open(usize),
    Divider(usize),
    Close(usize),
}

impl Marker {
    /// The marker that a line is: five to nine marks at its start, and its word.
    pub(super) fn of(line: &str) -> Option<Self> {
        let mark = *line.as_bytes().first()?;
        let marks = line.bytes().take_while(|byte| *byte == mark).count();
        let word = line.get(marks..).filter(|_| (5..=9).contains(&marks))?.trim_end();
        match (mark, word) {
            (b'<' | b'-', " SEARCH" | " SEARCH>") => Some(Self::Open(marks)),
            (b'=', "") => Some(Self::Divider(marks)),
            (b'>' | b'+', " REPLACE" | " REPLACE>") => Some(Self::Close(marks)),
            _ => None,
        }
    }

    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(super) const fn is_close(self) -> bool {
        matches!(self, Self::Close(_))
    }

    const fn marks(self) -> usize {
        match self {
            Self::Open(marks) | Self::Divider(marks) | Self::Close(marks) => marks,
        }
    }
}

/// Whether a line is nearly what begins a block: other marks, other letters, or words behind them.
pub(super) fn is_near_opening(line: &str) -> bool {
    let words = line.trim_start_matches('<');
    let word = words.trim_start().split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    line.len() - words.len() >= 3
        && ["search", "original"].into_iter().any(|known| known.eq_ignore_ascii_case(word))
        && !Marker::of(line).is_some_and(Marker::is_open)
}

/// Whether a line is the beginning of an opening marker that was cut off: a run of marks, and perhaps letters of its word.
pub(super) fn is_cut_opening(line: &str) -> bool {
    let line = line.trim_end();
    ['<', '-'].into_iter().any(|mark| {
        let word = line.trim_start_matches(mark);
        // A run of dashes alone is a rule.
        let is_run = word.is_empty() && mark == '<';
        let is_word = word.len() > 1 && " SEARCH".starts_with(word) && word != " SEARCH";
        (5..=9).contains(&(line.len() - word.len())) && (is_run || is_word)
    })
}

/// A block as it was written.
pub(super) struct Block<'a> {
    /// The line of its first marker.
    number: usize,
    /// Where its author saw the first line.
    start_line: Option<i64>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl<'a> Block<'a> {
    /// Reads the block below its first marker, and leaves `lines` below it.
    pub(super) fn read<I: Iterator<Item = Line<'a>> + Clone>(
        first: Line<'a>,
        opening: Marker,
        lines: &mut I,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, Failure> {
        // Markers of any length will do, unless there are too many: then only those as long as the first one.
        let parts = match parts(first, lines.clone(), |_| true) {
            Ok(parts) => parts,
            Err(failure) => {
                parts(first, lines.clone(), |marker| marker.marks() == opening.marks()).map_err(|_| failure)?
            }
        };
        let mut block = Self { number: first.number, start_line: None, old: Vec::new(), new: Vec::new() };
        let mut in_head = true;
        for line in lines.by_ref().take_while(|line| line.number < parts.close) {
            if line.number == parts.divider {
                in_head = false;
            } else if line.number > parts.divider {
                if let Some((word, _)) = place(line.text) {
                    let message = format!("{word} is below the divider, expected it below SEARCH");
                    return Err(malformed(Some(line.number), Detail::Marker, message).hint(ESCAPE));
                }
                block.new.push(unescaped(line, warnings));
            } else if let Some((word, number)) = place(line.text).filter(|_| in_head) {
                if word == START_LINE {
                    block.start_line = Some(number).filter(|number| *number > 0);
                }
            } else {
                // The rule below the numbers is no line of the file; without numbers it could be one.
                let is_rule = in_head && line.number > first.number + 1 && line.text.trim_end() == "-------";
                in_head = false;
                if !is_rule {
                    block.old.push(unescaped(line, warnings));
                }
            }
        }
        Ok(block)
    }

    /// Whether the block replaces nothing, so that what it has makes a file where there is none.
    pub(super) fn has_no_old_text(&self) -> bool {
        self.old.is_empty()
    }

    /// The first line that is replaced, or that comes where nothing is.
    pub(super) fn first_line(&self) -> Option<&'a str> {
        self.old.first().or(self.new.first()).copied()
    }

    /// Adds the replacements that the block comes to: one, or one for each piece between lines `...`, which stand for
    /// lines that stay.
    pub(super) fn add_to(&self, steps: &mut Vec<Replacement>) -> Result<(), Failure> {
        let is_elision = |line: &&str| line.trim() == "...";
        let elisions = self.old.iter().filter(|line| is_elision(line)).count();
        if elisions == 0 || elisions != self.new.iter().filter(|line| is_elision(line)).count() {
            steps.push(step(&self.old, &self.new, self.start_line));
            return Ok(());
        }
        let pieces = self.old.split(is_elision).zip(self.new.split(is_elision));
        let mut start_line = self.start_line;
        for (old, new) in pieces {
            let has_text = |lines: &[&str]| lines.iter().any(|line| !line.trim().is_empty());
            if has_text(old) {
                steps.push(step(old, new, start_line));
            } else if old != new {
                let message = "lines come beside '...' with no line of the file next to them";
                return Err(malformed(Some(self.number), Detail::Marker, message)
                    .hint("repeat a line of the file above or below the new lines, in both halves of the block"));
            }
            start_line = None;
        }
        Ok(())
    }
}

fn step(old: &[&str], new: &[&str], start_line: Option<i64>) -> Replacement {
    let text = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    Replacement { find: text(old), replace: text(new), scope: Scope::Block { start_line } }
}

/// The lines that divide and end a block.
struct Parts {
    divider: usize,
    close: usize,
}

fn parts<'a>(
    first: Line<'a>,
    lines: impl Iterator<Item = Line<'a>>,
    counts: impl Fn(Marker) -> bool,
) -> Result<Parts, Failure> {
    let mut divider: Option<usize> = None;
    let mut second = None;
    let missing = |line: Option<Line<'_>>, expected: &str| {
        let found = line.map_or_else(String::new, |line| format!(" before {}", quoted(line.text)));
        let message = format!("the block at line {} has no '{expected}'{found}", first.number);
        malformed(line.map(|line| line.number), Detail::Marker, message)
    };
    for line in lines {
        match Marker::of(line.text).filter(|marker| counts(*marker)) {
            Some(Marker::Divider(_)) if divider.is_none() => divider = Some(line.number),
            Some(Marker::Divider(_)) => second = second.or(Some(line.number)),
            Some(Marker::Close(_)) => {
                let Some(divider) = divider else { return Err(missing(Some(line), "=======").hint(ESCAPE)) };
                let Some(second) = second else { return Ok(Parts { divider, close: line.number }) };
                let message =
                    format!("lines {divider} and {second} could both divide the block at line {}", first.number);
                return Err(malformed(Some(second), Detail::Marker, message).hint(ESCAPE));
            }
            Some(Marker::Open(_)) => {
                let expected = if divider.is_some() { ">>>>>>> REPLACE" } else { "=======" };
                return Err(missing(Some(line), expected).hint(ESCAPE));
            }
            None => {}
        }
    }
    Err(missing(None, if divider.is_some() { ">>>>>>> REPLACE" } else { "=======" }))
}

const START_LINE: &str = ":start_line:";

/// The number that a line of a block's head gives.
fn place(line: &str) -> Option<(&'static str, i64)> {
    [START_LINE, ":end_line:"].into_iter().find_map(|word| {
        let number = line.strip_prefix(word)?.trim();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| (word, number.parse().unwrap_or(i64::MAX)))
    })
}

/// A line of the file, without the backslash that keeps it from being a marker.
fn unescaped<'a>(line: Line<'a>, warnings: &mut Vec<Warning>) -> &'a str {
    let Some(rest) = line.text.strip_prefix('\\') else { return line.text };
    let runs = ["<<<<<<<", "=======", ">>>>>>>", "-------", "+++++++"];
    if Marker::of(rest).is_none() && place(rest).is_none() && !runs.iter().any(|run| rest.starts_with(run)) {
        return line.text;
    }
    if warnings.is_empty() {
        let message = format!(
            "line {}: the backslash before {} is taken for an escape, and so in other places",
            line.number,
            quoted(rest)
        );
        warnings.push(Warning { code: "MARKER_UNESCAPED".into(), message, line: None });
    }
    rest
}
