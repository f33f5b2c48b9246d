//! How new text is scanned: by lines, by words, and whether anything of the old text is left.

use alloc::string::String;

use crate::file_plan::{FileAction, FilePlan};
use crate::text::lines::BOM;

/// Whether nothing of the base is left.
pub(super) fn is_whole(plan: &FilePlan<'_>, base: &[u8]) -> bool {
    match &plan.action {
        FileAction::Write(_) => true,
        FileAction::Edit(edit) => {
            let gone: usize = edit.replacements().map(|(range, _)| range.len()).sum();
            gone + text_start(base) >= base.len()
        }
        FileAction::Delete => false,
    }
}

/// Where the text begins below a byte order mark.
pub(super) fn text_start(bytes: &[u8]) -> usize {
    if bytes.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Each line of a text, without terminator, with its offset.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    text.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let start = at;
        at += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (start, line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Words of a text in lower case, one blank between them.
pub(super) fn words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut joined = String::new();
    for word in words {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}
