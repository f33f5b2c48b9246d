//! A plan as a unified diff in git's form, made from the ranges that the plan replaces.
//!
//! No diff algorithm: what an edit replaces by the same lines is left out at both ends, and that is all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::plan::FileAction;
use crate::text_edit::TextEdit;

/// Unchanged lines shown above and below a change.
const CONTEXT: usize = 3;

/// The diff of one file; empty if nothing changes.
pub(crate) fn unified(path: &str, base: Option<&[u8]>, action: &FileAction<'_>) -> Vec<u8> {
    let old = base.unwrap_or_default();
    let blocks = match action {
        FileAction::Edit(edit) => blocks(edit, old),
        FileAction::Write(bytes) => {
            Vec::from_iter(trimmed(old, Block { old: 0..old.len(), new: bytes.clone().into_owned() }))
        }
    };
    if blocks.is_empty() && base.is_some() {
        return Vec::new();
    }
    let (a, b) = (quoted(&format!("a/{path}")), quoted(&format!("b/{path}")));
    let mut out = format!("diff --git {a} {b}\n");
    if base.is_none() {
        out.push_str("new file mode 100644\n");
    }
    let mut out = out.into_bytes();
    if !blocks.is_empty() {
        // A tab tells where a name with blanks ends.
        let end = if path.contains(' ') { "\t" } else { "" };
        let from = if base.is_some() { format!("{a}{end}") } else { String::from("/dev/null") };
        out.extend_from_slice(format!("--- {from}\n+++ {b}{end}\n").as_bytes());
    }
    write_hunks(&mut out, old, &blocks);
    out
}

/// Whole lines of the base, and the lines that take their place.
#[derive(Debug)]
struct Block {
    old: Range<usize>,
    new: Vec<u8>,
}

/// An edit's replacements, widened to whole lines; those that then share a line are one.
fn blocks(edit: &TextEdit, base: &[u8]) -> Vec<Block> {
    let mut wide: Vec<Block> = Vec::new();
    for (range, text) in edit.replacements() {
        let start = line_start(base, range.start);
        let mut block = match wide.pop() {
            // The last block took the rest of this line along; take back what is decided here.
            Some(mut last) if last.old.end > start => {
                last.new.truncate(last.new.len().saturating_sub(last.old.end.saturating_sub(range.start)));
                last
            }
            last => {
                wide.extend(last);
                Block { old: start..range.end, new: slice(base, start..range.start).to_vec() }
            }
        };
        block.new.extend_from_slice(text);
        block.old.end = range.end;
        if line_start(base, range.end) < range.end || is_open(base, &block) {
            let end = line_end(base, range.end);
            block.new.extend_from_slice(slice(base, range.end..end));
            block.old.end = end;
        }
        wide.push(block);
    }
    wide.into_iter().filter_map(|block| trimmed(base, block)).collect()
}

/// Whether a block's new text ends in the middle of a line that the base goes on with.
fn is_open(base: &[u8], block: &Block) -> bool {
    block.old.end < base.len() && !block.new.is_empty() && !block.new.ends_with(b"\n")
}

/// A block without the lines it has in common with the base at either end; `None` if nothing is left.
fn trimmed(base: &[u8], mut block: Block) -> Option<Block> {
    let old = slice(base, block.old.clone());
    if old == block.new {
        return None;
    }
    let same = old.iter().zip(&block.new).take_while(|(old, new)| old == new).count();
    let head = line_start(old, same);
    let (old_rest, new_rest) = (old.get(head..)?, block.new.get(head..)?);
    let same = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let starts_line = |rest: &[u8]| same == rest.len() || slice(rest, 0..rest.len() - same).ends_with(b"\n");
    let tail = if starts_line(old_rest) && starts_line(new_rest) {
        same
    } else {
        let common = slice(old_rest, old_rest.len() - same..old_rest.len());
        memchr(b'\n', common).map_or(0, |at| same - at - 1)
    };
    block.old = block.old.start + head..block.old.end - tail;
    block.new.truncate(block.new.len() - tail);
    block.new.drain(..head);
    Some(block)
}

/// A hunk being written: its lines, and how many of them each side has.
#[derive(Default)]
struct Hunk {
    lines: Vec<u8>,
    old_count: usize,
    new_count: usize,
}

impl Hunk {
    fn keep(&mut self, line: &[u8]) {
        push_line(&mut self.lines, b' ', line);
        self.old_count += 1;
        self.new_count += 1;
    }

    fn replace(&mut self, old: &[u8], new: &[u8]) {
        for line in lines(old) {
            push_line(&mut self.lines, b'-', line);
            self.old_count += 1;
        }
        for line in lines(new) {
            push_line(&mut self.lines, b'+', line);
            self.new_count += 1;
        }
    }
}

fn write_hunks(out: &mut Vec<u8>, base: &[u8], blocks: &[Block]) {
    // Lines of either side above `at`.
    let (mut at, mut old_above, mut new_above) = (0, 0, 0);
    let mut blocks = blocks.iter().peekable();
    while let Some(block) = blocks.next() {
        let mut start = block.old.start;
        for _ in 0..CONTEXT {
            start = line_start(base, start.saturating_sub(1).max(at)).max(at);
        }
        let skipped = memchr_iter(b'\n', slice(base, at..start)).count();
        (old_above, new_above) = (old_above + skipped, new_above + skipped);
        let mut hunk = Hunk::default();
        lines(slice(base, start..block.old.start)).for_each(|line| hunk.keep(line));
        hunk.replace(slice(base, block.old.clone()), &block.new);
        at = block.old.end;
        while let Some(next) = blocks.next_if(|next| next.old.start <= lines_below(base, at, 2 * CONTEXT)) {
            lines(slice(base, at..next.old.start)).for_each(|line| hunk.keep(line));
            hunk.replace(slice(base, next.old.clone()), &next.new);
            at = next.old.end;
        }
        let end = lines_below(base, at, CONTEXT);
        lines(slice(base, at..end)).for_each(|line| hunk.keep(line));
        at = end;
        let (old, new) = (side(old_above, hunk.old_count), side(new_above, hunk.new_count));
        out.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
        out.extend_from_slice(&hunk.lines);
        old_above += hunk.old_count;
        new_above += hunk.new_count;
    }
}

/// One side of a hunk header; a side without lines is named by the line above.
fn side(above: usize, count: usize) -> String {
    match count {
        0 => format!("{above},0"),
        1 => format!("{}", above + 1),
        _ => format!("{},{count}", above + 1),
    }
}

fn push_line(out: &mut Vec<u8>, mark: u8, line: &[u8]) {
    out.push(mark);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

/// Lines with their line feeds, as git counts them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Where the line that `at` lies in starts.
fn line_start(text: &[u8], at: usize) -> usize {
    memrchr(b'\n', slice(text, 0..at)).map_or(0, |feed| feed + 1)
}

/// Where the line that `at` lies in ends, terminator included.
fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', slice(text, at..text.len())).map_or(text.len(), |feed| at + feed + 1)
}

/// Where the line `count` lines below `at` starts, or the end.
fn lines_below(text: &[u8], at: usize, count: usize) -> usize {
    (0..count).fold(at, |at, _| line_end(text, at))
}

fn slice(text: &[u8], range: Range<usize>) -> &[u8] {
    text.get(range).unwrap_or_default()
}

/// A name as git writes it: in quotes, with octal escapes, if it has more than printable ASCII.
fn quoted(name: &str) -> String {
    if name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\')) {
        return String::from(name);
    }
    let mut out = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}
