//! The catalogue of tools: what models read of it, and that its schemas are those of the parsers.

mod doc_calls;
mod guide;
mod schemas;
mod shape_calls;
mod shapes;
mod values;

use std::path::Path;

use aptix_model::tools::catalogue::{TOOLS, find};
use aptix_model::tools::tool::{CATEGORY, EXECUTION_LOCATION, Effect};
use serde_json::{Value, json};

/// The whole catalogue as models read it, compared with the committed one.
///
/// After a change that is meant: `APTIX_RENEW=1 cargo test -p aptix-model --all-features the_catalogue_is_the_committed_one`,
/// and read the difference before committing it.
#[test]
#[expect(clippy::disallowed_methods, reason = "a committed file of the test, not a file of a user")]
fn the_catalogue_is_the_committed_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tools/catalogue.json");
    let tools: Vec<_> = TOOLS
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description.lines().collect::<Vec<_>>(),
                "set": format!("{:?}", tool.set),
                "effect": format!("{:?}", tool.effect),
                "inputSchema": tool.input_schema(),
                "outputSchema": tool.output_schema(),
            })
        })
        .collect();
    let catalogue = json!({ "category": CATEGORY, "executionLocation": EXECUTION_LOCATION, "tools": tools });
    let text = serde_json::to_string_pretty(&catalogue).unwrap() + "\n";
    if std::env::var_os("APTIX_RENEW").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap();
    let differs = text.lines().zip(committed.lines()).find(|(now, committed)| now != committed);
    assert!(text == committed, "the catalogue differs from {}: {differs:?}", file.display());
}

/// WS-MOD-2.1.3: that preparing and applying are two messages is said once, in the tool that applies, and each tool that
/// prepares points to it.
#[test]
fn the_tools_that_prepare_and_apply_say_that_they_do_not_mix() {
    let says: Vec<_> = TOOLS.iter().filter(|tool| tool.description.contains("Never mix preparing")).collect();
    assert_eq!(says.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["apply_file_modification"]);
    assert!(says[0].description.contains("in one message"));
    let prepares: Vec<_> = TOOLS.iter().filter(|tool| tool.effect == Effect::Prepares).collect();
    assert_eq!(prepares.len(), 5);
    for tool in prepares {
        assert!(tool.description.contains("A later message applies it with apply_file_modification"), "{}", tool.name);
    }
}

/// TUL-004-7.1.1: input, effect and output of every tool; and each argument by its name.
#[test]
fn every_description_covers_inputs_behaviour_and_output() {
    for tool in TOOLS {
        assert!(tool.description.contains("\n\nInputs: "), "{}", tool.name);
        assert!(tool.description.contains("\n\nOutput: "), "{}", tool.name);
        let says_what_it_does = ["\n\nBehavior: ", "Writes nothing."];
        assert!(says_what_it_does.iter().any(|words| tool.description.contains(words)), "{}", tool.name);
        let schema = tool.input_schema();
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
        for (argument, about) in schema["properties"].as_object().unwrap() {
            assert!(about["description"].is_string(), "{}: {argument}", tool.name);
        }
        assert_eq!(tool.output_schema()["type"], "object");
    }
}

/// REQ-PATCH-006.1, REQ-PATCH-006.2, REQ-PATCH-006.3, REQ-PATCH-006.4, REQ-PATCH-006.5, REQ-PATCH-006.6, REQ-PATCH-006.7,
/// REQ-PATCH-006.8: what the schema of the patch tool asks for.
#[test]
fn the_schema_of_patch_has_what_it_has_to() {
    let schema = Value::Object(find("patch").unwrap().input_schema());
    let patches = &schema["properties"]["patches"];
    assert_eq!(schema["required"], json!(["path", "patches"]));
    assert_eq!((&schema["properties"]["path"]["type"], &patches["type"]), (&"string".into(), &"array".into()));
    let (patch, fields) = (&patches["items"], &patches["items"]["properties"]);
    assert_eq!(patch["required"], json!(["operation"]));
    assert_eq!(fields["operation"]["enum"], json!(["replace", "append_eof", "prepend_bof", "overwrite"]));
    for field in ["oldText", "newText", "toClipboard", "fromClipboard"] {
        assert_eq!(fields[field]["type"], "string", "{field}");
    }
    let reindent = &fields["reindent"];
    assert_eq!(reindent["type"], "object");
    for prefix in ["strip", "add"] {
        assert_eq!(reindent["properties"][prefix]["type"], "string", "{prefix}");
    }
}
