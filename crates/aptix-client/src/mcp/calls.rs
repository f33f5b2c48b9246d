//! Carries out calls: arguments in, an answer out. They block.

use aptix_model::failure::Failure;
use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use aptix_model::tools::look::Search;
use aptix_model::tools::tool::{Call, Effect, Tool};
use serde::Serialize;

use super::answer::{ToolAnswer, of_document, serialized};
use super::author::Author;
use super::called::Called;
use super::search::Show;
use super::until::Until;
use super::{prepared, read, search};
use crate::policy::Policy;

/// Longest arguments that are parsed before the call's turn, in bytes.
const TURN_BYTES: usize = 4 << 10;

/// Carries out a call; it writes nothing once the caller no longer waits for it.
pub(super) fn call(author: &Author, called: &Called, arguments: &str, until: &Until) -> ToolAnswer {
    let tool = called.tool;
    let mut answer = match tool.parse(arguments) {
        Ok(call) => carry_out(author, called, call, until),
        Err(document) => called.refused(&author.refuse(&document).failures),
    };
    if tool.effect == Effect::Writes {
        match author.workspace.unnamed_displaced_writes() {
            Ok(writes) => writes.iter().for_each(|write| answer.warn(&write.warning_elsewhere(&author.workspace))),
            Err(error) => tracing::warn!(%error, "displaced writes cannot be listed"),
        }
    }
    answer
}

fn carry_out(author: &Author, called: &Called, call: Call, until: &Until) -> ToolAnswer {
    match call {
        Call::Document(document) => {
            let tried =
                author.apply(&called.traced, Some(document.dialect), (&document.batch, None), until, &mut |_| Ok(()));
            called.ended(&document.batch, &tried);
            of_document(called.tool.form, &document.batch, &document.warnings, &tried)
        }
        Call::Prepare { patch, existing } => prepared::prepare(author, called, patch, existing),
        Call::Apply { hunk } => prepared::apply(author, called, hunk, until),
        Call::Overwrite { patch } => prepared::overwrite(author, called, patch, until),
        Call::Read(call) => look(
            author,
            called,
            |policy| read::read(&author.workspace, policy, &call),
            |lines| vec![lines.head(), lines.text.clone()],
        ),
        Call::FindFiles(call) => find(author, called, &call, Show::Files, until),
        Call::FindLines(call) => find(author, called, &call, Show::Lines, until),
    }
}

fn find(author: &Author, called: &Called, call: &Search, show: Show, until: &Until) -> ToolAnswer {
    look(
        author,
        called,
        |policy| search::search(&author.workspace, policy, call, show, until),
        |found| vec![found.text()],
    )
}

/// The answer of a tool that only looks; `text` puts what it found into words.
fn look<T: Serialize>(
    author: &Author,
    called: &Called,
    look: impl FnOnce(&Policy) -> Result<T, Failure>,
    text: impl FnOnce(&T) -> Vec<String>,
) -> ToolAnswer {
    match author.policy().and_then(|policy| look(&policy)) {
        Ok(found) => ToolAnswer { text: text(&found), ..serialized(&found, false) },
        Err(failure) => called.refused(&author.for_model(failure).failures),
    }
}

/// The time and id that order a call among those that write: when it arrived, or when the edit that it applies was prepared.
pub(super) fn turn(author: &Author, tool: &Tool, arguments: &str) -> (UnixMillis, Uuid) {
    // What names a prepared edit is short; anything longer is refused when its turn has come.
    let is_short = arguments.len() <= TURN_BYTES;
    let applies = (tool.name == "apply_file_modification" && is_short).then(|| tool.parse(arguments));
    let prepared = match applies {
        Some(Ok(Call::Apply { hunk })) => author.hunks().turn(hunk),
        _ => None,
    };
    prepared.map_or_else(|| (author.now(), Uuid::nil()), |(created, hunk)| (created, hunk.0))
}
