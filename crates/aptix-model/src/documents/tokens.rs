//! How many tokens a text has, as the tokenizer `cl100k_base` counts them.

use tiktoken_rs::cl100k_base_singleton;

/// Bytes that are tokenized together, if lines are short enough to cut between them.
const PIECE: usize = 4 << 10;
/// Bytes that are tokenized together at most: what a long piece costs grows faster than its length.
const LONGEST: usize = 16 << 10;

/// Whether a text has at most so many tokens. Each has at least a byte, so that short texts need no counting.
pub(super) fn has_at_most(limit: usize, text: &str) -> bool {
    if text.len() <= limit {
        return true;
    }
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() && tokens <= limit {
        let (piece, below) = rest.split_at(cut(rest));
        tokens += cl100k_base_singleton().encode_ordinary(piece).len();
        rest = below;
    }
    tokens <= limit
}

/// Where the next piece ends: between a line break and what is no white space, where no token goes across; in lines
/// longer than any piece, anywhere.
fn cut(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() <= PIECE {
        return bytes.len();
    }
    let (_, window) = bytes.split_at(bytes.len().min(LONGEST)).0.split_at(PIECE);
    let between = window.windows(2).position(|pair| matches!(pair, [b'\n', below] if below.is_ascii_graphic()));
    let mut end = between.map_or(PIECE + window.len(), |feed| PIECE + feed + 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
