//! `aptix convert`: the converted document, applied, leaves the same bytes as the one it was made from.

use std::fs;
use std::path::Path;

use aptix_engine::digest::sha256;

use crate::command_line::{aptix, text};

/// The bytes of `a.txt` before, and the document.
struct Case {
    before: Option<&'static [u8]>,
    document: String,
}

fn case(before: Option<&'static [u8]>, document: impl Into<String>) -> Case {
    Case { before, document: document.into() }
}

fn line_patch(before: &'static [u8], changes: &str) -> Case {
    let sha = sha256(before);
    let document =
        format!(r#"{{"files": [{{"docPath": "ws/a.txt", "originalSha256": "{sha}", "changes": [{changes}]}}]}}"#);
    case(Some(before), document)
}

fn place_with(before: Option<&[u8]>) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("ws")).unwrap();
    if let Some(before) = before {
        fs::write(place.path().join("ws/a.txt"), before).unwrap();
    }
    place
}

/// What is in `a.txt` once a document was applied.
fn after(before: Option<&[u8]>, document: &[u8]) -> Option<Vec<u8>> {
    let place = place_with(before);
    let output = aptix(place.path(), &["apply", "--yes"], document);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", document.escape_ascii(), text(&output.stderr));
    fs::read(place.path().join("ws/a.txt")).ok()
}

/// What `aptix convert` prints, or what it says when it refuses.
fn convert(before: Option<&[u8]>, document: &str, to: &str) -> Result<Vec<u8>, String> {
    let place = place_with(before);
    let output = aptix(place.path(), &["convert", "--to", to], document);
    assert_eq!(fs::read(place.path().join("ws/a.txt")).ok().as_deref(), before, "nothing is written");
    assert!(!Path::new(&place.path().join("state")).exists(), "nothing is kept");
    match output.status.code() {
        Some(0) => Ok(output.stdout),
        Some(1) if output.stdout.is_empty() => Err(text(&output.stderr)),
        code => panic!("{code:?}: {}", text(&output.stderr)),
    }
}

#[test]
fn a_converted_document_leaves_the_same_bytes() {
    let cases = [
        (
            line_patch(b"a\r\nb\r\nc", r#"{"operation": "insert", "afterLine": 3, "newLines": ["d"]}"#),
            "line-patch file-bundle git-patch",
        ),
        (
            line_patch(
                b"a\n\xff\nb\n",
                r#"{"operation": "delete", "startLine": 3, "endLine": 3, "expectedOriginalLines": ["b"]}"#,
            ),
            "line-patch git-patch",
        ),
        (
            case(Some(b"a\nb\nc\n"), r#"{"path": "a.txt", "content": "a\nB\nc\n", "overwrite": true}"#),
            "line-patch file-bundle git-patch",
        ),
        (case(None, r#"{"path": "a.txt", "content": "new"}"#), "file-bundle git-patch"),
        (case(Some(b"gone\n"), r#"{"files": [{"path": "a.txt", "operation": "delete"}]}"#), "file-bundle git-patch"),
        (
            case(Some(b"x\n"), "Here:\n\n```json\n{\"files\": [{\"path\": \"a.txt\", \"content\": \"y\\n\"}]}\n```\n"),
            "line-patch file-bundle git-patch",
        ),
        (
            case(Some(b"a\na\nb\na\n"), r#"{"path": "a.txt", "content": "a\nx\nb\ny\n", "overwrite": true}"#),
            "line-patch search-patch structured-patch git-patch",
        ),
        (
            case(
                Some(b"a\r\nb\r\n"),
                r#"{"path": "a.txt", "patches": [{"operation": "replace", "oldText": "b", "newText": "c\nd"}]}"#,
            ),
            "line-patch search-patch structured-patch git-patch file-bundle",
        ),
        (
            case(Some(b"a\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n a\n+b\n"),
            "line-patch search-patch structured-patch git-patch file-bundle",
        ),
        (
            case(None, r#"{"path": "a.txt", "patches": [{"operation": "append_eof", "newText": "x"}]}"#),
            "search-patch git-patch",
        ),
    ];
    for (case, dialects) in cases {
        let expected = after(case.before, case.document.as_bytes());
        for to in dialects.split(' ') {
            let converted = convert(case.before, &case.document, to).unwrap_or_else(|said| panic!("{to}: {said}"));
            assert_eq!(after(case.before, &converted), expected, "{to}: {}", converted.escape_ascii());
        }
    }
}

#[test]
fn what_a_dialect_cannot_say_is_refused_with_the_reason() {
    let create = r#"{"path": "a.txt", "content": "new"}"#;
    let said = convert(None, create, "line-patch").unwrap_err();
    assert!(said.contains("NOT_EXPRESSIBLE: a.txt: a line patch cannot create a file"), "{said}");
    assert!(said.contains("hint: "), "{said}");
    let said = convert(Some(b"old"), create, "line-patch").unwrap_err();
    assert!(said.contains("FILE_EXISTS"), "what cannot be applied cannot be converted: {said}");
    let place = place_with(None);
    for to in ["chat", "codex-patch", "nothing", "auto"] {
        let output = aptix(place.path(), &["convert", "--to", to], create);
        assert_eq!(output.status.code(), Some(2), "{to}");
    }
}
