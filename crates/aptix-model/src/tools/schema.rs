//! JSON schemas, generated from the types that parse arguments and serialize answers.
//!
//! They stay within what model providers accept: one inline object without references, titles or number formats. An optional
//! argument is left out, never null; providers that require every field send `""` or 0 for it (WS-MOD 4.2).

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::documents::json::{Bounded, Whole};

/// The schema of arguments.
pub(super) fn input<A: JsonSchema>() -> Map<String, Value> {
    object::<A>(SchemaSettings::draft2020_12().for_deserialize().with_transform(argument))
}

/// The schema of an answer: its keys and their types, and no words, which the tool's description has.
pub(super) fn output<A: JsonSchema>() -> Map<String, Value> {
    object::<A>(SchemaSettings::draft2020_12().for_serialize().with_transform(answer))
}

fn object<A: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with_transform(plain).with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("description");
    core::mem::take(schema.ensure_object())
}

/// Removes what providers reject or models do not need.
fn plain(schema: &mut Schema) {
    schema.remove("title");
    schema.remove("format");
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    transform_subschemas(&mut plain, schema);
}

/// Leaves the type of a value, and of an object its keys.
fn answer(schema: &mut Schema) {
    for keyword in ["description", "minimum", "required", "items"] {
        schema.remove(keyword);
    }
    transform_subschemas(&mut answer, schema);
}

/// Removes null from the types of optional arguments.
fn argument(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    transform_subschemas(&mut argument, schema);
}

impl JsonSchema for Whole {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0 })
    }
}

impl<T: JsonSchema, const MAX: usize> JsonSchema for Bounded<T, MAX> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>(), "minItems": 1, "maxItems": MAX })
    }
}
