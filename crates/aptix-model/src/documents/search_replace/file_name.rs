//! The name of a block's file: in the last three lines above it, on a line of its own or behind the fence. Where two
//! files are named, or one among other words, the block is refused.

use super::names::{self, is_path};
use crate::path::document_spelling;

/// Lines above a block that may have its file's name.
const ABOVE: usize = 3;

/// Words that join two blocks. No word of prose is a file's name unless it is written as one.
const JOINING: [&str; 9] = ["after", "also", "and", "before", "finally", "next", "or", "plus", "then"];

/// A name that is above a block.
pub(super) struct Name {
    pub(super) path: String,
    /// Whether it is one word that may as well be one of the prose: neither alone right above the block, nor a path.
    pub(super) is_bare_word: bool,
}

/// What is above a block.
pub(super) enum Found<'a> {
    Nothing,
    Name(Name),
    /// The names of two files.
    Two(&'a str, &'a str),
    /// A path, or something below a label, that is not alone on its line, or too far above.
    Among(&'a str),
}

/// What is above a block.
#[derive(Default)]
pub(super) struct Above<'a> {
    /// The last lines, the lowest one last.
    last: [&'a str; ABOVE],
    /// The path that the last heading names, however far above.
    heading: Option<&'a str>,
}

impl<'a> Above<'a> {
    pub(super) fn add(&mut self, line: &'a str) {
        self.last.rotate_left(1);
        if let Some(last) = self.last.last_mut() {
            *last = line;
        }
        self.heading = names::in_heading(line).or(self.heading);
    }

    /// The name of the file. A path on a line of its own comes before one behind a fence, and that before a bare word.
    pub(super) fn name(&self) -> Found<'a> {
        let mut lines = self.last.iter().copied().rev().filter(|line| !line.trim().is_empty()).peekable();
        let inside = lines.next_if(|line| named(line).is_some());
        let (mut behind, mut is_below) = (None, inside.is_some());
        while let Some(info) = lines.peek().and_then(|line| names::fence(line)) {
            // A fence without a word may be the end of something else.
            if inside.is_some() && info.trim().is_empty() {
                break;
            }
            (behind, is_below) = (behind.or(names::behind(info)), false);
            lines.next();
        }
        // In any case, what is above it belongs to something else.
        let outside = lines.next().filter(|_| !is_below);
        let with_name = |line: Option<&'a str>| line.and_then(|line| Some((named(line)?, line)));
        let (inside, among) = (with_name(inside), outside.and_then(names::among));
        let outside = with_name(outside);
        let path = |found: Option<(&'a str, &'a str)>| found.map(|(name, _)| name).filter(|name| is_path(name));
        let sure = [path(inside), path(outside), behind.filter(|behind| behind.is_sure).map(|behind| behind.path)];
        let mut sure = sure.into_iter().flatten();
        let one = sure.next();
        if let Some(one) = one
            && let Some(other) = sure.find(|other| document_spelling(other) != document_spelling(one))
        {
            return Found::Two(one, other);
        }
        let behind = behind.map(|behind| behind.path);
        if let Some(path) = one.or(behind.filter(|_| inside.is_none())) {
            return Found::Name(Name { path: document_spelling(path), is_bare_word: false });
        }
        match (inside.or(outside), among) {
            (Some((name, line)), _) => {
                let is_alone = self.last.last().is_some_and(|last| last.trim() == name);
                let is_bare_word = !line.contains('`') && !is_alone;
                Found::Name(Name { path: document_spelling(name), is_bare_word })
            }
            (None, among) => among.or(self.heading).map_or(Found::Nothing, Found::Among),
        }
    }
}

/// The name on a line of its own.
fn named(line: &str) -> Option<&str> {
    let is_joining = |name: &str| JOINING.iter().any(|word| word.eq_ignore_ascii_case(name)) && !line.contains('`');
    names::of(line).filter(|name| !is_joining(name))
}
