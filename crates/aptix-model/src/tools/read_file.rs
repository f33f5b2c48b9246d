//! `read_file`: shows lines of a file, and the digest that a line patch has to name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::{count, range};
use super::look::{Look, MOST_LINES, ReadFile, USUAL_LINES};
use super::roots::Roots;
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::documents::fields::given;
use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

pub(super) const TOOL: Tool = Tool {
    name: "read_file",
    description: "Read lines of a text file, and the digest that workspace_write_patch needs.\n\n\
        Inputs: path, range (10~20, 10, 10~ or ~20; empty: from the first line), max_lines (0: 500; at most \
        5,000).\n\n\
        Behavior: secrets and version control's own files are not shown.\n\n\
        Output: path, docPath, sha256 of the whole file, lineCount, startLine, endLine, nextRange (what to ask for \
        next; null when nothing is left), lineEndings, endsWithNewline, isUtf8, text (with \\n, whatever the file \
        has), unsaved (an editor's text, which the user has to save before the file can be edited).",
    set: Set::Core,
    effect: Effect::Reads,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::or_errors::<Lines>,
    parse: |text, roots| read(text, |arguments| call(arguments, roots).map(Look::Read).map(Call::Look)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace root: src/main.rs
    path: String,
    /// 10~20, 10, 10~ or ~20; empty: from the first line
    range: Option<String>,
    /// How many lines at most; 0: 500; never more than 5000
    max_lines: Option<Whole>,
}

/// The lines of a file, and what there is to know about it.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct Lines {
    pub success: bool,
    pub path: String,
    pub doc_path: String,
    /// Whether this is the text of an editor's unsaved buffer: no edit of the file is written until the user saves it
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub unsaved: bool,
    /// Of the whole file
    pub sha256: String,
    pub size_bytes: usize,
    pub line_count: usize,
    pub start_line: usize,
    /// One less than startLine where there is no line
    pub end_line: usize,
    /// What to ask for next; null when nothing is left
    pub next_range: Option<String>,
    #[schemars(extend("enum" = ["lf", "crlf", "mixed", "none"]))]
    pub line_endings: &'static str,
    pub ends_with_newline: bool,
    /// Whether every byte shown is UTF-8; others are shown as U+FFFD
    pub is_utf8: bool,
    pub text: String,
}

impl Lines {
    /// Everything but the text, in one line.
    #[must_use]
    pub fn head(&self) -> String {
        let mut head = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = head.as_object_mut() {
            object.remove("text");
        }
        format!("{head}")
    }
}

impl Lines {
    /// The lines, each behind its number.
    #[must_use]
    pub fn numbered(&self) -> String {
        let lines = self.text.lines().zip(self.start_line..);
        let mut text: String = lines.map(|(line, number)| format!("{number:>6}\t{line}\n")).collect();
        if let Some(range) = &self.next_range {
            text.push_str(&format!("the file goes on: lines {range} of {}\n", self.line_count));
        }
        text
    }
}

fn call(arguments: Arguments, roots: &Roots) -> Result<ReadFile, Failure> {
    let (start_line, end_line) = match given(arguments.range) {
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
    let max_lines = count("max_lines", arguments.max_lines, USUAL_LINES, MOST_LINES)?;
    Ok(ReadFile { path: roots.file(&arguments.path)?, start_line, end_line, max_lines })
}

fn line(number: i64, text: &str) -> Result<u32, Failure> {
    u32::try_from(number).ok().filter(|line| *line > 0).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failure::new(Reason::LineRange, format!("{shown:?} names a line that no file has, lines are counted from 1"))
            .detail(Detail::Number)
            .field("range")
    })
}
