//! A call of a tool that takes a document: its name, and its arguments, which are the document.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fence::Block;
use super::place::{at_its_lines, refused, within};
use crate::documents::json;
use crate::documents::json_dialect::JsonDialect;
use crate::failure::Failure;

const FORM: &str = "write the call as {\"name\": ..., \"arguments\": {...}}, or its edit as a file bundle";

/// The tools whose arguments are a document, and the dialect that it is written in.
const TOOLS: [(&str, JsonDialect); 9] = [
    ("workspace_create_file", JsonDialect::CreateFile),
    ("workspace_write_patch", JsonDialect::LinePatch),
    ("patch", JsonDialect::SearchPatch),
    ("apply_structured_patch", JsonDialect::StructuredPatch),
    ("apply_file_bundle", JsonDialect::FileBundle),
    ("str_replace_based_edit_tool", JsonDialect::StrReplace),
    ("str_replace_editor", JsonDialect::StrReplace),
    ("str_replace_based_edit", JsonDialect::StrReplace),
    ("text_editor", JsonDialect::StrReplace),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Box<RawValue>,
}

/// The document that a call gives a tool.
pub(super) fn called(block: Block) -> Result<(JsonDialect, Block), Failure> {
    let text = at_its_lines(&block);
    let read = json::text(text.as_bytes());
    let Call { name, arguments } = read.and_then(json::from_str).map_err(|failure| {
        let failure = Failure { hint: failure.hint.or_else(|| Some(FORM.to_owned())), ..failure };
        within(&block, failure)
    })?;
    let Some((_, dialect)) = TOOLS.into_iter().find(|(tool, _)| *tool == name) else {
        let shown: String = name.chars().take(60).collect();
        let tools: Vec<&str> = TOOLS.into_iter().map(|(tool, _)| tool).collect();
        let message = format!("the answer calls the tool {shown:?}, and calls of it are not read from answers");
        return Err(refused(
            block.first_line,
            message,
            format!("call one of {}, write the edit into a block, or leave the call out", tools.join(", ")),
        ));
    };
    // What is wrong with the arguments is reported at their lines.
    let above = text.split_once(arguments.get()).map_or("", |(above, _)| above);
    let text_line = above.matches('\n').count() + 1;
    let arguments = arguments.get().to_owned();
    Ok((dialect, Block { text: arguments, text_line, ..block }))
}
