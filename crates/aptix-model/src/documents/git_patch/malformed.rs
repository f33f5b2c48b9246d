//! What a diff is refused for, in words, with its place in the catalogue of reasons.

use crate::batch::Hunk;
use crate::failure::Failure;
use crate::hunk_counts::UNTERMINATED_HINT;
use crate::reason::{Detail, Reason};

/// A place in a diff.
pub(super) struct Place {
    /// The number of the line, from 1.
    pub(super) line: usize,
    /// How many files are above.
    pub(super) file: usize,
}

/// Why a text is no diff that can be carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum GitPatchError {
    #[error("expected the lines of a diff, found {found}")]
    Garbage { found: String },
    #[error("expected a diff, found no file in it")]
    NoFile,
    #[error("{0}")]
    Names(&'static str),
    #[error("the header contradicts itself: {0}")]
    Contradiction(&'static str),
    #[error("a file name in quotes does not end, or has an escape that git does not write")]
    Quote,
    #[error("a file name is not UTF-8")]
    NameEncoding,
    #[error("a header line has a NUL character")]
    Nul,
    #[error("a mode is written with six octal digits, and is 100644 or 100755; found {found}")]
    Mode { found: String },
    #[error("a file has the mode 100644 or 100755, found {found}")]
    ModeBits { found: String },
    #[error("the file is a symbolic link")]
    Symlink,
    #[error("the file is a submodule")]
    Submodule,
    #[error("the diff of a binary file cannot be carried out")]
    Binary,
    #[error("expected a unified diff, found {0}")]
    Format(&'static str),
    #[error("expected a hunk header like '@@ -1,2 +1,3 @@', found {found}")]
    HunkHeader { found: String },
    #[error(
        "the hunk has more added lines than its header counts, and text follows: which of the lines belong to it is not sure"
    )]
    Counts,
    #[error("a hunk has fewer lines than its header counts")]
    Short {
        /// The hunk with the lines that it has.
        hunk: Box<Hunk>,
        /// The line of its header.
        start: usize,
    },
    #[error("the diff ends within the header of a hunk or of a file, or within a marker")]
    CutHeader,
    #[error("the diff ends within an added line or without the line feed below it, so that the line may lack its end")]
    CutLine,
    #[error("the diff names a file, and has no hunk for it")]
    CutFile,
    #[error("nothing shows where a hunk ends whose header has no numbers")]
    Unbounded,
    #[error("a hunk has no lines")]
    EmptyHunk,
    #[error("the diff ends below the mode of a new file, with neither its lines nor the id of an empty file")]
    CutNewFile,
    #[error("the diff was cut off: {0}")]
    Truncated(&'static str),
    #[error("the file has neither hunks nor a mode, a rename or a copy: nothing would change")]
    NoHunks,
    #[error("'\\ No newline at end of file' is below no line that could be the last one")]
    Marker,
    #[error(
        "every line of the diff ends with \\r\\n, so that '\\ No newline at end of file' may take away one of them or both"
    )]
    MarkerEnds,
    #[error("the file is renamed to, or copied from, itself")]
    NoOp,
    #[error("{0}")]
    Series(&'static str),
    #[error("a batch has at most {limit} files")]
    Files { limit: usize },
    #[error("a batch has at most {limit} changes, and each hunk is one")]
    Hunks { limit: usize },
}

impl GitPatchError {
    /// A hunk that was cut off.
    pub(super) fn short(hunk: Hunk, start: usize) -> Self {
        Self::Short { hunk: Box::new(hunk), start }
    }

    /// The failure that the author of the diff gets.
    pub(super) fn failure(&self, place: &Place) -> Failure {
        if let Self::Short { hunk, start } = self {
            let mut failure = hunk.truncated();
            failure.message = format!("line {}: the hunk at line {start} ends here; {}", place.line, failure.message);
            failure.file_index = Some(place.file);
            return failure;
        }
        let (reason, detail, hint) = self.code();
        let failure = Failure::new(reason, format!("line {}: {self}", place.line)).hint(hint);
        Failure { detail, file_index: Some(place.file), ..failure }
    }

    /// Its place in the catalogue, and what its author can do next.
    const fn code(&self) -> (Reason, Option<Detail>, &'static str) {
        let (reason, detail, hint) = match self {
            Self::Garbage { .. } | Self::NoFile => (Reason::PatchMalformed, Detail::Garbage, BEGINNING),
            Self::Names(_) => (Reason::PatchMalformed, Detail::Names, NAMES),
            Self::Contradiction(_) => (Reason::PatchMalformed, Detail::Names, HEADER),
            Self::Quote => (Reason::PatchMalformed, Detail::Quote, QUOTES),
            Self::NameEncoding => (Reason::InvalidPath, Detail::Unicode, "use names in UTF-8"),
            Self::Nul => (Reason::PatchMalformed, Detail::Nul, "use names in UTF-8"),
            Self::Mode { .. } => (Reason::PatchMalformed, Detail::Mode, MODES),
            Self::ModeBits { .. } => (Reason::PatchUnsupported, Detail::Mode, MODES),
            Self::Symlink => (Reason::PatchUnsupported, Detail::Symlink, "leave this file out of the patch"),
            Self::Submodule => (Reason::PatchUnsupported, Detail::Submodule, "leave this file out of the patch"),
            Self::Binary => (Reason::PatchUnsupported, Detail::Binary, "leave this file out of the patch"),
            Self::Format(_) => (Reason::PatchUnsupported, Detail::Format, FORMAT),
            Self::HunkHeader { .. } => (Reason::PatchMalformed, Detail::HunkHeader, NUMBERS),
            Self::Unbounded => (Reason::PatchMalformed, Detail::HunkHeader, UNBOUNDED),
            Self::Counts => (Reason::PatchMalformed, Detail::Counts, COUNTS),
            Self::CutLine => return (Reason::PatchTruncated, None, UNTERMINATED_HINT),
            Self::CutNewFile => return (Reason::PatchTruncated, None, EMPTY_FILE),
            Self::Short { .. } | Self::CutHeader | Self::CutFile | Self::Truncated(_) => {
                return (Reason::PatchTruncated, None, "the diff was cut off; send it whole");
            }
            Self::EmptyHunk => (Reason::PatchMalformed, Detail::Empty, "give each hunk its lines, or leave it out"),
            Self::NoHunks => (Reason::PatchMalformed, Detail::Empty, "leave the file out"),
            Self::Marker => (Reason::PatchMalformed, Detail::EndOfFile, MARKER),
            Self::MarkerEnds => (Reason::PatchMalformed, Detail::EndOfFile, "send the diff with line feeds alone"),
            Self::NoOp => (Reason::InvalidRequest, Detail::NoOp, "leave the file out"),
            Self::Series(_) => (Reason::InvalidRequest, Detail::DuplicatePath, SERIES),
            Self::Files { .. } => (Reason::TooLarge, Detail::Files, SMALLER),
            Self::Hunks { .. } => (Reason::TooLarge, Detail::Changes, SMALLER),
        };
        (reason, Some(detail), hint)
    }
}

const BEGINNING: &str =
    "begin each file at the start of a line, with 'diff --git a/path b/path' or with '--- a/path' and '+++ b/path'";
const NAMES: &str = "name each file as git does: 'diff --git a/path b/path', '--- a/path', '+++ b/path'";
const HEADER: &str = "write the header as git does, with one thing that happens to the file";
const QUOTES: &str = "leave the quotes out, or escape as git does: \\t, \\n, \\\", \\\\ and three octal digits";
const MODES: &str = "use the mode 100644, or 100755 for a file that can be run";
const FORMAT: &str = "make a unified diff, as 'git diff' and 'diff -u' do";
const NUMBERS: &str = "give each hunk the numbers of its lines: '@@ -start,count +start,count @@'";
const UNBOUNDED: &str =
    "give the hunk its numbers, '@@ -start,count +start,count @@', or put the diff between ```diff and ```";
const COUNTS: &str = "count the lines of each hunk: context and removed lines, and context and added lines";
const EMPTY_FILE: &str =
    "send the diff whole; to make an empty file, put 'index 0000000..e69de29' below its mode, or use a file bundle";
const MARKER: &str = "put it below the last line of a file, once for each side that lacks a final newline";
const SERIES: &str =
    "send one diff that says what becomes of each file as a whole, or mails in their order, as 'git format-patch' does";
const SMALLER: &str = "send several smaller patches, one after the other";

/// The first characters of a line, as a message quotes them.
pub(super) fn quote(line: &[u8]) -> String {
    let head: Vec<u8> = line.iter().copied().take(400).collect();
    let shown: String = String::from_utf8_lossy(&head).chars().take(80).collect();
    format!("{shown:?}")
}
