//! The calls of the tools that only look: `read_file` and `ripgrep_*` (WS-MOD 4.2).
//!
//! Providers that require every field send fill-in values; each of these means that the field was left out.

use std::format;
use std::string::String;

use serde::Deserialize;

use super::prepare::range;
use crate::documents::fields::given;
use crate::documents::json;
use crate::failure::Failure;
use crate::path::{WorkspacePath, document_spelling};
use crate::reason::{Detail, Reason};

/// Lines of a file that are given unless more are asked for.
pub const USUAL_LINES: u32 = 500;
/// Lines of a file that are given at most.
pub const MOST_LINES: u32 = 5_000;
/// Files that a search tells of unless more are asked for.
pub const USUAL_FILES: u32 = 100;
/// Lines that a search shows unless more are asked for.
pub const USUAL_RESULTS: u32 = 200;
/// Files, and lines, that a search tells of at most.
pub const MOST_RESULTS: u32 = 2_000;
/// Lines above and below a line that was found, at most.
pub const MOST_CONTEXT: u32 = 20;

/// A call of `read_file`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadFile {
    /// The file.
    pub path: WorkspacePath,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line; that of the file if absent.
    pub end_line: Option<u32>,
    /// How many lines are given at most.
    pub max_lines: u32,
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
    /// What is looked for in lines; any file will do if absent.
    pub pattern: Option<String>,
    /// The file or directory; the whole root if absent.
    pub path: Option<WorkspacePath>,
    /// Whether letters have to agree in case.
    pub case: Case,
    /// What the paths of files have to fit, if anything.
    pub glob: Option<String>,
    /// How many files are told of at most.
    pub max_files: u32,
    /// How many lines that were found are shown at most.
    pub max_results: u32,
    /// How many lines above and below each are shown as well.
    pub context: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFileCall {
    path: String,
    range: Option<String>,
    max_lines: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchCall {
    pattern: Option<String>,
    path: Option<String>,
    case: Option<String>,
    glob: Option<String>,
    max_files: Option<u32>,
    max_results: Option<u32>,
    context: Option<u32>,
}

/// Reads the arguments of a call of `read_file`.
///
/// # Errors
/// When they do not have its shape, or the path cannot be one.
pub fn read_file(arguments: &str) -> Result<ReadFile, Failure> {
    let call: ReadFileCall = json::from_str(arguments)?;
    let (start_line, end_line) = match given(call.range) {
        None => (1, None),
        Some(text) => {
            let (start, end) = range(&text)?;
            (line(start, &text)?, end.map(|end| line(end, &text)).transpose()?)
        }
    };
    if let Some(end) = end_line
        && end < start_line
    {
        return Err(Failure::new(Reason::LineRange, format!("the range ends at {end}, above its start {start_line}"))
            .detail(Detail::Inverted)
            .field("range"));
    }
    let max_lines = limit(call.max_lines, USUAL_LINES, MOST_LINES);
    Ok(ReadFile { path: path(&call.path)?, start_line, end_line, max_lines })
}

/// Reads the arguments of a call of `ripgrep_files` or `ripgrep_content`.
///
/// # Errors
/// When they do not have its shape, or the path cannot be one.
pub fn search(arguments: &str) -> Result<Search, Failure> {
    let call: SearchCall = json::from_str(arguments)?;
    let whole = |path: &String| matches!(path.trim_end_matches(['/', '\\']), "" | ".");
    Ok(Search {
        pattern: given(call.pattern),
        path: call.path.filter(|path| !whole(path)).map(|text| path(text.trim_end_matches(['/', '\\']))).transpose()?,
        case: case(call.case.as_deref().unwrap_or_default())?,
        glob: given(call.glob),
        max_files: limit(call.max_files, USUAL_FILES, MOST_RESULTS),
        max_results: limit(call.max_results, USUAL_RESULTS, MOST_RESULTS),
        context: call.context.unwrap_or_default().min(MOST_CONTEXT),
    })
}

/// What is asked for, or what is usual if nothing is; never more than there may be, which the answer then says.
fn limit(asked: Option<u32>, usual: u32, most: u32) -> u32 {
    asked.filter(|asked| *asked > 0).unwrap_or(usual).min(most)
}

fn path(text: &str) -> Result<WorkspacePath, Failure> {
    WorkspacePath::new(&document_spelling(text)).map_err(|error| {
        Failure::new(Reason::InvalidPath, format!("{error}"))
            .detail(error.detail())
            .field("path")
            .hint("give the path from the workspace's root down, such as src/main.rs")
    })
}

fn line(number: i64, text: &str) -> Result<u32, Failure> {
    u32::try_from(number).ok().filter(|line| *line > 0).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failure::new(Reason::LineRange, format!("{shown:?} names a line that no file has, lines are counted from 1"))
            .detail(Detail::Number)
            .field("range")
    })
}

fn case(word: &str) -> Result<Case, Failure> {
    match word {
        "" | "smart" => Ok(Case::Smart),
        "sensitive" => Ok(Case::Sensitive),
        "insensitive" => Ok(Case::Insensitive),
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(Failure::new(Reason::InvalidRequest, format!("there is no case {shown:?}"))
                .detail(Detail::UnknownEnum)
                .field("case")
                .hint("smart (the default: capitals count if the pattern has one), sensitive or insensitive"))
        }
    }
}
