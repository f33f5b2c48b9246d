//! An anchor edit checked without its file: by line number, beside a line that is described, or in the place of everything.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use aptix_model::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Occurrence};
use aptix_model::lines::{LineError, LineNumber};
use memchr::memmem;

use crate::checking::regexes::RegexError;
use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::shown::cut;
use crate::target::Base;
use crate::text::line_regex::{CompileError, LineRegex};

/// An anchor edit in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct ValidAnchorEdit<'a> {
    pub(super) place: Place<'a>,
    pub(super) content: &'a str,
}

#[derive(Clone, Debug)]
pub(super) enum Place<'a> {
    Range { above: usize, end: Option<usize> },
    Append,
    After(Finder<'a>),
    Before(Finder<'a>),
    Between { start: Finder<'a>, end: Box<Finder<'a>>, takes_anchors: bool },
    Whole,
}

/// Finds the lines that an anchor describes.
#[derive(Clone, Debug)]
pub(super) struct Finder<'a> {
    pub(super) anchor: &'a Anchor,
    pub(super) test: Test<'a>,
}

#[derive(Clone, Debug)]
pub(super) enum Test<'a> {
    Contains(Box<memmem::Finder<'a>>),
    Equals(&'a [u8]),
    Regex(Box<LineRegex>),
}

/// Checks everything about an anchor edit that needs no file.
pub(crate) fn check<'a>(edit: &'a AnchorEdit, site: &mut Site<'_, 'a>) -> Option<(Base, ValidAnchorEdit<'a>)> {
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
    Some((base, ValidAnchorEdit { place, content: &edit.content }))
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
    match error {
        RegexError::Compile(error @ (CompileError::Syntax(_) | CompileError::Unsupported(_))) => {
            Violation::Regex { text, why: error.reason() }
        }
        RegexError::Compile(_) | RegexError::Batch => Violation::RegexBudget { text, why: error.to_string() },
    }
}
