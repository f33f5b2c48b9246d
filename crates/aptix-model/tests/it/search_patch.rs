//! REQ-PATCH-006: search patches as documents.

use aptix_model::batch::{FileEdit, FilePatch, Reindent, SearchChange, SearchOperation, SearchPatch, Target};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;

fn read(text: &str) -> Result<FilePatch, Vec<Failure>> {
    let document = parse(text.as_bytes(), None)?;
    assert_eq!((document.dialect, document.warnings, document.batch.files.len()), (Dialect::SearchPatch, vec![], 1));
    Ok(document.batch.files.into_iter().next().unwrap())
}

fn refusals(text: &str) -> Vec<String> {
    let failures = parse(text.as_bytes(), Some(Dialect::SearchPatch)).expect_err("a refusal");
    let word = |failure: &Failure| {
        let detail = failure.detail.map_or("-", |detail| detail.code());
        format!("{}: {}.{detail}", failure.field.as_deref().unwrap_or("-"), failure.reason)
    };
    failures.iter().map(word).collect()
}

/// REQ-PATCH-006.1, REQ-PATCH-006.2, REQ-PATCH-006.3, REQ-PATCH-006.4, REQ-PATCH-006.5, REQ-PATCH-006.6,
/// REQ-PATCH-006.7, REQ-PATCH-006.8: every field comes through as it is written.
#[test]
fn every_field_comes_through() {
    let file = read(
        r#"{"path": "./src\\a.rs", "patches": [
            {"operation": "replace", "oldText": "a", "newText": "b\r\n", "toClipboard": "k"},
            {"operation": "replace", "oldText": "a", "newText": null},
            {"operation": "append_eof", "newText": "x", "fromClipboard": "k", "reindent": {"strip": "  ", "add": "\t"}},
            {"operation": "prepend_bof", "newText": "", "reindent": {}},
            {"operation": "overwrite", "newText": "z"}]}"#,
    );
    let plain = |operation| SearchChange {
        operation,
        new_text: None,
        to_clipboard: None,
        from_clipboard: None,
        reindent: None,
    };
    let old = || SearchOperation::Replace { old_text: "a".into() };
    let text = |text: &str| Some(text.to_owned());
    let changes = vec![
        SearchChange { new_text: text("b\r\n"), to_clipboard: text("k"), ..plain(old()) },
        plain(old()),
        SearchChange {
            new_text: text("x"),
            from_clipboard: text("k"),
            reindent: Some(Reindent { strip: "  ".into(), add: "\t".into() }),
            ..plain(SearchOperation::AppendEof)
        },
        SearchChange { new_text: text(""), ..plain(SearchOperation::PrependBof) },
        SearchChange { new_text: text("z"), ..plain(SearchOperation::Overwrite) },
    ];
    let edit = FileEdit::SearchPatch(SearchPatch { changes });
    assert_eq!(file, Ok(FilePatch { target: Target::Path("src/a.rs".into()), key: None, label: None, edit }));
}

/// REQ-PATCH-006.1, REQ-PATCH-006.2, REQ-PATCH-006.3, REQ-PATCH-006.4: what is missing, unknown or elsewhere's is
/// refused with its place.
#[test]
fn what_is_not_in_the_format_is_refused_with_its_place() {
    let one =
        |change: &str| format!(r#"{{"path": "a", "patches": [{{"operation": "replace", "oldText": "a"}}, {change}]}}"#);
    let at = "patches[1]";
    for (text, expect) in [
        (
            r#"{"patches": [{"operation": "append_eof"}, {}]}"#.to_owned(),
            vec!["path: INVALID_REQUEST.MISSING".to_owned(), format!("{at}.operation: INVALID_REQUEST.MISSING")],
        ),
        (r#"{"path": "a"}"#.to_owned(), vec!["patches: INVALID_REQUEST.MISSING".to_owned()]),
        (
            r#"{"path": "a", "patches": [], "root": "."}"#.to_owned(),
            vec!["root: INVALID_REQUEST.UNKNOWN_FIELD".to_owned()],
        ),
        (one("{}"), vec![format!("{at}.operation: INVALID_REQUEST.MISSING")]),
        (one(r#"{"operation": "replace"}"#), vec![format!("{at}.oldText: INVALID_REQUEST.MISSING")]),
        (
            one(r#"{"operation": "Replace", "oldText": "a"}"#),
            vec![format!("{at}.operation: INVALID_REQUEST.UNKNOWN_OPERATION")],
        ),
        (
            one(r#"{"operation": "append_eof", "oldText": "a", "toClipboard": "k"}"#),
            vec![
                format!("{at}.oldText: INVALID_REQUEST.UNEXPECTED_FIELD"),
                format!("{at}.toClipboard: INVALID_REQUEST.UNEXPECTED_FIELD"),
            ],
        ),
        (one(r#"{"operation": "replace", "oldText": 5}"#), vec![format!("{at}.oldText: INVALID_REQUEST.TYPE")]),
        (
            one(r#"{"operation": "append_eof", "reindent": {"dedent": ""}}"#),
            vec![format!("{at}.reindent.dedent: INVALID_REQUEST.UNKNOWN_FIELD")],
        ),
        (
            one(r#"{"operation": "append_eof", "newText": "", "reindent": ["a", "b"]}"#),
            vec![format!("{at}.reindent: INVALID_REQUEST.TYPE")],
        ),
        (one(r#"{"operation": "append_eof", "text": ""}"#), vec![format!("{at}.text: INVALID_REQUEST.UNKNOWN_FIELD")]),
    ] {
        assert_eq!(refusals(&text), expect, "{text}");
    }
    let failures = parse(one(r#"{"operation": "append"}"#).as_bytes(), None).unwrap_err();
    assert_eq!(failures[0].hint.as_deref(), Some("did you mean 'append_eof'?"));
    assert_eq!((failures[0].file_index, failures[0].change_index), (Some(0), Some(1)));
}
