//! Prepare-first edits: at a line number, beside an anchor, between two (WS-MOD).

use std::time::Duration;

use aptix_engine::hunk::{self, Hunk, Member, TTL_MILLIS};
use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::preview::preview;
use aptix_engine::validate::validate;
use aptix_model::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, FileEdit, FilePatch, Occurrence, Target};
use aptix_model::id::{FilePatchId, Uuid};
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::preview::Preview;
use aptix_model::record::UnixMillis;

use crate::boundary::{Applied, apply, batch, code, refused, shown};
use crate::cost::cost;

fn at(text: &str) -> Anchor {
    Anchor { text: text.to_owned(), matching: AnchorMatch::Contains, occurrence: None }
}

fn nth(text: &str, number: u32) -> Anchor {
    Anchor { occurrence: Some(Occurrence::Number(number)), ..at(text) }
}

fn between(start: &str, end: &str, takes_anchors: bool) -> AnchorPlace {
    AnchorPlace::Between { start: at(start), end: at(end), takes_anchors }
}

fn lines(start_line: i64, end_line: Option<i64>) -> AnchorPlace {
    AnchorPlace::Range { start_line, end_line }
}

fn patch(place: AnchorPlace, content: &str) -> FilePatch {
    let edit = FileEdit::AnchorEdit(AnchorEdit { place, content: content.to_owned() });
    FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit }
}

fn done(before: &str, place: AnchorPlace, content: &str) -> Applied {
    apply(patch(place, content), Some(before.as_bytes())).unwrap_or_else(|failure| panic!("{failure}"))
}

fn flags(applied: &Applied) -> Vec<&'static str> {
    applied.report.normalized.iter().map(|flag| flag.word()).collect()
}

/// Each kind of edit, and what it leaves.
#[test]
fn lines_come_and_go_where_the_place_says() {
    let file = "a\nb\nc\nb2\nd\n";
    for (place, content, expected, reported) in [
        (lines(2, Some(3)), "x\n", "a\nx\nb2\nd\n", (2, 2)),
        (lines(2, None), "x\ny\n", "a\nx\ny\n", (2, 3)),
        (lines(2, Some(2)), "", "a\nc\nb2\nd\n", (2, 1)),
        (AnchorPlace::Append, "x\n", "a\nb\nc\nb2\nd\nx\n", (6, 6)),
        (AnchorPlace::After(at("c")), "x\n", "a\nb\nc\nx\nb2\nd\n", (4, 4)),
        (AnchorPlace::Before(at("c")), "x\n", "a\nb\nx\nc\nb2\nd\n", (3, 3)),
        (AnchorPlace::After(nth("b", 2)), "x\n", "a\nb\nc\nb2\nx\nd\n", (5, 5)),
        (
            AnchorPlace::After(Anchor { occurrence: Some(Occurrence::Last), ..at("b") }),
            "x\n",
            "a\nb\nc\nb2\nx\nd\n",
            (5, 5),
        ),
        (AnchorPlace::After(Anchor { matching: AnchorMatch::Equals, ..at("b") }), "x\n", "a\nb\nx\nc\nb2\nd\n", (3, 3)),
        (
            AnchorPlace::Before(Anchor { matching: AnchorMatch::Regex, ..at("^b[0-9]$") }),
            "x\n",
            "a\nb\nc\nx\nb2\nd\n",
            (4, 4),
        ),
        (between("a", "c", false), "x\n", "a\nx\nc\nb2\nd\n", (2, 2)),
        (between("a", "c", true), "x\n", "x\nb2\nd\n", (1, 1)),
        (between("a", "c", false), "", "a\nc\nb2\nd\n", (2, 1)),
        (between("c", "d", false), "x\n", "a\nb\nc\nx\nd\n", (4, 4)),
        (AnchorPlace::Whole { content_format: None }, "x\n", "x\n", (1, 1)),
        (AnchorPlace::Whole { content_format: Some("text".to_owned()) }, "", "", (1, 0)),
    ] {
        let applied = done(file, place.clone(), content);
        assert_eq!(shown(&applied.content), shown(expected.as_bytes()), "{place:?}");
        let change = applied.report.changes[0];
        assert_eq!((change.start_line, change.end_line), reported, "{place:?}");
    }
    assert_eq!(done(file, AnchorPlace::After(nth("b", 2)), "x").report.changes[0].candidates, 2);
}

/// WS-MOD-5.1.1, WS-MOD-5.1.2, WS-MOD-5.1.3, WS-MOD-5.1.4, WS-MOD-5.2.2: every line ends; blank lines stay.
#[test]
fn every_line_gets_a_terminator_and_it_is_said() {
    const FILE: &str = "normalized_file_eof_newline_added";
    const CONTENT: &str = "normalized_content_eof_newline_added";
    for (before, place, content, expected, said) in [
        ("a\nb", AnchorPlace::Append, "x", "a\nb\nx\n", vec![CONTENT, FILE]),
        ("a\nb", AnchorPlace::Append, "x\n", "a\nb\nx\n", vec![FILE]),
        ("a\nb\n", AnchorPlace::Append, "x", "a\nb\nx\n", vec![CONTENT]),
        ("a\nb", AnchorPlace::Before(at("b")), "x\n", "a\nx\nb\n", vec![FILE]),
        ("a\nb", lines(2, Some(2)), "x\n", "a\nx\n", vec![]),
        ("a\nb", lines(1, Some(1)), "x\n", "x\nb\n", vec![FILE]),
        ("a\nb", lines(2, None), "", "a\n", vec![]),
        ("a", AnchorPlace::Whole { content_format: None }, "x", "x\n", vec![CONTENT]),
        ("a\n", AnchorPlace::Append, "\n\nx\n\n", "a\n\n\nx\n\n", vec![]),
        ("", AnchorPlace::Append, "x", "x\n", vec![CONTENT]),
        ("\u{feff}a\r\nb\r\n", AnchorPlace::After(at("a")), "x\n", "\u{feff}a\r\nx\r\nb\r\n", vec![]),
        ("a\r\nb\n", lines(1, Some(2)), "x\ny\nz\n", "x\r\ny\nz\n", vec![]),
        ("a\n", AnchorPlace::Append, "x\r\ny\r\n", "a\nx\ny\n", vec!["line_endings"]),
        ("a\r\nb", AnchorPlace::Append, "x\n", "a\r\nb\r\nx\r\n", vec![FILE]),
    ] {
        let applied = done(before, place.clone(), content);
        assert_eq!(shown(&applied.content), shown(expected.as_bytes()), "{before:?} {place:?}");
        assert_eq!(flags(&applied), said, "{before:?} {place:?}");
    }
    let latin = apply(patch(AnchorPlace::Append, "x\n"), Some(b"caf\xe9\n")).unwrap();
    assert_eq!(latin.content, b"caf\xe9\nx\n");
    let created = apply(patch(AnchorPlace::Append, "x\n"), None).unwrap();
    assert_eq!((created.content.as_slice(), created.report.status.word()), (&b"x\n"[..], "created"));
}

/// WS-MOD-2.1.4: what is not found, or is ambiguous, is named with the candidate lines.
#[test]
fn an_anchor_fits_one_line_or_says_which() {
    let file: &[u8] = b"a\nb\nb\nb\nb\nc\n";
    let failure = apply(patch(AnchorPlace::After(at("b")), "x\n"), Some(file)).unwrap_err();
    assert_eq!(code(&failure), "TEXT_NOT_UNIQUE.ANCHOR");
    assert_eq!(failure.message, "4 lines contain \"b\": lines 2, 3, 4, 5");
    let shown: Vec<_> = failure.nearest.iter().map(|excerpt| (excerpt.start_line, excerpt.text.as_str())).collect();
    assert_eq!(shown, [(2, "b"), (3, "b"), (4, "b")]);
    assert!(failure.current_sha256.is_some() && failure.hint.is_some());

    let equals = |text: &str| Anchor { matching: AnchorMatch::Equals, ..at(text) };
    let regex = |text: &str| Anchor { matching: AnchorMatch::Regex, ..at(text) };
    for (place, content, expected) in [
        (AnchorPlace::After(at("z")), "x\n", "TEXT_NOT_FOUND.ANCHOR"),
        (AnchorPlace::After(equals("A")), "x\n", "TEXT_NOT_FOUND.ANCHOR"),
        (AnchorPlace::After(nth("b", 5)), "x\n", "TEXT_NOT_FOUND.OCCURRENCE"),
        (AnchorPlace::After(nth("b", 0)), "x\n", "INVALID_REQUEST.OCCURRENCE"),
        (AnchorPlace::After(at(" ")), "x\n", "INVALID_REQUEST.EMPTY"),
        (AnchorPlace::After(at("a\nb")), "x\n", "INVALID_REQUEST.EMBEDDED_NEWLINE"),
        (AnchorPlace::After(regex("(")), "x\n", "INVALID_REQUEST.REGEX"),
        (AnchorPlace::After(regex("(a{1000}){1000}")), "x\n", "MATCH_BUDGET_EXCEEDED"),
        (AnchorPlace::After(at("a")), "", "INVALID_REQUEST.EMPTY_NEW_LINES"),
        (between("c", "a", false), "x\n", "TEXT_NOT_FOUND.ANCHOR"),
        (between("b", "c", false), "x\n", "TEXT_NOT_UNIQUE.ANCHOR"),
        (lines(7, None), "x\n", "LINE_RANGE.PAST_END"),
        (lines(1, Some(7)), "x\n", "LINE_RANGE.PAST_END"),
        (lines(0, None), "x\n", "LINE_RANGE.ZERO"),
        (lines(3, Some(2)), "x\n", "LINE_RANGE.INVERTED"),
        (AnchorPlace::Append, "x\0", "NOT_TEXT.BINARY"),
    ] {
        let failure = apply(patch(place.clone(), content), Some(file)).unwrap_err();
        assert_eq!(code(&failure), expected, "{place:?}");
        assert!(failure.hint.is_some() || !expected.ends_with(".ANCHOR"), "{failure}");
    }
    for place in [AnchorPlace::After(at("a")), lines(1, None), AnchorPlace::Whole { content_format: None }] {
        assert_eq!(refused(apply(patch(place, "x\n"), None)), "FILE_MISSING");
    }
}

/// The regular expressions of a batch share one budget; one that occurs several times counts once.
#[test]
fn regular_expressions_of_a_batch_have_one_budget() {
    let anchored = |count: usize, text: &dyn Fn(usize) -> String| {
        let named = |number: usize| Target::Path(format!("f{number}.txt"));
        let place = |number| AnchorPlace::After(Anchor { matching: AnchorMatch::Regex, ..at(&text(number)) });
        batch((0..count).map(|number| FilePatch { target: named(number), ..patch(place(number), "x\n") }).collect())
    };
    let mut yardstick = Duration::MAX;
    for _ in 0..3 {
        let accepted =
            [anchored(10_000, &|_| r"\w{1,30}".to_owned()), anchored(300, &|number| format!("^fn f{number}"))];
        let (took, results) = cost(|| accepted.each_ref().map(|batch| validate(batch, &Limits::DEFAULT).is_ok()));
        assert_eq!(results, [true, true]);
        yardstick = yardstick.min(took);
    }
    let costly: [&dyn Fn(usize) -> String; 4] = [
        &|number| format!(r"\w{{1,30}}{number}"),
        &|number| format!(r"(\w{{1000}}){{1000}}{number}"),
        &|number| format!("{}{number}(", r"(?i)[\w--a]".repeat(150)),
        &|number| format!("{number}"),
    ];
    for text in costly {
        let all = anchored(10_000, text);
        let (took, failures) = cost(|| validate(&all, &Limits::DEFAULT).unwrap_err());
        assert!(took < yardstick * 8, "{:.40} takes {took:?}, and what is accepted {yardstick:?}", text(0));
        assert!(failures.iter().any(|failure| code(failure) == "MATCH_BUDGET_EXCEEDED"));
    }
}

/// A search that takes more steps than the file is worth is given up by name.
#[test]
fn a_costly_search_is_given_up() {
    let mut state = 1_u32;
    let text: String = (0..1 << 20)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let regex = Anchor { matching: AnchorMatch::Regex, ..at("a[ab]{400}$x") };
    let failure = apply(patch(AnchorPlace::After(regex), "x\n"), Some(text.as_bytes())).unwrap_err();
    assert_eq!(code(&failure), "MATCH_BUDGET_EXCEEDED.ANCHOR");
}

/// WS-MOD-4.2.12: content of undeclared format that looks like a diff is taken for a mistake.
#[test]
fn a_diff_is_not_written_over_a_file_by_mistake() {
    let diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
    let whole = |format: Option<&str>| AnchorPlace::Whole { content_format: format.map(str::to_owned) };
    for content in [diff, "\ndiff --git a/f b/f\n", "*** Begin Patch\n", "@@ -1 +1 @@\n"] {
        let patch = FilePatch { target: Target::Path("a.rs".to_owned()), ..patch(whole(None), content) };
        assert_eq!(refused(apply(patch, Some(b"a\n"))), "SUSPECT_CONTENT.LOOKS_LIKE_DIFF");
    }
    assert_eq!(done("a\n", whole(Some("diff")), diff).content, diff.as_bytes());
    assert_eq!(done("a\n", whole(None), "--- a rule\ntext\n").content, b"--- a rule\ntext\n");
}

fn previewed(before: &str, place: AnchorPlace, content: &str) -> Preview {
    let patch = patch(place, content);
    let FileEdit::AnchorEdit(edit) = patch.edit.clone() else { unreachable!() };
    let batch = batch(vec![patch]);
    let valid = validate(&batch, &Limits::DEFAULT).unwrap();
    let observed = [Observed {
        path: WorkspacePath::new("a.txt").unwrap(),
        doc_path: "repo/a.txt".to_owned(),
        content: Some(before.as_bytes()),
        digest: None,
        is_executable: false,
        other: None,
    }];
    let plan = plan(&valid, &observed, &Settings::DEFAULT).unwrap();
    preview(&edit, &plan.files[0], usize::MAX).unwrap()
}

fn id(number: u128) -> FilePatchId {
    FilePatchId(Uuid::from_u128(number))
}

/// WS-MOD-5.2.1: what is shown before and after applying.
#[test]
fn a_preview_shows_the_place_before_and_after() {
    let file = "1\n2\n3\n4\n5\n6\n7\n8\n";
    let preview = previewed(file, lines(4, Some(5)), "x");
    assert_eq!((preview.kind, preview.start_line, preview.old_lines, preview.new_lines), ("range_edit", 4, 2, 1));
    assert_eq!(preview.evidence.before, ["1", "2", "3"]);
    assert_eq!(preview.evidence.range, ["4", "5"]);
    assert_eq!(preview.evidence.after, ["6", "7", "8"]);
    assert_eq!(preview.apply_evidence.range, ["x"]);
    assert!(preview.diff.as_ref().unwrap().contains("-4\n-5\n+x\n"));
    assert_eq!((preview.blankline_style.is_some(), preview.style_warning), (true, None), "it looks as before");

    for (before, place, content, warning) in [
        ("a\n", AnchorPlace::Append, "x\n", Some("no blank line above the new text")),
        ("a\n\n", AnchorPlace::Append, "x\n", None),
        ("a\n\n", AnchorPlace::Append, "\nx\n", Some("2 blank lines above the new text")),
        ("a\nb\n", AnchorPlace::After(at("a")), "\nx\n\n", None),
        (
            "a\nb\n",
            AnchorPlace::Before(at("b")),
            "x\n",
            Some("no blank line above the new text; no blank line below the new text"),
        ),
        ("", AnchorPlace::Append, "x\n", None),
        ("a\n\nb\nc\n", lines(3, Some(3)), "\nx\n", Some("2 blank lines above the new text")),
        ("a\n\nb\nc\n", lines(2, Some(3)), "x\n", Some("no blank line above the new text")),
    ] {
        let preview = previewed(before, place.clone(), content);
        assert_eq!(preview.style_warning.as_deref(), warning, "{before:?} {place:?}");
        assert!(preview.blankline_style.is_some());
    }
    let long = previewed(&"a\n".repeat(50), lines(1, Some(50)), "x\n");
    assert_eq!((long.evidence.range.len(), long.evidence.left_out), (20, 30));
}

/// WS-MOD-4.1.1, WS-MOD-4.1.2, WS-MOD-4.1.3, WS-MOD-4.1.4, WS-MOD-4.2.1, WS-MOD-4.2.2, WS-MOD-4.2.3, WS-MOD-4.2.4,
/// WS-MOD-4.2.5, WS-MOD-4.2.6, WS-MOD-4.2.7: one rule for every kind says who may apply or replace a plan, until when.
/// WS-MOD-2.1.4: each refusal has a name and a next step.
#[test]
fn a_plan_belongs_to_its_member_and_its_kind() {
    let ann = Member { name: "ann", may_write: true };
    let bob = Member { name: "bob", may_write: true };
    let reader = Member { name: "ann", may_write: false };
    let now = UnixMillis(1_000);
    let refusal = |error: hunk::HunkError| {
        let failure = error.failure();
        assert!(failure.hint.is_some(), "{failure}");
        code(&failure)
    };
    for kind in ["range_edit", "append", "insert_after", "insert_before", "block_replace"] {
        let plan = hunk::prepare(None, ann, kind, id(1), now).unwrap();
        assert_eq!((plan.id, plan.expires), (id(1), UnixMillis(1_000 + TTL_MILLIS)));

        let later = UnixMillis(5_000);
        let again = hunk::prepare(Some((id(1), Some(&plan))), ann, kind, id(2), later).unwrap();
        let expected = Hunk { expires: UnixMillis(5_000 + TTL_MILLIS), ..plan.clone() };
        assert_eq!(again, expected, "the plan keeps its id");

        let over = plan.expires;
        for (existing, member, kind, now, expected) in [
            (None, ann, kind, now, "NOT_FOUND"),
            (Some(&plan), ann, kind, over, "HUNK_EXPIRED"),
            (Some(&plan), bob, kind, now, "WRONG_OWNER"),
            (Some(&plan), ann, "other", now, "INVALID_STATE.OTHER_KIND"),
        ] {
            assert_eq!(
                refusal(hunk::prepare(Some((id(1), existing)), member, kind, id(2), now).unwrap_err()),
                expected
            );
        }
        assert_eq!(hunk::apply(id(1), Some(&plan), ann, now), Ok(&plan));
        for (kept, member, now, expected) in [
            (None, ann, now, "NOT_FOUND"),
            (Some(&plan), ann, over, "HUNK_EXPIRED"),
            (Some(&plan), bob, now, "WRONG_OWNER"),
            (Some(&plan), bob, over, "WRONG_OWNER"),
            (Some(&plan), reader, now, "POLICY_DENIED"),
        ] {
            assert_eq!(refusal(hunk::apply(id(1), kept, member, now).unwrap_err()), expected);
        }
    }
}

/// WS-MOD-3.2.1: plans of one file take turns by time of creation, then by id.
#[test]
fn plans_of_one_file_take_turns() {
    let ann = Member { name: "ann", may_write: true };
    let plan = |number, now| hunk::prepare(None, ann, "append", id(number), UnixMillis(now)).unwrap();
    let mut plans = [plan(1, 30), plan(3, 10), plan(2, 10)];
    plans.sort_by_key(hunk::turn);
    assert_eq!(plans.map(|plan| plan.id), [id(2), id(3), id(1)]);
}
