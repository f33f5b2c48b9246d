//! TUL-002 4.2: which version of a file a patch is for.

use aptix_engine::digest::sha256;
use aptix_model::report::Normalization;

use crate::boundary::{apply, code, delete, insert, line_patch, line_patch_of, refused, replace};

/// TUL-002-4.2.4, TUL-002-8.2.3, TUL-002-8.2.4, L19, H4: the whole text's digest comes first, whatever the lines.
#[test]
fn another_version_is_refused_even_if_the_lines_fit() {
    let failure = apply(line_patch(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])]), Some(b"a\nc\n")).unwrap_err();
    assert_eq!(code(&failure), "SHA_MISMATCH");
    assert_eq!(failure.current_sha256, Some(sha256(b"a\nc\n")));
    assert!(failure.hint.unwrap().contains("every expected line still stands"));
    let failure = apply(line_patch(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])]), Some(b"z\nb\n")).unwrap_err();
    assert_eq!(code(&failure), "SHA_MISMATCH");
    assert!(!failure.hint.unwrap().contains("still stands"));
    // The digest of a part of the text.
    assert_eq!(refused(apply(line_patch(b"a\n", &[replace(1, 1, &["a"], &["x"])]), Some(b"a\nb\n"))), "SHA_MISMATCH");
}

/// H2: the digest is read in either case.
#[test]
fn an_upper_case_digest_is_the_same_digest() {
    let stated = sha256(b"a\n").to_string().to_uppercase();
    assert!(apply(line_patch_of("repo/a.txt", &stated, &[insert(0, &["x"])]), Some(b"a\n")).is_ok());
}

/// H5, H6: the digest of the canonical text is honoured, and said to have been.
#[test]
fn the_digest_of_the_canonical_text_will_do() {
    let patch = || line_patch(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])]);
    for (file, after) in
        [("a\r\nb\r\n", "x\r\nb\r\n"), ("\u{feff}a\nb\n", "\u{feff}x\nb\n"), ("\u{feff}a\r\nb\n", "\u{feff}x\r\nb\n")]
    {
        let applied = apply(patch(), Some(file.as_bytes())).unwrap();
        assert_eq!(String::from_utf8(applied.content).unwrap(), after);
        assert_eq!(applied.report.normalized, [Normalization::MatchedCanonicalDigest]);
        assert_eq!(applied.report.sha256_before, Some(sha256(file.as_bytes())));
    }
    assert_eq!(apply(patch(), Some(b"a\nb\n")).unwrap().report.normalized, []);
    // No text, no canonical text.
    let stated = line_patch(b"a\n\xff\n", &[insert(0, &["x"])]);
    assert_eq!(refused(apply(stated, Some(b"a\r\n\xff\r\n"))), "SHA_MISMATCH");
}

/// A patch that was applied before is told from one made for another version.
#[test]
fn a_patch_applied_before_is_recognised() {
    let changes = [insert(0, &["top"]), replace(2, 2, &["b"], &["x", "y"]), delete(3, 3, &["c"])];
    for before in ["a\nb\nc\nd\n", "a\r\nb\r\nc\r\nd\r\n", "\u{feff}a\nb\nc\nd", "a\nb\nc\n"] {
        let after = apply(line_patch(before.as_bytes(), &changes), Some(before.as_bytes())).unwrap().content;
        let failure = apply(line_patch(before.as_bytes(), &changes), Some(&after)).unwrap_err();
        assert_eq!(code(&failure), "ALREADY_APPLIED", "{before:?}");
        assert_eq!(failure.current_sha256, Some(sha256(&after)));
        // Anything else on top of it is another version.
        let failure = apply(line_patch(before.as_bytes(), &changes), Some(&[&after[..], b"\nmore\n"].concat()));
        assert_eq!(refused(failure), "SHA_MISMATCH", "{before:?}");
    }
    // Stated by the canonical digest.
    let canonical = line_patch(b"a\nb\n", &[delete(1, 1, &["a"])]);
    assert_eq!(refused(apply(canonical, Some(b"b\r\n"))), "ALREADY_APPLIED");
}
