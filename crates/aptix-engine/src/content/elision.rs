//! Comments in the place of lines that were left out: `// ... existing code ...`, `# rest of the file remains unchanged`.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ops::Range;

use super::scan::{lines, words};
use crate::text::edit::slice;
use crate::text::lines::BOM;

/// What a comment to the end of its line begins with, in the languages there are; longer marks first.
const LINE_MARKS: [&str; 17] =
    ["@REM ", "@rem ", "REM ", "Rem ", "rem ", "dnl ", "//", "--", "-#", "::", "#", ";", "%", "'", "\"", "!", "*"];

/// What a comment begins and ends with; longer marks first.
const BLOCK_MARKS: [(&str, &str); 18] = [
    ("{{!--", "--}}"),
    ("<%--", "--%>"),
    ("<%#", "%>"),
    ("--[[", "--]]"),
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
const PHRASES: &str = "\
    rest of, rest unchanged, rest is unchanged, rest remains, rest stays, rest is the same, everything else, remains \
    the same, remain the same, remains unchanged, remain unchanged, stays the same, stay the same, stays unchanged, \
    stay unchanged, same as before, keep existing, remaining code, existing code, existing implementation, unchanged \
    code, code unchanged, omitted for brevity, truncated for brevity";

/// Words that do so only beside dots.
const PHRASES_BESIDE_DOTS: &str = "\
    existing, unchanged, omitted, as before, no change, no changes, previous code, previous implementation, other \
    methods, other functions, other imports, other code, remaining, snip, truncated";

/// All the words of a comment without dots that stands for lines in as few words as these.
const WHOLE: &str = "\
    unchanged, omitted, snip, no change, no changes, methods unchanged, other methods unchanged, implementation \
    unchanged, code omitted";

/// Words that may occur beside phrases without dots: the comment then is about nothing else.
const FILLERS: &str = "a above all and are as before body brevity class code component config content contents else \
    everything existing fields file for from function functions goes here implementation imports in is keep logic method \
    methods module of omitted original other others previous props remain remains rest routes same script state stay stays \
    test tests the this unchanged your";

/// Names of what is left out, and how much of it: with nothing but these and [`FILLERS`] behind dots, a comment stands for
/// lines.
const NAMES: &str = "cases constants declarations definitions entries handlers helper helpers items line lines more options \
    parameters properties same sections settings setup statements styles types variables";

/// What stands for text that was left out.
const DOTS: [&str; 4] = ["...", "\u{2026}", "\u{22ee}", "\u{22ef}"];

/// Most bytes of a line that is looked at: a longer one has more words.
const LINE_BYTES: usize = 400;

/// Most words besides, where there are dots on one side.
const OTHERS: usize = 2;

/// Most words of a comment that stands for lines.
const WORDS: usize = 12;

/// The lines of a file that already are comments that stand for lines; looked for when they are first needed.
pub(super) struct Known<'b> {
    base: &'b [u8],
    lines: OnceCell<BTreeSet<&'b [u8]>>,
}

impl<'b> Known<'b> {
    pub(super) const fn of(base: &'b [u8]) -> Self {
        Self { base, lines: OnceCell::new() }
    }

    /// Where the first line of a text is nothing but a comment that stands for lines, and none of these.
    pub(super) fn find_other(&self, text: &[u8]) -> Option<usize> {
        let mut found = elisions(text);
        found.find(|(_, line)| !self.lines().contains(line)).map(|(at, _)| at)
    }

    fn lines(&self) -> &BTreeSet<&'b [u8]> {
        self.lines.get_or_init(|| elisions(self.base).map(|(_, line)| line).collect())
    }
}

/// The lines of a text that are nothing but a comment that stands for lines, without the blanks around them.
fn elisions(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let trimmed = lines(text).map(|(at, line)| (at, line.strip_prefix(BOM).unwrap_or(line).trim_ascii()));
    trimmed.filter(|(_, line)| is_elision(line))
}

/// Whether a text has fewer bytes or fewer lines than another.
pub(super) fn is_shorter(new: &[u8], old: &[u8]) -> bool {
    let feeds = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    new.len() < old.len() || feeds(new) < feeds(old)
}

/// New text that takes the place of a range, with the parts of its first and last lines that stay, and how many bytes stay
/// of the first one. Of parts that are too long for a line that is looked at, no more is taken than shows that.
pub(super) fn whole_lines(base: &[u8], range: &Range<usize>, new: &[u8]) -> (Vec<u8>, usize) {
    let head = slice(base, range.start.saturating_sub(LINE_BYTES + 1)..range.start);
    let head = slice(head, memchr::memrchr(b'\n', head).map_or(0, |feed| feed + 1)..head.len());
    let tail = slice(base, range.end..range.end.saturating_add(LINE_BYTES + 1).min(base.len()));
    let tail = match new {
        [.., b'\n'] => &[],
        _ => slice(tail, 0..memchr::memchr(b'\n', tail).unwrap_or(tail.len())),
    };
    ([head, new, tail].concat(), head.len())
}

/// Whether a line without blanks at its ends is nothing but a comment that stands for lines.
pub(crate) fn is_elision(line: &[u8]) -> bool {
    if line.len() > LINE_BYTES {
        return false;
    }
    let Some((body, is_item)) = comment(line) else { return false };
    let is_frame = |character: char| character.is_ascii_whitespace() || "()[]{}<>*-=~_!|:/#".contains(character);
    let body = body.trim_matches(is_frame);
    let (leads, trails) =
        (DOTS.iter().any(|dots| body.starts_with(dots)), DOTS.iter().any(|dots| body.ends_with(dots)));
    let words = words(body.as_bytes());
    if words.is_empty() {
        let is_dot = |character: char| {
            character == '.' || character == ' ' || DOTS.contains(&&*character.encode_utf8(&mut [0; 4]))
        };
        return !is_item && (leads || trails) && body.trim_matches(is_dot).is_empty();
    }
    if words.split(' ').count() > WORDS {
        return false;
    }
    let is_filler = |word: &&str| FILLERS.split_whitespace().any(|filler| filler == *word);
    let is_name = |word: &&str| {
        NAMES.split_whitespace().any(|name| name == *word) || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    // Between dots a comment may say anything of what was left out, and behind them what that is.
    let is_named = || words.split(' ').all(|word| is_filler(&word) || is_name(&word));
    if !is_item && leads && (trails || is_named()) {
        return true;
    }
    if WHOLE.split(", ").any(|whole| whole == words) {
        return !is_item;
    }
    let beside_dots = if leads || trails { PHRASES_BESIDE_DOTS } else { "" };
    let (mut rest, mut is_found) = (format!(" {words} "), false);
    let phrases = PHRASES.split(", ").chain(beside_dots.split_terminator(", "));
    for phrase in phrases {
        // Words that meet where a phrase was cut out can be another one.
        if rest.contains(phrase)
            && let Some(at) = rest.find(&format!(" {phrase} "))
        {
            is_found = true;
            rest.replace_range(at..=at + phrase.len(), "");
        }
    }
    // With dots on one side it may hardly say more than a phrase; without any, nothing else.
    let most = if leads || trails { OTHERS } else { 0 };
    let may_be = !is_item || (leads && trails);
    is_found && may_be && rest.split_whitespace().filter(|word| !is_filler(word)).count() <= most
}

/// What a line says that is nothing but one comment, perhaps in braces or with a comma behind it; and whether its mark is
/// that of an item of a list as well.
fn comment(line: &[u8]) -> Option<(&str, bool)> {
    let line = core::str::from_utf8(line).ok()?;
    let closed = line.trim_end_matches([',', ';']);
    let inner = closed.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).map(str::trim);
    let block = |line: &'_ str| -> Option<Range<usize>> {
        let (open, close) = BLOCK_MARKS.iter().find(|(open, close)| {
            line.len() >= open.len() + close.len() && line.starts_with(open) && line.ends_with(close)
        })?;
        Some(open.len()..line.len() - close.len())
    };
    let body = [Some(closed), inner].into_iter().flatten().find_map(|line| line.get(block(line)?));
    if let Some(body) = body {
        return Some((body, false));
    }
    let (mark, body) = LINE_MARKS.iter().find_map(|mark| Some((*mark, line.strip_prefix(mark)?)))?;
    let last = mark.chars().next_back().filter(char::is_ascii_punctuation);
    // More of the same marks are one mark: `///`, `##`, `;;`.
    let body = last.map_or(body, |last| body.trim_start_matches(last));
    // A mark before a word may be an option, a selector or an operator: `--unchanged`, `#unchanged {`, `!unchanged`.
    let is_word = mark != "//" && last.is_some() && body.starts_with(char::is_alphanumeric);
    let is_string = matches!(last, Some(quote @ ('\'' | '"')) if closes_quote(body, quote));
    (!is_word && !is_string).then_some((body, mark == "*"))
}

/// Whether a text has the quote that closes a string; one between letters is an apostrophe.
fn closes_quote(text: &str, quote: char) -> bool {
    text.match_indices(quote).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + 1..));
        let is_letter = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        !(is_letter(before.and_then(|text| text.chars().next_back()))
            && is_letter(after.and_then(|text| text.chars().next())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELISIONS: &[&str] = &[
        "// ...",
        "// remaining rest of code",
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
        "# ... imports ...",
        "# ... (helper functions) ...",
        "# ... lines 10-50 ...",
        "# ... rest",
        "# ... same as above",
        "# ... imports",
        "// ... more methods",
        "// ... no change",
        "// \u{22ee}",
        "# --- ... ---",
        "//- ...",
        "/* unchanged */",
        "# (unchanged)",
        "// omitted",
        "# <snip>",
        "# keep existing imports",
        "# remaining code",
        "{ /* ... existing code ... */ }",
        "/* ... existing props ... */,",
        "<%# ... existing code ... %>",
        "--[[ ... --]]",
        "-# ... existing code",
        ":: ... existing code",
        "@REM ... existing code",
        "\" ... existing code ...",
        "' ... don't change the existing code ...",
        "* ... existing code ...",
    ];

    const OTHERS: &[&str] = &[
        "...",
        "* ...",
        "- ...",
        "'...'",
        "#",
        "//",
        "// ... otherwise everything else is considered not a match.",
        "// existing code paths rely on this order",
        "// unchanged lines are kept",
        "// omitted fields",
        "'... rest of the text'",
        "'... rest of the text',",
        "\"... rest of it\"",
        "\"...\": \"...\"",
        "--unchanged",
        "--keep-existing",
        "#unchanged {",
        "!unchanged",
        "*unchanged",
        "* rest of the list",
        "*/",
        "/*/",
        "{}",
        "// Imports...",
        "// ... and then it is closed",
        "// The rest of the line is a comment",
        "// remains the same length for every input",
        "x(); // ...",
        "# See the docs ...",
        "// wait for the other side ...",
        "rest of the code remains the same",
        "// everything else that is left of the queue is dropped here, see below for why ...",
    ];

    #[test]
    fn comments_that_stand_for_lines_are_recognized() {
        for line in ELISIONS {
            assert!(is_elision(line.as_bytes()), "{line}");
        }
        for line in OTHERS {
            assert!(!is_elision(line.as_bytes()), "{line}");
        }
    }
}
