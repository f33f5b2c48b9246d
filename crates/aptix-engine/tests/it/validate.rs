//! What is refused before any file is looked at.

use aptix_engine::plan::reads;
use aptix_engine::target::{Base, ValidTarget};
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, BlobRef, Change, Content, CreateFile, FileEdit, FilePatch, Reindent, SearchChange};
use aptix_model::digest::Sha256Digest;
use aptix_model::documents::{Dialect, parse};
use aptix_model::limits::Limits;

use crate::boundary::{batch, code, create, delete, insert, line_patch, line_patch_of, overwrite, replace};
use crate::editor_commands::{self, commands_of};
use crate::search_patch::{patch_of, swap};

/// Every failure as `REASON.DETAIL at field`.
fn found_with(batch: &Batch, limits: &Limits) -> Vec<String> {
    let failures = validate(batch, limits).err().unwrap_or_default();
    failures.iter().map(|f| format!("{} at {}", code(f), f.field.as_deref().unwrap_or("-"))).collect()
}

fn found(batch: &Batch) -> Vec<String> {
    found_with(batch, &Limits::DEFAULT)
}

/// The violations of a file patch of these changes, their fields relative to the change.
fn wrong(changes: &[Change]) -> Vec<String> {
    let found = found(&batch(vec![line_patch(b"", changes)]));
    found.iter().map(|text| text.replace("files[0].changes", "")).collect()
}

fn paths(paths: &[&str]) -> Vec<String> {
    found(&batch(paths.iter().map(|path| create(path, "")).collect()))
}

fn doc_paths(paths: &[&str]) -> Vec<String> {
    let digest = Sha256Digest::EMPTY.to_string();
    found(&batch(paths.iter().map(|path| line_patch_of(path, &digest, &[insert(0, &["x"])])).collect()))
}

/// TUL-002-4.1.3, TUL-002-4.2.9, L39: what must not be empty.
#[test]
fn empty_lists_are_refused() {
    assert_eq!(found(&batch(vec![])), ["INVALID_REQUEST.EMPTY at files"]);
    assert_eq!(wrong(&[]), ["INVALID_REQUEST.EMPTY at "]);
}

/// TUL-002-4.2.6, TUL-002-10.4, H1, H3: malformed digests.
#[test]
fn malformed_digests_are_refused() {
    let hex = "a".repeat(64);
    for digest in [
        "",
        "a",
        &hex[1..],
        &format!("{hex}a"),
        &format!("0x{}", &hex[2..]),
        &hex.replacen('a', " ", 1),
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    ] {
        let batch = batch(vec![line_patch_of("repo/a", digest, &[insert(0, &["x"])])]);
        assert_eq!(found(&batch), ["INVALID_REQUEST.SHA_FORMAT at files[0].originalSha256"], "{digest:?}");
    }
}

/// TUL-002-9.2, TUL-002-10.3, L1, L2, L3, L5: numbers that are no line numbers, ranges that are no ranges.
#[test]
fn bad_line_numbers_are_refused() {
    let is = |changes: &[Change], expected: &[&str]| assert_eq!(wrong(changes), expected);
    is(&[delete(0, 1, &["x"])], &["LINE_RANGE.ZERO at [0].startLine"]);
    is(&[delete(1, 0, &["x"])], &["LINE_RANGE.ZERO at [0].endLine"]);
    is(&[insert(-1, &["x"])], &["LINE_RANGE.NEGATIVE at [0].afterLine"]);
    is(
        &[replace(-5, i64::MIN, &["x"], &["y"])],
        &["LINE_RANGE.NEGATIVE at [0].startLine", "LINE_RANGE.NEGATIVE at [0].endLine"],
    );
    for number in [1 << 31, 1 << 32, (1 << 53) + 1, i64::MAX] {
        is(&[insert(number, &["x"])], &["LINE_RANGE.OVERFLOW at [0].afterLine"]);
        is(&[delete(1, number, &["x"])], &["LINE_RANGE.OVERFLOW at [0].endLine"]);
    }
    is(&[delete(5, 4, &[])], &["LINE_RANGE.INVERTED at [0].endLine"]);
    is(&[insert(i64::from(i32::MAX), &["x"])], &[]);
}

/// TUL-002-6.1, L16: changes that are not listed top to bottom.
#[test]
fn changes_out_of_order_are_refused() {
    let order = |changes: &[Change]| assert_eq!(wrong(changes)[0].split(' ').next(), Some("LINE_ORDER"), "{changes:?}");
    order(&[delete(5, 5, &["x"]), delete(1, 1, &["x"])]);
    order(&[insert(5, &["x"]), insert(4, &["x"])]);
    order(&[delete(5, 5, &["x"]), insert(4, &["x"])]);
    order(&[insert(5, &["x"]), delete(4, 4, &["x"])]);
    let changes = [insert(9, &["x"]), insert(1, &["x"]), insert(2, &["x"]), insert(3, &["x"])];
    assert_eq!(wrong(&changes), ["LINE_ORDER at [1].afterLine"]);
}

/// TUL-002-6.2, TUL-002-10.3, L11, L12, L13, L14, L15: changes that cover one line.
#[test]
fn overlapping_changes_are_refused() {
    let ten = ["x"; 3];
    let overlap = |changes: &[Change]| {
        let found = wrong(changes);
        assert!(found.len() == 1 && found[0].starts_with("LINE_OVERLAP at [1]."), "{changes:?}: {found:?}");
    };
    let fine = |changes: &[Change]| assert_eq!(wrong(changes), [""; 0], "{changes:?}");
    overlap(&[delete(10, 12, &ten), replace(11, 11, &["x"], &["y"])]);
    overlap(&[delete(10, 12, &ten), delete(12, 12, &["x"])]);
    overlap(&[delete(10, 12, &ten), delete(10, 12, &ten)]);
    overlap(&[delete(10, 12, &ten), insert(10, &["x"])]);
    overlap(&[delete(10, 12, &ten), insert(11, &["x"])]);
    overlap(&[insert(10, &["x"]), delete(10, 12, &ten)]);
    fine(&[delete(10, 12, &ten), delete(13, 13, &["x"])]);
    fine(&[insert(9, &["x"]), delete(10, 12, &ten)]);
    fine(&[delete(10, 12, &ten), insert(12, &["x"])]);
    fine(&[insert(10, &["x"]), insert(10, &["x"])]);
    fine(&[insert(10, &["x"]), delete(10, 10, &["x"])]);
    // A short range after a long one does not hide the long one.
    let changes = [delete(1, 9, &["x"; 9]), delete(2, 2, &["x"]), delete(5, 5, &["x"])];
    assert_eq!(wrong(&changes), ["LINE_OVERLAP at [1].startLine", "LINE_OVERLAP at [2].startLine"]);
}

/// TUL-002-5.2.3, TUL-002-5.3.4, TUL-002-5.3.6, L17, L21, L22, L23, L26, L27, L28, L36: lines that are no lines.
#[test]
fn bad_lines_are_refused() {
    let is = |change: Change, expected: &[&str]| assert_eq!(wrong(&[change]), expected);
    is(delete(1, 2, &["x"]), &["INVALID_REQUEST.EXPECTED_COUNT at [0].expectedOriginalLines"]);
    is(replace(1, 1, &[], &["x"]), &["INVALID_REQUEST.EXPECTED_COUNT at [0].expectedOriginalLines"]);
    is(insert(0, &[]), &["INVALID_REQUEST.EMPTY_NEW_LINES at [0].newLines"]);
    is(replace(1, 1, &["x"], &[]), &["INVALID_REQUEST.USE_DELETE at [0].newLines"]);
    is(insert(0, &["a", "b\nc"]), &["INVALID_REQUEST.EMBEDDED_NEWLINE at [0].newLines[1]"]);
    is(insert(0, &["a\r\n"]), &["INVALID_REQUEST.EMBEDDED_CR at [0].newLines[0]"]);
    is(replace(1, 1, &["x"], &["a\rb"]), &["INVALID_REQUEST.EMBEDDED_CR at [0].newLines[0]"]);
    is(replace(1, 1, &["x\n"], &["y"]), &["INVALID_REQUEST.EMBEDDED_NEWLINE at [0].expectedOriginalLines[0]"]);
    is(insert(0, &["\0"]), &["NOT_TEXT.BINARY at [0].newLines[0]"]);
    is(insert(0, &["", "\u{2028}\u{85}\u{b}\u{c}"]), &[]);
    is(delete(1, 1, &["a\rb"]), &[]);
}

/// TUL-004-3.3.2, TUL-004-4.2.2, TUL-004-5.1.1.1, TUL-004-5.1.2.3, TUL-004-5.1.2.4, TUL-004-5.2.1, TUL-004-5.2.2,
/// TUL-004-5.2.4, P35, P41: paths that may not be used.
#[test]
fn bad_paths_are_refused() {
    assert_eq!(
        paths(&[" ", "../x", "/x", "C:/x", "//s/x"]).join("; "),
        "INVALID_PATH.EMPTY at files[0].path; INVALID_PATH.TRAVERSAL at files[1].path; INVALID_PATH.ABSOLUTE at files[2].path; INVALID_PATH.DRIVE at files[3].path; INVALID_PATH.UNC at files[4].path"
    );
    assert_eq!(paths(&["src/.git/config"]), ["POLICY_DENIED.PROTECTED at files[0].path"]);
    assert_eq!(
        paths(&[".g\u{200c}it/x", ".g\u{202e}it/x", "a\u{202e}b", ".g\u{feff}it/x", "a\u{feff}b"]),
        [
            "POLICY_DENIED.PROTECTED at files[0].path",
            "POLICY_DENIED.PROTECTED at files[1].path",
            "INVALID_PATH.BIDI at files[2].path",
            "POLICY_DENIED.PROTECTED at files[3].path",
            "INVALID_PATH.CONTROL at files[4].path"
        ]
    );
    assert_eq!(doc_paths(&["repo/.env"]), [""; 0], "secrets are closed, or asked about, where it is known who asks");
}

/// TUL-002-3.2, TUL-002-4.2.2: a docPath is lower-case and has a root.
#[test]
fn doc_paths_are_lower_case() {
    assert_eq!(
        doc_paths(&["repo/A.rs", "a.rs"]),
        ["INVALID_PATH.NOT_LOWERCASE at files[0].docPath", "INVALID_PATH.UNKNOWN_ROOT at files[1].docPath"]
    );
}

/// TUL-002-3.1, TUL-002-4.1.4, P58, P59, P61, P63: no two paths of a batch are, or could be taken for, one file.
#[test]
fn twins_are_refused() {
    assert_eq!(paths(&["a/x", "b", "a/x"]), ["INVALID_REQUEST.DUPLICATE_PATH at files[2].path"]);
    assert_eq!(doc_paths(&["r/a", "r/a"]), ["INVALID_REQUEST.DUPLICATE_PATH at files[1].docPath"]);
    assert!(doc_paths(&["r/a", "r/A"]).contains(&"INVALID_REQUEST.DUPLICATE_PATH at files[1].docPath".to_owned()));
    assert_eq!(paths(&["Foo.cs", "foo.cs"]), ["AMBIGUOUS_PATH.CASE_COLLISION at files[1].path"]);
    assert_eq!(paths(&["A/x", "a/y"]), ["AMBIGUOUS_PATH.CASE_COLLISION at files[1].path"]);
    assert_eq!(paths(&["A/x", "b/q", "a/x/deep/y", "a-b"]), ["AMBIGUOUS_PATH.CASE_COLLISION at files[2].path"]);
    assert_eq!(paths(&["\u{e9}.txt", "e\u{301}.txt"]), ["AMBIGUOUS_PATH.NORM_COLLISION at files[1].path"]);
    assert_eq!(doc_paths(&["r/\u{e9}", "r/e\u{301}"]), ["AMBIGUOUS_PATH.NORM_COLLISION at files[1].docPath"]);
    // Case twins are not only those that lower-casing makes equal.
    for twins in [["Stra\u{df}e", "STRASSE"], ["\u{3b1}\u{3c2}", "\u{3b1}\u{3c3}"], ["\u{c9}", "e\u{301}"]] {
        assert_eq!(paths(&twins), ["AMBIGUOUS_PATH.CASE_COLLISION at files[1].path"], "{twins:?}");
    }
    // A docPath is lower-cased letter by letter.
    let sigmas = doc_paths(&["r/\u{391}\u{3a3}", "r/\u{3b1}\u{3c3}"]);
    assert!(sigmas.contains(&"INVALID_REQUEST.DUPLICATE_PATH at files[1].docPath".to_owned()), "{sigmas:?}");
    assert_eq!(paths(&["a/b", "a"]), ["INVALID_REQUEST.PREFIX_CONFLICT at files[1].path"]);
    assert_eq!(paths(&["a", "a.b", "a-b", "a/b/c"]), ["INVALID_REQUEST.PREFIX_CONFLICT at files[3].path"]);
    assert_eq!(paths(&["a/x", "a/y", "ab/x", "a-b/x", "a/x.y"]), [""; 0]);
    // What a path and a docPath have in common is only known once they are resolved.
    let mixed =
        batch(vec![create("r/a", ""), line_patch_of("r/a", &Sha256Digest::EMPTY.to_string(), &[insert(0, &["x"])])]);
    assert_eq!(found(&mixed), [""; 0]);
}

/// H15, L37, L38, L39, L40, TUL-004-5.3.1, TUL-004-5.3.2: sizes.
#[test]
fn sizes_are_limited() {
    let limits = Limits {
        created_bytes: 10,
        line_bytes: 4,
        files: 3,
        changes: 3,
        text_bytes: 5,
        file_bytes: 100,
        ..Limits::DEFAULT
    };
    let is = |files: Vec<FilePatch>, expected: &[&str]| assert_eq!(found_with(&batch(files), &limits), expected);
    is(vec![create("a", "0123456789")], &[]);
    is(vec![create("a", "0123456789+")], &["TOO_LARGE.FILE at files[0].content"]);
    is(vec![create("a", "a\0b")], &["NOT_TEXT.BINARY at files[0].content"]);
    let mut blob = create("a", "");
    let content = Content::Blob(BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 11 });
    blob.edit = FileEdit::CreateFile(CreateFile { content, overwrite: false, content_format: None });
    is(vec![blob], &["TOO_LARGE.FILE at files[0].content"]);
    is(vec![line_patch(b"", &[insert(0, &["1234", "12345"])])], &["TOO_LARGE.LINE at files[0].changes[0].newLines[1]"]);
    is((0..4).map(|index| create(&format!("{index}"), "")).collect(), &["TOO_LARGE.FILES at files"]);
    let two = [insert(0, &["x"]), insert(1, &["x"])];
    is(vec![line_patch(b"", &two), line_patch_of("r/b", "", &two)], &["TOO_LARGE.CHANGES at files"]);

    let mut change = insert(0, &["x"]);
    (change.key, change.description) = (Some("12345".to_owned()), Some("123456".to_owned()));
    let mut patch = line_patch(b"", &[change]);
    (patch.key, patch.label) = (Some("123456".to_owned()), Some("123456".to_owned()));
    let mut batch = batch(vec![patch]);
    (batch.label, batch.key) = (Some("123456".to_owned()), Some("123456".to_owned()));
    let fields =
        ["batchLabel", "batchKey", "files[0].fileKey", "files[0].fileLabel", "files[0].changes[0].description"];
    assert_eq!(found_with(&batch, &limits), fields.map(|field| format!("TOO_LARGE.TEXT at {field}")));
}

/// REQ-PATCH-008.1, REQ-PATCH-008.2: a search patch of more than 60,000 tokens is refused, whatever it is made of; many
/// bytes are not many tokens.
#[test]
fn a_search_patch_has_at_most_sixty_thousand_tokens() {
    let tokens = |texts: &[&str]| {
        let changes: Vec<_> = texts.iter().map(|text| swap("a", text)).collect();
        found(&batch(vec![patch_of("a", &changes)]))
    };
    let too_large = ["TOO_LARGE.TOKENS at files[0].changes"];
    for (piece, few, many) in [
        ("hello\n", 29_999, 30_000),
        ("hello ", 29_999, 60_000),
        (" hello", 59_999, 60_000),
        ("x = 1\n", 5_000, 20_000),
        ("\u{6f22}\u{5b57}", 2_000, 40_000),
        (" ", 1_000_000, 0),
        ("a", 400_000, 0),
        ("\n", 10_000, 0),
        (" \u{2028}\r", 10_000, 60_000),
    ] {
        assert_eq!(tokens(&[&piece.repeat(few)]), [""; 0], "{piece:?}");
        if many > 0 {
            assert_eq!(tokens(&[&piece.repeat(many)]), too_large, "{piece:?}");
        }
    }
    let lines = "hello\n".repeat(20_000);
    assert_eq!(tokens(&[&lines, &lines]), too_large, "the sum of the changes");
    let one_each = batch(vec![patch_of("a", &[swap("a", &lines)]), patch_of("b", &[swap("a", &lines)])]);
    assert_eq!(found(&one_each), [""; 0], "each file has its own patch");
    let pasted = SearchChange { from_clipboard: Some("k".to_owned()), ..swap(&lines, &lines) };
    let indented = Reindent { strip: String::new(), add: "hello ".repeat(20_000) };
    let indented = SearchChange { reindent: Some(indented), ..swap(&lines, "b") };
    for change in [swap(&lines, &lines), pasted, indented] {
        let failures = validate(&batch(vec![patch_of("a", &[change])]), &Limits::DEFAULT).unwrap_err();
        assert_eq!((failures.len(), code(&failures[0]).as_str()), (1, "TOO_LARGE.TOKENS"));
        assert!(failures[0].message.starts_with("the patch has more than 60000 tokens, in 24000"), "{}", failures[0]);
        assert!(failures[0].hint.as_deref().is_some_and(|hint| hint.contains("smaller patches")), "{}", failures[0]);
    }
}

/// REQ-PATCH-008.1: the limit is that of a search patch; commands of the text-editor tool have none of their own.
#[test]
fn commands_of_the_text_editor_tool_may_have_more_tokens() {
    let many = "hello\n".repeat(50_000);
    assert_eq!(found(&batch(vec![commands_of("a", &[editor_commands::swap("a", &many)])])), [""; 0]);
}

/// REQ-PATCH-008.1: an escape in a document counts as the character that it means.
#[test]
fn escapes_in_a_document_count_as_their_characters() {
    for (count, expected) in [(59_900, vec![]), (60_100, vec!["TOO_LARGE.TOKENS at files[0].changes"])] {
        let text = r" caf\u00e9".repeat(count);
        let text = format!(r#"{{"path": "a", "patches": [{{"operation": "append_eof", "newText": "{text}"}}]}}"#);
        let document = parse(text.as_bytes(), Some(Dialect::SearchPatch)).unwrap();
        assert_eq!(found(&document.batch), expected, "{count}");
    }
}

/// TUL-002-9.2: all violations are reported at once, each with its file and change, up to a hundred.
#[test]
fn violations_are_reported_together_and_counted_past_a_hundred() {
    let bad = [delete(0, 1, &["x"]), insert(5, &[]), insert(4, &["a\n"])];
    let failures = validate(&batch(vec![line_patch_of("Repo/a", "x", &bad)]), &Limits::DEFAULT).unwrap_err();
    let codes: Vec<_> = failures.iter().map(code).collect();
    assert_eq!(
        codes,
        [
            "INVALID_PATH.NOT_LOWERCASE",
            "INVALID_REQUEST.SHA_FORMAT",
            "LINE_RANGE.ZERO",
            "INVALID_REQUEST.EMPTY_NEW_LINES",
            "INVALID_REQUEST.EMBEDDED_NEWLINE",
            "LINE_ORDER",
        ]
    );
    assert_eq!((failures[5].file_index, failures[5].change_index), (Some(0), Some(2)));
    assert_eq!(failures[5].path.as_deref(), Some("Repo/a"));
    let many: Vec<_> = (0..5000).map(|_| insert(0, &[])).collect();
    let failures = validate(&batch(vec![line_patch(b"", &many)]), &Limits::DEFAULT).unwrap_err();
    assert_eq!(failures.len(), 101);
    assert_eq!(failures[100].message, "4900 more failures are not listed");
}

/// TUL-004-5.1.1.2, TUL-004-5.1.1.3: what a valid batch says.
#[test]
fn a_valid_batch_names_files_and_bases() {
    let batch = batch(vec![line_patch(b"", &[insert(0, &["x"])]), create("A", ""), overwrite("b", "")]);
    let valid = validate(&batch, &Limits::DEFAULT).unwrap();
    let bases: Vec<_> = valid.files().iter().map(|file| file.base).collect();
    assert_eq!(bases, [Base::MustMatch(Sha256Digest::EMPTY), Base::MustNotExist, Base::Any]);
    let names: Vec<_> = reads(&valid)
        .map(|reads| match reads.target {
            ValidTarget::DocPath(path) => path.as_str(),
            ValidTarget::Path(path) => path.as_str(),
        })
        .collect();
    assert_eq!(names, ["repo/a.txt", "A", "b"]);
}

/// However long a path is, a violation shows the beginning of it.
#[test]
fn a_long_path_is_cut_where_it_is_shown() {
    let path = format!("r/{}", "\u{e9}".repeat(100_000));
    let failures = validate(&batch(vec![line_patch_of(&path, "x", &[insert(0, &[])])]), &Limits::DEFAULT).unwrap_err();
    let shown: Vec<_> = failures.iter().map(|failure| failure.path.as_deref().unwrap()).collect();
    assert_eq!(shown, [format!("r/{}\u{2026}", "\u{e9}".repeat(198)).as_str(); 3]);
}

/// Limits that a few bytes pass.
const SMALL: Limits =
    Limits { created_bytes: 4, line_bytes: 4, files: 3, changes: 2, text_bytes: 4, file_bytes: 4, ..Limits::DEFAULT };

/// Everything that is wrong comes with what to do about it.
#[test]
fn every_violation_has_a_hint() {
    let digest = Sha256Digest::EMPTY.to_string();
    let doc = |path: &str| line_patch_of(path, &digest, &[insert(0, &["x"])]);
    let lines = |changes: &[Change]| vec![line_patch(b"", changes)];
    let mut labelled = create("a", "");
    labelled.label = Some("label".to_owned());
    let delete_one = || delete(1, 1, &["x"]);
    for (files, hint) in [
        (vec![], "give at least one, or leave out what has none"),
        (lines(&[]), "give at least one, or leave out what has none"),
        (["a", "b", "c", "d"].map(|path| create(path, "")).to_vec(), "split the batch"),
        (lines(&[delete_one(), delete_one(), delete_one()]), "split the batch"),
        (vec![labelled], "shorten it"),
        (vec![create("a", "12345")], "shorten it"),
        (lines(&[insert(0, &["12345"])]), "shorten it"),
        (
            vec![line_patch_of("r/a", "x", &[insert(0, &["x"])])],
            "state the SHA-256 that reading the file gave, or compute it from the whole text",
        ),
        (vec![doc("r/A")], "write the docPath in lower case; it finds the file in any case"),
        (vec![doc("a")], "begin the docPath with the name of the file's root and a slash"),
        (vec![create(&"a/".repeat(65), "")], "use a shorter path"),
        (vec![create(&"a".repeat(300), "")], "use a shorter path"),
        (vec![create("../a", "")], "use plain names from the root down, separated by '/'"),
        (vec![create(".git/config", "")], "leave this file out of the batch"),
        (vec![create("a", ""), create("a", "")], "put all changes of one file into one entry"),
        (vec![create("a", ""), create("A", "")], "spell shared directories alike and give files names of their own"),
        (
            vec![create("\u{e9}", ""), create("e\u{301}", "")],
            "spell shared directories alike and give files names of their own",
        ),
        (vec![create("a", ""), create("a/b", "")], "give the file and the directory different names"),
        (lines(&[delete(0, 1, &["x"])]), "lines are counted from 1; what is added at the top is added after line 0"),
        (lines(&[delete(2, 1, &["x"])]), "give the first line of the range first, then the last"),
        (lines(&[insert(-1, &["x"])]), "take line numbers from the file as it was read"),
        (lines(&[insert(1 << 40, &["x"])]), "take line numbers from the file as it was read"),
        (
            lines(&[insert(2, &["x"]), insert(1, &["x"])]),
            "list the changes of a file top to bottom, by afterLine or startLine",
        ),
        (lines(&[delete_one(), delete_one()]), "make one replace of the changes that meet"),
        (lines(&[insert(1, &["x"]), delete(1, 2, &["x", "x"])]), "make one replace of the changes that meet"),
        (lines(&[delete(1, 1, &[])]), "expectedOriginalLines has one entry for each line from startLine to endLine"),
        (lines(&[insert(0, &[])]), "for an empty line give newLines one empty string"),
        (
            lines(&[replace(1, 1, &["x"], &[])]),
            "use the operation delete; for an empty line give newLines one empty string",
        ),
        (lines(&[insert(0, &["a\n"])]), "give each line an entry of its own, without its terminator"),
        (lines(&[insert(0, &["a\r"])]), "leave terminators out: new lines are ended as the file's own lines are"),
        (lines(&[insert(0, &["\0"])]), "leave the NUL out; only text can be written"),
        (vec![create("a", "\0")], "leave the NUL out; only text can be written"),
    ] {
        let batch = batch(files);
        let failures = validate(&batch, &SMALL).unwrap_err();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].hint.as_deref(), Some(hint), "{}", failures[0]);
    }
    let failures = validate(&batch(lines(&[delete(1, 1, &[])])), &SMALL).unwrap_err();
    assert_eq!(failures[0].message, "the range has 1 line, and expectedOriginalLines has 0");
}
