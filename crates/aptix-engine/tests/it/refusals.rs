//! TUL-002 5 and 6: changes that do not fit the file, and the reported reasons.

use aptix_engine::digest::sha256;
use aptix_model::failure::REPLACE_HINT;
use aptix_model::limits::Limits;

use crate::boundary::{
    apply, apply_all, batch, check_refused, code, create, delete, insert, line_patch, line_patch_of, refused, replace,
};

/// L6, L8, L10, TUL-002-9.2, TUL-002-10.3: lines that the file does not have.
#[test]
fn a_line_past_the_end_is_refused() {
    for change in
        [replace(3, 3, &["x"], &["y"]), replace(2, 3, &["b", "x"], &["y"]), insert(3, &["x"]), delete(9, 9, &["x"])]
    {
        let failure = check_refused("a\nb\n", std::slice::from_ref(&change), "LINE_RANGE.PAST_END");
        assert!(failure.message.ends_with("the file has 2 lines"), "{failure}");
        let appends = change.operation == insert(3, &["x"]).operation;
        let next =
            if appends { "to append, insert with afterLine 2" } else { "take line numbers from the file as it is now" };
        assert_eq!(failure.hint.unwrap(), format!("the last line is line 2; {next}"));
        assert_eq!(failure.nearest[0].text, "a\nb");
        assert_eq!(failure.current_sha256, Some(sha256(b"a\nb\n")));
    }
    let failure = check_refused("", &[replace(1, 1, &[""], &["y"])], "LINE_RANGE.PAST_END");
    assert_eq!(failure.hint.unwrap(), "the file is empty: insert with afterLine 0");
    let failure = check_refused("a\n", &[insert(5, &["x"])], "LINE_RANGE.PAST_END");
    assert_eq!(failure.message, "the change names line 5, and the file has 1 line");
    check_refused("\u{feff}", &[delete(1, 1, &[""])], "LINE_RANGE.PAST_END");
    // The number is wrong if the expected lines are elsewhere.
    let failure = check_refused("a\nb\nc\n", &[replace(7, 8, &["b", "c"], &["x"])], "LINE_RANGE.PAST_END");
    assert!(failure.hint.unwrap().starts_with("the expected lines are at lines 2 to 3 and nowhere else"));
    assert_eq!(failure.nearest[0].text, "b\nc");
    let long = "line\n".repeat(1000);
    let failure = check_refused(&long, &[insert(1001, &["x"])], "LINE_RANGE.PAST_END");
    assert_eq!((failure.nearest[0].start_line, failure.nearest[0].end_line), (996, 1000));
    check_refused("x".repeat(2048), &[insert(2, &["x"])], "LINE_RANGE.PAST_END");
}

/// TUL-002-5.3.4, TUL-002-5.3.5, TUL-002-5.4.3, L18, L20: lines that are not the expected ones.
#[test]
fn an_unexpected_line_is_refused_with_the_real_one() {
    let failure =
        check_refused("a\nlet b = 1;\nc\n", &[replace(1, 3, &["a", "let b = 2;", "c"], &["x"])], "EXPECTED_MISMATCH");
    assert_eq!(
        failure.message,
        "line 2 is not the expected line: at column 9, expected \"let b = 2;\", found \"let b = 1;\""
    );
    assert_eq!((failure.file_index, failure.change_index, failure.line), (Some(0), Some(0), Some(2)));
    let [nearest] = failure.nearest.as_slice() else { panic!("{failure:?}") };
    assert_eq!((nearest.start_line, nearest.end_line, nearest.text.as_str()), (1, 3, "a\nlet b = 1;\nc"));
    check_refused("a\nb\n", &[delete(2, 2, &["B"])], "EXPECTED_MISMATCH");
    check_refused("a\r\n", &[delete(1, 1, &["a\r"])], "EXPECTED_MISMATCH");
    check_refused("\u{feff}a\n", &[delete(1, 1, &["\u{feff}a"])], "EXPECTED_MISMATCH");
    check_refused("ab\n", &[delete(1, 1, &["a"])], "EXPECTED_MISMATCH");
    assert_eq!(failure.hint.unwrap(), "take expectedOriginalLines from the file as it is now, word for word");
}

/// L35: a line that no text can be equal to is said to be one, and not shown beside a text that looks like it.
#[test]
fn a_line_that_is_no_utf8_cannot_be_named() {
    for expected in ["caf\u{fffd} x", "other"] {
        let failure = check_refused(b"caf\xe9 x\n", &[delete(1, 1, &[expected])], "EXPECTED_MISMATCH");
        assert_eq!(
            failure.message,
            "line 1 is not the expected line: byte 4 of it is no UTF-8, and no patch can name such a line"
        );
        assert_eq!(failure.hint.unwrap(), "leave this line out of the patch");
        assert_eq!(failure.nearest[0].text, "caf\u{fffd} x");
    }
}

/// L18: a difference in white space alone is said in words.
#[test]
fn white_space_is_named() {
    for (found, expected, words) in [
        ("a ", "a", "trailing white space"),
        ("\ta", "    a", "leading white space"),
        (" a", "a ", "leading and trailing white space"),
        ("a  b", "a b", "white space"),
        ("\u{feff}a", "\u{feff}a", "a byte order mark, which is no part of line 1"),
    ] {
        let failure = check_refused(format!("{found}\n"), &[delete(1, 1, &[expected])], "EXPECTED_MISMATCH");
        assert!(failure.message.ends_with(&format!("which differs in {words}")), "{failure}");
    }
    let failure = check_refused("é a\n", &[delete(1, 1, &["é b"])], "EXPECTED_MISMATCH");
    assert!(failure.message.contains("at column 3"), "{failure}");
}

/// The one other place of the expected lines is named, and none when there are several.
#[test]
fn lines_that_moved_are_found() {
    let before = "x\nfn a() {\n    one\n}\n\nfn b() {\n    two\n}\n";
    let failure = check_refused(before, &[delete(1, 3, &["fn b() {", "    two", "}"])], "EXPECTED_MISMATCH");
    assert!(failure.hint.unwrap().contains("are at lines 6 to 8 and nowhere else"));
    let failure = check_refused(before, &[delete(1, 1, &["x "])], "EXPECTED_MISMATCH");
    assert!(!failure.hint.unwrap().contains("nowhere else"));
    let failure = check_refused("x\nab\nab\n", &[delete(1, 1, &["ab"])], "EXPECTED_MISMATCH");
    assert!(!failure.hint.unwrap().contains("nowhere else"));
    let failure = check_refused("a\nb\nx", &[delete(2, 3, &["a", "b"])], "EXPECTED_MISMATCH");
    assert!(failure.hint.unwrap().contains("lines 1 to 2"));
    let failure = check_refused("a\nb\n", &[delete(1, 1, &["b"])], "EXPECTED_MISMATCH");
    assert!(failure.hint.unwrap().starts_with("the expected line is at line 2 and nowhere else"));
}

/// A search gives up when most of the file has to be looked at again for each place that comes into question.
#[test]
fn a_search_does_not_grow_with_the_square_of_the_file() {
    let hint = |count: usize| {
        let mut expected = vec!["a"; count];
        expected[count - 1] = "ab";
        let before = format!("ab{}\n", "z".repeat(500)).repeat(count) + &expected.join("\n");
        let last = i64::try_from(count).unwrap();
        check_refused(before, &[delete(1, last, &expected)], "EXPECTED_MISMATCH").hint.unwrap()
    };
    assert!(hint(4).contains("are at lines 5 to 8"), "{}", hint(4));
    assert!(!hint(200).contains("are at"));
}

/// A batch has a few searches, however many of its files and changes do not fit.
#[test]
fn a_batch_has_eight_searches() {
    let before = (0..12).map(|line| format!("line {line}\n")).collect::<String>();
    let changes: Vec<_> = (1..=6).map(|line| delete(line, line, &[format!("line {}", line + 5).as_str()])).collect();
    let stated = sha256(before.as_bytes()).to_string();
    let batch = batch(["a", "b"].map(|name| line_patch_of(&format!("repo/{name}"), &stated, &changes)).to_vec());
    let failures = apply_all(&batch, &[Some(before.as_bytes()); 2], &Limits::DEFAULT).unwrap_err();
    let found = failures.iter().map(|failure| failure.hint.as_ref().unwrap().contains("nowhere else"));
    assert_eq!(found.collect::<Vec<_>>(), [[true; 6], [true, true, false, false, false, false]].concat());
}

/// What is shown of a file is bounded.
#[test]
fn shown_lines_are_few_and_short() {
    let before = format!("{}\n", "é".repeat(1000)).repeat(50);
    let expected = vec![""; 50];
    let failure = check_refused(&before, &[delete(1, 50, &expected)], "EXPECTED_MISMATCH");
    assert_eq!((failure.nearest[0].start_line, failure.nearest[0].end_line), (1, 20));
    assert!(failure.nearest[0].text.lines().all(|line| line.chars().count() == 401));
    let mut expected = vec!["x"; 50];
    expected[40] = "y";
    let failure = check_refused("x\n".repeat(50), &[delete(1, 50, &expected)], "EXPECTED_MISMATCH");
    assert_eq!((failure.nearest[0].start_line, failure.nearest[0].end_line), (31, 50));
}

/// L34, L36: a file that is not text is refused.
#[test]
fn a_file_that_is_not_text_is_refused() {
    let changes = [insert(0, &["x"])];
    check_refused(b"\xff\xfea\0", &changes, "NOT_TEXT.ENCODING");
    check_refused(b"\xfe\xff\0a", &changes, "NOT_TEXT.ENCODING");
    check_refused(b"\0\0\xfe\xff\0\0\0a", &changes, "NOT_TEXT.ENCODING");
    check_refused(b"\xff\xfe\0\0a\0\0\0", &changes, "NOT_TEXT.ENCODING");
    check_refused(b"a\0b\n", &changes, "NOT_TEXT.BINARY");
    check_refused(b"\0\0\xfe\n", &changes, "NOT_TEXT.BINARY");
    for at in [0, 31, 32, 63, 64, 511, 512, 575, 1023, 1024, 1299] {
        let mut before = b"a line with a line feed here and\n".repeat(40)[..1300].to_vec();
        before[at] = 0;
        let failure = check_refused(before, &changes, "NOT_TEXT.BINARY");
        assert!(failure.message.contains(&format!("a NUL byte at offset {at} ")), "{}", failure.message);
    }
}

/// L37: sizes have limits, and lines that no change touches may be of any length.
#[test]
fn limits_are_kept() {
    let limits = Limits { file_bytes: 20, line_bytes: 5, ..Limits::DEFAULT };
    let check = |before: &str, change| {
        let batch = batch(vec![line_patch(before.as_bytes(), &[change])]);
        let failures = apply_all(&batch, &[Some(before.as_bytes())], &limits).err()?;
        assert_eq!(failures[0].current_sha256, Some(sha256(before.as_bytes())));
        Some((code(&failures[0]), failures[0].hint.clone().unwrap()))
    };
    let refused = |found: Option<(String, String)>, code: &str, hint: &str| {
        assert_eq!(found.as_ref().map(|(code, hint)| (code.as_str(), hint.as_str())), Some((code, hint)));
    };
    let hint = "leave the line out of the patch: lines that no change touches may be of any length";
    refused(check("0123456789\n", delete(1, 1, &["x"])), "TOO_LARGE.LINE", hint);
    assert_eq!(check("0123456789\na\n", delete(2, 2, &["a"])), None);
    let hint = "leave this file out of the batch; the limit can only be raised where the batch is applied";
    refused(check("0123456789\n0123456789\n", insert(0, &["a"])), "TOO_LARGE.FILE", hint);
}

/// H10: a line patch of no file.
#[test]
fn a_missing_file_is_not_patched() {
    assert_eq!(refused(apply(line_patch(b"", &[insert(0, &["x"])]), None)), "FILE_MISSING");
}

/// H7: everything that is wrong in any file is reported at once, with file and change; nothing is planned.
#[test]
fn failures_of_all_files_and_changes_are_reported_at_once() {
    let patch = |path: &str, before: &[u8], changes: &[_]| line_patch_of(path, &sha256(before).to_string(), changes);
    let batch = batch(vec![
        patch("repo/ok", b"a\n", &[insert(0, &["x"])]),
        patch(
            "repo/two",
            b"a\nb\nc\n",
            &[delete(1, 1, &["x"]), insert(1, &["fine"]), delete(3, 3, &["y"]), insert(9, &["z"])],
        ),
        create("exists", "x"),
        patch("repo/stale", b"other\n", &[insert(0, &["x"])]),
    ]);
    let files: [Option<&[u8]>; 4] = [Some(b"a\n"), Some(b"a\nb\nc\n"), Some(b""), Some(b"now\n")];
    let failures = apply_all(&batch, &files, &Limits::DEFAULT).unwrap_err();
    let reported: Vec<_> = failures.iter().map(|f| (f.file_index.unwrap(), f.change_index, code(f))).collect();
    let reported: Vec<_> = reported.iter().map(|(file, change, code)| (*file, *change, code.as_str())).collect();
    assert_eq!(
        reported,
        [
            (1, Some(0), "EXPECTED_MISMATCH"),
            (1, Some(2), "EXPECTED_MISMATCH"),
            (1, Some(3), "LINE_RANGE.PAST_END"),
            (2, None, "FILE_EXISTS"),
            (3, None, "SHA_MISMATCH"),
        ]
    );
    assert_eq!(failures[0].path.as_deref(), Some("repo/two"));
}

/// However much is wrong, the list stays readable.
#[test]
fn failures_past_a_hundred_are_counted() {
    let before = "a\n".repeat(300);
    let changes: Vec<_> = (1..=300).map(|line| delete(line, line, &["b"])).collect();
    let one = batch(vec![line_patch(before.as_bytes(), &changes)]);
    let failures = apply_all(&one, &[Some(before.as_bytes())], &Limits::DEFAULT).unwrap_err();
    assert_eq!(failures.len(), 101);
    assert_eq!(failures[100].message, "200 more failures are not listed");
    // The failures of all files are counted together.
    let stated = sha256(before.as_bytes()).to_string();
    let patch = |name: &str, count: usize| line_patch_of(&format!("repo/{name}"), &stated, &changes[..count]);
    let batch = batch(vec![patch("a", 60), patch("b", 41)]);
    let failures = apply_all(&batch, &[Some(before.as_bytes()); 2], &Limits::DEFAULT).unwrap_err();
    assert_eq!((failures.len(), failures[100].message.as_str()), (101, "1 more failure is not listed"));
}

/// P62 of a docPath and a path: two patches that turn out to be of one file are refused.
#[test]
fn two_paths_that_lead_to_one_file_are_refused() {
    let batch = batch(vec![line_patch_of("repo/a", &sha256(b"").to_string(), &[insert(0, &["x"])]), create("a", "y")]);
    let failures = apply_all(&batch, &[Some(b""), None], &Limits::DEFAULT).unwrap_err();
    assert_eq!(code(&failures[0]), "INVALID_REQUEST.DUPLICATE_FILE");
}

/// Every refusal says what to do next.
#[test]
fn every_refusal_has_a_hint() {
    let hint = |patch, before: Option<&[u8]>| apply(patch, before).unwrap_err().hint.unwrap();
    let top = || insert(0, &["x"]);
    for (patch, before, expected) in [
        (line_patch(b"", &[top()]), None, "check the path, or create the file instead"),
        (create("a", "x"), Some(&b"y"[..]), REPLACE_HINT),
        (line_patch(b"\0", &[top()]), Some(b"\0"), "only text can be edited; leave this file out of the batch"),
        (
            line_patch(b"a\n", &[insert(0, &["\u{feff}"])]),
            Some(b"a\n"),
            "leave the U+FEFF out; a file keeps the byte order mark it has, and gets none",
        ),
        (line_patch(b"a", &[top()]), Some(b"b"), "read the file again and make the patch for what it is now"),
        (
            line_patch(b"a\n", &[top()]),
            Some(b"x\na\n"),
            "nothing is left to do for this file; take it out of the batch",
        ),
    ] {
        assert_eq!(hint(patch, before), expected);
    }
    let before = "a\n".repeat(101);
    let changes: Vec<_> = (1..=101).map(|line| delete(line, line, &["b"])).collect();
    let listed = batch(vec![line_patch(before.as_bytes(), &changes)]);
    let failures = apply_all(&listed, &[Some(before.as_bytes())], &Limits::DEFAULT).unwrap_err();
    assert_eq!(failures[100].hint.as_deref(), Some("correct the listed ones first"));
    let twice = batch(vec![create("a", "x"), line_patch_of("repo/a", &sha256(b"").to_string(), &[top()])]);
    let failures = apply_all(&twice, &[None, None], &Limits::DEFAULT).unwrap_err();
    assert_eq!(failures[0].hint.as_deref(), Some("put all changes of one file into one entry"));
}
