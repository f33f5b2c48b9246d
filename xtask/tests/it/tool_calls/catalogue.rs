//! The catalogue and the guide for authors, as each way gives them.

use std::collections::BTreeSet;

use aptix_model::tools::guide::SENTENCES;
use serde_json::{Value, json};

use super::each_way;
use super::play::WayIn;
use crate::processes::Machine;

/// What is given over MCP, and what over gRPC.
fn over_both<T>(given: impl Fn(&mut dyn WayIn) -> T) -> [T; 2] {
    let mut found = Vec::new();
    each_way(Machine::new, |way| found.push(given(way)));
    found.try_into().ok().unwrap()
}

fn keys(schema: &Value) -> BTreeSet<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// TUL-004-3.2.1, TUL-004-3.2.2, TUL-004-4.1.1, TUL-004-4.1.2, TUL-004-4.1.3, TUL-004-4.2.1, TUL-004-4.2.3, TUL-004-4.2.6,
/// TUL-004-5.3.4, TUL-004-7.1.1, WS-MOD-1.3, WS-MOD-2.1.3, REQ-PATCH-006.1, REQ-PATCH-006.2: the catalogue has the same about
/// every tool, whichever way it is asked for, and about this one what its contract demands.
#[test]
fn the_catalogue_is_the_same_over_mcp_and_grpc() {
    let [listed, over_grpc] = over_both(|way| way.tools());
    assert_eq!(listed, over_grpc);
    let create = listed.iter().find(|tool| tool["name"] == "workspace_create_file").unwrap();
    assert_eq!(create["_meta"]["aptix/category"], "workspace");
    assert_eq!(create["_meta"]["aptix/executionLocation"], "client");

    let (input, output) = (&create["inputSchema"], &create["outputSchema"]);
    assert_eq!(input["required"], json!(["path", "content"]));
    for (key, kind) in [("path", "string"), ("content", "string"), ("overwrite", "boolean")] {
        assert_eq!(input["properties"][key]["type"], kind, "{key}");
    }
    assert_eq!(input["properties"]["overwrite"]["default"], false);
    let result = ["success", "message", "path", "sizeBytes", "hash", "created", "overwritten", "errorCode", "detail"];
    assert_eq!(keys(output), result.into());
    let codes = json!([
        "FileExists",
        "InvalidPath",
        "DirectoryCreateFailed",
        "WriteFailed",
        "TooLarge",
        "HashFailed",
        "UnhandledException",
        null,
    ]);
    assert_eq!(output["properties"]["errorCode"]["enum"], codes);

    let about = create["description"].as_str().unwrap();
    let (_, about) = about.split_once("\n\nInputs: ").unwrap();
    let (inputs, about) = about.split_once("\n\nBehavior: ").unwrap();
    let (behaviour, answer) = about.split_once("\n\nOutput: ").unwrap();
    for (part, words) in [
        (inputs, ["path", "content", "overwrite (default false)"].as_slice()),
        (behaviour, &["fails if the file exists and overwrite is false", "Creates missing directories"]),
        (answer, &["success", "normalized path", "sizeBytes", "hash", "created", "overwritten", "errorCode"]),
    ] {
        assert!(words.iter().all(|word| part.contains(word)), "{words:?}: {part}");
    }
}

/// TUL-004-4.2.5, TUL-004-7.2.1, TUL-004-7.2.2, TUL-004-7.2.3, TUL-004-7.2.4, TUL-004-7.3.1, TUL-004-7.3.2, TUL-004-7.3.3,
/// TUL-004-7.3.4, TUL-004-7.4.1, TUL-004-7.4.2, TUL-004-7.4.3, TUL-004-7.4.4, TUL-004-7.4.5, TUL-004-7.5.1, TUL-004-7.5.2,
/// TUL-004-7.5.3, TUL-004-7.5.4, TUL-004-7.6.1, TUL-004-7.6.2, TUL-004-7.6.3: services get the guide from the server, and who
/// gives a model the tools over MCP gets it from the command line: the same text, with a sentence for each rule of authors.
#[test]
fn the_guide_is_the_same_at_the_shell_and_over_grpc() {
    let [printed, over_grpc] = over_both(|way| way.guide());
    assert_eq!(printed, over_grpc);
    let meant = SENTENCES.iter().filter(|sentence| sentence.id.starts_with("TUL-004-"));
    let missing: Vec<_> =
        meant.filter(|sentence| !printed.contains(sentence.text)).map(|sentence| sentence.id).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
