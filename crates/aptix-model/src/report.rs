//! What became of a batch, as the agent reports it and the server stores it.

pub mod diff_part;
pub mod fit;

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Sha256Digest;
use crate::failure::Failure;
use crate::path::fold;
use crate::reason::Detail;
use crate::words::words;

/// What became of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// One entry for each file patch, in the batch's order; empty unless all or some were applied.
    pub files: Vec<FileReport>,
    /// Why nothing changed, or why some files did not; empty when all were applied.
    pub failures: Vec<Failure>,
    /// What the author should know about the batch as a whole although it was applied.
    pub warnings: Vec<Warning>,
    /// Unified diff of everything that changed; empty when it would pass `REPORT_DIFF_BYTES`.
    pub diff: String,
    /// Whether the diff was left out for its size.
    pub diff_omitted: bool,
}

impl Report {
    /// Removes what it quotes of files: the diff, the reports of single changes, excerpts and next actions.
    pub fn remove_content(&mut self) {
        self.diff_omitted |= !self.diff.is_empty();
        self.diff.clear();
        self.files.iter_mut().for_each(|file| file.changes.clear());
        for failure in &mut self.failures {
            failure.nearest.clear();
            failure.next_action = None;
        }
    }

    /// The report of a batch that was applied, so far without a diff.
    #[must_use]
    pub const fn applied(files: Vec<FileReport>) -> Self {
        Self {
            outcome: Outcome::Applied,
            files,
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: String::new(),
            diff_omitted: false,
        }
    }
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
    /// Some files are as described, others did not change. Only of a batch that is applied [file by
    /// file](crate::batch::Atomicity::PerFile).
    Partial,
}

impl Outcome {
    /// Whether any file is as described.
    #[must_use]
    pub const fn has_applied(self) -> bool {
        matches!(self, Self::Applied | Self::Partial)
    }
}

/// What became of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// The path in its real case, with the root's name in front where the workspace has several; of a renamed file, the old
    /// one.
    pub path: String,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// What happened.
    pub status: FileStatus,
    /// Where a renamed file is now, written like `path`.
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

impl FileReport {
    /// What became of a file of which nothing else is known. The paths are those of the fields.
    #[must_use]
    pub const fn new(path: String, doc_path: String, status: FileStatus) -> Self {
        Self {
            path,
            doc_path,
            status,
            renamed_to: None,
            sha256_before: None,
            written: None,
            normalized: Vec::new(),
            warnings: Vec::new(),
            changes: Vec::new(),
            withheld: None,
        }
    }

    /// `path` and `renamed_to` without the root's name. Whether they have it is determined by the key, which always does;
    /// `renamed_to` is `None` as well where one of the two has it and the other has not.
    #[must_use]
    pub fn paths_in_root(&self) -> (&str, Option<&str>) {
        let root = self.doc_path.split('/').next().unwrap_or_default();
        let renamed_to = self.renamed_to.as_deref();
        match below(root, &self.path).filter(|_| fold(&self.path) == self.doc_path) {
            Some(path) => (path, renamed_to.and_then(|path| below(root, path))),
            None => (&self.path, renamed_to),
        }
    }
}

/// The path in a root of a path that begins with that root's name.
fn below<'p>(root: &str, path: &'p str) -> Option<&'p str> {
    path.strip_prefix(root)?.strip_prefix('/')
}

words! {
    /// Why nothing of a file's content leaves the machine.
    Withheld, word, from_word {
        /// Git, or a file `.ignore`, ignores it.
        Ignored = "ignored",
        /// It holds keys, passwords or tokens.
        Secret = "secret",
        /// Policy denies it.
        Denied = "denied",
        /// It is not among the files that policy lets servers read.
        Reads = "reads",
        /// It has more than one name, and another one may be outside of what servers read.
        HardLinked = "hard_linked",
        /// Policy shows a server nothing of a file before a person has agreed to the batch.
        Unapproved = "unapproved",
        /// Whether git ignores it cannot be found out.
        Unknown = "unknown",
    }
}

impl Withheld {
    /// The catalogue's word for it.
    #[must_use]
    pub const fn detail(self) -> Detail {
        match self {
            Self::Ignored => Detail::Ignored,
            Self::Secret => Detail::Secret,
            Self::Denied => Detail::Denied,
            Self::Reads => Detail::Reads,
            Self::HardLinked => Detail::HardLinked,
            Self::Unapproved => Detail::Unapproved,
            Self::Unknown => Detail::Unknown,
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

words! {
    /// What happened to a file.
    FileStatus, word, from_word {
        /// It was not there before.
        Created = "created",
        /// Its bytes changed.
        Modified = "modified",
        /// It already was as described.
        Unchanged = "unchanged",
        /// It is gone.
        Deleted = "deleted",
        /// It has another path, and perhaps other bytes.
        Renamed = "renamed",
        /// It was refused and did not change, unlike other files of its batch; a failure names it.
        Failed = "failed",
        /// It did not change because another file of its batch was refused.
        Skipped = "skipped",
    }
}

impl FileStatus {
    /// Whether the file is as its batch describes it.
    #[must_use]
    pub const fn is_applied(self) -> bool {
        !matches!(self, Self::Failed | Self::Skipped)
    }
}

words! {
    /// Something that was brought into another form; always said, never silent.
    Normalization, word, from_word {
        /// The stated SHA-256 was that of the canonical text: no BOM, `\n` only.
        MatchedCanonicalDigest = "matched_canonical_digest",
        /// A byte order mark was dropped from given content.
        BomRemoved = "bom_removed",
        /// The byte order mark of the file was kept, which given content did not have.
        BomKept = "bom_kept",
        /// Lines of given content ended otherwise than the file's, or a created file's, and are ended like those.
        LineEndings = "line_endings",
        /// The file's last line got the terminator that it lacked (WS-MOD 5.1).
        FileEofNewlineAdded = "normalized_file_eof_newline_added",
        /// The last line of given content got the terminator that it lacked (WS-MOD 5.1).
        ContentEofNewlineAdded = "normalized_content_eof_newline_added",
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

words! {
    /// How loosely old text was compared with the file.
    Tier, word, from_word {
        /// Byte by byte; for line edits, line text by line text.
        Exact = "exact",
        /// But for the line terminators.
        Eol = "eol",
        /// But for white space at the ends of lines.
        Trailing = "trailing",
        /// But for one indentation that every line has more, or less, than the file's.
        Indent = "indent",
        /// But for blank lines above or below.
        BlankEdges = "blank_edges",
    }
}
