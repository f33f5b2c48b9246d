//! A plan as a unified diff in git's form, made from the ranges that the plan replaces.
//!
//! No diff algorithm: what an edit replaces by the same lines is left out at both ends, and that is all.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::file_plan::{FileAction, FilePlan};
use crate::text::edit::{TextEdit, slice};
use aptix_model::report::FileStatus;

/// Unchanged lines shown above and below a change.
const CONTEXT: usize = 3;

impl FilePlan<'_> {
    /// The change as a unified diff, made from the plan; empty if nothing changes, `None` if it would have more
    /// than `limit` bytes.
    #[must_use]
    pub fn diff(&self, limit: usize) -> Option<Vec<u8>> {
        match self.status {
            FileStatus::Unchanged => Some(Vec::new()),
            _ => unified(self, &[], limit),
        }
    }

    /// The change as a unified diff of any length, made from a plan whose base is a file without the lines of these gaps, top
    /// to bottom; empty if nothing changes. No hunk reaches over a gap.
    #[must_use]
    pub fn diff_between(&self, gaps: &[Gap]) -> Option<Vec<u8>> {
        match self.status {
            FileStatus::Unchanged => Some(Vec::new()),
            _ => unified(self, gaps, usize::MAX),
        }
    }
}

/// Lines of a file that a base leaves out, which are the same before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Offset in the base of the line below them.
    pub at: usize,
    /// How many.
    pub lines: usize,
}

/// The diff of one file: empty if nothing changes, `None` if it would have more than `limit` bytes. What is built
/// until that shows is not much longer.
fn unified(plan: &FilePlan<'_>, gaps: &[Gap], limit: usize) -> Option<Vec<u8>> {
    let (path, base) = (plan.path.as_str(), plan.base());
    let new_path = plan.moved_to.unwrap_or(plan.path).as_str();
    let old = base.unwrap_or_default();
    let blocks = line_blocks(plan, limit)?;
    let is_deleted = plan.action == FileAction::Delete;
    if blocks.is_empty() && base.is_some() && !is_deleted && plan.moved_to.is_none() && plan.executable.is_none() {
        return Some(Vec::new());
    }
    let mut out = Bounded { bytes: Vec::new(), room: limit };
    let (a, b) = (git_name(&format!("a/{path}")), git_name(&format!("b/{new_path}")));
    out.push(format!("diff --git {a} {b}\n").as_bytes())?;
    let mode = |is_executable: bool| if is_executable { "100755" } else { "100644" };
    match (base, plan.executable) {
        (None, executable) => {
            out.push(format!("new file mode {}\n", mode(executable.unwrap_or(false))).as_bytes())?;
            // Without hunks, the ids show that nothing is missing.
            if blocks.is_empty() {
                out.push(b"index 0000000..e69de29\n")?;
            }
        }
        (Some(_), _) if is_deleted => out.push(b"deleted file mode 100644\n")?,
        (Some(_), Some(new)) => {
            out.push(format!("old mode {}\nnew mode {}\n", mode(!new), mode(new)).as_bytes())?;
        }
        (Some(_), None) => {}
    }
    if plan.moved_to.is_some() {
        out.push(format!("rename from {}\nrename to {}\n", git_name(path), git_name(new_path)).as_bytes())?;
    }
    if !blocks.is_empty() {
        // A tab marks the end of a name with blanks.
        let end = |path: &str| if path.contains(' ') { "\t" } else { "" };
        let from = if base.is_some() { format!("{a}{}", end(path)) } else { String::from("/dev/null") };
        let to = if is_deleted { String::from("/dev/null") } else { format!("{b}{}", end(new_path)) };
        out.push(format!("--- {from}\n+++ {to}\n").as_bytes())?;
    }
    write_hunks(&mut out, old, gaps, &blocks)?;
    Some(out.bytes)
}

/// Whole lines of the base, and the lines that take their place.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) old: Range<usize>,
    pub(crate) new: Cow<'a, [u8]>,
}

/// The lines that a plan changes, top to bottom; `None` if they alone pass the limit.
pub(crate) fn line_blocks<'p>(plan: &'p FilePlan<'_>, limit: usize) -> Option<Vec<Block<'p>>> {
    let old = plan.base().unwrap_or_default();
    let whole = |new| Vec::from_iter(trimmed(old, Block { old: 0..old.len(), new: Cow::Borrowed(new) }));
    match &plan.action {
        FileAction::Edit(edit) => blocks(edit, old, limit),
        FileAction::Write(bytes) => Some(whole(bytes)),
        FileAction::Delete => Some(whole(&[])),
    }
}

/// An edit's replacements, widened to whole lines; those that then share a line are one. `None` if their lines alone
/// pass the limit.
fn blocks<'a>(edit: &'a TextEdit, base: &'a [u8], limit: usize) -> Option<Vec<Block<'a>>> {
    let mut done = Vec::new();
    let mut room = limit;
    let mut finish = |block: Block<'a>| {
        let Some(block) = trimmed(base, block) else { return Some(()) };
        room = room.checked_sub(block.old.len())?.checked_sub(block.new.len())?;
        done.push(block);
        Some(())
    };
    // The last block, without the rest of its last line: where the next one starts decides what becomes of that. Nothing
    // above it is looked at again, so that a line of any length is scanned once.
    let mut open: Option<Block<'a>> = None;
    for (range, text) in edit.replacements() {
        let top = match open.take() {
            None => 0,
            Some(mut last) => {
                let gap = slice(base, last.old.end..range.start);
                if ends_within_a_line(base, &last) && memchr(b'\n', gap).is_none() {
                    let new = last.new.to_mut();
                    new.extend_from_slice(gap);
                    new.extend_from_slice(text);
                    last.old.end = range.end;
                    open = Some(last);
                    continue;
                }
                let last = with_rest_of_line(base, last);
                let end = last.old.end;
                finish(last)?;
                end
            }
        };
        let start = top + line_start(slice(base, top..range.start), range.start.saturating_sub(top));
        let new = match slice(base, start..range.start) {
            [] => Cow::Borrowed(text),
            head => Cow::Owned([head, text].concat()),
        };
        open = Some(Block { old: start..range.end, new });
    }
    open.map_or(Some(()), |last| finish(with_rest_of_line(base, last)))?;
    Some(done)
}

/// Whether a line continues below a block: one that the block ends in, or one that its new text begins.
fn ends_within_a_line(base: &[u8], block: &Block<'_>) -> bool {
    let cuts = |text: &[u8]| !text.is_empty() && !text.ends_with(b"\n");
    cuts(slice(base, 0..block.old.end)) || (block.old.end < base.len() && cuts(&block.new))
}

/// A block that ends where a line does, or starts.
fn with_rest_of_line<'a>(base: &[u8], mut block: Block<'a>) -> Block<'a> {
    if ends_within_a_line(base, &block) {
        let end = line_end(base, block.old.end);
        block.new.to_mut().extend_from_slice(slice(base, block.old.end..end));
        block.old.end = end;
    }
    block
}

/// A block without the lines it has in common with the base at either end; `None` if nothing is left.
fn trimmed<'a>(base: &[u8], mut block: Block<'a>) -> Option<Block<'a>> {
    let old = slice(base, block.old.clone());
    if old == &*block.new {
        return None;
    }
    let same = old.iter().zip(&*block.new).take_while(|(old, new)| old == new).count();
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
    match &mut block.new {
        Cow::Borrowed(new) => *new = slice(new, head..new.len() - tail),
        Cow::Owned(new) => {
            new.truncate(new.len() - tail);
            new.drain(..head);
        }
    }
    Some(block)
}

/// Bytes that may not become more than there is room for.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl Bounded {
    fn push(&mut self, part: &[u8]) -> Option<()> {
        self.room = self.room.checked_sub(part.len())?;
        self.bytes.extend_from_slice(part);
        Some(())
    }

    fn push_line(&mut self, mark: u8, line: &[u8]) -> Option<()> {
        self.push(&[mark])?;
        self.push(line)?;
        if line.ends_with(b"\n") { Some(()) } else { self.push(b"\n\\ No newline at end of file\n") }
    }
}

/// A hunk being written: its lines, and how many of them each side has.
struct Hunk {
    lines: Bounded,
    old_count: usize,
    new_count: usize,
}

impl Hunk {
    fn keep(&mut self, text: &[u8]) -> Option<()> {
        lines(text).try_for_each(|line| {
            self.old_count += 1;
            self.new_count += 1;
            self.lines.push_line(b' ', line)
        })
    }

    fn replace(&mut self, old: &[u8], new: &[u8]) -> Option<()> {
        for line in lines(old) {
            self.lines.push_line(b'-', line)?;
            self.old_count += 1;
        }
        for line in lines(new) {
            self.lines.push_line(b'+', line)?;
            self.new_count += 1;
        }
        Some(())
    }
}

fn write_hunks(out: &mut Bounded, base: &[u8], gaps: &[Gap], blocks: &[Block<'_>]) -> Option<()> {
    // Lines of either side above `at`.
    let (mut at, mut old_above, mut new_above) = (0, 0, 0);
    let mut gaps = gaps.iter().peekable();
    let mut blocks = blocks.iter().peekable();
    while let Some(block) = blocks.next() {
        let mut top = at;
        while let Some(gap) = gaps.next_if(|gap| gap.at <= block.old.start) {
            (old_above, new_above) = (old_above + gap.lines, new_above + gap.lines);
            top = top.max(gap.at);
        }
        let bottom = gaps.peek().map_or(usize::MAX, |gap| gap.at);
        let mut start = block.old.start;
        for _ in 0..CONTEXT {
            start = line_start(base, start.saturating_sub(1).max(top)).max(top);
        }
        let skipped = memchr_iter(b'\n', slice(base, at..start)).count();
        (old_above, new_above) = (old_above + skipped, new_above + skipped);
        let lines = Bounded { bytes: Vec::new(), room: out.room };
        let mut hunk = Hunk { lines, old_count: 0, new_count: 0 };
        hunk.keep(slice(base, start..block.old.start))?;
        hunk.replace(slice(base, block.old.clone()), &block.new)?;
        at = block.old.end;
        let is_near =
            |next: &Block<'_>, at| next.old.start < bottom && next.old.start <= lines_below(base, at, 2 * CONTEXT);
        while let Some(next) = blocks.next_if(|next| is_near(next, at)) {
            hunk.keep(slice(base, at..next.old.start))?;
            hunk.replace(slice(base, next.old.clone()), &next.new)?;
            at = next.old.end;
        }
        let end = lines_below(base, at, CONTEXT).min(bottom);
        hunk.keep(slice(base, at..end))?;
        at = end;
        let (old, new) = (side(old_above, hunk.old_count), side(new_above, hunk.new_count));
        out.push(format!("@@ -{old} +{new} @@\n").as_bytes())?;
        out.push(&hunk.lines.bytes)?;
        old_above += hunk.old_count;
        new_above += hunk.new_count;
    }
    Some(())
}

/// One side of a hunk header; a side without lines is named by the line above.
fn side(above: usize, count: usize) -> String {
    match count {
        0 => format!("{above},0"),
        1 => format!("{}", above + 1),
        _ => format!("{},{count}", above + 1),
    }
}

/// Lines with their line feeds, as git counts them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Where the line that `at` lies in starts.
pub(crate) fn line_start(text: &[u8], at: usize) -> usize {
    memrchr(b'\n', slice(text, 0..at)).map_or(0, |feed| feed + 1)
}

/// Where the line that `at` lies in ends, terminator included.
fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', slice(text, at..text.len())).map_or(text.len(), |feed| at + feed + 1)
}

/// Where the line `count` lines below `at` starts, or the end.
pub(crate) fn lines_below(text: &[u8], at: usize, count: usize) -> usize {
    (0..count).fold(at, |at, _| line_end(text, at))
}

/// A name as git writes it: in quotes, with octal escapes, if it has more than printable ASCII.
fn git_name(name: &str) -> String {
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
