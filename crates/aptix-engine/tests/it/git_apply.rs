//! Diffs that git makes of generated files, applied by git and by the engine.

use aptix_engine::planning::settings::Settings;
use proptest::prelude::*;

use crate::boundary::shown;
use crate::tree::{Tree, apply, git_apply, git_diff, words};

/// Lines of a file: few different ones, so that many places look alike.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![4 => "[a-d]", 2 => Just(String::new()), 1 => Just("-- a".to_owned()), 1 => "[a-z]{8}"];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n")];
    proptest::collection::vec((text, end).prop_map(|(text, end)| text + end), 0..24)
}

/// An author's changes of the lines of a file: at some line some are removed, and others added.
fn steps() -> impl Strategy<Value = Vec<(usize, usize, Vec<String>)>> {
    let new = proptest::collection::vec("[a-e]\n", 0..3);
    proptest::collection::vec((0..24_usize, 0..3_usize, new), 0..4)
}

fn changed(lines: &[String], steps: &[(usize, usize, Vec<String>)]) -> Vec<String> {
    let mut lines = lines.to_vec();
    for (at, remove, new) in steps {
        let start = (*at).min(lines.len());
        let end = (start + remove).min(lines.len());
        lines.splice(start..end, new.iter().cloned());
    }
    lines
}

/// The bytes of a file, whose last line may lack its terminator.
fn bytes(lines: &[String], is_open: bool) -> Vec<u8> {
    let text = lines.concat();
    let open = text.trim_end_matches(['\n', '\r']);
    if is_open && !open.is_empty() { open.as_bytes().to_vec() } else { text.into_bytes() }
}

fn of(content: Vec<u8>) -> Tree {
    Tree::from([("f".to_owned(), (content, false))])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where both accept a diff for a file that was changed since, both make the same of it.
    #[test]
    fn git_agrees_wherever_both_accept(
        (old, edit, since) in (lines(), steps(), steps()),
        (old_is_open, new_is_open) in any::<(bool, bool)>(),
        context in 0..4_usize,
    ) {
        let (before, after) = (bytes(&old, old_is_open), bytes(&changed(&old, &edit), new_is_open));
        prop_assume!(before != after);
        let diff = git_diff(&of(before.clone()), &of(after.clone()), &[&format!("-U{context}")]);
        let exact = apply(&of(before.clone()), &diff, &Settings { recovers: false, ..Settings::DEFAULT });
        match exact {
            Ok(exact) => {
                prop_assert_eq!(shown(&exact.tree["f"].0), shown(&after), "{}", String::from_utf8_lossy(&diff));
                prop_assert!(exact.warnings().is_empty());
                match apply(&of(before), &exact.diff, &Settings::DEFAULT) {
                    Ok(again) => prop_assert_eq!(again.tree, exact.tree, "{}", String::from_utf8_lossy(&exact.diff)),
                    // Without the id of the file, lines that repeat may be those of an earlier application (rule 3.7).
                    Err(failures) => prop_assert!(
                        failures.iter().all(|failure| ["TEXT_NOT_UNIQUE", "ALREADY_APPLIED"].contains(&failure.reason.code())),
                        "{failures:?}"
                    ),
                }
            }
            Err(failures) => prop_assert!(context == 0, "{}: {failures:?}", String::from_utf8_lossy(&diff)),
        }
        let now = of(bytes(&changed(&old, &since), old_is_open));
        if let Ok(ours) = apply(&now, &diff, &Settings::DEFAULT)
            && let Some(theirs) = git_apply(&now, &diff, &[])
        {
            let found = (shown(&ours.tree["f"].0), shown(&theirs["f"].0));
            prop_assert_eq!(&found.0, &found.1, "{} of {}", String::from_utf8_lossy(&diff), shown(&now["f"].0));
        }
    }
}

/// Corruptions of a diff: some of its lines are lost, doubled, moved, or changed.
fn mistakes() -> impl Strategy<Value = Vec<(usize, usize)>> {
    proptest::collection::vec((0..10_usize, 0..1000_usize), 0..4)
}

fn mistaken(diff: &[u8], mistakes: &[(usize, usize)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = diff.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for (kind, at) in mistakes {
        // The names above the first hunk are mostly left alone.
        let first = if at % 50 == 0 { 0 } else { 4 };
        let Some(at) = at.checked_rem(lines.len().saturating_sub(first)).map(|at| at + first) else { continue };
        match kind {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.swap(at, at.saturating_sub(1)),
            3 => lines[at] = lines[at].strip_prefix(b" ").unwrap_or(&lines[at]).to_vec(),
            4 => lines[at] = [lines[at].trim_ascii_end(), b"\r\n"].concat(),
            5 => lines.insert(at, b"\\ No newline at end of file\n".to_vec()),
            6 => lines[at].insert(0, [b' ', b'+', b'-', b'@'][at % 4]),
            7 => lines.iter_mut().for_each(|line| *line = [line.trim_ascii_end(), b"\r\n"].concat()),
            _ => {
                // Another number in a header.
                let headers = lines.iter_mut().filter(|line| line.starts_with(b"@@"));
                for digit in
                    headers.flat_map(|line| line.iter_mut()).filter(|byte| byte.is_ascii_digit()).take(1 + at % 5)
                {
                    *digit = b'0' + (*digit - b'0' + 1) % 10;
                }
            }
        }
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever became of a diff, there is an answer, and where git accepts it too, the same one. Of a hunk with more
    /// lines than its header counts, git drops the others in silence, which is not followed.
    #[test]
    fn git_agrees_about_diffs_with_mistakes(
        (old, edit, since) in (lines(), steps(), steps()),
        is_open in any::<bool>(),
        context in 0..4_usize,
        mistakes in mistakes(),
    ) {
        let (before, after) = (bytes(&old, is_open), bytes(&changed(&old, &edit), is_open));
        prop_assume!(before != after);
        let diff = mistaken(&git_diff(&of(before), &of(after), &[&format!("-U{context}")]), &mistakes);
        let now = of(bytes(&changed(&old, &since), is_open));
        if let Ok(ours) = apply(&now, &diff, &Settings::DEFAULT)
            && !ours.warnings().contains(&"HUNK_COUNTS")
            && let Some(theirs) = git_apply(&now, &diff, &[])
        {
            prop_assert_eq!(words(&ours.tree), words(&theirs), "{} of {:?}", shown(&diff), words(&now));
        }
    }
}

/// A commit's worth of changes: files of every fate, with git's own diff of them.
#[test]
fn a_commit_is_made_again_from_its_diff() {
    let text = |seed: usize| (0..40).map(|line| format!("line {}\n", line * seed)).collect::<String>().into_bytes();
    let other = |seed: usize| String::from_utf8(text(seed)).unwrap().replace("line 20\n", "other\n").into_bytes();
    let old = Tree::from([
        ("stays".to_owned(), (text(1), false)),
        ("changes".to_owned(), (text(5), false)),
        ("goes".to_owned(), (text(2), true)),
        ("moves".to_owned(), (text(3), true)),
        ("moves and changes".to_owned(), (text(4), false)),
        ("d/runs".to_owned(), (text(7), false)),
        ("empty".to_owned(), (Vec::new(), false)),
        ("crlf".to_owned(), (b"a\r\nb\r\nc".to_vec(), false)),
    ]);
    let new = Tree::from([
        ("stays".to_owned(), (text(1), false)),
        ("changes".to_owned(), (other(5), false)),
        ("d/moved".to_owned(), (text(3), true)),
        ("moved and \u{e9}".to_owned(), (other(4), true)),
        ("d/runs".to_owned(), (text(7), true)),
        ("d/e/comes".to_owned(), (b"x\0".repeat(0), false)),
        ("d/e/comes too".to_owned(), (b"x\n\ny".to_vec(), true)),
        ("copied".to_owned(), (other(5), false)),
        ("crlf".to_owned(), (b"a\r\nB\nc\r\n".to_vec(), false)),
    ]);
    for flags in
        [&["-M"][..], &["-M", "-C", "--find-copies-harder"], &["--no-renames"], &["-M", "--full-index"], &["-M", "-U1"]]
    {
        let diff = git_diff(&old, &new, flags);
        let changed = apply(&old, &diff, &Settings { recovers: false, ..Settings::DEFAULT })
            .unwrap_or_else(|failures| panic!("{flags:?}: {failures:?}\n{}", String::from_utf8_lossy(&diff)));
        assert_eq!(words(&changed.tree), words(&new), "{flags:?}");
        assert_eq!(changed.warnings(), [""; 0], "{flags:?}");
        let found = git_apply(&old, &changed.diff, &[]);
        assert_eq!(found.map(|found| words(&found)), Some(words(&new)), "{}", String::from_utf8_lossy(&changed.diff));
        let again = apply(&old, &changed.diff, &Settings::DEFAULT).unwrap();
        assert_eq!(words(&again.tree), words(&new));
    }
}
