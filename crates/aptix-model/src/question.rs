//! What is asked of a workstation, and what it replies.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::batch::{Batch, Origin};
use crate::failure::Failure;
use crate::live::{FileContent, FileInfo, FilePage, FilePart, FileSelector, ListFiles, SearchFiles, SearchMatches};
use crate::plan::Planned;
use crate::report::Report;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// Files as they are now.
    Read(Vec<FilePart>),
    /// What files are, without their content.
    Stat(Vec<FileSelector>),
    /// A page of files below a directory.
    List(ListFiles),
    /// Lines that match.
    Search(SearchFiles),
    /// What would become of a batch.
    Preview(Batch),
    /// The plan of a batch that is being prepared, and whose turn the batch comes from.
    Prepare(Batch, Origin),
    /// The answer of a tool that reads.
    Tool(ToolCall),
    /// Which files these absolute paths lead to.
    Paths(Vec<String>),
}

/// The file that an absolute path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Its path: from the only root down, or with the root's name in front.
    pub path: String,
    /// Its key.
    pub doc_path: String,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// The arguments as the model wrote them: JSON.
    pub arguments: String,
    /// Whose turn it comes from.
    pub origin: Origin,
}

/// The answer to a call of a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolReply {
    /// For models.
    pub text: Vec<String>,
    /// For programs: a JSON object.
    pub structured: String,
    /// Whether the call was refused.
    pub is_error: bool,
}

/// What is replied: of the question's kind, or a failure.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// Each file, in the order asked, or why it is not shown.
    Read(Vec<Result<FileContent, Failure>>),
    /// What each file is, or why that is not said.
    Stat(Vec<Result<FileInfo, Failure>>),
    /// The page.
    List(FilePage),
    /// The lines.
    Search(SearchMatches),
    /// What the report of the batch would be.
    Preview(Report),
    /// The plan, or why there is none.
    Prepare(Box<Planned>),
    /// The answer of the tool.
    Tool(ToolReply),
    /// The file that each path leads to; absent for a path that leads into no root.
    Paths(Vec<Option<Located>>),
    /// Why there is no reply.
    Failed(Box<Failure>),
}
