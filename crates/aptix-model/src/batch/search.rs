//! Edits that say which text they change: all texts found in the file as it is, or one after the other.

use alloc::string::String;
use alloc::vec::Vec;

/// Changes that are all found in the file as it is, and made at once (REQ-PATCH-001, REQ-PATCH-002).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SearchPatch {
    /// The changes, in any order; several at one end of the file keep theirs.
    pub changes: Vec<SearchChange>,
}

/// One change of a search patch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SearchChange {
    /// What is done.
    pub operation: SearchOperation,
    /// The text that comes; of no effect beside `from_clipboard`.
    pub new_text: Option<String>,
    /// The clipboard that keeps the text that was found (REQ-PATCH-003).
    pub to_clipboard: Option<String>,
    /// The clipboard whose text comes (REQ-PATCH-003).
    pub from_clipboard: Option<String>,
    /// How the lines that come are indented anew (REQ-PATCH-004).
    pub reindent: Option<Reindent>,
}

/// Where the text of a search change goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SearchOperation {
    /// In the place of a text that occurs in the file exactly once.
    Replace {
        /// That text.
        old_text: String,
    },
    /// Below everything.
    AppendEof,
    /// Above everything.
    PrependBof,
    /// In the place of everything.
    Overwrite,
}

/// Takes one prefix from every line that is not empty, and puts another before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Reindent {
    /// What every such line begins with, and loses.
    pub strip: String,
    /// What every such line gets.
    pub add: String,
}

/// Commands of the common text-editor tool that are all found in the file as it is, and made at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EditorCommands {
    /// The commands, in any order.
    pub commands: Vec<EditorCommand>,
}

/// One command of the text-editor tool.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EditorCommand {
    /// Replaces a text that occurs in the file exactly once.
    StrReplace {
        /// That text.
        old_text: String,
        /// The text that takes its place.
        new_text: String,
    },
    /// Inserts text below a line of the file, as whole lines.
    Insert {
        /// The line above, 0 for the top.
        after_line: i64,
        /// The text.
        text: String,
    },
}

/// Texts replaced one after the other (FILE-SPEC 2.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replacements {
    /// The replacements, in the order in which they are made.
    pub steps: Vec<Replacement>,
}

/// One text that takes the place of another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replacement {
    /// The text that goes.
    pub find: String,
    /// The text that comes.
    pub replace: String,
    /// Where.
    pub scope: Scope,
}

/// Which occurrences a replacement is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// The first one.
    First,
    /// Every one.
    All,
    /// The only place where `find` occurs as whole lines; an empty `find` is the end of the file, or a file that is
    /// not there.
    Block {
        /// Where the author saw the first line.
        start_line: Option<i64>,
    },
}
