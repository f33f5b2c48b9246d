//! Whether a block of an answer that may be JSON is an edit, nearly one, or an example of something else.

use super::call;
use super::fence::Block;
use super::place::{at_its_lines, place, refused, within};
use crate::documents::json_dialect::{JsonDialect, recognise_json};
use crate::documents::telling::{Telling, broken_edit, recognise_telling};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Tags of blocks that hold JSON.
const TAGS: [&str; 3] = ["json", "jsonc", "json5"];

/// Whether blocks with this tag, in lower case, hold JSON.
pub(super) fn is_tag(tag: &str) -> bool {
    TAGS.contains(&tag)
}

/// Whether a tag, in lower case, says that a block is an edit in one of the dialects written in JSON.
pub(super) fn is_own_tag(tag: &str) -> bool {
    tag.strip_prefix("aptix")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')))
}

/// The edit in a block of JSON that is not blank, and its dialect; or why it is none.
///
/// # Errors
/// It is nearly an edit, or one that needs an envelope, or a call of another tool.
pub(super) fn edit(block: &Block) -> Result<Result<(JsonDialect, Block), String>, Failure> {
    let text = block.text.trim();
    match recognise_telling(text) {
        Ok(Telling::Edit(dialect)) => Ok(Ok((dialect, block.clone()))),
        Ok(Telling::Arguments(dialect)) => Err(bare(block, dialect)),
        Ok(Telling::Envelope) => call::called(block.clone()).map(Ok),
        Ok(Telling::Other(keys)) => Ok(Err(keys)),
        Err(failure) if broken_edit(text) => {
            let again = recognise_telling(&at_its_lines(block)).err();
            Err(within(block, again.unwrap_or(failure)))
        }
        Err(_) => Ok(Err("it is no JSON".to_owned())),
    }
}

/// The edit in a block whose tag says that it is one, and its dialect.
///
/// # Errors
/// It is none.
pub(super) fn own(block: Block) -> Result<(JsonDialect, Block), Failure> {
    if let Ok(Telling::Envelope) = recognise_telling(block.text.trim()) {
        return call::called(block);
    }
    let block = &block;
    let found = recognise_json(block.text.trim().as_bytes()).map_err(|failure| {
        let again = recognise_json(at_its_lines(block).as_bytes());
        within(block, again.err().unwrap_or(failure))
    })?;
    found.map(|dialect| (dialect, block.clone())).map_err(|keys| {
        let message = format!("the {} is in no dialect that is understood: {keys}", place(block));
        Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::UnknownDialect)
            .hint("write a file bundle, a structured patch, a search patch or a line patch into the block")
    })
}

/// Refuses the arguments of a tool without the call around them: they may be a sample of data.
fn bare(block: &Block, dialect: JsonDialect) -> Failure {
    let (what, tool) = match dialect {
        JsonDialect::StrReplace => ("a command of a text-editor tool", "str_replace_based_edit_tool"),
        _ => ("a path and a content", "workspace_create_file"),
    };
    let message = format!(
        "the {} holds {what}, which is an edit only in the envelope of a tool call, and may be a sample",
        place(block)
    );
    let hint = format!(
        "write a file bundle, {{\"files\": [{{\"path\": ..., \"operation\": ..., \"content\": ...}}]}}, or the envelope \
         <tool_call>{{\"name\": \"{tool}\", \"arguments\": ...}}</tool_call>; leave the block out if it is a sample"
    );
    refused(None, message, hint)
}
