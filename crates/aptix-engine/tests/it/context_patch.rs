//! Codex patches from their text to the bytes of a file, and what they are refused for.

use aptix_engine::plan::plan;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, Chunk, ChunkLine, ContextPatch, FileEdit, FilePatch, LineKind, Target};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::report::FileStatus;

use crate::boundary::{Applied, apply_with, code, observed, shown};
use crate::cost::assert_linear;

/// The batch of a patch with these sections.
fn document(sections: &str) -> Batch {
    let text = format!("*** Begin Patch\n{sections}*** End Patch\n");
    parse(text.as_bytes(), Some(Dialect::CodexPatch)).unwrap().batch
}

fn update(chunks: &str) -> Batch {
    document(&format!("*** Update File: a.txt\n{chunks}"))
}

/// What chunks make of a file, or the first reason why they do not.
fn patched(before: impl AsRef<[u8]>, chunks: &str) -> Result<Applied, Box<Failure>> {
    let applied = apply_with(&update(chunks), &[(Some(before.as_ref()), None)], &Settings::DEFAULT);
    applied.map(|(mut applied, _)| applied.remove(0)).map_err(|mut failures| Box::new(failures.remove(0)))
}

#[track_caller]
fn check(before: impl AsRef<[u8]>, chunks: &str, expect: impl AsRef<[u8]>) -> Applied {
    match patched(before, chunks) {
        Ok(applied) => {
            assert_eq!(shown(&applied.content), shown(expect.as_ref()));
            applied
        }
        Err(failure) => panic!("refused: {failure}"),
    }
}

#[track_caller]
fn check_refused(before: &str, chunks: &str, code: &str, message: &str) -> Failure {
    let failure = patched(before, chunks).expect_err("nothing was refused");
    assert_eq!(self::code(&failure), code, "{failure}");
    assert!(failure.message.contains(message), "{failure}");
    assert!(failure.hint.is_some() && failure.current_sha256.is_some(), "{failure:?}");
    *failure
}

const FILE: &str = "one\ntwo\nthree\nfour\nfive\n";

#[test]
fn chunks_are_found_by_their_lines_and_made_at_once() {
    check(FILE, "@@\n two\n-three\n+3\n four\n", "one\ntwo\n3\nfour\nfive\n");
    check(FILE, "-one\n", "two\nthree\nfour\nfive\n");
    check(FILE, "@@\n-two\n+2\n+2.5\n three\n-four\n+4\n", "one\n2\n2.5\nthree\n4\nfive\n");
    // Lines come before lines that go, where they are listed so.
    check(FILE, "@@\n+2\n-two\n+2.5\n", "one\n2\n2.5\nthree\nfour\nfive\n");
    check(FILE, "@@\n-one\n+1\n@@\n-two\n+2\n@@\n four\n+4.5\n five\n", "1\n2\nthree\nfour\n4.5\nfive\n");
    check(FILE, "@@\n one\n+1.5\n@@\n-two\n+2\n", "one\n1.5\n2\nthree\nfour\nfive\n");
    // What a chunk writes is nothing that a later one could find.
    check("a\nb\n", "@@\n-a\n+b\n@@\n-b\n+c\n", "b\nc\n");
    check("a\n", "-a\n", "");
    check("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n");
    let applied = check(FILE, "@@\n-one\n+1\n+1.5\n@@\n three\n@@\n-four\n@@\n-five\n+5\n", "1\n1.5\ntwo\nthree\n5\n");
    let lines: Vec<_> = applied.report.changes.iter().map(|change| (change.start_line, change.end_line)).collect();
    assert_eq!(lines, [(1, 2), (4, 3), (5, 4), (5, 5)]);
    assert_eq!(check(FILE, "@@\n one\n two\n", FILE).report.status, FileStatus::Unchanged);
    assert_eq!(check(FILE, "@@\n-two\n+two\n", FILE).report.status, FileStatus::Unchanged);
}

#[test]
fn new_lines_without_old_ones_come_at_the_end_or_below_their_anchor() {
    check(FILE, "+six\n", format!("{FILE}six\n"));
    check(FILE, "@@\n+six\n@@\n+seven\n", format!("{FILE}six\nseven\n"));
    check(FILE, "@@\n+six\n@@\n-one\n+1\n@@\n-five\n+5\n", "1\ntwo\nthree\nfour\n5\nsix\n");
    check(FILE, "@@ two\n+2.5\n", "one\ntwo\n2.5\nthree\nfour\nfive\n");
    check(FILE, "@@ five\n+six\n", format!("{FILE}six\n"));
    check(FILE, "@@ two\n+six\n*** End of File\n", format!("{FILE}six\n"));
    check("", "+one\n", "one\n");
    check("one", "+two\n", "one\ntwo");
    check("one\r\n", "+two\n", "one\r\ntwo\r\n");
    check_refused(
        "a\nb\na\n",
        "@@ a\n+x\n",
        "TEXT_NOT_UNIQUE",
        "anchor '@@ a': old text occurs at 2 places, at lines 1, 3",
    );
    check_refused(FILE, "@@ six\n+x\n", "TEXT_NOT_FOUND", "anchor '@@ six'");
}

const CLASSES: &str = "\
class A:
    def f(self):
        return 1

    def g(self):
        return 1

class B:
    def f(self):
        return 1
";

/// Where the lines of a chunk occur several times, an anchor selects the ones that are meant.
#[test]
fn anchors_narrow_and_what_is_then_not_one_place_is_refused() {
    let swapped = |nth: usize| {
        let mut lines: Vec<_> = CLASSES.lines().map(str::to_owned).collect();
        lines[nth - 1] = "        return 2".into();
        lines.join("\n") + "\n"
    };
    let change = "-        return 1\n+        return 2\n";
    check_refused(CLASSES, &format!("@@\n{change}"), "TEXT_NOT_UNIQUE", "at lines 3, 6, 10");
    check_refused(CLASSES, &format!("@@ class A:\n{change}"), "TEXT_NOT_UNIQUE", "at lines 3, 6, 10");
    check_refused(CLASSES, &format!("@@     def f(self):\n{change}"), "TEXT_NOT_UNIQUE", "at lines 3, 6, 10");
    check(CLASSES, &format!("@@     def g(self):\n{change}"), swapped(6));
    check(CLASSES, &format!("@@ class B:\n{change}"), swapped(10));
    check(CLASSES, &format!("@@ class A:\n@@     def f(self):\n{change}"), swapped(3));
    check(CLASSES, &format!("@@ class B:\n@@     def f(self):\n{change}"), swapped(10));
    // Anchors are often written without their indentation.
    let applied = check(CLASSES, &format!("@@ class A:\n@@ def f(self):\n{change}"), swapped(3));
    assert_eq!((applied.report.changes[0].tier.word(), applied.report.changes[0].candidates), ("exact", 3));
    // An anchor that occurs several times does no harm where the lines occur once.
    check("a\nx\na\ny\n", "@@ a\n-y\n+z\n", "a\nx\na\nz\n");
    // Two chunks may have one head.
    check(
        CLASSES,
        "@@ class A:\n@@     def g(self):\n+        x\n@@ class A:\n@@     def g(self):\n         return 1\n+        y\n\n class B:\n",
        "\
class A:
    def f(self):
        return 1

    def g(self):
        x
        return 1
        y

class B:
    def f(self):
        return 1
",
    );
    check("f\n  a\n  b\ng\n  b\n", "@@ f\n-  a\n@@ f\n-  b\n", "f\ng\n  b\n");
    check_refused("a\nb\n", "@@\n-a\n-b\n@@ a\n+c\n", "TEXT_NOT_FOUND", "anchor '@@ a'");
    // The chunk before narrows too.
    check("a\nb\na\n", "@@\n-b\n+c\n@@\n-a\n+d\n", "a\nc\nd\n");
    check_refused("a\nb\n", "@@ b\n-a\n", "TEXT_NOT_FOUND", "occur at line 1, not below the anchor");
    check_refused("a\nb\n", "@@ a\n-a\n", "TEXT_NOT_FOUND", "not below the anchor");
    let failure = check_refused("fn a(x) {\nb\n", "@@ fn a\n-b\n", "TEXT_NOT_FOUND", "anchor '@@ fn a'");
    assert!(failure.hint.unwrap().contains("occur at line 2 and nowhere else"));
    check_refused("a\nb\n", "@@\n-b\n@@\n-a\n", "TEXT_NOT_FOUND", "occur at line 1, above the end of the chunk before");
    check_refused("a\nb\n", "@@\n-a\n b\n@@\n b\n+c\n", "TEXT_NOT_FOUND", "occur at line 2, above the end");
    check_refused("aa\n", "@@\n-a\n", "TEXT_NOT_FOUND", "old text not found");
    check_refused("a\na\na\n", "@@\n-a\n-a\n", "TEXT_NOT_UNIQUE", "at lines 1, 2");
}

#[test]
fn the_end_of_the_file_is_a_place() {
    check("a\nb\na\n", "@@\n-a\n+c\n*** End of File\n", "a\nb\nc\n");
    check("a\nb\na", "@@\n-a\n+c\n*** End of File\n", "a\nb\nc");
    check("a\nb\na\n", "@@ b\n-a\n+c\n*** End of File\n", "a\nb\nc\n");
}

#[test]
fn lines_that_are_not_last_are_not_the_end_of_the_file() {
    check_refused(
        "a\nb\n",
        "@@\n-a\n*** End of File\n",
        "TEXT_NOT_FOUND",
        "occur at line 1, and the file continues below",
    );
    check_refused("a\nb\na\n", "@@ a\n@@ a\n-b\n*** End of File\n", "TEXT_NOT_FOUND", "occur at line 2");
    check_refused("b\n", "@@\n-a\n-b\n*** End of File\n", "TEXT_NOT_FOUND", "old text not found");
}

/// Lines that stay keep their bytes, lines that come end like those around them, and the end of the file stays.
#[test]
fn bytes_that_no_line_names_stay() {
    check("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+B2\n c\n", "a\r\nB\r\nB2\r\nc\r\n");
    check("a\r\nb\nc\r\n", "@@\n-a\n+A\n b\n+B\n-c\n+C\n", "A\r\nb\nB\r\nC\r\n");
    check("a\nb", "@@\n-b\n+c\n", "a\nc");
    check("a\nb", "@@\n b\n+c\n", "a\nb\nc");
    check("a\nb", "@@\n-b\n", "a");
    check("\u{feff}a\nb\n", "@@\n-a\n+c\n", "\u{feff}c\nb\n");
    check(b"caf\xe9\nb\n", "@@\n-b\n+c\n", b"caf\xe9\nc\n");
    check("a\rb\nc\n", "@@\n a\rb\n-c\n+d\n", "a\rb\nd\n");
    check("a  \nb\n", "@@\n a\n-b\n+c\n", "a  \nc\n");
    check("a\n   \nb\n", "@@\n a\n\n-b\n+c\n", "a\n   \nc\n");
}

/// White space may differ, in one way for all lines; nothing else may.
#[test]
fn lines_are_found_ignoring_white_space() {
    let tier = |before: &str, chunks: &str, after: &str| check(before, chunks, after).report.changes[0].tier.word();
    assert_eq!(tier("a \nb\n", "@@\n a\n-b\n+c\n", "a \nc\n"), "trailing");
    assert_eq!(tier("    if x:\n        y\n", "@@\n if x:\n-    y\n+    z\n", "    if x:\n        z\n"), "indent");
    assert_eq!(tier("if x:\n    y\n", "@@\n     if x:\n-        y\n+        z\n+\n", "if x:\n    z\n\n"), "indent");
    // A blank line at an edge that the file does not have is let go, unless it is one that changes.
    assert_eq!(tier("a\nb\n", "@@\n-a\n+c\n\n", "c\nb\n"), "blank_edges");
    assert_eq!(tier("a\nb\n", "@@\n\n-a\n+c\n", "c\nb\n"), "blank_edges");
    assert_eq!(tier("x\na\n", "@@\n-a\n+c\n\n*** End of File\n", "x\nc\n"), "blank_edges");
    check_refused(
        "a\nb\n",
        "@@\n-a\n-\n+c\n",
        "TEXT_NOT_FOUND",
        "old text not found: the lines most like it begin at line 1",
    );
    check_refused("a\nb\n", "@@\n-a\n\n+c\n", "TEXT_NOT_FOUND", "old text not found");
    check_refused("a\nb\na\n", "@@\n-a\n+c\n\n", "TEXT_NOT_UNIQUE", "(ignoring white space)");
    check_refused("\tx\n", "@@\n-    x\n+    y\n", "TEXT_NOT_FOUND", "white space");
    check_refused("  a\n b\n", "@@\n a\n-b\n", "TEXT_NOT_FOUND", "old text not found");
    check_refused("x = 15\n", "@@\n-x = 10\n+x = 20\n", "TEXT_NOT_FOUND", "at column 6");
    check_refused("a b\n", "@@\n-a  b\n+c\n", "TEXT_NOT_FOUND", "differs in white space");
    let failure =
        check_refused("it's \u{201c}so\u{201d}\n", "@@\n-it\u{2019}s \u{201c}so\u{201d}\n+x\n", "TEXT_NOT_FOUND", "");
    assert!(failure.message.contains("U+2019") && failure.message.contains("U+0027"), "{failure}");
}

#[test]
fn without_recovery_nothing_may_differ() {
    let settings = Settings { recovers: false, ..Settings::DEFAULT };
    let refused = |before: &str, chunks: &str| {
        let failures = apply_with(&update(chunks), &[(Some(before.as_bytes()), None)], &settings).err()?;
        Some(code(&failures[0]))
    };
    assert_eq!(refused("a\r\nb\n", "@@\n-a\n"), None);
    for (before, chunks) in
        [("a \n", "@@\n-a\n"), (" a\n", "@@\n-a\n"), (" a\nb\n", "@@ a\n-b\n"), ("a\n", "@@\n-a\n\n")]
    {
        assert_eq!(refused(before, chunks).as_deref(), Some("TEXT_NOT_FOUND"), "{before}");
    }
}

/// A patch that is applied twice is refused, with the reason that its lines are already there.
#[test]
fn a_patch_made_twice_is_refused_as_such() {
    let chunks = "@@\n two\n-three\n+3\n";
    let after = check(FILE, chunks, "one\ntwo\n3\nfour\nfive\n").content;
    let failure = check_refused(std::str::from_utf8(&after).unwrap(), chunks, "TEXT_NOT_FOUND", "old text not found");
    assert!(failure.hint.unwrap().contains("are already at line 2"));
}

/// Every chunk that does not fit is reported, with its position; one that only seems ambiguous because of another is not.
#[test]
fn all_chunks_that_do_not_fit_are_reported() {
    let batch = update("@@\n-x\n@@\n-one\n@@\n-y\n@@\n-a\n");
    let before = format!("{FILE}a\na\n");
    let failures = apply_with(&batch, &[(Some(before.as_bytes()), None)], &Settings::DEFAULT).unwrap_err();
    let reported: Vec<_> = failures.iter().map(|failure| (failure.change_index.unwrap(), code(failure))).collect();
    assert_eq!(reported, [(0, "TEXT_NOT_FOUND".to_owned()), (2, "TEXT_NOT_FOUND".to_owned())]);
}

#[test]
fn files_are_added_deleted_and_moved() {
    let batch =
        document("*** Add File: new\n+x\n*** Delete File: old\n*** Update File: a\n*** Move to: d/b\n@@\n-x\n+y\n");
    let files = [None, Some(&b"gone"[..]), Some(&b"x\n"[..])].map(|content| (content, None));
    let (applied, _) = apply_with(&batch, &files, &Settings::DEFAULT).unwrap();
    let statuses: Vec<_> = applied.iter().map(|file| file.report.status.word()).collect();
    assert_eq!(statuses, ["created", "deleted", "renamed"]);
    assert_eq!((shown(&applied[0].content), shown(&applied[2].content)), ("x\\n".into(), "y\\n".into()));
    assert_eq!(applied[2].report.renamed_to.as_deref(), Some("d/b"));
    // A move alone does not look into the file.
    let batch = document("*** Update File: a\n*** Move to: b\n");
    let (applied, _) = apply_with(&batch, &[(Some(b"\0binary"), None)], &Settings::DEFAULT).unwrap();
    assert_eq!((applied[0].report.status, shown(&applied[0].content)), (FileStatus::Renamed, "\\x00binary".into()));
}

#[test]
fn what_is_there_is_not_overwritten_and_what_is_not_there_not_edited() {
    let refused = |sections: &str, content: Option<&[u8]>, other: Option<&[u8]>| {
        let batch = document(sections);
        let valid = validate(&batch, &Settings::DEFAULT.limits).unwrap();
        let other = batch.files[0].edit.moved_to().map(|path| Box::new(observed(path, other)));
        let files = [aptix_engine::planning::observed::Observed { other, ..observed("a", content) }];
        plan(&valid, &files, &Settings::DEFAULT).err().map(|failures| code(&failures[0]))
    };
    assert_eq!(refused("*** Add File: a\n+x\n", Some(b""), None).as_deref(), Some("FILE_EXISTS"));
    assert_eq!(refused("*** Delete File: a\n", None, None).as_deref(), Some("FILE_MISSING"));
    assert_eq!(refused("*** Update File: a\n+x\n", None, None).as_deref(), Some("FILE_MISSING"));
    assert_eq!(refused("*** Update File: a\n+x\n", Some(b"\0"), None).as_deref(), Some("NOT_TEXT.BINARY"));
    let moved = "*** Update File: a\n*** Move to: b\n";
    assert_eq!(refused(moved, Some(b"x"), None), None);
    assert_eq!(refused(moved, None, None).as_deref(), Some("FILE_MISSING"));
    assert_eq!(refused(moved, Some(b"x"), Some(b"")).as_deref(), Some("FILE_EXISTS"));
}

#[test]
fn a_path_is_in_one_section_only() {
    let codes = |sections: &str| {
        let failures = validate(&document(sections), &Settings::DEFAULT.limits).unwrap_err();
        failures.iter().map(code).collect::<Vec<_>>()
    };
    let twice = ["INVALID_REQUEST.DUPLICATE_PATH"];
    assert_eq!(codes("*** Update File: a\n-x\n*** Update File: a\n-y\n"), twice);
    assert_eq!(codes("*** Delete File: a\n*** Add File: ./a\n+x\n"), twice);
    assert_eq!(codes("*** Update File: a\n*** Move to: b\n*** Add File: b\n+x\n"), twice);
    assert_eq!(codes("*** Update File: a\n*** Move to: a\n"), twice);
    assert_eq!(codes("*** Update File: a\n*** Move to: ../b\n"), ["INVALID_PATH.TRAVERSAL"]);
    assert_eq!(codes("*** Add File: .git/config\n+x\n"), ["POLICY_DENIED.PROTECTED"]);
}

/// What comes by the protocol need not have been a document.
#[test]
fn lines_that_are_none_are_refused() {
    let line = |kind, text: &str| ChunkLine { kind, text: text.to_owned() };
    let chunk = |anchors: &[&str], lines: &[ChunkLine]| Chunk {
        anchors: anchors.iter().map(|anchor| (*anchor).to_owned()).collect(),
        lines: lines.to_vec(),
        is_at_end: false,
    };
    let codes = |chunks: Vec<Chunk>| {
        let edit = FileEdit::ContextPatch(ContextPatch { move_to: None, chunks });
        let file = FilePatch { target: Target::Path("a".into()), key: None, label: None, edit };
        let batch = Batch { files: vec![file], ..Batch::default() };
        let failures = validate(&batch, &Settings::DEFAULT.limits).unwrap_err();
        failures
            .iter()
            .map(|failure| format!("{}: {}", failure.field.as_ref().unwrap(), code(failure)))
            .collect::<Vec<_>>()
    };
    let plain = || line(LineKind::Removed, "x");
    assert_eq!(codes(vec![]), ["files[0].chunks: INVALID_REQUEST.EMPTY"]);
    let chunks = vec![
        chunk(&[], &[]),
        chunk(
            &["a\nb"],
            &[plain(), line(LineKind::Added, "a\nb"), line(LineKind::Added, "a\r"), line(LineKind::Added, "\0")],
        ),
        chunk(&[], &[line(LineKind::Context, "a\r"), line(LineKind::Removed, "a\nb")]),
    ];
    assert_eq!(
        codes(chunks),
        [
            "files[0].changes[0].lines: INVALID_REQUEST.EMPTY",
            "files[0].changes[1].anchors[0]: INVALID_REQUEST.EMBEDDED_NEWLINE",
            "files[0].changes[1].lines[1].text: INVALID_REQUEST.EMBEDDED_NEWLINE",
            "files[0].changes[1].lines[2].text: INVALID_REQUEST.EMBEDDED_CR",
            "files[0].changes[1].lines[3].text: NOT_TEXT.BINARY",
            "files[0].changes[2].lines[1].text: INVALID_REQUEST.EMBEDDED_NEWLINE",
        ]
    );
}

/// However many chunks there are and whatever their anchors head, looking for them takes time that grows with their number.
#[test]
fn chunks_of_a_large_file_do_not_take_for_ever() {
    let file = format!("head\nhead\n{}", "    line\n".repeat(1_000));
    for chunk in ["@@ head\n@@ none\n-x\n", "@@ head\n@@ head\n-    line\n", "@@\n-x\n*** End of File\n", "@@\n+x\n"] {
        assert_linear(chunk, 4, |count| chunk.repeat(count), |chunks| patched(&file, chunks).is_ok());
    }
}

/// An anchor that occurs at more places than are searched settles nothing.
#[test]
fn an_anchor_that_occurs_everywhere_settles_nothing() {
    let file = "a\n".repeat(30) + "b\n" + &"a\nc\n".repeat(2);
    check_refused(&file, "@@\n b\n@@ a\n+x\n", "TEXT_NOT_UNIQUE", "anchor '@@ a'");
    check_refused(&file, "@@ a\n-c\n", "TEXT_NOT_UNIQUE", "old text occurs at 2 places");
    check(&file, "@@ a\n-b\n", file.replace("b\n", ""));
}
