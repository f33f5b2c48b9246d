//! Diffs that git makes, cut off anywhere or with other counts: what is made of them is the whole, or nothing.

use aptix_engine::planning::settings::Settings;
use aptix_model::batch::{Batch, FileEdit, Hunk, HunkLine, LineKind};
use aptix_model::documents::{Dialect, parse};
use proptest::prelude::*;

use crate::boundary::shown;
use crate::tree::{Tree, apply, apply_batch, git_diff, words};

/// Files before and after, whose lines are alike, with and without an end of the last line.
fn trees() -> impl Strategy<Value = (Tree, Tree)> {
    let text = prop_oneof![4 => "[a-d]", 2 => Just(String::new()), 1 => Just("-- a".to_owned()), 1 => Just("++ b".to_owned()), 2 => "[a-z]{8}"];
    let lines = proptest::collection::vec(text, 0..30);
    let step = (0..30_usize, 0..3_usize, proptest::collection::vec("[a-e]{1,4}", 0..3));
    let file = (lines, proptest::collection::vec(step, 1..4), any::<(bool, bool)>());
    proptest::collection::vec(file, 1..3).prop_map(|files| {
        let (mut before, mut after) = (Tree::new(), Tree::new());
        for (index, (lines, steps, is_open)) in files.into_iter().enumerate() {
            let mut changed = lines.clone();
            for (at, remove, new) in steps {
                let start = at.min(changed.len());
                changed.splice(start..(start + remove).min(changed.len()), new);
            }
            before.insert(format!("f{index}"), (bytes(&lines, is_open.0), false));
            after.insert(format!("f{index}"), (bytes(&changed, is_open.1), false));
        }
        (before, after)
    })
}

fn bytes(lines: &[String], is_open: bool) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let open = text.trim_end_matches('\n');
    if is_open && !open.is_empty() { open.into() } else { text.into() }
}

/// Whether the part of a diff above the cut is whole by itself, so that nothing shows the cut: the next hunk, the next file,
/// or the marker of an open line begins behind.
fn is_whole_so_far(diff: &[u8], end: usize) -> bool {
    let rest = diff[end..].strip_prefix(b"\n").unwrap_or(&diff[end..]);
    [&b"@@ "[..], b"diff ", b"\\ "].iter().any(|next| rest.starts_with(next))
}

fn batch_of(diff: &[u8]) -> Batch {
    parse(diff, Some(Dialect::GitPatch)).unwrap().batch
}

/// Every hunk of a batch, one after the other, to be changed.
fn each_hunk(batch: &Batch) -> impl Iterator<Item = (Batch, usize, usize)> {
    let places = batch.files.iter().enumerate().flat_map(|(file, patch)| {
        let FileEdit::GitPatch(patch) = &patch.edit else { panic!("a git patch") };
        (0..patch.hunks.len()).map(move |hunk| (file, hunk))
    });
    places.map(|(file, hunk)| (batch.clone(), file, hunk))
}

fn is_last(batch: &Batch, file: usize, hunk: usize) -> bool {
    let FileEdit::GitPatch(patch) = &batch.files[file].edit else { panic!("a git patch") };
    hunk + 1 == patch.hunks.len()
}

fn hunk(batch: &mut Batch, file: usize, hunk: usize) -> &mut Hunk {
    let FileEdit::GitPatch(patch) = &mut batch.files[file].edit else { panic!("a git patch") };
    &mut patch.hunks[hunk]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A diff that is cut anywhere is refused, or makes what the whole makes.
    #[test]
    fn a_diff_cut_at_any_byte_is_refused_or_whole((before, after) in trees(), context in 1..4_usize) {
        prop_assume!(before != after);
        let diff = git_diff(&before, &after, &[&format!("-U{context}")]);
        for end in 0..diff.len() {
            let cut = &diff[..end];
            if let Ok(changed) = apply(&before, cut, &Settings::DEFAULT)
                && changed.tree != after
            {
                prop_assert!(
                    is_whole_so_far(&diff, end),
                    "{} of {} makes {:?} of {:?}", shown(cut), shown(&diff), words(&changed.tree), words(&before)
                );
            }
        }
    }

    /// A batch that lost lines at the end of a hunk is refused, or makes what the whole makes. Above another hunk one that
    /// ends in context may lack context, which is warned of.
    #[test]
    fn a_batch_without_the_last_lines_of_a_hunk_is_refused_or_whole((before, after) in trees(), context in 1..4_usize) {
        prop_assume!(before != after);
        let diff = git_diff(&before, &after, &[&format!("-U{context}")]);
        for (batch, file, index) in each_hunk(&batch_of(&diff)) {
            for end in 0..hunk(&mut batch.clone(), file, index).lines.len() {
                let mut cut = batch.clone();
                hunk(&mut cut, file, index).lines.truncate(end);
                if let Ok(changed) = apply_batch(&before, &cut, &Settings::DEFAULT)
                    && changed.tree != after
                {
                    let lines = &hunk(&mut cut, file, index).lines;
                    let is_context = |line: &HunkLine| line.kind == LineKind::Context;
                    let may_be_whole = lines.last().is_some_and(is_context) && !lines.iter().all(is_context);
                    prop_assert!(may_be_whole && !is_last(&batch, file, index), "{:?} of {}", cut, shown(&diff));
                    prop_assert!(changed.warnings().contains(&"HUNK_COUNTS"));
                }
            }
        }
    }

    /// Counts that are wrong by one, on one side or on both, refuse a diff or do not matter.
    #[test]
    fn counts_that_are_off_by_one_are_refused_or_do_not_matter((before, after) in trees(), context in 1..4_usize) {
        prop_assume!(before != after);
        let diff = git_diff(&before, &after, &[&format!("-U{context}")]);
        for (batch, file, index) in each_hunk(&batch_of(&diff)) {
            for (old, new) in [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)] {
                let mut wrong = batch.clone();
                let hunk = hunk(&mut wrong, file, index);
                (hunk.old_count, hunk.new_count) = (hunk.old_count + old, hunk.new_count + new);
                let strict = apply_batch(&before, &wrong, &Settings { recovers: false, ..Settings::DEFAULT });
                prop_assert!(strict.is_err(), "{:?}", wrong);
                if let Ok(changed) = apply_batch(&before, &wrong, &Settings::DEFAULT) {
                    prop_assert_eq!(words(&changed.tree), words(&after), "{:?} of {}", wrong, shown(&diff));
                    prop_assert!(changed.warnings().contains(&"HUNK_COUNTS"));
                }
            }
        }
    }
}
