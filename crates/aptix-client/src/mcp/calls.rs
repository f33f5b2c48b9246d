//! Carries out calls: arguments in, an answer out. They block.

use aptix_model::documents::terms::Wording;
use aptix_model::failure::Failure;
use aptix_model::id::Uuid;
use aptix_model::live::ListFiles;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Detail;
use aptix_model::record::UnixMillis;
use aptix_model::tools::list_directory::Listed;
use aptix_model::tools::look::{MOST_LINES, ReadFile, Search, View};
use aptix_model::tools::result::tool_result::{ToolResult, of_document, serialized};
use aptix_model::tools::tool::{Call, Effect, Tool};
use serde::Serialize;

use super::author::Author;
use super::called::Called;
use super::search::Show;
use super::until::Until;
use super::{past, prepared, read, search};
use crate::live::list::list;
use crate::policy::Policy;

/// Longest arguments that are parsed before the call's turn, in bytes.
const TURN_BYTES: usize = 4 << 10;

/// Carries out a call; it writes nothing once the caller no longer waits for it.
pub(super) fn call(author: &Author, called: &Called, arguments: &str, until: &Until) -> ToolResult {
    let tool = called.tool;
    let mut answer = match tool.parse(arguments, &author.roots) {
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

fn carry_out(author: &Author, called: &Called, call: Call, until: &Until) -> ToolResult {
    match call {
        Call::Document(document) => {
            let wording = Wording::Document(document.dialect);
            let tried = author.apply(&called.traced, wording, (&document.batch, None), until, &mut |_| Ok(()));
            called.ended(&document.batch, &tried);
            of_document(called.tool.form, &tried.result(&document.batch), &document.warnings)
        }
        Call::Prepare { patch, existing } => prepared::prepare(author, called, patch, existing),
        Call::Apply { hunk } => prepared::apply(author, called, hunk, until),
        Call::Edit { patch, wording } => prepared::edit(author, called, patch, wording, until),
        Call::Undo { batch } => past::undo(author, called, batch, until),
        Call::Read(call) => look(
            author,
            called,
            |policy| read::read(&author.workspace, policy, &call),
            |lines| vec![lines.head(), lines.text.clone()],
        ),
        Call::View(call) => view(author, called, &call, until),
        Call::List(call) => listed(author, called, &call, until),
        Call::History { most, path } => {
            let path = path.as_ref().map(WorkspacePath::as_str);
            look(author, called, |_| past::history(author, most, path), |found| vec![found.text()])
        }
        Call::Show { id } => past::show(author, called, &id),
        Call::FindFiles(call) => find(author, called, &call, Show::Files, until),
        Call::FindLines(call) => find(author, called, &call, Show::Lines, until),
    }
}

fn find(author: &Author, called: &Called, call: &Search, show: Show, until: &Until) -> ToolResult {
    look(
        author,
        called,
        |policy| search::search(&author.workspace, policy, call, show, until),
        |found| vec![found.text()],
    )
}

/// The answer of the command `view`: a file with line numbers, or the files below a directory.
fn view(author: &Author, called: &Called, call: &View, until: &Until) -> ToolResult {
    let Some(path) = &call.path else { return listed(author, called, &ListFiles::default(), until) };
    let (start_line, end_line) = call.range.unwrap_or((1, None));
    let file = ReadFile { path: path.clone(), start_line, end_line, max_lines: MOST_LINES };
    let read = author.policy().and_then(|policy| read::read(&author.workspace, &policy, &file));
    match read {
        Err(failure) if failure.detail == Some(Detail::NotRegular) && call.range.is_none() => {
            listed(author, called, &ListFiles { directory: Some(path.clone()), ..ListFiles::default() }, until)
        }
        read => look(author, called, |_| read, |lines| vec![lines.numbered()]),
    }
}

/// The answer of a tool that lists the files below a directory.
fn listed(author: &Author, called: &Called, call: &ListFiles, until: &Until) -> ToolResult {
    look(
        author,
        called,
        |policy| list(&author.workspace, policy, call, &|| until.is_over()).map(Listed::from),
        |found| vec![found.text()],
    )
}

/// The answer of a tool that only looks; `text` puts what it found into words.
fn look<T: Serialize>(
    author: &Author,
    called: &Called,
    look: impl FnOnce(&Policy) -> Result<T, Failure>,
    text: impl FnOnce(&T) -> Vec<String>,
) -> ToolResult {
    match author.policy().and_then(|policy| look(&policy)) {
        Ok(found) => ToolResult { text: text(&found), ..serialized(&found, false) },
        Err(failure) => called.refused(&author.for_model(failure).failures),
    }
}

/// The time and id that order a call among those that write: when it arrived, or when the edit that it applies was prepared.
pub(super) fn turn(author: &Author, tool: &Tool, arguments: &str) -> (UnixMillis, Uuid) {
    // What names a prepared edit is short; anything longer is refused when its turn has come.
    let is_short = arguments.len() <= TURN_BYTES;
    let applies = (tool.name == "apply_file_modification" && is_short).then(|| tool.parse(arguments, &author.roots));
    let prepared = match applies {
        Some(Ok(Call::Apply { hunk })) => author.hunks().turn(hunk),
        _ => None,
    };
    prepared.map_or_else(|| (author.now(), Uuid::nil()), |(created, hunk)| (created, hunk.0))
}
