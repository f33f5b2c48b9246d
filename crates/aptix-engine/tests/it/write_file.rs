//! FILE-SPEC 1: whole files, written as they are given, or taken away.

use aptix_model::batch::{Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::report::FileStatus;

use crate::boundary::{apply, code, shown};

fn patch(edit: FileEdit) -> FilePatch {
    FilePatch { target: Target::Path("a".into()), key: None, label: None, edit }
}

fn write(content: &str, presence: Presence) -> FilePatch {
    patch(FileEdit::WriteFile(WriteFile { content: Content::Text(content.into()), presence, content_format: None }))
}

/// FILE-SPEC-1.2.1, FILE-SPEC-1.1.6, FILE-SPEC-1.1.7: content is written byte by byte, over what its operation lets it
/// be written over.
#[test]
fn content_is_written_as_it_is_given() {
    use FileStatus::{Created, Modified, Unchanged};
    let content = "\u{feff}a\r\nb\r";
    type Case<'a> = (Presence, Option<&'a [u8]>, Result<FileStatus, &'a str>);
    let cases: [Case<'_>; 8] = [
        (Presence::Either, None, Ok(Created)),
        (Presence::Either, Some(b"old\0\xff"), Ok(Modified)),
        (Presence::Either, Some(content.as_bytes()), Ok(Unchanged)),
        (Presence::Absent, None, Ok(Created)),
        (Presence::Absent, Some(b"old"), Err("FILE_EXISTS")),
        (Presence::Absent, Some(content.as_bytes()), Err("FILE_EXISTS")),
        (Presence::Present, Some(b"old"), Ok(Modified)),
        (Presence::Present, None, Err("FILE_MISSING")),
    ];
    for (presence, before, expected) in cases {
        match (apply(write(content, presence), before), expected) {
            (Ok(applied), Ok(status)) => {
                assert_eq!(shown(&applied.content), shown(content.as_bytes()));
                assert_eq!((applied.report.status, applied.report.normalized), (status, vec![]));
            }
            (Err(failure), Err(reason)) => assert_eq!(code(&failure), reason, "{presence:?}"),
            (found, expected) => panic!("{presence:?} of {before:?}: expected {expected:?}, found {found:?}"),
        }
    }
}

/// FILE-SPEC-1.1.8: a file that is there can be taken away, whatever it holds.
#[test]
fn a_file_is_deleted() {
    let applied = apply(patch(FileEdit::DeleteFile), Some(b"a\0\xff\nb")).unwrap();
    assert_eq!((applied.report.status, applied.report.written), (FileStatus::Deleted, None));
    let diff = "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n";
    assert!(applied.diff.starts_with(diff.as_bytes()), "{}", shown(&applied.diff));
    assert_eq!(code(&apply(patch(FileEdit::DeleteFile), None).unwrap_err()), "FILE_MISSING");
}
