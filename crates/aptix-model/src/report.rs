//! What became of a batch, as the agent tells it and the server keeps it.

pub mod fit;

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Sha256Digest;
use crate::failure::Failure;

/// What became of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// One entry for each file patch, in the batch's order; empty unless applied.
    pub files: Vec<FileReport>,
    /// Why nothing changed; empty when applied.
    pub failures: Vec<Failure>,
    /// What the author should know about the batch as a whole although it was applied.
    pub warnings: Vec<Warning>,
    /// Unified diff of everything that changed; empty when it would pass `REPORT_DIFF_BYTES`.
    pub diff: String,
    /// Whether the diff was left out for its size.
    pub diff_omitted: bool,
}

/// How a batch ended at the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every file is as described.
    Applied,
    /// Nothing changed.
    Failed,
    /// A person said no; nothing changed.
    Rejected,
}

/// What became of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// The path relative to its root, in its real case; of a renamed file, the old one.
    pub path: String,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// What happened.
    pub status: FileStatus,
    /// Where a renamed file is now, relative to its root.
    pub renamed_to: Option<String>,
    /// SHA-256 of the bytes before; absent when there was no file.
    pub sha256_before: Option<Sha256Digest>,
    /// The bytes as written; absent when there is no file any more.
    pub written: Option<Written>,
    /// What was brought into the project's form on the way.
    pub normalized: Vec<Normalization>,
    /// What the author should know although it went well.
    pub warnings: Vec<Warning>,
    /// One entry for each change, in the patch's order; empty for a whole-file edit.
    pub changes: Vec<ChangeReport>,
    /// Why the report holds nothing that depends on the file's content, if it does not.
    pub withheld: Option<Withheld>,
}

/// Why nothing of a file's content leaves the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withheld {
    /// Git, or a file `.ignore`, ignores it.
    Ignored,
    /// It holds keys, passwords or tokens.
    Secret,
    /// Policy denies it.
    Denied,
    /// It is not among the files that policy lets servers read.
    Reads,
    /// It has more than one name, and another one may be outside of what servers read.
    HardLinked,
    /// Policy shows a server nothing of a file before a person has agreed to the batch.
    Unapproved,
    /// Whether git ignores it cannot be found out.
    Unknown,
}

impl Withheld {
    /// Every member.
    pub const ALL: [Self; 7] =
        [Self::Ignored, Self::Secret, Self::Denied, Self::Reads, Self::HardLinked, Self::Unapproved, Self::Unknown];

    /// The published word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Secret => "secret",
            Self::Denied => "denied",
            Self::Reads => "reads",
            Self::HardLinked => "hard_linked",
            Self::Unapproved => "unapproved",
            Self::Unknown => "unknown",
        }
    }

    /// What it means, to follow "because".
    #[must_use]
    pub const fn because(self) -> &'static str {
        match self {
            Self::Ignored => "git or a file .ignore ignores it",
            Self::Secret => "it holds secrets",
            Self::Denied => "policy denies it",
            Self::Reads => "`reads` of the policy closes it",
            Self::HardLinked => "it has more than one name (hard links)",
            Self::Unapproved => "`excerpts` of the policy is \"after_approval\"",
            Self::Unknown => "the ignore rules above it cannot be read",
        }
    }
}

/// Bytes as they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Their SHA-256.
    pub sha256: Sha256Digest,
    /// How many there are.
    pub size_bytes: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileStatus {
    /// It was not there before.
    Created,
    /// Its bytes changed.
    Modified,
    /// It already was as described.
    Unchanged,
    /// It is gone.
    Deleted,
    /// It has another path, and perhaps other bytes.
    Renamed,
}

impl FileStatus {
    /// The published word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

/// Something that was brought into another form; always said, never silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Normalization {
    /// The stated SHA-256 was that of the canonical text: no BOM, `\n` only.
    MatchedCanonicalDigest,
    /// A byte order mark was dropped from given content.
    BomRemoved,
    /// The byte order mark of the file was kept, which given content did not have.
    BomKept,
    /// Lines of given content ended otherwise than the file's, or a created file's, and are ended like those.
    LineEndings,
    /// The file's last line got the terminator that it lacked (WS-MOD 5.1).
    FileEofNewlineAdded,
    /// The last line of given content got the terminator that it lacked (WS-MOD 5.1).
    ContentEofNewlineAdded,
}

impl Normalization {
    /// Every member.
    pub const ALL: [Self; 6] = [
        Self::MatchedCanonicalDigest,
        Self::BomRemoved,
        Self::BomKept,
        Self::LineEndings,
        Self::FileEofNewlineAdded,
        Self::ContentEofNewlineAdded,
    ];

    /// The published word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::MatchedCanonicalDigest => "matched_canonical_digest",
            Self::BomRemoved => "bom_removed",
            Self::BomKept => "bom_kept",
            Self::LineEndings => "line_endings",
            Self::FileEofNewlineAdded => "normalized_file_eof_newline_added",
            Self::ContentEofNewlineAdded => "normalized_content_eof_newline_added",
        }
    }
}

/// Something worth knowing about a batch, or a file of it, that was applied all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// `UPPER_SNAKE` word: `HARD_LINK_BROKEN`, ...
    pub code: String,
    /// What it means here.
    pub message: String,
    /// The line of the author's document that it is about, from 1.
    pub line: Option<usize>,
}

/// How a change found its place: the match certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeReport {
    /// How loosely the old text had to be compared.
    pub tier: Tier,
    /// How many places came into question at that tier.
    pub candidates: u32,
    /// First line it left, in the new text.
    pub start_line: u32,
    /// Last line it left; `start_line - 1` when it left none.
    pub end_line: u32,
}

/// How loosely old text was compared with the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// Byte by byte; for line edits, line text by line text.
    Exact,
    /// But for the line terminators.
    Eol,
    /// But for white space at the ends of lines.
    Trailing,
    /// But for one indentation that every line has more, or less, than the file's.
    Indent,
    /// But for blank lines above or below.
    BlankEdges,
}

impl Tier {
    /// Every member.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Eol, Self::Trailing, Self::Indent, Self::BlankEdges];

    /// The published word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Eol => "eol",
            Self::Trailing => "trailing",
            Self::Indent => "indent",
            Self::BlankEdges => "blank_edges",
        }
    }
}
