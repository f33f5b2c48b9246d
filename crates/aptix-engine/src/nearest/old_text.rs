//! What an author is shown whose old text has no place, or several: the real lines most like it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::failure::{Excerpt, Failure};
use aptix_model::reason::Reason;
use aptix_model::report::Tier;
use memchr::memmem;

use crate::findings::defect;
use crate::nearest::excerpt::{difference, excerpt};
use crate::nearest::lookalike::{self, Lookalike, What};
use crate::planning::work::Work;
use crate::shown::{counted, cut};
use crate::text::find::{FindError, Needle, Unshiftable, is_blank};
use crate::text::lines::Text;

/// Lines of old text that are looked for one by one.
const LINES: usize = 1000;
/// Places that are held against each other.
const PLACES: usize = 10_000;
/// Bytes of a line that count as likeness.
const WEIGHT: usize = 80;
/// Fewest bytes of new text for which a refusal reports that it is there already.
const TELLING: usize = 4;
/// Places that are shown.
const SHOWN: usize = 3;
/// Characters of a line that a hint shows.
const SHOWN_CHARS: usize = 120;

/// The failure of a change whose old text has no place, or several.
pub(crate) fn explain(error: &FindError, text: &Text<'_>, needle: &Needle<'_>, work: &mut Work<'_>) -> Failure {
    match error {
        FindError::NotFound => not_found("old text not found", text, needle, work),
        FindError::Ambiguous { tier, lines, has_more } => {
            let count = if *has_more { format!("more than {}", lines.len()) } else { lines.len().to_string() };
            let loosely = if *tier == Tier::Exact { "" } else { " (ignoring white space)" };
            let places = at_lines(lines, *has_more);
            let message = format!("old text occurs at {count} places{loosely}, at {places}");
            let is_one_line = !has_more && lines.iter().all(|line| lines.first() == Some(line));
            let mut failure = Failure::new(Reason::TextNotUnique, message).hint(if is_one_line {
                "add what is before or after it in its line to old text until it occurs only once"
            } else {
                "add lines from above or below to old text until it occurs only once"
            });
            failure.line = lines.first().copied();
            let shown = distinct(lines).into_iter().take(SHOWN);
            failure.nearest = shown.filter_map(|line| lines_at(text, line - 1, needle.as_lines().len())).collect();
            failure
        }
        FindError::BudgetExceeded => {
            Failure::new(Reason::MatchBudgetExceeded, "searching for old text takes too long in a file like this")
                .hint("use old text with a longer line that occurs only once, or a line patch")
        }
    }
}

/// The lines of places, of which several may be on one line.
fn distinct(lines: &[usize]) -> Vec<usize> {
    let mut named = lines.to_vec();
    named.dedup();
    named
}

/// The lines of places as a message names them.
pub(crate) fn at_lines(lines: &[usize], has_more: bool) -> String {
    let named: Vec<String> = distinct(lines).iter().map(ToString::to_string).collect();
    let s = if named.len() == 1 && !has_more { "" } else { "s" };
    let more = if has_more { ", ..." } else { "" };
    format!("line{s} {}{more}", named.join(", "))
}

/// The failure of a change whose old text has no place. Its message is `lead` and, if the file has lines like that text,
/// where those are and how they differ.
pub(crate) fn not_found(lead: &str, text: &Text<'_>, needle: &Needle<'_>, work: &mut Work<'_>) -> Failure {
    let failure = |message: String| Failure::new(Reason::TextNotFound, message);
    let off = if work.settings.recovers { "" } else { "; white space must agree too, as recovery is turned off" };
    let hint = format!("read the file again and take old text from it, word for word{off}");
    if text.lines() == 0 {
        return failure(format!("{lead}: the file is empty")).hint("append the text, or overwrite the file");
    }
    let may_search = work.searches.take();
    let found = may_search.and_then(|()| lookalike::find(text, needle));
    if let Some(found) = found.as_ref().filter(|found| found.what != What::Signs) {
        let line = found.above + 1;
        let message = format!("{lead}: it is like the text at line {line}, where {}", found.what.words());
        let mut failure = failure(message).line(line);
        failure.nearest.extend(lines_at(text, found.above, found.lines));
        return failure.hint(did_you_mean(found, text));
    }
    let blank = needle.as_lines().iter().take_while(|line| is_blank(line)).count();
    let same = found.as_ref().map(|found| (found.above.saturating_sub(blank), blank));
    let hint = found.as_ref().map_or(hint, |found| did_you_mean(found, text));
    let nearest = same.or_else(|| may_search.and_then(|()| nearest(text, needle)));
    let Some((index, words)) = nearest.and_then(|(above, position)| first_difference(text, needle, above, position))
    else {
        return failure(lead.to_string()).hint(hint);
    };
    let above = nearest.map_or(0, |(above, _)| above);
    let line = above + index + 1;
    let message = format!("{lead}: the lines most like it begin at line {}; at line {line}, {words}", above + 1);
    let mut failure = failure(message).hint(hint).line(line);
    failure.nearest.extend(lines_at(text, above, needle.as_lines().len()));
    failure
}

/// The position of the first line that differs from the lines below `above`, and how it does. `position` is that of the
/// line that identified the place.
fn first_difference(text: &Text<'_>, needle: &Needle<'_>, above: usize, position: usize) -> Option<(usize, String)> {
    let lines = needle.as_lines();
    let mut cursor = text.cursor();
    cursor.seek(above).ok()?;
    // A difference beyond white space is the more useful one.
    let find = |differs: fn(&[u8], &[u8]) -> bool| {
        let mut pairs = lines.iter().zip(cursor.clone()).enumerate();
        pairs.find(|(_, (expected, found))| differs(expected, found))
    };
    let differing = find(|expected, found| expected.trim_ascii() != found.trim_ascii());
    let differing = differing.or_else(|| find(|expected, found| expected != found));
    Some(match differing {
        Some((index, (expected, found))) => {
            let (expected, found) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(found));
            (index, difference(&expected, &found))
        }
        None if cursor.clone().count() < lines.len() => (position, "the file ends before old text does".to_string()),
        None => (position, "only how the last line ends differs".to_string()),
    })
}

/// What to do about old text that was only written down in another way: the line as the file has it.
fn did_you_mean(found: &Lookalike, text: &Text<'_>) -> String {
    let mut cursor = text.cursor();
    let line = cursor.seek(found.above).ok().and_then(|()| cursor.next()).unwrap_or_default();
    format!(
        "did you mean {:?}? take old text from the file, sign by sign, and write new text in the same way",
        cut(line.trim_ascii(), SHOWN_CHARS)
    )
}

fn lines_at(text: &Text<'_>, above: usize, count: usize) -> Option<Excerpt> {
    let mut cursor = text.cursor();
    cursor.seek(above).ok()?;
    excerpt(cursor, count)
}

/// How many lines lie above the place most like the needle, and the position of the line that identifies it.
fn nearest(text: &Text<'_>, needle: &Needle<'_>) -> Option<(usize, usize)> {
    by_whole_lines(text, needle).or_else(|| by_one_line(text, needle))
}

/// The place where most of the needle's lines occur, white space aside.
fn by_whole_lines(text: &Text<'_>, needle: &Needle<'_>) -> Option<(usize, usize)> {
    let lines = needle.as_lines().iter().take(LINES).enumerate();
    let known: BTreeMap<&[u8], usize> =
        lines.filter(|(_, line)| !is_blank(line)).map(|(position, line)| (line.trim_ascii(), position)).rev().collect();
    let mut places: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (number, line) in text.cursor().enumerate() {
        let Some(position) = known.get(line.trim_ascii()) else { continue };
        let Some(above) = number.checked_sub(*position) else { continue };
        if places.len() < PLACES || places.contains_key(&above) {
            let place = places.entry(above).or_insert((0, *position));
            place.0 += line.trim_ascii().len().min(WEIGHT);
        }
    }
    let (above, (_, position)) = places.into_iter().rev().max_by_key(|(_, (weight, _))| *weight)?;
    Some((above, position))
}

/// The line that begins and ends most like the needle's longest one.
fn by_one_line(text: &Text<'_>, needle: &Needle<'_>) -> Option<(usize, usize)> {
    let lines = needle.as_lines().iter().take(LINES).enumerate();
    let (position, longest) =
        lines.map(|(position, line)| (position, line.trim_ascii())).max_by_key(|(_, line)| line.len())?;
    let likeness = |line: &[u8]| {
        let head = line.iter().zip(longest).take_while(|(a, b)| a == b).count();
        let tail = line.iter().rev().zip(longest.iter().rev()).take_while(|(a, b)| a == b).count();
        (head + tail).min(longest.len()).min(line.len())
    };
    let all = text.cursor().enumerate().map(|(number, line)| (likeness(line.trim_ascii()), number));
    let (weight, number) = all.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (2 * weight >= longest.len() && weight > 0).then_some((number.saturating_sub(position), position))
}

/// Adds to the failure of a change whose old text is not found that its new text is there already, if it is.
pub(crate) fn with_new_text(failure: Failure, text: &Text<'_>, new: &str) -> Failure {
    if failure.reason != Reason::TextNotFound || new.trim().len() < TELLING {
        return failure;
    }
    let Some(at) = memmem::find(text.bytes(), new.as_bytes()) else { return failure };
    let line = text.lines_above(at) + 1;
    failure.hint(format!("the new text is already at line {line}: the change may have been made; read the file again"))
}

/// The failure of a change whose new text cannot follow the indentation at its place.
pub(crate) fn unshiftable(error: &Unshiftable, text: &Text<'_>, line: usize, count: usize) -> Failure {
    if *error == Unshiftable::Misplaced {
        return defect(error.to_string());
    }
    let (lines, verb) = (counted(count, "line"), if count == 1 { "is" } else { "are" });
    let message =
        format!("old text not found: {lines} like it at line {line} {verb} indented in another way, and {error}");
    let mut failure = Failure::new(Reason::TextNotFound, message)
        .line(line)
        .hint("indent old text and new text as the file is indented there");
    failure.nearest.extend(lines_at(text, line - 1, count));
    failure
}
