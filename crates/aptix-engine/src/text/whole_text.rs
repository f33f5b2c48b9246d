//! A whole text in the place of a file: the form of the file that it keeps, and the warning where it keeps none.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use aptix_model::report::{Normalization, Warning};
use memchr::{memchr, memchr_iter, memmem};

use crate::findings::warning;
use crate::text::lines::{BOM, Text};

/// The byte order mark. Content with several would, less one, still begin with one.
const BOM_CHAR: char = '\u{feff}';

/// A text in the form in which it is written.
#[derive(Debug, Default)]
pub(crate) struct Formed<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) normalized: Vec<Normalization>,
    pub(crate) warnings: Vec<Warning>,
}

/// A text as it is given, but with the byte order mark and the line terminators of the file in its place: `\n` alone becomes
/// `\r\n` where every line of the file ends so.
pub(crate) fn keep_form<'a>(new: &'a str, base: Option<&[u8]>) -> Formed<'a> {
    let base = base.unwrap_or_default();
    let mut formed = end_like(new, base);
    formed.warnings.extend(other_encoding(base));
    if base.starts_with(BOM) && !new.is_empty() && !new.as_bytes().starts_with(BOM) {
        formed.normalized.insert(0, Normalization::BomKept);
        formed.bytes = Cow::Owned([BOM, &*formed.bytes].concat());
    }
    formed
}

/// A text that ends its lines like the file in its place, without a byte order mark if that file has one.
pub(crate) fn keep_ends<'a>(new: &'a str, text: &Text<'_>) -> Formed<'a> {
    let has_mark = text.start() > 0;
    let unmarked = new.strip_prefix('\u{feff}').filter(|_| has_mark);
    let mut formed = end_like(unmarked.unwrap_or(new), text.bytes());
    formed.warnings.extend(other_encoding(text.bytes()));
    if has_mark && unmarked.is_none() && !new.is_empty() {
        formed.normalized.insert(0, Normalization::BomKept);
    }
    formed
}

/// A text in the form in which files are created, whatever the form of the file in its place (TUL-004 5.1).
pub(crate) fn create<'a>(new: &'a str, base: Option<&[u8]>) -> Formed<'a> {
    let (bytes, normalized) = normalize(new);
    let base = base.unwrap_or_default();
    let mut warnings = Vec::from_iter(other_encoding(base));
    let is_text = Text::new(base).is_ok();
    let (has_mark, has_returns) = (base.starts_with(BOM), memmem::find(base, b"\r\n").is_some());
    if is_text && (has_mark || has_returns) {
        let what = match (has_mark, has_returns) {
            (true, true) => "had a byte order mark and lines that end in \\r\\n; it now has neither",
            (true, false) => "had a byte order mark; it now has none",
            (false, _) => "had lines that end in \\r\\n; they now end in \\n",
        };
        warnings.push(warning("FORM_CHANGED", ["the file ", what].concat()));
    }
    Formed { bytes, normalized, warnings }
}

fn end_like<'a>(new: &'a str, base: &[u8]) -> Formed<'a> {
    let bytes = new.as_bytes();
    let as_given = Formed { bytes: Cow::Borrowed(bytes), ..Formed::default() };
    let returns = memmem::find_iter(base, b"\r\n").count();
    let is_plain = memchr(b'\n', bytes).is_some() && memmem::find(bytes, b"\r\n").is_none();
    if returns == 0 || Text::new(base).is_err() {
        return as_given;
    }
    if returns < memchr_iter(b'\n', base).count() {
        let message =
            "some lines of the file ended in \\r\\n and others in \\n; the new text is written as it is given";
        return Formed { warnings: Vec::from_iter([warning("MIXED_LINE_ENDINGS", message)]), ..as_given };
    }
    if !is_plain {
        return as_given;
    }
    let mut ended = Vec::with_capacity(bytes.len() + memchr_iter(b'\n', bytes).count());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                ended.extend_from_slice(line);
                ended.extend_from_slice(b"\r\n");
            }
            None => ended.extend_from_slice(line),
        }
    }
    Formed { bytes: Cow::Owned(ended), normalized: Vec::from_iter([Normalization::LineEndings]), warnings: Vec::new() }
}

fn other_encoding(base: &[u8]) -> Option<Warning> {
    let is_utf8 = Text::new(base).is_ok() && core::str::from_utf8(base).is_ok();
    let message = "the file was not UTF-8 text; it now is";
    (!is_utf8).then(|| warning("ENCODING_CHANGED", message))
}

/// The content to write, and what was changed about it (TUL-004 5.1).
///
/// Every carriage return directly before a line feed is removed, so that no `\r\n` is left; any other one is text.
fn normalize(content: &str) -> (Cow<'_, [u8]>, Vec<Normalization>) {
    let mut normalized = Vec::new();
    let bytes = content.trim_start_matches(BOM_CHAR).as_bytes();
    if bytes.len() < content.len() {
        normalized.push(Normalization::BomRemoved);
    }
    let Some(first) = memmem::find(bytes, b"\r\n") else { return (Cow::Borrowed(bytes), normalized) };
    normalized.push(Normalization::LineEndings);
    let mut text = Vec::with_capacity(bytes.len());
    let (mut head, mut rest) = bytes.split_at(first);
    loop {
        text.extend_from_slice(head);
        let Some(tail) = rest.strip_prefix(b"\r\n") else { break };
        while text.last() == Some(&b'\r') {
            text.pop();
        }
        text.push(b'\n');
        (head, rest) = tail.split_at(memmem::find(tail, b"\r\n").unwrap_or(tail.len()));
    }
    (Cow::Owned(text), normalized)
}
