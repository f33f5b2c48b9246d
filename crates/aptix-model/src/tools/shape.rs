//! The catalogue in the shapes that model providers take tools in.
//!
//! The natural schema of a tool leaves optional arguments out of `required`. The strict one is for constrained sampling: what
//! a provider cannot enforce is dropped from the schema, and stays in force in the parser.

use core::cell::Cell;
use core::fmt;
use core::str::FromStr;

use serde_json::{Map, Value, json};

use super::tool::{CATEGORY, EXECUTION_LOCATION, Effect, Tool};

/// Whose description of a tool it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// An item of `tools/list` of the Model Context Protocol.
    Mcp,
    /// An item of `tools` of OpenAI's Chat Completions; the Responses API takes the object `function` with a `type` in it.
    OpenAi,
    /// An item of `tools` of Anthropic's Messages.
    Anthropic,
    /// An item of `functionDeclarations` of Gemini.
    Gemini,
}

/// The word for a shape that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected mcp, openai, anthropic or gemini")]
pub struct UnknownShape;

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 4] = [Self::Mcp, Self::OpenAi, Self::Anthropic, Self::Gemini];

    const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Describes a tool to a provider. A strict schema has every argument; one without a value is null, except in Anthropic's
    /// shape, where it may still be left out, and where a tool with many optional arguments is not strict.
    #[must_use]
    pub fn render(self, tool: &Tool, is_strict: bool) -> Value {
        let (name, about, schema) = (tool.name, tool.description, self.schema(tool, is_strict));
        match self {
            Self::Mcp => json!({
                "name": name,
                "description": about,
                "inputSchema": schema,
                "outputSchema": tool.output_schema(),
                "annotations": {
                    "readOnlyHint": tool.effect != Effect::Writes,
                    "destructiveHint": tool.effect == Effect::Writes,
                    "openWorldHint": false,
                },
                "_meta": { "aptix/category": CATEGORY, "aptix/executionLocation": EXECUTION_LOCATION },
            }),
            Self::OpenAi => json!({
                "type": "function",
                "function": { "name": name, "description": about, "parameters": schema, "strict": is_strict },
            }),
            Self::Anthropic if is_strict && is_strict_for_anthropic(tool) => {
                json!({ "name": name, "description": about, "input_schema": schema, "strict": true })
            }
            Self::Anthropic => json!({ "name": name, "description": about, "input_schema": schema }),
            Self::Gemini => json!({ "name": name, "description": about, "parameters": schema }),
        }
    }

    fn schema(self, tool: &Tool, is_strict: bool) -> Value {
        let mut schema = Value::Object(tool.input_schema());
        match self {
            Self::Mcp | Self::Anthropic if !is_strict => {}
            Self::Mcp => fill(&mut schema, Absent::NullType),
            Self::OpenAi => {
                if is_strict {
                    fill(&mut schema, Absent::NullType);
                    keep(&mut schema, &OPENAI_STRICT);
                }
            }
            Self::Anthropic => {
                if is_strict_for_anthropic(tool) {
                    keep(&mut schema, &ANTHROPIC_STRICT);
                }
            }
            Self::Gemini => {
                if is_strict {
                    fill(&mut schema, Absent::Nullable);
                }
                one_type(&mut schema);
                keep(&mut schema, &GEMINI);
            }
        }
        schema
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(text: &str) -> Result<Self, UnknownShape> {
        Self::ALL.into_iter().find(|shape| shape.name() == text).ok_or(UnknownShape)
    }
}

/// What OpenAI's constrained sampling knows.
const OPENAI_STRICT: [&str; 11] = [
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];
/// What Anthropic's constrained sampling knows; it bounds no number and no list.
const ANTHROPIC_STRICT: [&str; 7] =
    ["type", "description", "enum", "items", "properties", "required", "additionalProperties"];
/// Optional arguments of a tool that is strict for Anthropic, which takes 20 strict tools with 24 optional arguments in all.
const ANTHROPIC_OPTIONAL: usize = 3;
/// What is common to the versions of Gemini's subset of OpenAPI.
const GEMINI: [&str; 11] = [
    "type",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];

/// How a schema says that an argument may be without a value.
#[derive(Clone, Copy)]
enum Absent {
    /// `null` is one of its types, and of its words.
    NullType,
    /// `nullable: true`.
    Nullable,
}

/// Calls `change` on each schema in a schema, the inner ones first.
fn each(schema: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| each(property, change));
    }
    if let Some(items) = schema.get_mut("items") {
        each(items, change);
    }
    change(schema);
}

/// Whether a tool leaves the others room in what Anthropic takes of strict tools.
fn is_strict_for_anthropic(tool: &Tool) -> bool {
    let optional = Cell::new(0);
    each(&mut Value::Object(tool.input_schema()), &|schema| {
        let count = |key: &str| match schema.get(key) {
            Some(Value::Object(properties)) => properties.len(),
            Some(Value::Array(names)) => names.len(),
            _ => 0,
        };
        optional.set(optional.get() + count("properties").saturating_sub(count("required")));
    });
    optional.get() <= ANTHROPIC_OPTIONAL
}

/// Drops every keyword but these.
fn keep(schema: &mut Value, keywords: &[&str]) {
    each(schema, &|schema| schema.retain(|keyword, _| keywords.contains(&keyword.as_str())));
}

/// Requires every property; one that was optional may be null.
fn fill(schema: &mut Value, absent: Absent) {
    each(schema, &|schema| {
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        for (name, property) in properties.iter_mut() {
            if let (false, Value::Object(property)) = (required.contains(&name.as_str().into()), property) {
                let_be_null(property, absent);
            }
        }
        let all: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        schema.insert("required".into(), all.into());
    });
}

fn let_be_null(schema: &mut Map<String, Value>, absent: Absent) {
    match absent {
        Absent::NullType => {
            let mut types = match schema.remove("type") {
                Some(Value::Array(types)) => types,
                one => Vec::from_iter(one),
            };
            types.push("null".into());
            schema.insert("type".into(), types.into());
            if let Some(Value::Array(words)) = schema.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        Absent::Nullable => {
            schema.insert("nullable".into(), true.into());
        }
    }
}

/// Leaves one type to what may have several, the text, and no empty word among words.
fn one_type(schema: &mut Value) {
    each(schema, &|schema| {
        if matches!(schema.get("type"), Some(Value::Array(_))) {
            schema.insert("type".into(), "string".into());
            schema.remove("minimum");
            schema.remove("maximum");
        }
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.retain(|word| word != "");
        }
    });
}
