//! Comments in the place of lines that were left out: `// ... existing code ...`, `# rest of the file remains unchanged`.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use super::{lines, words};
use crate::text_edit::slice;

/// What a comment to the end of its line begins with, in the languages there are; longer marks first.
const LINE_MARKS: [&str; 10] = ["//", "--", "REM ", "rem ", "dnl ", "#", ";", "%", "'", "!"];

/// What a comment begins and ends with; longer marks first.
const BLOCK_MARKS: [(&str, &str); 16] = [
    ("{{!--", "--}}"),
    ("<%--", "--%>"),
    ("--[[", "]]"),
    ("<!--", "-->"),
    ("{{!", "}}"),
    ("{/*", "*/}"),
    ("/**", "*/"),
    ("/*", "*/"),
    ("(*", "*)"),
    ("{-", "-}"),
    ("{#", "#}"),
    ("@*", "*@"),
    ("<#", "#>"),
    ("#|", "|#"),
    ("%{", "%}"),
    ("#=", "=#"),
];

/// Words that stand for lines that were left out, beside dots as well as without.
const PHRASES: [&str; 22] = [
    "rest of",
    "rest unchanged",
    "rest is unchanged",
    "rest remains",
    "rest stays",
    "rest is the same",
    "everything else",
    "remains the same",
    "remain the same",
    "remains unchanged",
    "remain unchanged",
    "stays the same",
    "stay the same",
    "stays unchanged",
    "stay unchanged",
    "same as before",
    "existing code",
    "existing implementation",
    "unchanged code",
    "code unchanged",
    "omitted for brevity",
    "truncated for brevity",
];

/// Words that do so only beside dots.
const PHRASES_BESIDE_DOTS: [&str; 14] = [
    "existing",
    "unchanged",
    "omitted",
    "as before",
    "no changes",
    "previous code",
    "previous implementation",
    "other methods",
    "other functions",
    "other imports",
    "other code",
    "remaining",
    "snip",
    "truncated",
];

/// Words that may stand beside phrases without dots: the comment then is about nothing else.
const FILLERS: &str = "a above all and are as before body brevity class code component config content contents else \
    everything existing fields file for from function functions goes here implementation imports in is keep logic method \
    methods module of omitted original other others previous props remain remains rest routes same script state stay stays \
    test tests the this unchanged your";

/// Most words besides, where there are dots on one side.
const OTHERS: usize = 2;

/// Most words of a comment that stands for lines.
const WORDS: usize = 12;

/// Where in new text, which takes the place of old text, a line is nothing but a comment that stands for lines. Never in
/// text that is no shorter than the old one.
pub(super) fn find(old: &[u8], new: &[u8], base: &[u8]) -> Option<usize> {
    if is_shorter(new, old) { find_line(new, base) } else { None }
}

/// Where a line is nothing but a comment that stands for lines, and is none of the base.
pub(super) fn find_line(new: &[u8], base: &[u8]) -> Option<usize> {
    let mut found = lines(new).filter(|(_, line)| is_elision(line.trim_ascii()));
    found.find(|(_, line)| !lines(base).any(|(_, known)| known.trim_ascii() == line.trim_ascii())).map(|(at, _)| at)
}

/// Whether a text has fewer bytes or fewer lines than another.
pub(super) fn is_shorter(new: &[u8], old: &[u8]) -> bool {
    let feeds = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    new.len() < old.len() || feeds(new) < feeds(old)
}

/// New text that takes the place of a range, with the parts of its first and last lines that stay, and how many bytes stay
/// of the first one.
pub(super) fn whole_lines(base: &[u8], range: &Range<usize>, new: &[u8]) -> (Vec<u8>, usize) {
    let head = slice(base, 0..range.start);
    let head = slice(head, memchr::memrchr(b'\n', head).map_or(0, |feed| feed + 1)..head.len());
    let tail = slice(base, range.end..base.len());
    let tail = match new {
        [] | [.., b'\n'] => &[],
        _ => slice(tail, 0..memchr::memchr(b'\n', tail).unwrap_or(tail.len())),
    };
    ([head, new, tail].concat(), head.len())
}

/// Whether a line without blanks at its ends is nothing but a comment that stands for lines.
pub(crate) fn is_elision(line: &[u8]) -> bool {
    let Some(body) = comment(line) else { return false };
    let body = body.trim_ascii().trim_matches(['(', ')', '[', ']', '{', '}', '<', '>', '*']).trim_ascii();
    let dots = ["...", "\u{2026}"];
    let (leads, trails) =
        (dots.iter().any(|dots| body.starts_with(dots)), dots.iter().any(|dots| body.ends_with(dots)));
    let words = words(body.as_bytes());
    if words.is_empty() {
        return (leads || trails) && body.trim_matches(['.', '\u{2026}', ' ']).is_empty();
    }
    if words.split(' ').count() > WORDS {
        return false;
    }
    let beside_dots = if leads || trails { PHRASES_BESIDE_DOTS.as_slice() } else { &[] };
    let (mut rest, mut is_found) = (format!(" {words} "), false);
    for phrase in PHRASES.iter().chain(beside_dots).map(|phrase| format!(" {phrase} ")) {
        if rest.contains(&phrase) {
            is_found = true;
            rest = rest.replacen(&phrase, " ", 1);
        }
    }
    // Between dots a comment may say what was left out; with dots on one side, hardly; without any, nothing else.
    let most = match (leads, trails) {
        (true, true) => WORDS,
        (false, false) => 0,
        _ => OTHERS,
    };
    let is_other = |word: &&str| !FILLERS.split_whitespace().any(|filler| filler == *word);
    is_found && rest.split_whitespace().filter(is_other).count() <= most
}

/// What a line says that is nothing but one comment.
fn comment(line: &[u8]) -> Option<&str> {
    let line = core::str::from_utf8(line).ok()?;
    let block = BLOCK_MARKS.iter().find_map(|(open, close)| line.strip_prefix(open)?.strip_suffix(close));
    block.or_else(|| {
        let (mark, body) = LINE_MARKS.iter().find_map(|mark| Some((mark, line.strip_prefix(mark)?)))?;
        // More of the same marks are one mark: `///`, `##`, `;;`.
        let last = mark.chars().next_back().filter(char::is_ascii_punctuation);
        Some(last.map_or(body, |last| body.trim_start_matches(last)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_stand_for_lines_are_told_from_others() {
        for line in [
            "// ...",
            "# ...",
            "-- \u{2026}",
            "/* ... */",
            "<!-- ... -->",
            "{/* ... existing code ... */}",
            "// ... existing code ...",
            "// ...existing code...",
            "# ... rest of the function remains unchanged ...",
            "// rest of the code remains the same",
            "// Rest of file unchanged",
            "// rest unchanged",
            "; (other methods ...)",
            "% [... unchanged ...]",
            "' ... existing fields",
            "/* The rest of this class stays the same. */",
            "(* existing implementation *)",
            "REM ... remaining code",
            "//... existing imports",
            "# everything else remains unchanged",
            "/// ...",
            "// ... rest of your imports and helper functions",
            "// ... existing code for the rendering of tables ...",
        ] {
            assert!(is_elision(line.as_bytes()), "{line}");
        }
        for line in [
            "...",
            "* ...",
            "- ...",
            "'...'",
            "#",
            "//",
            "// ... otherwise everything else is considered not a match.",
            "// existing code paths rely on this order",
            "// unchanged",
            "// omitted",
            "// The rest of the line is a comment",
            "// remains the same length for every input",
            "x(); // ...",
            "# See the docs ...",
            "// wait for the other side ...",
            "rest of the code remains the same",
            "// everything else that is left of the queue is dropped here, see below for why ...",
        ] {
            assert!(!is_elision(line.as_bytes()), "{line}");
        }
    }
}
