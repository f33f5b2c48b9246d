//! The structured-patch document: texts to find and to put in their place, file by file (FILE-SPEC 2).

use serde::{Deserialize, Serialize};

use super::dialect::{Parsed, parsed};
use super::fields::{Fields, check_root};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use crate::batch::{Batch, FileEdit, FilePatch, PartialBatch, Replacement, Replacements, Scope, Target};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::Detail;

/// How a structured patch is recognised.
pub(super) const KEYS: Keys = Keys { unique: &["patches.replacements", "patches.path"], others: &["root", "patches"] };

const LIMITS: [&str; 2] = ["once", "all"];

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchDocument {
    #[cfg_attr(feature = "tools", schemars(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Each file once
    #[cfg_attr(feature = "tools", schemars(required))]
    patches: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    /// The file, from the workspace root: src/main.rs
    #[cfg_attr(feature = "tools", schemars(required))]
    path: Option<String>,
    /// Made one after the other
    #[cfg_attr(feature = "tools", schemars(required))]
    replacements: Option<Bounded<ReplacementDocument, { Limits::DEFAULT.changes }>>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "patches";
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReplacementDocument {
    /// Text that occurs in the file
    #[cfg_attr(feature = "tools", schemars(required))]
    find: Option<String>,
    /// The text that takes its place
    #[cfg_attr(feature = "tools", schemars(required))]
    replace: Option<String>,
    /// once: the first place; all: every place; empty: once
    #[cfg_attr(feature = "tools", schemars(extend("enum" = ["", "once", "all"])))]
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
}

impl Named for ReplacementDocument {
    const PLURAL: &'static str = "changes";
}

pub(super) fn parse(text: &str) -> Parsed {
    let document: PatchDocument = json::from_str(text)?;
    let mut part = PartialBatch::from(Vec::from_iter(check_root(document.root.as_deref()).err()));
    let patches = Fields::new(Place::default(), &mut part.failures).require("patches", document.patches);
    for (index, file) in patches.into_iter().flat_map(|patches| patches.0).enumerate() {
        part.add_file(index, |failures| read_file(index, file, failures));
    }
    parsed(part, Vec::new())
}

fn read_file(index: usize, file: FileDocument, failures: &mut Vec<Failure>) -> Option<FilePatch> {
    let mut fields = Fields::new(Place::new(format!("patches[{index}]"), index, None), failures);
    let (path, steps) = (fields.require("path", file.path), fields.require("replacements", file.replacements));
    let steps = steps?.0.into_iter().enumerate().filter_map(|(position, step)| {
        let place = Place::new(format!("patches[{index}].replacements[{position}]"), index, Some(position));
        read_step(&mut Fields::new(place, failures), step)
    });
    let edit = FileEdit::Replacements(Replacements { steps: steps.collect() });
    Some(FilePatch { target: Target::Path(document_spelling(&path?)), key: None, label: None, edit })
}

fn read_step(fields: &mut Fields<'_>, step: ReplacementDocument) -> Option<Replacement> {
    let scope = match step.limit.as_deref() {
        None | Some("" | "once") => Some(Scope::First),
        Some("all") => Some(Scope::All),
        Some(unknown) => {
            fields.unknown("limit", unknown, &LIMITS, Detail::UnknownEnum);
            None
        }
    };
    let (find, replace) = (fields.require("find", step.find), fields.require("replace", step.replace));
    Some(Replacement { find: find?, replace: replace?, scope: scope? })
}

/// The document that reads as a batch of replacements; `None` for a batch with other edits.
pub(super) fn document(batch: &Batch) -> Option<PatchDocument> {
    let patches = batch.files.iter().map(file_document).collect::<Option<_>>()?;
    Some(PatchDocument { root: None, patches: Some(Bounded(patches)) })
}

fn file_document(file: &FilePatch) -> Option<FileDocument> {
    let FileEdit::Replacements(Replacements { steps }) = &file.edit else { return None };
    let replacements = steps.iter().map(|step| {
        let limit = match step.scope {
            Scope::First => None,
            Scope::All => Some("all".into()),
            Scope::Block { .. } => return None,
        };
        Some(ReplacementDocument { find: Some(step.find.clone()), replace: Some(step.replace.clone()), limit })
    });
    let replacements = Bounded(replacements.collect::<Option<_>>()?);
    Some(FileDocument { path: Some(file.target.as_str().into()), replacements: Some(replacements) })
}
