//! Where an anchor edit goes, checked: by line number, beside a line that is described, or in the place of everything.

use alloc::boxed::Box;

use aptix_model::batch::Anchor;
use memchr::memmem;

use crate::text::line_regex::LineRegex;

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
