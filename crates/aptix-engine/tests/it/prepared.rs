//! Prepared batches: a plan is made of one version of a file and carried out on a later one, at the same places or not at all.

use std::ops::RangeInclusive;

use aptix_engine::plan::{plan, plan_prepared};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{
    Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Batch, Content, CreateFile, FileEdit, FilePatch, Replacement,
    Replacements, Scope, Target,
};
use aptix_model::failure::Failure;
use aptix_model::limits::{Limits, PLACES_BYTES};
use aptix_model::path::WorkspacePath;
use aptix_model::plan::Plan;
use aptix_model::report::{FileReport, Report, Withheld};

use crate::boundary::batch;

fn observed(content: &str) -> Observed<'_> {
    Observed {
        path: WorkspacePath::new("a.txt").unwrap(),
        doc_path: "r/a.txt".to_owned(),
        content: Some(content.as_bytes()),
        digest: None,
        is_executable: false,
        other: None,
    }
}

fn edit(place: AnchorPlace, content: &str) -> Batch {
    let edit = FileEdit::AnchorEdit(AnchorEdit { place, content: content.to_owned() });
    batch(vec![FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit }])
}

fn lines(range: RangeInclusive<i64>, content: &str) -> Batch {
    edit(AnchorPlace::Range { start_line: *range.start(), end_line: Some(*range.end()) }, content)
}

fn after(anchor: &str, content: &str) -> Batch {
    let anchor = Anchor { text: anchor.to_owned(), matching: AnchorMatch::Equals, occurrence: None };
    edit(AnchorPlace::After(anchor), content)
}

fn replace(old: &str, new: &str) -> Batch {
    let step = Replacement { find: old.to_owned(), replace: new.to_owned(), scope: Scope::First };
    let edit = FileEdit::Replacements(Replacements { steps: vec![step] });
    batch(vec![FilePatch { target: Target::Path("a.txt".to_owned()), key: None, label: None, edit }])
}

/// What a batch would do to a file.
fn prepared(batch: &Batch, file: &str) -> Plan {
    let valid = validate(batch, &Limits::DEFAULT).unwrap();
    let seen = [observed(file)];
    let plan = plan(&valid, &seen, &Settings::DEFAULT).unwrap();
    let [file] = plan.files.as_slice() else { panic!("one file") };
    let report = Report::applied(vec![file.report(&file.content())]);
    Plan { report, places: vec![file.places(PLACES_BYTES)], evidence: vec![None] }
}

/// A file, the codes of its warnings, and the lines that its change left.
type Done = (String, Vec<String>, (u32, u32));

/// What a plan that is carried out leaves.
fn carried_out(batch: &Batch, plan: &Plan, file: &str) -> Result<Done, Failure> {
    let valid = validate(batch, &Limits::DEFAULT).unwrap();
    let seen = [observed(file)];
    let done = plan_prepared(&valid, &seen, &[], &Settings::DEFAULT, plan).map_err(|failures| failures[0].clone())?;
    let file = &done.files[0];
    let report = file.report(&file.content());
    let codes = report.warnings.into_iter().map(|warning| warning.code).collect();
    let left = report.changes.first().map_or((0, 0), |change| (change.start_line, change.end_line));
    Ok((String::from_utf8(file.content().into_owned()).unwrap(), codes, left))
}

/// The file changed elsewhere: the same lines come and go where they are now, and the report says so.
#[test]
fn a_plan_moves_with_its_places() {
    let base = "a\nb\nc\nd\ne\nf\n";
    for (batch, now, expected, left) in [
        (lines(2..=3, "x\n"), base, "a\nx\nd\ne\nf\n", (2, 2)),
        (lines(2..=3, "x\n"), "new\na\nb\nc\nd\ne\nf\n", "new\na\nx\nd\ne\nf\n", (3, 3)),
        (lines(2..=3, "x\n"), "a\nb\nc\nD\ne\nf\n", "a\nx\nD\ne\nf\n", (2, 2)),
        (lines(2..=3, ""), "A\nb\nc\nD\n", "A\nD\n", (2, 1)),
        (lines(5..=6, "x\n"), "a\n1\n2\n3\nc\nd\ne\nf\n", "a\n1\n2\n3\nc\nd\nx\n", (7, 7)),
        (after("c", "x\ny\n"), "1\n2\nc\nd\n", "1\n2\nc\nx\ny\nd\n", (4, 5)),
        (edit(AnchorPlace::Append, "x\n"), "1\na\nb\nc\nd\ne\nf\n", "1\na\nb\nc\nd\ne\nf\nx\n", (8, 8)),
        (replace("c\nd", "C\nd"), "e\nc\nd\n", "e\nC\nd\n", (2, 2)),
    ] {
        let plan = prepared(&batch, base);
        let (file, warnings, lines) =
            carried_out(&batch, &plan, now).unwrap_or_else(|found| panic!("{now:?}: {found}"));
        assert_eq!((file.as_str(), lines), (expected, left), "{now:?}");
        assert_eq!(warnings, if now == base { Vec::new() } else { vec!["REBASED"] }, "{now:?}");
    }
}

/// A place that is gone, changed, or there twice, and a file that is written whole: nothing is done.
#[test]
fn a_plan_whose_place_does_not_occur_once_is_refused() {
    let base = "a\nb\nc\nd\ne\nf\n";
    let whole = edit(AnchorPlace::Whole { content_format: None }, "all\n");
    for (batch, now) in [
        (lines(2..=3, "x\n"), "a\nb\nC\nd\ne\nf\n"),
        (lines(2..=3, "x\n"), "a\nd\ne\nf\n"),
        (lines(2..=3, "x\n"), "a\nb\nc\nd\ne\nf\nb\nc\n"),
        (lines(2..=3, "x\n"), "a\nbb\nc\nd\n"),
        (lines(2..=3, "x\n"), "a\nb\nc"),
        (after("c", "x\n"), "a\nb\nc\nnew\nd\n"),
        (edit(AnchorPlace::Append, "x\n"), "a\nb\nc\nd\ne\nf\ng\n"),
        (whole, "a\nb\nc\nd\ne\nf\ng\n"),
        (replace("c", "C"), ""),
    ] {
        let plan = prepared(&batch, base);
        let failure = carried_out(&batch, &plan, now).expect_err(now);
        assert_eq!(failure.to_string().split(':').next(), Some("FILE_CHANGED"), "{now:?}: {failure}");
        assert!(failure.current_sha256.is_some() && failure.hint.is_some(), "{now:?}");
    }
}

/// Prepared twice and carried out twice, an edit that only adds lines adds them once, also where its place still occurs.
#[test]
fn a_plan_whose_lines_are_there_already_is_refused() {
    for (batch, base) in [
        (after("}", "fn b() {\n}\n"), "fn a() {\n}\nend\n"),
        (after("b", "b\n"), "a\nb\nc\n"),
        (lines(2..=2, "b\nb\n"), "a\nb\nc\n"),
        (lines(2..=2, "x\nb\ny\n"), "a\nb\nc\n"),
        (lines(1..=1, "x\nb\ny\n"), "b\n"),
        (edit(AnchorPlace::Append, "end\n"), "a\nend\n\n"),
    ] {
        let plan = prepared(&batch, base);
        let (once, ..) = carried_out(&batch, &plan, base).unwrap();
        let failure = carried_out(&batch, &plan, &once).expect_err(base);
        let code = failure.to_string();
        assert!(code.starts_with("ALREADY_APPLIED") || code.starts_with("FILE_CHANGED"), "{base:?}: {failure}");
        assert!(failure.current_sha256.is_some() && failure.hint.is_some(), "{base:?}");
    }
}

/// A plan is of the file that it was shown for: where the roots have changed since, its path may lead to another one.
#[test]
fn a_plan_is_carried_out_on_its_own_file_alone() {
    let create = FileEdit::CreateFile(CreateFile {
        content: Content::Text("new\n".to_owned()),
        overwrite: true,
        content_format: None,
    });
    let target = Target::Path("a.txt".to_owned());
    let create = batch(vec![FilePatch { target, key: None, label: None, edit: create }]);
    for (batch, file) in [(&create, None), (&create, Some("a\n")), (&lines(1..=1, "x\n"), Some("a\n"))] {
        let seen = |path: &str, doc_path: &str| Observed {
            path: WorkspacePath::new(path).unwrap(),
            doc_path: doc_path.to_owned(),
            content: file.map(str::as_bytes),
            ..observed("")
        };
        let valid = validate(batch, &Limits::DEFAULT).unwrap();
        let before = [seen("a.txt", "r/a.txt")];
        let planned = plan(&valid, &before, &Settings::DEFAULT).unwrap();
        let [planned] = planned.files.as_slice() else { panic!("one file") };
        let report = planned.report(&planned.content());
        for withheld in [None, Some(Withheld::Ignored)] {
            let report = Report::applied(vec![FileReport { withheld, ..report.clone() }]);
            let planned = Plan { report, places: vec![Vec::new()], evidence: vec![None] };
            let carried_out = |seen: [Observed<'_>; 1]| {
                plan_prepared(&valid, &seen, &[], &Settings::DEFAULT, &planned)
                    .map_or_else(|found| found[0].to_string(), |_| String::new())
            };
            assert_eq!(carried_out(before.clone()), "", "{file:?}");
            for (path, doc_path) in [("r/a.txt", "r/r/a.txt"), ("a.txt", "s/a.txt"), ("A.txt", "r/a.txt")] {
                let found = carried_out([seen(path, doc_path)]);
                assert!(found.starts_with("FILE_CHANGED"), "{path}: {found:?}");
            }
        }
    }
}

/// What stands in the file several times is found by the lines around it, and by them alone.
#[test]
fn lines_that_occur_more_than_once_are_told_by_those_around_them() {
    let base = "fn a() {\n    one\n}\n\nfn b() {\n    one\n}\n";
    let batch = lines(6..=6, "    two\n");
    let plan = prepared(&batch, base);
    let now = "// new\nfn a() {\n    one\n}\n\nfn b() {\n    one\n}\n";
    let expected = "// new\nfn a() {\n    one\n}\n\nfn b() {\n    two\n}\n";
    assert_eq!(carried_out(&batch, &plan, now).unwrap().0, expected);
    // The function was renamed: that it is this one cannot be seen any more.
    carried_out(&batch, &plan, &now.replace("fn b", "fn c")).unwrap_err();
    // Nothing around tells equal lines apart.
    let batch = lines(20..=20, "x\n");
    let plan = prepared(&batch, &"same\n".repeat(40));
    assert_eq!(plan.places, [Vec::new()]);
}

/// Any two edits of different lines, prepared at once, can both be made, in either order, with the same result.
#[test]
fn plans_for_different_lines_of_a_file_are_both_carried_out() {
    let text = |lines: &[i64]| lines.iter().map(|line| format!("line {line}\n")).collect::<String>();
    let base: Vec<i64> = (1..=9).collect();
    let base = text(&base);
    for (first, second) in (1..=8).flat_map(|first| (first + 1..=9).map(move |second| (first, second))) {
        let edits = [lines(first..=first, "one\nand more\n"), lines(second..=second, "two\n")];
        let plans = edits.each_ref().map(|batch| prepared(batch, &base));
        let results = [[0, 1], [1, 0]].map(|order| {
            let mut file = base.clone();
            for index in order {
                file = carried_out(&edits[index], &plans[index], &file).unwrap_or_else(|found| panic!("{found}")).0;
            }
            file
        });
        let expected = base.replace(&format!("line {first}\n"), "one\nand more\n");
        let expected = expected.replace(&format!("line {second}\n"), "two\n");
        assert_eq!(results, [expected.clone(), expected], "lines {first} and {second}");
    }
}
