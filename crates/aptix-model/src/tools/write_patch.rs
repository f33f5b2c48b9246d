//! `workspace_write_patch`: edits files by line numbers (TUL-002 4, 5). Its arguments are a document.

use super::tool::{Call, Effect, Form, Set, Tool};
use super::{answer, schema};
use crate::documents::line_patch::BatchDocument;
use crate::documents::{self, Dialect};

pub(super) const TOOL: Tool = Tool {
    name: "workspace_write_patch",
    description: "Edit files by line numbers, all of them or none.\n\n\
        Inputs: files[], each with docPath and originalSha256 (both from read_file) and changes[]: insert \
        (afterLine, newLines; 0 is the top), replace (startLine, endLine, expectedOriginalLines, newLines), delete \
        (startLine, endLine, expectedOriginalLines). Whole lines only, without terminators. Line numbers are those \
        of the original file; changes go from top to bottom and do not overlap; name each file once.\n\n\
        Behavior: refused as a whole if the digest or an expected line differs.\n\n\
        Output: an InvokeResult: successful, result (batchId, each file's filePatchId, SHA-256 and changeIds, your \
        keys; the diff), errors, warnings.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::InvokeResult,
    dialect: Some(Dialect::LinePatch),
    input: schema::input::<BatchDocument>,
    output: answer::invoke_result,
    parse: |text, _| documents::parse_part(text.as_bytes(), Some(Dialect::LinePatch)).map(Call::Document),
};
