//! `patch`: edits one file by its text (REQ-PATCH-006). Its arguments are a document.

use super::tool::{Call, Effect, Form, Set, Tool};
use super::{answer, schema};
use crate::documents::search_patch::PatchDocument;
use crate::documents::{self, Dialect};

pub(super) const TOOL: Tool = Tool {
    name: "patch",
    description: "Edit one file by its text.\n\n\
        Inputs: path, and patches[], each an operation: replace (oldText, which must occur in the file exactly \
        once, by newText), append_eof, prepend_bof (newText at the end, at the beginning), overwrite (the whole \
        file; creates it). toClipboard keeps the replaced text under a name, fromClipboard inserts it instead of \
        newText, here or in a later call. reindent takes the prefix strip from each non-empty line of the new text \
        and puts add in its place.\n\n\
        Behavior: all patches are found in the original file and applied at once, or none is. Old text that \
        differs from the file in white space only is found if that leaves one place, and the answer reports it. \
        More than 60,000 tokens are refused.\n\n\
        Output: where each patch is now and how it was found, the file's SHA-256, warnings, the unified diff.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: Some(Dialect::SearchPatch),
    input: schema::input::<PatchDocument>,
    output: answer::batch,
    parse: |text, _| documents::parse_part(text.as_bytes(), Some(Dialect::SearchPatch)).map(Call::Document),
};
