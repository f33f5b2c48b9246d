//! A whole answer: the edits in its fenced blocks become one batch (FILE-SPEC 5).
//!
//! One block of each kind; blocks that are no edits are passed over. What looks like an edit and cannot be read as one
//! refuses the answer, for the other edits may mean nothing without it.

mod bare;
mod declined;
mod envelope;
mod fence;
mod outside;
mod thought;

use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::git_patch::{self, Extent};
use super::recognise::{find_json, recognise, recognise_json, tells_json};
use super::search_replace::names;
use super::{Dialect, read, search_replace};
use crate::batch::{Batch, FilePatch, Target};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};
use crate::report::Warning;
pub(super) use bare::is_bare_diff;
use declined::Declined;
use fence::{Answer, Block, Closing};
pub(super) use outside::diff_header;
use outside::misplaced_diff;
use thought::Thoughtful;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json(Dialect),
    Envelope,
    Diff,
    SearchReplace,
}

impl Kind {
    const fn dialect(self) -> Dialect {
        match self {
            Self::Json(dialect) => dialect,
            Self::Envelope => Dialect::CodexPatch,
            Self::Diff => Dialect::GitPatch,
            Self::SearchReplace => Dialect::SearchReplace,
        }
    }

    /// What edits of the kind are called.
    const fn name(self) -> &'static str {
        match self {
            Self::Json(_) => "json",
            Self::Envelope => "'*** Begin Patch'",
            Self::Diff => "patch",
            Self::SearchReplace => "SEARCH/REPLACE",
        }
    }
}

pub(super) fn parse(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let Some(Thoughtful { rest, warning }) = thought::take_out(text).map_err(|failure| vec![failure])? else {
        return parse_answer(text);
    };
    // What is left may be a document alone, as any text may.
    let dialect = if rest.trim().is_empty() { Ok(Dialect::Chat) } else { recognise(rest.as_bytes()) };
    let (batch, warnings) = match dialect.map_err(|failure| vec![failure])? {
        Dialect::Chat => parse_answer(&rest)?,
        dialect => read(rest.as_bytes(), dialect)?,
    };
    Ok((batch, warning.into_iter().chain(warnings).collect()))
}

fn parse_answer(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let places = search_replace::places(text).map_err(|failure| vec![failure])?;
    let (rest, mut outside) = envelope::take_out(text, &places);
    let mut answer = fence::read(&rest);
    for block in &mut answer.blocks {
        let (rest, found) = envelope::take_out(&block.text, &[]);
        outside.extend(found.into_iter().map(|found| found.below(block.text_line.saturating_sub(1))));
        block.text = rest;
    }
    let mut edits: Vec<(Kind, &Block)> = outside.iter().map(|envelope| (Kind::Envelope, envelope)).collect();
    let blocks_of_lines = search_replace_document(text, &places);
    edits.extend(blocks_of_lines.iter().map(|document| (Kind::SearchReplace, document)));
    let mut passed_over = String::new();
    let mut warnings = Vec::new();
    let lines: Vec<&str> = rest.lines().collect();
    for block in &answer.blocks {
        match kind(block, &places, &lines).map_err(|failure| vec![failure])? {
            Ok(kind) => edits.push((kind, block)),
            Err(why) => {
                add_text(&mut passed_over, &block.text);
                let warn = |why| {
                    let message = format!("the {} is no edit: {why}", place(block));
                    Warning { code: "BLOCK_IGNORED".into(), message, line: None }
                };
                warnings.extend(why.map(warn));
            }
        }
    }
    let unfenced = outside.iter().map(|envelope| (envelope.first_line, envelope.last_line));
    outside::check_not_in_comment(&answer, places.iter().copied().chain(unfenced)).map_err(|failure| vec![failure])?;
    let first = edits.iter().map(|(_, block)| block.first_line).min();
    outside::check(&outside::of(&answer, &rest), first).map_err(|failure| vec![failure])?;
    let refusal = declined(&answer, &passed_over, &edits).or_else(|| second_of_a_kind(&edits)).or_else(|| {
        let nothing = edits.is_empty().then(|| no_edit(&answer, &warnings));
        nothing.or_else(|| unclosed(&answer))
    });
    if let Some(failure) = refusal {
        return Err(vec![failure]);
    }
    // A bundle in an answer comes before its diff (FILE-SPEC 5.2, 5.3).
    edits.sort_by_key(|(kind, _)| !matches!(kind, Kind::Json(_)));
    let mut batch = Batch::default();
    let mut seen = BTreeMap::new();
    for (kind, block) in edits {
        let (part, found) = read_block(kind, block)?;
        for file in &part.files {
            check_other_blocks(file, block, &mut seen).map_err(|failure| vec![failure])?;
        }
        batch.label = batch.label.or(part.label);
        batch.key = batch.key.or(part.key);
        batch.files.extend(part.files);
        warnings.extend(found);
    }
    Ok((batch, warnings))
}

/// All blocks of old and new lines as one document, whatever their fences.
fn search_replace_document(answer: &str, places: &[(usize, usize)]) -> Option<Block> {
    let ((first_line, _), (_, last_line)) = (places.first()?, places.last()?);
    Some(Block {
        tag: Kind::SearchReplace.name().into(),
        info: String::new(),
        text: answer.into(),
        text_line: 1,
        first_line: *first_line,
        last_line: *last_line,
        closing: Closing::Aligned,
    })
}

/// What a block holds; if that is no edit, perhaps why it is worth a warning.
fn kind(block: &Block, places: &[(usize, usize)], lines: &[&str]) -> Result<Result<Kind, Option<String>>, Failure> {
    if block.tag == "json" {
        let text = block.text.trim();
        if text.is_empty() {
            return Ok(Err(None));
        }
        if block.closing == Closing::Missing {
            return Err(open_fence(block));
        }
        let found = recognise_json(text.as_bytes()).map_err(|failure| {
            let again = recognise_json(at_its_lines(block).as_bytes());
            within(block, again.err().unwrap_or(failure))
        })?;
        return Ok(found.map(Kind::Json).map_err(Some));
    }
    if matches!(block.tag.as_str(), "patch" | "diff") && !block.text.trim().is_empty() {
        return diff(block);
    }
    if let Some(line) = block.text.lines().position(search_replace::is_opening) {
        let line = block.text_line + line;
        return Err(Failure::new(
            Reason::InvalidRequest,
            format!("the {} has an indented SEARCH marker", place(block)),
        )
        .detail(Detail::Marker)
        .field(format!("line {line}"))
        .hint("indent neither the markers nor the fence around them"));
    }
    if let Some(dialect) = tells_json(&block.text) {
        let message = format!("the {} holds a {dialect}; edits in JSON are read from blocks tagged json", place(block));
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Fence)
            .hint("write the opening fence as ```json, or leave the block out"));
    }
    if let Some(line) = outside::indented_envelope(&block.text) {
        return Err(outside::misplaced_envelope(block.text_line + line - 1, &format!("the {}", place(block))));
    }
    match diff_header(&block.text) {
        Some(line) => Err(misplaced_diff(block.text_line + line - 1, &format!("the {}", place(block)))),
        None => unread_file(block, places, lines).map(Err),
    }
}

/// Refuses a block that is named for a file and holds no edit: the whole file, or a part of it, nobody can tell. A comment
/// or a line above it that names one is worth a warning.
fn unread_file(block: &Block, places: &[(usize, usize)], lines: &[&str]) -> Result<Option<String>, Failure> {
    let below = places.get(places.partition_point(|(first, _)| *first < block.first_line)..).unwrap_or_default();
    let is_read = below.first().is_some_and(|(first, _)| *first <= block.last_line);
    if is_read || block.text.trim().is_empty() {
        return Ok(None);
    }
    if let Some(named) = names::behind(&block.info).filter(|named| named.is_sure && !named.is_quote) {
        let message = format!("the {} is named for {:?} and holds no edit", place(block), named.path);
        return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).hint(
            "send a whole file in a file bundle, and a part of one between SEARCH and REPLACE markers; leave the block out \
             if it only shows code",
        ));
    }
    let first = block.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let of_file = |place: &str, path| format!("{place} names {path:?}, and nothing says what is to change");
    if let Some(path) = names::in_comment(first) {
        return Ok(Some(of_file("its first line", path)));
    }
    let above = lines.get(block.first_line.saturating_sub(3)..block.first_line.saturating_sub(1)).unwrap_or_default();
    let above = above.iter().rev().find(|line| !line.trim().is_empty()).and_then(|line| names::of(line));
    Ok(above.filter(|path| names::is_path(path)).map(|path| of_file("the line above it", path)))
}

/// What a block holds that is tagged as a diff. One without any header only shows lines.
fn diff(block: &Block) -> Result<Result<Kind, Option<String>>, Failure> {
    let is_header = |line: &str| ["diff ", "--- ", "+++ ", "@@"].iter().any(|header| line.starts_with(header));
    match block.closing {
        _ if block.tag == "diff" && !block.text.lines().any(is_header) => {
            Ok(Err(Some("it has no header of a diff".into())))
        }
        Closing::Aligned => Ok(Ok(Kind::Diff)),
        Closing::Missing => Err(open_fence(block)),
        Closing::Shifted => {
            let message = format!("the {} ends at an indented fence, which may be a line of the diff", place(block));
            Err(Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::Fence)
                .hint("put the diff between longer fences: more backticks than any of its lines has"))
        }
    }
}

/// Whether a text has, or seems to have, edits beside blocks of old and new lines, or says that those were only thought
/// of.
pub(super) fn has_other_edits(text: &str) -> bool {
    let Ok(places) = search_replace::places(text) else { return false };
    let (rest, envelopes) = envelope::take_out(text, &places);
    let names_edit = |info: &str| {
        let tag = info.split_whitespace().next().unwrap_or_default();
        matches!(tag, "json" | "patch" | "diff") || names::behind(info).is_some_and(|named| named.is_sure)
    };
    !envelopes.is_empty()
        || rest.lines().filter_map(names::fence).any(names_edit)
        || rest.lines().any(|line| thought::ended(line).is_some())
        || diff_header(&rest).is_some()
        || rest.lines().any(|line| line.trim_start().starts_with("<!--") && !line.contains("-->"))
        || outside::call(&rest).is_some()
        || outside::indented_envelope(&rest).is_some()
        || find_json(&rest).is_some()
}

/// Whether a text has, or seems to have, any edits.
fn has_edits(text: &str) -> bool {
    text.lines().any(search_replace::is_opening) || has_other_edits(text)
}

/// Reads the edit in a block; what it is refused for has the lines of the answer.
fn read_block(kind: Kind, block: &Block) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let read = |text: &str| match kind {
        Kind::SearchReplace => search_replace::parse_in_answer(text),
        Kind::Diff => git_patch::parse(text.as_bytes(), Extent::Fence),
        _ => read(text.as_bytes(), kind.dialect()),
    };
    read(&block.text).map_err(|failures| {
        let again = read(&at_its_lines(block));
        again.err().unwrap_or(failures).into_iter().map(|failure| within(block, failure)).collect()
    })
}

/// A block's text below so many empty lines that its lines have the numbers that they have in the answer.
fn at_its_lines(block: &Block) -> String {
    let mut text = "\n".repeat(block.text_line.saturating_sub(1));
    text.push_str(&block.text);
    text
}

/// Says in which block of the answer something is wrong.
fn within(block: &Block, failure: Failure) -> Failure {
    Failure { message: format!("in the {}: {}", place(block), failure.message), ..failure }
}

fn place(block: &Block) -> String {
    let tag: String = block.tag.chars().take(20).collect();
    let (first, last) = (block.first_line, block.last_line);
    if tag.is_empty() {
        format!("untagged block at lines {first} to {last} of the answer")
    } else {
        format!("{tag} block at lines {first} to {last} of the answer")
    }
}

fn open_fence(block: &Block) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("the {} has no closing fence", place(block)))
        .detail(Detail::Fence)
        .hint("the answer was cut short; send it whole, each block closed by a fence as long as its opening one")
}

/// An answer that was cut short may lack edits.
fn unclosed(answer: &Answer) -> Option<Failure> {
    let open = |block: &&Block| block.closing == Closing::Missing && !block.text.trim().is_empty();
    answer.blocks.iter().find(open).map(open_fence)
}

fn declined(answer: &Answer, passed_over: &str, edits: &[(Kind, &Block)]) -> Option<Failure> {
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

fn second_of_a_kind(edits: &[(Kind, &Block)]) -> Option<Failure> {
    let (index, (kind, block)) = edits
        .iter()
        .enumerate()
        .find(|(index, (kind, _))| edits.iter().take(*index).any(|(one, _)| one.name() == kind.name()))?;
    let (_, first) = edits.iter().take(index).find(|(one, _)| one.name() == kind.name())?;
    let message =
        format!("the answer has a second {} edit, the {}, after the {}", kind.name(), place(block), place(first));
    Some(
        Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::MultipleBlocks)
            .hint("put all of it into one block, or send one answer after the other"),
    )
}

fn no_edit(answer: &Answer, warnings: &[Warning]) -> Failure {
    let blocks = answer.blocks.len();
    let message = match warnings.first() {
        Some(warning) => format!("the answer has no edit; {}", warning.message),
        None if blocks == 0 => "the answer has no edit: it has no fenced block".into(),
        None => format!("the answer has no edit: none of its {blocks} fenced blocks holds one"),
    };
    Failure::new(Reason::NoEditFound, message)
        .hint("send the edit in a block fenced with ```json or ```patch, or as the document alone")
}

/// Refuses a file that another block of the answer is about.
fn check_other_blocks<'b>(
    file: &FilePatch,
    block: &'b Block,
    seen: &mut BTreeMap<(bool, String), &'b Block>,
) -> Result<(), Failure> {
    let is_doc_path = matches!(file.target, Target::DocPath(_));
    for path in [Some(file.target.as_str()), file.edit.moved_to()].into_iter().flatten() {
        let other = *seen.entry((is_doc_path, path.to_lowercase())).or_insert(block);
        if other.first_line != block.first_line {
            let message = format!("{path:?} is edited by the {} and by the {}", place(other), place(block));
            return Err(Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::DuplicatePath)
                .hint("put all changes of one file into one block"));
        }
    }
    Ok(())
}

fn add_text(all: &mut String, text: &str) {
    for word in text.split_whitespace() {
        all.push_str(word);
        all.push(' ');
    }
}
