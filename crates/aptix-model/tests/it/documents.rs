//! Documents: what they become, and what they are refused for.

use aptix_model::batch::{Content, FileEdit, Operation, Target};
use aptix_model::documents::{Dialect, Document, parse};
use aptix_model::failure::Failure;
use aptix_model::limits::LINES;
use aptix_model::reason::Detail;
use aptix_model::tools::tool::arguments_text;

const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn read(text: &str) -> Result<Document, Vec<Failure>> {
    parse(text.as_bytes(), None)
}

/// A line patch with one file and these changes.
fn patch(changes: &str) -> String {
    format!(r#"{{"files": [{{"docPath": "r/a.txt", "originalSha256": "{SHA}", "changes": [{changes}]}}]}}"#)
}

/// `field: REASON.DETAIL` of every failure.
fn refusals(text: &[u8]) -> Vec<String> {
    let failures = parse(text, None).expect_err("a refusal");
    let word = |failure: &Failure| {
        let detail = failure.detail.map_or("-", |detail| detail.code());
        format!("{}: {}.{detail}", failure.field.as_deref().unwrap_or("-"), failure.reason)
    };
    failures.iter().map(word).collect()
}

/// TUL-002-4.1.1, TUL-002-4.1.2, TUL-002-4.2.1, TUL-002-4.2.8, TUL-002-5.1.1, TUL-002-5.1.5: every label and key is kept as written.
/// TUL-002-4.2.9: changes keep their order.
#[test]
fn a_line_patch_keeps_every_label_and_key() {
    let text = format!(
        r#"{{"batchLabel": "L", "batchKey": "K", "batchId": "x",
            "files": [{{"fileKey": "fk", "docPath": ".\\r\\src/a.txt", "originalSha256": "{SHA}", "fileLabel": "fl",
              "changes": [
                {{"changeKey": "ck", "changeId": "c", "operation": "insert", "description": "d", "afterLine": 0, "newLines": ["a"]}},
                {{"operation": "replace", "startLine": 2, "endLine": 3, "expectedOriginalLines": ["x", "y"], "newLines": [""]}},
                {{"operation": "delete", "startLine": 9, "endLine": 9, "expectedOriginalLines": ["z"]}}]}}]}}"#
    );
    let document = read(&text).unwrap();
    assert_eq!(document.dialect, Dialect::LinePatch);
    assert_eq!(document.warnings.len(), 2, "ids in a request have no effect and are said to: {:?}", document.warnings);
    let batch = document.batch;
    assert_eq!((batch.label.as_deref(), batch.key.as_deref()), (Some("L"), Some("K")));
    let [file] = batch.files.as_slice() else { panic!("one file") };
    assert_eq!(file.target, Target::DocPath("r/src/a.txt".into()));
    assert_eq!((file.key.as_deref(), file.label.as_deref()), (Some("fk"), Some("fl")));
    let FileEdit::LinePatch(patch) = &file.edit else { panic!("a line patch") };
    assert_eq!(patch.original_sha256, SHA);
    let [insert, replace, delete] = patch.changes.as_slice() else { panic!("three changes") };
    assert_eq!((insert.key.as_deref(), insert.description.as_deref()), (Some("ck"), Some("d")));
    assert_eq!(insert.operation, Operation::Insert { after_line: 0, new_lines: vec!["a".into()] });
    let expected_original_lines = vec!["x".into(), "y".into()];
    let new_lines = vec![String::new()];
    assert_eq!(
        replace.operation,
        Operation::Replace { start_line: 2, end_line: 3, expected_original_lines, new_lines }
    );
    let expected_original_lines = vec!["z".into()];
    assert_eq!(delete.operation, Operation::Delete { start_line: 9, end_line: 9, expected_original_lines });
}

/// TUL-004-4.2.1, TUL-004-4.2.6: a path, the whole content, and no overwriting unless asked for.
#[test]
fn a_create_file_document_is_recognised_by_its_keys() {
    let document = read(r#"{"path": "./src\\A.cs", "content": ""}"#).unwrap();
    assert_eq!(document.dialect, Dialect::CreateFile);
    let [file] = document.batch.files.as_slice() else { panic!("one file") };
    assert_eq!(file.target, Target::Path("src/A.cs".into()));
    let FileEdit::CreateFile(create) = &file.edit else { panic!("a created file") };
    assert_eq!((&create.content, create.overwrite), (&Content::Text(String::new()), false));
}

/// Each text is refused with the fields and the words that are expected; where no field is expected, any may be named.
fn refuse_each(cases: Vec<(String, Vec<String>)>) {
    for (text, expected) in cases {
        let field_less: Vec<String> = refusals(text.as_bytes())
            .into_iter()
            .zip(&expected)
            .map(|(found, expected)| match expected.strip_prefix("-: ") {
                Some(_) => format!("-: {}", found.split_once(": ").unwrap().1),
                None => found,
            })
            .collect();
        assert_eq!(field_less, expected, "{}", text.chars().take(200).collect::<String>());
        assert_eq!(refusals(text.as_bytes()).len(), expected.len());
    }
}

#[test]
fn what_is_not_in_the_format_is_refused_with_its_place_and_its_word() {
    let at = "files[0].changes[0]";
    refuse_each(vec![
        // shape
        ("[]".into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        ("{}".into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        ("  ".into(), vec!["-: INVALID_REQUEST.EMPTY".into()]),
        ("[{}, 1, []]".into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        (r#"{"changes": [{"files": 1}]}"#.into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        (r#"[{"path": "a", "content": ""}]"#.into(), vec!["-: INVALID_REQUEST.TYPE".into()]),
        // two dialects at once
        (r#"{"content": "", "files": [{"docPath": "r/a"}]}"#.into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        (r#"{"path": "a"}"#.into(), vec!["-: INVALID_REQUEST.UNKNOWN_DIALECT".into()]),
        (r#"{"path": "a", "overwrite": true}"#.into(), vec!["content: INVALID_REQUEST.MISSING".into()]),
        (
            r#"{"path": null, "content": null}"#.into(),
            vec!["path: INVALID_REQUEST.MISSING".into(), "content: INVALID_REQUEST.MISSING".into()],
        ),
        (r#"{"path": "a", "content": 1}"#.into(), vec!["content: INVALID_REQUEST.TYPE".into()]),
        (r#"{"batchKey": "k", "files": null}"#.into(), vec!["files: INVALID_REQUEST.MISSING".into()]),
        (
            r#"{"batchKey": "k", "files": [{}]}"#.into(),
            vec![
                "files[0].docPath: INVALID_REQUEST.MISSING".into(),
                "files[0].changes: INVALID_REQUEST.MISSING".into(),
            ],
        ),
        (
            format!(r#"{{"batchKey": "k", "files": [["k", null, "r/a", "{SHA}", null, []]]}}"#),
            vec!["files[0]: INVALID_REQUEST.TYPE".into()],
        ),
        (
            patch(r#"["k", null, "insert", null, 0, null, null, null, ["x"]]"#),
            vec![format!("{at}: INVALID_REQUEST.TYPE")],
        ),
    ]);
    assert_eq!(refusals(br#"{"files": []}"#), ["-: INVALID_REQUEST.UNKNOWN_DIALECT"], "a line patch or a file bundle");
    let bundle = read(r#"{"root": ".", "files": [{"path": "a", "content": ""}]}"#).unwrap();
    assert_eq!(bundle.dialect, Dialect::FileBundle);
    assert_eq!(refusals(b"{\"path\": \"\xff\"}"), ["-: INVALID_REQUEST.UNICODE"]);
    assert_eq!(refusals(b"{\"path\": \"\xed\xa0\x80\"}"), ["-: INVALID_REQUEST.UNICODE"]);
}

#[test]
fn what_has_other_fields_is_refused_with_its_place_and_its_word() {
    let at = "files[0].changes[0]";
    refuse_each(vec![
        (r#"{"files": [], "batchlabel": ""}"#.into(), vec!["batchlabel: INVALID_REQUEST.UNKNOWN_FIELD".into()]),
        (r#"{"Path": "a", "content": ""}"#.into(), vec!["Path: INVALID_REQUEST.UNKNOWN_FIELD".into()]),
        (r#"{"path": "a", "path": "b", "content": ""}"#.into(), vec!["-: INVALID_REQUEST.DUPLICATE_KEY".into()]),
        (
            patch(r#"{"operation": "insert", "operation": "insert"}"#),
            vec![format!("{at}: INVALID_REQUEST.DUPLICATE_KEY")],
        ),
        (patch(r#"{"operation": "INSERT"}"#), vec![format!("{at}.operation: INVALID_REQUEST.UNKNOWN_OPERATION")]),
        (patch(r#"{"afterLine": 1}"#), vec![format!("{at}.operation: INVALID_REQUEST.MISSING")]),
        (patch(r#"{"operation": "insert", "afterLine": 1}"#), vec![format!("{at}.newLines: INVALID_REQUEST.MISSING")]),
        (
            patch(r#"{"operation": "replace", "afterLine": 1, "newLines": ["a"]}"#),
            vec![
                format!("{at}.afterLine: INVALID_REQUEST.UNEXPECTED_FIELD"),
                format!("{at}.startLine: INVALID_REQUEST.MISSING"),
                format!("{at}.endLine: INVALID_REQUEST.MISSING"),
                format!("{at}.expectedOriginalLines: INVALID_REQUEST.MISSING"),
            ],
        ),
        (
            patch(
                r#"{"operation": "delete", "startLine": 1, "endLine": 1, "expectedOriginalLines": [""], "newLines": []}"#,
            ),
            vec![format!("{at}.newLines: INVALID_REQUEST.UNEXPECTED_FIELD")],
        ),
    ]);
}

#[test]
fn numbers_and_texts_that_json_does_not_have_are_refused() {
    let at = "files[0].changes[0]";
    refuse_each(vec![
        // numbers
        (patch(r#"{"operation": "insert", "afterLine": 1.0}"#), vec![format!("{at}.afterLine: INVALID_REQUEST.TYPE")]),
        (patch(r#"{"operation": "insert", "afterLine": 1e2}"#), vec![format!("{at}.afterLine: INVALID_REQUEST.TYPE")]),
        (patch(r#"{"operation": "insert", "afterLine": "5"}"#), vec![format!("{at}.afterLine: INVALID_REQUEST.TYPE")]),
        (patch(r#"{"operation": "insert", "afterLine": true}"#), vec![format!("{at}.afterLine: INVALID_REQUEST.TYPE")]),
        (patch(r#"{"operation": "insert", "afterLine": 1e999}"#), vec!["-: INVALID_REQUEST.NUMBER".into()]),
        (patch(r#"{"operation": "insert", "afterLine": NaN}"#), vec!["-: INVALID_REQUEST.NUMBER".into()]),
        (patch(r#"{"operation": "insert", "afterLine": -Infinity}"#), vec!["-: INVALID_REQUEST.NUMBER".into()]),
        // text
        (r#"{"path": "a", "content": ""#.into(), vec!["-: INVALID_REQUEST.JSON".into()]),
        (r#"{"path": "a", "content": "",}"#.into(), vec!["-: INVALID_REQUEST.JSON".into()]),
        (r#"{"path": "a", /* c */ "content": ""}"#.into(), vec!["-: INVALID_REQUEST.JSON".into()]),
        (r#"{'path': "a", "content": ""}"#.into(), vec!["-: INVALID_REQUEST.JSON".into()]),
        ("{\"path\": \"a\", \"content\": \"\n\"}".into(), vec!["-: INVALID_REQUEST.JSON".into()]),
        (r#"{"path": "a", "content": "\ud800"}"#.into(), vec!["-: INVALID_REQUEST.UNICODE".into()]),
        (r#"{"path": "a", "content": ""} x"#.into(), vec!["-: INVALID_REQUEST.TRAILING".into()]),
        (r#"{"path": "a", "content": ""} {"a": 1}"#.into(), vec!["-: INVALID_REQUEST.MULTIPLE_BLOCKS".into()]),
        ("[".repeat(10_000), vec!["-: INVALID_REQUEST.DEPTH".into()]),
        (format!(r#"{{"files": {}"#, "[".repeat(100)), vec!["-: INVALID_REQUEST.DEPTH".into()]),
    ]);
}

#[test]
fn a_misspelt_field_is_refused_with_its_nearest_right_name() {
    for (text, right) in [
        (patch(r#"{"operation": "insert", "newLine": []}"#), "newLines"),
        (patch(r#"{"operation": "insert", "after_line": 0}"#), "afterLine"),
        (r#"{"batchKey": "k", "fils": []}"#.to_owned(), "files"),
        (r#"{"path": "a", "contents": ""}"#.to_owned(), "content"),
        (r#"{"path": "a", "content": "", "overwite": true}"#.to_owned(), "overwrite"),
        (patch(r#"{"operation": "repalce"}"#), "replace"),
    ] {
        let failures = read(&text).unwrap_err();
        let hint = failures[0].hint.clone().unwrap();
        assert!(hint.contains(&format!("'{right}'")), "{text}: {hint}");
    }
}

#[test]
fn a_list_longer_than_any_batch_is_refused_while_it_is_read() {
    let text = patch(&["{}"; 100_001].join(","));
    assert_eq!(refusals(text.as_bytes()), ["files[0].changes: TOO_LARGE.CHANGES"]);
    let text = patch(&["{}"; 110_002].join(","));
    assert_eq!(refusals(text.as_bytes()), ["-: TOO_LARGE.CHANGES"]);
    let text = patch(&["{}"; 1000].join(","));
    assert_eq!(refusals(text.as_bytes()).len(), 101, "the rest is only counted");
}

/// An empty line takes two bytes of a document and a hundred in memory: they are counted before any is read.
#[test]
fn a_document_of_more_lines_than_are_read_is_refused() {
    let lines = |count: usize| vec![r#""""#; count].join(",");
    let insert = |count| format!(r#"{{"operation": "insert", "afterLine": 0, "newLines": [{}]}}"#, lines(count));
    let too_many = [
        patch(&insert(LINES + 2)),
        patch(&vec![insert(LINES / 2 + 2); 2].join(",")),
        format!("{0}\n{0}", format!("```json\n{}\n```\n", patch(&insert(LINES / 2 + 2)))),
        format!("*** Begin Patch\n*** Update File: a\n-x\n{}*** End Patch\n", " \n".repeat(LINES)),
        format!("--- a/a\n+++ b/a\n@@ -0,0 +1,{LINES} @@\n{}", "+\n".repeat(LINES)),
        format!("a\n<<<<<<< SEARCH\nx\n=======\n{}>>>>>>> REPLACE\n", "\n".repeat(LINES)),
        format!("```diff\n--- a/a\n+++ b/a\n@@ -0,0 +1,{LINES} @@\n{}```\n", "+\n".repeat(LINES)),
    ];
    for text in too_many {
        assert_eq!(refusals(text.as_bytes()), ["-: TOO_LARGE.DOCUMENT"], "{}", &text[..60]);
    }
    let arguments = format!(r#"{{"path": "a", "edits": [{}]}}"#, lines(LINES + 2));
    assert_eq!(arguments_text(arguments.as_bytes()).unwrap_err().detail, Some(Detail::Document));
    assert!(arguments_text(patch(&insert(LINES + 1)).as_bytes()).is_ok());
    let prose = format!(r#"{{"path": "a", "content": "{}"}}"#, r#"\",\""#.repeat(LINES + 2));
    assert!(read(&prose).is_ok(), "text is no list");
}

#[test]
fn a_message_repeats_little_of_a_hostile_document_and_nothing_raw() {
    let long = "x".repeat(1 << 20);
    for text in [
        format!(r#"{{"path": "a", "content": "", "overwrite": "{long}"}}"#),
        format!(r#"{{"path": "a", "content": "", "{long}": 1}}"#),
        format!(r#"{{"{long}": 1}}"#),
    ] {
        let failures = read(&text).unwrap_err();
        assert!(failures[0].message.len() < 1000, "{}", failures[0].message.len());
    }
    let failures = read(r#"{"path": "a", "content": "", "x`content`y\u001b[2J": 1}"#).unwrap_err();
    assert!(!failures[0].to_string().contains('\u{1b}'));
    assert_eq!(failures[0].hint.as_deref(), Some("leave the field out"));
}

/// A document is only said to be of two dialects where it has keys of both.
#[test]
fn what_is_in_no_dialect_is_named_by_its_keys() {
    let message = |text: &str| {
        let failures = parse(text.as_bytes(), None).unwrap_err();
        (failures[0].message.clone(), failures[0].hint.clone().unwrap())
    };
    let (file, hint) = message(r#"{"file": "a", "text": "b"}"#);
    assert!(file.contains("'file' may be meant as 'files'"), "{file}");
    let (alone, _) = message(r#"{"file": []}"#);
    assert!(alone.contains("'file', which no dialect has alone; 'file' may be meant as 'files'"), "{alone}");
    assert!(hint.contains("create-file has content"), "{hint}");
    let (path, _) = message(r#"{"path": "a"}"#);
    assert!(path.contains("its keys are 'path', which no dialect has alone"), "{path}");
    let (both, hint) = message(r#"{"content": "", "files": [{"docPath": "r/a"}]}"#);
    assert!(both.contains("its keys 'files.docPath' (line-patch) and 'content' (create-file)"), "{both}");
    assert!(hint.contains("one document at a time") && !hint.contains("name the dialect"), "{hint}");
}

/// A document names no root but the workspace itself, in any spelling.
#[test]
fn the_root_of_a_document_is_the_workspace() {
    for root in ["", ".", "./"] {
        let text = format!(r#"{{"root": "{root}", "files": [{{"path": "a", "content": ""}}]}}"#);
        assert!(read(&text).is_ok(), "{root:?}");
        let text = format!(r#"{{"root": "{root}", "patches": [{{"path": "a", "replacements": []}}]}}"#);
        assert!(read(&text).is_ok(), "{root:?}");
    }
}
