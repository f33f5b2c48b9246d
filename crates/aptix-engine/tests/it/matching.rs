//! Old text that differs from the file in white space, as properties: what is found is what a reader would find, and
//! nothing but the change changes.

use aptix_model::batch::{
    FileEdit, FilePatch, Replacement, Replacements, Scope, SearchChange, SearchOperation, SearchPatch, Target,
};
use aptix_model::documents::parse;
use aptix_model::limits::Limits;
use proptest::prelude::*;

use crate::boundary::{apply, apply_all, batch, code, shown};
use crate::diff::git_apply;
use crate::editor_commands::{self, after, commands_of};

fn search(changes: Vec<(&str, &str)>) -> FilePatch {
    let change = |(old, new): (&str, &str)| SearchChange {
        operation: SearchOperation::Replace { old_text: old.to_owned() },
        new_text: Some(new.to_owned()),
        to_clipboard: None,
        from_clipboard: None,
        reindent: None,
    };
    patch(FileEdit::SearchPatch(SearchPatch { changes: changes.into_iter().map(change).collect() }))
}

fn steps(steps: Vec<(&str, &str, Scope)>) -> FilePatch {
    let step = |(find, replace, scope): (&str, &str, Scope)| Replacement {
        find: find.to_owned(),
        replace: replace.to_owned(),
        scope,
    };
    patch(FileEdit::Replacements(Replacements { steps: steps.into_iter().map(step).collect() }))
}

fn patch(edit: FileEdit) -> FilePatch {
    FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit }
}

/// A line: how deep, what it says, and what blanks follow.
type Line = (usize, &'static str, &'static str);

fn lines(words: &'static [&'static str]) -> impl Strategy<Value = Vec<Line>> {
    let line =
        (0..4_usize, proptest::sample::select(words), prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t")]);
    proptest::collection::vec(line, 1..12)
}

fn text(lines: &[Line], indent: &str, deeper: usize, terminator: &str, keeps_ends: bool) -> String {
    lines
        .iter()
        .map(|(depth, word, end)| match *word {
            "" => terminator.to_owned(),
            word => format!("{}{word}{}{terminator}", indent.repeat(depth + deeper), if keeps_ends { end } else { "" }),
        })
        .collect()
}

const WORDS: &[&str] = &["a", "b", "ab", "a b", "x = 1;", "}", "", "\u{e9}"];

/// Removing a last line without terminator also removes the terminator above: another change that removes it overlaps.
#[test]
fn changes_that_meet_in_what_they_take_beside_their_text_are_refused() {
    for (before, old, other) in [("\nab", "ab\n", "\n"), ("b\nac", "ac\n", "b\n"), ("x\nab", "ab\n", "x\n")] {
        let patch = batch(vec![search(vec![(old, ""), (other, "z")])]);
        let failures = apply_all(&patch, &[Some(before.as_bytes())], &Limits::DEFAULT).unwrap_err();
        assert_eq!(code(&failures[0]), "MATCH_OVERLAP", "{before:?}: {}", failures[0]);
    }
}

/// Rule 3.2 and 3.4: a terminator is no text of a line, so that the unterminated end of a file is a place like those above.
#[test]
fn the_unterminated_end_is_a_place_beside_those_that_have_a_terminator() {
    let several = [
        ("a {\n}\nb {\n}", search(vec![("}\n", "};\n")]), "at lines 2, 4"),
        ("a {\r\n}\r\nb {\r\n}", search(vec![("}\r\n", "};\r\n")]), "at lines 2, 4"),
        ("x\ny\nz\nx\ny", search(vec![("x\ny\n", "w\n")]), "at lines 1, 4"),
        ("fox\nbox", search(vec![("x\n", "w\n")]), "at lines 1, 2"),
        ("a {\n}\nb {\n}", steps(vec![("}\n", "};\n", Scope::Block { start_line: None })]), "at lines 2, 4"),
    ];
    for (before, patch, lines) in several {
        let failure = apply(patch, Some(before.as_bytes())).unwrap_err();
        assert_eq!(code(&failure), "TEXT_NOT_UNIQUE", "{before:?}: {failure}");
        assert!(failure.to_string().contains(lines), "{before:?}: {failure}");
    }
    let made = [
        ("a {\n}\nb {\n}", steps(vec![("}\n", "};\n", Scope::All)]), "a {\n};\nb {\n};"),
        ("a {\n}\nb {\n}", search(vec![("}\n", "};\n"), ("}\n", "};\n")]), "a {\n};\nb {\n};"),
        ("a {\n}\nb {\n}", search(vec![("b {\n}\n", "b {\n};\n")]), "a {\n}\nb {\n};"),
        // Only the end has it, or the end has something else.
        ("a\nb", search(vec![("\n", "\n\n")]), "a\n\nb"),
        ("a\n}\nb", search(vec![("}\n", "};\n")]), "a\n};\nb"),
        ("a\n}\nb }\n", search(vec![("b }\n", "}\n")]), "a\n}\n}\n"),
    ];
    for (before, patch, after) in made {
        let applied = apply(patch, Some(before.as_bytes())).unwrap_or_else(|failure| panic!("{before:?}: {failure}"));
        assert_eq!(shown(&applied.content), shown(after.as_bytes()), "{before:?}");
    }
    let first = apply(steps(vec![("}\n", "};\n", Scope::First)]), Some(b"a {\n}\nb {\n}")).unwrap();
    assert_eq!(
        first.report.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(),
        ["SEVERAL_OCCURRENCES"]
    );
}

/// Whole lines of documents: the unterminated end is a line like the others.
#[test]
fn documents_of_whole_lines_meet_the_unterminated_end_as_well() {
    for document in [
        "*** Begin Patch\n*** Update File: a.txt\n@@\n x\n-}\n+};\n*** End Patch\n",
        "a.txt\n<<<<<<< SEARCH\nx\n}\n=======\nx\n};\n>>>>>>> REPLACE\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -4,2 +4,3 @@\n x\n }\n+z\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -4,2 +4,2 @@\n x\n-}\n+};\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -7,2 +7,2 @@\n x\n-}\n+};\n",
        "```diff\n--- a/a.txt\n+++ b/a.txt\n@@ @@\n x\n-}\n+};\n```\n",
    ] {
        let batch = parse(document.as_bytes(), None).unwrap().batch;
        let failures = apply_all(&batch, &[Some(b"x\n}\ny\nx\n}")], &Limits::DEFAULT).unwrap_err();
        assert_eq!(code(&failures[0]), "TEXT_NOT_UNIQUE", "{document}: {}", failures[0]);
        assert!(failures[0].to_string().contains("1, 4"), "{document}: {}", failures[0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_global_rejects: 65_536, failure_persistence: None, ..ProptestConfig::default() })]

    /// REQ-PATCH-001.5, REQ-PATCH-002.2: text that occurs once is replaced as by a naive model, and other text is
    /// refused; all changes are of the file as it was.
    #[test]
    fn a_naive_model_agrees(before in "[ab\n]{1,12}", old in "[ab\n]{1,3}", other in "[ab\n]{1,3}", new in "[xy]{0,2}") {
        let places = |old: &str| {
            let mut places: Vec<_> = (0..before.len()).filter(|at| before[*at..].starts_with(old)).collect();
            // Beside places that have a last terminator, the end of the file that lacks it is one.
            let open = old.strip_suffix('\n').filter(|open| !open.is_empty() && !before.ends_with('\n'));
            if let (false, Some(open)) = (places.is_empty(), open.filter(|open| before.ends_with(*open))) {
                places.push(before.len() - open.len());
            }
            places
        };
        let patch = batch(vec![search(vec![(&old, &new), (&other, "z")])]);
        let result = apply_all(&patch, &[Some(before.as_bytes())], &Limits::DEFAULT);
        match (places(&old).as_slice(), places(&other).as_slice()) {
            ([first], [second]) if first + old.len() <= *second || second + other.len() <= *first => {
                let mut cuts = [(*first, old.len(), new.as_str()), (*second, other.len(), "z")];
                cuts.sort_unstable();
                let mut after = before.clone();
                for (at, length, text) in cuts.into_iter().rev() {
                    after.replace_range(at..at + length, text);
                }
                let applied = match result {
                    Ok(applied) => applied,
                    // A text is there again once it was replaced, perhaps with other blank lines at its edges.
                    Err(failures) => {
                        let is_again = [&old, &other].iter().any(|text| after.contains(text.trim_matches('\n')));
                        let is_known = failures[0].message.contains("if it were sent twice");
                        prop_assert!(is_again && is_known, "{}", failures[0]);
                        return Ok(());
                    }
                };
                prop_assert_eq!(shown(&applied[0].content), shown(after.as_bytes()));
                prop_assert!(applied[0].report.changes.iter().all(|change| change.tier.word() == "exact"));
            }
            ([_], [_]) => prop_assert_eq!(code(&result.unwrap_err()[0]), "MATCH_OVERLAP"),
            // What is not there byte by byte can be there with a terminator less, at the end of the file.
            ([] | [_], [] | [_]) => {}
            _ => prop_assert!(result.is_err()),
        }
    }

    /// REQ-PATCH-005.1, REQ-PATCH-005.2, REQ-PATCH-005.4: lines of a file that are given with other white space are found
    /// where they are if they occur only once, and new lines are indented as they are.
    #[test]
    fn recovered_lines_are_those_of_the_file(
        above in lines(WORDS),
        inside in lines(&["one", "two", "three", "", "four five"]),
        below in lines(WORDS),
        (file_deeper, old_deeper) in (0..3_usize, 0..3_usize),
        indent in prop_oneof![Just("  "), Just("\t")],
        (is_crlf, keeps_ends) in any::<(bool, bool)>(),
        is_block in any::<bool>(),
    ) {
        prop_assume!(inside.first().is_some_and(|line| !line.1.is_empty()) && inside.last().is_some_and(|line| !line.1.is_empty()));
        let end = if is_crlf { "\r\n" } else { "\n" };
        let part = |lines, deeper| text(lines, indent, deeper, end, true);
        let before = [part(&above, 0), part(&inside, file_deeper), part(&below, 0)].concat();
        let old = text(&inside, indent, old_deeper, "\n", keeps_ends);
        // The last line changes, and one comes below it.
        let (depth, _, _) = inside[inside.len() - 1];
        let kept = &inside[..inside.len() - 1];
        let new_lines = [(depth, "new", ""), (depth + 1, "newer", "")];
        let new = [text(kept, indent, old_deeper, "\n", keeps_ends), text(&new_lines, indent, old_deeper, "\n", true)].concat();
        let after = [part(&above, 0), part(kept, file_deeper), part(&new_lines, file_deeper), part(&below, 0)].concat();
        let patch = if is_block {
            steps(vec![(&old, &new, Scope::Block { start_line: None })])
        } else {
            search(vec![(&old, &new)])
        };
        // One line that occurs there from the middle of a line on is matched literally.
        prop_assume!(is_block || inside.len() > 1);
        let applied = apply(patch, Some(before.as_bytes())).map_err(|failure| TestCaseError::fail(format!("{failure}\n{before:?}\n{old:?}")))?;
        prop_assert_eq!(shown(&applied.content), shown(after.as_bytes()), "{:?} {:?}", old, new);
    }

    /// Whatever is recovered, nothing but white space was overlooked.
    #[test]
    fn only_white_space_is_overlooked(
        before in "[ab \t\n]{0,16}",
        old in "[ab \t\n]{1,8}",
        is_block in any::<bool>(),
    ) {
        let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let patch = if is_block {
            steps(vec![(&old, "", Scope::Block { start_line: None })])
        } else {
            search(vec![(&old, "")])
        };
        if let Ok(applied) = apply(patch, Some(before.as_bytes())) {
            let after = String::from_utf8(applied.content).unwrap();
            let (before, after, old) = (solid(&before), solid(&after), solid(&old));
            let is_cut = |at: usize| {
                before[at..].starts_with(&old) && [&before[..at], &before[at + old.len()..]].concat() == after
            };
            prop_assert!((0..=before.len() - old.len()).any(is_cut), "{} {} {}", before, old, after);
        }
    }

    /// Equal old and new text changes nothing, in whatever tier it is found.
    #[test]
    fn equal_texts_change_nothing(before in "[ab \t\r\n]{0,16}", old in "[ab \t\n]{1,8}") {
        let block = steps(vec![(&old, &old, Scope::Block { start_line: None })]);
        let all = steps(vec![(&old, &old, Scope::All), (&old, &old, Scope::First)]);
        for patch in [search(vec![(&old, &old)]), block, all] {
            if let Ok(applied) = apply(patch, Some(before.as_bytes())) {
                prop_assert_eq!(shown(&applied.content), shown(before.as_bytes()));
            }
        }
    }

    /// FILE-SPEC-2.3.2.1, FILE-SPEC-2.2.7: steps in the naive model's order, folded to one edit, produce the naive
    /// model's text, and the report places each where it left something.
    #[test]
    fn steps_agree_with_a_naive_model(
        before in "[abc\n]{0,16}",
        list in proptest::collection::vec(("[abc]{1,2}", "[abc\n]{0,3}", any::<bool>()), 1..6),
    ) {
        let mut after = before.clone();
        let fits = list.iter().all(|(find, replace, is_all)| {
            let is_there = after.contains(find.as_str());
            after = if *is_all { after.replace(find.as_str(), replace) } else { after.replacen(find.as_str(), replace, 1) };
            is_there
        });
        // Equal steps count together, which the model does not know.
        prop_assume!((1..list.len()).all(|index| !list[..index].contains(&list[index])));
        let scope = |is_all: bool| if is_all { Scope::All } else { Scope::First };
        let patch = steps(list.iter().map(|(find, replace, is_all)| (find.as_str(), replace.as_str(), scope(*is_all))).collect());
        match apply(patch, Some(before.as_bytes())) {
            Ok(applied) => {
                prop_assert!(fits);
                prop_assert_eq!(shown(&applied.content), shown(after.as_bytes()));
                let count = after.split_inclusive('\n').count() as u32;
                for change in &applied.report.changes {
                    prop_assert!(change.start_line >= 1 && change.end_line + 1 >= change.start_line && change.end_line <= count, "{:?} of {}", change, count);
                }
            }
            Err(failure) if code(&failure) == "TEXT_NOT_FOUND" => prop_assert!(!fits, "{}", failure),
            Err(failure) => {
                // Rule 3.7: the new text is there, or the steps could be made in their own result.
                let mut again = after.clone();
                let repeats = list.iter().all(|(find, replace, is_all)| {
                    let is_there = again.contains(find.as_str());
                    again = if *is_all { again.replace(find.as_str(), replace) } else { again.replacen(find.as_str(), replace, 1) };
                    is_there
                });
                let is_known = |(_, replace, _): &(String, String, bool)| !replace.is_empty() && (before.contains(replace.trim()) || after.contains(replace.trim()));
                prop_assert!(["ALREADY_APPLIED", "TEXT_NOT_UNIQUE"].contains(&code(&failure).as_str()), "{}", failure);
                prop_assert!(repeats || list.iter().any(is_known), "{}", failure);
            }
        }
    }

    /// Whatever a patch says and a file holds, there is an answer.
    #[test]
    fn nothing_panics(
        before in proptest::collection::vec(proptest::sample::select(b"aab\n\n\r\t \xff\xef\xbb\xbf".to_vec()), 0..30),
        texts in proptest::collection::vec(("[ab \t\r\n\u{feff}]{0,6}", "[ab \t\r\n\u{feff}]{0,6}", 0..8_i64), 1..5),
        end in any::<bool>(),
    ) {
        let changes = texts.iter().map(|(old, new, kind)| {
            let operation = match kind {
                0 => SearchOperation::AppendEof,
                1 => SearchOperation::PrependBof,
                _ => SearchOperation::Replace { old_text: old.clone() },
            };
            let to_clipboard = (*kind == 3).then(|| "k".to_owned());
            let from_clipboard = (*kind == 4).then(|| "k".to_owned());
            SearchChange { operation, new_text: Some(new.clone()), to_clipboard, from_clipboard, reindent: None }
        });
        let search = patch(FileEdit::SearchPatch(SearchPatch { changes: changes.collect() }));
        let commands: Vec<_> = texts.iter().map(|(old, new, kind)| match kind {
            0..4 => after(old.len() as i64, new),
            _ => editor_commands::swap(old, new),
        }).collect();
        let list = texts.iter().map(|(old, new, kind)| {
            let scope = match kind {
                0 | 1 => Scope::First,
                2 => Scope::All,
                3 => Scope::Block { start_line: None },
                line => Scope::Block { start_line: Some(*line - 3) },
            };
            (old.as_str(), new.as_str(), scope)
        });
        for patch in [search, commands_of("a.txt", &commands), steps(list.collect())] {
            let file = if end { Some(before.as_slice()) } else { None };
            match apply_all(&batch(vec![patch]), &[file], &Limits::DEFAULT) {
                Ok(applied) => {
                    prop_assert_eq!(applied[0].diff.is_empty(), file == Some(applied[0].content.as_slice()));
                    let mark = b"\xef\xbb\xbf".as_slice();
                    prop_assert!(!before.starts_with(mark) || !end || applied[0].content.starts_with(mark));
                }
                Err(failures) => prop_assert!(failures.iter().all(|failure| failure.hint.is_some())),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// REQ-PATCH-007.2: `git apply` makes the same bytes of a plan's diff, wherever in its lines a change is.
    #[test]
    fn git_agrees_with_the_diff(cases in proptest::collection::vec(("[abc\r\n]{0,24}", "[abc\n]{1,2}", "[xy\n]{0,3}", any::<bool>()), 24)) {
        let mut files = Vec::new();
        let mut diffs = Vec::new();
        for (index, (before, old, new, is_all)) in cases.iter().enumerate() {
            let name = format!("{index}.txt");
            let scope = if *is_all { Scope::All } else { Scope::First };
            let patch = FilePatch { target: Target::Path(name.clone()), ..steps(vec![(old, new, scope)]) };
            if let Ok(applied) = apply(patch, Some(before.as_bytes())) && !applied.diff.is_empty() {
                diffs.extend(applied.diff);
                files.push((name, before.as_bytes(), applied.content));
            }
        }
        let given: Vec<_> = files.iter().map(|(name, before, _)| (name.as_str(), Some(*before))).collect();
        prop_assume!(!given.is_empty());
        for ((name, _, expected), found) in files.iter().zip(git_apply(&given, &diffs)) {
            prop_assert_eq!(shown(&found), shown(expected), "{}", name);
        }
    }
}
