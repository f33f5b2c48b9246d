//! Untrusted text as it is shown: nothing in it steers a terminal, and two texts that differ never look the same.

use std::fmt::{self, Write as _};

use aptix_model::failure::is_escaped;
use unicode_width::UnicodeWidthChar as _;

/// Characters of a label, key or description that are shown.
const QUOTED_CHARS: usize = 120;
/// Marks that a letter may bear.
const MARKS: usize = 2;

/// Bytes of a file. Control, invisible and reordering characters are escaped like `\u{202e}`, bytes that are no UTF-8 like
/// `\xff`, and so is a backslash that would look like the beginning of an escape. A tab stays a tab.
pub(crate) struct Untrusted<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut marks = Marks::default();
        for chunk in self.0.utf8_chunks() {
            let text = chunk.valid();
            for (at, character) in text.char_indices() {
                let is_escape = character == '\\' && begins_escape(text.get(at + 1..).unwrap_or_default());
                if character != '\t' && (is_escape || marks.must_be_escaped(character)) {
                    write!(f, "{}", character.escape_unicode())?;
                } else {
                    f.write_char(character)?;
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

/// Whether a text after a backslash makes it look like an escape of ours: a byte that is no UTF-8 is at least 0x80.
fn begins_escape(rest: &str) -> bool {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match rest.as_bytes() {
        [b'u', b'{', ..] => true,
        [b'x', high @ (b'8'..=b'9' | b'a'..=b'f'), low, ..] => is_hex(high) && is_hex(low),
        _ => false,
    }
}

/// Words of a batch's author about it: in quotes, with what is no plain character escaped, cut with the number of
/// characters that were.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.char_indices().nth(QUOTED_CHARS).map_or(self.0.len(), |(at, _)| at);
        let (shown, rest) = self.0.split_at(cut);
        quote(f, shown)?;
        match rest.chars().count() {
            0 => Ok(()),
            1 => f.write_str(" (and 1 more character)"),
            more => write!(f, " (and {} more characters)", thousands(more)),
        }
    }
}

/// A path, in quotes unless it consists of characters that no word of ours is made of alone. It is not cut.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@#=~".contains(&byte);
        if !self.0.is_empty() && self.0.bytes().all(is_plain) { f.write_str(self.0) } else { quote(f, self.0) }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut marks = Marks::default();
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(f, "\\{character}")?,
            character if marks.must_be_escaped(character) => write!(f, "{}", character.escape_unicode())?,
            character => f.write_char(character)?,
        }
    }
    f.write_char('"')
}

/// Marks that are drawn over the character before them: a letter bears two at most, anything else none, so that they
/// neither hide it nor reach into the rows above and below.
#[derive(Default)]
struct Marks {
    is_on_letter: bool,
    count: usize,
}

impl Marks {
    fn must_be_escaped(&mut self, character: char) -> bool {
        if is_escaped(character) {
            *self = Self::default();
            return true;
        }
        if character.width() != Some(0) {
            *self = Self { is_on_letter: character.is_alphabetic(), count: 0 };
            return false;
        }
        self.count += 1;
        !self.is_on_letter || self.count > MARKS
    }
}

/// A number with its thousands apart.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_same_never_looks_the_same() {
        let shown = |bytes: &[u8]| Untrusted(bytes).to_string();
        let cases: [(&[u8], &str); 8] = [
            (b"caf\xe9 \xff", "caf\\xe9 \\xff"),
            (b"caf\\xe9 \\x41 \\xg", "caf\\u{5c}xe9 \\x41 \\xg"),
            (b"\\u{d}\r\\ud\\n", "\\u{5c}u{d}\\u{d}\\ud\\n"),
            (b"\t\x1b[2J\x7f", "\t\\u{1b}[2J\\u{7f}"),
            ("\u{202e}\u{200b}\u{feff}\u{a0}\u{3164}".as_bytes(), "\\u{202e}\\u{200b}\\u{feff}\\u{a0}\\u{3164}"),
            ("=\u{338} \u{301}".as_bytes(), "=\\u{338} \\u{301}"),
            ("e\u{301}\u{301}\u{301}e\u{301}".as_bytes(), "e\u{301}\u{301}\\u{301}e\u{301}"),
            ("語\u{e9}".as_bytes(), "語\u{e9}"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(shown(bytes), expected);
        }
    }

    #[test]
    fn words_of_an_author_are_quoted_and_cut() {
        let quoted = |text: &str| Quoted(text).to_string();
        assert_eq!(quoted("fix"), "\"fix\"");
        assert_eq!(quoted("a\" \\ \u{1b}[2J\n\u{202e}"), "\"a\\\" \\\\ \\u{1b}[2J\\u{a}\\u{202e}\"");
        assert_eq!(quoted(&"語".repeat(121)), format!("\"{}\" (and 1 more character)", "語".repeat(120)));
        assert!(quoted(&"x".repeat(65_536)).ends_with("x\" (and 65,416 more characters)"));
        let name = |path: &str| Name(path).to_string();
        assert_eq!(name("src/a-b_c.rs"), "src/a-b_c.rs");
        assert_eq!(name("a: deleted b"), "\"a: deleted b\"");
        assert_eq!(name("\u{430}.rs"), "\"\u{430}.rs\"");
    }
}
