//! The place of an anchor edit in its file, and why it is not found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Anchor, AnchorMatch, Occurrence};
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::reason::{Detail, Reason};

use super::check::{Finder, Place, Test};
use crate::shown::{counted, cut};
use crate::text::edit::slice;
use crate::text::line_regex::{GivenUp, Search};
use crate::text::lines::{Terminator, Text};

/// Lines that the refusal of an ambiguous anchor lists.
const CANDIDATES: usize = 20;
/// Of these, how many are shown in full.
const SHOWN: usize = 3;
/// Characters of a line that is shown.
const LINE_CHARS: usize = 400;

/// Where each line of a text starts.
pub(super) struct Lines<'t> {
    pub(super) text: &'t Text<'t>,
    pub(super) starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t Text<'t>) -> Self {
        let mut starts = Vec::with_capacity(text.lines() + 1);
        let mut cursor = text.cursor();
        starts.push(cursor.at());
        while cursor.next().is_some() {
            starts.push(cursor.at());
        }
        Self { text, starts }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn start(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.bytes().len())
    }

    pub(super) fn range(&self, above: usize, removed: usize) -> Range<usize> {
        self.start(above)..self.start(above + removed)
    }

    /// The text of a line, by its position from 0.
    pub(super) fn line(&self, index: usize) -> &'t [u8] {
        let line = slice(self.text.bytes(), self.range(index, 1));
        match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        }
    }

    /// What ends a line, by its position; of no line, what ends line 1.
    pub(super) fn terminator(&self, index: usize) -> Terminator {
        if index >= self.count() {
            return self.text.first_terminator();
        }
        let line = slice(self.text.bytes(), self.range(index, 1));
        if line.ends_with(b"\n") { Terminator::at_end_of(line) } else { self.text.last_terminator() }
    }
}

/// The lines from one on that an anchor describes.
fn fitting<'p>(lines: &Lines<'_>, finder: &'p Finder<'_>, from: usize) -> Result<Vec<usize>, PlaceError<'p>> {
    let (bytes, mut search) = (lines.text.bytes().len(), None);
    let mut found = Vec::new();
    for index in from..lines.count() {
        let fits = finder.test.fits(lines.line(index), bytes, &mut search);
        if fits.map_err(|GivenUp| PlaceError::Costly { anchor: finder.anchor })? {
            found.push(index);
        }
    }
    Ok(found)
}

fn excerpt(lines: &Lines<'_>, index: usize) -> Excerpt {
    let text = cut(lines.line(index), LINE_CHARS).into_owned();
    Excerpt { start_line: index + 1, end_line: index + 1, text }
}

impl Test<'_> {
    /// Whether a line of a text of so many bytes passes; `search` is what is kept between its lines.
    fn fits(&self, line: &[u8], bytes: usize, search: &mut Option<Search>) -> Result<bool, GivenUp> {
        match self {
            Self::Contains(finder) => Ok(finder.find(line).is_some()),
            Self::Equals(text) => Ok(line == *text),
            Self::Regex(regex) => regex.is_match(search.get_or_insert_with(|| regex.search(bytes)), line),
        }
    }
}

/// Why the place of an anchor edit is not found.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError<'a> {
    #[error("the edit names line {named}, and the file has {}", counted(*lines, "line"))]
    PastEnd { named: usize, lines: usize },
    #[error("no line {} {:?}", verb(anchor, 1), cut(anchor.text.as_bytes(), 80))]
    None { anchor: &'a Anchor },
    #[error("{} lines {} {:?}: {}", found.len(), verb(anchor, found.len()), cut(anchor.text.as_bytes(), 80), listed(found))]
    Several { anchor: &'a Anchor, found: Vec<usize> },
    #[error("occurrence {asked} is asked for, and only {} {} {:?}: {}", counted(found.len(), "line"), verb(anchor, found.len()), cut(anchor.text.as_bytes(), 80), listed(found))]
    TooFew { anchor: &'a Anchor, asked: u32, found: Vec<usize> },
    #[error("no line below line {below} {} {:?}", verb(anchor, 1), cut(anchor.text.as_bytes(), 80))]
    NoEnd { anchor: &'a Anchor, below: usize },
    #[error("looking for lines that match {:?} takes more steps than a file of this size is worth", cut(anchor.text.as_bytes(), 80))]
    Costly { anchor: &'a Anchor },
}

/// What so many lines do that fit an anchor.
fn verb(anchor: &Anchor, lines: usize) -> &'static str {
    let (one, several) = match anchor.matching {
        AnchorMatch::Contains => ("contains", "contain"),
        AnchorMatch::Equals => ("equals", "equal"),
        AnchorMatch::Regex => ("matches", "match"),
    };
    if lines == 1 { one } else { several }
}

fn listed(found: &[usize]) -> String {
    let s = if found.len() == 1 { "" } else { "s" };
    let numbers: Vec<String> = found.iter().take(CANDIDATES).map(|index| (index + 1).to_string()).collect();
    let more = if found.len() > CANDIDATES { ", \u{2026}" } else { "" };
    format!("line{s} {}{more}", numbers.join(", "))
}

impl PlaceError<'_> {
    pub(super) fn failure(&self, lines: &Lines<'_>) -> Failure {
        let (reason, detail, hint, shown): (_, _, _, &[usize]) = match self {
            Self::PastEnd { .. } => (
                Reason::LineRange,
                Detail::PastEnd,
                "take line numbers from the file as it is now; to add lines at the end, append them",
                &[],
            ),
            Self::None { .. } => {
                (Reason::TextNotFound, Detail::Anchor, "read the file, and name a line that occurs in it", &[])
            }
            Self::Several { found, .. } => (
                Reason::TextNotUnique,
                Detail::Anchor,
                "say which by its occurrence, counted from 1, or choose an anchor that fits one line",
                found,
            ),
            Self::TooFew { found, .. } => {
                (Reason::TextNotFound, Detail::Occurrence, "choose one of the lines that there are", found)
            }
            Self::Costly { .. } => (
                Reason::MatchBudgetExceeded,
                Detail::Anchor,
                "write (?-u:\\b) for \\b, or choose the match contains or equals",
                &[],
            ),
            Self::NoEnd { .. } => (
                Reason::TextNotFound,
                Detail::Anchor,
                "name an end that occurs below the start, or another occurrence of the start",
                &[],
            ),
        };
        let mut failure = Failure::new(reason, self.to_string()).detail(detail).hint(hint).change(0);
        failure.line = shown.first().map(|index| index + 1);
        failure.nearest = shown.iter().take(SHOWN).map(|index| excerpt(lines, *index)).collect();
        failure
    }
}

/// How many lines are above the place, how many are removed, and how many places were candidates.
pub(super) fn find<'p>(place: &'p Place<'_>, lines: &Lines<'_>) -> Result<(usize, usize, usize), PlaceError<'p>> {
    match place {
        Place::Whole => Ok((0, lines.count(), 1)),
        Place::Append => Ok((lines.count(), 0, 1)),
        Place::Range { above, end } => {
            let last = end.unwrap_or(lines.count()).max(above + 1);
            if last > lines.count() {
                return Err(PlaceError::PastEnd { named: last, lines: lines.count() });
            }
            Ok((*above, last - above, 1))
        }
        Place::After(finder) => one(finder, lines).map(|(index, candidates)| (index + 1, 0, candidates)),
        Place::Before(finder) => one(finder, lines).map(|(index, candidates)| (index, 0, candidates)),
        Place::Between { start, end, takes_anchors } => {
            let (first, candidates) = one(start, lines)?;
            let ends = fitting(lines, end, first + 1)?;
            let last = match end.anchor.occurrence {
                None => ends.first().copied().ok_or(PlaceError::NoEnd { anchor: end.anchor, below: first + 1 })?,
                Some(occurrence) => pick(end.anchor, occurrence, ends)?,
            };
            Ok(if *takes_anchors {
                (first, last - first + 1, candidates)
            } else {
                (first + 1, last - first - 1, candidates)
            })
        }
    }
}

/// The one line that an anchor means, and how many it describes.
fn one<'p>(finder: &'p Finder<'_>, lines: &Lines<'_>) -> Result<(usize, usize), PlaceError<'p>> {
    let anchor = finder.anchor;
    let found = fitting(lines, finder, 0)?;
    let candidates = found.len();
    match (anchor.occurrence, found.as_slice()) {
        (None, [index]) => Ok((*index, candidates)),
        (_, []) => Err(PlaceError::None { anchor }),
        (None, _) => Err(PlaceError::Several { anchor, found }),
        (Some(occurrence), _) => pick(anchor, occurrence, found).map(|index| (index, candidates)),
    }
}

fn pick(anchor: &Anchor, occurrence: Occurrence, found: Vec<usize>) -> Result<usize, PlaceError<'_>> {
    let index = match occurrence {
        Occurrence::Last => found.last(),
        Occurrence::Number(number) => (number as usize).checked_sub(1).and_then(|position| found.get(position)),
    };
    match (index, occurrence) {
        (Some(index), _) => Ok(*index),
        (None, Occurrence::Number(asked)) if !found.is_empty() => Err(PlaceError::TooFew { anchor, asked, found }),
        (None, _) => Err(PlaceError::None { anchor }),
    }
}
