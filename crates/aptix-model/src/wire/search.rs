//! Edits that say which text they change, between the wire and the model: search patches, editor commands, replacements.

use super::field::{each, missing, unexpected, unknown_enum};
use super::v1;
use crate::batch::{
    EditorCommand, EditorCommands, Reindent, Replacement, Replacements, Scope, SearchChange, SearchOperation,
    SearchPatch,
};
use crate::failure::Failure;

pub(super) fn search_patch(file: usize, patch: v1::SearchPatch, failures: &mut Vec<Failure>) -> SearchPatch {
    SearchPatch { changes: each(file, patch.changes, failures, search_change) }
}

fn search_change(field: &str, change: v1::SearchChange) -> Result<SearchChange, Failure> {
    use v1::search_change::Operation as Wire;
    let operation = match change.operation {
        Some(Wire::Replace(replace)) => SearchOperation::Replace { old_text: replace.old_text },
        Some(Wire::AppendEof(v1::AppendEof {})) => SearchOperation::AppendEof,
        Some(Wire::PrependBof(v1::PrependBof {})) => SearchOperation::PrependBof,
        Some(Wire::Overwrite(v1::Overwrite {})) => SearchOperation::Overwrite,
        None => return Err(missing(&format!("{field}.operation"), "replace, appendEof, prependBof or overwrite")),
    };
    Ok(SearchChange {
        operation,
        new_text: change.new_text,
        to_clipboard: change.to_clipboard,
        from_clipboard: change.from_clipboard,
        reindent: change.reindent.map(|reindent| Reindent { strip: reindent.strip, add: reindent.add }),
    })
}

pub(super) fn search_change_message(change: SearchChange, change_id: String) -> v1::SearchChange {
    use v1::search_change::Operation as Wire;
    let operation = match change.operation {
        SearchOperation::Replace { old_text } => Wire::Replace(v1::ReplaceText { old_text }),
        SearchOperation::AppendEof => Wire::AppendEof(v1::AppendEof {}),
        SearchOperation::PrependBof => Wire::PrependBof(v1::PrependBof {}),
        SearchOperation::Overwrite => Wire::Overwrite(v1::Overwrite {}),
    };
    v1::SearchChange {
        change_id,
        operation: Some(operation),
        new_text: change.new_text,
        to_clipboard: change.to_clipboard,
        from_clipboard: change.from_clipboard,
        reindent: change.reindent.map(|reindent| v1::Reindent { strip: reindent.strip, add: reindent.add }),
    }
}

pub(super) fn editor_commands(file: usize, edit: v1::EditorCommands, failures: &mut Vec<Failure>) -> EditorCommands {
    EditorCommands { commands: each(file, edit.commands, failures, editor_command) }
}

fn editor_command(field: &str, command: v1::EditorCommand) -> Result<EditorCommand, Failure> {
    use v1::editor_command::Command as Wire;
    match command.command {
        Some(Wire::StrReplace(v1::StrReplace { old_text, new_text })) => {
            Ok(EditorCommand::StrReplace { old_text, new_text })
        }
        Some(Wire::Insert(v1::InsertText { after_line, text })) => Ok(EditorCommand::Insert { after_line, text }),
        None => Err(missing(&format!("{field}.command"), "strReplace or insert")),
    }
}

pub(super) fn editor_command_message(command: EditorCommand, change_id: String) -> v1::EditorCommand {
    use v1::editor_command::Command as Wire;
    let command = match command {
        EditorCommand::StrReplace { old_text, new_text } => Wire::StrReplace(v1::StrReplace { old_text, new_text }),
        EditorCommand::Insert { after_line, text } => Wire::Insert(v1::InsertText { after_line, text }),
    };
    v1::EditorCommand { change_id, command: Some(command) }
}

pub(super) fn replacements(file: usize, all: v1::Replacements, failures: &mut Vec<Failure>) -> Replacements {
    Replacements { steps: each(file, all.steps, failures, replacement) }
}

fn replacement(field: &str, step: v1::Replacement) -> Result<Replacement, Failure> {
    let scope = match (step.scope(), step.start_line) {
        (v1::Scope::First, None) => Scope::First,
        (v1::Scope::All, None) => Scope::All,
        (v1::Scope::Block, start_line) => Scope::Block { start_line },
        (v1::Scope::Unspecified, _) => return Err(unknown_enum(&format!("{field}.scope"), step.scope)),
        (v1::Scope::First | v1::Scope::All, Some(_)) => {
            return Err(unexpected(&format!("{field}.startLine"), "with SCOPE_BLOCK"));
        }
    };
    Ok(Replacement { find: step.find, replace: step.replace, scope })
}

pub(super) fn replacement_message(step: Replacement, change_id: String) -> v1::Replacement {
    let (scope, start_line) = match step.scope {
        Scope::First => (v1::Scope::First, None),
        Scope::All => (v1::Scope::All, None),
        Scope::Block { start_line } => (v1::Scope::Block, start_line),
    };
    v1::Replacement { change_id, find: step.find, replace: step.replace, scope: scope.into(), start_line }
}
