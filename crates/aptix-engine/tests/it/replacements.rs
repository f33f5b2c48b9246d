//! FILE-SPEC 2 and blocks of whole lines: what replacements made one after the other do to the bytes of a file.

use std::time::Duration;

use aptix_engine::planning::settings::Settings;
use aptix_model::batch::{FileEdit, FilePatch, Replacement, Replacements, Scope, Target};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;

use crate::boundary::{Applied, apply, apply_all, apply_with, batch, code, shown};
use crate::cost::{assert_linear, cost};

fn step(find: &str, replace: &str, scope: Scope) -> Replacement {
    Replacement { find: find.to_owned(), replace: replace.to_owned(), scope }
}

fn once(find: &str, replace: &str) -> Replacement {
    step(find, replace, Scope::First)
}

fn all(find: &str, replace: &str) -> Replacement {
    step(find, replace, Scope::All)
}

fn block(find: &str, replace: &str) -> Replacement {
    step(find, replace, Scope::Block { start_line: None })
}

fn block_at(line: i64, find: &str, replace: &str) -> Replacement {
    step(find, replace, Scope::Block { start_line: Some(line) })
}

fn patch(steps: &[Replacement]) -> FilePatch {
    FilePatch {
        target: Target::Path("a.txt".to_owned()),
        key: None,
        label: None,
        edit: FileEdit::Replacements(Replacements { steps: steps.to_vec() }),
    }
}

fn replaced(before: &str, steps: &[Replacement]) -> Result<Applied, Box<Failure>> {
    apply(patch(steps), Some(before.as_bytes()))
}

#[track_caller]
fn check(before: &str, steps: &[Replacement], expect: &str) -> Applied {
    match replaced(before, steps) {
        Ok(applied) => {
            assert_eq!(shown(&applied.content), shown(expect.as_bytes()));
            applied
        }
        Err(failure) => panic!("refused: {failure}"),
    }
}

#[track_caller]
fn check_refused(before: &str, steps: &[Replacement], expect: &str) -> Failure {
    let failure = replaced(before, steps).expect_err("nothing was refused");
    assert_eq!(code(&failure), expect, "{failure}");
    *failure
}

/// Tier, candidates, first and last line of every step.
fn certificates(applied: &Applied) -> Vec<(&'static str, u32, u32, u32)> {
    let changes = applied.report.changes.iter();
    changes.map(|change| (change.tier.word(), change.candidates, change.start_line, change.end_line)).collect()
}

/// FILE-SPEC-2.2.5, FILE-SPEC-2.2.6, FILE-SPEC-2.3.2.1, FILE-SPEC-2.3.2.2, FILE-SPEC-2.3.2.3, R10, R11: each step takes the first place in the result of the one before.
#[test]
fn steps_are_made_one_after_the_other() {
    check("a b c\n", &[once("b", "x")], "a x c\n");
    check("abc\n", &[once("a", "z"), once("z", "Y")], "Ybc\n");
    check("one\n", &[once("one", "two"), once("two", "three"), once("three\n", "")], "");
    check("f(.*)\n", &[once(".*", "$1")], "f($1)\n");
    let steps = [once("c\n", "x\ny\n"), once("a\n", ""), once("y", "1\n2\n3"), once("x", "")];
    let applied = check("a\nb\nc\nd\n", &steps, "b\n\n1\n2\n3\nd\n");
    assert_eq!(
        certificates(&applied),
        [("exact", 1, 2, 5), ("exact", 1, 1, 0), ("exact", 1, 3, 5), ("exact", 1, 2, 1)]
    );
    check_refused("a\n", &[once("a", "x"), once("y", "z"), once("q", "r")], "TEXT_NOT_FOUND");
}

/// FILE-SPEC-2.3.2.4: a step that finds nothing fails the patch, and says which step it is.
#[test]
fn a_missing_text_fails_the_patch() {
    let failure = check_refused("a\n", &[once("a", "x"), once("a", "z")], "TEXT_NOT_FOUND");
    assert_eq!(failure.change_index, Some(1));
    assert!(failure.message.starts_with("old text not found"), "{failure}");
    let failure = check_refused("ab = 1;\n", &[once("ab", "x\nab"), once("ab = 2;", "y")], "TEXT_NOT_FOUND");
    assert!(failure.message.ends_with("(lines are counted in the result of the replacements above)"), "{failure}");
    check_refused("a\n", &[once("", "z")], "INVALID_REQUEST.EMPTY_FIND");
    check_refused("a\n", &[all("", "z")], "INVALID_REQUEST.EMPTY_FIND");
    check_refused("a\n", &[], "INVALID_REQUEST.EMPTY");
    check_refused("a\n", &[once("a", "\0")], "NOT_TEXT.BINARY");
    check_refused("a\n", &[once("a", "\u{feff}")], "INVALID_REQUEST.EMBEDDED_BOM");
    check_refused("a\n", &[block_at(0, "a", "b")], "LINE_RANGE.ZERO");
    assert_eq!(code(&apply(patch(&[once("a", "b")]), None).unwrap_err()), "FILE_MISSING");
}

/// FILE-SPEC-2.2.7, FILE-SPEC-2.4.3.2, FILE-SPEC-2.4.3.3: where there are several, the first one is replaced and the others are reported; or the
/// patch is refused, if that is configured.
#[test]
fn the_first_of_several_is_replaced_with_a_warning() {
    let applied = check("a\nb\na\nca\n", &[once("a", "x")], "x\nb\na\nca\n");
    assert_eq!(applied.report.warnings.len(), 1);
    let warning = &applied.report.warnings[0];
    assert_eq!(
        (warning.code.as_str(), warning.message.as_str()),
        ("SEVERAL_OCCURRENCES", "replacements[0] took the first place of its text; lines 3, 4 have it too")
    );
    assert_eq!(certificates(&applied), [("exact", 3, 1, 1)]);
    let applied = check("a a a\n", &[once("a", "x")], "x a a\n");
    assert!(applied.report.warnings[0].message.ends_with("; line 1 has it too"), "{:?}", applied.report.warnings);
    let settings = Settings { refuses_several: true, ..Settings::DEFAULT };
    let refused = |before: &str| {
        let patched = batch(vec![patch(&[once("a", "x")])]);
        apply_with(&patched, &[(Some(before.as_bytes()), None)], &settings).unwrap_err().remove(0)
    };
    for (before, message) in [
        ("a\na\n", "at 2 places, at lines 1, 2"),
        ("b\na a\n", "at 2 places, at line 2"),
        (
            &"a\n".repeat(20),
            "at 20 places, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
        ),
        (&"a ".repeat(21), "at more than 20 places, at lines 1, ..."),
    ] {
        let failure = refused(before);
        assert_eq!(code(&failure), "TEXT_NOT_UNIQUE");
        assert!(failure.message.ends_with(message), "{failure}");
    }
    assert!(refused("a a\n").hint.unwrap().contains("in its line"));
    assert_eq!(refused("a a\n").nearest.len(), 1);
    let applied = check(&"a\n".repeat(30), &[once("a", "x")], &["x\n".to_owned(), "a\n".repeat(29)].concat());
    assert!(applied.report.warnings[0].message.contains(", 21, ... have it too"), "{:?}", applied.report.warnings);
    // A place that is not literally there must be the only one.
    check_refused("  a\n  b\n  a\n  b\n", &[once("a\nb\n", "x\n")], "TEXT_NOT_UNIQUE");
    check("  a\r\n  b\r\n", &[once("a\nb\n", "x\ny\n")], "  x\r\n  y\r\n");
}

/// FILE-SPEC-2.2.7: `all` takes every place, none of them in its own new text.
#[test]
fn every_place_is_replaced() {
    check("aXbXc\n", &[all("X", "XX")], "aXXbXXc\n");
    check("aaaaa\n", &[all("aa", "b")], "bba\n");
    check("x\n", &[all("x", "x")], "x\n");
    let applied = check("a\nb\na\nb\n", &[all("a\n", ""), all("b", "1\n2")], "1\n2\n1\n2\n");
    assert_eq!(certificates(&applied), [("exact", 2, 1, 2), ("exact", 2, 1, 4)]);
    check("a\r\nb\r\na\r\nb\r\n", &[all("a\nb\n", "x\n")], "x\r\nx\r\n");
    check("  a\n  b\na\nb\n", &[all("a\nb\n", "x\n")], "  a\n  b\nx\n");
}

/// Whole lines in the place of whole lines that occur only once.
#[test]
fn blocks_are_whole_lines() {
    check("a\nb\nc\n", &[block("b\n", "x\ny\n")], "a\nx\ny\nc\n");
    check("a\nb\nc", &[block("c\n", "x\n")], "a\nb\nx");
    check("a\nb\nc", &[block("c\n", "")], "a\nb");
    check("a\r\nb\r\nc\r\n", &[block("b\n", "x\ny\n")], "a\r\nx\r\ny\r\nc\r\n");
    check("ab\nb\n", &[block("b\n", "x\n")], "ab\nx\n");
    check("a\nb\n", &[block("a\nb\n", "")], "");
    check("a\n\nb\n", &[block("\n", "x\n")], "a\nx\nb\n");
    check("\u{feff}a\n", &[block("a\n", "b\n")], "\u{feff}b\n");
    check("a\nb\n", &[block("a\n", "x\n"), block("x\nb\n", "y\n")], "y\n");
    check("a\n", &[block("", "b\nc\n")], "a\nb\nc\n");
    check("a", &[block("", "b\nc\n")], "a\nb\nc");
    for (steps, expect) in [(vec![block("", "a\nb\n")], "a\nb\n"), (vec![block("", "a\n"), block("a\n", "b\n")], "b\n")]
    {
        let applied = apply(patch(&steps), None).unwrap();
        assert_eq!((shown(&applied.content), applied.report.status.word()), (shown(expect.as_bytes()), "created"));
    }
    check_refused("a b\n", &[block("a\n", "x\n")], "TEXT_NOT_FOUND");
    let applied = check("a\nb\nc\nd\n", &[block("c\n", "1\n2\n"), block("a\n", "")], "b\n1\n2\nd\n");
    assert_eq!(certificates(&applied), [("exact", 1, 2, 3), ("exact", 1, 1, 0)]);
}

/// A block recovers as other old text does; lines that stay are the file's.
#[test]
fn blocks_recover_white_space() {
    for (before, find, replace, expect, tier) in [
        ("a \nb\n", "a\nb\n", "a\nx\n", "a \nx\n", "trailing"),
        ("a:\n    b\n    c\nd\n", "  b\n  c\n", "  b\n  x:\n    y\n", "a:\n    b\n    x:\n      y\nd\n", "indent"),
        ("a\n  b\nc\n", "\nb\n\n", "\nx\n\n", "a\n  x\nc\n", "blank_edges"),
        ("\tif a:\n\t\tb()\n", "if a:\n\tb()\n", "if c:\n\tb()\n", "\tif c:\n\t\tb()\n", "indent"),
    ] {
        let applied = check(before, &[block(find, replace)], expect);
        assert_eq!(applied.report.changes[0].tier.word(), tier, "{before:?}");
    }
    check_refused("\ta\n\t\tb\n", &[block("a\n    b\n", "x\n")], "TEXT_NOT_FOUND");
    check_refused("x = 15\n", &[block("x = 10\n", "x = 20\n")], "TEXT_NOT_FOUND");
}

/// A block that changes nothing is still reported with its place.
#[test]
fn a_block_that_changes_nothing_is_reported_where_it_is_found() {
    for (before, find, place) in [
        ("a\nb\n", "a\n", ("exact", 1, 1, 1)),
        ("a\nb\nc\n", "b\nc\n", ("exact", 1, 2, 3)),
        ("a\r\nb", "b\n", ("exact", 1, 2, 2)),
    ] {
        let applied = check(before, &[block(find, find)], before);
        assert_eq!(certificates(&applied), [place], "{before:?}");
    }
    let applied = check("a\nb\n", &[block("b\n", "b\n"), block("a\n", "x\ny\n")], "x\ny\nb\n");
    assert_eq!(certificates(&applied), [("exact", 1, 3, 3), ("exact", 1, 1, 2)]);
}

/// A line number chooses among places, and is one of the file as it was.
#[test]
fn a_line_number_settles_which_of_several() {
    let before = "a\nb\na\nb\na\n";
    check_refused(before, &[block("a\n", "x\n")], "TEXT_NOT_UNIQUE");
    check_refused(before, &[block_at(2, "a\n", "x\n")], "TEXT_NOT_UNIQUE");
    check_refused(before, &[block_at(99, "a\n", "x\n")], "TEXT_NOT_UNIQUE");
    let applied = check(before, &[block_at(3, "a\n", "x\n")], "a\nb\nx\nb\na\n");
    assert_eq!(certificates(&applied), [("exact", 3, 3, 3)]);
    check(before, &[block_at(1, "a\n", "1\n2\n3\n"), block_at(5, "a\n", "x\n")], "1\n2\n3\nb\na\nb\nx\n");
    // Where there is only one place, the number does not matter.
    check(before, &[block_at(1, "a\nb\na\nb\n", "x\n")], "x\na\n");
}

/// The results of steps are bounded, and so is the work.
#[test]
fn growth_and_work_are_bounded() {
    let limits = Limits { file_bytes: 1000, ..Limits::DEFAULT };
    let settings = Settings { limits, ..Settings::DEFAULT };
    let many = batch(vec![patch(&[all("a", &"a".repeat(10)), all("a", &"a".repeat(10)), all("a", &"a".repeat(10))])]);
    let failures = apply_with(&many, &[(Some(b"a\n"), None)], &settings).unwrap_err();
    assert_eq!((code(&failures[0]).as_str(), failures[0].change_index), ("TOO_LARGE.FILE", Some(2)));
    // Every line is the block's first one, and the block's last one is none of them.
    let (before, find) = ("x\n".repeat(400_000), format!("{}y\n", "x\n".repeat(200_000)));
    check_refused(&before, &[block(&find, "z\n")], "MATCH_BUDGET_EXCEEDED");
}

/// A step costs about the same however many came before it.
#[test]
fn many_steps_cost_as_much_as_each_alone() {
    const COUNT: usize = 500;
    let before: String = (0..COUNT).map(|number| format!("<{number}>\n")).collect();
    let step = |number: usize| once(&format!("<{number}>"), &format!("[{number}]"));
    let of = |steps: &[_]| {
        let batch = batch(vec![patch(steps)]);
        let (took, applied) = cost(|| apply_all(&batch, &[Some(before.as_bytes())], &Limits::DEFAULT));
        (took, applied.unwrap().remove(0).content)
    };
    let each: Duration = (0..COUNT).map(|number| of(&[step(number)]).0).sum();
    let (all, content) = of(&(0..COUNT).map(step).collect::<Vec<_>>());
    assert_eq!(content, before.replace('<', "[").replace('>', "]").as_bytes());
    assert!(all < each * 4, "all steps cost {all:?}, each alone {each:?}");
}

/// Places in one long line: each costs the same, however long its line is.
#[test]
fn many_places_in_one_line_cost_no_more_than_in_many() {
    for new in ["yy", "y\nz"] {
        let line = |count| "ab, x, cd; ".repeat(count);
        assert_linear(new, 1_500, line, |line| check(line, &[all("x", new)], &line.replace('x', new)));
    }
}

/// Places that have the new text and places that have not are named by their columns where they share a line.
#[test]
fn places_of_one_line_are_named_by_their_columns() {
    let named = |before: &str| check_refused(before, &[all("a", "a1")], "TEXT_NOT_UNIQUE").message;
    let message = named("é a1, a\n");
    assert!(message.ends_with("the new text occurs at line 1 (column 3), and not at line 1 (column 7)"), "{message}");
    let message = named("a1\na\na\n");
    assert!(message.ends_with("the new text occurs at line 1, and not at lines 2, 3"), "{message}");
}
