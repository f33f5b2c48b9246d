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
    /// Why there is no reply.
    Failed(Box<Failure>),
}
