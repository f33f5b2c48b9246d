//! Changes of whole lines, by their numbers in one version of a file.

use alloc::string::String;
use alloc::vec::Vec;

/// Whole-line changes to one version of a file (TUL-002 5.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LinePatch {
    /// SHA-256, in hex, of the version the author saw.
    pub original_sha256: String,
    /// The changes, top to bottom.
    pub changes: Vec<Change>,
}

/// One change of a line patch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// The author's name for it; looks nothing up.
    pub key: Option<String>,
    /// Why it is made; without effect on what happens.
    pub description: Option<String>,
    /// What is done.
    pub operation: Operation,
}

/// What a change does. Line numbers are those of the version the author saw.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Lines come in (TUL-002 5.2).
    Insert {
        /// The line above them, 0 for the top.
        after_line: i64,
        /// The lines, without terminators.
        new_lines: Vec<String>,
    },
    /// Lines take the place of others (TUL-002 5.3).
    Replace {
        /// First line that goes.
        start_line: i64,
        /// Last line that goes.
        end_line: i64,
        /// What those lines are, verbatim.
        expected_original_lines: Vec<String>,
        /// What comes instead.
        new_lines: Vec<String>,
    },
    /// Lines go (TUL-002 5.4).
    Delete {
        /// First line that goes.
        start_line: i64,
        /// Last line that goes.
        end_line: i64,
        /// What those lines are, verbatim.
        expected_original_lines: Vec<String>,
    },
}
