//! A fence around a whole answer, or around the layout of its blocks (FILE-SPEC 5): read through if what it holds is whole.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::fence::{self, Answer, Block, Closing};
use super::named;
use super::place::place;
use crate::documents::recognise::{Telling, recognise_telling};
use crate::documents::search_replace::names;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Tags of fences that answers are wrapped in.
const TAGS: [&str; 7] = ["", "text", "txt", "plaintext", "markdown", "md", "answer"];

const ADVICE: &str = "drop the outer fence, so that each edit stands in a fence of its own; or leave the block out, if it only \
                      shows how an answer is written";

/// Puts the blocks inside an outer fence in its place.
///
/// # Errors
/// What is inside is not whole, or the answer has other edits: `has_edit` says whether any stand outside of such lines.
pub(super) fn read_through(
    answer: &mut Answer,
    lines: &named::Lines<'_>,
    has_edit: impl Fn(usize, usize) -> bool,
) -> Result<(), Failure> {
    if let Some((block, line)) = answer.blocks.iter().find_map(|block| Some((block, opened_inside(block)?))) {
        let message = format!(
            "the {} holds another opening fence at line {line}, whose closing one ends it: where it ends cannot be told",
            place(block)
        );
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Fence)
            .field(format!("line {line}"))
            .hint(format!("{ADVICE}; a fence around others has more backticks than they have")));
    }
    let wrapped = |block: &&Block| TAGS.contains(&block.tag.to_ascii_lowercase().as_str()) && has_edits(&block.text);
    let is_free = |block: &&Block| named::quote(block, lines).as_ref().and_then(named::sure).is_none();
    let mut outer =
        (0..answer.blocks.len()).filter(|index| answer.blocks.get(*index).filter(wrapped).filter(is_free).is_some());
    let Some(index) = outer.next() else { return Ok(()) };
    let is_only = outer.next().is_none();
    let Some(block) = answer.blocks.get(index) else { return Ok(()) };
    let others = answer.blocks.iter().enumerate().filter(|(other, _)| *other != index);
    let is_only =
        is_only && !has_edit(block.first_line, block.last_line) && others.into_iter().all(|(_, block)| !is_edit(block));
    let inside = fence::read(&block.text);
    let is_whole =
        block.closing == Closing::Aligned && inside.blocks.iter().all(|block| block.closing == Closing::Aligned);
    if !is_only || !is_whole {
        let why = if is_only { "its inside is not whole" } else { "the answer has other edits beside it" };
        let message = format!("the {} holds edits, and {why}, so that it may be an example", place(block));
        return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).hint(ADVICE));
    }
    let above = block.text_line.saturating_sub(1);
    let inner: Vec<Block> = inside.blocks.into_iter().map(|block| block.below(above)).collect();
    answer.comments.extend(inside.comments.into_iter().map(|(first, last)| (first + above, last + above)));
    answer.comments.sort_unstable();
    answer.prose.push(' ');
    answer.prose.push_str(&inside.prose);
    answer.blocks.splice(index..=index, inner);
    Ok(())
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

/// Whether what stands behind a fence may be a tag.
fn is_word(info: &str) -> bool {
    info.starts_with(|first: char| first.is_alphanumeric()) && !info.contains('`')
}

fn has_edits(text: &str) -> bool {
    // A fence in a fence is the only thing that is looked for.
    text.lines().any(|line| names::fence(line).is_some()) && fence::read(text).blocks.iter().any(is_edit)
}

/// Whether a block is an edit, or is written as one is.
pub(super) fn is_edit(block: &Block) -> bool {
    let tag: String = block.tag.to_ascii_lowercase();
    match tag.as_str() {
        "patch" | "diff" | "udiff" => super::outside::diff_header(&block.text).is_some(),
        "" => super::outside::diff_header(&block.text).is_some() || is_json(&block.text),
        tag if super::json::is_tag(tag) || super::json::is_own_tag(tag) => is_json(&block.text),
        _ => false,
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && matches!(recognise_telling(text.trim()), Ok(Telling::Edit(_)))
}
