//! `workspace_create_file`: creates a file, or replaces a whole one (TUL-004 4, 5.3). Its arguments are a document.

use schemars::JsonSchema;
use serde::Serialize;

use super::schema;
use super::tool::{Call, Effect, Form, Set, Tool};
use crate::create_file_code;
use crate::documents::create_file::CreateFileDocument;
use crate::documents::{self, Dialect};
use crate::failure::Failure;
use crate::report::{FileReport, FileStatus};

pub(super) const TOOL: Tool = Tool {
    name: "workspace_create_file",
    description: "Create a new file, or replace a whole one when overwrite is true.\n\n\
        Inputs: path, content (all of it; written as UTF-8 without byte order mark, lines ended by \\n), overwrite \
        (default false), contentFormat (verbatim: content that looks like a diff, a fenced block or a text with \
        lines left out is meant).\n\n\
        Behavior: fails if the file exists and overwrite is false. Creates missing directories. To edit an \
        existing file, use patch or workspace_write_patch.\n\n\
        Output: success, message, the normalized path, sizeBytes, hash (SHA-256 of the bytes written), created, \
        overwritten, errorCode (null on success) and detail, a finer word for it.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Created,
    dialect: Some(Dialect::CreateFile),
    input: schema::input::<CreateFileDocument>,
    output: schema::output::<Created>,
    parse: |text, _| documents::parse_part(text.as_bytes(), Some(Dialect::CreateFile)).map(Call::Document),
};

/// The answer.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Created {
    success: bool,
    message: String,
    path: String,
    size_bytes: u64,
    /// SHA-256 of the bytes written, in hex; empty on failure
    hash: String,
    created: bool,
    overwritten: bool,
    #[schemars(extend("enum" = error_codes()))]
    error_code: Option<&'static str>,
    /// The reason of the catalogue, INVALID_ARGUMENTS for arguments that are none; null on success
    detail: Option<&'static str>,
}

impl Created {
    /// Of a file that is as asked for.
    #[must_use]
    pub fn done(file: &FileReport) -> Self {
        let created = file.status == FileStatus::Created;
        let mut message = if created { "File created.".to_owned() } else { "File overwritten.".to_owned() };
        for warning in &file.warnings {
            message.push_str(&format!(" Warning: {}: {}.", warning.code, warning.message));
        }
        Self {
            success: true,
            message,
            path: file.path.clone(),
            size_bytes: file.written.map_or(0, |written| written.size_bytes),
            hash: file.written.map(|written| written.sha256.to_string()).unwrap_or_default(),
            created,
            overwritten: !created,
            error_code: None,
            detail: None,
        }
    }

    /// Of a call that was refused; `path` is the one in the call, as far as it could be read.
    #[must_use]
    pub fn refused(path: &str, failures: &[Failure]) -> Self {
        let messages = failures.iter().map(|failure| match &failure.hint {
            Some(hint) => format!("{failure}\nhint: {hint}"),
            None => failure.to_string(),
        });
        Self {
            success: false,
            message: messages.collect::<Vec<_>>().join("\n"),
            path: path.to_owned(),
            size_bytes: 0,
            hash: String::new(),
            created: false,
            overwritten: false,
            error_code: Some(failures.first().map_or(create_file_code::UNHANDLED, create_file_code::of)),
            detail: failures.first().map(create_file_code::detail),
        }
    }
}

/// What `errorCode` may be: a code, or null on success.
fn error_codes() -> Vec<Option<&'static str>> {
    create_file_code::ALL.map(Some).into_iter().chain([None]).collect()
}
