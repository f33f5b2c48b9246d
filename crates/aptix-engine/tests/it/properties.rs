//! What holds for every file and every patch: the engine against a naive model, against itself, against git.

use std::ops::Range;

use aptix_engine::digest::sha256;
use aptix_engine::text::edit::TextEdit;
use aptix_model::batch::Change;
use aptix_model::limits::Limits;
use proptest::prelude::*;

use crate::boundary::{
    Applied, apply, apply_all, batch, code, delete, insert, line_patch, line_patch_of, overwrite, replace, shown,
};
use crate::diff::git_apply;

/// A file as a list of lines, the last one perhaps unterminated.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    has_mark: bool,
    lines: Vec<(Vec<u8>, &'static str)>,
    is_unterminated: bool,
}

impl Naive {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = if self.has_mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        for (text, terminator) in &self.lines {
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(terminator.as_bytes());
        }
        if let Some((_, terminator)) = self.lines.last().filter(|_| self.is_unterminated) {
            bytes.truncate(bytes.len() - terminator.len());
        }
        bytes
    }
}

/// What happens at one place of a file: lines come, then so many lines go for others.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    skip: usize,
    insert: Vec<&'static str>,
    remove: usize,
    new: Vec<&'static str>,
}

/// The changes made of the steps, and the file the naive model makes of them.
pub(crate) fn patch(file: &Naive, steps: &[Step]) -> (Vec<Change>, Naive) {
    // Text beyond ASCII does not come into a file that is not UTF-8.
    let mut steps = steps.to_vec();
    if std::str::from_utf8(&file.bytes()).is_err() {
        let texts = steps.iter_mut().flat_map(|step| step.insert.iter_mut().chain(&mut step.new));
        texts.filter(|text| !text.is_ascii()).for_each(|text| *text = "u");
    }
    let mut changes = Vec::new();
    let mut after = Naive { lines: Vec::new(), ..file.clone() };
    let mut at = 0;
    let take = |after: &mut Naive, at: &mut usize, count: usize| {
        let end = (*at + count).min(file.lines.len());
        after.lines.extend_from_slice(&file.lines[*at..end]);
        *at = end;
    };
    for step in steps {
        take(&mut after, &mut at, step.skip);
        if !step.insert.is_empty() {
            let terminator = file.lines.get(at.saturating_sub(1)).map_or("\n", |(_, terminator)| *terminator);
            changes.push(insert(i64::try_from(at).unwrap(), &step.insert));
            after.lines.extend(step.insert.iter().map(|text| (text.as_bytes().to_vec(), terminator)));
        }
        // Lines that are no text can only be kept.
        let texts = file.lines[at..].iter().map_while(|(text, _)| std::str::from_utf8(text).ok());
        let old: Vec<&str> = texts.take(step.remove).collect();
        if !old.is_empty() {
            let (start, end) = (i64::try_from(at + 1).unwrap(), i64::try_from(at + old.len()).unwrap());
            let terminator = |index: usize| file.lines[at + index.min(old.len() - 1)].1;
            after.lines.extend(step.new.iter().enumerate().map(|(i, text)| (text.as_bytes().to_vec(), terminator(i))));
            changes.push(match step.new.as_slice() {
                [] => delete(start, end, &old),
                new => replace(start, end, &old, new),
            });
            at += old.len();
        }
    }
    take(&mut after, &mut at, usize::MAX / 2);
    (changes, after)
}

/// Files with every kind of line, mark and end.
pub(crate) fn file() -> impl Strategy<Value = Naive> {
    let long = "long ".repeat(150);
    let texts =
        ["", "a", "b", "ab", " a", "\ra", "\u{e9}", "fn x() {", "}", &long].map(|text| text.as_bytes().to_vec());
    let text = prop_oneof![9 => proptest::sample::select(texts.to_vec()), 1 => Just(b"\xff\xe9".to_vec())];
    let line = (text, prop_oneof![2 => Just("\n"), 1 => Just("\r\n")]);
    (any::<bool>(), proptest::collection::vec(line, 0..24), any::<bool>()).prop_map(|(has_mark, mut lines, open)| {
        let is_unterminated = open && lines.last().is_some_and(|(text, _)| !text.is_empty());
        if is_unterminated {
            // What the last line would end with is what the line above it ends with.
            let above = lines.iter().rev().nth(1).map_or("\n", |(_, terminator)| *terminator);
            lines.last_mut().unwrap().1 = above;
        }
        Naive { has_mark, lines, is_unterminated }
    })
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lines = |least: usize| {
        let text = proptest::sample::select(vec!["", "a", "x", "new line", "}", "\u{fc}"]);
        proptest::collection::vec(text, least..4)
    };
    let insert = prop_oneof![Just(Vec::new()), lines(1)];
    let step = (0..6_usize, insert, 0..4_usize, lines(0)).prop_map(|(skip, insert, remove, new)| Step {
        skip,
        insert,
        remove,
        new,
    });
    // Whole steps that touch are one change listed as two, which is fine.
    proptest::collection::vec(step, 1..6)
}

fn applied(before: &[u8], changes: &[Change]) -> Result<Applied, TestCaseError> {
    apply(line_patch(before, changes), Some(before)).map_err(|failure| TestCaseError::fail(failure.to_string()))
}

/// An edit of a text of `length` bytes.
fn edit(cuts: &[(usize, usize, String)], length: usize) -> TextEdit {
    let mut at = 0;
    let cuts: Vec<(Range<usize>, &str)> = cuts
        .iter()
        .map(|(skip, remove, text)| {
            let start = (at + skip).min(length);
            at = (start + remove).min(length);
            (start..at, text.as_str())
        })
        .collect();
    TextEdit::new(cuts).unwrap()
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[ab \r]{0,3}", 0..4)
}

fn cuts() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    proptest::collection::vec((0..5_usize, 0..4_usize, "[ab]{0,3}"), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_global_rejects: 65_536, failure_persistence: None, ..ProptestConfig::default() })]

    /// TUL-002-5.1.7, TUL-002-6.3, TUL-002-8.6.6: lines outside the changes keep every byte, and the others are the naive model's, every time.
    #[test]
    fn a_naive_model_agrees(file in file(), steps in steps()) {
        let (changes, after) = patch(&file, &steps);
        prop_assume!(!changes.is_empty());
        let before = file.bytes();
        let result = applied(&before, &changes)?;
        prop_assert_eq!(shown(&result.content), shown(&after.bytes()));
        let again = applied(&before, &changes)?;
        prop_assert_eq!((&again.content, &again.diff, &again.report), (&result.content, &result.diff, &result.report));
        prop_assert_eq!(result.report.status.word() == "unchanged", result.content == before);
        prop_assert_eq!(result.diff.is_empty(), result.content == before);
        let hides_blank = after.is_unterminated && after.lines.last().is_some_and(|(text, _)| text.is_empty());
        let warnings: Vec<_> = result.report.warnings.iter().map(|warning| warning.code.as_str()).collect();
        prop_assert_eq!(warnings, if hides_blank { vec!["FINAL_BLANK_LINE"] } else { vec![] });
        for (change, place) in changes.iter().zip(&result.report.changes) {
            use aptix_model::batch::Operation::{Delete, Insert, Replace};
            let new = match &change.operation {
                Insert { new_lines, .. } | Replace { new_lines, .. } => new_lines.as_slice(),
                Delete { .. } => &[],
            };
            // A last blank line without end does not show, so a change that left it says one line less.
            let shown = new.len() - usize::from(hides_blank && place.end_line < place.start_line + new.len() as u32 - 1);
            let there = after.lines[place.start_line as usize - 1..place.end_line as usize].iter();
            let there = there.map(|(text, _)| text.as_slice());
            prop_assert!(there.eq(new[..shown].iter().map(String::as_bytes)));
            prop_assert!(place.end_line as usize <= result.content.split_inclusive(|byte| *byte == b'\n').count());
        }
    }

    /// A patch sent again after it was applied is recognised, where every line ends alike.
    #[test]
    fn a_second_application_is_recognised(mut file in file(), steps in steps(), ending in "\n|\r\n") {
        let ending = if ending == "\n" { "\n" } else { "\r\n" };
        file.lines.iter_mut().for_each(|(_, terminator)| *terminator = ending);
        let (changes, after) = patch(&file, &steps);
        let before = file.bytes();
        prop_assume!(!changes.is_empty() && after.bytes() != before);
        let again = apply(line_patch(&before, &changes), Some(&applied(&before, &changes)?.content));
        prop_assert_eq!(again.map_err(|failure| code(&failure)).err(), Some("ALREADY_APPLIED".to_owned()));
    }

    /// Whatever a batch says and a file holds, there is an answer.
    #[test]
    fn nothing_panics(
        before in proptest::collection::vec(proptest::sample::select(b"aab\n\n\r \xff\xef\xbb\xbf".to_vec()), 0..40),
        changes in proptest::collection::vec((0..3_u8, -1..9_i64, -1..9_i64, texts(), texts()), 0..5),
    ) {
        let changes: Vec<_> = changes
            .iter()
            .map(|(kind, start, end, expected, new)| {
                let expected: Vec<_> = expected.iter().map(String::as_str).collect();
                let new: Vec<_> = new.iter().map(String::as_str).collect();
                match kind {
                    0 => insert(*start, &new),
                    1 => replace(*start, *end, &expected, &new),
                    _ => delete(*start, *end, &expected),
                }
            })
            .collect();
        for patch in [line_patch(&before, &changes), line_patch(b"a\n", &changes)] {
            match apply_all(&batch(vec![patch]), &[Some(&before)], &Limits::DEFAULT) {
                Ok(applied) => prop_assert_eq!(applied[0].diff.is_empty(), applied[0].content == before),
                Err(failures) => prop_assert!(failures.iter().all(|failure| !failure.message.is_empty())),
            }
        }
    }

    /// Two edits folded into one do what they do one after the other; an inverse undoes.
    #[test]
    fn edits_compose_and_invert(base in "[abc]{0,16}", first in cuts(), second in cuts()) {
        let base = base.as_bytes();
        let first = edit(&first, base.len());
        let between = first.apply(base);
        let second = edit(&second, between.len());
        let after = second.apply(&between);
        let both = first.then(&second);
        prop_assert_eq!(shown(&both.apply(base)), shown(&after));
        prop_assert_eq!(shown(&first.invert(base).apply(&between)), shown(base));
        prop_assert_eq!(both.is_identity(base), after == base);
        let listed: Vec<_> = both.replacements().collect();
        prop_assert_eq!(TextEdit::new(listed).unwrap(), both.clone());
        prop_assert_eq!(shown(&both.invert(base).apply(&after)), shown(base));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// `git apply` makes the same bytes of a plan's diff.
    #[test]
    fn git_agrees_with_the_diff(cases in proptest::collection::vec((file(), steps(), any::<bool>()), 12)) {
        let mut files = Vec::new();
        let mut diffs = Vec::new();
        for (index, (file, steps, is_whole)) in cases.iter().enumerate() {
            let (changes, after) = patch(file, steps);
            let before = file.bytes();
            let name = format!("{index}.txt");
            let patch = if *is_whole {
                // Content is text; what is no UTF-8 is dropped.
                overwrite(&name, &String::from_utf8_lossy(&after.bytes()))
            } else if changes.is_empty() {
                continue;
            } else {
                line_patch_of(&format!("repo/{name}"), &sha256(&before).to_string(), &changes)
            };
            let result = apply(patch, Some(&before)).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
            if !result.diff.is_empty() {
                diffs.extend(result.diff);
                files.push((name, before, result.content));
            }
        }
        let given: Vec<_> = files.iter().map(|(name, before, _)| (name.as_str(), Some(before.as_slice()))).collect();
        prop_assume!(!given.is_empty());
        for ((name, _, expected), found) in files.iter().zip(git_apply(&given, &diffs)) {
            prop_assert_eq!(shown(&found), shown(expected), "{}", name);
        }
    }
}
