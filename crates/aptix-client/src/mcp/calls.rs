//! Carries out calls: arguments in, an answer out. They block.

use aptix_model::documents::terms::Wording;
use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use aptix_model::tools::result::tool_result::{ToolResult, of_document};
use aptix_model::tools::tool::{Call, Effect, Tool};

use super::author::Author;
use super::called::Called;
use super::until::Until;
use super::{hunks, past, prepared};
use crate::tools::reader::Reader;

/// Longest arguments that are parsed before the call's turn, in bytes.
const TURN_BYTES: usize = 4 << 10;

/// Carries out a call; it writes nothing once the caller no longer waits for it.
pub(super) fn call(author: &Author, called: &Called, arguments: &str, until: &Until) -> ToolResult {
    let tool = called.tool;
    let mut answer = match tool.parse(arguments, &author.roots) {
        Ok(call) => carry_out(author, called, call, until),
        Err(document) => called.refused(&author.reader().refuse(&document).failures),
    };
    if tool.effect == Effect::Writes {
        match author.workspace.unnamed_displaced_writes() {
            Ok(writes) => writes.iter().for_each(|write| answer.warn(&write.warning_elsewhere(&author.workspace))),
            Err(error) => tracing::warn!(%error, "displaced writes cannot be listed"),
        }
    }
    answer
}

fn carry_out(author: &Author, called: &Called, call: Call, until: &Until) -> ToolResult {
    match call {
        Call::Document(document) => {
            let wording = Wording::Document(document.dialect);
            let tried = author.apply(called, wording, (&document.batch, None), until, &mut |_| Ok(()));
            called.ended(&document.batch, &tried);
            of_document(called.tool.form, &tried.result(&document.batch), &document.warnings)
        }
        Call::Prepare { patch, existing } => prepared::prepare(author, called, patch, existing),
        Call::Apply { hunk } => prepared::apply(author, called, hunk, until),
        Call::Edit { patch, wording } => prepared::edit(author, called, patch, wording, until),
        Call::Undo { batch, reason } => past::undo(author, called, (batch, reason.as_deref()), until),
        Call::Look(look) => {
            let reader = Reader { is_over: &|| until.is_over(), ..author.reader() };
            reader.answer(&look).unwrap_or_else(|failure| called.refused(&[failure]))
        }
    }
}

/// Whether calls of a tool are ordered by when what they apply was prepared.
pub(super) fn applies_a_plan(tool: &Tool) -> bool {
    tool.name == "apply_file_modification"
}

/// The time and id that order a call that applies a plan: when that was prepared, or else when the call arrived. Reads a file.
pub(super) fn turn(author: &Author, tool: &Tool, arguments: &str) -> (UnixMillis, Uuid) {
    // What names a prepared edit is short; anything longer is refused when its turn has come.
    let is_short = arguments.len() <= TURN_BYTES;
    let applies = is_short.then(|| tool.parse(arguments, &author.roots));
    let prepared = match applies {
        Some(Ok(Call::Apply { hunk })) => hunks::turn(&author.workspace, hunk),
        _ => None,
    };
    prepared.map_or_else(|| (author.now(), Uuid::nil()), |(created, hunk)| (created, hunk.0))
}
