//! The calls and documents that the docs and the guide show, against the schemas and the parsers of every shape.
//!
//! They are found, not listed: in each fenced block and each here-document, every JSON object that is a call
//! (`{"name": TOOL, "arguments": {...}}`) or a document of a dialect that a tool takes, and every patch. In a block with
//! the word `refused` behind its language each has to be refused, in any other one accepted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aptix_model::documents::{self, Dialect};
use aptix_model::reason::Detail;
use aptix_model::tools::catalogue::{TOOLS, find};
use aptix_model::tools::guide::guide;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::Tool;
use serde_json::{Map, Value, json};

use super::shapes::standard;

/// A call that a text shows.
#[derive(Debug)]
struct Shown {
    /// The text, by its name.
    source: String,
    tool: &'static Tool,
    arguments: Value,
    is_refused: bool,
}

/// A fenced block or a here-document: the words behind its fence, and its text.
struct Block {
    words: String,
    text: String,
}

/// The blocks of a text, and those inside them.
fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (words, end) = if let Some(fence) = line.strip_prefix("```") {
            let words = fence.trim_start_matches('`');
            (words, line.strip_suffix(words).unwrap())
        } else if let Some((_, end)) = line.split_once("<<'") {
            ("", end.trim_end_matches('\''))
        } else {
            continue;
        };
        let inner: Vec<_> = lines.by_ref().take_while(|line| *line != end).collect();
        let text = inner.join("\n") + "\n";
        found.extend(blocks(&text));
        found.push(Block { words: words.to_owned(), text });
    }
    found
}

/// The JSON objects of a text that are in no other one.
fn objects(text: &str) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Map<String, Value>>();
        let length = match values.next() {
            Some(Ok(object)) => {
                found.push(object);
                values.byte_offset()
            }
            _ => 1,
        };
        rest = &rest[at + length..];
    }
    found
}

/// The call that an object is, if it is one or a document of a dialect.
fn call(source: &str, object: &Map<String, Value>) -> Option<(&'static Tool, Value)> {
    if let (Some(Value::String(name)), Some(arguments)) = (object.get("name"), object.get("arguments")) {
        return Some((find(name).unwrap_or_else(|failure| panic!("{source}: {failure}")), arguments.clone()));
    }
    let document = Value::Object(object.clone());
    let dialect = match documents::parse(document.to_string().as_bytes(), None) {
        Ok(parsed) => parsed.dialect,
        Err(failures) if failures[0].detail == Some(Detail::UnknownDialect) => return None,
        Err(failures) => panic!("{source}: {document}: {failures:?}"),
    };
    let tool = TOOLS.iter().find(|tool| tool.dialect == Some(dialect));
    Some((tool.unwrap_or_else(|| panic!("{source}: no tool takes {dialect}")), document))
}

/// The call whose argument is a patch, if a text is one.
fn patch(source: &str, text: &str) -> Option<(&'static Tool, Value)> {
    let is_patch = ["--- a/", "diff --git ", "*** Begin Patch"].iter().any(|start| text.starts_with(start));
    let parsed = is_patch.then(|| documents::parse(text.as_bytes(), None))?;
    let (tool, argument) = match parsed.unwrap_or_else(|failures| panic!("{source}: {text}: {failures:?}")).dialect {
        Dialect::CodexPatch => ("apply_patch", "input"),
        _ => ("apply_git_patch", "patch"),
    };
    Some((find(tool).unwrap(), json!({ argument: text })))
}

/// The calls that a text shows.
fn shown(source: &str, text: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    for Block { words, text } in blocks(text) {
        let is_refused = words.split(' ').any(|word| word == "refused");
        let documents = objects(&text);
        let calls = documents.iter().filter_map(|object| call(source, object));
        let patches = Vec::from_iter(if documents.is_empty() { patch(source, &text) } else { None });
        found.extend(calls.chain(patches).map(|(tool, arguments)| Shown {
            source: source.to_owned(),
            tool,
            arguments,
            is_refused,
        }));
    }
    found
}

/// The Markdown files below a directory.
fn markdown(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let found = entries.flat_map(|entry| match entry.file_type().unwrap().is_dir() {
        true => markdown(&entry.path()),
        false => vec![entry.path()],
    });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Every call that the README, the docs and the guide show.
fn all_shown() -> Vec<Shown> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = markdown(&top.join("docs"));
    files.push(top.join("README.md"));
    let of_file = |file: &PathBuf| {
        let name = file.strip_prefix(&top).unwrap().display().to_string();
        shown(&name, &std::fs::read_to_string(file).unwrap())
    };
    files.iter().flat_map(of_file).chain(shown("the guide", &guide(None))).collect()
}

/// The arguments as a provider decodes them that requires every one: null for each that is left out.
fn completed(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut object = object.clone();
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                let value = object.get(key).map_or(Value::Null, |value| completed(schema, value));
                object.insert(key.clone(), value);
            }
            Value::Object(object)
        }
        Value::Array(items) => items.iter().map(|item| completed(&schema["items"], item)).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_call_in_the_docs_fits_each_shape_and_its_parser() {
    let all = all_shown();
    for Shown { source, tool, arguments, is_refused } in &all {
        let natural = jsonschema::validator_for(&Value::Object(tool.input_schema())).unwrap();
        assert_eq!(natural.is_valid(arguments), !is_refused, "{source}: {} {arguments}", tool.name);
        for (shape, is_strict) in Shape::ALL.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let schema = standard(shape, tool, is_strict);
            let is_completed = is_strict && shape != Shape::Anthropic;
            let arguments = if is_completed { completed(&schema, arguments) } else { arguments.clone() };
            let told = format!("{source}: {shape}, strict {is_strict}: {} {arguments}", tool.name);
            let validator = jsonschema::validator_for(&schema).unwrap();
            let errors: Vec<_> = validator.iter_errors(&arguments).map(|error| error.to_string()).collect();
            assert!(*is_refused || errors.is_empty(), "{told}: {errors:?}");
            let parsed = tool.parse(&arguments.to_string(), &Roots::default());
            assert_eq!(parsed.is_err(), *is_refused, "{told}: {parsed:?}");
        }
    }
    let names = |is_refused: bool| -> BTreeSet<_> {
        all.iter().filter(|shown| shown.is_refused == is_refused).map(|shown| shown.tool.name).collect()
    };
    assert_eq!(names(false), TOOLS.iter().map(|tool| tool.name).collect(), "each tool is shown");
    assert!(names(true).len() > 2);
    let sources: BTreeSet<_> = all.iter().map(|shown| shown.source.as_str()).collect();
    assert_eq!(sources, ["README.md", "docs/reference/logs.md", "docs/reference/tools.md", "the guide"].into());
}

/// What the search finds in a text, and what it passes over.
#[test]
fn calls_are_found_in_blocks_and_here_documents() {
    let text = "`{\"path\":\"in a line\"}`\n\
        ```console\n$ cat > a.json <<'END'\n{ \"path\": \"a\",\n\"content\": \"}\" }\nEND\n{\"success\": true}\n```\n\
        ````\n```diff\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n```\n````\n\
        ```json refused\n{\"name\":\"read_file\",\"arguments\":{}}\n{\"name\":\"undo\",\"arguments\":3} {\n```\n";
    let mut found: Vec<_> = shown("a text", text).into_iter().map(|call| (call.tool.name, call.is_refused)).collect();
    found.dedup();
    let expected = [("workspace_create_file", false), ("apply_git_patch", false), ("read_file", true), ("undo", true)];
    assert_eq!(found, expected);
}
