//! A fence around a whole answer, or around the layout of its blocks (FILE-SPEC 5): read through if what it holds is whole.
//!
//! The fences inside may be as long as the outer one. As Markdown reads that, the first closing fence inside ends the outer
//! one, and nothing closes the last fence of the answer. So no answer is whole in both readings.

use super::fence::{self, Answer, Block, Closing};
use super::place::{place, refused};
use super::{json, named};
use crate::documents::git_patch::shape::diff_header;
use crate::documents::search_replace::names;
use crate::documents::telling::{Telling, recognise_telling};
use crate::failure::Failure;

/// Tags of fences that answers are wrapped in.
const TAGS: [&str; 7] = ["", "text", "txt", "plaintext", "markdown", "md", "answer"];

const ADVICE: &str = "drop the outer fence, so that each edit is in a fence of its own; or leave the block out, if it only \
                      shows how an answer is written";

/// Refuses an edit outside of the outer fence: then what is inside may be an example.
pub(super) fn check_holds<'b>(outer: &Block, mut edits: impl Iterator<Item = &'b Block>) -> Result<(), Failure> {
    let lines = outer.first_line..=outer.last_line;
    if edits.all(|edit| lines.contains(&edit.first_line)) { Ok(()) } else { Err(doubt(outer, BESIDE)) }
}

fn doubt(outer: &Block, why: &str) -> Failure {
    let message = format!("the {} holds edits, and {why}, so that it may be an example", place(outer));
    refused(None, message, ADVICE)
}

const BESIDE: &str = "the answer has other edits beside it";

/// The outer fence of an answer, if it has one, and its text with blank lines in the place of the fence. `taken` are the lines of edits that
/// are read whatever fences they are in, `text` is without them.
///
/// # Errors
/// What is inside is not whole, or there are two such fences.
pub(super) fn read_through(
    text: &str,
    answer: &Answer,
    lines: &named::Lines<'_>,
    taken: &[(usize, usize)],
) -> Result<Option<(Block, String, Answer)>, Failure> {
    let Some(outer) = find(text, answer, lines, taken)? else { return Ok(None) };
    if outer.closing != Closing::Aligned {
        return Err(doubt(&outer, "its inside is not whole"));
    }
    let fences = [outer.first_line, outer.last_line];
    let mut rest = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_fence = fences.contains(&(index + 1));
        rest.push_str(if is_fence { line.split_at(line.trim_end().len()).1 } else { line });
    }
    let inside = fence::read(&rest);
    let range = outer.first_line..=outer.last_line;
    let mut blocks = inside.blocks.iter().filter(|block| range.contains(&block.first_line));
    if !blocks.all(|block| block.closing == Closing::Aligned && range.contains(&block.last_line)) {
        return Err(doubt(&outer, "its inside is not whole"));
    }
    if find(&rest, &inside, lines, taken)?.is_some() {
        return Err(doubt(&outer, BESIDE));
    }
    Ok(Some((outer, rest, inside)))
}

/// The block of the outer fence.
fn find(
    text: &str,
    answer: &Answer,
    lines: &named::Lines<'_>,
    taken: &[(usize, usize)],
) -> Result<Option<Block>, Failure> {
    let has_edits = |block: &Block| {
        let first = taken.partition_point(|(first, _)| *first < block.first_line);
        let has_taken = taken.get(first).is_some_and(|(_, last)| *last <= block.last_line);
        block.text.lines().any(|line| names::fence(line).is_some())
            && (has_taken || fence::read(&block.text).blocks.iter().any(is_edit))
    };
    let is_outer = |block: &Block| {
        TAGS.contains(&block.tag.to_ascii_lowercase().as_str())
            && has_edits(block)
            && named::quote(block, lines).as_ref().and_then(named::document).is_none()
    };
    if let Some((index, line)) =
        answer.blocks.iter().enumerate().find_map(|(index, block)| Some((index, opened_inside(block)?)))
        && let Some(block) = answer.blocks.get(index)
    {
        let whole = if index == 0 { nested(text, block) } else { None };
        return whole.filter(is_outer).map(Some).ok_or_else(|| ambiguous_end(block, line));
    }
    let mut outer = answer.blocks.iter().filter(|block| is_outer(block));
    match (outer.next(), outer.next()) {
        (Some(block), Some(_)) => Err(doubt(block, BESIDE)),
        (one, _) => Ok(one.cloned()),
    }
}

fn ambiguous_end(block: &Block, line: usize) -> Failure {
    let message = format!(
        "the {} holds another opening fence at line {line}, whose closing one ends it: its end is ambiguous",
        place(block)
    );
    refused(line, message, format!("{ADVICE}; a fence around others has more backticks than they have"))
}

/// The first block of an answer as it is if the fences inside it are as long as its own: all opening ones have a tag, all of
/// them are closed, and the last closing one is its own. No fence is around it.
fn nested(text: &str, block: &Block) -> Option<Block> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let above = lines.get(..block.first_line.checked_sub(1)?)?;
    let is_top = above.iter().all(|line| line.trim().is_empty());
    let own = lines.get(above.len()).copied().and_then(Fence::of)?;
    let is_alone = above.iter().all(|line| names::fence(line).is_none());
    if !is_alone || own.info.is_empty() && !is_top {
        return None;
    }
    let (mut open, mut last, mut is_spaced) = (None, None, true);
    for (index, line) in lines.iter().enumerate().skip(above.len() + 1) {
        let Some(info) = names::fence(line) else { continue };
        let fence = Fence::of(line).filter(|fence| fence.marks == own.marks && last.is_none())?;
        match (open.take(), fence.info.is_empty()) {
            (None, false) if is_word(info.trim()) => {
                open = Some(index);
                is_spaced &= lines.get(index - 1).is_some_and(|above| names::fence(above).is_none());
            }
            (Some(_), true) => {}
            (None, true) => last = Some(index),
            _ => return None,
        }
    }
    let last = last?;
    // Where the answer was cut, a fence that seems to close may be the first marks of one that opens.
    let is_end = lines.get(last).is_some_and(|line| !line.ends_with('\n'));
    if is_end && !(is_spaced && names::fence(lines.get(last - 1)?).is_some()) {
        return None;
    }
    let inside = lines.get(block.first_line..last)?.concat();
    Some(Block { text: inside, last_line: last + 1, closing: Closing::Aligned, ..block.clone() })
}

/// A line that is a fence.
struct Fence<'a> {
    /// The marks, with the blanks before them.
    marks: &'a str,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        let mark = words.chars().next().filter(|mark| matches!(mark, '`' | '~') && indent <= 3)?;
        let (marks, info) = line.split_at(indent + words.len() - words.trim_start_matches(mark).len());
        (marks.len() >= indent + 3).then(|| Self { marks, info: info.trim() })
    }
}

/// The line of a fence inside a block that opens, and is long enough to be closed by what closes the block.
fn opened_inside(block: &Block) -> Option<usize> {
    let tag = block.tag.to_ascii_lowercase();
    if matches!(tag.as_str(), "patch" | "diff" | "udiff") || is_edit(block) {
        return None;
    }
    let (own_mark, own_length) = block.fence?;
    let mut lines = block.text.lines().enumerate();
    let opens = |line: &str| {
        let marks = line.trim_start_matches(' ');
        let is_fence = line.len() - marks.len() <= 3;
        let length = marks.chars().take_while(|mark| *mark == own_mark).count();
        let info = names::fence(line).map(str::trim);
        is_fence && length >= own_length && info.is_some_and(is_word)
    };
    lines.find(|(_, line)| opens(line)).map(|(index, _)| block.text_line + index)
}

/// Whether what is behind a fence may be a tag.
fn is_word(info: &str) -> bool {
    info.starts_with(|first: char| first.is_alphanumeric()) && !info.contains('`')
}

/// Whether a block is an edit, or is written as one is.
pub(super) fn is_edit(block: &Block) -> bool {
    let tag: String = block.tag.to_ascii_lowercase();
    match tag.as_str() {
        "patch" | "diff" | "udiff" => diff_header(&block.text).is_some(),
        "" => diff_header(&block.text).is_some() || is_json(&block.text),
        tag if json::is_tag(tag) || json::is_own_tag(tag) => is_json(&block.text),
        _ => false,
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && matches!(recognise_telling(text.trim()), Ok(Telling::Edit(_)))
}
