//! FILE-SPEC 1: file bundles.

use aptix_model::batch::{Content, FileEdit, Presence, Target, WriteFile};
use aptix_model::documents::{Dialect, parse};

/// The path and edit of each file, or `field: REASON.DETAIL` of each failure.
fn read(text: &str) -> Result<Vec<(String, FileEdit)>, Vec<String>> {
    match parse(text.as_bytes(), Some(Dialect::FileBundle)) {
        Ok(document) => {
            assert_eq!((document.dialect, document.warnings), (Dialect::FileBundle, vec![]));
            let files = document.batch.files.into_iter();
            Ok(files
                .map(|file| match file.target {
                    Target::Path(path) => (path, file.edit),
                    target => panic!("a bundle has paths: {target:?}"),
                })
                .collect())
        }
        Err(failures) => Err(failures
            .iter()
            .map(|failure| {
                let detail = failure.detail.map_or("-", |detail| detail.code());
                format!("{}: {}.{detail}", failure.field.as_deref().unwrap_or("-"), failure.reason)
            })
            .collect()),
    }
}

fn write(path: &str, content: &str, presence: Presence) -> (String, FileEdit) {
    (
        path.into(),
        FileEdit::WriteFile(WriteFile { content: Content::Text(content.into()), presence, content_format: None }),
    )
}

/// FILE-SPEC-1.1.1, FILE-SPEC-1.1.2, FILE-SPEC-1.1.3, FILE-SPEC-1.1.4, FILE-SPEC-1.1.5, FILE-SPEC-1.1.6, FILE-SPEC-1.1.7,
/// FILE-SPEC-1.1.8, FILE-SPEC-4.1.2: each operation by its name, in the order of the document.
#[test]
fn a_bundle_creates_replaces_and_deletes_whole_files() {
    let text = r#"{"root": ".", "files": [
        {"path": "./src\\A.cs", "content": "\ufeffa\r\nb"},
        {"path": "b", "content": "", "operation": "create"},
        {"path": "c", "content": "c", "operation": "replace"},
        {"path": "d", "operation": "delete"},
        {"path": "e", "operation": "delete", "content": null},
        {"path": "f", "operation": "delete", "content": ""}]}"#;
    let expected = vec![
        write("src/A.cs", "\u{feff}a\r\nb", Presence::Either),
        write("b", "", Presence::Absent),
        write("c", "c", Presence::Present),
        ("d".into(), FileEdit::DeleteFile),
        ("e".into(), FileEdit::DeleteFile),
        ("f".into(), FileEdit::DeleteFile),
    ];
    assert_eq!(read(text), Ok(expected));
    assert_eq!(read(r#"{"files": [{"path": "a", "content": "x"}]}"#), Ok(vec![write("a", "x", Presence::Either)]));
}

/// FILE-SPEC-1.0.2, FILE-SPEC-1.0.3, FILE-SPEC-1.0.4, FILE-SPEC-1.0.5, FILE-SPEC-1.1.1, FILE-SPEC-1.1.2, FILE-SPEC-1.1.3, FILE-SPEC-1.1.4, FILE-SPEC-1.1.9, FILE-SPEC-1.1.10,
/// FILE-SPEC-1.2.2, FILE-SPEC-8.2.1: what is not in the format is refused with its place.
#[test]
fn what_is_no_bundle_is_refused_with_its_place() {
    let entry = |entry: &str| format!(r#"{{"files": [{entry}]}}"#);
    let root = |root: &str| format!(r#"{{"root": {root}, "files": []}}"#);
    let cases = [
        (entry(r#"{"content": ""}"#), vec!["files[0].path: INVALID_REQUEST.MISSING"]),
        (entry(r#"{"path": "a"}"#), vec!["files[0].content: INVALID_REQUEST.MISSING"]),
        (entry(r#"{"path": "a", "operation": "replace"}"#), vec!["files[0].content: INVALID_REQUEST.MISSING"]),
        (entry(r#"{"path": "a", "content": null}"#), vec!["files[0].content: INVALID_REQUEST.MISSING"]),
        (
            entry(r#"{"operation": "create"}"#),
            vec!["files[0].path: INVALID_REQUEST.MISSING", "files[0].content: INVALID_REQUEST.MISSING"],
        ),
        (
            entry(r#"{"path": "a", "operation": "delete", "content": "x"}"#),
            vec!["files[0].content: INVALID_REQUEST.UNEXPECTED_FIELD"],
        ),
        (
            entry(r#"{"path": "a", "operation": "patch", "replacements": [{"find": "a", "replace": "b"}]}"#),
            vec!["files[0].operation: INVALID_REQUEST.UNKNOWN_OPERATION"],
        ),
        (
            entry(r#"{"path": "a", "operation": "gitPatch", "content": "--- a/a"}"#),
            vec!["files[0].operation: INVALID_REQUEST.UNKNOWN_OPERATION"],
        ),
        (
            entry(r#"{"path": "a", "operation": "Create", "content": ""}"#),
            vec!["files[0].operation: INVALID_REQUEST.UNKNOWN_OPERATION"],
        ),
        (
            entry(r#"{"path": "a", "content": "", "replacements": []}"#),
            vec!["files[0].replacements: INVALID_REQUEST.UNEXPECTED_FIELD"],
        ),
        (entry(r#"{"path": "a", "contents": ""}"#), vec!["files[0].contents: INVALID_REQUEST.UNKNOWN_FIELD"]),
        (r#"{"root": "."}"#.into(), vec!["files: INVALID_REQUEST.MISSING"]),
        (root("5"), vec!["root: INVALID_REQUEST.TYPE"]),
        (root(r#""../x""#), vec!["root: INVALID_PATH.TRAVERSAL"]),
        (root(r#""/""#), vec!["root: INVALID_PATH.ABSOLUTE"]),
        (root(r#""C:\\x""#), vec!["root: INVALID_PATH.DRIVE"]),
        (root(r#""src""#), vec!["root: INVALID_REQUEST.ROOT"]),
        (root(r#""./.""#), vec!["root: INVALID_PATH.DOT_SEGMENT"]),
        (
            r#"{"files": [], // none
            }"#
            .into(),
            vec!["-: INVALID_REQUEST.JSON"],
        ),
        ("```json\n{\"files\": []}\n```".into(), vec!["-: INVALID_REQUEST.JSON"]),
        (r#"{"files": []} That is all."#.into(), vec!["-: INVALID_REQUEST.TRAILING"]),
    ];
    for (text, expected) in cases {
        let expected = expected.into_iter().map(String::from).collect();
        assert_eq!(
            read(&text).map_err(|found| found.into_iter().map(place_less).collect::<Vec<_>>()),
            Err(expected),
            "{text}"
        );
    }
}

/// Syntax errors contain where the parser stopped, which is of no interest here.
fn place_less(found: String) -> String {
    match found.split_once(": ") {
        Some((_, word @ ("INVALID_REQUEST.JSON" | "INVALID_REQUEST.TRAILING"))) => format!("-: {word}"),
        _ => found,
    }
}

/// Of any number of wrong entries, the first hundred are reported.
#[test]
fn the_first_hundred_failures_are_listed() {
    let text = format!(r#"{{"files": [{}]}}"#, ["{}"; 300].join(","));
    assert_eq!(read(&text).unwrap_err().len(), 101);
    let text = format!(r#"{{"files": [{}]}}"#, ["{}"; 10_001].join(","));
    assert_eq!(read(&text).unwrap_err(), ["files: TOO_LARGE.FILES"]);
}
