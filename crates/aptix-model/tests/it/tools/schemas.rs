//! Arguments generated from the schemas, against the parsers: what a schema accepts, its parser accepts; what lacks a required
//! key, or has an unknown one, both refuse.

use aptix_model::tools::catalogue::TOOLS;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::{Call, Tool};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::values::{Making, required, types, values};

/// What holds arguments against the schema of a tool.
fn validator(tool: &Tool) -> Validator {
    jsonschema::validator_for(&Value::Object(tool.input_schema())).unwrap()
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
        (Just(tool), values(&schema, "", Making::Meaningful))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_schema_accepts_its_parser_accepts((tool, arguments) in calls()) {
        let schema = Value::Object(tool.input_schema());
        let validator = validator(&tool);
        prop_assert!(validator.is_valid(&arguments), "{} {arguments}", tool.name);
        let parsed = tool.parse(&arguments.to_string(), &Roots::default());
        prop_assert!(parsed.is_ok(), "{} {arguments}: {parsed:?}", tool.name);
        for wrong in spoilt(&schema, &arguments) {
            prop_assert!(!validator.is_valid(&wrong), "{} {wrong}", tool.name);
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
    let is = |name: &str| types(schema).first() == Some(&name);
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
            assert!(!validator(tool).is_valid(&arguments), "{} {arguments}", tool.name);
            assert!(tool.parse(&arguments.to_string(), &Roots::default()).is_err(), "{} {arguments}", tool.name);
        }
    }
}
