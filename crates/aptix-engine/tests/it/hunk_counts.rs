//! FILE-SPEC 3: hunks that have fewer or more lines than their headers count, or no numbers at all.

use aptix_engine::plan::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{FileEdit, Hunk, HunkLine, LineKind};
use aptix_model::documents::{Dialect, parse};

use crate::boundary::code;
use crate::tree::{apply_batch, tree};

fn diff(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

/// What a document is refused for, a batch that comes over gRPC is refused for too.
#[test]
fn a_batch_is_held_to_the_same_counts() {
    let before = tree(&[("f", b"a\nb\nc\nd\ne\n"), ("g", b"")]);
    let line = |text: &str| {
        let kind = match text.as_bytes()[0] {
            b'-' => LineKind::Removed,
            b'+' => LineKind::Added,
            _ => LineKind::Context,
        };
        HunkLine { kind, bytes: format!("{}\n", &text[1..]).into_bytes() }
    };
    let lines = |text: &str| text.lines().map(line).collect::<Vec<_>>();
    let hunk = |(old, new): (i64, i64), counted: &str, surplus: &str| Hunk {
        old_start: 1,
        old_count: old,
        new_start: 1,
        new_count: new,
        is_unnumbered: false,
        lines: lines(counted),
        surplus: lines(surplus),
    };
    let last = Hunk { old_start: 5, new_start: 5, ..hunk((1, 1), "-e\n+E", "") };
    for (hunks, expected) in [
        (vec![hunk((2, 2), " a\n-b\n+B", "")], Ok("a\nB\nc\nd\ne\n")),
        (vec![hunk((3, 3), " a\n-b\n+B", "")], Err("PATCH_TRUNCATED")),
        (vec![hunk((3, 3), "", "")], Err("PATCH_TRUNCATED")),
        (vec![hunk((3, 3), " a\n-b\n+B", ""), last.clone()], Err("PATCH_TRUNCATED")),
        (vec![hunk((4, 4), " a\n-b\n+B\n c", ""), last.clone()], Ok("a\nB\nc\nd\nE\n")),
        (vec![hunk((4, 4), " a\n-b\n+B\n c", "+x"), last.clone()], Err("PATCH_TRUNCATED")),
        (vec![hunk((3, 3), " a\n-b\n+B", " c")], Ok("a\nB\nc\nd\ne\n")),
        (vec![hunk((3, 3), " a\n-b\n+B", " x")], Err("PATCH_TRUNCATED")),
        (vec![hunk((2, 2), " a\n-b\n+B\n+BB", "")], Ok("a\nB\nBB\nc\nd\ne\n")),
        (vec![hunk((2, 2), " a\n-b\n+B", "+BB")], Ok("a\nB\nBB\nc\nd\ne\n")),
        (vec![hunk((2, 2), " a\n-b\n+B\n-c", "")], Ok("a\nB\nd\ne\n")),
        (vec![hunk((2, 2), " a\n-b\n+B", "-c")], Ok("a\nB\nd\ne\n")),
        (vec![hunk((2, 2), " a\n-b\n+B", "-x")], Ok("a\nB\nc\nd\ne\n")),
        (vec![hunk((2, 2), " a\n-b\n+B\n c", "")], Ok("a\nB\nc\nd\ne\n")),
    ] {
        let mut batch = parse(diff("@@ -1 +1 @@\n-a\n+b\n").as_bytes(), Some(Dialect::GitPatch)).unwrap().batch;
        let FileEdit::GitPatch(patch) = &mut batch.files[0].edit else { panic!("a git patch") };
        patch.hunks = hunks;
        let found = apply_batch(&before, &batch, &Settings::DEFAULT);
        let found = found.map(|changed| String::from_utf8(changed.tree["f"].0.clone()).unwrap());
        let found = found.map_err(|failures| failures.iter().map(code).collect::<Vec<_>>().join(" "));
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{batch:?}");
        if expected == Err("PATCH_TRUNCATED")
            && !matches!(&batch.files[0].edit, FileEdit::GitPatch(patch) if !patch.hunks[0].surplus.is_empty())
        {
            assert!(validate(&batch, &Settings::DEFAULT.limits).is_err(), "no file is needed for it: {batch:?}");
        }
    }
}
