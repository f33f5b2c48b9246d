//! What a refused batch is corrected to, and when it is not.

use aptix_engine::correct::correct;
use aptix_engine::digest::sha256;
use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, Change, FileEdit, FilePatch, SearchChange, SearchOperation, SearchPatch, Target};
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;

use crate::boundary::{apply_all, batch, delete, insert, line_patch_of, replace, shown};
use crate::editor_commands::{commands_of, swap};

/// The bytes that a refused batch of one file makes of it once it is corrected.
fn corrected(edit: &Batch, before: &[u8]) -> Option<String> {
    let snapshot = [Observed {
        path: WorkspacePath::new("a.txt").unwrap(),
        doc_path: "repo/a.txt".to_owned(),
        content: Some(before),
        digest: None,
        is_executable: false,
        other: None,
    }];
    let valid = validate(edit, &Limits::DEFAULT).unwrap();
    let failures = plan(&valid, &snapshot, &Settings::DEFAULT).expect_err("nothing was refused");
    let batch = correct(edit, &snapshot, &Settings::DEFAULT, &failures)?;
    let applied = apply_all(&batch, &[Some(before)], &Limits::DEFAULT).expect("what is given applies");
    Some(shown(&applied[0].content))
}

#[track_caller]
fn check(stated: Option<&str>, before: &str, changes: &[Change], expected: Option<&str>) {
    let sha = sha256(stated.unwrap_or(before).as_bytes()).to_string();
    let edit = batch(vec![line_patch_of("repo/a.txt", &sha, changes)]);
    assert_eq!(corrected(&edit, before.as_bytes()), expected.map(|text| shown(text.as_bytes())));
}

#[test]
fn expected_lines_tell_what_a_line_patch_meant() {
    let (other, file) = (Some("another version\n"), "a\nb\nc\nd\n");
    // a stale digest, and every line in its place
    check(other, file, &[replace(2, 2, &["b"], &["B"])], Some("a\nB\nc\nd\n"));
    check(other, file, &[replace(1, 1, &["a"], &["A"]), delete(4, 4, &["d"])], Some("A\nb\nc\n"));
    // wrong numbers, and one other place
    check(None, file, &[replace(1, 2, &["b", "c"], &["B"])], Some("a\nB\nd\n"));
    check(None, file, &[delete(9, 9, &["d"])], Some("a\nb\nc\n"));
    check(other, file, &[replace(1, 1, &["c"], &["C"]), delete(2, 2, &["b"])], Some("a\nC\nd\n"));
    // nothing identifies
    check(other, file, &[insert(2, &["x"])], None);
    check(other, file, &[replace(2, 2, &["b"], &["B"]), insert(3, &["x"])], None);
    check(None, file, &[replace(1, 1, &["b"], &["B"]), insert(3, &["x"])], None);
    check(None, "a\nx\na\nb\n", &[replace(2, 2, &["a"], &["A"])], None);
    check(None, file, &[replace(1, 1, &["z"], &["Z"])], None);
    check(None, file, &[replace(1, 1, &["b"], &["B"]), replace(3, 3, &["b"], &["B"])], None);
    // done already
    check(Some("a\n"), "b\n", &[replace(1, 1, &["a"], &["b"])], None);
}

#[track_caller]
fn check_search(before: &str, old: &str, new: &str, expected: Option<&str>) {
    let change = SearchChange {
        operation: SearchOperation::Replace { old_text: old.to_owned() },
        new_text: Some(new.to_owned()),
        to_clipboard: None,
        from_clipboard: None,
        reindent: None,
    };
    let edit = FileEdit::SearchPatch(SearchPatch { changes: vec![change] });
    let target = Target::Path("a.txt".to_owned());
    let edit = batch(vec![FilePatch { target, key: None, label: None, edit }]);
    let expected = expected.map(|text| shown(text.as_bytes()));
    assert_eq!(corrected(&edit, before.as_bytes()), expected);
    let command = batch(vec![commands_of("a.txt", &[swap(old, new)])]);
    assert_eq!(corrected(&command, before.as_bytes()), expected, "as a command of the text-editor tool");
}

#[test]
fn old_text_gets_the_white_space_of_the_one_place_like_it() {
    let file = "fn a() {\n\tif x {\n\t\tb();\n\t}\n}\n";
    check_search(file, "    if x {\n        b();\n", "    if y {\n        b();\n", Some(&file.replace('x', "y")));
    check_search("a\nx =  1 +  2\nb\n", "x = 1 + 2\n", "x = 3\n", Some("a\nx = 3\nb\n"));
    // the new lines begin as no old line does
    check_search(file, "    if x {\n        b();\n", "    if y {\n            b();\n", None);
    // another place, another word, no word
    check_search("x =  1\nx  = 1\n", "x = 1\n", "x = 2\n", None);
    check_search("x = 1\n", "x  = 2\n", "x = 3\n", None);
    check_search("a\nb\n", " \t \n \n", "c\n", None);
}
