//! The schemas of answers about batches, and of the parts that answers share.
//!
//! They name the keys that a model acts on; the answers carry more (the object of `aptix apply --json`).

use serde_json::{Map, Value, json};

use super::schema;

/// An object that has these properties, these of them always, and maybe others.
fn open(properties: Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), required.into());
    schema
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
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

/// A result of this type, or errors.
pub(super) fn or_errors<A: schemars::JsonSchema>() -> Map<String, Value> {
    let mut schema = schema::output::<A>();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("errors".into(), errors());
    }
    schema.insert("required".into(), ["success"].as_slice().into());
    schema
}

/// The outcome of a batch.
pub(super) fn batch() -> Map<String, Value> {
    open(
        json!({
            "success": { "type": "boolean" },
            "batchId": { "type": ["string", "null"], "description": "What aptix log and aptix undo know it by" },
            "state": { "type": "string", "enum": ["APPLIED", "PREPARED", "FAILED"] },
            "dryRun": { "type": "boolean" },
            "files": { "type": "array", "items": { "type": "object" }, "description": "What became of each file" },
            "errors": errors(),
            "warnings": warnings(),
            "diff": text("The unified diff; empty if it is too long"),
        }),
        &["success", "errors"],
    )
}

/// The outcome of a batch that is planned, or was.
pub(super) fn planned() -> Map<String, Value> {
    let mut schema = batch();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("hunkId".into(), text("What apply_file_modification takes"));
        let about = "Until when, in milliseconds since 1970";
        properties.insert("expiresAtMs".into(), json!({ "type": "integer", "minimum": 0, "description": about }));
    }
    schema
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
