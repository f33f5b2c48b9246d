//! `str_replace_based_edit_tool`: the commands of the text-editor tool that Anthropic's models were trained on.

use core::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

use super::look::{Look, View};
use super::roots::Roots;
use super::tool::{Call, Effect, Form, Set, Tool};
use super::{answer, schema};
use crate::documents::json::Whole;
use crate::documents::{self, Dialect, PartialDocument, json};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

pub(super) const TOOL: Tool = Tool {
    name: "str_replace_based_edit_tool",
    description: "View, create and edit files.\n\n\
        Inputs: command and path; view: view_range; create: file_text; str_replace: old_str (must occur exactly \
        once), new_str; insert: insert_line, insert_text.\n\n\
        Behavior: view shows a file with line numbers, or lists the files below a directory; the other commands \
        write. create is refused where there is a file.\n\n\
        Output: the lines of view; of other commands where the text is now, the file's SHA-256, warnings, the \
        unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: Some(Dialect::StrReplace),
    input: schema::input::<Arguments>,
    output: answer::viewed,
    parse: call,
};

const COMMANDS: [&str; 4] = ["view", "create", "str_replace", "insert"];

/// Read for `view` alone; the other commands are a document.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What is done
    #[schemars(extend("enum" = COMMANDS))]
    #[expect(dead_code, reason = "for the schema; it was read before")]
    command: String,
    /// The file, from the workspace root: src/main.rs; view: or a directory
    path: String,
    /// view: the first and the last line, [1, 40]; -1 is the end of the file
    view_range: Option<Range>,
    /// create: the whole content
    file_text: Option<String>,
    /// str_replace: the text as it is in the file, with its white space
    old_str: Option<String>,
    /// str_replace: the text that takes its place; empty: none
    new_str: Option<String>,
    /// insert: the line below which the text is inserted; 0 is the top of the file
    insert_line: Option<Whole>,
    /// insert: the text
    insert_text: Option<String>,
}

/// Two line numbers, or none; as a list, or as the JSON text of one.
struct Range(Vec<Whole>);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RangeVisitor;
        impl<'de> Visitor<'de> for RangeVisitor {
            type Value = Range;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two line numbers, such as [1, 40]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Range, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = list.next_element()? {
                    // A third one is enough to refuse the range.
                    if lines.len() < 3 {
                        lines.push(line);
                    }
                }
                Ok(Range(lines))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Range, E> {
                let lines = if text.is_empty() { Ok(Vec::new()) } else { serde_json::from_str(text) };
                lines.map(Range).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(RangeVisitor)
    }
}

impl JsonSchema for Range {
    fn schema_name() -> Cow<'static, str> {
        "Range".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 })
    }
}

/// What is read of any command, to find `view`.
#[derive(Deserialize)]
struct Named {
    command: Option<String>,
}

/// Whether these arguments are those of `view`.
pub(super) fn is_view(text: &str) -> bool {
    json::from_str::<Named>(text).is_ok_and(|named| named.command.as_deref() == Some("view"))
}

fn call(text: &str, roots: &Roots) -> Result<Call, PartialDocument> {
    let Named { command } = json::from_str(text)?;
    match command.as_deref() {
        Some("view") => Ok(view(json::from_str(text)?, roots)?),
        // The parser of documents refuses it as no edit of its own.
        Some(word) if !COMMANDS.contains(&word) && word != "undo_edit" => Err(unknown(word).into()),
        _ => documents::parse_part(text.as_bytes(), Some(Dialect::StrReplace)).map(Call::Document),
    }
}

fn unknown(word: &str) -> Failure {
    let shown: String = word.chars().take(40).collect();
    Failure::new(Reason::InvalidRequest, format!("unknown command {shown:?}, expected one of {}", COMMANDS.join(", ")))
        .detail(Detail::UnknownOperation)
        .field("command")
        .hint(json::instead(word, &COMMANDS))
}

fn view(arguments: Arguments, roots: &Roots) -> Result<Call, Failure> {
    let Arguments { path, view_range, file_text, old_str, new_str, insert_line, insert_text, .. } = arguments;
    let has_text = |text: Option<String>| text.is_some_and(|text| !text.is_empty());
    for (field, is_given) in [
        ("file_text", has_text(file_text)),
        ("old_str", has_text(old_str)),
        ("new_str", has_text(new_str)),
        ("insert_line", insert_line.is_some_and(|Whole(line)| line != 0)),
        ("insert_text", has_text(insert_text)),
    ] {
        if is_given {
            return Err(Failure::new(Reason::InvalidRequest, format!("'{field}' does not belong to command 'view'"))
                .detail(Detail::UnexpectedField)
                .field(field)
                .hint(format!("leave '{field}' out, or choose the command that has it")));
        }
    }
    let range = view_range.map(lines).transpose()?.flatten();
    Ok(Call::Look(Look::View(View { path: roots.directory(Some(&path))?, range })))
}

fn lines(Range(range): Range) -> Result<Option<(u32, Option<u32>)>, Failure> {
    let range: Vec<_> = range.into_iter().map(|Whole(line)| line).collect();
    let refuse = |detail: Detail, message: String| {
        Failure::new(Reason::LineRange, message)
            .detail(detail)
            .field("view_range")
            .hint("give the first and the last line, counted from 1; -1 is the end of the file")
    };
    let number = |line: i64| {
        let line = u32::try_from(line).ok().filter(|line| *line > 0);
        line.ok_or_else(|| refuse(Detail::Number, format!("{range:?} names a line that no file has")))
    };
    match *range.as_slice() {
        [] | [0, 0] => Ok(None),
        [first, -1] => Ok(Some((number(first)?, None))),
        [first, last] if last < first && last > 0 => {
            Err(refuse(Detail::Inverted, format!("the range ends at {last}, above its start {first}")))
        }
        [first, last] => Ok(Some((number(first)?, Some(number(last)?)))),
        _ => Err(refuse(Detail::Number, format!("{range:?} is no range, expected two line numbers"))),
    }
}
