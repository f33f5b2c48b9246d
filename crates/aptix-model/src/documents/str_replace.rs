//! The str-replace document: one command of the common text-editor tool, or a list of them. Commands on one file are
//! made at once, and refused where their order could matter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dialect::{Parsed, parsed};
use super::fields::{Fields, given};
use super::json::{self, Bounded, Named, Place, Whole};
use super::keys::Keys;
use super::noted;
use crate::batch::{
    Batch, Content, EditorCommand, EditorCommands, FileEdit, FilePatch, PartialBatch, Presence, Target, WriteFile,
};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};

/// How commands are recognised.
pub(super) const KEYS: Keys = Keys {
    unique: &["command", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"],
    others: &["path"],
};

const COMMANDS: [&str; 3] = ["create", "str_replace", "insert"];

/// Bytes of new text that are searched, to tell whether the order of commands matters.
const WORK: usize = 256 << 20;

#[derive(Deserialize, Serialize, Default)]
#[serde(deny_unknown_fields)]
struct CommandDocument {
    command: Option<String>,
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_str: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_str: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_line: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_text: Option<String>,
    #[serde(skip_serializing)]
    view_range: Option<Value>,
}

type Commands = Bounded<CommandDocument, { Limits::DEFAULT.changes }>;

impl Named for CommandDocument {
    const PLURAL: &'static str = "commands";
}

/// What a command does to its file.
enum Step {
    Create(String),
    Replace { old: String, new: String },
    Insert { line: i64, text: String },
}

/// What is wrong with the type of a value in a list of commands, and the way to it.
pub(super) fn misfit(text: &str) -> Option<(Failure, Vec<noted::Step>)> {
    is_list(text).then(|| json::misfit::<Commands>(text)).flatten()
}

fn is_list(text: &str) -> bool {
    !text.trim_start().starts_with('{')
}

pub(super) fn parse(text: &str) -> Parsed {
    let is_list = is_list(text);
    let commands = if is_list { json::from_str::<Commands>(text)?.0 } else { vec![json::from_str(text)?] };
    let mut part = PartialBatch::default();
    let mut files = Files { files: Vec::new(), positions: BTreeMap::new(), work: WORK };
    for (index, command) in commands.into_iter().enumerate() {
        let place = if is_list { format!("[{index}]") } else { String::new() };
        let mut fields = Fields::new(Place::named(place), &mut part.failures);
        let (Some(path), step) = read(&mut fields, command) else { continue };
        if let Err(failure) = files.add(index, path, step) {
            fields.refuse("path", failure);
        }
    }
    for (index, File { path, steps }) in files.files.into_iter().enumerate() {
        let edit = steps.map(lower);
        let file = edit.map(|edit| FilePatch { target: Target::Path(path), key: None, label: None, edit });
        part.add_file(index, |_| file);
    }
    parsed(part, Vec::new())
}

/// The commands of each file, in the order in which the files are named.
struct Files {
    files: Vec<File>,
    positions: BTreeMap<String, usize>,
    /// What is left of [`WORK`].
    work: usize,
}

/// The commands of one file, with their positions in the list; none if something is wrong with one of them.
struct File {
    path: String,
    steps: Option<Vec<(usize, Step)>>,
}

impl Files {
    /// Adds a command, or what is wrong with one, to its file.
    fn add(&mut self, index: usize, path: String, step: Option<Step>) -> Result<(), Failure> {
        let position = *self.positions.entry(path.clone()).or_insert(self.files.len());
        if position == self.files.len() {
            self.files.push(File { path, steps: Some(Vec::new()) });
        }
        let Some(File { steps: found, .. }) = self.files.get_mut(position) else { return Ok(()) };
        let Some(mut steps) = found.take() else { return Ok(()) };
        let Some(step) = step else { return Ok(()) };
        for (other, before) in &steps {
            self.work = before.cost(&step).and_then(|cost| self.work.checked_sub(cost)).ok_or_else(too_many)?;
            if let Some(why) = before.matters_to(&step) {
                let message = format!("the command edits the same file as command {other} of the list, and {why}");
                return Err(Failure::new(Reason::InvalidRequest, message)
                    .detail(Detail::DuplicatePath)
                    .hint("the commands of a list are made at once: send this one afterwards, on its own"));
            }
        }
        steps.push((index, step));
        *found = Some(steps);
        Ok(())
    }
}

fn too_many() -> Failure {
    Failure::new(Reason::TooLarge, "there are too many commands on this file to tell whether their order matters")
        .detail(Detail::Changes)
        .hint("send fewer of them at a time, one batch after the other")
}

impl Step {
    /// How much text has to be searched to tell whether this command matters to a later one.
    fn cost(&self, later: &Self) -> Option<usize> {
        let new = match self {
            Self::Replace { new, .. } => new.len(),
            Self::Insert { text, .. } => text.len(),
            Self::Create(_) => 0,
        };
        matches!(later, Self::Replace { .. }).then_some(new).unwrap_or_default().checked_add(1)
    }

    /// Why a later command would mean something else if it were made at the same time.
    fn matters_to(&self, later: &Self) -> Option<&'static str> {
        match (self, later) {
            (Self::Create(_), _) => Some("that creates it"),
            (_, Self::Create(_)) => Some("this creates it"),
            (Self::Replace { new, .. } | Self::Insert { text: new, .. }, Self::Replace { old, .. }) => {
                new.contains(old.as_str()).then_some("its old_str is in the new text there")
            }
            // Above what came below it, a line keeps its number.
            (Self::Insert { line, .. }, Self::Insert { line: later, .. }) if later < line => None,
            (Self::Replace { .. } | Self::Insert { .. }, Self::Insert { .. }) => {
                Some("its insert_line may be another line by then")
            }
        }
    }
}

/// The edit of one file: a single creation, or replacements and insertions.
fn lower(steps: Vec<(usize, Step)>) -> FileEdit {
    let mut commands = Vec::with_capacity(steps.len());
    for (_, step) in steps {
        commands.push(match step {
            Step::Create(content) => {
                return FileEdit::WriteFile(WriteFile {
                    content: Content::Text(content),
                    presence: Presence::Absent,
                    content_format: None,
                });
            }
            Step::Replace { old, new } => EditorCommand::StrReplace { old_text: old, new_text: new },
            Step::Insert { line, text } => EditorCommand::Insert { after_line: line, text },
        });
    }
    FileEdit::EditorCommands(EditorCommands { commands })
}

/// Reads a command: its file, and what it does to it.
fn read(fields: &mut Fields<'_>, document: CommandDocument) -> (Option<String>, Option<Step>) {
    let command = fields.require("command", document.command.as_deref());
    let path = fields.require("path", document.path.as_deref()).map(document_spelling);
    let command = command.filter(|command| is_edit(fields, command)).map(str::to_owned);
    (path, command.and_then(|command| read_step(fields, &command, document)))
}

/// Whether a field has a value; providers that require every field send an empty text or 0 for one that has none.
fn has_text(field: &Option<String>) -> bool {
    field.as_ref().is_some_and(|text| !text.is_empty())
}

/// Whether a range has lines; the others are what providers that require every field send for none.
fn has_lines(range: &Value) -> bool {
    match range {
        Value::Null => false,
        Value::String(text) => !matches!(text.as_str(), "" | "[]"),
        Value::Array(lines) => !lines.is_empty(),
        _ => true,
    }
}

fn read_step(fields: &mut Fields<'_>, command: &str, document: CommandDocument) -> Option<Step> {
    let mut is_whole = true;
    for (field, is_given, owners) in [
        ("file_text", has_text(&document.file_text), &["create"][..]),
        ("old_str", has_text(&document.old_str), &["str_replace"]),
        ("new_str", has_text(&document.new_str), &["str_replace", "insert"]),
        ("insert_line", document.insert_line.is_some_and(|line| line.0 != 0), &["insert"]),
        ("insert_text", has_text(&document.insert_text), &["insert"]),
        ("view_range", document.view_range.as_ref().is_some_and(has_lines), &["view"]),
    ] {
        let is_foreign = is_given && !owners.contains(&command);
        fields.forbid(field, is_foreign, &format!("command '{command}'"), ", or choose the command that has it");
        is_whole &= !is_foreign;
    }
    let step = match command {
        "create" => Step::Create(fields.require("file_text", document.file_text)?),
        "str_replace" => Step::Replace {
            old: fields.require("old_str", document.old_str)?,
            new: document.new_str.unwrap_or_default(),
        },
        _ => {
            let line = fields.require("insert_line", document.insert_line);
            let text = match (document.insert_text, document.new_str) {
                (Some(text), Some(other)) if !text.is_empty() && !other.is_empty() => {
                    let message = "'insert_text' and 'new_str' both give the text to insert, expected one of them";
                    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField);
                    fields.refuse("new_str", failure.hint("leave 'new_str' out"));
                    None
                }
                (text, other) => fields.require("insert_text", given(text.clone()).or(other).or(text)),
            };
            Step::Insert { line: line?.0, text: text? }
        }
    };
    is_whole.then_some(step)
}

/// Whether a command is one that edits; any other is refused.
fn is_edit(fields: &mut Fields<'_>, command: &str) -> bool {
    let (message, hint) = match command {
        command if COMMANDS.contains(&command) => return true,
        "view" => (
            "'view' edits nothing, expected create, str_replace or insert",
            "read the file with the means you have for reading, and send only edits",
        ),
        "undo_edit" => (
            "'undo_edit' is no edit of its own, expected create, str_replace or insert",
            "send the edit that takes the change back",
        ),
        unknown => {
            fields.unknown("command", unknown, &COMMANDS, Detail::UnknownOperation);
            return false;
        }
    };
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation);
    fields.refuse("command", failure.hint(hint));
    false
}

/// The commands that read as a batch: a single one, or a list. `None` if its edits are no such commands, or if their order
/// would matter.
pub(super) fn document(batch: &Batch) -> Option<String> {
    let mut commands = Vec::new();
    for file in &batch.files {
        add_commands(file, &mut commands)?;
    }
    let text = match commands.as_slice() {
        [command] => serde_json::to_string_pretty(command),
        commands => serde_json::to_string_pretty(commands),
    };
    text.ok().filter(|text| parse(text).is_ok_and(|(again, _)| again == *batch))
}

fn add_commands(file: &FilePatch, commands: &mut Vec<CommandDocument>) -> Option<()> {
    let command = |name: &str| CommandDocument {
        command: Some(name.into()),
        path: Some(file.target.as_str().into()),
        ..CommandDocument::default()
    };
    match &file.edit {
        FileEdit::WriteFile(WriteFile { content: Content::Text(text), .. }) => {
            commands.push(CommandDocument { file_text: Some(text.clone()), ..command("create") });
        }
        FileEdit::EditorCommands(edit) => commands.extend(edit.commands.iter().map(|edit| match edit {
            EditorCommand::StrReplace { old_text, new_text } => CommandDocument {
                old_str: Some(old_text.clone()),
                new_str: Some(new_text.clone()),
                ..command("str_replace")
            },
            EditorCommand::Insert { after_line, text } => CommandDocument {
                insert_line: Some(Whole(*after_line)),
                insert_text: Some(text.clone()),
                ..command("insert")
            },
        })),
        _ => return None,
    }
    Some(())
}
