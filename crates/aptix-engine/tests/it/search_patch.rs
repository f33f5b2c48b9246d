//! REQ-PATCH: what search patches do to the bytes of a file, to clipboards, and what they are refused for.

use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::settings::Settings;
use aptix_model::batch::{FileEdit, FilePatch, Reindent, SearchChange, SearchOperation, SearchPatch, Target};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;

use crate::boundary::{Applied, apply, apply_all, apply_with, batch, code, shown};

fn change(operation: SearchOperation, new_text: Option<&str>) -> SearchChange {
    let new_text = new_text.map(str::to_owned);
    SearchChange { operation, new_text, to_clipboard: None, from_clipboard: None, reindent: None }
}

pub(crate) fn swap(old: &str, new: &str) -> SearchChange {
    change(SearchOperation::Replace { old_text: old.to_owned() }, Some(new))
}

fn append(new: &str) -> SearchChange {
    change(SearchOperation::AppendEof, Some(new))
}

fn prepend(new: &str) -> SearchChange {
    change(SearchOperation::PrependBof, Some(new))
}

fn overwrite(new: &str) -> SearchChange {
    change(SearchOperation::Overwrite, Some(new))
}

fn cut(old: &str, clipboard: &str) -> SearchChange {
    SearchChange { to_clipboard: Some(clipboard.to_owned()), new_text: None, ..swap(old, "") }
}

fn paste(mut change: SearchChange, clipboard: &str) -> SearchChange {
    change.from_clipboard = Some(clipboard.to_owned());
    change
}

fn reindent(mut change: SearchChange, strip: &str, add: &str) -> SearchChange {
    change.reindent = Some(Reindent { strip: strip.to_owned(), add: add.to_owned() });
    change
}

pub(crate) fn patch_of(path: &str, changes: &[SearchChange]) -> FilePatch {
    FilePatch {
        target: Target::Path(path.to_owned()),
        key: None,
        label: None,
        edit: FileEdit::SearchPatch(SearchPatch { changes: changes.to_vec() }),
    }
}

fn patched(before: &str, changes: &[SearchChange]) -> Result<Applied, Box<Failure>> {
    apply(patch_of("a.txt", changes), Some(before.as_bytes()))
}

#[track_caller]
fn check(before: &str, changes: &[SearchChange], expect: &str) -> Applied {
    match patched(before, changes) {
        Ok(applied) => {
            assert_eq!(shown(&applied.content), shown(expect.as_bytes()));
            applied
        }
        Err(failure) => panic!("refused: {failure}"),
    }
}

#[track_caller]
fn check_refused(before: &str, changes: &[SearchChange], expect: &str) -> Failure {
    let failure = patched(before, changes).expect_err("nothing was refused");
    assert_eq!(code(&failure), expect, "{failure}");
    *failure
}

/// Tier, first and last line of every change.
fn certificates(applied: &Applied) -> Vec<(&'static str, u32, u32)> {
    let changes = applied.report.changes.iter();
    changes.map(|change| (change.tier.word(), change.start_line, change.end_line)).collect()
}

pub(crate) fn codes(applied: &Applied) -> Vec<&str> {
    applied.report.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

/// REQ-PATCH-001.1, REQ-PATCH-001.5, REQ-PATCH-002.2, REQ-PATCH-007.2, R5, R8, R11: unique text is replaced; everything is
/// found in the file as it was, and means what it says.
#[test]
fn replace_puts_text_in_the_place_of_unique_text() {
    check("a b c\n", &[swap("b", "x")], "a x c\n");
    check("a\nb\nc\n", &[swap("a\nb\n", "x\n")], "x\nc\n");
    check("abc", &[swap("abc", "")], "");
    check("abc\n", &[swap("a", "1"), swap("b", "2"), swap("c", "3")], "123\n");
    check("abc\n", &[swap("c", "a"), swap("a", "c")], "cba\n");
    check("f(.*)$1\\n\n", &[swap(".*", "$1"), swap("\\n", "\\t")], "f($1)$1\\t\n");
    let applied =
        check("a\nb\nc\nd\n", &[swap("d\n", "x\ny\n"), swap("b\n", ""), swap("c", "1\n2")], "a\n1\n2\nx\ny\n");
    assert_eq!(certificates(&applied), [("exact", 4, 5), ("exact", 2, 1), ("exact", 2, 3)]);
    assert!(applied.diff.ends_with(b"@@ -1,4 +1,5 @@\n a\n-b\n-c\n+1\n+2\n-d\n+x\n+y\n"), "{}", shown(&applied.diff));
}

/// REQ-PATCH-001.2, REQ-PATCH-001.3, REQ-PATCH-001.4, REQ-PATCH-001.6, R28: the ends of the file, and
/// files that are not there.
#[test]
fn ends_and_whole_files() {
    check("b\n", &[append("c\n"), prepend("a\n")], "a\nb\nc\n");
    check("x\n", &[append("1\n"), prepend("a"), append("2\n"), prepend("b")], "a\nb\nx\n1\n2\n");
    check("a\nb\n", &[append("c")], "a\nb\nc");
    check("a\nb\n", &[swap("b\n", ""), append("c\n"), prepend("0\n"), swap("a", "A")], "0\nA\nc\n");
    check("\u{feff}b\n", &[prepend("a\n")], "\u{feff}a\nb\n");
    check("old\n", &[overwrite("new")], "new");
    check("\u{feff}old\r\nold\r\n", &[overwrite("new\nnew\n")], "\u{feff}new\r\nnew\r\n");
    check("", &[append("a\n")], "a\n");
    for (changes, after) in [
        (vec![overwrite("x\r\n\u{feff}")], "x\r\n\u{feff}"),
        (vec![append("b"), prepend("a\n"), append("c\n")], "a\nb\nc\n"),
        (vec![append("")], ""),
    ] {
        let applied = apply(patch_of("new/dir/a.txt", &changes), None).unwrap();
        assert_eq!(shown(&applied.content), shown(after.as_bytes()));
        assert_eq!(applied.report.status.word(), "created");
    }
    for changes in [vec![swap("a", "b")], vec![append("x"), swap("a", "b")]] {
        let failure = apply(patch_of("a.txt", &changes), None).unwrap_err();
        assert_eq!(code(&failure), "FILE_MISSING");
    }
}

/// Text below a last line without terminator begins a line, and the report contains that.
#[test]
fn appended_text_begins_a_line() {
    for (before, changes, expect) in [
        ("a", vec![append("b\n")], "a\nb\n"),
        ("a\r\nb", vec![append("c")], "a\r\nb\r\nc"),
        ("a\r", vec![append("c")], "a\r\r\nc"),
        ("a\n", vec![append("b"), append("c")], "a\nb\nc"),
        ("a\nb\n", vec![swap("b\n", "c"), append("d\n")], "a\nc\nd\n"),
    ] {
        let applied = check(before, &changes, expect);
        assert_eq!(codes(&applied), ["FINAL_NEWLINE_ADDED"], "{before:?}");
    }
    for (before, changes, expect) in [
        ("a", vec![append("")], "a"),
        ("a\nb", vec![swap("b", "b\n"), append("c\n")], "a\nb\nc\n"),
        ("a\nb", vec![swap("b", ""), append("c\n")], "a\nc\n"),
        ("\u{feff}", vec![append("c\n")], "\u{feff}c\n"),
    ] {
        assert_eq!(codes(&check(before, &changes, expect)), [""; 0], "{before:?}");
    }
}

/// R13: new lines end as the lines they replace, and the report contains that.
#[test]
fn new_text_gets_the_files_terminators() {
    for (before, changes, expect, tier) in [
        ("a\r\nb\r\n", vec![swap("a", "x\ny")], "x\r\ny\r\nb\r\n", "exact"),
        ("a\r\nb\r\nc\r\n", vec![swap("a\nb\n", "x\ny\n")], "x\r\ny\r\nc\r\n", "eol"),
        ("a\r\nb\nc\r\n", vec![swap("a\nb\nc\n", "x\ny\nz\n1\n")], "x\r\ny\nz\r\n1\r\n", "eol"),
        ("a\r\nb\nc\r\n", vec![swap("a\r\nb\nc", "a\r\nx\ny\nb\nc")], "a\r\nx\r\ny\r\nb\nc\r\n", "exact"),
        ("a\nb\nc\n", vec![swap("a\r\nb\r\n", "x\r\n")], "x\nc\n", "eol"),
        ("a\r\nb", vec![swap("b", "c\nd")], "a\r\nc\r\nd", "exact"),
        ("a\r\n", vec![append("b\nc\n")], "a\r\nb\r\nc\r\n", "exact"),
        ("a\r\n", vec![prepend("b\n")], "b\r\na\r\n", "exact"),
        ("xa\r\nby\n", vec![swap("a\nb", "1\n2\n3")], "x1\r\n2\r\n3y\n", "eol"),
    ] {
        let applied = check(before, &changes, expect);
        assert_eq!(applied.report.changes[0].tier.word(), tier, "{before:?}");
        let normalized: Vec<_> = applied.report.normalized.iter().map(|what| what.word()).collect();
        let is_told = ["line_endings"].as_slice();
        assert_eq!(normalized, is_told, "{before:?}");
    }
}

/// R6: nothing is written where nothing changes, in whatever tier it is found.
#[test]
fn equal_texts_change_nothing() {
    for (before, same) in
        [("a\nb\n", "a\nb"), ("a\r\nb\r\n", "a\nb\n"), ("a  \n\tb\n", "a\n\tb \n"), ("  a\n  b", "a\nb\n")]
    {
        let applied = check(before, &[swap(same, same)], before);
        assert_eq!(applied.report.status.word(), "unchanged", "{before:?}");
        assert_eq!(applied.diff, b"");
        assert_eq!(certificates(&applied)[0].1..=certificates(&applied)[0].2, 1..=2, "{before:?}");
    }
    let applied = check("a\nb\n", &[swap("a\n", "x\ny\n"), swap("b", "b")], "x\ny\nb\n");
    assert_eq!(certificates(&applied), [("exact", 1, 2), ("exact", 3, 3)]);
}

/// REQ-PATCH-005.1, REQ-PATCH-005.2, REQ-PATCH-005.3, REQ-PATCH-005.4, R15: old text may differ from the file in white
/// space; what the author did not change stays as it is in the file.
#[test]
fn recovery_is_by_white_space_and_reports_its_tier() {
    for (before, old, new, expect, tier) in [
        // White space at the ends of lines.
        ("a  \nb\nc\n", "a\nb\n", "a\nx\n", "a  \nx\nc\n", "trailing"),
        ("a\nb\n", "a \nb\t\n", "x\ny\n", "x\ny\n", "trailing"),
        ("foo\nbar\n", "foo  ", "x", "x\nbar\n", "trailing"),
        ("a\n\n\nb\n", "a\n  \n\nb", "a\nb", "a\nb\n", "trailing"),
        ("p(a  \nb)q\n", "(a\nb)", "(c\nd)", "p(c\nd)q\n", "trailing"),
        // One indentation, deeper or shallower.
        (
            "def f():\n    a()\n    b()\n",
            "a()\nb()\n",
            "a()\nif x:\n    c()\n",
            "def f():\n    a()\n    if x:\n        c()\n",
            "indent",
        ),
        ("{\n\ta\n\t\tb\n}\n", "a\n\tb\n", "x\n\ty\n\n", "{\n\tx\n\t\ty\n\n}\n", "indent"),
        ("  a\n    b\n", "    a\n      b\n", "    x\n      y\n", "  x\n    y\n", "indent"),
        ("if a:\n        x\n        y\n", "x\n\n y", "z", "", "refused"),
        ("  a\n\n  b\n", "a\n\nb\n", "a\n\nc\n", "  a\n\n  c\n", "indent"),
        (
            "x\n    foo(1)\n    bar(2) + 3\n",
            "  foo(1)\n  bar(2)",
            "  foo(1)\n  baz(4)",
            "x\n    foo(1)\n    baz(4) + 3\n",
            "indent",
        ),
        ("\t * a\n\t * b\n", " * a\n * b\n", " * a\n * c\n * d\n", "\t * a\n\t * c\n\t * d\n", "indent"),
        ("    foo()\n", "        foo()\n", "        bar()\n", "    bar()\n", "indent"),
        ("\na\n  b\n", "\nx\n", "", "", "refused"),
        ("a\n  b\n  c\n", "\nb\nc", "\nb\nd", "a\n  b\n  d\n", "indent"),
        // Blank lines at the edges.
        ("a\nb\nc\n", "\na\nb\n", "\nx\ny\n", "x\ny\nc\n", "blank_edges"),
        ("a\nb\nc\n", "b\n\n", "x\n\n", "a\nx\nc\n", "blank_edges"),
        ("a\nb\nc\n", "\n\nb\n  ", "\n\nx\n  ", "a\nx\nc\n", "blank_edges"),
        ("  a\n  b\n", "\na\nb\n\n", "\na\nx\n\n", "  a\n  x\n", "blank_edges"),
        ("a\nb", "a\nb\n", "a\nc\n", "a\nc", "eol"),
        ("a\nb", "b\n", "", "a", "eol"),
    ] {
        match patched(before, &[swap(old, new)]) {
            Ok(applied) => {
                assert_eq!(
                    (shown(&applied.content), applied.report.changes[0].tier.word()),
                    (shown(expect.as_bytes()), tier),
                    "{before:?} {old:?}"
                );
            }
            Err(failure) => assert_eq!(
                (code(&failure).as_str(), tier),
                ("TEXT_NOT_FOUND", "refused"),
                "{failure} {before:?} {old:?}"
            ),
        }
    }
}

/// Nothing but white space is ever overlooked, and blanks are not tabs; R17.
#[test]
fn recovery_never_overlooks_what_can_be_seen() {
    for (before, old, new) in [
        ("limit = 15\n", "limit = 10\n", "limit = 20\n"),
        ("a b\n", "a  b\n", "x\n"),
        ("f(a,b)\n", "f(a, b)\n", "x\n"),
        ("Foo\n", "foo\n", "x\n"),
        ("\tfoo\n\t\tbar\n", "    foo\n        bar\n", "    x\n        y\n"),
        ("\tfoo\n\t\tbar\n", "foo\n    bar\n", "x\n    y\n"),
        ("\tfoo\n\tbar\n", "foo\nbar\n", "foo\n    baz\n"),
        ("  a\n   b\n", "a\nb\n", "x\ny\n"),
        ("    a\nb\n", "  a\n  b\n", "  x\n  y\n"),
        ("x = \"a\"\n", "x = \u{201c}a\u{201d}\n", "y\n"),
        ("e\u{301}\n", "\u{e9}\n", "x\n"),
        ("b\na\n", "x\na\n", "y\na\n"),
        ("a\n", "\u{a0}a\n", "b\n"),
        ("    a\n", "      a\n", " b\n"),
    ] {
        check_refused(before, &[swap(old, new)], "TEXT_NOT_FOUND");
    }
    let settings = Settings { recovers: false, ..Settings::DEFAULT };
    let one = batch(vec![patch_of("a.txt", &[swap("a\n", "b\n")])]);
    for before in ["  a\r\n", "a \n", "a"] {
        let failures = apply_with(&one, &[(Some(before.as_bytes()), None)], &settings).unwrap_err();
        assert_eq!(code(&failures[0]), "TEXT_NOT_FOUND");
        assert!(failures[0].hint.as_ref().unwrap().contains("recovery is turned off"));
    }
}

/// REQ-PATCH-001.5, R2, R3, R14: text that occurs at several places is refused, with the places.
#[test]
fn several_places_are_refused_in_every_tier() {
    for (before, old, lines) in [
        ("a\nb\na\n", "a", "at 2 places, at lines 1, 3"),
        ("aaa\n", "aa", "at 2 places, at line 1"),
        ("b\naaa\naa\n", "aa", "at 3 places, at lines 2, 3"),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb\n", "at 2 places (ignoring white space), at lines 1, 3"),
        ("  a\n    a\n", "\ta", ""),
        ("  a\n  b\n\n    a\n    b\n", "a\nb\n", "at 2 places (ignoring white space), at lines 1, 4"),
        ("a \na\t\n", "a\n", "at 2 places (ignoring white space), at lines 1, 2"),
        ("\n\n\n", "\n", "at 3 places, at lines 1, 2, 3"),
    ] {
        match lines {
            "" => check_refused(before, &[swap(old, "x")], "TEXT_NOT_FOUND"),
            lines => {
                let failure = check_refused(before, &[swap(old, "x")], "TEXT_NOT_UNIQUE");
                assert!(failure.message.contains(lines), "{failure}");
                failure
            }
        };
    }
    let failure = check_refused(&"x\n".repeat(50), &[swap("x\n", "y\n")], "TEXT_NOT_UNIQUE");
    assert!(failure.message.contains("at more than 20 places"), "{failure}");
    // A tighter tier decides.
    let applied = check("  a\n  b\na\nb\n", &[swap("a\nb\n", "c\n")], "  a\n  b\nc\n");
    assert_eq!(certificates(&applied), [("exact", 3, 3)]);
}

/// REQ-PATCH-002.1, REQ-PATCH-002.3, REQ-PATCH-002.4, R7, R9: one change that fails fails all, and changes that meet
/// are refused.
#[test]
fn changes_are_made_all_at_once_or_not_at_all() {
    let failure = check_refused("abcdef\n", &[swap("abcd", "X"), swap("cdef", "Y")], "MATCH_OVERLAP");
    assert_eq!((failure.change_index, failure.line), (Some(1), Some(1)));
    check_refused("abc\n", &[swap("b", "X"), swap("abc", "Y")], "MATCH_OVERLAP");
    check_refused("abc\n", &[swap("a", "z"), swap("z", "Y")], "TEXT_NOT_FOUND");
    check_refused("abc\n", &[overwrite("a"), append("Y")], "MATCH_OVERLAP");
    let one = batch(vec![patch_of("a.txt", &[swap("x", "1"), swap("a", "2"), swap("y", "3")])]);
    let failures = apply_all(&one, &[Some(b"abc\n")], &Limits::DEFAULT).unwrap_err();
    let reported: Vec<_> = failures.iter().map(|failure| failure.change_index.unwrap()).collect();
    assert_eq!(reported, [0, 2]);
}

/// R4, R22, R27: what is wrong without any file.
#[test]
fn what_needs_no_file_is_refused_without_one() {
    let named = |name: &str| cut("a", name);
    for (change, expect) in [
        (swap("", "x"), "INVALID_REQUEST.EMPTY_FIND"),
        (change(SearchOperation::AppendEof, None), "INVALID_REQUEST.MISSING"),
        (SearchChange { to_clipboard: Some("c".into()), ..append("x") }, "INVALID_REQUEST.UNEXPECTED_FIELD"),
        (reindent(paste(cut("a", "c"), "c"), "", " "), "INVALID_REQUEST.UNEXPECTED_FIELD"),
        (named(""), "INVALID_REQUEST.CLIPBOARD_NAME"),
        (named(&"x".repeat(10_000)), "INVALID_REQUEST.CLIPBOARD_NAME"),
        (named("a\u{1b}[2J"), "INVALID_REQUEST.CLIPBOARD_NAME"),
        (named("a\u{202e}b"), "INVALID_REQUEST.CLIPBOARD_NAME"),
        (reindent(append("x"), "\n", ""), "INVALID_REQUEST.EMBEDDED_NEWLINE"),
        (reindent(append("x"), "", " \r"), "INVALID_REQUEST.EMBEDDED_NEWLINE"),
        (swap("a", "\0"), "NOT_TEXT.BINARY"),
        (swap("\0", ""), "NOT_TEXT.BINARY"),
    ] {
        check_refused("a\n", &[change], expect);
    }
    check_refused("a\n", &[], "INVALID_REQUEST.EMPTY");
    check_refused("a\n", &[prepend("\u{feff}x")], "INVALID_REQUEST.EMBEDDED_BOM");
    check_refused("a\0\n", &[append("x")], "NOT_TEXT.BINARY");
}

/// REQ-PATCH-003.1, REQ-PATCH-003.2, REQ-PATCH-003.3, REQ-PATCH-003.4, REQ-PATCH-003.6, R20: cut, copy and paste,
/// within a patch, across the files of a batch, and from one call to the next.
#[test]
fn clipboards_carry_text() {
    check("a\nb\nc\n", &[cut("a\n", "k"), paste(append("ignored"), "k")], "b\nc\na\n");
    check("a\nb\n", &[paste(cut("a\n", "k"), "k"), paste(append(""), "k")], "a\nb\na\n");
    let two = batch(vec![
        patch_of("a.txt", &[cut("fn f() {}\n", "k")]),
        patch_of("b.txt", &[paste(swap("// here\n", ""), "k")]),
    ]);
    let files: [(Option<&[u8]>, _); 2] = [(Some(b"fn f() {}\nfn g() {}\n"), None), (Some(b"x\r\n// here\r\n"), None)];
    let (applied, clipboards) = apply_with(&two, &files, &Settings::DEFAULT).unwrap();
    assert_eq!(
        (shown(&applied[0].content), shown(&applied[1].content)),
        (shown(b"fn g() {}\n"), shown(b"x\r\nfn f() {}\r\n"))
    );
    assert_eq!(clipboards, Clipboards::from([("k".to_owned(), "fn f() {}\n".to_owned())]));
    let settings = Settings { clipboards: &clipboards, ..Settings::DEFAULT };
    let one = batch(vec![patch_of("c.txt", &[paste(append(""), "k")])]);
    let (applied, changed) = apply_with(&one, &[(None, None)], &settings).unwrap();
    assert_eq!((applied[0].content.as_slice(), changed), (b"fn f() {}\n".as_slice(), Clipboards::new()));
}

/// REQ-PATCH-003.5, R19, R23, R25: a clipboard that is not there, or not yet; a failed batch changes none.
#[test]
fn a_missing_clipboard_is_refused() {
    let failure = check_refused("a\n", &[paste(append(""), "k")], "CLIPBOARD_MISSING");
    assert_eq!(failure.change_index, Some(0));
    assert_eq!(failure.message, "there is no clipboard \"k\": this session has none");
    check_refused("a\n", &[paste(append(""), "k"), cut("a", "k")], "CLIPBOARD_MISSING");
    let failure =
        check_refused("a\nb\n", &[cut("a", "one"), cut("b", "two"), paste(append(""), "k")], "CLIPBOARD_MISSING");
    assert_eq!(failure.message, "there is no clipboard \"k\": this session has \"one\", \"two\"");
    // What was to be kept and is not found is one failure, not two.
    check_refused("a\n", &[cut("x", "k"), paste(append(""), "k")], "TEXT_NOT_FOUND");
}

/// REQ-PATCH-005.5, REQ-PATCH-007.5: a clipboard gets the file's own text, and the author gets a warning.
#[test]
fn a_clipboard_gets_the_text_that_was_matched() {
    let one = batch(vec![patch_of("a.txt", &[cut("a\nb\n", "k"), cut("c", "l")])]);
    let (applied, clipboards) = apply_with(&one, &[(Some(b"\ta\r\n\tb\r\nc"), None)], &Settings::DEFAULT).unwrap();
    assert_eq!(clipboards["k"], "\ta\r\n\tb\r\n");
    assert_eq!(clipboards["l"], "c");
    assert_eq!(codes(&applied[0]), ["CLIPBOARD_MODIFIED"]);
}

/// R24: clipboards have bounds, and a call that passes them changes none.
#[test]
fn clipboards_are_bounded() {
    let large = "=".repeat((1 << 20) + 1);
    let failure = patched(&large, &[cut(&large, "k")]).unwrap_err();
    assert_eq!(code(&failure), "RESOURCE_EXHAUSTED.CLIPBOARD");
    let before: String = (0..257).map(|number| format!("<{number}>\n")).collect();
    let cuts: Vec<_> = (0..257).map(|number| cut(&format!("<{number}>\n"), &format!("k{number}"))).collect();
    check(&before, &cuts[..256], "<256>\n");
    assert_eq!(code(&patched(&before, &cuts).unwrap_err()), "RESOURCE_EXHAUSTED.CLIPBOARD");
    // Pasting cannot fill the memory.
    let full = Clipboards::from([("k".to_owned(), "x".repeat(1 << 20))]);
    let limits = Limits { file_bytes: 4 << 20, ..Limits::DEFAULT };
    let settings = Settings { clipboards: &full, limits, ..Settings::DEFAULT };
    let many = batch(vec![patch_of("a.txt", &vec![paste(append(""), "k"); 5])]);
    let failures = apply_with(&many, &[(None, None)], &settings).unwrap_err();
    assert_eq!(code(&failures[0]), "TOO_LARGE.FILE");
    let limits = Limits { batch_bytes: 4 << 20, ..Limits::DEFAULT };
    let settings = Settings { clipboards: &full, limits, ..Settings::DEFAULT };
    let failures = apply_with(&many, &[(None, None)], &settings).unwrap_err();
    assert_eq!(code(&failures[0]), "TOO_LARGE.FILE");
}

/// REQ-PATCH-004.1, REQ-PATCH-004.2, REQ-PATCH-004.3, R26: prefixes of lines that are not empty.
#[test]
fn reindent_swaps_the_prefix_of_every_line_that_is_not_empty() {
    check("x\n", &[reindent(swap("x", "  a\n\n    b"), "  ", "\t")], "\ta\n\n\t  b\n");
    check("x\r\n", &[reindent(append("a\r\n\r\nb\n"), "", "  ")], "x\r\n  a\r\n\r\n  b\r\n");
    check("    f\n}\n", &[cut("    f\n", "k"), reindent(paste(append(""), "k"), "    ", "  ")], "}\n  f\n");
    let failure = check_refused("x\n", &[reindent(append("  a\n b\n"), "  ", "")], "REINDENT_PRECONDITION");
    assert!(failure.message.contains("line 2"), "{failure}");
    check_refused("x\n", &[reindent(append("  a\n \n"), "  ", "")], "REINDENT_PRECONDITION");
}

/// REQ-PATCH-005.6, R1: old text that is nowhere is refused with the lines most like it.
#[test]
fn old_text_that_is_not_found_is_answered_with_real_lines() {
    let before = "fn a() {\n    let x = 15;\n    go(x);\n}\n\nfn b() {\n    let y = 1;\n}\n";
    let failure = check_refused(before, &[swap("fn a() {\n    let x = 10;\n    go(x);\n", "z")], "TEXT_NOT_FOUND");
    assert!(failure.message.starts_with("old text not found"), "{failure}");
    assert!(failure.message.contains("at line 2") && failure.message.contains("column 14"), "{failure}");
    assert_eq!((failure.nearest[0].start_line, failure.nearest[0].end_line), (1, 3));
    assert_eq!(failure.line, Some(2));
    assert!(failure.current_sha256.is_some());
    let failure = check_refused(before, &[swap("let y = 2;", "z")], "TEXT_NOT_FOUND");
    assert_eq!((failure.nearest[0].start_line, failure.nearest[0].text.as_str()), (7, "    let y = 1;"));
    let failure = check_refused(before, &[swap("nothing like it at all", "z")], "TEXT_NOT_FOUND");
    assert_eq!((failure.message.as_str(), failure.nearest.len()), ("old text not found", 0));
    check_refused("", &[swap("a", "z")], "TEXT_NOT_FOUND");
    // White space is not what distinguishes the lines.
    let failure = check_refused(before, &[swap("  let x = 15;\n  stop(x);\n", "z")], "TEXT_NOT_FOUND");
    assert!(failure.message.contains("at line 3, at column"), "{failure}");
    // A change that was made before is reported as such.
    let failure = check_refused(before, &[swap("let y = 2;", "let y = 1;")], "TEXT_NOT_FOUND");
    assert!(failure.hint.unwrap().contains("is already at line 7"));
}

/// Bytes that are no UTF-8 stay as they are.
#[test]
fn other_encodings_are_kept() {
    let applied = apply(patch_of("a.txt", &[swap("b", "x")]), Some(b"\xe9\nb\n\xff")).unwrap();
    assert_eq!(applied.content, b"\xe9\nx\n\xff");
    let applied = apply(patch_of("a.txt", &[swap("a\nb\n", "c\nd\n")]), Some(b"\xe9\n  a\n  b\n\xff")).unwrap();
    assert_eq!(applied.content, b"\xe9\n  c\n  d\n\xff");
}
