//! `workspace_write_patch`: edits files by line numbers (TUL-002 4, 5). Its arguments are a document.

use super::tool::{Call, Effect, Form, Tool};
use super::{answer, schema};
use crate::documents::line_patch::BatchDocument;
use crate::documents::{self, Dialect};

pub(super) const TOOL: Tool = Tool {
    name: "workspace_write_patch",
    description: "Edit one or more files by line numbers, all of them or none.\n\n\
        Inputs: files[], each with docPath (the workspace root's name, then the path, lower-case; read_file gives \
        it), originalSha256 (SHA-256 of the whole file as it is now; read_file gives it) and changes[]: insert \
        (afterLine, newLines; 0 is the top), replace (startLine, endLine, expectedOriginalLines, newLines), delete \
        (startLine, endLine, expectedOriginalLines). Whole lines only, without their terminators. Line numbers are \
        those of the original file; changes go from top to bottom and do not overlap; each file is named once.\n\n\
        Behavior: refused as a whole if the digest or an expected line differs, with the file's real lines, its \
        current digest and, where it can be proven, the corrected call.\n\n\
        Output: an InvokeResult: successful, result (batchId, and for each file its filePatchId, SHA-256 and \
        changeIds; your keys and descriptions are echoed; the diff), errors, warnings.",
    effect: Effect::Writes,
    form: Form::InvokeResult,
    input: schema::input::<BatchDocument>,
    output: answer::invoke_result,
    parse: |text| documents::parse_part(text.as_bytes(), Some(Dialect::LinePatch)).map(Call::Document),
};
