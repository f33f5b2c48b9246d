//! Changes as texts: pieces of a file and what takes their place, hunks, blocks, chunks.

use std::ops::Range;

use aptix_model::documents::Dialect;
use memchr::memmem;

use super::reach::{Reach, Unsaid, utf8};
use crate::lines::{BOM, Change, Line, beyond_lines, changes, lines};
use crate::memory::File;

/// Lines around a change in a diff.
const CONTEXT: usize = 3;

/// A text that occurs in a file once, and its replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

/// What happens to the text of a file, in lines.
#[derive(Clone, Copy)]
pub(super) struct Edit<'a> {
    pub(super) path: &'a str,
    pub(super) old: &'a [u8],
    pub(super) before: &'a [Line<'a>],
    pub(super) after: &'a [Line<'a>],
    pub(super) changes: &'a [Change],
    pub(super) reach: Reach,
}

fn join(lines: &[Line<'_>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.whole).copied().collect()
}

/// From the first changed line to the last.
pub(super) fn as_one(changes: &[Change]) -> Change {
    let (first, last) = (&changes[0], &changes[changes.len() - 1]);
    Change { old: first.old.start..last.old.end, new: first.new.start..last.new.end }
}

/// Whether a text occurs in another exactly once, overlapping occurrences counted.
fn is_unique(haystack: &[u8], needle: &[u8]) -> bool {
    let Some(first) = memmem::find(haystack, needle) else { return false };
    memmem::find(&haystack[first + 1..], needle).is_none()
}

/// Takes lines along on both sides, one by one, until `is_enough`, or nothing is left to take.
fn grow(mut change: Change, before: usize, is_enough: impl Fn(&Range<usize>) -> bool) -> Change {
    let mut is_above = true;
    while change.old.is_empty() || !is_enough(&change.old) {
        let (above, below) = (change.old.start > 0, change.old.end < before);
        match (is_above && above, below, above) {
            (true, _, _) | (false, false, true) => {
                change = Change {
                    old: change.old.start - 1..change.old.end,
                    new: change.new.start.saturating_sub(1)..change.new.end,
                };
            }
            (false, true, _) => {
                change =
                    Change { old: change.old.start..change.old.end + 1, new: change.new.start..change.new.end + 1 };
            }
            (false, false, false) => break,
        }
        is_above = !is_above;
    }
    change
}

/// Takes so many lines along on both sides, as far as there are any. Where that reaches into another change, the new side
/// does not fit until the two are joined.
fn widened(change: &Change, context: usize, before: usize) -> Change {
    let (above, below) = (change.old.start.min(context), (before - change.old.end).min(context));
    Change {
        old: change.old.start - above..change.old.end + below,
        new: change.new.start.saturating_sub(above)..change.new.end + below,
    }
}

/// Changes with the lines around them by which they are found.
fn reached(
    changes: &[Change],
    before: usize,
    reach: Reach,
    is_unique: impl Fn(&Range<usize>) -> bool,
) -> Result<Vec<Change>, Unsaid> {
    let Reach::Lines(context) = reach else { return Ok(grown(changes, before, is_unique)) };
    let wide = changes.iter().map(|change| {
        let wide = widened(change, context, before);
        match () {
            () if wide.old.is_empty() => Err("an insertion without a line beside it"),
            () if !is_unique(&wide.old) => Err("more than one place without more context"),
            () => Ok(wide),
        }
    });
    let wide = wide.collect::<Result<Vec<_>, _>>()?;
    let touch = wide.windows(2).any(|pair| pair[0].old.end > pair[1].old.start);
    if touch { Err("the context of two changes overlaps") } else { Ok(wide) }
}

/// Changes grown until each is unique, those that then touch made one.
fn grown(changes: &[Change], before: usize, is_unique: impl Fn(&Range<usize>) -> bool) -> Vec<Change> {
    let mut done: Vec<Change> = Vec::new();
    for change in changes {
        let mut change = grow(change.clone(), before, &is_unique);
        while let Some(last) = done.last().filter(|last| last.old.end >= change.old.start) {
            let joined = Change { old: last.old.start..change.old.end, new: last.new.start..change.new.end };
            done.pop();
            change = grow(joined, before, &is_unique);
        }
        done.push(change);
    }
    done
}

/// Whether the lines of blocks, which get the terminators of the lines that go, keep those that they have: lines that
/// stay within a block move.
fn keeps_ends(before: &[Line<'_>], after: &[Line<'_>], blocks: &[Change]) -> Result<(), Unsaid> {
    let trimmed = blocks.iter().map(|block| {
        let (old, new) = (&before[block.old.clone()], &after[block.new.clone()]);
        let most = old.len().min(new.len());
        let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let tail = old.iter().rev().zip(new.iter().rev()).take(most - head).take_while(|(old, new)| old == new).count();
        Change { old: block.old.start + head..block.old.end - tail, new: block.new.start + head..block.new.end - tail }
    });
    beyond_lines(before, after, &trimmed.collect::<Vec<_>>()).map_or(Ok(()), Err)
}

/// Lines as one text, without a byte order mark.
fn as_text(lines: &[Line<'_>], first: usize) -> Vec<u8> {
    let text = join(lines);
    match text.strip_prefix(BOM) {
        Some(rest) if first == 0 => rest.to_vec(),
        _ => text,
    }
}

/// Blocks that are each unique in the file as it is, and apart.
pub(super) fn in_original(edit: Edit<'_>) -> Result<Vec<Block>, Unsaid> {
    let Edit { old, before, after, changes, reach, .. } = edit;
    let unique = |range: &Range<usize>| is_unique(old, &join(&before[range.clone()]));
    let grown = reached(changes, before.len(), reach, unique)?;
    keeps_ends(before, after, &grown)?;
    let block = |change: &Change| Block {
        old: as_text(&before[change.old.clone()], change.old.start),
        new: as_text(&after[change.new.clone()], change.new.start),
    };
    Ok(grown.iter().map(block).collect())
}

/// Blocks that are each unique in what the ones before made of the file.
pub(super) fn one_by_one(edit: Edit<'_>) -> Result<Vec<Block>, Unsaid> {
    let blocks = in_original(edit)?;
    let mut text = edit.old.to_vec();
    for block in &blocks {
        if !is_unique(&text, &block.old) {
            let whole = Change { old: 0..edit.before.len(), new: 0..edit.after.len() };
            return in_original(Edit { changes: &[whole], reach: Reach::Unique, ..edit });
        }
        let at = memmem::find(&text, &block.old).unwrap_or_default();
        text.splice(at..at + block.old.len(), block.new.iter().copied());
    }
    Ok(blocks)
}

/// Whether lines occur at one place only of a file, compared by their texts.
fn is_unique_run(all: &[Line<'_>], range: &Range<usize>) -> bool {
    let wanted = &all[range.clone()];
    let same = |window: &&[Line<'_>]| window.iter().zip(wanted).all(|(a, b)| a.text() == b.text());
    all.windows(wanted.len()).filter(same).count() == 1
}

/// The lines of a document that repeat a file's, without its byte order mark.
fn text_of(line: Line<'_>, is_first: bool) -> Result<&str, Unsaid> {
    let text = line.text();
    utf8(if is_first { text.strip_prefix(BOM).unwrap_or(text) } else { text })
}

/// SEARCH/REPLACE blocks.
pub(super) fn search_replace(edit: Edit<'_>) -> Result<Vec<u8>, Unsaid> {
    let Edit { path, before, after, changes, reach, .. } = edit;
    let grown = if before.is_empty() {
        changes.to_vec()
    } else {
        reached(changes, before.len(), reach, |range| is_unique_run(before, range))?
    };
    // Each block is looked for in what the ones above it made of the file.
    let mut now: Vec<Line<'_>> = before.to_vec();
    let mut is_apart = true;
    for change in grown.iter().filter(|_| !before.is_empty()) {
        let at = change.new.start..change.new.start + change.old.len();
        is_apart &= is_unique_run(&now, &at);
        now.splice(at, after[change.new.clone()].iter().copied());
    }
    let grown = if is_apart { grown } else { vec![Change { old: 0..before.len(), new: 0..after.len() }] };
    keeps_ends(before, after, &grown)?;
    let mut text = String::new();
    for change in grown {
        let (old, new) = (change.old.start, change.new.start);
        let dots = |lines: &[Line<'_>]| lines.iter().filter(|line| line.text().trim_ascii() == b"...").count();
        let (going, coming) = (dots(&before[change.old.clone()]), dots(&after[change.new.clone()]));
        if going > 0 && going == coming {
            return Err("lines of three dots on both sides");
        }
        text += &format!("{path}\n<<<<<<< SEARCH\n");
        for (index, line) in before[change.old].iter().enumerate() {
            text += &block_line(text_of(*line, old + index == 0)?)?;
        }
        text += "=======\n";
        for (index, line) in after[change.new].iter().enumerate() {
            text += &block_line(text_of(*line, new + index == 0)?)?;
        }
        text += ">>>>>>> REPLACE\n\n";
    }
    Ok(text.into_bytes())
}

/// A line of a block, behind a backslash if it would be a marker without one.
fn block_line(line: &str) -> Result<String, Unsaid> {
    let runs = ["<<<<<<<", "=======", ">>>>>>>", "-------", "+++++++"];
    let is_run = |text: &str| runs.iter().any(|run| text.starts_with(run));
    if line.strip_prefix('\\').is_some_and(|rest| is_marker(rest) || is_run(rest)) {
        return Err("a line looks like a marker behind a backslash");
    }
    Ok(format!("{}{line}\n", if is_marker(line) { "\\" } else { "" }))
}

/// Whether a line in a block begins, divides or ends it, or states its place.
fn is_marker(line: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if [":start_line:", ":end_line:"]
        .iter()
        .any(|word| line.strip_prefix(word).is_some_and(|rest| is_number(rest.trim())))
    {
        return true;
    }
    let mark = line.chars().next().unwrap_or_default();
    let word = line.trim_start_matches(mark);
    (5..=9).contains(&(line.len() - word.len()))
        && match mark {
            '=' => word.trim_end().is_empty(),
            '<' | '-' => matches!(word.trim_end(), " SEARCH" | " SEARCH>"),
            '>' | '+' => matches!(word.trim_end(), " REPLACE" | " REPLACE>"),
            _ => false,
        }
}

/// A new file in a dialect of texts.
pub(super) fn created(dialect: Dialect, path: &str, content: &str) -> Result<Vec<u8>, Unsaid> {
    if content.contains('\r') || content.starts_with('\u{feff}') {
        return Err("a new file has neither byte order mark nor carriage returns");
    }
    if content.is_empty() {
        return Err("a new file is empty");
    }
    if !content.ends_with('\n') {
        return Err("a new file ends with a newline");
    }
    match dialect {
        Dialect::CodexPatch => {
            let lines = content.lines().map(|line| format!("+{line}\n"));
            Ok(format!("*** Add File: {path}\n{}", lines.collect::<String>()).into_bytes())
        }
        _ => {
            let lines = content.lines().map(block_line).collect::<Result<String, _>>()?;
            Ok(format!("{path}\n<<<<<<< SEARCH\n=======\n{lines}>>>>>>> REPLACE\n\n").into_bytes())
        }
    }
}

/// An update section: so many lines around each change, or three and as many more as tell the place from every other.
pub(super) fn codex(edit: Edit<'_>) -> Result<Vec<u8>, Unsaid> {
    let Edit { path, before, after, reach, .. } = edit;
    let count = before.len();
    let wide: Vec<Change> = match reach {
        Reach::Unique => edit.changes.iter().map(|change| widened(change, CONTEXT, count)).collect(),
        Reach::Lines(_) => edit.changes.to_vec(),
    };
    let grown =
        if before.is_empty() { wide } else { reached(&wide, count, reach, |range| is_unique_run(before, range))? };
    let mut text = format!("*** Update File: {path}\n");
    for chunk in grown {
        text += "@@\n";
        let (old, new) = (&before[chunk.old.clone()], &after[chunk.new.clone()]);
        let is_top = chunk.old.start == 0;
        let mut at = 0;
        for change in changes(old, new) {
            text += &chunk_lines(' ', old, at..change.old.start, is_top)?;
            text += &chunk_lines('-', old, change.old.clone(), is_top)?;
            text += &chunk_lines('+', new, change.new, is_top)?;
            at = change.old.end;
        }
        text += &chunk_lines(' ', old, at..old.len(), is_top)?;
    }
    Ok(text.into_bytes())
}

fn chunk_lines(sign: char, lines: &[Line<'_>], range: Range<usize>, is_top: bool) -> Result<String, Unsaid> {
    let first = range.start;
    let lines = lines[range].iter().enumerate();
    lines.map(|(index, line)| Ok(format!("{sign}{}\n", text_of(*line, is_top && first + index == 0)?))).collect()
}

/// A unified diff with so many lines of context, or with three.
pub(super) fn unified(
    path: &str,
    before: Option<&File>,
    after: Option<&File>,
    reach: Reach,
) -> Result<Vec<u8>, Unsaid> {
    let context = match reach {
        Reach::Unique => CONTEXT,
        Reach::Lines(context) => context,
    };
    let plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if !path.bytes().all(plain) {
        return Err("the path needs quoting");
    }
    let end = if path.contains(' ') { "\t" } else { "" };
    let mode = |file: &File| if file.is_executable { "100755" } else { "100644" };
    let mut text = format!("diff --git a/{path} b/{path}\n").into_bytes();
    match (before, after) {
        (Some(before), Some(after)) if before.is_executable != after.is_executable => {
            text.extend(format!("old mode {}\nnew mode {}\n", mode(before), mode(after)).bytes());
        }
        (None, Some(after)) => text.extend(format!("new file mode {}\n", mode(after)).bytes()),
        (Some(before), None) => text.extend(format!("deleted file mode {}\n", mode(before)).bytes()),
        _ => {}
    }
    let bytes = |file: Option<&File>| file.map(|file| file.bytes.clone()).unwrap_or_default();
    let (old, new) = (bytes(before), bytes(after));
    let (old, new) = (lines(&old), lines(&new));
    let all = changes(&old, &new);
    if all.is_empty() {
        return Ok(text);
    }
    let name = |side: char, file: Option<&File>| match file {
        Some(_) => format!("{side}/{path}{end}"),
        None => "/dev/null".to_owned(),
    };
    text.extend(format!("--- {}\n+++ {}\n", name('a', before), name('b', after)).bytes());
    text.extend(hunks(&old, &new, all, context));
    Ok(text)
}

/// The hunks of a unified diff.
fn hunks(old: &[Line<'_>], new: &[Line<'_>], changes: Vec<Change>, context: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        match hunks.last_mut() {
            Some(hunk) if hunk.last().is_some_and(|last| change.old.start - last.old.end <= 2 * context) => {
                hunk.push(change)
            }
            _ => hunks.push(vec![change]),
        }
    }
    for hunk in hunks {
        let Change { old: Range { start: from, end: to }, new: Range { start: new_from, end: new_to } } =
            widened(&as_one(&hunk), context, old.len());
        let span = |from: usize, to: usize| {
            if to == from { format!("{from},0") } else { format!("{},{}", from + 1, to - from) }
        };
        text.extend(format!("@@ -{} +{} @@\n", span(from, to), span(new_from, new_to)).bytes());
        let mut put = |sign: u8, line: Line<'_>| {
            text.push(sign);
            text.extend(line.whole);
            if !line.whole.ends_with(b"\n") {
                text.extend(b"\n\\ No newline at end of file\n");
            }
        };
        let mut at = from;
        for change in hunk {
            old[at..change.old.start].iter().for_each(|line| put(b' ', *line));
            old[change.old.clone()].iter().for_each(|line| put(b'-', *line));
            new[change.new.clone()].iter().for_each(|line| put(b'+', *line));
            at = change.old.end;
        }
        old[at..to].iter().for_each(|line| put(b' ', *line));
    }
    text
}
