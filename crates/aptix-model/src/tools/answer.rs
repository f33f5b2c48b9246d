//! The schemas of answers about batches: the keys that a model acts on, and no more. Every answer carries more (the object
//! of `aptix apply --json`), and the guide says what an error holds.

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

fn list() -> Value {
    json!({ "type": "array" })
}

/// A result of this type, or errors.
pub(super) fn or_errors<A: schemars::JsonSchema>() -> Map<String, Value> {
    let mut schema = schema::output::<A>();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("errors".into(), list());
    }
    schema.insert("required".into(), ["success"].as_slice().into());
    schema
}

/// The outcome of a batch.
pub(super) fn batch() -> Map<String, Value> {
    open(
        json!({
            "success": { "type": "boolean" },
            "batchId": { "type": ["string", "null"] },
            "files": list(),
            "errors": list(),
            "diff": { "type": "string" },
        }),
        &["success", "errors"],
    )
}

/// The outcome of a batch, or what was looked at: neither is always there.
pub(super) fn viewed() -> Map<String, Value> {
    let mut schema = batch();
    schema.insert("required".into(), ["success"].as_slice().into());
    schema
}

/// The outcome of a batch that is planned, or was.
pub(super) fn planned() -> Map<String, Value> {
    let mut schema = batch();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("hunkId".into(), json!({ "type": "string" }));
        properties.insert("expiresAtMs".into(), json!({ "type": "integer", "minimum": 0 }));
    }
    schema
}

/// The envelope of `workspace_write_patch` (TUL-002 9).
pub(super) fn invoke_result() -> Map<String, Value> {
    let result = json!({ "type": ["object", "null"] });
    open(
        json!({ "successful": { "type": "boolean" }, "result": result, "errors": list(), "warnings": list() }),
        &["successful", "result", "errors", "warnings"],
    )
}
