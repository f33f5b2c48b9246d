//! How large things may be. Passing a limit is a named error, never a truncation.

/// The limits that validation and planning hold a batch to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a file to be edited.
    pub file_bytes: u64,
    /// Bytes of all the files that a batch reads.
    pub batch_bytes: u64,
    /// Bytes of content for a created file.
    pub created_bytes: u64,
    /// Bytes of one line of an edited file, or of a new line.
    pub line_bytes: usize,
    /// File patches of a batch.
    pub files: usize,
    /// Changes of a batch, over all its files.
    pub changes: usize,
    /// Bytes of a label, a key or a description.
    pub text_bytes: usize,
}

impl Limits {
    /// The limits unless the configuration says otherwise.
    pub const DEFAULT: Self = Self {
        file_bytes: 256 << 20,
        batch_bytes: 1 << 30,
        created_bytes: 10 << 20,
        line_bytes: 64 << 20,
        files: 10_000,
        changes: 100_000,
        text_bytes: 64 << 10,
    };
}

/// Bytes of one document.
pub const DOCUMENT_BYTES: usize = 64 << 20;

/// Lines of one document, or items of the lists in one of JSON, and lines of each list of a message: an empty one takes two
/// bytes there, and a hundred in memory.
pub const LINES: usize = 1 << 19;

/// Tokens of the texts of one search patch, together.
pub const SEARCH_PATCH_TOKENS: usize = 60_000;

/// Characters of a clipboard's name.
pub const CLIPBOARD_NAME_CHARS: usize = 64;

/// Bytes of one clipboard.
pub const CLIPBOARD_BYTES: usize = 1 << 20;

/// Clipboards of one session.
pub const CLIPBOARDS: usize = 256;

/// Content of more bytes than this travels as an uploaded blob named by its digest.
pub const INLINE_BYTES: usize = 1 << 20;

/// Bytes of all contents that travel in a batch itself.
pub const INLINE_TOTAL_BYTES: usize = 2 << 20;

/// Bytes of one chunk of a blob on the wire and in the store.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of one gRPC message, both ways.
pub const MESSAGE_BYTES: usize = 4 << 20;

/// Bytes of a corrected document that comes with a failure; a longer one is left out.
pub const NEXT_ACTION_BYTES: usize = 256 << 10;

/// Bytes of the diff a report carries; a longer one is left out and said to be.
pub const REPORT_DIFF_BYTES: usize = 1 << 20;

/// Bytes of the places that a plan keeps for all files together; a plan with more keeps none.
pub const PLACES_BYTES: usize = 256 << 10;

/// Bytes of the evidence that a plan keeps for all files together; a plan with more keeps none.
pub const EVIDENCE_BYTES: usize = 256 << 10;
