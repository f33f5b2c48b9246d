//! Blocks of an answer that are no edits, and which files they may be named for.

use alloc::string::String;
use alloc::vec::Vec;

/// A block of an answer that is no edit and may be named for a file. If it is, the batch is refused unless the block
/// quotes that file: as it is, or as the batch leaves it. Which of its names are paths depends on the files.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quote {
    /// Line of the answer that the block begins on, from 1.
    pub first_line: u32,
    /// Line of the answer that the block ends on.
    pub last_line: u32,
    /// Texts that may be the path of the block's file.
    pub names: Vec<QuoteName>,
    /// Whether the names are words of the sentence that announces the block. Then the block is named for a file only if
    /// exactly one of them is a path.
    pub is_announced: bool,
    /// What is in the block.
    pub text: String,
}

/// A text that may be the path of the file that a block is named for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QuoteName {
    /// The text, with `/` between components.
    pub path: String,
    /// Whether it is a path even if there is no such file, and no edit of the batch makes it.
    pub is_path: bool,
}
