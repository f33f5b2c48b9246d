//! An edit at a line number, or beside lines that are described.

use alloc::string::String;

/// One edit that is prepared, looked at, and then applied (WS-MOD 2.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AnchorEdit {
    /// Where lines come and go.
    pub place: AnchorPlace,
    /// The lines that come.
    pub content: String,
}

/// Where the lines of an anchor edit come and go.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AnchorPlace {
    /// In the place of lines, by number.
    Range {
        /// The first line that goes.
        start_line: i64,
        /// The last one; that of the file if absent.
        end_line: Option<i64>,
    },
    /// Below the last line.
    Append,
    /// Below a line.
    After(Anchor),
    /// Above a line.
    Before(Anchor),
    /// In the place of the lines between two lines.
    Between {
        /// The line above them.
        start: Anchor,
        /// The next line below it that fits: the line below them.
        end: Anchor,
        /// Whether the two lines go as well.
        takes_anchors: bool,
    },
    /// In the place of everything.
    Whole {
        /// What the author says the content is; undeclared if absent.
        content_format: Option<String>,
    },
}

impl AnchorPlace {
    /// The word for it: plans of one kind can take each other's place.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Range { .. } => "range_edit",
            Self::Append => "append",
            Self::After(_) => "insert_after",
            Self::Before(_) => "insert_before",
            Self::Between { .. } => "block_replace",
            Self::Whole { .. } => "overwrite",
        }
    }
}

/// Describes a line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Anchor {
    /// What the line has or is.
    pub text: String,
    /// How the two are compared.
    pub matching: AnchorMatch,
    /// Which of several lines; there may be only one if absent.
    pub occurrence: Option<Occurrence>,
}

/// How an anchor is compared with a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AnchorMatch {
    /// The line has the text in it.
    #[default]
    Contains,
    /// The line is the text.
    Equals,
    /// The text is a regular expression that matches in the line.
    Regex,
}

/// One of several lines that an anchor describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Occurrence {
    /// The one with this number, from 1.
    Number(u32),
    /// The last one.
    Last,
}
