//! Places in an answer, as failures and warnings name them.

use super::fence::Block;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// A block's tag and its lines.
pub(super) fn place(block: &Block) -> String {
    let tag: String = block.tag.chars().take(20).collect();
    let (first, last) = (block.first_line, block.last_line);
    if tag.is_empty() {
        format!("untagged block at lines {first} to {last} of the answer")
    } else {
        format!("{tag} block at lines {first} to {last} of the answer")
    }
}

/// Refuses an answer for one of its lines, if only one is at fault.
pub(super) fn refused(line: impl Into<Option<usize>>, message: impl Into<String>, hint: impl Into<String>) -> Failure {
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).hint(hint);
    Failure { field: line.into().map(|line| format!("line {line}")), ..failure }
}

/// Says in which block of the answer something is wrong.
pub(super) fn within(block: &Block, failure: Failure) -> Failure {
    Failure { message: format!("in the {}: {}", place(block), failure.message), ..failure }
}

/// A block's text below so many empty lines that its lines have the numbers that they have in the answer.
pub(super) fn at_its_lines(block: &Block) -> String {
    let mut text = "\n".repeat(block.text_line.saturating_sub(1));
    text.push_str(&block.text);
    text
}

/// Refuses an answer that ends within the marks of a fence: what the block above it may belong to never arrived.
pub(super) fn cut_fence(text: &str) -> Option<Failure> {
    let last = text.rsplit('\n').next().unwrap_or_default();
    matches!(last.trim(), "`" | "``" | "~" | "~~").then(|| {
        let message = format!("the answer ends in the middle of a fence: {last:?}");
        refused(
            None,
            message,
            "the answer was cut short; send it whole, each block closed by a fence as long as its opening one",
        )
    })
}

/// Refuses a block that nothing ends.
pub(super) fn open_fence(block: &Block) -> Failure {
    refused(
        block.first_line,
        format!("the {} has no closing fence", place(block)),
        "the answer was cut short; send it whole, each block closed by a fence as long as its opening one",
    )
}
