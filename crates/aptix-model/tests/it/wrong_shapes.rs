//! Documents of which some file patches have the wrong shape: all failures, and the file patches that can be read.

use aptix_model::documents::{PartialDocument, parse, parse_part};
use aptix_model::failure::Failure;

fn refused(text: &str) -> PartialDocument {
    parse_part(text.as_bytes(), None).expect_err("a refusal")
}

/// `field: DETAIL` of every failure, and the positions of the file patches that can be read.
fn outcome(document: &PartialDocument) -> (Vec<String>, Vec<usize>) {
    let detail = |failure: &Failure| failure.detail.map_or("-", |detail| detail.code());
    let failures = document.part.failures.iter();
    let found = failures.map(|failure| format!("{}: {}", failure.field.as_deref().unwrap_or("-"), detail(failure)));
    (found.collect(), document.part.positions.clone())
}

/// A wrong shape hides its own file patch alone, and the other ones keep their positions.
#[test]
fn what_has_the_right_shape_is_read() {
    let cases: &[(&str, &[&str], &[usize])] = &[
        (
            r#"{"files": [{"docPath": "r/a", "changes": []}, {"docPath": "r/b"}, {"docPath": 3, "changes": []},
                {"docPath": "r/d", "changes": [{"operation": "x"}, 7]}, {"docPath": "r/e", "changes": []}]}"#,
            &["files[1].changes: MISSING", "files[2].docPath: TYPE", "files[3].changes[1]: TYPE"],
            &[0, 4],
        ),
        (
            r#"{"patches": [{"path": "a", "replacements": "x"}, {"path": "b", "replacements": []}, {"path": null,
                "replacements": [{"find": "x"}]}]}"#,
            &[
                "patches[0].replacements: TYPE",
                "patches[2].path: MISSING",
                "patches[2].replacements[0].replace: MISSING",
            ],
            &[1],
        ),
        (
            r#"{"files": [{"path": "a", "content": "x"}, {"path": "b", "content": "x", "mode": 1}, {"path": "c"},
                {"path": "d", "path": "e"}, {"path": "f", "content": ""}]}"#,
            &["files[1].mode: UNKNOWN_FIELD", "files[2].content: MISSING", "files[3]: DUPLICATE_KEY"],
            &[0, 4],
        ),
        (
            r#"[{"command": "create", "path": "a", "file_text": ""}, {"command": "view", "path": "b"},
                {"command": "str_replace", "path": "b", "old_str": "x"}, {"command": "insert", "path": "c", "insert_line": 1, "insert_text": ""},
                {"command": "insert", "path": "d", "insert_line": {}}]"#,
            &["[4].insert_line: TYPE", "[1].command: UNKNOWN_OPERATION"],
            &[0, 2],
        ),
        (
            r#"{"path": "a", "patches": [{"operation": 1}, {"operation": "x"}]}"#,
            &["patches[0].operation: TYPE", "patches[1].operation: UNKNOWN_OPERATION"],
            &[],
        ),
        // What is no list of objects, or no object, hides everything; so does a value too short to be taken out.
        (r#"{"files": [{"path": "a", "content": "x"}, {"path": "b"}], "rooot": "."}"#, &["rooot: UNKNOWN_FIELD"], &[]),
        (r#"{"files": [{"path": "a", "content": "x"}, 1, {"path": "b"}]}"#, &["files[1]: TYPE"], &[]),
    ];
    for (text, failures, positions) in cases {
        let document = refused(text);
        let (found, read) = outcome(&document);
        assert_eq!(found, *failures, "{text}");
        assert_eq!(read, *positions, "{text}");
        assert_eq!(document.part.batch.files.len(), positions.len());
    }
}

/// Each failure has the line and column that it has in the document, however many are above it.
#[test]
fn failures_have_their_line_and_column() {
    let text = "{\"files\": [\n {\"path\": [1,\n 2]}, {\"path\": \"b\", \"content\": 5},\n {\"path\": \"c\", \"content\": {}}]}";
    let document = refused(text);
    let messages: Vec<_> = document.part.failures.iter().map(|failure| failure.message.as_str()).collect();
    let ends = ["at line 2 column 10", "at line 3 column 32", "at line 4 column 26"];
    assert_eq!(messages.len(), ends.len());
    assert!(messages.iter().zip(ends).all(|(message, end)| message.ends_with(end)), "{messages:?}");
}

/// Failures are listed up to a hundred, then counted; a long document is not read once for each of its items.
#[test]
fn failures_are_bounded() {
    let text = format!(r#"{{"files": [{}{{"path": 1}}]}}"#, r#"{"path": 1}, "#.repeat(150));
    let failures = parse(text.as_bytes(), None).unwrap_err();
    assert_eq!((failures.len(), failures[100].message.as_str()), (101, "51 more violations are not listed"));
    let long = format!(
        r#"{{"files": [{}{{"path": "a", "content": "{}"}}]}}"#,
        r#"{"path": 1}, "#.repeat(150),
        "x".repeat(1 << 20)
    );
    let found = refused(&long).part.failures.len();
    assert!((2..=65).contains(&found), "{found}");
}
