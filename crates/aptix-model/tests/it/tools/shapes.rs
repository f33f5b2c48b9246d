//! The catalogue in each provider's shape: what each accepts of schemas, and that a strict call means what the natural one does.

use aptix_model::tools::catalogue::{Selection, TOOLS};
use aptix_model::tools::shape::Shape;
use serde_json::{Value, json};

/// The keywords and types that each provider's strict mode takes, as its documentation lists them.
fn known(shape: Shape) -> &'static [&'static str] {
    match shape {
        Shape::Mcp => &["default", "minLength", "maxLength"],
        Shape::OpenAi => &["minimum", "maximum", "minItems", "maxItems", "additionalProperties"],
        Shape::Anthropic => &["additionalProperties"],
        Shape::Gemini => &["nullable", "minimum", "maximum", "minItems", "maxItems"],
    }
}

fn schema_of(shape: Shape, tool: &Value) -> &Value {
    match shape {
        Shape::Mcp => &tool["inputSchema"],
        Shape::OpenAi => &tool["function"]["parameters"],
        Shape::Anthropic => &tool["input_schema"],
        Shape::Gemini => &tool["parameters"],
    }
}

fn check(shape: Shape, schema: &Value) {
    let common = ["type", "description", "enum", "items", "properties", "required"];
    for keyword in schema.as_object().unwrap().keys() {
        let is_known = common.contains(&keyword.as_str()) || known(shape).contains(&keyword.as_str());
        assert!(is_known || shape == Shape::Mcp, "{shape}: {keyword}");
    }
    if let Some(properties) = schema["properties"].as_object() {
        if shape != Shape::Anthropic {
            let required: Vec<_> =
                schema["required"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
            assert!(properties.keys().all(|key| required.contains(&key.as_str())), "{shape}: {schema}");
        }
        assert!(shape == Shape::Gemini || schema["additionalProperties"] == false, "{shape}: {schema}");
        properties.values().for_each(|property| check(shape, property));
    }
    if shape == Shape::Gemini {
        assert!(schema["type"].is_string(), "{schema}");
        assert!(!schema["enum"].as_array().is_some_and(|words| words.iter().any(|word| word == "" || word.is_null())));
    }
    if schema["type"] == "array" {
        check(shape, &schema["items"]);
    }
}

#[test]
fn a_strict_schema_has_only_what_its_provider_enforces() {
    for shape in Shape::ALL {
        for tool in TOOLS {
            let rendered = shape.render(tool, true);
            check(shape, schema_of(shape, &rendered));
        }
    }
    let tool = &TOOLS[0];
    let named = |rendered: &Value| (rendered["name"].clone(), rendered["description"].is_string());
    for shape in Shape::ALL {
        let rendered = shape.render(tool, true);
        let about = if shape == Shape::OpenAi { &rendered["function"] } else { &rendered };
        assert_eq!(named(about), (tool.name.into(), true));
        assert_eq!(shape.to_string().parse(), Ok(shape));
    }
    assert_eq!(Shape::OpenAi.render(tool, true)["function"]["strict"], true);
    assert_eq!(Shape::OpenAi.render(tool, false)["function"]["strict"], false);
    assert_eq!(Shape::Anthropic.render(tool, true)["strict"], true);
    assert!(Shape::Anthropic.render(tool, false).get("strict").is_none());
}

/// The set that is enough for every edit costs a model at most 16 KiB.
#[test]
fn the_core_catalogue_has_at_most_16_kib() {
    let size = |words: &str| {
        let tools: Vec<_> =
            Selection::parse(words).unwrap().tools().iter().map(|tool| Shape::Mcp.render(tool, false)).collect();
        json!({ "tools": tools }).to_string().len()
    };
    assert!(size("core") <= 16 << 10, "{}", size("core"));
    assert!(size("core") < size("all"));
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
