//! `ripgrep_files` and `ripgrep_content`: find files, or lines, that match a regular expression.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::{Words, count, names, word};
use super::look::{Case, Look, MOST_CONTEXT, MOST_RESULTS, Search, USUAL_FILES, USUAL_RESULTS};
use super::roots::Roots;
use super::skipped::SkippedFiles;
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::documents::fields::given;
use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Whether letters have to agree in case.
const CASES: Words<Case> =
    &[("", Case::Smart), ("smart", Case::Smart), ("sensitive", Case::Sensitive), ("insensitive", Case::Insensitive)];

pub(super) const FILES: Tool = Tool {
    name: "ripgrep_files",
    description: "Find files: all, those whose path matches a glob, those with a line that matches a regular \
        expression.\n\n\
        Inputs: pattern (Rust regex syntax; empty: any file), path (empty: the whole workspace), case, glob, \
        max_files (0: 100; at most 2,000).\n\n\
        Behavior: files that git ignores, secrets and binary files are passed over; links are not followed.\n\n\
        Output: files by path, each with the number of matching lines; unsaved marks an editor's text; cut says why \
        there may be more.",
    set: Set::Other,
    effect: Effect::Reads,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::or_errors::<Found>,
    parse: |text, roots| read(text, |arguments| call(arguments, roots).map(Look::FindFiles).map(Call::Look)),
};

pub(super) const CONTENT: Tool = Tool {
    name: "ripgrep_content",
    description: "Find lines that match a regular expression.\n\n\
        Inputs: pattern (Rust regex syntax, within one line), path (empty: the whole workspace), case, glob, \
        max_files (0: 100), max_results (lines; 0: 200), context (lines above and below each, at most 20).\n\n\
        Behavior: files that git ignores, secrets and binary files are passed over; links are not followed; of a \
        long line the first 400 characters are shown.\n\n\
        Output: files by path, their lines by number; unsaved marks an editor's text; cut says why there may be more.",
    set: Set::Core,
    effect: Effect::Reads,
    form: Form::Plain,
    dialect: None,
    input: content_input,
    output: answer::or_errors::<Found>,
    parse: |text, roots| read(text, |arguments| find_lines(arguments, roots)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A regular expression in Rust's syntax that a line of the file fits; empty: any file
    #[schemars(length(max = 10_000))]
    pattern: Option<String>,
    /// A file or directory, from the workspace root; empty: all of it
    path: Option<String>,
    /// smart: capitals count if the pattern has one; empty: smart
    #[schemars(extend("enum" = names(CASES), "default" = "smart"))]
    case: Option<String>,
    /// *.rs for names at any depth, src/**/*.rs for paths from the root down; empty: any file
    glob: Option<String>,
    /// Files at most; 0: 100; never more than 2000
    max_files: Option<Whole>,
    /// Lines at most that ripgrep_content shows; 0: 200; never more than 2000
    max_results: Option<Whole>,
    /// Lines that ripgrep_content shows above and below each; 0: none; never more than 20
    context: Option<Whole>,
}

/// As for files, but there has to be a pattern.
fn content_input() -> Map<String, Value> {
    let mut schema = schema::input::<Arguments>();
    schema.insert("required".into(), ["pattern"].as_slice().into());
    let pattern = schema.get_mut("properties").and_then(|properties| properties.get_mut("pattern"));
    if let Some(pattern) = pattern.and_then(Value::as_object_mut) {
        let about = "A regular expression in Rust's syntax that is looked for in each line";
        pattern.insert("description".into(), about.into());
        pattern.insert("minLength".into(), 1.into());
    }
    schema
}

fn find_lines(arguments: Arguments, roots: &Roots) -> Result<Call, Failure> {
    let search = call(arguments, roots)?;
    if search.pattern.is_none() {
        return Err(Failure::new(Reason::InvalidRequest, "there is no pattern to look for")
            .detail(Detail::Missing)
            .field("pattern")
            .hint("give a pattern, or list files with ripgrep_files"));
    }
    Ok(Call::Look(Look::FindLines(search)))
}

/// The files, or lines, that a search found.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct Found {
    pub success: bool,
    pub files: Vec<FileFound>,
    /// Why there may be more
    #[schemars(extend("enum" = ["max_files", "max_results", "size", "time", null]))]
    pub cut: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub skipped: Option<SkippedFiles>,
}

/// A file that a search found.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct FileFound {
    pub path: String,
    /// Whether the lines are those of an editor's unsaved buffer
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub unsaved: bool,
    /// How many lines match, as far as the file was searched
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub matches: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineFound>,
}

/// A line that a search found.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct LineFound {
    pub line: u64,
    pub text: String,
    /// Whether it matches, or is near a line that does
    pub is_match: bool,
}

fn call(arguments: Arguments, roots: &Roots) -> Result<Search, Failure> {
    let hint = "smart (the default: capitals count if the pattern has one), sensitive or insensitive";
    Ok(Search {
        pattern: given(arguments.pattern),
        path: roots.directory(arguments.path.as_deref())?,
        case: word("case", arguments.case.as_deref(), CASES, hint)?,
        glob: given(arguments.glob),
        max_files: count("max_files", arguments.max_files, USUAL_FILES, MOST_RESULTS)?,
        max_results: count("max_results", arguments.max_results, USUAL_RESULTS, MOST_RESULTS)?,
        context: count("context", arguments.context, 0, MOST_CONTEXT)?,
    })
}

impl Found {
    /// As people and models read it: a path, its lines beneath it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let _ = match (file.lines.is_empty(), file.matches) {
                (true, Some(matches)) => writeln!(text, "{} ({matches})", file.path),
                _ => writeln!(text, "{}", file.path),
            };
            let mut last = None;
            for line in &file.lines {
                if last.is_some_and(|last| last + 1 < line.line) {
                    text.push_str("--\n");
                }
                last = Some(line.line);
                let _ = writeln!(text, "{}{}{}", line.line, if line.is_match { ':' } else { '-' }, line.text);
            }
            if !file.lines.is_empty() {
                text.push('\n');
            }
        }
        if self.files.is_empty() {
            text.push_str("nothing found\n");
        }
        if let Some(cut) = self.cut {
            let _ = writeln!(text, "there may be more: stopped at {cut}; narrow the search or raise the limit");
        }
        text.extend(self.skipped.as_ref().map(SkippedFiles::text));
        text
    }
}
