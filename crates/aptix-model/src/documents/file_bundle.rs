//! The file-bundle document: whole files, each created, replaced or deleted (FILE-SPEC 1).

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::fields::{check_root, given, listed, required};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use crate::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// How a file bundle is recognised.
pub(super) const KEYS: Keys = Keys {
    tells: &["files.path", "files.content", "files.operation"],
    knows: &["root", "files", "files.replacements", "files.contentFormat"],
};

const OPERATIONS: [&str; 3] = ["create", "replace", "delete"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BundleDocument {
    root: Option<String>,
    files: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    path: Option<String>,
    content: Option<String>,
    operation: Option<String>,
    content_format: Option<String>,
    /// What an entry of the operation `patch` would have; read so that it is refused for its operation.
    replacements: Option<IgnoredAny>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "files";
}

pub(super) fn parse(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let document: BundleDocument = json::from_str(text).map_err(|failure| vec![failure])?;
    let mut failures = Vec::from_iter(check_root(document.root.as_deref()).err());
    let Some(files) = document.files else {
        failures.push(required("files").field("files"));
        return Err(failures);
    };
    let files = files.0.into_iter().enumerate();
    let files = files.filter_map(|(index, file)| Entry { index, failures: &mut failures }.read(file)).collect();
    if failures.is_empty() { Ok((Batch { files, ..Batch::default() }, Vec::new())) } else { Err(listed(failures)) }
}

/// One entry of a bundle, and where what is wrong with it goes.
struct Entry<'a> {
    index: usize,
    failures: &'a mut Vec<Failure>,
}

impl Entry<'_> {
    fn refuse(&mut self, field: &str, failure: Failure) {
        let place = Place::new(format!("files[{}].{field}", self.index), self.index, None);
        self.failures.push(place.put_on(failure));
    }

    fn read(&mut self, file: FileDocument) -> Option<FilePatch> {
        if file.path.is_none() {
            self.refuse("path", required("path"));
        }
        let operation = file.operation.as_deref();
        if file.replacements.is_some() && operation != Some("patch") {
            self.unexpected("replacements", operation);
        }
        let format = given(file.content_format);
        let edit = match operation {
            None => self.write(file.content, Presence::Either, format),
            Some("create") => self.write(file.content, Presence::Absent, format),
            Some("replace") => self.write(file.content, Presence::Present, format),
            Some("delete") => {
                if file.content.is_some_and(|content| !content.is_empty()) {
                    self.unexpected("content", operation);
                }
                if format.is_some() {
                    self.unexpected("contentFormat", operation);
                }
                Some(FileEdit::DeleteFile)
            }
            Some(other) => {
                self.unknown_operation(other);
                None
            }
        };
        Some(FilePatch { target: Target::Path(document_spelling(&file.path?)), key: None, label: None, edit: edit? })
    }

    fn write(
        &mut self,
        content: Option<String>,
        presence: Presence,
        content_format: Option<String>,
    ) -> Option<FileEdit> {
        if content.is_none() {
            self.refuse("content", required("content"));
        }
        Some(FileEdit::WriteFile(WriteFile { content: Content::Text(content?), presence, content_format }))
    }

    fn unexpected(&mut self, field: &str, operation: Option<&str>) {
        let belongs = match operation {
            Some(operation) => format!("'{field}' does not belong to operation '{operation}'"),
            None => format!("'{field}' does not belong to an entry that creates or replaces a file"),
        };
        let failure = Failure::new(Reason::InvalidRequest, belongs).detail(Detail::UnexpectedField);
        self.refuse(field, failure.hint(format!("leave '{field}' out")));
    }

    fn unknown_operation(&mut self, unknown: &str) {
        let shown: String = unknown.chars().take(40).collect();
        let (message, hint) = match unknown {
            "patch" => (
                "the operation 'patch' is not carried out inside a file bundle".into(),
                "send the replacements as a structured patch: an object with 'patches'".into(),
            ),
            "gitPatch" => (
                "the operation 'gitPatch' is not carried out inside a file bundle".into(),
                "send the diff as a git patch of its own, not inside JSON".into(),
            ),
            _ => (
                format!("unknown operation {shown:?}, expected one of create, replace, delete"),
                json::instead(unknown, &OPERATIONS),
            ),
        };
        let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation);
        self.refuse("operation", failure.hint(hint));
    }
}
