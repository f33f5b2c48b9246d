//! What can be wrong with a batch, in words, with its place in the catalogue of reasons.

use alloc::string::{String, ToString};

use aptix_model::digest::DigestError;
use aptix_model::failure::Failure;
use aptix_model::limits::CLIPBOARD_NAME_CHARS;
use aptix_model::lines::LineError;
use aptix_model::path::PathError;
use aptix_model::protection::Protection;
use aptix_model::reason::{Detail, Reason};

use crate::shown::counted;

/// What is wrong with a field of a batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("expected at least one {what}, found none")]
    Empty { what: &'static str },
    #[error("a batch has at most {limit} files, this has {found}")]
    Files { found: usize, limit: usize },
    #[error("a batch has at most {limit} changes, this has {found}")]
    Changes { found: usize, limit: usize },
    #[error("a label, key or description has at most {limit} bytes, this has {found}")]
    Text { found: usize, limit: usize },
    #[error("the key {key:?} was given before, to entry {} of the same list", other + 1)]
    DuplicateKey { key: String, other: usize },
    #[error(transparent)]
    Digest(DigestError),
    #[error(transparent)]
    Path(PathError),
    #[error(transparent)]
    Protected(Protection),
    #[error("entry {} of the batch names the same file", other + 1)]
    DuplicatePath { other: usize },
    #[error("the path differs only in case from {path}, the path of entry {}, and some systems take them for one", other + 1)]
    CaseTwin { other: usize, path: String },
    #[error(
        "the path differs only in Unicode normal form from {path}, the path of entry {}, and some systems take them for one",
        other + 1
    )]
    NormTwin { other: usize, path: String },
    #[error("entry {} of the batch names {path}: one of the two paths would have to be both a file and a directory", other + 1)]
    PrefixConflict { other: usize, path: String },
    #[error(transparent)]
    Line(LineError),
    #[error("the change at line {line} is listed after changes[{other}] at line {other_line}")]
    Order { line: usize, other: usize, other_line: usize },
    #[error("the change at line {line} overlaps changes[{other}], which covers lines {first} to {last}")]
    Overlap { line: usize, other: usize, first: usize, last: usize },
    #[error("changes[{other}] inserts after line {line}, which is inside the lines {line} to {last} of this change")]
    InsertInside { line: usize, other: usize, last: usize },
    #[error("the range has {}, and expectedOriginalLines has {found}", counted(*range, "line"))]
    ExpectedCount { range: usize, found: usize },
    #[error("an insert has at least one new line, found none")]
    EmptyNewLines,
    #[error("the content is empty, so that nothing would be added")]
    EmptyContent,
    #[error("a replace has at least one new line, found none")]
    UseDelete,
    #[error("one entry is one line, and this has a line feed at byte {offset}")]
    EmbeddedNewline { offset: usize },
    #[error("a new line has no carriage return, and this has one at byte {offset}")]
    EmbeddedCr { offset: usize },
    #[error("a line has at most {limit} bytes, this has {found}")]
    LongLine { found: usize, limit: usize },
    #[error("'{text}' is no regular expression: {why}")]
    Regex { text: String, why: String },
    #[error("'{text}' is not searched for: {why}")]
    RegexBudget { text: String, why: String },
    #[error("an anchor has text, found none")]
    EmptyAnchor,
    #[error("an anchor is one line, and this has a line feed")]
    AnchorLines,
    #[error("occurrences are counted from 1, found 0")]
    ZeroOccurrence,
    #[error("unknown contentFormat '{found}', expected \"verbatim\" or nothing")]
    ContentFormat { found: String },
    #[error("a local change describes no edit: the workstation alone reports it, after it was made")]
    LocalChange,
    #[error("a revert describes no edit: RevertBatch alone makes it, and the agent carries it out from its history")]
    Revert,
    #[error("the text has a NUL character, which no text file has")]
    Nul,
    #[error("the text to replace is empty, and an empty text matches everywhere")]
    EmptyFind,
    #[error("there is no new text: newText and fromClipboard are absent")]
    NoNewText,
    #[error("only a replace finds a text that a clipboard could keep")]
    NothingToKeep,
    #[error(
        "one name for toClipboard and fromClipboard copies the text and leaves it as it is, so nothing is indented"
    )]
    ReindentOfCopy,
    #[error("an overwrite replaces the whole file, and {} would be lost", counted(*others, "other change"))]
    OverwriteBeside { others: usize },
    #[error("a clipboard's name has 1 to {CLIPBOARD_NAME_CHARS} characters, all of them visible")]
    ClipboardName,
    #[error("a prefix is part of one line, and this has a line break at byte {offset}")]
    PrefixNewline { offset: usize },
    #[error("a created file has at most {limit} bytes, this would have {found}")]
    Content { found: u64, limit: u64 },
    #[error("the patch has more than {limit} tokens, in {bytes} bytes")]
    Tokens { limit: usize, bytes: usize },
}

impl Violation {
    /// The violation as it is reported to its author.
    pub(crate) fn failure(&self) -> Failure {
        let (reason, detail) = self.code();
        let mut failure = Failure::new(reason, self.to_string());
        failure.detail = detail;
        failure.hint = Some(self.hint().to_string());
        failure
    }

    const fn code(&self) -> (Reason, Option<Detail>) {
        let (reason, detail) = match self {
            Self::Empty { .. } => (Reason::InvalidRequest, Detail::Empty),
            Self::Files { .. } => (Reason::TooLarge, Detail::Files),
            Self::Changes { .. } => (Reason::TooLarge, Detail::Changes),
            Self::Text { .. } => (Reason::TooLarge, Detail::Text),
            Self::DuplicateKey { .. } => (Reason::InvalidRequest, Detail::DuplicateKey),
            Self::Digest(_) => (Reason::InvalidRequest, Detail::ShaFormat),
            Self::Path(error) => (Reason::InvalidPath, error.detail()),
            Self::Protected(protection) => (Reason::PolicyDenied, protection.detail()),
            Self::DuplicatePath { .. } => (Reason::InvalidRequest, Detail::DuplicatePath),
            Self::CaseTwin { .. } => (Reason::AmbiguousPath, Detail::CaseCollision),
            Self::NormTwin { .. } => (Reason::AmbiguousPath, Detail::NormCollision),
            Self::PrefixConflict { .. } => (Reason::InvalidRequest, Detail::PrefixConflict),
            Self::Line(error) => (Reason::LineRange, error.detail()),
            Self::Order { .. } => return (Reason::LineOrder, None),
            Self::Overlap { .. } | Self::InsertInside { .. } => return (Reason::LineOverlap, None),
            Self::ExpectedCount { .. } => (Reason::InvalidRequest, Detail::ExpectedCount),
            Self::EmptyNewLines | Self::EmptyContent => (Reason::InvalidRequest, Detail::EmptyNewLines),
            Self::UseDelete => (Reason::InvalidRequest, Detail::UseDelete),
            Self::EmbeddedNewline { .. } => (Reason::InvalidRequest, Detail::EmbeddedNewline),
            Self::EmbeddedCr { .. } => (Reason::InvalidRequest, Detail::EmbeddedCr),
            Self::LongLine { .. } => (Reason::TooLarge, Detail::Line),
            Self::Regex { .. } => (Reason::InvalidRequest, Detail::Regex),
            Self::RegexBudget { .. } => return (Reason::MatchBudgetExceeded, None),
            Self::LocalChange | Self::Revert => (Reason::InvalidRequest, Detail::UnexpectedField),
            Self::EmptyAnchor => (Reason::InvalidRequest, Detail::Empty),
            Self::AnchorLines => (Reason::InvalidRequest, Detail::EmbeddedNewline),
            Self::ZeroOccurrence => (Reason::InvalidRequest, Detail::Occurrence),
            Self::ContentFormat { .. } => (Reason::InvalidRequest, Detail::ContentFormat),
            Self::Nul => (Reason::NotText, Detail::Binary),
            Self::EmptyFind => (Reason::InvalidRequest, Detail::EmptyFind),
            Self::NoNewText => (Reason::InvalidRequest, Detail::Missing),
            Self::NothingToKeep | Self::ReindentOfCopy => (Reason::InvalidRequest, Detail::UnexpectedField),
            Self::OverwriteBeside { .. } => return (Reason::MatchOverlap, None),
            Self::ClipboardName => (Reason::InvalidRequest, Detail::ClipboardName),
            Self::PrefixNewline { .. } => (Reason::InvalidRequest, Detail::EmbeddedNewline),
            Self::Content { .. } => (Reason::TooLarge, Detail::File),
            Self::Tokens { .. } => (Reason::TooLarge, Detail::Tokens),
        };
        (reason, Some(detail))
    }

    const fn hint(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "give at least one, or leave out what has none",
            Self::Files { .. } | Self::Changes { .. } => "split the batch",
            Self::DuplicateKey { .. } => "give each entry a key of its own, or none",
            Self::Digest(_) => "state the SHA-256 that reading the file gave, or compute it from the whole text",
            Self::Path(PathError::NotLowercase) => "write the docPath in lower case; it finds the file in any case",
            Self::Path(PathError::NoRoot) => "begin the docPath with the name of the file's root and a slash",
            Self::Path(PathError::TooLong | PathError::TooDeep) => "use a shorter path",
            Self::Path(_) => "use plain names from the root down, separated by '/'",
            Self::Protected(_) => "leave this file out of the batch",
            Self::DuplicatePath { .. } => "put all changes of one file into one entry",
            Self::CaseTwin { .. } | Self::NormTwin { .. } => {
                "spell shared directories alike and give files names of their own"
            }
            Self::PrefixConflict { .. } => "give the file and the directory different names",
            Self::Line(LineError::Zero) => "lines are counted from 1; what is added at the top is added after line 0",
            Self::Line(LineError::Inverted { .. }) => "give the first line of the range first, then the last",
            Self::Line(_) => "take line numbers from the file as it was read",
            Self::Order { .. } => "list the changes of a file top to bottom, by afterLine or startLine",
            Self::Overlap { .. } | Self::InsertInside { .. } => "make one replace of the changes that meet",
            Self::ExpectedCount { .. } => "expectedOriginalLines has one entry for each line from startLine to endLine",
            Self::EmptyContent => "give the lines that are to be added; a line break alone is an empty line",
            Self::EmptyNewLines => "for an empty line give newLines one empty string",
            Self::UseDelete => "use the operation delete; for an empty line give newLines one empty string",
            Self::EmbeddedNewline { .. } => "give each line an entry of its own, without its terminator",
            Self::EmbeddedCr { .. } => "leave terminators out: new lines are ended as the file's own lines are",
            Self::Regex { .. } => "correct the expression, or choose the match contains or equals",
            Self::RegexBudget { .. } => "write a shorter expression, or choose the match contains or equals",
            Self::LocalChange => "give the edit itself, such as linePatch or writeFile",
            Self::Revert => "call RevertBatch with the id of the batch",
            Self::EmptyAnchor => "name a line that occurs in the file",
            Self::AnchorLines => "choose one line that identifies the place",
            Self::ZeroOccurrence => "count from 1, say last, or leave the occurrence out",
            Self::ContentFormat { .. } => {
                "leave it out, or write \"verbatim\" if the text is meant whatever it looks like"
            }
            Self::Nul => "leave the NUL out; only text can be written",
            Self::EmptyFind => "name the text to replace, or add text at an end of the file instead",
            Self::NoNewText => "give newText, which may be empty, or fromClipboard",
            Self::NothingToKeep => "leave toClipboard out, or replace the text that is to be kept",
            Self::ReindentOfCopy => "leave reindent out here, and give it where the clipboard's text is inserted",
            Self::OverwriteBeside { .. } => "make all changes in the text of the overwrite, or leave the overwrite out",
            Self::ClipboardName => "use a short plain word",
            Self::PrefixNewline { .. } => "give the blanks or tabs alone",
            Self::Tokens { .. } => "break it into smaller patches, and send one after the other",
            Self::Text { .. } | Self::LongLine { .. } | Self::Content { .. } => "shorten it",
        }
    }
}
