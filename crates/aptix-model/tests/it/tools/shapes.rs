//! The catalogue in each provider's shape: what each accepts of schemas, and that a strict call means what the natural one does.

use aptix_model::tools::catalogue::{Selection, TOOLS, find};
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::Tool;
use serde_json::{Value, json};

use super::values::required;

/// The keywords that each provider's strict mode takes, as its documentation lists them.
fn known(shape: Shape) -> &'static [&'static str] {
    match shape {
        Shape::Mcp => &["default", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", OPEN],
        Shape::OpenAi => &["minimum", "maximum", "minItems", "maxItems", OPEN],
        Shape::Anthropic => &[OPEN],
        Shape::Gemini => &["nullable", "minimum", "maximum", "minItems", "maxItems"],
    }
}

const OPEN: &str = "additionalProperties";

fn schema_of(shape: Shape, tool: &Value) -> &Value {
    match shape {
        Shape::Mcp => &tool["inputSchema"],
        Shape::OpenAi => &tool["function"]["parameters"],
        Shape::Anthropic => &tool["input_schema"],
        Shape::Gemini => &tool["parameters"],
    }
}

/// The schema of a tool in a provider's shape, as the same in the language of JSON Schema.
pub(super) fn standard(shape: Shape, tool: &Tool, is_strict: bool) -> Value {
    let mut schema = schema_of(shape, &shape.render(tool, is_strict)).clone();
    if shape == Shape::Gemini {
        nullable_to_null(&mut schema);
    }
    schema
}

/// `nullable` is the word of OpenAPI 3.0 for the type null.
fn nullable_to_null(schema: &mut Value) {
    let object = schema.as_object_mut().unwrap();
    if object.remove("nullable") == Some(true.into()) {
        object["type"] = json!([object["type"], "null"]);
        object.get_mut("enum").and_then(Value::as_array_mut).into_iter().for_each(|words| words.push(Value::Null));
    }
    object.get_mut("items").into_iter().for_each(nullable_to_null);
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(|properties| properties.values_mut()).for_each(nullable_to_null);
}

/// What a provider counts in schemas.
#[derive(Default, Debug)]
struct Counts {
    properties: usize,
    optional: usize,
    /// Properties of several types.
    unions: usize,
    words: usize,
    depth: usize,
}

impl Counts {
    /// Adds what is in a schema, `depth` objects deep.
    fn add(&mut self, schema: &Value, depth: usize) {
        self.unions += usize::from(schema["type"].is_array());
        self.words += schema["enum"].as_array().map_or(0, Vec::len);
        self.depth = self.depth.max(depth);
        if let Some(properties) = schema["properties"].as_object() {
            self.properties += properties.len();
            self.optional += properties.len() - required(schema).count();
            properties.values().for_each(|property| self.add(property, depth + 1));
        }
        if schema["type"] == "array" {
            self.add(&schema["items"], depth);
        }
    }
}

fn check(shape: Shape, schema: &Value) {
    let common = ["type", "description", "enum", "items", "properties", "required"];
    for keyword in schema.as_object().unwrap().keys() {
        let is_known = common.contains(&keyword.as_str()) || known(shape).contains(&keyword.as_str());
        assert!(is_known, "{shape}: {keyword}");
    }
    if let Some(properties) = schema["properties"].as_object() {
        if shape != Shape::Anthropic {
            let all = properties.keys().all(|key| required(schema).any(|name| name == key));
            assert!(all, "{shape}: {schema}");
        }
        assert!(shape == Shape::Gemini || schema[OPEN] == false, "{shape}: {schema}");
        for (name, property) in properties {
            assert!(is_name(name), "{shape}: {name}");
            check(shape, property);
        }
    }
    if shape == Shape::Gemini {
        assert!(schema["type"].is_string(), "{schema}");
        assert!(!schema["enum"].as_array().is_some_and(|words| words.iter().any(|word| word == "" || word.is_null())));
    }
    if schema["type"] == "array" || schema["type"] == json!(["array", "null"]) {
        check(shape, &schema["items"]);
    }
}

/// The names that every provider takes, of tools and of arguments: `[a-zA-Z_][a-zA-Z0-9_]{0,63}`.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = name.bytes();
    bytes.next().is_some_and(is_letter)
        && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && name.len() <= 64
}

/// Whether a rendered tool asks its provider to hold calls to the schema.
fn is_held(shape: Shape, rendered: &Value) -> bool {
    shape != Shape::Anthropic || rendered["strict"] == true
}

#[test]
fn a_strict_schema_has_only_what_its_provider_enforces() {
    for shape in Shape::ALL {
        for tool in TOOLS {
            let rendered = shape.render(tool, true);
            if is_held(shape, &rendered) {
                check(shape, schema_of(shape, &rendered));
            }
            let about = if shape == Shape::OpenAi { &rendered["function"] } else { &rendered };
            assert_eq!((&about["name"], is_name(tool.name)), (&tool.name.into(), true));
            // OpenAI takes 1,024 characters.
            assert!(about["description"].as_str().unwrap().chars().count() <= 1024, "{}", tool.name);
        }
        assert_eq!(shape.to_string().parse(), Ok(shape));
    }
    let tool = find("read_file").unwrap();
    assert_eq!(Shape::OpenAi.render(tool, true)["function"]["strict"], true);
    assert_eq!(Shape::OpenAi.render(tool, false)["function"]["strict"], false);
    assert_eq!(Shape::Anthropic.render(tool, true)["strict"], true);
    assert!(Shape::Anthropic.render(tool, false).get("strict").is_none());
}

/// OpenAI limits each schema: 100 properties, 5 levels and 500 words were the least that it ever took. Anthropic takes, of all
/// tools of a request together, 20 strict ones with 24 optional arguments and 16 of several types.
#[test]
fn the_whole_catalogue_is_within_what_providers_take_of_strict_schemas() {
    for tool in TOOLS {
        let mut counts = Counts::default();
        counts.add(schema_of(Shape::OpenAi, &Shape::OpenAi.render(tool, true)), 1);
        let is_taken = counts.properties <= 100 && counts.depth <= 5 && counts.words <= 500 && counts.optional == 0;
        assert!(is_taken, "{}: {counts:?}", tool.name);
    }
    let rendered = TOOLS.iter().map(|tool| Shape::Anthropic.render(tool, true));
    let strict: Vec<_> = rendered.filter(|tool| is_held(Shape::Anthropic, tool)).collect();
    let mut counts = Counts::default();
    strict.iter().for_each(|tool| counts.add(schema_of(Shape::Anthropic, tool), 1));
    assert!(
        (15..=20).contains(&strict.len()) && counts.optional <= 24 && counts.unions <= 16,
        "{} {counts:?}",
        strict.len()
    );
}

/// The set that is enough for every edit costs a model at most 16 KiB, and no schema of answers more than 600 bytes.
#[test]
fn the_core_catalogue_has_at_most_16_kib() {
    let size = |words: &str| {
        let tools: Vec<_> =
            Selection::parse(words).unwrap().tools().iter().map(|tool| Shape::Mcp.render(tool, false)).collect();
        json!({ "tools": tools }).to_string().len()
    };
    assert!(size("core") <= 16 << 10, "{}", size("core"));
    assert!(size("core") < size("all"));
    for tool in TOOLS {
        let size = Value::Object(tool.output_schema()).to_string().len();
        assert!(size <= 600, "{}: {size}", tool.name);
    }
}

#[test]
fn tools_are_chosen_by_set_and_by_name() {
    let chosen = |words: &str| {
        Selection::parse(words).map(|chosen| chosen.tools().iter().map(|tool| tool.name).collect::<Vec<_>>())
    };
    assert_eq!(chosen("all").unwrap().len(), TOOLS.len());
    assert_eq!(chosen("read_file, patch").unwrap(), ["patch", "read_file"], "in the order of the catalogue");
    let with_another = chosen("core,apply_file_modification").unwrap();
    assert_eq!(with_another.len(), chosen("core").unwrap().len() + 1);
    let failure = chosen("core,read_fil").unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("did you mean read_file?"));
    assert!(chosen("").is_err());
    let failure = Selection::parse("read_file").unwrap().find("patch").unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("the tools are read_file"));
}
