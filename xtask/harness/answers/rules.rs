//! Holds what became of a variant against its rule.

use std::collections::BTreeSet;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::boundary::Said;
use crate::case::{Case, Expected};
use crate::judge::{Class, Verdict, applied, faulty, shown_errors};
use crate::tree::{Entry, Tree};
use crate::variants::{Kind, Rule, Variant};

/// Changed places of a file that are tried in every combination.
const PLACES: usize = 12;

/// Judges the outcome of a variant; none where the rule does not say what is right.
pub(crate) fn judge(case: &Case, variant: &Variant, said: &Said) -> Option<Verdict> {
    if !said.success {
        return Some(refused(case, variant, said));
    }
    let Expected::Applied(whole) = &case.expected else {
        return match variant.rule {
            // What makes the whole answer one to be refused may be in the part that is missing.
            Rule::Part(_) => None,
            _ => Some(applied(case, said, "expected a refusal, and it was applied")),
        };
    };
    if variant.rule == Rule::Refused {
        return Some(applied(case, said, "a named block is empty, and the rest was applied"));
    }
    let Some(difference) = said.after.difference(whole, &case.before) else {
        return Some(Verdict::fine(Class::Applied));
    };
    let is_allowed = match &variant.rule {
        Rule::Part(untouched) => is_part(&case.before, whole, &said.after, untouched),
        _ => variant.kind == Kind::Crlf && with_lf(&case.before, whole, &said.after) == *whole,
    };
    Some(if is_allowed { Verdict::fine(Class::Applied) } else { Verdict::new(Class::Wrong, difference) })
}

fn refused(case: &Case, variant: &Variant, said: &Said) -> Verdict {
    if let Some(fault) = faulty(case, said) {
        return fault;
    }
    let is_to_be_applied = variant.rule == Rule::Same && matches!(case.expected, Expected::Applied(_));
    Verdict::new(if is_to_be_applied { Class::NotApplied } else { Class::Refused }, shown_errors(said))
}

/// Files that are new in an answer with CRLF may have its line ends; here they get those that the case states.
fn with_lf(before: &Tree, whole: &Tree, found: &Tree) -> Tree {
    let mut found = found.clone();
    for (path, entry) in &mut found.files {
        let is_new = !before.files.contains_key(path) && whole.files.contains_key(path);
        if is_new && let Ok(text) = str::from_utf8(&entry.bytes) {
            entry.bytes = text.replace("\r\n", "\n").into_bytes();
        }
    }
    found
}

/// Whether each file is as it was, as the whole answer leaves it, or between the two.
fn is_part(before: &Tree, whole: &Tree, found: &Tree, untouched: &BTreeSet<String>) -> bool {
    found.changed(before).into_iter().all(|path| {
        let (old, new, now) = (before.files.get(path), whole.files.get(path), found.files.get(path));
        // A file that was renamed has some of the changes of the one that it was.
        let mut olds: Vec<_> = old.into_iter().collect();
        if old.is_none() {
            olds.extend(before.files.iter().filter(|(old, _)| !whole.files.contains_key(*old)).map(|(_, entry)| entry));
        }
        // A diff that ends below its line `new file mode` is one of an empty file.
        let is_empty = old.is_none() && new.is_some() && now.is_some_and(|now| now.bytes.is_empty());
        !untouched.contains(path) && (now == new || is_empty || olds.into_iter().any(|old| is_between(old, new, now)))
    })
}

/// Whether a file has some of the changes between two versions and nothing else.
fn is_between(old: &Entry, new: Option<&Entry>, now: Option<&Entry>) -> bool {
    let (Some(new), Some(now)) = (new, now) else { return false };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines);
    let places = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).count();
    if places > PLACES || ![old.mode, new.mode].contains(&now.mode) {
        return false;
    }
    (0..1_u32 << places).any(|chosen| {
        let mut text: Vec<u8> = Vec::new();
        let mut place = 0;
        for op in &ops {
            let is_equal = matches!(op, DiffOp::Equal { .. });
            let takes_new = !is_equal && chosen >> place & 1 == 1;
            place += u32::from(!is_equal);
            let taken = if takes_new { new_lines.get(op.new_range()) } else { old_lines.get(op.old_range()) };
            text.extend(taken.unwrap_or_default().iter().copied().flatten());
        }
        text == now.bytes
    })
}

fn lines(entry: &Entry) -> Vec<&[u8]> {
    entry.bytes.split_inclusive(|byte| *byte == b'\n').collect()
}
