//! Which file a block is named for: behind its opening fence, in its first line, or on the line above it.

use std::collections::BTreeSet;

use super::fence::Block;
use super::path_name::{is_path, may_be_path};
use crate::documents::search_replace::names;
use crate::path::document_spelling;
use crate::quote::{Quote, QuoteName};

/// Most names of a block.
const WORDS: usize = 40;
/// Most words of a line that are looked at.
const MOST_WORDS: usize = 1000;
/// Tags of blocks that hold commands.
const SHELL: &[&str] = &[
    "ash",
    "bash",
    "bat",
    "batch",
    "cmd",
    "console",
    "csh",
    "dos",
    "fish",
    "ksh",
    "powershell",
    "ps",
    "ps1",
    "pwsh",
    "sh",
    "shell",
    "shell-session",
    "shellsession",
    "terminal",
    "zsh",
];
/// Tags of blocks that hold what a program prints.
const OUTPUT: &[&str] =
    &["ansi", "log", "logs", "out", "output", "plain", "plaintext", "stderr", "stdout", "text", "traceback", "txt"];
/// Endings of files of prose, which may hold fences of their own.
const PROSE: [&str; 7] = ["adoc", "markdown", "md", "mdx", "rst", "text", "txt"];

/// The lines of an answer, and which of them belong to blocks.
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
    in_block: Vec<bool>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str, blocks: impl Iterator<Item = (usize, usize)>) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut in_block = vec![false; lines.len()];
        for (first, last) in blocks {
            let last = last.min(lines.len());
            in_block.get_mut(first.saturating_sub(1)..last).into_iter().flatten().for_each(|line| *line = true);
        }
        Self { lines, in_block }
    }

    /// The line directly above a block, ignoring blank ones, without what lists and quotes put before it.
    fn above(&self, block: &Block) -> Option<&'a str> {
        let above = (0..block.first_line.saturating_sub(1)).rev();
        let mut above = above.map_while(|index| Some((*self.lines.get(index)?, *self.in_block.get(index)?)));
        let (line, in_block) = above.find(|(line, in_block)| *in_block || !without_list(line).is_empty())?;
        (!in_block).then(|| without_list(line))
    }
}

/// A line without the marks of quotes and lists.
fn without_list(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '>']).trim_end();
    let item = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark));
    item.unwrap_or(line).trim_start()
}

/// What a block that is no edit may be named for; `None` if nothing is near it that could be a path.
pub(super) fn quote(block: &Block, lines: &Lines<'_>) -> Option<Quote> {
    let above = lines.above(block);
    let first = block.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let commented = names::in_comment(first).filter(|name| is_path(&document_spelling(name)));
    let behind = names::behind(&block.info).map(|behind| behind.path);
    let is_word = |name: &&str| !name.contains(char::is_whitespace);
    let above_alone = above.into_iter().flat_map(|line| [names::of(line), alone(line)]).flatten().filter(is_word);
    let names: Vec<QuoteName> = collect(behind.into_iter().chain(above_alone).chain(commented));
    let (is_announced, names) = match names.is_empty() {
        false => (false, names),
        true => (true, above.and_then(|line| announced(block, line))?),
    };
    if names.is_empty() {
        return None;
    }
    // The line that only names the file is none of its lines.
    let text = match commented {
        Some(_) => block.text.split_once(first).map_or("", |(_, rest)| rest),
        None => &block.text,
    };
    Some(Quote {
        first_line: number(block.first_line),
        last_line: number(block.last_line),
        names,
        is_announced,
        text: text.to_owned(),
    })
}

/// What is on a line besides tags, the marks of headings, emphasis and code, and a colon.
fn alone(line: &str) -> Option<&str> {
    Some(without_tags(line).trim_matches(['#', '*', '_', '`', ':', ' '])).filter(|name| !name.is_empty())
}

/// A line without the tags that it begins and ends with, as `<summary>` has them.
fn without_tags(mut line: &str) -> &str {
    while let Some((_, rest)) = line.strip_prefix('<').and_then(|tag| tag.split_once('>')) {
        line = rest.trim_start();
    }
    while let Some((rest, _)) = line.strip_suffix('>').and_then(|tag| tag.rsplit_once('<')) {
        line = rest.trim_end();
    }
    line
}

/// The words of a sentence that ends in a colon and announces a block, if it is one of neither commands nor output.
fn announced(block: &Block, line: &str) -> Option<Vec<QuoteName>> {
    let tag = block.tag.to_ascii_lowercase();
    if SHELL.contains(&tag.as_str()) || OUTPUT.contains(&tag.as_str()) {
        return None;
    }
    line.trim_end_matches(['*', '_', '`', ' ']).strip_suffix([':', '\u{ff1a}'])?;
    let is_mark = |character: char| !character.is_alphanumeric() && !matches!(character, '.' | '/' | '_' | '~' | '@');
    let words = line.split_whitespace().map(|word| word.trim_matches(is_mark).trim_end_matches('.'));
    Some(collect(words))
}

/// Each text once that is, or could be, a path; of too many only those that are.
fn collect<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<QuoteName> {
    let named = texts.take(MOST_WORDS).map(document_spelling).map(|path| QuoteName { is_path: is_path(&path), path });
    let mut seen = BTreeSet::new();
    let mut names: Vec<QuoteName> =
        named.filter(|name| (name.is_path || may_be_path(&name.path)) && seen.insert(name.path.clone())).collect();
    if names.len() > WORDS {
        names.retain(|name| name.is_path);
        names.truncate(WORDS);
    }
    names
}

/// Answers have far fewer than 2^32 lines.
fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// The name that makes a block one of a file whatever files there are.
pub(super) fn sure(quote: &Quote) -> Option<&str> {
    let name = quote.names.iter().find(|name| name.is_path).filter(|_| !quote.is_announced);
    name.map(|name| String::as_str(&name.path))
}

/// The name that makes a block the whole text of a file: a sure one, or that of a file of prose in a sentence.
pub(super) fn document(quote: &Quote) -> Option<&str> {
    let is_prose = |name: &&QuoteName| {
        let ending = name.path.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
        name.is_path && ending.is_some_and(|ending| PROSE.contains(&ending.as_str()))
    };
    sure(quote).or_else(|| Some(quote.names.iter().find(is_prose)?.path.as_str()))
}
