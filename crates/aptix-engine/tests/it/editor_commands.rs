//! What commands of the text-editor tool do to the bytes of a file, and what they are refused for.

use aptix_model::batch::{EditorCommand, EditorCommands, FileEdit, FilePatch, Target};
use aptix_model::failure::Failure;

use crate::boundary::{Applied, apply, code, shown};

pub(crate) fn swap(old: &str, new: &str) -> EditorCommand {
    EditorCommand::StrReplace { old_text: old.to_owned(), new_text: new.to_owned() }
}

pub(crate) fn after(line: i64, text: &str) -> EditorCommand {
    EditorCommand::Insert { after_line: line, text: text.to_owned() }
}

pub(crate) fn commands_of(path: &str, commands: &[EditorCommand]) -> FilePatch {
    let edit = FileEdit::EditorCommands(EditorCommands { commands: commands.to_vec() });
    FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit }
}

#[track_caller]
fn check(before: &str, commands: &[EditorCommand], expect: &str) -> Applied {
    let applied = apply(commands_of("a.txt", commands), Some(before.as_bytes())).unwrap();
    assert_eq!(shown(&applied.content), shown(expect.as_bytes()));
    applied
}

#[track_caller]
fn check_refused(before: Option<&str>, commands: &[EditorCommand], expect: &str) -> Box<Failure> {
    let failure = apply(commands_of("a.txt", commands), before.map(str::as_bytes)).unwrap_err();
    assert_eq!(code(&failure), expect);
    failure
}

/// Whole lines below a line; the end of the file stays as it was.
#[test]
fn lines_come_below_a_line() {
    check("a\nb\n", &[after(0, "x")], "x\na\nb\n");
    check("a\nb\n", &[after(1, "x\ny\n")], "a\nx\ny\nb\n");
    check("a\nb\n", &[after(2, "x")], "a\nb\nx\n");
    check("a\r\nb", &[after(2, "x\ny\n")], "a\r\nb\r\nx\r\ny");
    check("a\r\nb\n", &[after(1, "x")], "a\r\nx\r\nb\n");
    check("\u{feff}a\n", &[after(0, "")], "\u{feff}\na\n");
    check("a\nb\n", &[after(1, "x"), after(1, "y"), swap("b", "c")], "a\nx\ny\nc\n");
    check("", &[after(0, "x")], "x\n");
    for (before, new, expect, said) in [
        ("a\n", "x\r\ny", "a\nx\ny\n", 1),
        ("a\r\n", "x\n", "a\r\nx\r\n", 1),
        ("a\r\n", "x\r\n", "a\r\nx\r\n", 0),
        ("a\r\n", "x", "a\r\nx\r\n", 0),
    ] {
        let applied = check(before, &[after(1, new)], expect);
        assert_eq!(applied.report.normalized.len(), said, "{before:?} {new:?}: other terminators are reported");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let failure = check_refused(Some("a\n"), &[after(2, "x")], "LINE_RANGE.PAST_END");
    assert_eq!(failure.message, "the change names line 2, and the file has 1 line");
    let cases = [
        (Some("a\n"), vec![after(-1, "x")], "LINE_RANGE.NEGATIVE"),
        (Some("a\n"), vec![], "INVALID_REQUEST.EMPTY"),
        (Some("a\n"), vec![swap("", "x")], "INVALID_REQUEST.EMPTY_FIND"),
        (Some("a\n"), vec![swap("a\0", "x")], "NOT_TEXT.BINARY"),
        (Some("a\n"), vec![swap("a", "x\0")], "NOT_TEXT.BINARY"),
        (Some("a\n"), vec![after(1, "x\0")], "NOT_TEXT.BINARY"),
        (Some("a\n"), vec![swap("b", "x")], "TEXT_NOT_FOUND"),
        (Some("a\na\n"), vec![swap("a", "x")], "TEXT_NOT_UNIQUE"),
        (Some("a\nb\nc\n"), vec![swap("a\nb\nc", "a\nx\nc"), after(1, "y")], "MATCH_OVERLAP"),
        (Some("abcdef\n"), vec![swap("abcd", "X"), swap("cdef", "Y")], "MATCH_OVERLAP"),
        (None, vec![after(0, "x")], "FILE_MISSING"),
        (None, vec![swap("a", "b")], "FILE_MISSING"),
    ];
    for (before, commands, expect) in cases {
        check_refused(before, &commands, expect);
    }
}
