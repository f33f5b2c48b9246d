//! Lines that come and go at a line number or beside a line that is described (WS-MOD).
//!
//! Every line these edits leave ends with a terminator, the file's last one too (WS-MOD 5.1); blank lines of the
//! content stay as they are (WS-MOD 5.2).

mod made;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Occurrence};
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::limits::Limits;
use aptix_model::lines::{LineError, LineNumber};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, Normalization, Tier, Warning};
use memchr::memmem;

use crate::already;
use crate::checking::regexes::RegexError;
use crate::checking::violation::Violation;
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::plan::{Draft, Observed, check_presence, finish, read_text};
use crate::shown::{counted, cut};
use crate::text::edit::TextEdit;
use crate::text::line_regex::{CompileError, GivenUp, LineRegex, Search};
use crate::text::lines::{Terminator, Text};
use crate::text::whole_text;
use crate::validate::{Base, Site, ValidEdit};

/// Lines that an ambiguous anchor is told to fit.
const CANDIDATES: usize = 20;
/// Of these, how many are shown in full.
const SHOWN: usize = 3;
/// Characters of a line that is shown.
const LINE_CHARS: usize = 400;

/// An anchor edit in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct ValidAnchorEdit<'a> {
    place: Place<'a>,
    content: &'a str,
}

#[derive(Clone, Debug)]
enum Place<'a> {
    Range { above: usize, end: Option<usize> },
    Append,
    After(Finder<'a>),
    Before(Finder<'a>),
    Between { start: Finder<'a>, end: Box<Finder<'a>>, takes_anchors: bool },
    Whole,
}

/// Finds the lines that an anchor describes.
#[derive(Clone, Debug)]
struct Finder<'a> {
    anchor: &'a Anchor,
    test: Test<'a>,
}

#[derive(Clone, Debug)]
enum Test<'a> {
    Contains(Box<memmem::Finder<'a>>),
    Equals(&'a [u8]),
    Regex(Box<LineRegex>),
}

/// Checks everything about an anchor edit that needs no file.
pub(crate) fn check<'a>(edit: &'a AnchorEdit, site: &mut Site<'_, 'a>) -> Option<(Base, ValidEdit<'a>)> {
    let found = edit.content.len() as u64;
    let limit = site.limits.created_bytes;
    if found > limit {
        site.report("content", || Violation::Content { found, limit });
    } else if memchr::memchr(0, edit.content.as_bytes()).is_some() {
        site.report("content", || Violation::Nul);
    }
    let mut base = Base::MustExist;
    let place = match &edit.place {
        AnchorPlace::Range { start_line, end_line } => check_range(*start_line, *end_line, site)?,
        AnchorPlace::Append => {
            base = Base::Any;
            Place::Append
        }
        AnchorPlace::After(anchor) => Place::After(finder("anchor", anchor, site)?),
        AnchorPlace::Before(anchor) => Place::Before(finder("anchor", anchor, site)?),
        AnchorPlace::Between { start, end, takes_anchors } => {
            let (start, end) = (finder("startAnchor", start, site), finder("endAnchor", end, site));
            Place::Between { start: start?, end: Box::new(end?), takes_anchors: *takes_anchors }
        }
        AnchorPlace::Whole { .. } => Place::Whole,
    };
    if edit.content.is_empty() && !matches!(place, Place::Range { .. } | Place::Between { .. } | Place::Whole) {
        site.report("content", || Violation::EmptyContent);
    }
    Some((base, ValidEdit::Anchor(Box::new(ValidAnchorEdit { place, content: &edit.content }))))
}

fn check_range<'a>(start_line: i64, end_line: Option<i64>, site: &mut Site<'_, 'a>) -> Option<Place<'a>> {
    let start = LineNumber::new(start_line).map_err(|error| site.report("startLine", || Violation::Line(error)));
    let end = end_line.map(LineNumber::new).transpose();
    let end = end.map_err(|error| site.report("endLine", || Violation::Line(error)));
    let (start, end) = (start.ok()?.get(), end.ok()?.map(LineNumber::get));
    if let (Some(end), Some(end_line)) = (end, end_line)
        && end < start
    {
        let error = LineError::Inverted { start: start_line, end: end_line };
        site.report("endLine", || Violation::Line(error));
        return None;
    }
    Some(Place::Range { above: start - 1, end })
}

fn finder<'a>(field: &str, anchor: &'a Anchor, site: &mut Site<'_, 'a>) -> Option<Finder<'a>> {
    let text = anchor.text.as_str();
    let violation = if text.trim().is_empty() && anchor.matching != AnchorMatch::Regex || text.is_empty() {
        Some(Violation::EmptyAnchor)
    } else if memchr::memchr(b'\n', text.as_bytes()).is_some() {
        Some(Violation::AnchorLines)
    } else if anchor.occurrence == Some(Occurrence::Number(0)) {
        Some(Violation::ZeroOccurrence)
    } else {
        None
    };
    if let Some(violation) = violation {
        site.report(field, || violation);
        return None;
    }
    let test = match anchor.matching {
        AnchorMatch::Contains => Test::Contains(Box::new(memmem::Finder::new(text))),
        AnchorMatch::Equals => Test::Equals(text.as_bytes()),
        AnchorMatch::Regex => match site.regexes.compile(text) {
            Ok(regex) => Test::Regex(Box::new(regex)),
            Err(error) => {
                let text = cut(text.as_bytes(), 80).into_owned();
                site.report(field, || regex_violation(text, &error));
                return None;
            }
        },
    };
    Some(Finder { anchor, test })
}

fn regex_violation(text: String, error: &RegexError) -> Violation {
    let why = error.to_string();
    match error {
        RegexError::Compile(CompileError::Syntax(_)) => {
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
            Violation::Regex { text, why }
        }
        RegexError::Compile(_) | RegexError::Batch => Violation::RegexBudget { text, why },
    }
}

/// Plans an anchor edit against the file.
///
/// # Errors
/// When the place is not there, or not told apart from others.
pub(crate) fn plan<'a>(
    base: Base,
    edit: &ValidAnchorEdit<'a>,
    observed: &'a Observed<'a>,
    limits: &Limits,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(base, observed)?;
    let bytes = original.as_ref().map_or(&[][..], |original| original.bytes);
    let empty = Original::new(&[], None);
    let text = read_text(original.as_ref().unwrap_or(&empty), limits)?;
    let lines = Lines::of(&text);
    let (above, removed, candidates) = find(&edit.place, &lines).map_err(|error| {
        original.iter().fold(error.failure(&lines), |failure, file| failure.current(file.digest(0)))
    })?;
    let mut normalized = Vec::new();
    let mut warnings = Vec::new();
    let (new, new_lines) = match edit.place {
        Place::Whole => whole_text(edit.content, &text, &mut normalized, &mut warnings),
        _ => new_text(edit.content, &lines, above, removed, &mut normalized),
    };
    let range = lines.range(above, removed);
    if let Some(copy) = made::copy(&edit.place, &text, &range, &new) {
        let failure = already::applied(&text, &copy).change(0);
        return Err(original.iter().fold(failure, |failure, file| failure.current(file.digest(0))).into());
    }
    let mut replacements = vec![(range.clone(), new)];
    if text.is_unterminated() && !(matches!(edit.place, Place::Whole) || range.end == bytes.len() && removed > 0) {
        normalized.push(Normalization::FileEofNewlineAdded);
        let terminator = text.last_terminator().as_bytes().to_vec();
        if range.start == bytes.len() {
            replacements.insert(0, (bytes.len()..bytes.len(), terminator));
        } else {
            replacements.push((bytes.len()..bytes.len(), terminator));
        }
    }
    let edit = TextEdit::new(replacements)
        .map_err(|error| Failure::new(Reason::Internal, error.to_string()).hint("nothing was changed; report this"))?;
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let change = ChangeReport {
        tier: Tier::Exact,
        candidates,
        start_line: number(above + 1),
        end_line: number(above + new_lines),
    };
    let action = FileAction::Edit(edit);
    Ok(finish(observed, original, Draft { action, normalized, warnings, changes: vec![change] }))
}

/// A whole new content with a final terminator, in the form of the file in its place, and how many lines it has.
fn whole_text(
    content: &str,
    text: &Text<'_>,
    normalized: &mut Vec<Normalization>,
    warnings: &mut Vec<Warning>,
) -> (Vec<u8>, usize) {
    let mut content = Cow::Borrowed(content);
    if !content.is_empty() && !content.ends_with('\n') {
        normalized.push(Normalization::ContentEofNewlineAdded);
        let end = if content.contains("\r\n") { "\r\n" } else { "\n" };
        content.to_mut().push_str(end);
    }
    let formed = whole_text::keep_ends(&content, text);
    normalized.extend(formed.normalized);
    warnings.extend(formed.warnings);
    let lines = memchr::memchr_iter(b'\n', &formed.bytes).count();
    (formed.bytes.into_owned(), lines)
}

/// The content's lines as the file's own, and how many there are.
fn new_text(
    content: &str,
    lines: &Lines<'_>,
    above: usize,
    removed: usize,
    normalized: &mut Vec<Normalization>,
) -> (Vec<u8>, usize) {
    if content.is_empty() {
        return (Vec::new(), 0);
    }
    if !content.ends_with('\n') {
        normalized.push(Normalization::ContentEofNewlineAdded);
    }
    let body = content.strip_suffix('\n').unwrap_or(content);
    let (mut new, mut count, mut is_converted) = (Vec::with_capacity(content.len() + 2), 0, false);
    for line in body.split('\n') {
        let text = line.strip_suffix('\r').unwrap_or(line);
        let terminator =
            lines.terminator(if count < removed { above + count } else { (above + removed).wrapping_sub(1) });
        is_converted |= (text.len() < line.len()) != (terminator == Terminator::CrLf);
        new.extend_from_slice(text.as_bytes());
        new.extend_from_slice(terminator.as_bytes());
        count += 1;
    }
    // The line feed of the last line was taken off before its carriage return could be seen.
    if is_converted && content.contains("\r\n") {
        normalized.push(Normalization::LineEndings);
    }
    (new, count)
}

/// Where each line of a text starts.
struct Lines<'t> {
    text: &'t Text<'t>,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t Text<'t>) -> Self {
        let mut starts = Vec::with_capacity(text.lines() + 1);
        let mut cursor = text.cursor();
        starts.push(cursor.at());
        while cursor.next().is_some() {
            starts.push(cursor.at());
        }
        Self { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn start(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.bytes().len())
    }

    fn range(&self, above: usize, removed: usize) -> Range<usize> {
        self.start(above)..self.start(above + removed)
    }

    /// The text of a line, by its position from 0.
    fn line(&self, index: usize) -> &'t [u8] {
        let line = self.text.bytes().get(self.range(index, 1)).unwrap_or_default();
        match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        }
    }

    /// What ends a line, by its position; of no line, what ends line 1.
    fn terminator(&self, index: usize) -> Terminator {
        if index >= self.count() {
            return self.text.first_terminator();
        }
        let line = self.text.bytes().get(self.range(index, 1)).unwrap_or_default();
        if line.ends_with(b"\n") { Terminator::at_end_of(line) } else { self.text.last_terminator() }
    }

    /// The lines from one on that an anchor describes.
    fn fitting<'p>(&self, finder: &'p Finder<'_>, from: usize) -> Result<Vec<usize>, PlaceError<'p>> {
        let mut testing = Testing::of(&finder.test, self.text.bytes().len());
        let mut found = Vec::new();
        for index in from..self.count() {
            let fits = testing.fits(self.line(index));
            if fits.map_err(|GivenUp| PlaceError::Costly { anchor: finder.anchor })? {
                found.push(index);
            }
        }
        Ok(found)
    }

    fn excerpt(&self, index: usize) -> Excerpt {
        let text = cut(self.line(index), LINE_CHARS).into_owned();
        Excerpt { start_line: index + 1, end_line: index + 1, text }
    }
}

/// A test on its way through a text.
enum Testing<'t> {
    Contains(&'t memmem::Finder<'t>),
    Equals(&'t [u8]),
    Regex(&'t LineRegex, Box<Search>),
}

impl<'t> Testing<'t> {
    fn of(test: &'t Test<'_>, bytes: usize) -> Self {
        match test {
            Test::Contains(finder) => Self::Contains(finder),
            Test::Equals(text) => Self::Equals(text),
            Test::Regex(regex) => Self::Regex(regex, Box::new(regex.search(bytes))),
        }
    }

    fn fits(&mut self, line: &[u8]) -> Result<bool, GivenUp> {
        match self {
            Self::Contains(finder) => Ok(finder.find(line).is_some()),
            Self::Equals(text) => Ok(line == *text),
            Self::Regex(regex, search) => regex.is_match(search, line),
        }
    }
}

/// Why the place of an anchor edit is not found.
#[derive(Debug, thiserror::Error)]
enum PlaceError<'a> {
    #[error("the edit names line {named}, and the file has {}", counted(*lines, "line"))]
    PastEnd { named: usize, lines: usize },
    #[error("no line {} {:?}", verb(anchor), cut(anchor.text.as_bytes(), 80))]
    None { anchor: &'a Anchor },
    #[error("{} lines {} {:?}: {}", found.len(), verb_of_many(anchor), cut(anchor.text.as_bytes(), 80), listed(found))]
    Several { anchor: &'a Anchor, found: Vec<usize> },
    #[error("occurrence {asked} is asked for, and {} {:?}: {}", how_many(anchor, found.len()), cut(anchor.text.as_bytes(), 80), listed(found))]
    TooFew { anchor: &'a Anchor, asked: u32, found: Vec<usize> },
    #[error("no line below line {below} {} {:?}", verb(anchor), cut(anchor.text.as_bytes(), 80))]
    NoEnd { anchor: &'a Anchor, below: usize },
    #[error("looking for lines that match {:?} takes more steps than a file of this size is worth", cut(anchor.text.as_bytes(), 80))]
    Costly { anchor: &'a Anchor },
}

fn verb(anchor: &Anchor) -> &'static str {
    match anchor.matching {
        AnchorMatch::Contains => "contains",
        AnchorMatch::Equals => "equals",
        AnchorMatch::Regex => "matches",
    }
}

fn verb_of_many(anchor: &Anchor) -> &'static str {
    match anchor.matching {
        AnchorMatch::Contains => "contain",
        AnchorMatch::Equals => "equal",
        AnchorMatch::Regex => "match",
    }
}

fn how_many(anchor: &Anchor, found: usize) -> String {
    let verb = if found == 1 { verb(anchor) } else { verb_of_many(anchor) };
    format!("only {} {verb}", counted(found, "line"))
}

fn listed(found: &[usize]) -> String {
    let mut words = String::from(if found.len() == 1 { "line " } else { "lines " });
    for (position, index) in found.iter().take(CANDIDATES).enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        words.push_str(&format!("{comma}{}", index + 1));
    }
    if found.len() > CANDIDATES {
        words.push_str(", \u{2026}");
    }
    words
}

impl PlaceError<'_> {
    fn failure(&self, lines: &Lines<'_>) -> Failure {
        let (reason, detail, hint, shown): (_, _, _, &[usize]) = match self {
            Self::PastEnd { .. } => (
                Reason::LineRange,
                Detail::PastEnd,
                "take line numbers from the file as it is now; to add lines at the end, append them",
                &[],
            ),
            Self::None { .. } => {
                (Reason::TextNotFound, Detail::Anchor, "read the file, and name a line that stands in it", &[])
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
                "name an end that stands below the start, or another occurrence of the start",
                &[],
            ),
        };
        let mut failure = Failure::new(reason, self.to_string()).detail(detail).hint(hint).change(0);
        failure.line = shown.first().map(|index| index + 1);
        failure.nearest = shown.iter().take(SHOWN).map(|index| lines.excerpt(*index)).collect();
        failure
    }
}

/// How many lines lie above the place, how many go, and how many places came into question.
fn find<'p>(place: &'p Place<'_>, lines: &Lines<'_>) -> Result<(usize, usize, u32), PlaceError<'p>> {
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
            let ends = lines.fitting(end, first + 1)?;
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
fn one<'p>(finder: &'p Finder<'_>, lines: &Lines<'_>) -> Result<(usize, u32), PlaceError<'p>> {
    let anchor = finder.anchor;
    let found = lines.fitting(finder, 0)?;
    let candidates = u32::try_from(found.len()).unwrap_or(u32::MAX);
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
