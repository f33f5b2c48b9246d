//! The text around the changes of an edit once they are made, without the rest of the file.

use alloc::vec::Vec;

use crate::text::edit::{TextEdit, slice};
use crate::text::lines::Text;

/// A line that keeps what is apart in the file apart; no text that is searched for has it.
const APART: &[u8] = b"\n\x01\x02\x03\n";

/// The lines that an edit leaves, with so many lines above and below each change.
pub(crate) fn neighbourhood(text: &Text<'_>, edit: &TextEdit, lines: usize) -> Vec<u8> {
    let base = text.bytes();
    let mut found: Vec<u8> = Vec::new();
    // A byte order mark is no part of the first line.
    let mut kept = text.start();
    for (index, (range, new)) in edit.replacements().enumerate() {
        let from = lines_above(text, range.start, lines).max(kept);
        let to = if index == 0 { kept } else { lines_below(text, kept, lines) };
        if to >= from && index > 0 {
            found.extend_from_slice(slice(base, kept..range.start));
        } else {
            found.extend_from_slice(slice(base, kept..to));
            found.extend_from_slice(if index == 0 { b"" } else { APART });
            found.extend_from_slice(slice(base, from..range.start));
        }
        found.extend_from_slice(new);
        kept = range.end;
    }
    found.extend_from_slice(slice(base, kept..lines_below(text, kept, lines)));
    found
}

/// Where the line starts that is so many lines above the one that an offset is in.
fn lines_above(text: &Text<'_>, at: usize, lines: usize) -> usize {
    let mut start = at;
    for _ in 0..=lines {
        let Some(feed) = text.previous_feed(start) else { return 0 };
        start = feed;
    }
    start + 1
}

/// Where the line ends that is so many lines below the one that an offset is in.
fn lines_below(text: &Text<'_>, at: usize, lines: usize) -> usize {
    let mut end = at;
    for _ in 0..=lines {
        let Some(feed) = text.next_feed(end) else { return text.bytes().len() };
        end = feed + 1;
    }
    end
}
