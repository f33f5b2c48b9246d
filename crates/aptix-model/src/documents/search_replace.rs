//! The search-replace document: blocks of lines of a file, and of their new lines, each below
//! its file's name; as aider, Cline and Roo have them. What is around the blocks is prose.
//!
//! All blocks of a document are one batch, those of one file made in their order. Names are taken as they are written.

mod block;
mod file_name;
pub(super) mod names;
mod tail;

use std::collections::{BTreeMap, BTreeSet};

use super::dialect::Parsed;
use super::text_lines::{Line, cut_short, lines, malformed, quoted, too_many};
use crate::batch::{Batch, FileEdit, FilePatch, Replacement, Replacements, Target};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};
use crate::report::Warning;
use block::{Block, Marker};
use file_name::{Above, Found, Name};
use tail::Tail;

/// Whether a text begins with a search-replace block: nothing but a name may be above it.
pub(super) fn begins(text: &str) -> bool {
    let mut lines = lines(text).filter(|line| !line.text.trim().is_empty()).map(|line| line.text);
    match lines.next() {
        Some(first) if Marker::of(first).is_some_and(Marker::is_open) => true,
        Some(first) => names::of(first).is_some() && lines.next().and_then(Marker::of).is_some_and(Marker::is_open),
        None => false,
    }
}

pub(super) fn parse(text: &str) -> Parsed {
    let (batch, warnings, tail) = read(text)?;
    tail.check(text)?;
    Ok((batch, warnings))
}

/// Reads the blocks of an answer, which may go on below them with anything but a part of a marker.
pub(super) fn parse_in_answer(text: &str) -> Parsed {
    let (batch, warnings, tail) = read(text)?;
    tail.check_marker()?;
    Ok((batch, warnings))
}

fn read(text: &str) -> Result<(Batch, Vec<Warning>, Tail<'_>), Failure> {
    let mut files: Vec<(String, Vec<Replacement>)> = Vec::new();
    let (mut positions, mut added) = (BTreeMap::new(), BTreeSet::new());
    let (mut above, mut current, mut warnings) = (Above::default(), None, Vec::new());
    let (mut indented, mut tail) = (None, Tail::default());
    let mut lines = lines(text);
    while let Some(line) = lines.next() {
        match Marker::of(line.text) {
            Some(marker) if marker.is_open() => {
                let block = Block::read(line, marker, &mut lines, &mut warnings)?;
                let name = name(line, &block, &above, current.take())?;
                if files.len() == Limits::DEFAULT.files && !positions.contains_key(&name) {
                    return Err(too_many(line.number, Detail::Files, Limits::DEFAULT.files));
                }
                let position = *positions.entry(name.clone()).or_insert(files.len());
                if position == files.len() {
                    files.push((name.clone(), Vec::new()));
                }
                if let Some((_, steps)) = files.get_mut(position) {
                    let above = steps.len();
                    block.add_to(steps)?;
                    refuse_doubled(line, (position, &name), steps.split_at(above).1, &mut added)?;
                }
                (above, current) = (Above::default(), Some(name));
                tail.pass_block(line.text);
            }
            Some(marker) if marker.is_close() => {
                let message = format!("{} ends no block", quoted(line.text));
                return Err(malformed(Some(line.number), Detail::Marker, message).hint(block::ESCAPE));
            }
            _ => {
                if Marker::of(line.text.trim_start()).is_some_and(Marker::is_open) {
                    indented = indented.or(Some(line.number));
                }
                tail.add(line, !files.is_empty());
                refuse_near_marker(line)?;
                above.add(line.text);
            }
        }
    }
    if let Some(line) = indented {
        let message = "a SEARCH marker has blanks before it, expected it at the start of its line";
        return Err(
            malformed(Some(line), Detail::Marker, message).hint("indent neither the markers nor the fence around them")
        );
    }
    if files.is_empty() {
        return Err(Failure::new(Reason::NoEditFound, "the document has no line '<<<<<<< SEARCH'").hint(
            "write each change as the lines '<<<<<<< SEARCH', old lines, '=======', new lines, '>>>>>>> REPLACE'",
        ));
    }
    let files = files.into_iter().map(|(path, steps)| FilePatch {
        target: Target::Path(path),
        key: None,
        label: None,
        edit: FileEdit::Replacements(Replacements { steps }),
    });
    Ok((Batch { files: files.collect(), ..Batch::default() }, warnings, tail))
}

/// Refuses a block that adds the same lines to a file as a block above it, where no old lines would miss their place the
/// second time; `added` are the lines that blocks above add, with the positions of their files.
fn refuse_doubled(
    line: Line<'_>,
    (position, path): (usize, &str),
    steps: &[Replacement],
    added: &mut BTreeSet<(usize, String)>,
) -> Result<(), Failure> {
    let mut adding = steps.iter().filter(|step| step.find.is_empty());
    if adding.all(|step| added.insert((position, step.replace.clone()))) {
        return Ok(());
    }
    let message = format!("the block adds the same lines to {} as a block above it", quoted(path));
    Err(malformed(Some(line.number), Detail::Marker, message).hint("send each change once"))
}

/// The first and the last line of each block.
pub(super) fn places(text: &str) -> Result<Vec<(usize, usize)>, Failure> {
    let mut places = Vec::new();
    let mut lines = lines(text);
    while let Some(line) = lines.next() {
        if let Some(marker) = Marker::of(line.text).filter(|marker| marker.is_open()) {
            Block::read(line, marker, &mut lines, &mut Vec::new())?;
            let last = lines.clone().next().map(|below| below.number - 1);
            places.push((line.number, last.unwrap_or_else(|| self::lines(text).count())));
        } else {
            refuse_near_marker(line)?;
        }
    }
    Ok(places)
}

/// Refuses a line that begins no block, though it can hardly be meant to do anything else.
fn refuse_near_marker(line: Line<'_>) -> Result<(), Failure> {
    if block::is_cut_opening(line.text) {
        let message = format!("{} is the beginning of a marker '<<<<<<< SEARCH'", quoted(line.text));
        return Err(cut_short(line.number, message));
    }
    if !block::is_near_opening(line.text) {
        return Ok(());
    }
    let message = format!("{} begins no block, expected '<<<<<<< SEARCH'", quoted(line.text));
    Err(malformed(Some(line.number), Detail::Marker, message).hint(
        "write the markers as '<<<<<<< SEARCH', '=======' and '>>>>>>> REPLACE', each alone on its line, or leave it out",
    ))
}

/// Whether a line would begin a block if it were not indented.
pub(super) fn is_opening(line: &str) -> bool {
    Marker::of(line.trim_start()).is_some_and(Marker::is_open)
}

/// The file of a block below a line: the one that is named above, or that of the block before.
fn name(line: Line<'_>, block: &Block<'_>, above: &Above<'_>, before: Option<String>) -> Result<String, Failure> {
    match above.name() {
        Found::Name(Name { path, is_bare_word: true }) if block.has_no_old_text() => Err(bare_word(line, &path)),
        Found::Name(Name { path, .. }) => Ok(path),
        // What replaces nothing fits every file, so that nothing would tell that another one is meant.
        Found::Nothing => before.filter(|_| !block.has_no_old_text()).ok_or_else(|| nameless(line, block)),
        Found::Among(words) => match before {
            Some(before) if before == document_spelling(words) => Ok(before),
            _ => Err(among_others(line, words)),
        },
        Found::Two(one, other) => Err(two_names(line, one, other)),
    }
}

const ALONE: &str = "write the file's path, from the workspace's root down, alone on the line above the block";

fn nameless(line: Line<'_>, block: &Block<'_>) -> Failure {
    let message = "the block has no file, expected its name in one of the three lines above";
    let failure = malformed(Some(line.number), Detail::Missing, message);
    match block.first_line().and_then(names::in_comment) {
        Some(path) => {
            failure.hint(format!("{ALONE}; its first line {path:?} may be a line of the file, and is taken for one"))
        }
        None => failure.hint(ALONE),
    }
}

fn among_others(line: Line<'_>, words: &str) -> Failure {
    let message = format!("{} above the block may be its file's name, and is not alone right above it", quoted(words));
    malformed(Some(line.number), Detail::Missing, message).hint(ALONE)
}

fn two_names(line: Line<'_>, one: &str, other: &str) -> Failure {
    let message = format!("two files are named above the block, {} and {}", quoted(one), quoted(other));
    malformed(Some(line.number), Detail::Missing, message)
        .hint("leave one of them out, or write both in the same way, from the workspace's root down")
}

/// Refuses to make a file of what may be a word of the prose.
fn bare_word(line: Line<'_>, word: &str) -> Failure {
    let message =
        format!("{word:?} above the block may be a file's name or a word, and the block would make that file");
    malformed(Some(line.number), Detail::Missing, message).hint(format!(
        "write the name as a path, './{word}' or in backticks, or alone on the line right above the block"
    ))
}
