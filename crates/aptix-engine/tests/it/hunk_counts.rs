//! FILE-SPEC 3: hunks that have fewer or more lines than their headers count, or no numbers at all.

use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::{FileEdit, Hunk, HunkLine, LineKind};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;

use crate::boundary::{code, shown};
use crate::tree::{Changed, apply, apply_batch, blob_id, tree};

const STRICT: Settings<'static> = Settings { recovers: false, ..Settings::DEFAULT };

fn diff(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

fn edited(before: &str, hunks: &str, settings: &Settings<'_>) -> Result<Changed, Vec<Failure>> {
    apply(&tree(&[("f", before.as_bytes())]), diff(hunks).as_bytes(), settings)
}

/// Asserts what hunks make of a file, with one warning or more, so that nothing is made of it without recovery.
#[track_caller]
fn check(before: &str, hunks: &str, after: &str, warnings: &[&str]) {
    let changed = edited(before, hunks, &Settings::DEFAULT).unwrap_or_else(|failures| panic!("{hunks}: {failures:?}"));
    assert_eq!(shown(&changed.tree["f"].0), shown(after.as_bytes()), "{hunks}");
    assert_eq!(changed.warnings(), warnings, "{hunks}");
    let strict = edited(before, hunks, &STRICT);
    assert_eq!(strict.is_ok(), warnings.is_empty(), "nothing is recovered when that is turned off: {hunks}");
}

#[track_caller]
fn check_refused(before: &str, hunks: &str, expected: &str) -> Failure {
    let failures = edited(before, hunks, &Settings::DEFAULT).map(|changed| changed.tree).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), [expected], "{hunks}");
    assert!(failures[0].hint.is_some());
    assert_eq!(failures[0].next_action, None, "no text is made up");
    failures[0].clone()
}

/// A hunk with fewer lines than its header counts was cut off.
#[test]
fn a_hunk_that_was_cut_off_is_refused() {
    for (before, hunks) in [
        ("one\ntwo\n", "@@ -1,2 +1,3 @@\n one\n-two\n"),
        ("one\ntwo\n", "@@ -1,2 +1,3 @@\n one\n-two\n+tw"),
        ("one\ntwo\n", "@@ -1,2 +1,3 @@\n one\n-two\n\n\n"),
        ("one\ntwo\n", "@@ -1 +1,2 @@\n-one\n+1\n"),
        ("one\ntwo\n", "@@ -1,2 +1,2 @@\n"),
        ("one\ntwo\n", "@@ -1,2 +1,2 @@"),
        ("one\ntwo\n", "@@ -1,9 +1,9 @@\n one\n-two\n+2\n"),
        // context below does not prove that nothing is missing
        ("one\ntwo\nthree\n", "@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n"),
        // a fence ends the block at a context line that lost its blank
        ("a\n```\nb\n", "@@ -1,3 +1,4 @@\n a\n+x\n```\n b\n"),
        // fewer of one side and more of the other
        ("one\ntwo\nthree\n", "@@ -1,4 +1,2 @@\n one\n-two\n+2\n+3\n"),
        // followed by another hunk, and the last line is a change
        ("a\nb\nc\nd\n", "@@ -1,3 +1,3 @@\n a\n-b\n@@ -4 +4 @@\n-d\n+D\n"),
        // followed by another file
        ("a\nb\nc\nd\n", "@@ -1,4 +1,4 @@\n a\n-b\n+B\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-d\n+D\n"),
        ("a\nb\n", "@@ -1,2 +1,3 @@\n a\n b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-d\n+D\n"),
        ("a\nb\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-d\n+D\n"),
    ] {
        check_refused(before, hunks, "PATCH_TRUNCATED");
    }
    // counted as lines of the hunk, and not in the file
    let hunks = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n--- a/g\n+++ b/g\n@@ -4 +4 @@\n-d\n+D\n";
    check_refused("a\nb\nc\nd\n", hunks, "EXPECTED_MISMATCH");
    let hunks = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n@@ -4 +4 @@\n-d\n+D\n";
    check_refused("a\nb\nc\nd\n", hunks, "PATCH_TRUNCATED");
    check_refused("a\nb\nc\nd\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n", "PATCH_TRUNCATED");
    let failure = check_refused("one\ntwo\n", "@@ -1,2 +1,3 @@\n one\n-two\n", "PATCH_TRUNCATED");
    assert!(failure.hint.as_ref().unwrap().contains("@@ -1,2 +1 @@"), "{failure:?}");
    assert!(failure.message.contains("line 6") && failure.message.contains("line 3"), "{failure}");
    for (head, before) in [("--- /dev/null\n+++ b/f\n", None), ("--- a/f\n+++ b/f\n", Some("a\n"))] {
        let before = before.map(|text: &str| ("f", text.as_bytes()));
        let failures = apply(&tree(before.as_slice()), head.as_bytes(), &Settings::DEFAULT).unwrap_err();
        assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["PATCH_TRUNCATED"], "{head}");
    }
    let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,3 @@\n+a\n+b\n";
    for diff in [create.to_owned(), format!("{create}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n")] {
        let failures = apply(&tree(&[("g", b"a\n")]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
        assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["PATCH_TRUNCATED"], "{diff}");
    }
}

/// One hunk above another of the same file, that ends in context and has one place, lacks context at most.
#[test]
fn a_short_hunk_above_another_is_applied_where_its_place_is_sure() {
    let hunks = "@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n@@ -6 +6 @@\n-f\n+F\n";
    check("a\nb\nc\nd\ne\nf\n", hunks, "a\nB\nc\nd\ne\nF\n", &["HUNK_COUNTS"]);
    check(
        "0\na\nb\nc\nd\ne\n f\n",
        &hunks.replace("-f\n+F", " e\n- f\n+F").replace("-6 +6", "-6,2 +6,2"),
        "0\na\nB\nc\nd\ne\nF\n",
        &["HUNK_COUNTS", "HUNK_OFFSET"],
    );
    check_refused("a\nb\nc\nd\ne\nf\na\nb\nc\n", hunks, "PATCH_TRUNCATED");
    check_refused("a\nx\nc\nd\ne\nf\n", hunks, "PATCH_TRUNCATED");
}

/// What follows a hunk that has all its lines is text, unless it shows that it belongs to the hunk.
#[test]
fn lines_below_a_counted_hunk_are_surplus() {
    let five = "a\nb\nc\nd\ne\n";
    // context or blank lines change nothing
    check(five, "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\n\n", "A\nb\nc\nd\ne\n", &[]);
    check(five, "@@ -1,2 +1,2 @@\n-a\n+A\n b\n c\n", "A\nb\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check(five, "@@ -1,2 +1,2 @@\n-a\n+A\n b\n words that are indented\n", "A\nb\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check("a\nb\n", "@@ -1,0 +1 @@\n+x\n a\n", "x\na\nb\n", &["HUNK_COUNTS"]);
    check_refused("a\nb\n", "@@ -1,0 +1 @@\n+x\n c\n", "EXPECTED_MISMATCH");
    // added lines alone belong to it up to where the diff ends for sure
    check(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n+BB\n", "a\nB\nBB\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n+BB\n\n", "a\nB\nBB\nc\nd\ne\n", &["HUNK_COUNTS"]);
    let two = "@@ -1,2 +1,2 @@\n a\n-b\n+B\n+BB\n@@ -4,2 +4,2 @@\n d\n-e\n+E\n";
    check(five, two, "a\nB\nBB\nc\nd\nE\n", &["HUNK_COUNTS"]);
    check_refused(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\n+ a list\n+ of words\n", "PATCH_MALFORMED.COUNTS");
    // others belong to it if the file has them
    check(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n-c\n+C\n d\n", "a\nB\nC\nd\ne\n", &["HUNK_COUNTS"]);
    check(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\n- a list\n- of words\n", "a\nB\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check(five, "@@ -1,2 +1,2 @@\n a\n-b\n+B\n+BB\n x\n", "a\nB\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check_refused(five, "@@ -1,2 +1,2 @@\n x\n-b\n+B\n-c\n+C\n", "EXPECTED_MISMATCH");
    // counted lines that change nothing are no hunk
    check(five, "@@ -1 +1 @@\n a\n+x\n b\n", "a\nx\nb\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check_refused(five, "@@ -1 +1 @@\n a\n+x\n z\n", "EXPECTED_MISMATCH");
    check_refused(five, "@@ -1 +1 @@\n a\n-z\n", "ALREADY_APPLIED");
    check_refused(five, "@@ -1,3 +1,2 @@\n a\n b\n c\n", "PATCH_MALFORMED.COUNTS");
    check_refused(five, "@@ -1,2 +1,3 @@\n a\n b\n c\n", "PATCH_MALFORMED.COUNTS");
    // here with what is below, there without
    check_refused("a\nb\nc\n0\na\nb\nx\n", "@@ -5,2 +5,2 @@\n a\n-b\n+B\n-c\n+C\n", "TEXT_NOT_UNIQUE");
    // all of them are there, and at the end of the file as well
    check_refused("a\nb\nc\nd\na\nb\nc\n", "@@ -1,2 +0,0 @@\n-a\n-b\n-c\n+x\n", "TEXT_NOT_UNIQUE.NO_CONTEXT");
    // no line uses up both counts
    check(five, "@@ -1,2 +1,1 @@\n a\n+x\n-b\n", "a\nx\nc\nd\ne\n", &["HUNK_COUNTS"]);
    check(five, "@@ -1,0 +1 @@\n-a\n+A\n", "A\nb\nc\nd\ne\n", &["HUNK_COUNTS"]);
    // files that come and go
    let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n";
    for (below, after, warnings) in
        [("+b\n", "a\nb\n", 1), ("\n- words\n", "a\n", 1), (" words\n", "a\n", 1), ("-- \n2.47.3\n", "a\n", 0)]
    {
        let changed = apply(&tree(&[]), format!("{create}{below}").as_bytes(), &Settings::DEFAULT).unwrap();
        assert_eq!(
            (shown(&changed.tree["f"].0), changed.warnings().len()),
            (shown(after.as_bytes()), warnings),
            "{below}"
        );
    }
    // between which lines of a file that is not there yet
    for hunk in ["@@ -15,0 +16 @@\n+b\n@@ -0,0 +1 @@\n+a\n", "@@ -0,0 +1 @@\n+a\n@@ -0,0 +1 @@\n+b\n"] {
        let diff = format!("--- /dev/null\n+++ b/f\n{hunk}");
        let failures = apply(&tree(&[]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
        assert_eq!(failures.iter().map(code).next().unwrap(), "PATCH_MALFORMED.HUNK_ORDER", "{diff}");
    }
    let changed = apply(&tree(&[]), format!("{create}@@ -1,0 +2 @@\n+b\n").as_bytes(), &Settings::DEFAULT).unwrap();
    assert_eq!(shown(&changed.tree["f"].0), shown(b"a\nb\n"));
    let delete = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    for (below, before) in [("-b\n", "a\nb\n"), ("\n- words\n", "a\n"), ("-- \n2.47.3\n", "a\n")] {
        let tree = tree(&[("f", before.as_bytes())]);
        let changed = apply(&tree, format!("{delete}{below}").as_bytes(), &Settings::DEFAULT);
        assert_eq!(changed.unwrap().tree.len(), 0, "{below}");
    }
}

/// Where text is around a diff, only a closed fence shows that added lines end with it.
#[test]
fn text_around_a_diff_leaves_the_end_of_surplus_open() {
    let diff = diff("@@ -1,2 +1,2 @@\n a\n-b\n+B\n+BB\n");
    for (text, expected) in [
        (format!("Here it is:\n{diff}"), Err("PATCH_MALFORMED.COUNTS")),
        (format!("{diff}That is all.\n"), Err("PATCH_MALFORMED.COUNTS")),
        (format!("Here it is:\n\n```diff\n{diff}```\n\nThat is all.\n"), Ok("a\nB\nBB\n")),
        (format!("Here it is:\n\n~~~~\n{diff}~~~\n"), Err("PATCH_MALFORMED.COUNTS")),
        (format!("```diff\n{}", diff.replace("+BB\n", "")), Err("PATCH_TRUNCATED")),
        (format!("```diff\n{}```\n", diff.replace("+BB\n", "")), Ok("a\nB\n")),
        (format!("```diff\n{}```\n", diff.replace("-1,2 +1,2", "...")), Ok("a\nB\nBB\n")),
        (
            format!("```diff\n{}\nThat is all.\n```\n", diff.replace("-1,2 +1,2", "...")),
            Err("PATCH_MALFORMED.HUNK_HEADER"),
        ),
    ] {
        let found = apply(&tree(&[("f", b"a\nb\n")]), text.as_bytes(), &Settings::DEFAULT);
        let found = found.map(|changed| String::from_utf8(changed.tree["f"].0.clone()).unwrap());
        let found = found.map_err(|failures| code(&failures[0]));
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
    }
}

/// A signature ends a mail, however it looks.
#[test]
fn a_signature_is_no_line_of_a_hunk() {
    for end in ["-- \n2.47.3\n", "-- \n2.47.3\n\n", "-- \n", "-- ", "--\n2.39.5 (Apple Git-154)\n"] {
        check("a\nb\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n+B\n{end}"), "a\nB\n", &[]);
    }
    check("a\n- \n", "@@ -1,2 +1 @@\n a\n-- \n", "a\n", &[]);
    check_refused("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n-- \n2.47.3\n", "PATCH_TRUNCATED");
}

/// A header of a next file that was cut off is no line of the hunk, and not passed over.
#[test]
fn a_header_that_was_cut_off_is_refused() {
    let hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+B\n";
    for end in [
        "-",
        "--",
        "---",
        "--- ",
        "--- a/g",
        "--- a/g\n",
        "--- a/g\n+",
        "--- a/g\n++",
        "--- a/g\n+++",
        "@",
        "@@",
        "@@ -4,2",
        "@@ -4,2 +4,2 @",
    ] {
        let failures =
            edited("a\nb\n", &format!("{hunk}{end}"), &Settings::DEFAULT).map(|changed| changed.tree).unwrap_err();
        assert!(
            matches!(code(&failures[0]).as_str(), "PATCH_TRUNCATED" | "PATCH_MALFORMED.HUNK_HEADER"),
            "{end:?}: {failures:?}"
        );
    }
}

/// A context line without its blank is one if the counts ask for it, and the file has it.
#[test]
fn counts_and_the_file_prove_context_that_lost_its_blank() {
    check("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\nc\n", "a\nB\nc\n", &["HUNK_COUNTS"]);
    check("a\nb\n\tc\nd\n", "@@ -1,4 +1,4 @@\na\n-b\n+B\n\tc\n d\n", "a\nB\n\tc\nd\n", &["HUNK_COUNTS"]);
    check("a\nb\n\nc\n", "@@ -1,4 +1,4 @@\n a\n-b\n+B\n\n c\n", "a\nB\n\nc\n", &[]);
    check("a\nb\n\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n", "a\nB\n\nc\n", &[]);
    check_refused("a\nb\nx\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\nc\n", "PATCH_TRUNCATED");
    check_refused("a\nb\nc\nd\n", "@@ -1,5 +1,5 @@\n a\n-b\n+B\nc\n d\n", "PATCH_TRUNCATED");
    // words below a hunk that was cut off
    for words in ["That is all.\n", "\nThat is all.\n", "\n\nThat is all.\n", "\n- That is all.\n"] {
        check_refused("a\nb\nc\n", &format!("@@ -1,3 +1,3 @@\n a\n-b\n+B\n{words}"), "PATCH_TRUNCATED");
        check("a\nb\nc\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n+B\n\n{}", words.replace("- ", "")), "a\nB\nc\n", &[]);
    }
    // a block like it occurs elsewhere, with what is left of the line
    check_refused("0\na\nb\nc1\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", "PATCH_TRUNCATED");
    check("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", "a\nB\nc\n", &["HUNK_COUNTS"]);
    // the other lines do not show how it ended, and so not how the new ones end
    check_refused("a\r\nb\r\nc\r\n", "@@ -1,2 +1,3 @@\n a\r\n+x\n b", "PATCH_TRUNCATED");
    check("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n+x\n b", "a\r\nx\r\nb\r\n", &["HUNK_COUNTS", "LINE_ENDINGS_KEPT"]);
}

/// A diff that stops within an added line, or without the line feed below it, looks whole: the marker, a closing fence or
/// the id of the result proves that it is.
#[test]
fn a_diff_that_ends_in_an_added_line_without_a_line_feed_needs_a_proof() {
    for hunk in [
        "@@ -1 +1 @@\n-a\n+bcd",
        "@@ -1 +1 @@\n-a\n+",
        "@@ -1 +1 @@\n-a\n+ ",
        // more lines than are counted
        "@@ -1 +1 @@\n-a\n+b\n+cd",
        "@@ -1 +1 @@\n-a\n+b\n b\n+cd",
        "@@ -1 +1,9 @@\n-a\n-b\n+c",
        "@@ -1 +1 @@\n-a\n-b\n+c",
        // another line that needs the file as its proof
        "@@ -1,2 +1,3 @@\n a\nb\n+cd",
    ] {
        let failure = check_refused("a\nb\n", hunk, "PATCH_TRUNCATED");
        assert!(!hunk.ends_with("bcd") || failure.hint.unwrap().contains("No newline at end of file"), "{hunk}");
    }
    check("a\n", "@@ -1 +1 @@\n-a\n+bcd\n\\ No newline at end of file", "bcd", &[]);
    check("a\n", "@@ -1 +1 @@\n-a\n+bcd\n", "bcd\n", &[]);
    let diff = diff("@@ -1 +1 @@\n-a\n+bcd");
    for (answer, expected) in [
        (format!("```diff\n{diff}\n```"), Ok("bcd\\n")),
        (format!("Try this:\n\n{diff}\n"), Ok("bcd\\n")),
        (format!("Try this:\n\n{diff}"), Err("PATCH_TRUNCATED")),
    ] {
        let answer = parse(answer.as_bytes(), Some(Dialect::Chat));
        let changed = answer
            .and_then(|answer| apply_batch(&tree(&[("f", b"a\n")]), &answer.batch, &Settings::DEFAULT))
            .map(|changed| shown(&changed.tree["f"].0))
            .map_err(|failures| code(&failures[0]));
        assert_eq!(changed.as_deref().map_err(String::as_str), expected);
    }
}

/// The new id of the index line proves that a diff is whole, or that it is not.
#[test]
fn the_id_of_the_result_proves_the_end_of_a_diff() {
    let before = tree(&[("f", b"a\n"), ("old", b"a\n"), ("e", b"")]);
    // The blobs `bcd\n` and `a\nbcd\n`.
    let (swapped, added) = (blob_id("bcd\n"), blob_id("a\nbcd\n"));
    let base = blob_id("a\n");
    let names = "--- a/f\n+++ b/f\n";
    let modified = |old: &str, new: &str| format!("diff --git a/f b/f\nindex {old}..{new} 100644\n{names}");
    let created = format!("diff --git a/n b/n\nnew file mode 100644\nindex 0000000..{}\n", &swapped[..7]);
    let renamed = format!(
        "diff --git a/old b/new\nsimilarity index 50%\nrename from old\nrename to new\nindex {}..{}\n",
        &base[..7],
        &added[..7]
    );
    for (diff, path, after) in [
        (format!("{}@@ -1 +1 @@\n-a\n+bcd", modified(&base, &swapped)), "f", "bcd\\n"),
        (format!("{}@@ -1 +1 @@\n-a\n+bcd", modified(&base[..7], &swapped[..7])), "f", "bcd\\n"),
        (format!("{}@@ -1 +1,2 @@\n a\n+bcd", modified("0000000", &added[..9])), "f", "a\\nbcd\\n"),
        (format!("{created}--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+bcd"), "n", "bcd\\n"),
        (format!("{renamed}--- a/old\n+++ b/new\n@@ -1 +1,2 @@\n a\n+bcd"), "new", "a\\nbcd\\n"),
    ] {
        for settings in [Settings::DEFAULT, STRICT] {
            let changed =
                apply(&before, diff.as_bytes(), &settings).unwrap_or_else(|found| panic!("{diff}: {found:?}"));
            assert_eq!(shown(&changed.tree[path].0), after, "{diff}");
            assert_eq!(changed.warnings(), ["DIFF_UNTERMINATED"], "{diff}");
        }
        for cut in [&diff[..diff.len() - 1], &diff[..diff.len() - 2]] {
            let failures = apply(&before, cut.as_bytes(), &Settings::DEFAULT).map(|changed| changed.tree).unwrap_err();
            assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["PATCH_TRUNCATED"], "{cut}");
        }
    }
    // Six digits are no proof.
    let short = format!("{}@@ -1 +1 @@\n-a\n+bcd", modified(&base, &swapped[..6]));
    let failures = apply(&before, short.as_bytes(), &Settings::DEFAULT).map(|changed| changed.tree).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["PATCH_TRUNCATED"]);
}

/// A diff that was made from exactly this file and makes another one than it names has a warning.
#[test]
fn another_result_than_the_index_line_names_has_a_warning() {
    let before = tree(&[("f", b"a\n")]);
    let (base, other) = (blob_id("a\n"), blob_id("other\n"));
    let result = blob_id("b\n");
    for (old, new, warnings) in [
        (base.as_str(), result.as_str(), &[][..]),
        (&base, &result[..7], &[]),
        (&base, &other, &["INDEX_DIFFERS"]),
        (&base, &other[..7], &["INDEX_DIFFERS"]),
        (&base, &other[..6], &[]),
        // An abbreviated id is not sure enough.
        (&base[..7], &other, &[]),
    ] {
        let head = format!("diff --git a/f b/f\nindex {old}..{new} 100644\n--- a/f\n+++ b/f\n");
        let changed = apply(&before, format!("{head}@@ -1 +1 @@\n-a\n+b\n").as_bytes(), &Settings::DEFAULT).unwrap();
        assert_eq!(changed.warnings(), warnings, "{old}..{new}");
        assert_eq!(shown(&changed.tree["f"].0), "b\\n");
    }
}

/// A hunk without numbers applies where its lines are, if they are there once and the hunk ends for sure.
#[test]
fn hunks_without_numbers_apply_at_the_only_place_of_their_lines() {
    let five = "a\nb\nc\nd\ne\n";
    for header in ["@@", "@@ ... @@", "@@ @@", "@@ ... @@ fn main()"] {
        let ended = format!("{header}\n b\n-c\n+C\n d\n@@ -5 +5 @@\n-e\n+E\n");
        check(five, &ended, "a\nb\nC\nd\nE\n", &["HUNK_COUNTS"]);
        check(five, &format!("{header}\n-c\n+C\n-- \n2.47.3\n"), "a\nb\nC\nd\ne\n", &["HUNK_COUNTS"]);
        check_refused(five, &format!("{header}\n b\n-c\n+C\n"), "PATCH_MALFORMED.HUNK_HEADER");
        check_refused(five, &format!("{header}\n b\n-c\n+C\n\nThat is all.\n"), "PATCH_MALFORMED.HUNK_HEADER");
        check_refused("b\nc\nb\nc\n", &format!("{header}\n b\n-c\n+C\n-- \n"), "TEXT_NOT_UNIQUE");
        check_refused("b\n", &format!("{header}\n b\n-c\n+C\n-- \n"), "EXPECTED_MISMATCH");
        check_refused("b\n", &format!("{header}\n+c\n-- \n"), "EXPECTED_MISMATCH.NO_CONTEXT");
    }
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
        // added lines at the end of a diff without a line feed, and no id of the result
        (vec![hunk((2, 2), " a\n-b", "+B")], Err("PATCH_TRUNCATED")),
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
