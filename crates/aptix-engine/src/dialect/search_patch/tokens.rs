//! The size of a search patch in tokens, as the tokenizer `cl100k_base` counts them (REQ-PATCH-008).

use alloc::string::String;

use aptix_model::batch::{SearchChange, SearchOperation};
use aptix_model::limits::SEARCH_PATCH_TOKENS;

use crate::checking::violation::Violation;

/// Bytes that are tokenized together, if the text has a place soon after them that no token goes across.
const PIECE: usize = 512;
/// Bytes that are tokenized together at most.
const LONGEST: usize = 1 << 10;

/// The violation of changes that have together more tokens than one search patch may have.
pub(super) fn check(changes: &[SearchChange]) -> Option<Violation> {
    let texts = || changes.iter().flat_map(texts);
    let bytes = texts().map(str::len).fold(0, usize::saturating_add);
    // Each token has at least a byte, so that short texts need no counting.
    let fits = bytes <= SEARCH_PATCH_TOKENS || have_at_most(SEARCH_PATCH_TOKENS, texts());
    (!fits).then_some(Violation::Tokens { limit: SEARCH_PATCH_TOKENS, bytes })
}

/// Every text that the author of a change wrote, whether it has an effect or not.
fn texts(change: &SearchChange) -> impl Iterator<Item = &str> {
    let old_text = match &change.operation {
        SearchOperation::Replace { old_text } => Some(old_text),
        _ => None,
    };
    let names = [&change.to_clipboard, &change.from_clipboard];
    let prefixes = change.reindent.iter().flat_map(|reindent| [&reindent.strip, &reindent.add]);
    let texts = old_text.into_iter().chain(&change.new_text).chain(names.into_iter().flatten()).chain(prefixes);
    texts.map(String::as_str)
}

fn have_at_most<'a>(limit: usize, texts: impl Iterator<Item = &'a str>) -> bool {
    let tokenizer = tiktoken_rs::cl100k_base_singleton();
    let mut tokens = 0;
    for mut rest in texts {
        while !rest.is_empty() {
            let (piece, below) = rest.split_at(cut(rest));
            tokens += tokenizer.encode_ordinary(piece).len();
            if tokens > limit {
                return false;
            }
            rest = below;
        }
    }
    true
}

/// Where the next piece ends: before a word or at the end of a line, where no token goes across; in a word or white space that
/// is longer than any piece, anywhere.
fn cut(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() <= PIECE {
        return bytes.len();
    }
    let (_, window) = bytes.split_at(bytes.len().min(LONGEST)).0.split_at(PIECE - 1);
    let between = window.windows(2).position(|pair| match pair {
        [b'\n', next] => !next.is_ascii_whitespace(),
        [last, b' ' | b'\t'] => !last.is_ascii_whitespace(),
        _ => false,
    });
    let mut end = between.map_or(PIECE - 1 + window.len(), |last| PIECE + last);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
