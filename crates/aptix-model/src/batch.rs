//! A batch as its author wrote it: every number and path still unchecked, every key kept.
//!
//! The engine's `validate` turns it into a checked batch and reports everything wrong with it at once.

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Sha256Digest;
use crate::path_readings::PathReadings;
use crate::quote::Quote;

/// One described change of a workspace: all of it happens, or nothing (TUL-002 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// What the batch is for, for people.
    pub label: Option<String>,
    /// The author's name for the batch; looks nothing up (TUL-002 7.2).
    pub key: Option<String>,
    /// One entry for each file, in the author's order.
    pub files: Vec<FilePatch>,
    /// Blocks of the author's answer that may be named for a file and are no edits.
    pub quotes: Vec<Quote>,
}

/// What happens to one file (TUL-002 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePatch {
    /// Which file.
    pub target: Target,
    /// The author's name for this entry; looks nothing up.
    pub key: Option<String>,
    /// What the entry is for, for people.
    pub label: Option<String>,
    /// What happens.
    pub edit: FileEdit,
}

/// Which file, in the author's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lower-case key that begins with a root's name.
    DocPath(String),
    /// A path in the workspace, in its real case.
    Path(String),
    /// A file of a diff whose names can be read in several ways. The files that exist decide, before anything is planned.
    Readings(PathReadings),
}

impl Target {
    /// The words; of several readings, the first.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::DocPath(text) | Self::Path(text) => text,
            Self::Readings(readings) => readings.all().next().unwrap_or_default(),
        }
    }
}

/// What happens to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileEdit {
    /// Whole lines come and go.
    LinePatch(LinePatch),
    /// The whole content is given, and brought into the form in which files are created.
    CreateFile(CreateFile),
    /// The whole content is given, and written as it is.
    WriteFile(WriteFile),
    /// The file goes.
    DeleteFile,
    /// Texts are searched for in the file as it is, and replaced at once.
    SearchPatch(SearchPatch),
    /// Texts are searched for and replaced one after the other, each in the result of the one before.
    Replacements(Replacements),
    /// One file of a unified diff.
    GitPatch(GitPatch),
    /// One file that a unified diff has in several parts, such as those of a series of mails: each part changes what the one
    /// before leaves.
    GitSeries(Vec<GitPatch>),
    /// Lines come and go where the lines around them stand, without line numbers.
    ContextPatch(ContextPatch),
    /// Lines come and go at a line number or beside a line that is described.
    AnchorEdit(AnchorEdit),
}

impl FileEdit {
    /// How many changes it lists, each with an id and a report of its own; 0 for a whole-file edit.
    #[must_use]
    pub fn change_count(&self) -> usize {
        match self {
            Self::LinePatch(patch) => patch.changes.len(),
            Self::SearchPatch(patch) => patch.changes.len(),
            Self::Replacements(replacements) => replacements.steps.len(),
            Self::GitPatch(patch) => patch.hunks.len(),
            Self::GitSeries(parts) => parts.iter().map(|part| part.hunks.len()).sum(),
            Self::ContextPatch(patch) => patch.chunks.len(),
            Self::AnchorEdit(_) => 1,
            Self::CreateFile(_) | Self::WriteFile(_) | Self::DeleteFile => 0,
        }
    }

    /// Whether the file goes, or is what it was under another name or mode: then none of its bytes is edited.
    #[must_use]
    pub const fn edits_no_bytes(&self) -> bool {
        match self {
            Self::DeleteFile => true,
            Self::GitPatch(patch) => match patch.kind {
                GitKind::Delete => true,
                GitKind::Modify | GitKind::Rename { .. } => patch.hunks.is_empty(),
                GitKind::Create | GitKind::Copy { .. } => false,
            },
            Self::GitSeries(_) => false,
            Self::ContextPatch(patch) => patch.chunks.is_empty(),
            Self::LinePatch(_)
            | Self::CreateFile(_)
            | Self::WriteFile(_)
            | Self::SearchPatch(_)
            | Self::Replacements(_)
            | Self::AnchorEdit(_) => false,
        }
    }

    /// Drops every change but the one at this position.
    pub fn keep_change(&mut self, index: usize) {
        fn keep<T>(changes: &mut Vec<T>, index: usize) {
            changes.truncate(index.saturating_add(1));
            changes.drain(..index.min(changes.len()));
        }
        match self {
            Self::LinePatch(patch) => keep(&mut patch.changes, index),
            Self::SearchPatch(patch) => keep(&mut patch.changes, index),
            Self::Replacements(replacements) => keep(&mut replacements.steps, index),
            Self::GitPatch(patch) => keep(&mut patch.hunks, index),
            Self::GitSeries(parts) => {
                let mut above = 0;
                for part in parts {
                    let count = part.hunks.len();
                    keep(&mut part.hunks, index.checked_sub(above).unwrap_or(usize::MAX));
                    above += count;
                }
            }
            Self::ContextPatch(patch) => keep(&mut patch.chunks, index),
            Self::CreateFile(_) | Self::WriteFile(_) | Self::DeleteFile | Self::AnchorEdit(_) => {}
        }
    }

    /// The path that the file is renamed to, in the kind of path of its target.
    #[must_use]
    pub fn moved_to(&self) -> Option<&str> {
        match self {
            Self::GitPatch(patch) => patch.moved_to(),
            Self::GitSeries(parts) => parts.iter().rev().find_map(GitPatch::moved_to),
            Self::ContextPatch(patch) => patch.move_to.as_deref(),
            _ => None,
        }
    }

    /// The path of the file that the target is made a copy of, in the kind of path of its target.
    #[must_use]
    pub fn copied_from(&self) -> Option<&str> {
        match self {
            Self::GitPatch(GitPatch { kind: GitKind::Copy { from }, .. }) => Some(from),
            Self::GitSeries(parts) => match parts.first() {
                Some(GitPatch { kind: GitKind::Copy { from }, .. }) => Some(from),
                _ => None,
            },
            _ => None,
        }
    }

    /// The content that is given whole.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::CreateFile(create) => Some(&create.content),
            Self::WriteFile(write) => Some(&write.content),
            _ => None,
        }
    }

    /// The content that is given whole, to put text in the place of a blob or the other way round.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::CreateFile(create) => Some(&mut create.content),
            Self::WriteFile(write) => Some(&mut write.content),
            _ => None,
        }
    }
}

/// Whole-line changes to one version of a file (TUL-002 5.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinePatch {
    /// SHA-256, in hex, of the version the author saw.
    pub original_sha256: String,
    /// The changes, top to bottom.
    pub changes: Vec<Change>,
}

/// One change of a line patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The author's name for it; looks nothing up.
    pub key: Option<String>,
    /// Why it is made; without effect on what happens.
    pub description: Option<String>,
    /// What is done.
    pub operation: Operation,
}

/// What a change does. Line numbers are those of the version the author saw.
#[derive(Clone, PartialEq, Eq, Debug)]
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

/// A whole file's content (TUL-004 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateFile {
    /// The content.
    pub content: Content,
    /// Whether a file that is already there is replaced.
    pub overwrite: bool,
    /// What the author declares the content to be: nothing, or [`VERBATIM`].
    pub content_format: Option<String>,
}

/// A whole file's content, written as it is (FILE-SPEC 1.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteFile {
    /// The content.
    pub content: Content,
    /// What must be there before.
    pub presence: Presence,
    /// What the author declares the content to be: nothing, or [`VERBATIM`].
    pub content_format: Option<String>,
}

/// The content format of text that is meant as it is, whatever it looks like.
pub const VERBATIM: &str = "verbatim";

/// Whether a file must be there before it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It must not: the file is created.
    Absent,
    /// It must: the file is replaced.
    Present,
    /// Either way.
    Either,
}

/// Changes that are all found in the file as it is, and made at once (REQ-PATCH-001, REQ-PATCH-002).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchPatch {
    /// The changes, in any order; several at one end of the file keep theirs.
    pub changes: Vec<SearchChange>,
}

/// One change of a search patch.
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SearchOperation {
    /// In the place of a text that stands in the file exactly once.
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
    /// Below a line of the file.
    InsertAfter {
        /// The line above, 0 for the top.
        line: i64,
    },
}

/// Takes one prefix from every line that is not empty, and puts another before it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reindent {
    /// What every such line begins with, and loses.
    pub strip: String,
    /// What every such line gets.
    pub add: String,
}

/// Texts replaced one after the other (FILE-SPEC 2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacements {
    /// The replacements, in the order in which they are made.
    pub steps: Vec<Replacement>,
}

/// One text that takes the place of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    /// The text that goes.
    pub find: String,
    /// The text that comes.
    pub replace: String,
    /// Where.
    pub scope: Scope,
}

/// Which occurrences a replacement is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The first one.
    First,
    /// Every one.
    All,
    /// The only place where `find` stands as whole lines; an empty `find` is the end of the file, or a file that is
    /// not there.
    Block {
        /// Where the author saw the first line.
        start_line: Option<i64>,
    },
}

/// What a diff says of one file (FILE-SPEC 3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitPatch {
    /// What happens to the file as a whole.
    pub kind: GitKind,
    /// Whether the result can be executed; unchanged when absent.
    pub executable: Option<bool>,
    /// The object id of the blob that the diff was made from, in full or abbreviated to at least 7 digits.
    pub base_id: Option<String>,
    /// The object id of the blob that the diff makes, in full or abbreviated to at least 7 digits.
    pub result_id: Option<String>,
    /// Whether the file names came without the prefixes `a/` and `b/`. Where the target has several readings: whether both
    /// sides have the same name, as git writes it only without prefixes.
    pub is_unprefixed: bool,
    /// The hunks, top to bottom.
    pub hunks: Vec<Hunk>,
}

impl GitPatch {
    fn moved_to(&self) -> Option<&str> {
        match &self.kind {
            GitKind::Rename { to } => Some(to),
            _ => None,
        }
    }
}

/// What a diff does to a file as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GitKind {
    /// It stays where it is.
    Modify,
    /// It comes.
    Create,
    /// It goes.
    Delete,
    /// It gets another path.
    Rename {
        /// The path.
        to: String,
    },
    /// It comes as a copy of another file.
    Copy {
        /// The path of that file.
        from: String,
    },
}

/// Lines that come and go at one place of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hunk {
    /// First line in the old file, from the header.
    pub old_start: i64,
    /// Lines in the old file, from the header.
    pub old_count: i64,
    /// First line in the new file, from the header.
    pub new_start: i64,
    /// Lines in the new file, from the header.
    pub new_count: i64,
    /// Whether the header has no numbers; the four numbers are then 0.
    pub is_unnumbered: bool,
    /// Its lines, each with its own terminator, if it has one.
    pub lines: Vec<HunkLine>,
    /// The lines below them that may belong to it; the file decides.
    pub surplus: Vec<HunkLine>,
}

/// One line of a hunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HunkLine {
    /// Whether it stays, goes or comes.
    pub kind: LineKind,
    /// Its bytes, terminator included.
    pub bytes: Vec<u8>,
}

/// Whether a line stays, goes or comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineKind {
    /// It is there before and after.
    Context,
    /// It is there before.
    Removed,
    /// It is there after.
    Added,
}

/// Changes placed by the lines around them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContextPatch {
    /// The path that the file is renamed to.
    pub move_to: Option<String>,
    /// The chunks, top to bottom.
    pub chunks: Vec<Chunk>,
}

/// Lines that come and go at one place, which they themselves describe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Lines that stand above the place, each below the one before.
    pub anchors: Vec<String>,
    /// Its lines, without terminators.
    pub lines: Vec<ChunkLine>,
    /// Whether the place is the end of the file.
    pub is_at_end: bool,
}

/// One line of a chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChunkLine {
    /// Whether it stays, goes or comes.
    pub kind: LineKind,
    /// Its text.
    pub text: String,
}

/// One edit that is prepared, looked at, and then applied (WS-MOD 2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnchorEdit {
    /// Where lines come and go.
    pub place: AnchorPlace,
    /// The lines that come.
    pub content: String,
}

/// Where the lines of an anchor edit come and go.
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// What the line has or is.
    pub text: String,
    /// How the two are compared.
    pub matching: AnchorMatch,
    /// Which of several lines; there may be only one if absent.
    pub occurrence: Option<Occurrence>,
}

/// How an anchor is compared with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence {
    /// The one with this number, from 1.
    Number(u32),
    /// The last one.
    Last,
}

/// Text, here or stored elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The text itself.
    Text(String),
    /// An uploaded blob.
    Blob(BlobRef),
}

/// Names bytes by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlobRef {
    /// SHA-256 of the bytes.
    pub sha256: Sha256Digest,
    /// How many bytes.
    pub size_bytes: u64,
}

/// Whose turn a batch came from; carried into every log line about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The author's session.
    pub session_id: Option<String>,
    /// The conversation in it.
    pub conversation_id: Option<String>,
    /// The turn in the conversation.
    pub turn_id: Option<String>,
}
