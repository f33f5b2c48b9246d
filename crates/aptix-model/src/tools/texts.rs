//! Tools whose arguments are, or hold, a document of a dialect: codex patches, diffs, structured patches, file bundles.

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Call, Effect, Form, Set, Tool};
use super::{answer, schema};
use crate::documents::file_bundle::BundleDocument;
use crate::documents::structured_patch::PatchDocument;
use crate::documents::{self, Dialect, PartialDocument, json};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

pub(super) const CODEX: Tool = Tool {
    name: "apply_patch",
    description: "Edit, create, delete and move files by a patch without line numbers.\n\n\
        Inputs: input, the whole patch: '*** Begin Patch', then sections '*** Add File: PATH' (every line begins with \
        +), '*** Delete File: PATH', '*** Update File: PATH' (optionally '*** Move to: PATH', then chunks that begin \
        with '@@' or '@@ LINE', with lines that begin with a blank, - or +), then '*** End Patch'.\n\n\
        Behavior: all files or none; each chunk must fit one place.\n\n\
        Output: each file with where its chunks are now, SHA-256, warnings, the unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Codex>,
    output: answer::batch,
    parse: |text, _| {
        json::from_str(text).map_err(Into::into).and_then(|Codex { input }| patch("input", &input, Dialect::CodexPatch))
    },
};

pub(super) const GIT: Tool = Tool {
    name: "apply_git_patch",
    description: "Edit, create, delete and rename files by a unified diff.\n\n\
        Inputs: patch, the diff as git writes it: '--- a/PATH', '+++ b/PATH', hunks with '@@ -1,3 +1,4 @@'.\n\n\
        Behavior: all files or none; a hunk that is not at its line is applied where its lines occur, if that is \
        one place.\n\n\
        Output: each file with where its hunks are now, SHA-256, warnings, the unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Git>,
    output: answer::batch,
    parse: |text, _| {
        json::from_str(text)
            .map_err(Into::into)
            .and_then(|Git { patch: diff }| patch("patch", &diff, Dialect::GitPatch))
    },
};

pub(super) const STRUCTURED: Tool = Tool {
    name: "apply_structured_patch",
    description: "Replace texts in one or more files, all of them or none.\n\n\
        Inputs: patches[], each with path and replacements[] (find, replace, limit: once, the default, is the first \
        place, all is every place), made one after the other.\n\n\
        Behavior: a find that does not occur is refused; where it fits several places, the first one is taken and \
        a warning names the others.\n\n\
        Output: each file with where its replacements are now, SHA-256, warnings, the unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: Some(Dialect::StructuredPatch),
    input: schema::input::<PatchDocument>,
    output: answer::batch,
    parse: |text, _| written(text, Dialect::StructuredPatch),
};

pub(super) const BUNDLE: Tool = Tool {
    name: "apply_file_bundle",
    description: "Create, replace and delete whole files, all of them or none.\n\n\
        Inputs: files[], each with path, operation (create, replace or delete; empty: create or replace), content \
        (all of it; none for delete), contentFormat (verbatim: content that looks like an edit is meant).\n\n\
        Behavior: create is refused where there is a file, replace and delete where there is none. Missing \
        directories are made.\n\n\
        Output: each file with its status and SHA-256, warnings, the unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: Some(Dialect::FileBundle),
    input: schema::input::<BundleDocument>,
    output: answer::batch,
    parse: |text, _| written(text, Dialect::FileBundle),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Codex {
    /// The whole patch, from *** Begin Patch to *** End Patch
    input: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Git {
    /// The unified diff
    patch: String,
}

/// The call of a patch that is the text of one argument.
fn patch(argument: &str, text: &str, dialect: Dialect) -> Result<Call, PartialDocument> {
    if text.trim().is_empty() {
        let message = format!("'{argument}' is empty, expected the whole patch");
        let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::Empty).field(argument);
        return Err(failure.hint("give the whole patch, as the tool's description has it").into());
    }
    written(text, dialect)
}

fn written(text: &str, dialect: Dialect) -> Result<Call, PartialDocument> {
    documents::parse_part(text.as_bytes(), Some(dialect)).map(Call::Document)
}
