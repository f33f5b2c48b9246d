//! The JSON schemas of what goes into the tools and what comes out. Providers that require every field may send `""` or 0
//! for one that is not given (WS-MOD 4.2).

use serde_json::{Map, Value, json};

/// An object that has these properties, these of them always, and no others.
fn strict(properties: Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = open(properties, required);
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// An object that has these properties, these of them always.
fn open(properties: Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), required.into());
    schema
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn lines(about: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": about })
}

fn number(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

fn path() -> Value {
    text("The file, relative to the workspace root, with forward slashes: src/main.rs")
}

fn existing() -> Value {
    text("A plan of yours, made by the same tool, that this one replaces; empty or left out: a new plan")
}

/// `workspace_write_patch` (TUL-002 4, 5).
pub(super) fn write_patch() -> Map<String, Value> {
    let change = strict(
        json!({
            "changeKey": text("Your own name for this change; echoed"),
            "operation": { "type": "string", "enum": ["insert", "replace", "delete"], "description": "What is done" },
            "description": text("Why, in a few words; echoed"),
            "afterLine": number("insert: the line below which newLines come; 0 is the top of the file"),
            "startLine": number("replace, delete: the first line, from 1"),
            "endLine": number("replace, delete: the last line, included"),
            "expectedOriginalLines": lines("replace, delete: the lines as they are now, verbatim, without terminators"),
            "newLines": lines("insert, replace: the lines that come, without terminators"),
        }),
        &["operation"],
    );
    let file = strict(
        json!({
            "fileKey": text("Your own name for this file's changes; echoed"),
            "docPath": text("The file: the root's name and its path, lower-case, as read_file gives it"),
            "originalSha256": text("SHA-256 of the whole file as it is now, in hex, as read_file gives it"),
            "fileLabel": text("What the changes of this file are for"),
            "changes": { "type": "array", "minItems": 1, "items": change, "description": "From top to bottom, without overlap" },
        }),
        &["docPath", "originalSha256", "changes"],
    );
    strict(
        json!({
            "batchLabel": text("What the batch is for"),
            "batchKey": text("Your own name for the batch; echoed"),
            "files": { "type": "array", "minItems": 1, "items": file, "description": "Each file once" },
        }),
        &["files"],
    )
}

/// `patch` (REQ-PATCH-006).
pub(super) fn patch() -> Map<String, Value> {
    let reindent = strict(
        json!({
            "strip": text("The prefix that each non-empty line of the new text has, and loses"),
            "add": text("The prefix that each of them gets"),
        }),
        &[],
    );
    let change = strict(
        json!({
            "operation": {
                "type": "string",
                "enum": ["replace", "append_eof", "prepend_bof", "overwrite"],
                "description": "What is done"
            },
            "oldText": text("replace: text that stands in the file exactly once"),
            "newText": text("What comes instead, or is added"),
            "toClipboard": text("replace: the name under which the old text is kept"),
            "fromClipboard": text("The name of kept text that is used as new text"),
            "reindent": reindent,
        }),
        &["operation"],
    );
    strict(
        json!({
            "path": path(),
            "patches": { "type": "array", "minItems": 1, "items": change, "description": "All found in the file as it is now" },
        }),
        &["path", "patches"],
    )
}

/// `workspace_create_file` (TUL-004 4.2).
pub(super) fn create_file() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "content": text("The full text of the file"),
            "overwrite": {
                "type": "boolean",
                "default": false,
                "description": "true if the file exists and is meant to be replaced"
            },
            "contentFormat": {
                "type": "string",
                "enum": ["", "verbatim"],
                "description": "verbatim: the content is meant as it is, even if it looks like a diff, a fenced block or a \
                                text with lines left out; empty: such content is refused"
            },
        }),
        &["path", "content"],
    )
}

/// `prepare_file_range_edit`.
pub(super) fn range_edit() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "range": text("10~20 for lines 10 to 20, 10 for one line, 10~ to the end, ~20 for the first 20"),
            "content": text("What comes in their place; empty: they go"),
            "existing_hunk_id": existing(),
        }),
        &["path", "range", "content"],
    )
}

/// `prepare_file_append`.
pub(super) fn append() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "content": text("The lines that come at the end"),
            "existing_hunk_id": existing(),
        }),
        &["path", "content"],
    )
}

fn matching() -> Value {
    let about = "How the anchor is compared with a line; empty: contains";
    json!({ "type": "string", "enum": ["", "contains", "equals", "regex"], "default": "contains", "description": about })
}

fn occurrence(about: &str) -> Value {
    json!({ "type": ["integer", "string"], "description": about })
}

/// `prepare_file_insert_after`, `prepare_file_insert_before`.
pub(super) fn insert() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "anchor": text("What describes the line"),
            "content": text("The lines that come"),
            "match": matching(),
            "occurrence": occurrence("Which of several lines that fit: from 1, or \"last\"; 0 or empty: it fits one line"),
            "existing_hunk_id": existing(),
        }),
        &["path", "anchor", "content"],
    )
}

/// `prepare_file_block_replace`.
pub(super) fn block_replace() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "start_anchor": text("What describes the line above the block"),
            "end_anchor": text("What describes the line below it: the next one below the start that fits"),
            "content": text("What comes in the place of the block; empty: it goes"),
            "include_anchors": {
                "type": "boolean",
                "default": true,
                "description": "true: the two anchor lines stay; false: they are replaced as well"
            },
            "match": matching(),
            "occurrence": occurrence("Which of several start lines: from 1, or \"last\"; 0 or empty: it fits one line"),
            "existing_hunk_id": existing(),
        }),
        &["path", "start_anchor", "end_anchor", "content"],
    )
}

/// `overwrite_entire_file`.
pub(super) fn overwrite() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "content": text("The whole new content"),
            "content_format": text("What the content is, for example verbatim, text or diff; empty: undeclared, and content that looks like a diff, a fenced block or a text with lines left out is refused"),
        }),
        &["path", "content"],
    )
}

/// `apply_file_modification`.
pub(super) fn apply() -> Map<String, Value> {
    strict(json!({ "hunk_id": text("The plan, as preparing it gave it") }), &["hunk_id"])
}

/// `read_file`.
pub(super) fn read_file() -> Map<String, Value> {
    strict(
        json!({
            "path": path(),
            "range": text("10~20, 10, 10~ or ~20; empty: from the first line"),
            "max_lines": number("How many lines at most; 0: 500; never more than 5000"),
        }),
        &["path"],
    )
}

fn search(pattern: &str) -> Value {
    let case = "smart: capitals count if the pattern has one; empty: smart";
    json!({
        "pattern": { "type": "string", "maxLength": 10_000, "description": pattern },
        "path": text("A file or directory, relative to the workspace root; empty or . : the whole workspace"),
        "case": { "type": "string", "enum": ["", "smart", "sensitive", "insensitive"], "default": "smart", "description": case },
        "glob": text("*.rs for names at any depth, src/**/*.rs for paths from the root down; empty: any file"),
        "max_files": number("Files at most; 0: 100; never more than 2000"),
        "max_results": number("Lines at most that ripgrep_content shows; 0: 200; never more than 2000"),
        "context": number("Lines that ripgrep_content shows above and below each; 0: none; never more than 20"),
    })
}

/// `ripgrep_files`.
pub(super) fn search_files() -> Map<String, Value> {
    strict(search("A regular expression in Rust's syntax that a line of the file fits; empty: any file"), &[])
}

/// `ripgrep_content`.
pub(super) fn search_lines() -> Map<String, Value> {
    strict(search("A regular expression in Rust's syntax that is looked for in each line"), &["pattern"])
}

fn errors() -> Value {
    let error = open(
        json!({
            "code": text("The reason, one of a fixed catalogue"),
            "detail": { "type": ["string", "null"] },
            "message": text("What was expected and what was found"),
            "hint": { "type": ["string", "null"], "description": "What to do next" },
            "path": { "type": ["string", "null"] },
            "changeIndex": { "type": ["integer", "null"] },
            "line": { "type": ["integer", "null"] },
            "nearest": { "type": "array", "items": { "type": "object" }, "description": "Real lines of the file" },
            "currentSha256": { "type": ["string", "null"] },
            "nextAction": { "type": ["object", "null"], "description": "The corrected call: tool and arguments" },
        }),
        &["code", "message"],
    );
    json!({ "type": "array", "items": error })
}

fn warnings() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}

fn batch() -> Value {
    json!({
        "success": { "type": "boolean" },
        "batchId": { "type": ["string", "null"], "description": "What aptix log and aptix undo know it by" },
        "state": { "type": "string", "enum": ["APPLIED", "PREPARED", "FAILED"] },
        "dryRun": { "type": "boolean" },
        "files": { "type": "array", "items": { "type": "object" }, "description": "What became of each file" },
        "errors": errors(),
        "warnings": warnings(),
        "diff": text("The unified diff; empty if it is too long"),
    })
}

/// What became of a batch.
pub(super) fn answer() -> Map<String, Value> {
    open(batch(), &["success", "errors"])
}

/// What became of a batch that is prepared, or was.
pub(super) fn prepared() -> Map<String, Value> {
    let mut properties = batch();
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("hunkId".to_owned(), text("What apply_file_modification takes"));
        properties.insert("expiresAtMs".to_owned(), number("Until when, in milliseconds since 1970"));
    }
    open(properties, &["success", "errors"])
}

/// The envelope of `workspace_write_patch` (TUL-002 9).
pub(super) fn invoke_result() -> Map<String, Value> {
    let result = json!({
        "type": ["object", "null"],
        "properties": {
            "batchId": { "type": "string" },
            "batchKey": { "type": ["string", "null"] },
            "batchLabel": { "type": ["string", "null"] },
            "files": { "type": "array", "items": { "type": "object" } },
            "diff": { "type": "string" },
        },
        "required": ["batchId", "files"],
    });
    open(
        json!({ "successful": { "type": "boolean" }, "result": result, "errors": errors(), "warnings": warnings() }),
        &["successful", "result", "errors", "warnings"],
    )
}

/// The result of `workspace_create_file` (TUL-004 4.3).
pub(super) fn created() -> Map<String, Value> {
    let codes = super::create_file::ERROR_CODES;
    let code = json!({ "type": ["string", "null"], "enum": codes.into_iter().map(Value::from).chain([Value::Null]).collect::<Vec<_>>() });
    strict(
        json!({
            "success": { "type": "boolean" },
            "message": { "type": "string" },
            "path": { "type": "string" },
            "sizeBytes": { "type": "integer", "minimum": 0 },
            "hash": text("SHA-256 of the bytes written, in hex; empty on failure"),
            "created": { "type": "boolean" },
            "overwritten": { "type": "boolean" },
            "errorCode": code,
        }),
        &["success", "message", "path", "sizeBytes", "hash", "created", "overwritten", "errorCode"],
    )
}

/// What `read_file` gives.
pub(super) fn lines_read() -> Map<String, Value> {
    open(
        json!({
            "success": { "type": "boolean" },
            "path": { "type": "string" },
            "docPath": { "type": "string" },
            "sha256": text("Of the whole file"),
            "sizeBytes": { "type": "integer" },
            "lineCount": { "type": "integer" },
            "startLine": { "type": "integer" },
            "endLine": { "type": "integer" },
            "nextRange": { "type": ["string", "null"] },
            "lineEndings": { "type": "string", "enum": ["lf", "crlf", "mixed", "none"] },
            "endsWithNewline": { "type": "boolean" },
            "isUtf8": { "type": "boolean" },
            "text": { "type": "string" },
            "errors": errors(),
        }),
        &["success"],
    )
}

/// What `ripgrep_*` gives.
pub(super) fn found() -> Map<String, Value> {
    let line = open(
        json!({ "line": { "type": "integer" }, "text": { "type": "string" }, "isMatch": { "type": "boolean" } }),
        &["line", "text", "isMatch"],
    );
    let file = open(
        json!({
            "path": { "type": "string" },
            "matches": { "type": "integer" },
            "lines": { "type": "array", "items": line },
        }),
        &["path"],
    );
    open(
        json!({
            "success": { "type": "boolean" },
            "files": { "type": "array", "items": file },
            "cut": { "type": ["string", "null"], "enum": ["max_files", "max_results", "size", "time", null] },
            "skipped": { "type": "integer" },
            "errors": errors(),
        }),
        &["success"],
    )
}
