//! Commands of the common text-editor tool as documents: what they become, and what they are refused for.

use aptix_model::batch::{Batch, Content, EditorCommand, EditorCommands, FileEdit, FilePatch, Presence, Target};
use aptix_model::documents::{Dialect, Document, parse, write};
use aptix_model::failure::Failure;

fn read(text: &str) -> Result<Document, Vec<Failure>> {
    parse(text.as_bytes(), None)
}

/// `path: +content`, or `path: "old" => "new", 3: "new"`.
fn shown(file: &FilePatch) -> String {
    let path = file.target.as_str();
    match &file.edit {
        FileEdit::WriteFile(write) => {
            assert_eq!(write.presence, Presence::Absent);
            let Content::Text(text) = &write.content else { panic!("text") };
            format!("{path}: +{text:?}")
        }
        FileEdit::EditorCommands(edit) => {
            let commands = edit.commands.iter().map(|command| match command {
                EditorCommand::StrReplace { old_text, new_text } => format!("{old_text:?} => {new_text:?}"),
                EditorCommand::Insert { after_line, text } => format!("{after_line}: {text:?}"),
            });
            format!("{path}: {}", commands.collect::<Vec<_>>().join(", "))
        }
        edit => panic!("{edit:?}"),
    }
}

#[test]
fn commands_become_one_edit_for_each_file() {
    let cases: &[(&str, &[&str])] = &[
        (r#"{"command": "create", "path": "d/a", "file_text": "x\r\n"}"#, &[r#"d/a: +"x\r\n""#]),
        (r#"{"command": "str_replace", "path": ".\\d\\a", "old_str": "x", "new_str": "y"}"#, &[r#"d/a: "x" => "y""#]),
        (r#"{"command": "str_replace", "path": "a", "old_str": "x"}"#, &[r#"a: "x" => """#]),
        (r#"{"command": "str_replace", "path": "a", "old_str": "x", "new_str": null}"#, &[r#"a: "x" => """#]),
        (r#"{"command": "insert", "path": "a", "insert_line": 0, "insert_text": "y"}"#, &[r#"a: 0: "y""#]),
        (r#"{"command": "insert", "path": "a", "insert_line": 3, "new_str": "y"}"#, &[r#"a: 3: "y""#]),
        (r#"[{"command": "create", "path": "a", "file_text": ""}]"#, &[r#"a: +"""#]),
        (
            r#"[{"command": "str_replace", "path": "a", "old_str": "1", "new_str": "2"},
                {"command": "create", "path": "b", "file_text": "1"},
                {"command": "str_replace", "path": "./a", "old_str": "3", "new_str": "1"}]"#,
            &[r#"a: "1" => "2", "3" => "1""#, r#"b: +"1""#],
        ),
        (
            r#"[{"command": "insert", "path": "a", "insert_line": 9, "insert_text": "x"},
                {"command": "insert", "path": "a", "insert_line": 8, "insert_text": "x"},
                {"command": "str_replace", "path": "a", "old_str": "y", "new_str": "x"}]"#,
            &[r#"a: 9: "x", 8: "x", "y" => "x""#],
        ),
    ];
    for (text, expected) in cases {
        let document = read(text).unwrap_or_else(|failures| panic!("{text}\n{failures:?}"));
        assert_eq!(document.dialect, Dialect::StrReplace);
        assert_eq!(document.batch.files.iter().map(shown).collect::<Vec<_>>(), *expected, "{text}");
        let again = write(&document.batch, Dialect::StrReplace).unwrap();
        assert_eq!(parse(again.as_bytes(), None).unwrap(), document, "{again}");
    }
}

/// A batch whose commands would mean something else one after the other is not written down as a list.
#[test]
fn commands_whose_order_would_matter_are_not_written() {
    let swap = |old: &str, new: &str| EditorCommand::StrReplace { old_text: old.into(), new_text: new.into() };
    let written = |commands: Vec<EditorCommand>| {
        let edit = FileEdit::EditorCommands(EditorCommands { commands });
        let file = FilePatch { target: Target::Path("a".into()), key: None, label: None, edit };
        write(&Batch { files: vec![file], ..Batch::default() }, Dialect::StrReplace)
    };
    assert!(written(vec![swap("x", "z"), swap("y", "x")]).is_some());
    assert_eq!(written(vec![swap("y", "x"), swap("x", "z")]), None);
}

#[test]
fn what_is_no_editing_command_is_refused_with_its_place() {
    let cases = [
        (r#"{"command": "view", "path": "a"}"#, "command: INVALID_REQUEST.UNKNOWN_OPERATION", "only edits"),
        (
            r#"{"command": "view", "path": "a", "view_range": [1, -1]}"#,
            "command: INVALID_REQUEST.UNKNOWN_OPERATION",
            "only edits",
        ),
        (
            r#"{"command": "undo_edit", "path": "a"}"#,
            "command: INVALID_REQUEST.UNKNOWN_OPERATION",
            "takes the change back",
        ),
        (r#"{"command": "replace", "path": "a"}"#, "command: INVALID_REQUEST.UNKNOWN_OPERATION", ""),
        (r#"{"command": "str_repalce", "path": "a"}"#, "command: INVALID_REQUEST.UNKNOWN_OPERATION", "'str_replace'"),
        (r#"{"path": "a", "old_str": "x"}"#, "command: INVALID_REQUEST.MISSING", ""),
        (r#"{"command": "create", "file_text": ""}"#, "path: INVALID_REQUEST.MISSING", ""),
        (r#"{"command": "create", "path": "a"}"#, "file_text: INVALID_REQUEST.MISSING", ""),
        (r#"{"command": "str_replace", "path": "a", "new_str": "x"}"#, "old_str: INVALID_REQUEST.MISSING", ""),
        (r#"{"command": "insert", "path": "a", "insert_text": "x"}"#, "insert_line: INVALID_REQUEST.MISSING", ""),
        (r#"{"command": "insert", "path": "a", "insert_line": 1}"#, "insert_text: INVALID_REQUEST.MISSING", ""),
        (
            r#"{"command": "insert", "path": "a", "insert_line": 1, "insert_text": "x", "new_str": "x"}"#,
            "new_str: INVALID_REQUEST.UNEXPECTED_FIELD",
            "leave 'new_str' out",
        ),
        (
            r#"{"command": "create", "path": "a", "file_text": "", "old_str": "x"}"#,
            "old_str: INVALID_REQUEST.UNEXPECTED_FIELD",
            "leave 'old_str' out",
        ),
        (
            r#"{"command": "str_replace", "path": "a", "old_str": "x", "view_range": [1, 2]}"#,
            "view_range: INVALID_REQUEST.UNEXPECTED_FIELD",
            "leave 'view_range' out",
        ),
        (
            r#"{"command": "insert", "path": "a", "insert_line": "1", "new_str": ""}"#,
            "insert_line: INVALID_REQUEST.TYPE",
            "",
        ),
        (
            r#"{"command": "create", "path": "a", "file_txt": ""}"#,
            "file_txt: INVALID_REQUEST.UNKNOWN_FIELD",
            "'file_text'",
        ),
        (r#"[{"command": "create", "path": "a"}, {"command": "view"}]"#, "[0].file_text: INVALID_REQUEST.MISSING", ""),
        (r#"[["create", "a", ""], {"command": "create"}]"#, "[0]: INVALID_REQUEST.TYPE", ""),
    ];
    for (text, expected, hint) in cases {
        let failure = read(text).expect_err(text).remove(0);
        let detail = failure.detail.unwrap();
        assert_eq!(format!("{}: {}.{detail}", failure.field.clone().unwrap(), failure.reason), expected, "{text}");
        assert!(failure.hint.as_deref().unwrap_or_default().contains(hint), "{text}\n{failure:?}");
    }
    assert_eq!(read(r#"[{"command": "create"}, {"command": "insert", "path": "a"}]"#).unwrap_err().len(), 4);
}

#[test]
fn commands_on_one_file_whose_order_could_matter_are_refused() {
    let create = r#"{"command": "create", "path": "a", "file_text": "x"}"#;
    let insert =
        |line: u32| format!(r#"{{"command": "insert", "path": "a", "insert_line": {line}, "new_str": "one two"}}"#);
    let replace = |old: &str, new: &str| {
        format!(r#"{{"command": "str_replace", "path": "a", "old_str": "{old}", "new_str": "{new}"}}"#)
    };
    let cases = [
        (create.to_owned(), replace("x", "y"), "that creates it"),
        (create.to_owned(), create.to_owned(), "that creates it"),
        (replace("x", "y"), create.to_owned(), "this creates it"),
        (replace("x", "one two"), replace("two", "2"), "is in the new text there"),
        (insert(3), replace("two", "2"), "is in the new text there"),
        (insert(3), insert(3), "may be another line"),
        (insert(3), insert(4), "may be another line"),
        (replace("x", "y"), insert(1), "may be another line"),
    ];
    for (first, second, why) in cases {
        let failures = read(&format!("[{first}, {second}]")).unwrap_err();
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert_eq!((failure.field.as_deref(), failure.detail.unwrap().code()), (Some("[1].path"), "DUPLICATE_PATH"));
        assert!(failure.message.contains("command 0") && failure.message.contains(why), "{failure}");
        assert!(failure.hint.is_some());
    }
}

/// Telling whether the order matters does not grow with the square of the document.
#[test]
fn too_many_commands_on_one_file_are_refused() {
    let text = |count: usize| {
        let new = "x".repeat(10_000);
        let command = format!(r#"{{"command": "str_replace", "path": "a", "old_str": "y", "new_str": "{new}"}}"#);
        format!("[{}]", vec![command; count].join(","))
    };
    assert_eq!(read(&text(100)).unwrap().batch.files.len(), 1);
    let failure = read(&text(1000)).unwrap_err().remove(0);
    assert_eq!((failure.reason.code(), failure.detail.unwrap().code()), ("TOO_LARGE", "CHANGES"));
}
