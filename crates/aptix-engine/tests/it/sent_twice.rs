//! Rule 3.7 on random documents and files: whatever is sent twice takes effect once.

use aptix_model::documents::Dialect;
use proptest::prelude::*;

use crate::already::{blocks, codex, diff, search, sent, steps, swap_of};

/// Lines of few kinds, so that everything occurs at several places.
fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => Just("a\n"), 4 => Just("b\n"), 2 => Just("x\n"), 1 => Just("  a\n"), 1 => Just("  b\n"), 1 => Just("\n"),
        1 => Just("ab\n"), 1 => Just("a \n"),
    ];
    proptest::collection::vec(line, 0..4).prop_map(|lines| lines.concat())
}

/// A document of one or two changes, sometimes equal ones, in one of the dialects that search.
fn document() -> impl Strategy<Value = (Dialect, String)> {
    let change = || (lines(), lines(), 0..3_usize);
    let changes = prop_oneof![
        3 => proptest::collection::vec(change(), 1..3),
        1 => change().prop_map(|change| vec![change.clone(), change]),
    ];
    // As models send them: with the terminator of the last line, or without.
    (changes, 0..6_usize, any::<bool>()).prop_map(|(mut changes, dialect, is_cut)| {
        if is_cut && dialect != 3 {
            for text in changes.iter_mut().flat_map(|(old, new, _)| [old, new]) {
                text.truncate(text.trim_end_matches('\n').len());
            }
        }
        in_dialect(&changes, dialect)
    })
}

fn in_dialect(changes: &[(String, String, usize)], dialect: usize) -> (Dialect, String) {
    let signed = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let ended = |text: &str| if text.is_empty() || text.ends_with('\n') { text.into() } else { format!("{text}\n") };
    match dialect {
        0 => {
            let patches = changes.iter().map(|(old, new, kind)| match (kind, old.as_str()) {
                (2, _) => format!("{{\"operation\":\"append_eof\",\"newText\":{new:?}}}"),
                (_, "") => format!("{{\"operation\":\"prepend_bof\",\"newText\":{new:?}}}"),
                _ => swap_of(old, new),
            });
            (Dialect::SearchPatch, search(&patches.collect::<Vec<_>>().join(",")))
        }
        1 => {
            let limit = |kind: &usize| if *kind == 0 { "all" } else { "once" };
            let list: Vec<_> = changes.iter().map(|(old, new, kind)| (&**old, &**new, limit(kind))).collect();
            (Dialect::StructuredPatch, steps(&list))
        }
        2 => {
            let list: Vec<_> = changes.iter().map(|(old, new, _)| (ended(old), ended(new))).collect();
            let list: Vec<_> = list.iter().map(|(old, new)| (&**old, &**new)).collect();
            (Dialect::SearchReplace, blocks(&list))
        }
        3 => {
            let hunks = changes.iter().enumerate().map(|(index, (old, new, kind))| {
                let (above, at) = (if *kind == 0 { "" } else { "b\n" }, 1 + 2 * index + kind);
                let (gone, came) = (format!("{above}{old}").lines().count(), format!("{above}{new}").lines().count());
                let lines = format!("{}{}{}", signed(' ', above), signed('-', old), signed('+', new));
                format!("@@ -{at},{gone} +{at},{came} @@\n{lines}")
            });
            (Dialect::GitPatch, diff(&hunks.collect::<String>()))
        }
        4 => {
            let (old, new, kind) = &changes[0];
            let fields = match kind {
                2 => format!("\"insert\",\"insert_line\":{},\"insert_text\":{new:?}", old.lines().count()),
                _ => format!("\"str_replace\",\"old_str\":{old:?},\"new_str\":{new:?}"),
            };
            (Dialect::StrReplace, format!("{{\"command\":{fields},\"path\":\"f\"}}"))
        }
        _ => {
            let chunks = changes.iter().map(|(old, new, kind)| match kind {
                0 => format!("@@\n{}{}", signed('-', old), signed('+', new)),
                1 => format!("@@ b\n{}{}", signed('-', old), signed('+', new)),
                _ => format!("@@\n{}{}{}", signed(' ', old), signed('+', new), signed('-', new)),
            });
            (Dialect::CodexPatch, codex(&chunks.collect::<String>()))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a document says: sent twice it does what it does once, or is refused the second time. Two texts that
    /// change places change back.
    #[test]
    fn what_is_sent_twice_is_made_once(
        (dialect, document) in document(),
        file in (lines(), lines(), lines()),
        is_open in any::<bool>(),
        form in 0..4_usize,
    ) {
        let before = [file.0, file.1, file.2].concat();
        let before = if is_open { before.trim_end_matches('\n') } else { &before };
        let before = match form {
            0 => before.replace('\n', "\r\n"),
            1 => format!("\u{feff}{before}"),
            2 => before.replace("a\n", "  a\n").replace("b\n", "  b\n"),
            _ => before.to_owned(),
        };
        let Ok((after, _)) = sent(dialect, &document, Some(&before)) else { return Ok(()) };
        if let Ok((again, _)) = sent(dialect, &document, Some(&after)) {
            prop_assert!(again == after || again == before, "{:?}, {:?}, {:?}: {}", before, after, again, document);
        }
    }
}
