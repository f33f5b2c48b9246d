//! TUL-002 4.2: which version of a file a patch is for.

use aptix_engine::digest::sha256;
use aptix_model::batch::FilePatch;
use aptix_model::digest::Sha256Digest;
use aptix_model::limits::Limits;
use aptix_model::report::Normalization;

use crate::boundary::{
    apply, apply_known, batch, code, create, delete, insert, line_patch, line_patch_of, overwrite, refused, replace,
};

/// TUL-002-4.2.4, TUL-002-8.2.3, TUL-002-8.2.4, L19, H4: the whole text's digest comes first, whatever the lines.
#[test]
fn another_version_is_refused_even_if_the_lines_fit() {
    let failure = apply(line_patch(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])]), Some(b"a\nc\n")).unwrap_err();
    assert_eq!(code(&failure), "SHA_MISMATCH");
    assert_eq!(failure.current_sha256, Some(sha256(b"a\nc\n")));
    assert!(failure.hint.unwrap().contains("every expected line is still where"));
    let failure = apply(line_patch(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])]), Some(b"z\nb\n")).unwrap_err();
    assert_eq!(code(&failure), "SHA_MISMATCH");
    assert!(!failure.hint.unwrap().contains("is still where"));
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

/// A patch that was applied before is distinguished from one made for another version.
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

/// A result may not show how the removed lines ended, or show its last blank line: it is recognised all the same.
#[test]
fn a_patch_applied_before_is_recognised_by_its_lines() {
    for (before, changes) in [
        ("a", vec![delete(1, 1, &["a"])]),
        ("\u{feff}a", vec![delete(1, 1, &["a"])]),
        ("a\r\nb\r\n", vec![delete(1, 2, &["a", "b"])]),
        ("a\r\nb", vec![delete(2, 2, &["b"])]),
        ("a\n\nb", vec![delete(3, 3, &["b"])]),
        ("a\r\n\r\nb", vec![delete(3, 3, &["b"])]),
        ("a\nb", vec![insert(2, &[""])]),
        ("a\nb", vec![replace(2, 2, &["b"], &[""])]),
        ("b", vec![replace(1, 1, &["b"], &["", ""])]),
        ("a\nb\r", vec![insert(2, &["x"])]),
        ("a\r\nb\nc\n", vec![replace(2, 2, &["b"], &["x"])]),
    ] {
        let after = apply(line_patch(before.as_bytes(), &changes), Some(before.as_bytes())).unwrap().content;
        let again = apply(line_patch(before.as_bytes(), &changes), Some(&after));
        assert_eq!(refused(again), "ALREADY_APPLIED", "{before:?}");
    }
    // The canonical digest was stated of lines that are gone.
    let stated = line_patch(b"a", &[delete(1, 1, &["a"])]);
    assert_eq!(refused(apply(stated, Some(b"\xef\xbb\xbf"))), "ALREADY_APPLIED");
}

/// If the lines suggest it and the digest does not, the hint says that the patch may have been applied.
#[test]
fn a_patch_that_may_have_been_applied_is_reported() {
    let hint = |before: &[u8], changes: &[_], now: &[u8]| {
        let failure = apply(line_patch(before, changes), Some(now)).unwrap_err();
        assert_eq!(code(&failure), "SHA_MISMATCH");
        failure.hint.unwrap()
    };
    let may = "the new lines are already where the patch would put them: it may have been applied";
    assert!(hint(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])], b"x\nb\nmore\n").ends_with(may));
    // The terminator of the removed line is unknown here.
    let may = "the patch may have been applied";
    assert!(hint(b"a\r\nb\nc\n", &[delete(2, 2, &["b"])], b"a\r\nc\n").ends_with(may));
    assert!(!hint(b"a\nb\nc\n", &[delete(2, 2, &["b"])], b"a\nz\n").contains("applied"));
    assert!(!hint(b"a\nb\n", &[replace(1, 1, &["a"], &["x"])], b"z\nb\n").contains("applied"));
}

/// A digest that the caller knows is believed wherever that of the file is wanted.
#[test]
fn a_known_digest_is_not_computed_again() {
    // Nothing hashes to this, so that it can only come from the caller.
    let known: Sha256Digest = "ab".repeat(32).parse().unwrap();
    let stated = |digest: &str, changes: &[_]| line_patch_of("repo/a.txt", digest, changes);
    let limits = Limits { file_bytes: 20, ..Limits::DEFAULT };
    let apply = |patch: FilePatch, content: &[u8]| {
        apply_known(&batch(vec![patch]), &[(Some(content), Some(known))], &limits).map(|mut all| all.remove(0).report)
    };
    let any = known.to_string();
    for (patch, content, expected) in [
        (create("a", "x"), &b"y"[..], "FILE_EXISTS"),
        (stated(&any, &[insert(0, &["x"])]), b"\xff\xfe", "NOT_TEXT.ENCODING"),
        (stated(&any, &[insert(0, &["x"])]), b"a line that is too long", "TOO_LARGE.FILE"),
        (stated(&any, &[delete(1, 1, &["x"])]), b"y\n", "EXPECTED_MISMATCH"),
        (line_patch(b"y\n", &[delete(1, 1, &["y"])]), b"y\n", "SHA_MISMATCH"),
        (line_patch(b"x\ny\n", &[delete(1, 1, &["x"])]), b"y\n", "ALREADY_APPLIED"),
    ] {
        let failures = apply(patch, content).unwrap_err();
        assert_eq!((code(&failures[0]).as_str(), failures[0].current_sha256), (expected, Some(known)));
    }
    let report = apply(stated(&any, &[insert(0, &["x"])]), b"a\n").unwrap();
    assert_eq!((report.sha256_before, report.written.unwrap().sha256), (Some(known), sha256(b"x\na\n")));
    for (patch, content) in [(stated(&any, &[replace(1, 1, &["a"], &["a"])]), b"a\n"), (overwrite("a", "a\n"), b"a\n")]
    {
        let report = apply(patch, content).unwrap();
        assert_eq!((report.sha256_before, report.written.unwrap().sha256), (Some(known), known));
    }
    // What is not the known digest can still be that of the canonical text.
    let report = apply(line_patch(b"a\n", &[insert(0, &["x"])]), b"a\r\n").unwrap();
    assert_eq!(report.normalized, [Normalization::MatchedCanonicalDigest]);
}
