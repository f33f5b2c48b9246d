//! What the author of a change is shown that was made before, or could be made twice.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use memchr::memmem;

use super::copy::{Copy, Proves};
use crate::nearest::excerpt::excerpt;
use crate::shown::cut;
use crate::text::edit::slice;
use crate::text::lines::Text;

/// What to do about a change that was made, of a batch of which nothing was applied.
const LEAVE_OUT: &str = "leave this change out, and send the others again if there are any";
/// Characters of a text that a hint repeats.
const QUOTED: usize = 200;
/// Lines that are listed.
const LISTED: usize = 20;
/// Lines of the file that are taken along to name its end or its top.
const GROWTH: usize = 10;

/// A change whose new side already occurs at `copy`.
pub(crate) fn applied(text: &Text<'_>, copy: &Copy) -> Failure {
    match copy.proves {
        Proves::Made => {}
        Proves::Blank => return blank(text, &copy.range),
        Proves::Elsewhere(at) => return elsewhere(text, &copy.range, at),
    }
    let copy = &copy.range;
    let quoted = format!("{:?}", cut(slice(text.bytes(), copy.clone()), QUOTED));
    already(text, copy).hint(format!(
        "{quoted} is there: {LEAVE_OUT}; to add a second copy, send a change of more of the lines around the place"
    ))
}

/// A change that adds blank lines where blank lines are: nothing shows whether it was made.
fn blank(text: &Text<'_>, copy: &Range<usize>) -> Failure {
    let (_, line) = lines(text, copy);
    let message = format!(
        "the change adds nothing but blank lines, and there are some at line {line} already: they may be those of this change"
    );
    shown(Failure::new(Reason::TextNotUnique, message), text, copy)
        .hint("leave the change out if it was made; else give the lines above and below the place")
}

/// The same for text to append.
pub(crate) fn at_end(text: &Text<'_>, copy: &Copy, new: &str) -> Failure {
    if copy.proves == Proves::Blank {
        return blank(text, &copy.range);
    }
    let copy = &copy.range;
    let bytes = text.bytes();
    let mut start = copy.start;
    for _ in 0..GROWTH {
        if stands_once(bytes, slice(bytes, start..bytes.len())) {
            break;
        }
        start = line_above(bytes, start);
    }
    let end = String::from_utf8_lossy(slice(bytes, start..bytes.len()));
    let joint = if end.ends_with('\n') { "" } else { "\n" };
    already(text, copy).hint(second_copy("last", &end, &format!("{end}{joint}{new}")))
}

/// The same for text to prepend.
pub(crate) fn at_top(text: &Text<'_>, copy: &Copy, new: &str) -> Failure {
    if copy.proves == Proves::Blank {
        return blank(text, &copy.range);
    }
    let copy = &copy.range;
    let bytes = text.bytes();
    let mut end = copy.end;
    for _ in 0..GROWTH {
        if stands_once(bytes, slice(bytes, copy.start..end)) {
            break;
        }
        let rest = slice(bytes, end..bytes.len());
        end += memchr::memchr(b'\n', rest).map_or(rest.len(), |feed| feed + 1);
    }
    let top = String::from_utf8_lossy(slice(bytes, copy.start..end));
    already(text, copy).hint(second_copy("first", &top, &format!("{new}{top}")))
}

fn second_copy(which: &str, old: &str, new: &str) -> String {
    let lead = format!("{LEAVE_OUT}; to add a second copy, send a replace over the");
    if new.chars().nth(4 * QUOTED).is_some() {
        return format!("{lead} {which} lines: they as oldText, and they with the text as newText");
    }
    format!("{lead} {which} lines: \"oldText\": {old:?}, \"newText\": {new:?}")
}

fn stands_once(bytes: &[u8], text: &[u8]) -> bool {
    memmem::find_iter(bytes, text).take(2).count() == 1
}

/// Where the line above an offset starts at which a line starts.
fn line_above(bytes: &[u8], start: usize) -> usize {
    let head = slice(bytes, 0..start.saturating_sub(1));
    memchr::memrchr(b'\n', head).map_or(0, |feed| feed + 1)
}

fn already(text: &Text<'_>, copy: &Range<usize>) -> Failure {
    let (first, last) = lines(text, copy);
    let place = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
    shown(
        Failure::new(Reason::AlreadyApplied, format!("the change is already made: its new text occurs at {place}")),
        text,
        copy,
    )
}

/// The first and the last line of a range.
fn lines(text: &Text<'_>, range: &Range<usize>) -> (usize, usize) {
    let first = text.lines_above(range.start) + 1;
    (first, first.max(text.lines_above(range.end.saturating_sub(1)) + 1))
}

fn shown(mut failure: Failure, text: &Text<'_>, range: &Range<usize>) -> Failure {
    let (first, last) = lines(text, range);
    let mut cursor = text.cursor();
    if cursor.seek(first - 1).is_ok() {
        failure.nearest.extend(excerpt(cursor, last - first + 1));
    }
    failure.line(first)
}

/// A change of several places, by their offsets, of which some have the new text.
pub(crate) fn partly(text: &Text<'_>, made: &[usize], open: &[usize]) -> Failure {
    let line = |at: &usize| text.lines_above(*at) + 1;
    // Where one line has places of both kinds, its number does not distinguish them.
    let shared: BTreeSet<usize> = made.iter().map(line).collect();
    let has_columns = open.iter().any(|at| shared.contains(&line(at)));
    let message = format!(
        "the change is already made at some of its places and not at others: the new text occurs at {}, and not at {}",
        listed(text, made, has_columns),
        listed(text, open, has_columns)
    );
    let mut failure = Failure::new(Reason::TextNotUnique, message)
        .hint("give each place that is left a change of its own, with more of the lines around it");
    failure.line = open.first().map(line);
    let mut cursor = text.cursor();
    if let Some(line) = failure.line
        && cursor.seek(line - 1).is_ok()
    {
        failure.nearest.extend(excerpt(cursor, 1));
    }
    failure
}

/// Offsets by their lines and, if asked for, by their columns, which are counted in characters from 1.
fn listed(text: &Text<'_>, offsets: &[usize], has_columns: bool) -> String {
    let mut places: Vec<(usize, usize)> = offsets.iter().map(|at| (text.lines_above(*at) + 1, *at)).collect();
    if !has_columns {
        places.dedup_by_key(|(line, _)| *line);
    }
    let word = |(line, at): &(usize, usize)| {
        let start = text.previous_feed(*at).map_or(text.start(), |feed| feed + 1);
        let column = || String::from_utf8_lossy(slice(text.bytes(), start..*at)).chars().count() + 1;
        if has_columns { format!("{line} (column {})", column()) } else { line.to_string() }
    };
    let words: Vec<String> = places.iter().take(LISTED).map(word).collect();
    let s = if places.len() == 1 { "" } else { "s" };
    let more = if places.len() > LISTED { ", ..." } else { "" };
    format!("line{s} {}{more}", words.join(", "))
}

/// A change of the first place, above which its new text occurs: it may have been made there.
pub(crate) fn next_place(text: &Text<'_>, copy: &Range<usize>, at: usize) -> Failure {
    let message = format!(
        "the new text occurs at line {}, above the place of the old text at line {}: the change may have been made there",
        text.lines_above(copy.start) + 1,
        text.lines_above(at) + 1
    );
    let failure = Failure::new(Reason::TextNotUnique, message);
    shown(failure, text, copy)
        .hint("leave the change out if it was made; else add lines from around the place that is meant to old text")
}

/// A change whose old side was found with other white space, while its new side occurs at another place.
fn elsewhere(text: &Text<'_>, copy: &Range<usize>, at: usize) -> Failure {
    let message = format!(
        "the new text occurs at line {}, and the old text only at line {}, with other white space: the change may have been made already",
        text.lines_above(copy.start) + 1,
        text.lines_above(at) + 1
    );
    shown(Failure::new(Reason::TextNotUnique, message), text, copy)
        .hint("leave the change out if it was made; else give the old text with the white space that the file has")
}

/// A change after which its old side would occur again.
pub(crate) fn repeats(text: &Text<'_>, at: usize) -> Failure {
    let line = text.lines_above(at) + 1;
    let message = format!(
        "the old text at line {line} could be found again once this change is made, at another place or beside it, so that the change would be made twice if it were sent twice"
    );
    let failure = Failure::new(Reason::TextNotUnique, message);
    shown(failure, text, &(at..at))
        .hint("add lines from above and below the place until the old text occurs at the place alone")
}
