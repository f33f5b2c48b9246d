//! Terminators, byte order marks, unterminated ends and encodings, in each dialect, as a table.

use aptix_model::documents::{Dialect, parse};
use aptix_model::limits::Limits;

use crate::boundary::{apply_all, code, shown};
use crate::cost::assert_linear;

use Dialect::{
    CodexPatch, CreateFile, FileBundle, GitPatch, LinePatch, SearchPatch, SearchReplace, StrReplace, StructuredPatch,
};

/// The outcome of a document for the file `a.rs`: its bytes and what is flagged, or the failure.
fn outcome(dialect: Dialect, document: &str, base: &[u8]) -> Result<(String, String), String> {
    let sha256 = aptix_engine::digest::sha256(base).to_string();
    outcome_of(dialect, document.replace("{sha}", &sha256).as_bytes(), base)
}

fn outcome_of(dialect: Dialect, document: &[u8], base: &[u8]) -> Result<(String, String), String> {
    let document = parse(document, Some(dialect))
        .unwrap_or_else(|error| panic!("{error:?}: {}", String::from_utf8_lossy(document)));
    let applied = apply_all(&document.batch, &[Some(base)], &Limits::DEFAULT).map_err(|failures| code(&failures[0]))?;
    let report = &applied[0].report;
    let flags = report.normalized.iter().map(|flag| flag.word());
    let warnings = report.warnings.iter().map(|warning| warning.code.as_str());
    Ok((shown(&applied[0].content), flags.chain(warnings).collect::<Vec<_>>().join(" ")))
}

#[track_caller]
fn check(dialect: Dialect, document: &str, base: &[u8], expected: &[u8], flags: &str) {
    let found = outcome(dialect, document, base);
    assert_eq!(found, Ok((shown(expected), flags.to_owned())), "{dialect}: {document} over {:?}", shown(base));
}

const BUNDLE: &str = r#"{"files":[{"path":"a.rs","content":"x\ny\n"}]}"#;
const CREATE: &str = r#"{"path":"a.rs","content":"x\ny\n","overwrite":true}"#;
const OVERWRITE: &str = r#"{"path":"a.rs","patches":[{"operation":"overwrite","newText":"x\ny\n"}]}"#;

/// A whole text keeps the terminators and the byte order mark of the file in its place, and reports that.
#[test]
fn a_whole_text_keeps_the_form_of_the_file() {
    for (dialect, document) in [(FileBundle, BUNDLE), (SearchPatch, OVERWRITE)] {
        for (base, expected, flags) in [
            (&b"a\n"[..], &b"x\ny\n"[..], ""),
            (b"a", b"x\ny\n", ""),
            (b"", b"x\ny\n", ""),
            (b"a\r\nb\r\n", b"x\r\ny\r\n", "line_endings"),
            (b"a\r\nb", b"x\r\ny\r\n", "line_endings"),
            (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\ny\n", "bom_kept"),
            (b"\xef\xbb\xbfa\r\n", b"\xef\xbb\xbfx\r\ny\r\n", "bom_kept line_endings"),
            (b"a\r\nb\n", b"x\ny\n", "MIXED_LINE_ENDINGS"),
            (b"caf\xe9\n", b"x\ny\n", "ENCODING_CHANGED"),
            (b"caf\xe9\r\n", b"x\r\ny\r\n", "line_endings ENCODING_CHANGED"),
        ] {
            check(dialect, document, base, expected, flags);
        }
    }
    check(FileBundle, BUNDLE, b"a\0\r\n", b"x\ny\n", "ENCODING_CHANGED");
    check(FileBundle, BUNDLE, b"\xff\xfea\0\r\0\n\0", b"x\ny\n", "ENCODING_CHANGED");
    let bundle = |content: &str| format!(r#"{{"files":[{{"path":"a.rs","content":"{content}"}}]}}"#);
    // A text that says how its lines end is written as it says.
    check(FileBundle, &bundle(r"x\r\ny\n"), b"a\r\n", b"x\r\ny\n", "");
    check(FileBundle, &bundle(r"x\r\n"), b"a\n", b"x\r\n", "");
    check(FileBundle, &bundle(r"\ufeffx"), b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx", "");
    check(FileBundle, &bundle(""), b"\xef\xbb\xbfa\r\n", b"", "");
    let overwrite = OVERWRITE.replace(r"x\ny\n", r"\ufeffx");
    check(SearchPatch, &overwrite, b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx", "");
    check(SearchPatch, &OVERWRITE.replace(r"x\ny\n", r"x\r\n"), b"a\n", b"x\r\n", "");
}

/// TUL-004-5.1.5.1, TUL-004-5.1.5.2: only a created file loses the byte order mark and the carriage returns that were there.
#[test]
fn a_created_file_has_its_own_form() {
    for (base, flags) in [
        (&b"a\n"[..], ""),
        (b"a\r\n", "FORM_CHANGED"),
        (b"\xef\xbb\xbfa\n", "FORM_CHANGED"),
        (b"caf\xe9\n", "ENCODING_CHANGED"),
    ] {
        check(CreateFile, CREATE, base, b"x\ny\n", flags);
    }
    let returns = CREATE.replace(r"x\n", r"\ufeffx\r\n");
    check(CreateFile, &returns, b"a\n", b"x\ny\n", "bom_removed line_endings");
}

/// Text that is prepended ends, and text that is appended begins a line.
#[test]
fn text_at_an_end_is_a_line_of_its_own() {
    let patch = |operation: &str, text: &str| {
        format!(r#"{{"path":"a.rs","patches":[{{"operation":"{operation}","newText":"{text}"}}]}}"#)
    };
    const TOP: &str = "normalized_content_eof_newline_added";
    const END: &str = "normalized_file_eof_newline_added FINAL_NEWLINE_ADDED";
    for (operation, text, base, expected, flags) in [
        ("prepend_bof", "x", &b"a\n"[..], &b"x\na\n"[..], TOP),
        ("prepend_bof", "x", b"a\r\nb", b"x\r\na\r\nb", TOP),
        ("prepend_bof", "x", b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\na\n", TOP),
        ("prepend_bof", "x", b"xy\n", b"x\nxy\n", TOP),
        ("prepend_bof", r"x\ny", b"a\r\n", b"x\r\ny\r\na\r\n", "normalized_content_eof_newline_added line_endings"),
        ("prepend_bof", r"x\r", b"a\n", b"x\r\r\na\n", TOP),
        ("prepend_bof", "x", b"", b"x", ""),
        ("prepend_bof", "", b"a\n", b"a\n", ""),
        ("append_eof", "x", b"a\n", b"a\nx", ""),
        ("append_eof", "x", b"a", b"a\nx", END),
        (
            "append_eof",
            r"x\n",
            b"a\r\nb",
            b"a\r\nb\r\nx\r\n",
            "line_endings normalized_file_eof_newline_added FINAL_NEWLINE_ADDED",
        ),
    ] {
        check(SearchPatch, &patch(operation, text), base, expected, flags);
    }
    let both = r#"{"path":"a.rs","patches":[{"operation":"prepend_bof","newText":"x"},{"operation":"prepend_bof","newText":"y"}]}"#;
    check(SearchPatch, both, b"", b"x\ny", TOP);
}

/// TUL-002-6.4: an old last line that gets a terminator, because lines come below it, is flagged.
#[test]
fn a_terminator_of_an_old_last_line_is_flagged() {
    const FLAG: &str = "normalized_file_eof_newline_added";
    let lines = r#"{"files":[{"docPath":"repo/a.rs","originalSha256":"{sha}","changes":[{"operation":"insert","afterLine":1,"newLines":["x"]}]}]}"#;
    let insert = r#"{"command":"insert","path":"a.rs","insert_line":1,"insert_text":"x\n"}"#;
    let chunk = "*** Begin Patch\n*** Update File: a.rs\n@@\n a\n+x\n*** End Patch\n";
    let block = "a.rs\n<<<<<<< SEARCH\na\n=======\na\nx\n>>>>>>> REPLACE\n";
    for (dialect, document) in [(LinePatch, lines), (StrReplace, insert), (CodexPatch, chunk), (SearchReplace, block)] {
        check(dialect, document, b"a", b"a\nx", FLAG);
        check(dialect, document, b"a\n", b"a\nx\n", "");
    }
    let top = lines.replace(r#""afterLine":1"#, r#""afterLine":0"#);
    check(LinePatch, &top, b"a", b"x\na", "");
}

/// Text beyond ASCII is not edited into a file of another encoding; a diff states bytes.
#[test]
fn text_of_another_encoding_is_refused() {
    let lines = |new: &str| {
        format!(
            r#"{{"files":[{{"docPath":"repo/a.rs","originalSha256":"{{sha}}","changes":[{{"operation":"insert","afterLine":1,"newLines":["{new}"]}}]}}]}}"#
        )
    };
    let search =
        |new: &str| format!(r#"{{"path":"a.rs","patches":[{{"operation":"append_eof","newText":"{new}\n"}}]}}"#);
    let structured =
        |new: &str| format!(r#"{{"patches":[{{"path":"a.rs","replacements":[{{"find":"b","replace":"{new}"}}]}}]}}"#);
    let command = |new: &str| format!(r#"{{"command":"str_replace","path":"a.rs","old_str":"b","new_str":"{new}"}}"#);
    let block = |new: &str| format!("a.rs\n<<<<<<< SEARCH\nb\n=======\n{new}\n>>>>>>> REPLACE\n");
    let chunk = |new: &str| format!("*** Begin Patch\n*** Update File: a.rs\n@@\n b\n+{new}\n*** End Patch\n");
    let diff = |new: &str| format!("--- a/a.rs\n+++ b/a.rs\n@@ -2 +2,2 @@\n b\n+{new}\n");
    type Write<'a> = &'a dyn Fn(&str) -> String;
    let dialects: [(Dialect, Write<'_>); 7] = [
        (LinePatch, &lines),
        (SearchPatch, &search),
        (StructuredPatch, &structured),
        (StrReplace, &command),
        (SearchReplace, &block),
        (CodexPatch, &chunk),
        (GitPatch, &diff),
    ];
    let base = b"caf\xe9\nb\n\xc3\xbc x\n";
    for (dialect, document) in dialects {
        assert_eq!(outcome(dialect, &document("na\u{ef}ve"), base), Err("NOT_TEXT.ENCODING".to_owned()), "{dialect}");
        assert!(outcome(dialect, &document("plain"), base).is_ok(), "{dialect}");
        assert!(outcome(dialect, &document("na\u{ef}ve"), b"a\nb\n").is_ok(), "{dialect}");
        // The file has this character as UTF-8.
        assert!(outcome(dialect, &document("\u{fc}"), base).is_ok(), "{dialect}");
    }
}

/// The id of a diff is evidence of the file's encoding where it is that of the file; bytes of a diff that are no UTF-8 are
/// in that encoding, in each of its parts.
#[test]
fn a_diff_states_bytes_of_the_file_it_names() {
    let base = b"caf\xe9\nb\nc\nd\ne\n";
    let diff = |id: &str| {
        format!(
            "diff --git a/a.rs b/a.rs\nindex {id}..89abcde 100644\n--- a/a.rs\n+++ b/a.rs\n@@ -2,2 +2,2 @@\n-b\n+na\u{ef}ve\n c\n"
        )
    };
    assert!(outcome(GitPatch, &diff("b82024b"), base).is_ok());
    assert_eq!(outcome(GitPatch, &diff("1234567"), base), Err("NOT_TEXT.ENCODING".to_owned()));

    let part = |line: usize, old: &str, new: &[u8], below: &str| {
        let head = format!("--- a/a.rs\n+++ b/a.rs\n@@ -{line},2 +{line},2 @@\n-{old}\n+");
        [head.as_bytes(), new, format!("\n {below}\n").as_bytes()].concat()
    };
    let series = |new: &[u8]| [part(2, "b", new, "c"), part(4, "d", b"x", "e")].concat();
    assert!(outcome_of(GitPatch, &series(b"na\xefve"), base).is_ok());
    assert_eq!(outcome_of(GitPatch, &series("na\u{ef}ve".as_bytes()), base), Err("NOT_TEXT.ENCODING".to_owned()));
}

/// Many words that a file has as UTF-8 already: each is not looked for in all of the file.
#[test]
fn words_beyond_ascii_are_looked_for_in_linear_time() {
    let make = |count| {
        let words: String =
            (0x4e00_u32..).filter_map(char::from_u32).take(count).map(|word| format!(" {word}\u{e9}{word}")).collect();
        let base = [b"\xff\nTOP\n", words.repeat(4).as_bytes()].concat();
        let document =
            format!(r#"{{"patches":[{{"path":"a.rs","replacements":[{{"find":"TOP","replace":"{words}"}}]}}]}}"#);
        (document, base)
    };
    assert_linear("words", 1_000, make, |(document, base)| outcome(StructuredPatch, document, base).unwrap());
}
