//! TUL-004 4.2 and 5: whole-file content.

use aptix_model::batch::{BlobRef, Content, CreateFile, FileEdit};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::REPLACE_HINT;
use aptix_model::report::{FileStatus, Normalization};

use crate::boundary::{apply, create, overwrite, refused, shown};

/// TUL-004-3.3.4, TUL-004-4.2.3, TUL-004-4.2.4, TUL-004-5.1.5.1, TUL-004-5.1.5.2,
/// TUL-004-5.1.2.5, H16: content is written as UTF-8 without byte order mark, with `\n`.
#[test]
fn content_is_normalised_and_said_to_be() {
    use Normalization::{BomRemoved, LineEndings};
    let cases: [(&str, &str, &[Normalization]); 9] = [
        ("a\nb\n", "a\nb\n", &[]),
        ("a\r\nb\r\n", "a\nb\n", &[LineEndings]),
        ("\u{feff}a\n", "a\n", &[BomRemoved]),
        ("\u{feff}a\r\nb", "a\nb", &[BomRemoved, LineEndings]),
        ("\u{feff}\u{feff}a", "a", &[BomRemoved]),
        ("a\rb\r", "a\rb\r", &[]),
        ("a\r\r\nb\r", "a\nb\r", &[LineEndings]),
        ("\r\n\r\n", "\n\n", &[LineEndings]),
        ("", "", &[]),
    ];
    for (content, written, normalized) in cases {
        let applied = apply(create("src/A.txt", content), None).unwrap();
        assert_eq!(shown(&applied.content), shown(written.as_bytes()), "{content:?}");
        assert_eq!(applied.report.normalized, normalized, "{content:?}");
        assert_eq!((applied.report.path.as_str(), applied.report.status), ("src/A.txt", FileStatus::Created));
        assert_eq!(
            (applied.report.sha256_before, applied.report.written.unwrap().size_bytes),
            (None, written.len() as u64)
        );
    }
}

/// TUL-004-5.1.6.1, TUL-004-5.1.6.2, TUL-004-3.3.5: the hash is the SHA-256 of the final bytes.
#[test]
fn the_hash_is_that_of_the_final_bytes() {
    let applied = apply(create("a", "\u{feff}"), None).unwrap();
    assert_eq!(applied.report.written.unwrap().sha256, Sha256Digest::EMPTY);
}

/// TUL-004-4.2.7, TUL-004-5.1.3.1, H11: without overwrite an existing file is left alone.
#[test]
fn an_existing_file_is_not_created_again() {
    let failure = apply(create("a", "new"), Some(b"old")).unwrap_err();
    assert_eq!((failure.reason.code(), failure.path.as_deref()), ("FILE_EXISTS", Some("a")));
    assert_eq!(failure.current_sha256, Some(aptix_engine::digest::sha256(b"old")));
    assert_eq!(failure.hint.unwrap(), REPLACE_HINT);
    let failure = apply(create("a", "\u{feff}old\r\n"), Some(b"old\n")).unwrap_err();
    assert_eq!(failure.reason.code(), "FILE_EXISTS");
    assert_eq!(failure.hint.unwrap(), "it already has exactly this content; nothing is left to do");
}

/// TUL-004-4.2.8, TUL-004-4.2.10, H13: with overwrite a file is replaced as a whole, or created.
#[test]
fn overwrite_replaces_or_creates() {
    for (before, status) in [
        (Some(&b"old\0\xff"[..]), FileStatus::Modified),
        (None, FileStatus::Created),
        (Some(b"new\n"), FileStatus::Unchanged),
    ] {
        let applied = apply(overwrite("a", "new\r\n"), before).unwrap();
        assert_eq!((applied.content.as_slice(), applied.report.status), (&b"new\n"[..], status));
        assert_eq!(applied.report.changes, []);
    }
}

/// Content that is still a blob is the caller's mistake, not the author's.
#[test]
fn a_blob_is_fetched_before_planning() {
    let mut patch = create("a", "");
    let content = Content::Blob(BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 });
    patch.edit = FileEdit::CreateFile(CreateFile { content, overwrite: true, content_format: None });
    assert_eq!(refused(apply(patch, None)), "INTERNAL");
}
