//! FILE-SPEC 2: structured patches as documents.

use aptix_model::batch::{FileEdit, Replacement, Replacements, Scope, Target};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;

fn refusals(text: &str) -> Vec<String> {
    let failures = parse(text.as_bytes(), Some(Dialect::StructuredPatch)).expect_err("a refusal");
    let word = |failure: &Failure| {
        let detail = failure.detail.map_or("-", |detail| detail.code());
        format!("{}: {}.{detail}", failure.field.as_deref().unwrap_or("-"), failure.reason)
    };
    failures.iter().map(word).collect()
}

fn step(find: &str, replace: &str, scope: Scope) -> Replacement {
    Replacement { find: find.into(), replace: replace.into(), scope }
}

/// FILE-SPEC-2.2.1, FILE-SPEC-2.2.2, FILE-SPEC-2.2.3, FILE-SPEC-2.2.4, FILE-SPEC-2.2.5, FILE-SPEC-2.2.6,
/// FILE-SPEC-2.2.7, FILE-SPEC-2.3.4: every field comes through as it is written, in order, `all` as well as `once`.
#[test]
fn every_field_comes_through() {
    let text = r#"{"root": ".", "patches": [
        {"path": "./src\\MyFile.cs", "replacements": [
            {"find": "Old(\"x\")", "replace": "New\r\n"},
            {"find": "a", "replace": "", "limit": "once"},
            {"find": " ", "replace": "b", "limit": "all"}]},
        {"path": "b", "replacements": []}]}"#;
    let document = parse(text.as_bytes(), None).unwrap();
    assert_eq!((document.dialect, document.warnings), (Dialect::StructuredPatch, vec![]));
    let files: Vec<_> = document.batch.files.into_iter().map(|file| (file.target, file.edit)).collect();
    let steps =
        vec![step("Old(\"x\")", "New\r\n", Scope::First), step("a", "", Scope::First), step(" ", "b", Scope::All)];
    let edit = |steps| FileEdit::Replacements(Replacements { steps });
    assert_eq!(files, [(Target::Path("src/MyFile.cs".into()), edit(steps)), (Target::Path("b".into()), edit(vec![]))]);
    assert!(parse(br#"{"patches": [{"path": "a", "replacements": []}]}"#, None).is_ok());
}

/// FILE-SPEC-2.2.1, FILE-SPEC-2.2.2, FILE-SPEC-2.2.3, FILE-SPEC-2.2.4, FILE-SPEC-2.2.5, FILE-SPEC-2.2.6, FILE-SPEC-2.2.7: what is missing, unknown or
/// outside the workspace is refused with its place.
#[test]
fn what_is_not_in_the_format_is_refused_with_its_place() {
    let step = |step: &str| {
        format!(r#"{{"patches": [{{"path": "a", "replacements": [{{"find": "a", "replace": "b"}}, {step}]}}]}}"#)
    };
    let at = "patches[0].replacements[1]";
    for (text, expect) in [
        (
            r#"{"root": "src"}"#.to_owned(),
            vec!["root: INVALID_REQUEST.ROOT".to_owned(), "patches: INVALID_REQUEST.MISSING".to_owned()],
        ),
        (r#"{"root": "/", "patches": []}"#.to_owned(), vec!["root: INVALID_PATH.ABSOLUTE".to_owned()]),
        (
            r#"{"patches": [{}]}"#.to_owned(),
            vec![
                "patches[0].path: INVALID_REQUEST.MISSING".to_owned(),
                "patches[0].replacements: INVALID_REQUEST.MISSING".to_owned(),
            ],
        ),
        (
            step("{}"),
            vec![format!("{at}.find: INVALID_REQUEST.MISSING"), format!("{at}.replace: INVALID_REQUEST.MISSING")],
        ),
        (
            step(r#"{"find": "a", "replace": "b", "limit": "first"}"#),
            vec![format!("{at}.limit: INVALID_REQUEST.UNKNOWN_ENUM")],
        ),
        (step(r#"{"find": 1, "replace": "b"}"#), vec![format!("{at}.find: INVALID_REQUEST.TYPE")]),
        (step(r#"{"find": "a", "replace": "b", "limit": 1}"#), vec![format!("{at}.limit: INVALID_REQUEST.TYPE")]),
        (
            step(r#"{"find": "a", "replace": "b", "count": 1}"#),
            vec![format!("{at}.count: INVALID_REQUEST.UNKNOWN_FIELD")],
        ),
        (
            r#"{"patches": [{"path": "a", "content": "b"}]}"#.to_owned(),
            vec!["patches[0].content: INVALID_REQUEST.UNKNOWN_FIELD".to_owned()],
        ),
    ] {
        assert_eq!(refusals(&text), expect, "{text}");
    }
    let failures = parse(step(r#"{"find": "a", "replace": "b", "limit": "alll"}"#).as_bytes(), None).unwrap_err();
    assert_eq!(failures[0].hint.as_deref(), Some("did you mean 'all'?"));
    assert_eq!((failures[0].file_index, failures[0].change_index), (Some(0), Some(1)));
}

/// A document with `patches` is detected by the entries in them.
#[test]
fn two_dialects_with_patches_are_distinguished() {
    let dialect = |text: &str| parse(text.as_bytes(), None).map(|document| document.dialect).map_err(|_| ());
    assert_eq!(
        dialect(r#"{"path": "a", "patches": [{"operation": "append_eof", "newText": "x"}]}"#),
        Ok(Dialect::SearchPatch)
    );
    assert_eq!(dialect(r#"{"patches": [{"path": "a", "replacements": []}]}"#), Ok(Dialect::StructuredPatch));
    assert_eq!(dialect(r#"{"patches": [{"path": "a", "operation": "replace", "oldText": "x"}]}"#), Err(()));
}
