//! A plan expressed in another form produces the same bytes, or is refused with the reason.

use aptix_engine::express::{self, Form};
use aptix_engine::plan::{BatchPlan, plan};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use proptest::prelude::*;

use crate::boundary::{apply_all, batch, shown};
use crate::properties::{Naive, file, patch, steps};

/// Writes these bytes to `a.txt`, or deletes it.
fn becoming(content: Option<&str>) -> FilePatch {
    let write = |text: &str| WriteFile {
        content: Content::Text(text.to_owned()),
        presence: Presence::Either,
        content_format: None,
    };
    let edit = content.map_or(FileEdit::DeleteFile, |text| FileEdit::WriteFile(write(text)));
    FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit }
}

fn planned<R>(batch: &Batch, before: Option<&[u8]>, see: impl FnOnce(&BatchPlan<'_>) -> R) -> R {
    let valid = validate(batch, &Limits::DEFAULT).unwrap();
    let snapshot = [Observed {
        path: WorkspacePath::new("a.txt").unwrap(),
        doc_path: "repo/a.txt".to_owned(),
        content: before,
        digest: None,
        is_executable: false,
        other: None,
    }];
    see(&plan(&valid, &snapshot, &Settings::DEFAULT).unwrap())
}

/// Says an edit of one file in another form, and holds it to the same bytes.
fn said(edit: &Batch, before: Option<&[u8]>, form: Form) -> Result<Batch, Vec<Failure>> {
    let (batch, content) = planned(edit, before, |plan| {
        let batch = express::express(plan, form)?;
        express::verify(&batch, plan)?;
        Ok::<_, Vec<Failure>>((batch, plan.files[0].content().into_owned()))
    })?;
    let applied = apply_all(&batch, &[before], &Limits::DEFAULT)?;
    assert_eq!(shown(&applied[0].content), shown(&content));
    Ok(batch)
}

/// What is said of an edit in a form, or the message of the refusal.
#[track_caller]
fn check(before: Option<&str>, after: Option<&str>, form: Form, expected: Result<&str, &str>) {
    let found = said(&batch(vec![becoming(after)]), before.map(str::as_bytes), form);
    match (found, expected) {
        (Ok(batch), Ok(words)) => assert!(format!("{:?}", batch.files[0].edit).contains(words), "{batch:?}"),
        (Err(failures), Err(words)) => {
            assert_eq!(failures[0].reason.code(), "NOT_EXPRESSIBLE");
            assert!(failures[0].message.contains(words), "{}", failures[0].message);
            assert!(failures[0].hint.is_some());
        }
        (found, _) => panic!("{before:?} to {after:?} as {form:?}: {found:?}"),
    }
}

#[test]
fn what_a_form_has_no_words_for_is_refused_with_the_reason() {
    let (lines, whole) = (Form::LinePatch, Form::WholeFiles);
    check(Some("a\nb\n"), Some("a\nc\n"), lines, Ok("Replace { start_line: 2, end_line: 2"));
    check(Some("a\nb\n"), Some("a\n"), lines, Ok("Delete { start_line: 2, end_line: 2"));
    check(Some("a\nb\n"), Some("x\na\nb\n"), lines, Ok("Insert { after_line: 0"));
    check(Some(""), Some("x\n"), lines, Ok("Insert { after_line: 0"));
    check(Some("\u{feff}a\r\nb\r\n"), Some("\u{feff}c\r\nb\r\n"), lines, Ok("new_lines: [\"c\"]"));
    check(Some("a\nb"), Some("a\nb\nc"), lines, Ok("new_lines: [\"b\", \"c\"]"));
    check(Some("a\nb"), Some("a\nb\n"), lines, Err("its end or its line endings would differ"));
    check(Some("a\n"), Some("a\r\n"), lines, Err("its end or its line endings would differ"));
    check(Some("\u{feff}a\n"), Some("a\n"), lines, Err("changes nothing"));
    check(None, Some("a\n"), lines, Err("a line patch cannot create a file"));
    check(Some("a\n"), None, lines, Err("a line patch cannot delete a file"));
    check(Some("a\n"), Some("a\n"), lines, Err("changes nothing"));
    check(Some("a\n"), Some("\u{feff}b\r\n"), whole, Ok("presence: Present"));
    check(None, Some("a"), whole, Ok("presence: Absent"));
    check(Some("a\n"), None, whole, Ok("DeleteFile"));
    check(Some("\n\n\n\n\na\n}\n"), Some("}\n\n\na\n"), Form::Replacements, Ok("Replacements"));
    check(None, Some("a\n"), Form::Replacements, Err("a structured patch cannot create a file"));
}

#[test]
fn lines_that_are_no_utf_8_are_named() {
    let before = b"a\n\xff\nc\n";
    let edit = crate::boundary::line_patch(before, &[crate::boundary::insert(1, &["x"])]);
    let whole = said(&batch(vec![edit.clone()]), Some(before), Form::WholeFiles).unwrap_err();
    assert_eq!(whole[0].message, "a file bundle is text, and line 3 is no UTF-8");
    said(&batch(vec![edit]), Some(before), Form::LinePatch).unwrap();
}

/// Whether every form that is about lines can say every edit of a file.
fn is_plain(file: &Naive) -> bool {
    let bytes = file.bytes();
    std::str::from_utf8(&bytes).is_ok() && (!bytes.contains(&b'\r') && bytes.ends_with(b"\n"))
}

proptest! {
    #[test]
    fn a_line_patch_said_again_makes_the_same_bytes(file in file(), steps in steps()) {
        let (changes, _) = patch(&file, &steps);
        let before = file.bytes();
        let edit = batch(vec![crate::boundary::line_patch(&before, &changes)]);
        if changes.is_empty() {
            return Ok(());
        }
        planned(&edit, Some(&before), |plan| {
            let Ok(diff) = express::diff(plan) else { return };
            let again = documents::parse(&diff, Some(Dialect::GitPatch)).unwrap();
            express::verify(&again.batch, plan).unwrap();
        });
        for form in [Form::LinePatch, Form::SearchPatch, Form::Replacements, Form::WholeFiles] {
            match said(&edit, Some(&before), form) {
                Ok(_) => {}
                Err(failures) => {
                    let message = &failures[0].message;
                    let is_known = message.contains("changes nothing")
                        // Lines that repeat can make it look as if it had been made before.
                        || ["may have been made", "may be those of this change", "already made", "sent twice"].iter().any(|words| message.contains(words))
                        || message.contains("no UTF-8") && std::str::from_utf8(&before).is_err()
                        || message.contains("an empty file has none") && !before.contains(&b'\n')
                        || message.contains("carriage return") && before.contains(&b'\r')
                        || message.contains("would differ") && !is_plain(&file);
                    prop_assert!(is_known, "{form:?}: {message}");
                }
            }
        }
    }
}
