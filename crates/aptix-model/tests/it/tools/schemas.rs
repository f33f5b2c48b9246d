//! Arguments generated from the schemas, against the parsers: what a schema accepts, its parser accepts; what lacks a required
//! key, or has an unknown one, both refuse.

use aptix_model::tools::catalogue::TOOLS;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::{Call, Tool};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

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

/// Keys of a change that belong to some operations only: a flat schema cannot say which.
fn belongs(operation: &str, key: &str) -> bool {
    match key {
        "afterLine" => operation == "insert",
        "startLine" | "endLine" | "expectedOriginalLines" => matches!(operation, "replace" | "delete"),
        "newLines" => matches!(operation, "insert" | "replace"),
        "content" => operation != "delete",
        "contentFormat" => operation != "delete",
        "view_range" => operation == "view",
        "file_text" => operation == "create",
        "old_str" => operation == "str_replace",
        "new_str" => operation == "str_replace",
        "insert_line" => operation == "insert",
        "insert_text" => operation == "insert",
        "oldText" => operation == "replace",
        "toClipboard" => operation == "replace",
        _ => true,
    }
}

/// Whether a change of an operation needs the key.
fn is_needed(key: &str) -> bool {
    !matches!(key, "toClipboard" | "view_range") && (key == "content" || !belongs("", key))
}

/// Values that a schema accepts; `key` names the property.
fn values(schema: &Value, key: &str) -> BoxedStrategy<Value> {
    if let Some(words) = schema["enum"].as_array() {
        return proptest::sample::select(words.clone()).boxed();
    }
    match &schema["type"] {
        Value::String(name) => of_type(name, schema, key),
        Value::Array(names) => {
            let types = names.iter().map(|name| of_type(name.as_str().unwrap(), schema, key));
            proptest::strategy::Union::new(types).boxed()
        }
        other => panic!("{key}: {other}"),
    }
}

fn of_type(name: &str, schema: &Value, key: &str) -> BoxedStrategy<Value> {
    let bound = |name: &str| schema[name].as_u64();
    match name {
        "object" => objects(schema),
        "array" => {
            let least = bound("minItems").unwrap_or(0) as usize;
            let counts = if key == "view_range" { 2..3 } else { least..least + 3 };
            proptest::collection::vec(values(&schema["items"], key), counts).prop_map(Value::Array).boxed()
        }
        "boolean" => any::<bool>().prop_map(Value::Bool).boxed(),
        "integer" => {
            // Two numbers are a range of lines: the rest of it is no matter of a schema.
            if key == "view_range" {
                return Just(Value::from(7)).boxed();
            }
            let (least, most) = (bound("minimum").unwrap(), bound("maximum").unwrap_or(u64::MAX));
            prop_oneof![least..=most, least..=least + 3, Just(most)].prop_map(Value::from).boxed()
        }
        "string" => match texts(key) {
            Some(texts) => proptest::sample::select(texts).prop_map(Value::from).boxed(),
            None => {
                let least = bound("minLength").unwrap_or(0) as usize;
                let most = bound("maxLength").map_or(30, |most| most.min(30) as usize);
                let characters = proptest::collection::vec(any::<char>(), least..=most);
                characters.prop_map(|characters| characters.into_iter().collect::<String>().into()).boxed()
            }
        },
        other => panic!("{key}: {other}"),
    }
}

fn objects(schema: &Value) -> BoxedStrategy<Value> {
    let properties = schema["properties"].as_object().unwrap();
    let has_operations = ["operation", "command"].iter().any(|key| properties.contains_key(*key));
    let members: Vec<_> = properties
        .iter()
        .map(|(key, schema_of)| {
            let always = required(schema).any(|name| name == key) || (has_operations && is_needed(key));
            let value = values(schema_of, key).prop_map(Some);
            let value = if always { value.boxed() } else { prop_oneof![2 => value, 1 => Just(None)].boxed() };
            let key = key.clone();
            value.prop_map(move |value| Some((key.clone(), value?)))
        })
        .collect();
    members
        .prop_map(|members| {
            let mut object: Map<_, _> = members.into_iter().flatten().collect();
            let operation =
                ["operation", "command"].iter().find_map(|key| object.get(*key)?.as_str()).map(str::to_owned);
            if let Some(operation) = operation {
                object.retain(|key, _| belongs(&operation, key));
            }
            Value::Object(object)
        })
        .boxed()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a schema accepts a value, as far as schemas of arguments use the language.
fn accepts(schema: &Value, value: &Value) -> bool {
    let types = match &schema["type"] {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let is = |name: &str| types.iter().any(|one| one == name);
    let within = |number: Option<u64>, least: &str, most: &str| {
        number.is_some_and(|number| {
            number >= schema[least].as_u64().unwrap_or(0) && schema[most].as_u64().is_none_or(|most| number <= most)
        })
    };
    let is_word = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    is_word
        && match value {
            Value::Object(object) => {
                is("object")
                    && schema["additionalProperties"] == false
                    && required(schema).all(|key| object.contains_key(key))
                    && object.iter().all(|(key, value)| {
                        let schema = schema["properties"].get(key);
                        schema.is_some_and(|schema| accepts(schema, value))
                    })
            }
            Value::Array(items) => {
                is("array")
                    && within(Some(items.len() as u64), "minItems", "maxItems")
                    && items.iter().all(|item| accepts(&schema["items"], item))
            }
            Value::String(text) => is("string") && within(Some(text.chars().count() as u64), "minLength", "maxLength"),
            Value::Number(number) => is("integer") && within(number.as_u64(), "minimum", "maximum"),
            Value::Bool(_) => is("boolean"),
            Value::Null => false,
        }
}

/// The same arguments with one required key less, or one unknown key more, at every object in them.
fn spoilt(schema: &Value, value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(object) => {
            let with = |key: &str, value: Option<Value>| {
                let mut object = object.clone();
                match value {
                    Some(value) => object.insert(key.to_owned(), value),
                    None => object.remove(key),
                };
                Value::Object(object)
            };
            all.extend(required(schema).map(|key| with(key, None)));
            all.push(with("zzz", Some("x".into())));
            for (key, value) in object {
                all.extend(spoilt(&schema["properties"][key], value).into_iter().map(|value| with(key, Some(value))));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                all.extend(spoilt(&schema["items"], item).into_iter().map(|item| {
                    let mut items = items.clone();
                    items[index] = item;
                    Value::Array(items)
                }));
            }
        }
        _ => {}
    }
    all
}

/// A digest is required only by the check against the file, whose error shows the real one.
fn is_left_to_the_engine(arguments: &Value) -> bool {
    let files = arguments["files"].as_array().into_iter().flatten();
    files.into_iter().any(|file| file.get("originalSha256").is_none())
}

fn calls() -> impl Strategy<Value = (Tool, Value)> {
    proptest::sample::select(TOOLS).prop_flat_map(|tool| {
        let schema = Value::Object(tool.input_schema());
        (Just(tool), values(&schema, ""))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_schema_accepts_its_parser_accepts((tool, arguments) in calls()) {
        let schema = Value::Object(tool.input_schema());
        prop_assert!(accepts(&schema, &arguments), "{} {arguments}", tool.name);
        let parsed = tool.parse(&arguments.to_string(), &Roots::default());
        prop_assert!(parsed.is_ok(), "{} {arguments}: {parsed:?}", tool.name);
        for wrong in spoilt(&schema, &arguments) {
            prop_assert!(!accepts(&schema, &wrong), "{} {wrong}", tool.name);
            let is_refused = tool.parse(&wrong.to_string(), &Roots::default()).is_err();
            prop_assert!(is_refused || is_left_to_the_engine(&wrong), "{} {wrong}", tool.name);
        }
    }
}

/// What a provider that requires every argument sends for one without a value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fill {
    Null,
    /// `""`, 0 or an empty list; a boolean is left out, since each of its values means something.
    Empty,
}

/// The same arguments, with a filler for every argument that is left out.
fn filled(schema: &Value, value: &Value, fill: Fill) -> Value {
    match value {
        Value::Object(object) => {
            let mut object = object.clone();
            for (key, schema) in schema["properties"].as_object().unwrap() {
                if let Some(value) = object.get_mut(key) {
                    *value = filled(schema, value, fill);
                } else if let Some(filler) = filler(schema, fill).filter(|_| !is_said_by(key, &object)) {
                    object.insert(key.clone(), filler);
                }
            }
            Value::Object(object)
        }
        Value::Array(items) => items.iter().map(|item| filled(&schema["items"], item, fill)).collect(),
        other => other.clone(),
    }
}

/// Whether an empty text for this key says something: what replaces the old text, if no clipboard does.
fn is_said_by(key: &str, object: &Map<String, Value>) -> bool {
    key == "newText" && object.get("fromClipboard").is_none_or(|name| name == "")
}

fn filler(schema: &Value, fill: Fill) -> Option<Value> {
    let is = |name: &str| schema["type"] == name || schema["type"].as_array().is_some_and(|types| types[0] == name);
    match fill {
        Fill::Null => Some(Value::Null),
        Fill::Empty if is("string") => Some("".into()),
        Fill::Empty if is("integer") => Some(0.into()),
        Fill::Empty if is("array") => Some(json!([])),
        Fill::Empty => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    /// WS-MOD-4.2.6: fillers never change what is applied: null means that there is no value, any other filler that too, or
    /// the call is refused by the name of the argument.
    #[test]
    fn fillers_of_strict_schemas_mean_nothing_or_are_refused_by_name((tool, arguments) in calls()) {
        let schema = Value::Object(tool.input_schema());
        let asked = |arguments: &Value| tool.parse(&arguments.to_string(), &Roots::default()).map(without_warnings);
        let natural = asked(&arguments).unwrap();
        let with_null = filled(&schema, &arguments, Fill::Null);
        prop_assert_eq!(asked(&with_null), Ok(natural.clone()), "{} {}", tool.name, with_null);
        let with_empty = filled(&schema, &arguments, Fill::Empty);
        match asked(&with_empty) {
            Ok(call) => prop_assert_eq!(call, natural, "{} {}", tool.name, with_empty),
            Err(document) => {
                prop_assert!(document.part.failures.iter().all(|failure| failure.field.is_some()), "{document:?}");
            }
        }
    }
}

/// A call without what was read and has no effect.
fn without_warnings(mut call: Call) -> Call {
    if let Call::Document(document) = &mut call {
        document.warnings.clear();
    }
    call
}

/// What is no object at all is refused as well.
#[test]
fn arguments_are_an_object() {
    for tool in TOOLS {
        for arguments in [json!([]), json!(null), json!("x"), json!(3)] {
            assert!(!accepts(&Value::Object(tool.input_schema()), &arguments), "{} {arguments}", tool.name);
            assert!(tool.parse(&arguments.to_string(), &Roots::default()).is_err(), "{} {arguments}", tool.name);
        }
    }
}
