//! What the tools that only look ask for: lines of a file, or a search (WS-MOD 4.2).

use crate::live::ListFiles;
use crate::path::WorkspacePath;

/// Lines of a file that are shown unless a call asks for more.
pub const USUAL_LINES: u32 = 500;
/// Most lines of a file that are shown.
pub const MOST_LINES: u32 = 5_000;
/// Files that a search lists unless a call asks for more.
pub const USUAL_FILES: u32 = 100;
/// Lines that a search shows unless a call asks for more.
pub const USUAL_RESULTS: u32 = 200;
/// Files and directories that a list of a directory has unless a call asks for more.
pub const USUAL_LISTED: u32 = 200;
/// Most files and directories that a list of a directory has.
pub const MOST_LISTED: u32 = 1_000;
/// Batches that a history lists unless a call asks for more.
pub const USUAL_BATCHES: u32 = 20;
/// Most batches that a history lists.
pub const MOST_BATCHES: u32 = 200;
/// Most files, and most lines, that a search lists.
pub const MOST_RESULTS: u32 = 2_000;
/// Most lines that are shown above and below a line that matches.
pub const MOST_CONTEXT: u32 = 20;

/// A call that only reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// Read lines of a file.
    Read(ReadFile),
    /// Show a file, or the files of a directory, as the text-editor tool does.
    View(View),
    /// List the files and directories in a directory.
    List(ListFiles),
    /// List the newest batches.
    History {
        /// How many.
        most: usize,
        /// Only those that touched this file or directory, if any is named.
        path: Option<WorkspacePath>,
    },
    /// Show a batch, or a part of one.
    Show {
        /// The id of a batch, a file patch or a change, or the beginning of one.
        id: String,
    },
    /// List files, or those with a line that matches.
    FindFiles(Search),
    /// Show the lines that match.
    FindLines(Search),
}

/// A call of `read_file`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadFile {
    /// The file.
    pub path: WorkspacePath,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line; that of the file if absent.
    pub end_line: Option<u32>,
    /// How many lines are shown at most.
    pub max_lines: u32,
}

/// A call of the command `view` of the text-editor tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The file or directory; the whole root if absent.
    pub path: Option<WorkspacePath>,
    /// The first and the last line, from 1, the last one that of the file if absent; all lines if the range is absent.
    pub range: Option<(u32, Option<u32>)>,
}

/// Whether letters have to agree in case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// They have to if the pattern has a capital letter.
    Smart,
    /// They have to.
    Sensitive,
    /// They need not.
    Insensitive,
}

/// A call of a `ripgrep_*` tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// The regular expression to look for in lines; any file matches if absent.
    pub pattern: Option<String>,
    /// The file or directory; the whole root if absent.
    pub path: Option<WorkspacePath>,
    /// Whether letters have to agree in case.
    pub case: Case,
    /// The glob that the paths of files have to match, if any.
    pub glob: Option<String>,
    /// How many files are listed at most.
    pub max_files: u32,
    /// How many lines that match are shown at most.
    pub max_results: u32,
    /// How many lines above and below each are shown as well.
    pub context: u32,
}
