//! Files as they are on disk at one moment: what is asked about them, and what is answered.

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Sha256Digest;
use crate::failure::Excerpt;
use crate::lines::LineNumber;
use crate::path::{DocPath, WorkspacePath};

/// Most files of one read.
pub const READ_FILES: usize = 100;
/// Most files that are described in one answer.
pub const STAT_FILES: usize = 1_000;
/// Most patterns of files of one search.
pub const GLOBS: usize = 100;
/// Most paths of what a list or a search left out.
pub const SKIPPED_PATHS: usize = 8;

/// Which file is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileSelector {
    /// The file of this lower-case key.
    DocPath(DocPath),
    /// The file at this path, which begins with its root's name where the workspace has several.
    Path(WorkspacePath),
}

impl FileSelector {
    /// The key or the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::DocPath(key) => key.as_str(),
            Self::Path(path) => path.as_str(),
        }
    }
}

/// A file, or a part of it, that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePart {
    /// Which file.
    pub file: FileSelector,
    /// Which part.
    pub portion: Portion,
}

/// A part of a file. What lies behind the end of the file is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Portion {
    /// All of it.
    Whole,
    /// From the first to the last of these lines; to the end of the file if the last is absent.
    Lines(LineNumber, Option<LineNumber>),
    /// Bytes from an offset on, at most so many; 0 for all that an answer holds.
    Bytes {
        /// The first byte, from 0.
        offset: u64,
        /// How many.
        length: u64,
    },
}

/// What a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Its path, with its root's name in front where the workspace has several.
    pub path: String,
    /// Its lower-case key.
    pub doc_path: String,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// Whether its owner may run it.
    pub is_executable: bool,
    /// Whether this is the text of an editor's unsaved buffer instead of the file on disk.
    pub is_unsaved: bool,
    /// What its bytes are; absent in lists, which read no file.
    pub text: Option<TextFacts>,
}

/// What a file's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextFacts {
    /// Their SHA-256.
    pub sha256: Sha256Digest,
    /// How many lines they are; one without terminator at the end counts.
    pub line_count: u64,
    /// How the lines end.
    pub terminators: Terminators,
    /// How the text is encoded.
    pub encoding: Encoding,
}

/// How the lines of a file end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Terminators {
    /// There is no terminator.
    None,
    /// All with a line feed alone.
    Lf,
    /// All with a carriage return and a line feed.
    Crlf,
    /// Some one way, some the other.
    Mixed,
}

/// How a text is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 behind a byte order mark.
    Utf8Marked,
    /// Text with bytes that are no UTF-8.
    Other,
    /// It begins with a byte order mark of UTF-16.
    Utf16,
    /// It has a NUL byte.
    Binary,
}

/// A file and what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileContent {
    /// The file.
    pub info: FileInfo,
    /// The bytes asked for; absent if they are too many for the answer.
    pub content: Option<Vec<u8>>,
    /// Where in the file they begin, in bytes; at its end if there are none.
    pub offset: u64,
    /// The number of the line in which they begin, from 1.
    pub first_line: u64,
}

/// Asks for a page of files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListFiles {
    /// The directory below which to list; everything if absent.
    pub directory: Option<WorkspacePath>,
    /// Most files; 0 for the usual number.
    pub page_size: usize,
    /// The token of the page before; empty for the first page.
    pub page_token: String,
}

/// A page of files. The names of each directory are in order, whatever is in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FilePage {
    /// The files.
    pub files: Vec<FileInfo>,
    /// The token of the next page; empty on the last one.
    pub next_page_token: String,
    /// What the page lacks.
    pub skipped: Skipped,
}

/// Why a list or a search leaves something out that nothing withholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SkipCause {
    /// No path leads to a file in the directory: it is 64 levels below its root.
    TooDeep,
    /// The file is larger than what is searched.
    TooLarge,
    /// The system refuses, it is on another file system, or it is gone.
    Unreadable,
    /// No path can have its name.
    BadName,
}

/// What a list or a search left out, although nothing withholds it: how much for each cause, and where some of it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// Directories for [`SkipCause::TooDeep`].
    pub too_deep: u32,
    /// Files for [`SkipCause::TooLarge`].
    pub too_large: u32,
    /// Files and directories for [`SkipCause::Unreadable`].
    pub unreadable: u32,
    /// Files and directories for [`SkipCause::BadName`].
    pub bad_name: u32,
    /// At most [`SKIPPED_PATHS`] paths, with their root's name in front where the workspace has several.
    pub paths: Vec<String>,
}

impl Skipped {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one, and keeps its path while there is room.
    pub fn note(&mut self, cause: SkipCause, path: Option<String>) {
        let count = match cause {
            SkipCause::TooDeep => &mut self.too_deep,
            SkipCause::TooLarge => &mut self.too_large,
            SkipCause::Unreadable => &mut self.unreadable,
            SkipCause::BadName => &mut self.bad_name,
        };
        *count = count.saturating_add(1);
        self.paths.extend(path.filter(|_| self.paths.len() < SKIPPED_PATHS));
    }

    /// Adds what was left out after this.
    pub fn append(&mut self, later: Self) {
        let Self { too_deep, too_large, unreadable, bad_name, paths } = later;
        self.too_deep = self.too_deep.saturating_add(too_deep);
        self.too_large = self.too_large.saturating_add(too_large);
        self.unreadable = self.unreadable.saturating_add(unreadable);
        self.bad_name = self.bad_name.saturating_add(bad_name);
        self.paths.extend(paths);
        self.paths.truncate(SKIPPED_PATHS);
    }
}

/// Asks for lines that match a regular expression.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchFiles {
    /// The expression, which is looked for in each line.
    pub pattern: String,
    /// Whether upper and lower case are one.
    pub ignore_case: bool,
    /// Which files, by patterns as in `.gitignore`; all if empty.
    pub globs: Vec<String>,
    /// The directory below which to search; everything if absent.
    pub directory: Option<WorkspacePath>,
    /// Lines above and below each match.
    pub context: usize,
    /// Most matches; 0 for the usual number.
    pub max_matches: usize,
}

/// Lines that match, in the order of a [`FilePage`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchMatches {
    /// The matches.
    pub matches: Vec<SearchMatch>,
    /// Whether there are more.
    pub has_more: bool,
    /// What was not searched.
    pub skipped: Skipped,
}

/// A line that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchMatch {
    /// The file's path, with its root's name in front where the workspace has several.
    pub path: String,
    /// Its lower-case key.
    pub doc_path: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// That line and those around it; of a long line its first characters.
    pub excerpt: Excerpt,
    /// Whether the lines are those of an editor's unsaved buffer.
    pub is_unsaved: bool,
}
