//! The structured-patch document: texts to find and to put in their place, file by file (FILE-SPEC 2).

use serde::Deserialize;

use super::fields::{check_root, listed, required};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use crate::batch::{Batch, FileEdit, FilePatch, Replacement, Replacements, Scope, Target};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// How a structured patch is recognised.
pub(super) const KEYS: Keys = Keys { tells: &["patches.replacements", "patches.path"], knows: &["root", "patches"] };

const LIMITS: [&str; 2] = ["once", "all"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PatchDocument {
    root: Option<String>,
    patches: Option<Bounded<FileDocument, { Limits::DEFAULT.files }>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDocument {
    path: Option<String>,
    replacements: Option<Bounded<ReplacementDocument, { Limits::DEFAULT.changes }>>,
}

impl Named for FileDocument {
    const PLURAL: &'static str = "patches";
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReplacementDocument {
    find: Option<String>,
    replace: Option<String>,
    limit: Option<String>,
}

impl Named for ReplacementDocument {
    const PLURAL: &'static str = "changes";
}

pub(super) fn parse(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    let document: PatchDocument = json::from_str(text).map_err(|failure| vec![failure])?;
    let mut failures = Vec::from_iter(check_root(document.root.as_deref()).err());
    let Some(patches) = document.patches else {
        failures.push(required("patches").field("patches"));
        return Err(failures);
    };
    let files = patches.0.into_iter().enumerate();
    let files = files.filter_map(|(index, file)| read_file(index, file, &mut failures)).collect();
    if failures.is_empty() { Ok((Batch { files, ..Batch::default() }, Vec::new())) } else { Err(listed(failures)) }
}

fn read_file(index: usize, file: FileDocument, failures: &mut Vec<Failure>) -> Option<FilePatch> {
    let place = |field: &str| Place::new(format!("patches[{index}].{field}"), index, None);
    if file.path.is_none() {
        failures.push(place("path").put_on(required("path")));
    }
    if file.replacements.is_none() {
        failures.push(place("replacements").put_on(required("replacements")));
    }
    let steps = file.replacements?.0.into_iter().enumerate();
    let steps = steps.filter_map(|(position, step)| {
        let step = read_step(step);
        let at =
            |field| Place::new(format!("patches[{index}].replacements[{position}].{field}"), index, Some(position));
        step.map_err(|found| failures.extend(found.into_iter().map(|(field, failure)| at(field).put_on(failure)))).ok()
    });
    let steps = steps.collect();
    let target = Target::Path(document_spelling(&file.path?));
    Some(FilePatch { target, key: None, label: None, edit: FileEdit::Replacements(Replacements { steps }) })
}

/// One replacement, or what is wrong with which of its fields.
fn read_step(step: ReplacementDocument) -> Result<Replacement, Vec<(&'static str, Failure)>> {
    let mut failures = Vec::new();
    let scope = match step.limit.as_deref() {
        None | Some("once") => Scope::First,
        Some("all") => Scope::All,
        Some(unknown) => {
            failures.push(("limit", unknown_limit(unknown)));
            Scope::First
        }
    };
    match (step.find, step.replace) {
        (Some(find), Some(replace)) if failures.is_empty() => return Ok(Replacement { find, replace, scope }),
        (find, replace) => {
            failures.extend(find.is_none().then(|| ("find", required("find"))));
            failures.extend(replace.is_none().then(|| ("replace", required("replace"))));
        }
    }
    Err(failures)
}

fn unknown_limit(unknown: &str) -> Failure {
    let shown: String = unknown.chars().take(40).collect();
    let message = format!("unknown limit {shown:?}, expected one of once, all");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).hint(json::instead(unknown, &LIMITS))
}
