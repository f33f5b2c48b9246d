//! `list_directory`: lists the files and directories in a directory, page by page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::count;
use super::look::{Look, MOST_LISTED, USUAL_LISTED};
use super::roots::Roots;
use super::skipped::SkippedFiles;
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::live::{FilePage, ListFiles};

pub(super) const TOOL: Tool = Tool {
    name: "list_directory",
    description: "List the files and directories in a directory, not what is below those.\n\n\
        Inputs: path (empty: the workspace root), max_files (both; 0: 200; at most 1,000), page_token (nextPageToken \
        of the page before).\n\n\
        Behavior: files that git ignores and secrets are passed over, and directories with nothing else; links are not \
        followed.\n\n\
        Output: files and directories by path, files with sizeBytes; in the text, directories end in /; nextPageToken, \
        null on the last page; skipped counts what is missing.",
    set: Set::Core,
    effect: Effect::Reads,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::or_errors::<Listed>,
    parse: |text, roots| read(text, |arguments| call(&arguments, roots)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, from the workspace root; empty: the root
    path: Option<String>,
    /// Files and directories at most; 0: 200; never more than 1000
    max_files: Option<Whole>,
    /// nextPageToken of the page before; empty: the first page
    page_token: Option<String>,
}

/// A page of files, and of directories where those below them are left out.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct Listed {
    pub success: bool,
    pub files: Vec<ListedFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub directories: Vec<String>,
    pub next_page_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub skipped: Option<SkippedFiles>,
}

/// A file of a list.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct ListedFile {
    pub path: String,
    pub size_bytes: u64,
}

impl From<FilePage> for Listed {
    fn from(page: FilePage) -> Self {
        let files = page.files.into_iter().map(|file| ListedFile { path: file.path, size_bytes: file.size_bytes });
        let next = Some(page.next_page_token).filter(|token| !token.is_empty());
        let (files, skipped) = (files.collect(), SkippedFiles::of(page.skipped));
        Self { success: true, files, directories: Vec::new(), next_page_token: next, skipped }
    }
}

impl Listed {
    /// As people and models read it: on each line, the path of a file and its size, or that of a directory and a slash.
    #[must_use]
    pub fn text(&self) -> String {
        let files = self.files.iter().map(|file| (&file.path, format!("{} ({})\n", file.path, file.size_bytes)));
        let directories = self.directories.iter().map(|path| (path, format!("{path}/\n")));
        let mut lines: Vec<_> = files.collect();
        if !self.directories.is_empty() {
            lines.extend(directories);
            lines.sort_unstable();
        }
        let mut text: String = lines.into_iter().map(|(_, line)| line).collect();
        if text.is_empty() {
            text.push_str("no files\n");
        }
        if let Some(token) = &self.next_page_token {
            text.push_str(&format!("there are more: ask again with page_token {token:?}\n"));
        }
        text.extend(self.skipped.as_ref().map(SkippedFiles::text));
        text
    }
}

fn call(arguments: &Arguments, roots: &Roots) -> Result<Call, Failure> {
    Ok(Call::Look(Look::List(ListFiles {
        directory: roots.directory(arguments.path.as_deref())?,
        page_size: count("max_files", arguments.max_files, USUAL_LISTED, MOST_LISTED)? as usize,
        page_token: arguments.page_token.clone().unwrap_or_default(),
    })))
}
