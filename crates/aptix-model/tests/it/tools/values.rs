//! Values that a JSON Schema accepts, for the part of the language that schemas of arguments use; any other keyword is an error.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use serde_json::{Map, Value};

/// Which values are made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Making {
    /// Those that mean something: texts that can be parsed, and of a change only what its operation has.
    Meaningful,
    /// Any.
    Any,
}

/// The keywords that are understood, here or because they describe no value.
const KEYWORDS: [&str; 14] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "description",
    "default",
];

/// Texts with a grammar of their own, which no schema describes, by their key.
fn texts(key: &str) -> Option<&'static [&'static str]> {
    Some(match key {
        "path" | "file_path" | "to" => &["a", "src/main.rs", "./a\\b", "\u{e4}/\u{1f600}.txt"],
        "input" => &["*** Begin Patch\n*** Delete File: a\n*** End Patch\n"],
        "patch" => &["--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"],
        "id" => &["0", "018f6d2e-7c1a", "018f6d2e-7c1a-7b3e-9d55-0123456789ab"],
        "batch_id" => &["018f6d2e-7c1a-7b3e-9d55-012345670000"],
        "range" => &["1", "10~20", "3~", "~7", "~"],
        "hunk_id" => &["018f6d2e-7c1a-7b3e-9d55-0123456789ab"],
        "existing_hunk_id" => &["", "018f6d2e-7c1a-7b3e-9d55-0123456789ab"],
        "occurrence" => &["", "0", "3", "last"],
        _ => return None,
    })
}

/// Whether a change of an operation has the key: a flat schema cannot say which do.
fn belongs(operation: &str, key: &str) -> bool {
    match key {
        "afterLine" => operation == "insert",
        "startLine" | "endLine" | "expectedOriginalLines" => matches!(operation, "replace" | "delete"),
        "newLines" => matches!(operation, "insert" | "replace"),
        "content" | "contentFormat" => operation != "delete",
        "view_range" => operation == "view",
        "file_text" => operation == "create",
        "old_str" | "new_str" => operation == "str_replace",
        "insert_line" | "insert_text" => operation == "insert",
        "oldText" | "toClipboard" => operation == "replace",
        _ => true,
    }
}

/// Whether a change of an operation that has the key needs it.
fn is_needed(key: &str) -> bool {
    !matches!(key, "toClipboard" | "view_range") && (key == "content" || !belongs("", key))
}

/// The keys that choose what else an object has.
const CHOOSING: [&str; 2] = ["operation", "command"];

/// The keys that a schema requires.
pub(super) fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The types that a schema allows.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => Vec::from_iter(name.as_str()),
    }
}

/// Values that a schema accepts; `key` names the property.
pub(super) fn values(schema: &Value, key: &str, making: Making) -> BoxedStrategy<Value> {
    for keyword in schema.as_object().unwrap().keys() {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{key}: the keyword {keyword} is not understood");
    }
    if let Some(words) = schema["enum"].as_array() {
        return select(words.clone()).boxed();
    }
    let types = types(schema);
    assert!(!types.is_empty(), "{key}: {schema}");
    Union::new(types.into_iter().map(|name| of_type(name, schema, key, making))).boxed()
}

fn of_type(name: &str, schema: &Value, key: &str, making: Making) -> BoxedStrategy<Value> {
    match name {
        "object" => objects(schema, making),
        "array" => lists(schema, key, making),
        "boolean" => any::<bool>().prop_map(Value::Bool).boxed(),
        "integer" => numbers(schema, key, making),
        "null" => Just(Value::Null).boxed(),
        "string" => match texts(key).filter(|_| making == Making::Meaningful) {
            Some(texts) => select(texts).prop_map(Value::from).boxed(),
            None => {
                let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
                let most = schema["maxLength"].as_u64().map_or(30, |most| most.min(30) as usize);
                let characters = proptest::collection::vec(any::<char>(), least..=most);
                characters.prop_map(|characters| characters.into_iter().collect::<String>().into()).boxed()
            }
        },
        other => panic!("{key}: the type {other} is not understood"),
    }
}

fn lists(schema: &Value, key: &str, making: Making) -> BoxedStrategy<Value> {
    let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxItems"].as_u64().map_or(least + 3, |most| most.min(least as u64 + 3) as usize);
    let counts = if (key, making) == ("view_range", Making::Meaningful) { 2..=2 } else { least..=most };
    proptest::collection::vec(values(&schema["items"], key, making), counts).prop_map(Value::Array).boxed()
}

/// Whole numbers, written without a point.
fn numbers(schema: &Value, key: &str, making: Making) -> BoxedStrategy<Value> {
    // Two numbers are a range of lines: the rest of it is no matter of a schema.
    if (key, making) == ("view_range", Making::Meaningful) {
        return Just(Value::from(7)).boxed();
    }
    let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
    let least = schema["minimum"].as_i64();
    let from = least.map_or(0, |least| u64::try_from(least).unwrap());
    let usual = prop_oneof![from..=most, from..=from + 3, Just(most)].prop_map(Value::from);
    match least {
        Some(_) => usual.boxed(),
        None => prop_oneof![3 => usual, 1 => (i64::MIN..0).prop_map(Value::from), 1 => Just(Value::from(-1))].boxed(),
    }
}

fn objects(schema: &Value, making: Making) -> BoxedStrategy<Value> {
    let is_chosen = making == Making::Meaningful;
    let properties = schema["properties"].as_object().unwrap();
    let has_operations = is_chosen && CHOOSING.iter().any(|key| properties.contains_key(*key));
    let members: Vec<_> = properties
        .iter()
        .map(|(key, of_key)| {
            let is_required = required(schema).any(|name| name == key);
            let value = values(of_key, key, making);
            let value = match has_operations && is_needed(key) {
                true => value.prop_filter("it is needed", |value| !value.is_null()).boxed(),
                false => value,
            };
            let value = match is_required || (has_operations && is_needed(key)) {
                true => value.prop_map(Some).boxed(),
                false => prop_oneof![2 => value.prop_map(Some), 1 => Just(None)].boxed(),
            };
            let key = key.clone();
            value.prop_map(move |value| Some((key.clone(), value?)))
        })
        .collect();
    let required: Vec<_> = required(schema).map(str::to_owned).collect();
    members
        .prop_map(move |members| {
            let mut object: Map<_, _> = members.into_iter().flatten().collect();
            let chosen = CHOOSING.iter().find_map(|key| object.get(*key)?.as_str()).map(str::to_owned);
            if let Some(operation) = chosen.filter(|_| is_chosen) {
                object.retain(|key, value| {
                    let is_here = belongs(&operation, key);
                    if !is_here {
                        *value = Value::Null;
                    }
                    is_here || required.contains(key)
                });
            }
            Value::Object(object)
        })
        .boxed()
}
