//! Edits that show the lines around a change: the files of a unified diff, and chunks without line numbers.

use alloc::string::String;
use alloc::vec::Vec;

/// What a diff says of one file (FILE-SPEC 3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
    pub(super) fn moved_to(&self) -> Option<&str> {
        match &self.kind {
            GitKind::Rename { to } => Some(to),
            _ => None,
        }
    }
}

/// What a diff does to a file as a whole.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HunkLine {
    /// Whether it stays, goes or comes.
    pub kind: LineKind,
    /// Its bytes, terminator included.
    pub bytes: Vec<u8>,
}

/// Whether a line stays, goes or comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LineKind {
    /// It is there before and after.
    Context,
    /// It is there before.
    Removed,
    /// It is there after.
    Added,
}

/// Changes placed by the lines around them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ContextPatch {
    /// The path that the file is renamed to.
    pub move_to: Option<String>,
    /// The chunks, top to bottom.
    pub chunks: Vec<Chunk>,
}

/// Lines that come and go at one place, which they themselves describe.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Chunk {
    /// Lines that are above the place, each below the one before.
    pub anchors: Vec<String>,
    /// Its lines, without terminators.
    pub lines: Vec<ChunkLine>,
    /// Whether the place is the end of the file.
    pub is_at_end: bool,
}

/// One line of a chunk.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChunkLine {
    /// Whether it stays, goes or comes.
    pub kind: LineKind,
    /// Its text.
    pub text: String,
}
