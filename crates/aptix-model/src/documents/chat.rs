//! A whole answer: the edits in its fenced blocks become one batch (FILE-SPEC 5).
//!
//! Each block is applied, taken for an example and named in a warning, or refuses the answer. What looks like an edit and
//! cannot be read as one refuses it, for the other edits may mean nothing without it. A block that is no edit and may be named
//! for a file goes with the batch as a quote: the files decide.

mod beside;
mod call;
mod declined;
mod envelope;
mod fence;
mod json;
mod kind;
mod merge;
mod named;
mod other_edits;
mod outer;
mod outside;
mod path_name;
mod place;
mod tagged_calls;
pub(super) mod thought;

use super::dialect::Parsed;
use super::git_patch::shape::diff_header;
use super::search_replace::{self, names};
use crate::failure::Failure;
use crate::quote::Quote;
use crate::reason::Reason;
use crate::report::Warning;
use declined::Declined;
use fence::{Answer, Block, Closing};
use kind::Kind;
pub(super) use other_edits::{has_edits, has_other_blocks, is_bare_diff};
use place::{cut_fence, open_fence, place, refused};

/// Most warnings about blocks that are no edits; the last one says how many more there are.
const WARNINGS: usize = 100;

/// Reads an answer that begins with no thought.
pub(super) fn parse(text: &str) -> Parsed {
    let (Sorted { mut edits, mut warnings, quotes, passed_over }, answer) = sort(text)?;
    let refusal = declined(&answer, &passed_over, &edits)
        .or_else(|| edits.is_empty().then(|| no_edit(&answer, &quotes, &warnings)));
    if let Some(failure) = refusal {
        return Err(failure.into());
    }
    // A bundle in an answer comes before its diff (FILE-SPEC 5.2, 5.3).
    edits.sort_by_key(|(kind, _)| !matches!(kind, Kind::Json(_)));
    let (mut batch, merged) = merge::merge(&edits)?;
    // Only now: what is wrong inside a block that nothing ends says more.
    if let Some(block) = answer.blocks.iter().find(|block| block.closing == Closing::Missing) {
        return Err(open_fence(block).into());
    }
    if let Some(failure) = cut_fence(text) {
        return Err(failure.into());
    }
    batch.quotes = quotes;
    warnings.extend(merged);
    Ok((batch, warnings))
}

/// The blocks of an answer, sorted.
#[derive(Default)]
struct Sorted {
    edits: Vec<(Kind, Block)>,
    /// Each block that is an example of something.
    warnings: Vec<Warning>,
    /// Each block that is no edit and may be named for a file.
    quotes: Vec<Quote>,
    /// The words of all blocks that are no edits.
    passed_over: String,
}

impl Sorted {
    /// Sorts the fenced blocks; `taken` are the lines of edits that are read whatever fences they are in.
    fn of(answer: &Answer, lines: &named::Lines<'_>, taken: &[(usize, usize)]) -> Result<Self, Failure> {
        let mut sorted = Self::default();
        for block in &answer.blocks {
            let why = match kind::of(block)? {
                Ok(edit) => {
                    sorted.edits.push(edit);
                    continue;
                }
                Err(why) => why,
            };
            // The taken lines do not overlap.
            let first = taken.partition_point(|(first, _)| *first < block.first_line);
            if taken.get(first).is_some_and(|(_, last)| *last <= block.last_line) {
                beside::check_rest(block)?;
                continue;
            }
            declined::add_words(&mut sorted.passed_over, &block.text);
            match named::quote(block, lines) {
                Some(quote) => sorted.quotes.push(quote),
                None => {
                    let message = format!("the {} is no edit: {why}", place(block));
                    let line = Some(block.first_line);
                    sorted.warnings.push(Warning { code: "BLOCK_IGNORED".into(), message, line });
                }
            }
        }
        shorten(&mut sorted.warnings);
        Ok(sorted)
    }

    /// Takes the text outside of all blocks for a diff if it has one and there is no other edit, refuses other edits in it,
    /// and looks at the indented blocks.
    fn check_outside(
        &mut self,
        unfenced: &str,
        answer: &Answer,
        lines: &named::Lines<'_>,
        taken: &[(usize, usize)],
    ) -> Result<(), Failure> {
        // Lines of a diff without a fence are no indented blocks.
        let mut bare = usize::MAX;
        match diff_header(unfenced) {
            Some(line) if self.edits.is_empty() => {
                let diff = Block::unfenced("bare diff", unfenced.to_owned(), (line, unfenced.lines().count()));
                self.edits.push((Kind::BareDiff, Block { text_line: 1, ..diff }));
                bare = line;
            }
            _ => outside::check_no_diff(unfenced)?,
        }
        outside::check(unfenced, self.edits.iter().map(|(_, block)| block.first_line).min())?;
        let is_free = |block: &&Block| {
            let below = taken.partition_point(|(_, last)| *last < block.first_line);
            block.first_line < bare && taken.get(below).is_none_or(|(first, _)| block.last_line < *first)
        };
        for block in answer.indented.iter().filter(is_free) {
            beside::check_indented(block)?;
            self.quotes.extend(named::quote(block, lines).filter(|quote| named::sure(quote).is_some()));
        }
        Ok(())
    }
}

/// The lines of edits that are read whatever fences they are in, top to bottom.
fn spans<'b>(places: &[(usize, usize)], blocks: impl Iterator<Item = &'b Block>) -> Vec<(usize, usize)> {
    let mut spans: Vec<_> = places.iter().copied().chain(blocks.map(Block::lines)).collect();
    spans.sort_unstable();
    spans
}

fn sort(text: &str) -> Result<(Sorted, Answer), Failure> {
    let places = search_replace::places(text)?;
    let (mut rest, mut outside) = envelope::take_out(text, &places);
    let mut answer = fence::read(&rest);
    let taken = spans(&places, outside.iter());
    let lines = |answer: &Answer, taken: &[(usize, usize)]| {
        named::Lines::new(text, answer.blocks.iter().map(Block::lines).chain(taken.iter().copied()))
    };
    let through = outer::read_through(&rest, &answer, &lines(&answer, &taken), &taken)?;
    let outer = through.map(|(outer, inside_of, inside)| {
        (rest, answer) = (inside_of, inside);
        outer
    });
    for block in &mut answer.blocks {
        let (rest, found) = envelope::take_out(&block.text, &[]);
        outside.extend(found.into_iter().map(|found| found.below(block.text_line.saturating_sub(1))));
        block.text = rest;
    }
    let (unfenced, calls) = tagged_calls::take_out(&outside::of(&answer, &rest))?;
    let taken = spans(&places, outside.iter().chain(calls.iter().map(|(_, call)| call)));
    let lines = lines(&answer, &taken);
    let mut sorted = Sorted::of(&answer, &lines, &taken)?;
    outside::check_not_in_comment(&answer, taken.iter().copied())?;
    let mut edits: Vec<(Kind, Block)> = outside.into_iter().map(|envelope| (Kind::Envelope, envelope)).collect();
    if let (Some((first, _)), Some((_, last))) = (places.first(), places.last()) {
        // All blocks of old and new lines are one document, whatever their fences.
        let document = Block::unfenced(Kind::SearchReplace.name(), text.into(), (*first, *last));
        edits.push((Kind::SearchReplace, Block { text_line: 1, ..document }));
    }
    edits.extend(calls.into_iter().map(|(dialect, block)| (Kind::Json(dialect), block)));
    edits.append(&mut sorted.edits);
    sorted.edits = edits;
    sorted.check_outside(&unfenced, &answer, &lines, &taken)?;
    if let Some(outer) = outer {
        outer::check_holds(&outer, sorted.edits.iter().map(|(_, block)| block))?;
    }
    Ok((sorted, answer))
}

/// Puts one warning in the place of all that are too many.
fn shorten(warnings: &mut Vec<Warning>) {
    let Some(more) = warnings.len().checked_sub(WARNINGS).filter(|more| *more > 0) else { return };
    warnings.truncate(WARNINGS - 1);
    let message = format!("{} more blocks of the answer are no edits", more + 1);
    warnings.push(Warning { code: "BLOCK_IGNORED".into(), message, line: None });
}

fn declined(answer: &Answer, passed_over: &str, edits: &[(Kind, Block)]) -> Option<Failure> {
    let in_blocks = || declined::find(passed_over).filter(|_| edits.is_empty());
    let (what, sentence) = declined::find(&answer.prose).or_else(in_blocks)?;
    let is_meant = match what {
        Declined::Patch => true,
        Declined::GitPatch => edits.iter().all(|(kind, _)| !matches!(kind, Kind::Json(_))),
    };
    let failure = Failure::new(Reason::AuthorDeclined, format!("the answer says: {sentence}"));
    let hint = match edits.first() {
        None => "give the author what is missing, or ask for a file bundle".into(),
        Some((_, block)) => {
            format!("the answer has an edit all the same, the {}; send it without the sentence", place(block))
        }
    };
    is_meant.then(|| failure.hint(hint))
}

/// Whether the fence of a block names lines of a file, so that it only quotes them.
fn is_numbered(answer: &Answer, quote: &Quote) -> bool {
    let block = answer.blocks.iter().find(|block| block.first_line == quote.first_line as usize);
    block.and_then(|block| names::behind(&block.info)).is_some_and(|behind| behind.is_quote)
}

fn no_edit(answer: &Answer, quotes: &[Quote], warnings: &[Warning]) -> Failure {
    if let Some((quote, name)) = quotes
        .iter()
        .find_map(|quote| Some((quote, named::sure(quote)?)))
        .filter(|(quote, _)| !is_numbered(answer, quote))
    {
        let (first, last) = (quote.first_line, quote.last_line);
        let message =
            format!("the block at lines {first} to {last} of the answer is named for {name:?} and holds no edit");
        return refused(
            first as usize,
            message,
            "send a whole file in a file bundle, and a part of one between SEARCH and REPLACE markers; leave the block out \
             if it only shows code",
        );
    }
    let blocks = answer.blocks.len();
    let message = match warnings.first() {
        None if blocks == 0 => "the answer has no edit: it has no fenced block".into(),
        None => format!("the answer has no edit: none of its {blocks} fenced blocks holds one"),
        Some(first) => {
            format!("the answer has no edit: none of its {blocks} fenced blocks holds one; {}", first.message)
        }
    };
    Failure::new(Reason::NoEditFound, message)
        .hint("send the edit in a block fenced with ```json or ```patch, or as the document alone")
}
