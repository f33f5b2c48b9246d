//! Old text that is in the file, written in another way: typographic signs where the file has plain ones,
//! escapes or HTML entities where it has the characters themselves. It is only shown; nothing is ever applied by it.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::text::find::Needle;
use crate::text::lines::Text;

/// Lines of the file that are compared.
const COMPARED: usize = 2_000_000;

/// Where old text occurs as the file writes it.
pub(crate) struct Lookalike {
    /// How many lines are above it.
    pub(crate) above: usize,
    /// How many lines it has there.
    pub(crate) lines: usize,
    /// What the author wrote in place of what the file has.
    pub(crate) what: What,
}

/// What an author wrote in place of what a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// `\n` for a line break, `\"` for a quotation mark.
    Escapes,
    /// `&lt;` for `<`.
    Entities,
    /// A typographic sign for a plain one, or the other way round.
    Signs,
}

impl What {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Escapes => "the file has what an escape such as '\\n' stands for",
            Self::Entities => "the file has what an HTML entity such as '&lt;' stands for",
            Self::Signs => "quotation marks, dashes or blanks are not the same signs",
        }
    }
}

/// Finds old text that is not found in the file as it was written. Of several places the first one will do.
pub(crate) fn find(text: &Text<'_>, needle: &Needle<'_>) -> Option<Lookalike> {
    let written = needle.as_lines().join(&b"\n"[..]);
    let written = core::str::from_utf8(&written).ok()?;
    let readings = [(What::Escapes, unescaped(written)), (What::Entities, decoded(written))];
    let readings = readings.into_iter().filter_map(|(what, reading)| Some((what, reading?)));
    let found = readings.into_iter().find_map(|(what, reading)| {
        let (above, lines) = place(text, &reading)?;
        Some(Lookalike { above, lines, what })
    });
    found.or_else(|| {
        let (above, lines) = place(text, written)?;
        let mut cursor = text.cursor();
        cursor.seek(above).ok()?;
        let is_typographic = |line: &[u8]| *plain(line) != *line;
        let differs = is_typographic(written.as_bytes()) || cursor.take(lines).any(is_typographic);
        differs.then_some(Lookalike { above, lines, what: What::Signs })
    })
}

/// Where a text occurs, ignoring white space at the edges of its lines and typographic signs.
fn place(text: &Text<'_>, reading: &str) -> Option<(usize, usize)> {
    let plain = plain(reading.as_bytes());
    let wanted: Vec<&[u8]> = plain.trim_ascii().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let (first, below) = wanted.split_first().filter(|(first, _)| !first.is_empty())?;
    let mut left = COMPARED;
    let mut cursor = text.cursor();
    loop {
        let above = cursor.above();
        let line = cursor.next()?;
        left = left.checked_sub(1)?;
        let line = self::plain(line);
        if below.is_empty() {
            if memchr::memmem::find(&line, first).is_some() {
                return Some((above, 1));
            }
            continue;
        }
        if !line.trim_ascii().ends_with(first) {
            continue;
        }
        let mut lines = cursor.clone();
        let last = below.len() - 1;
        let is_there = below.iter().enumerate().all(|(index, expected)| {
            left = left.saturating_sub(1);
            lines.next().is_some_and(|line| {
                let line = self::plain(line);
                let line = line.trim_ascii();
                if index == last { line.starts_with(expected) } else { line == *expected }
            })
        });
        if is_there {
            return Some((above, wanted.len()));
        }
    }
}

/// A line with plain signs in the place of typographic ones.
fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    for character in String::from_utf8_lossy(line).chars() {
        match character {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            '\u{2018}'..='\u{201b}' | '\u{2032}' => plain.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => plain.push('"'),
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => plain.push(' '),
            '\u{2026}' => plain.push_str("..."),
            '\u{200b}' | '\u{feff}' => {}
            other => plain.push(other),
        }
    }
    Cow::Owned(plain.into_bytes())
}

/// A text with the characters that its escapes stand for; nothing if it has none.
fn unescaped(text: &str) -> Option<String> {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some((head, tail)) = rest.split_once('\\') {
        plain.push_str(head);
        let mut after = tail.chars();
        plain.push(match after.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => {
                rest = after.as_str();
                continue;
            }
            Some(sign @ ('"' | '\'' | '\\' | '/')) => sign,
            _ => {
                plain.push('\\');
                rest = tail;
                continue;
            }
        });
        rest = after.as_str();
    }
    plain.push_str(rest);
    (plain != text).then_some(plain)
}

/// A text with the characters that its HTML entities stand for; nothing if it has none.
fn decoded(text: &str) -> Option<String> {
    const ENTITIES: [(&str, &str); 8] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let has_any = ENTITIES.iter().any(|(entity, _)| text.contains(entity));
    has_any.then(|| ENTITIES.iter().fold(text.to_string(), |text, (entity, sign)| text.replace(entity, sign)))
}
