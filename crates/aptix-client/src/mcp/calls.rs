//! Carries out calls: arguments in, an answer out. They block.

use aptix_model::failure::Failure;
use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use aptix_model::tools::look::Search;
use aptix_model::tools::tool::{Call, Effect, Form, Tool};
use serde::Serialize;

use super::answer::{ToolAnswer, of_document, refused, serialized};
use super::author::{Author, mint};
use super::hunks::CallNumber;
use super::search::Show;
use super::until::Until;
use super::{prepared, read, search};
use crate::policy::Policy;

/// Longest arguments that are parsed before the call's turn, in bytes.
const TURN_BYTES: usize = 4 << 10;

/// Carries out the call of this number; it writes nothing once the caller no longer waits for it.
pub(super) fn call(author: &Author, number: CallNumber, tool: &Tool, arguments: &str, until: &Until) -> ToolAnswer {
    let mut answer = match tool.parse(arguments) {
        Ok(call) => carry_out(author, number, tool.form, call, until),
        Err(failures) => refused(tool.form, &failures),
    };
    if tool.effect == Effect::Writes {
        match author.workspace.unnamed_displaced_writes() {
            Ok(writes) => writes.iter().for_each(|write| answer.warn(&write.warning_elsewhere(&author.workspace))),
            Err(error) => tracing::warn!(%error, "displaced writes cannot be listed"),
        }
    }
    answer
}

fn carry_out(author: &Author, number: CallNumber, form: Form, call: Call, until: &Until) -> ToolAnswer {
    match call {
        Call::Document(document) => {
            let tried = author.apply(mint(), Some(document.dialect), &document.batch, until, &mut |_| Ok(()));
            of_document(form, &document.batch, &document.warnings, &tried)
        }
        Call::Prepare { patch, existing } => prepared::prepare(author, number, patch, existing),
        Call::Apply { hunk } => prepared::apply(author, number, hunk, until),
        Call::Overwrite { patch } => prepared::overwrite(author, patch, until),
        Call::Read(call) => look(
            author,
            |policy| read::read(&author.workspace, policy, &call),
            |lines| vec![lines.head(), lines.text.clone()],
        ),
        Call::FindFiles(call) => find(author, &call, Show::Files, until),
        Call::FindLines(call) => find(author, &call, Show::Lines, until),
    }
}

fn find(author: &Author, call: &Search, show: Show, until: &Until) -> ToolAnswer {
    look(author, |policy| search::search(&author.workspace, policy, call, show, until), |found| vec![found.text()])
}

/// The answer of a tool that only looks; `text` puts what it found into words.
fn look<T: Serialize>(
    author: &Author,
    look: impl FnOnce(&Policy) -> Result<T, Failure>,
    text: impl FnOnce(&T) -> Vec<String>,
) -> ToolAnswer {
    match author.policy().and_then(|policy| look(&policy)) {
        Ok(found) => ToolAnswer { text: text(&found), ..serialized(&found, false) },
        Err(failure) => refused(Form::Plain, &author.for_model(failure).failures),
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
