//! FILE-SPEC 3: what a diff makes of files, and what it is refused for.

use aptix_engine::planning::settings::Settings;
use aptix_model::report::{FileStatus, Tier};

use crate::boundary::{code, shown};
use crate::tree::{Changed, Tree, apply, git_apply, tree, words};

const STRICT: Settings<'static> = Settings { recovers: false, ..Settings::DEFAULT };

fn edited(before: &[u8], hunks: &str) -> Result<Changed, Vec<String>> {
    let diff = format!("--- a/f\n+++ b/f\n{hunks}");
    apply(&tree(&[("f", before)]), diff.as_bytes(), &Settings::DEFAULT)
        .map_err(|failures| failures.iter().map(code).collect())
}

/// Asserts what hunks make of a file, and with which warnings; git agrees where there are none.
#[track_caller]
fn check(before: impl AsRef<[u8]>, hunks: &str, after: impl AsRef<[u8]>, warnings: &[&str]) -> Changed {
    let (before, after) = (before.as_ref(), after.as_ref());
    let changed = edited(before, hunks).unwrap();
    assert_eq!(shown(&changed.tree["f"].0), shown(after), "{hunks}");
    assert_eq!(changed.warnings(), warnings, "{hunks}");
    let diff = format!("--- a/f\n+++ b/f\n{hunks}");
    if let Some(found) = git_apply(&tree(&[("f", before)]), diff.as_bytes(), &[]) {
        assert_eq!(shown(&found["f"].0), shown(after), "{hunks}");
    } else {
        assert!(!warnings.is_empty() || !hunks.contains("\n "), "git refuses {hunks}");
    }
    let codes = apply(&tree(&[("f", before)]), diff.as_bytes(), &STRICT);
    assert_eq!(codes.is_ok(), warnings.is_empty(), "nothing is recovered when that is turned off: {hunks}");
    changed
}

#[track_caller]
fn check_refused(before: impl AsRef<[u8]>, hunks: &str, codes: &[&str]) {
    assert_eq!(edited(before.as_ref(), hunks).unwrap_err(), codes, "{hunks}");
}

/// Lines are where the header says, and change byte by byte.
#[test]
fn hunks_change_lines_where_they_say() {
    let five = "a\nb\nc\nd\ne\n";
    let changed = check(five, "@@ -1,5 +1,6 @@\n a\n-b\n+B\n+BB\n c\n d\n e\n", "a\nB\nBB\nc\nd\ne\n", &[]);
    let [report] = changed.reports[0].changes.as_slice() else { panic!("one hunk") };
    assert_eq!((report.tier, report.candidates, report.start_line, report.end_line), (Tier::Exact, 1, 2, 3));
    check(five, "@@ -1,2 +1 @@\n-a\n b\n@@ -4,2 +3,3 @@\n d\n+x\n e\n", "b\nc\nd\nx\ne\n", &[]);
    check("", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", &[]);
    check("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", "", &[]);
    check("a\nb\n", "@@ -1,2 +1,3 @@\n+x\n a\n b\n", "x\na\nb\n", &[]);
    check("a\r\nb\n", "@@ -1,2 +1,2 @@\n-a\r\n+x\r\n b\n", "x\r\nb\n", &[]);
    check("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\nb\r\n", &[]);
    check(b"\xff\nb\n", "@@ -2 +2 @@\n-b\n+x\n", b"\xff\nx\n", &[]);
    check("\u{feff}a\nb\n", "@@ -1,2 +1,2 @@\n-\u{feff}a\n+\u{feff}x\n b\n", "\u{feff}x\nb\n", &[]);
    check("\u{feff}a\nb\n", "@@ -1,2 +1,2 @@\n-\u{feff}a\n+a\n b\n", "a\nb\n", &[]);
    let marked = "@@ -1,2 +1,2 @@\n-a\n+\u{feff}a\n b\n";
    check("a\nb\n", marked, "\u{feff}a\nb\n", &[]);
    check_refused("\u{feff}a\nb\n", marked, &["ALREADY_APPLIED"]);
    check_refused("\u{feff}a\nc\n", "@@ -1 +1,2 @@\n-a\n+\u{feff}a\n+b\n", &["EXPECTED_MISMATCH"]);
    // a hunk without context is where it says, or nowhere
    check("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+x\n", "a\nx\nc\n", &[]);
    check_refused("a\nb\nc\n", "@@ -0,0 +1 @@\n+x\n", &["EXPECTED_MISMATCH.NO_CONTEXT"]);
    check("a\nb\nc\n", "@@ -3,0 +4 @@\n+x\n", "a\nb\nc\nx\n", &[]);
    check_refused("a\nb\nc\n", "@@ -3 +3 @@\n-b\n+x\n", &["EXPECTED_MISMATCH"]);
    check_refused("a\nb\nc\n", "@@ -2,0 +3 @@\n+x\n", &["PATCH_UNSUPPORTED.NO_CONTEXT"]);
    check_refused("a\nb\nc\nb\n", "@@ -2 +2 @@\n-b\n+x\n", &["TEXT_NOT_UNIQUE.NO_CONTEXT"]);
}

/// The last line of a file may have no terminator, on one side or on both.
#[test]
fn the_end_of_a_file_is_what_the_diff_says() {
    let none = "\\ No newline at end of file\n";
    check("a\nb", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+b\n"), "a\nb\n", &[]);
    check("a\nb\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{none}"), "a\nb", &[]);
    check("a\nb", &format!("@@ -1,2 +1,2 @@\n-a\n+x\n b\n{none}"), "x\nb", &[]);
    check("a\nb", &format!("@@ -1,2 +1 @@\n a\n-b\n{none}"), "a\n", &[]);
    check("", &format!("@@ -0,0 +1 @@\n+a\n{none}"), "a", &[]);
    check_refused("a\nb\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+b\n"), &["ALREADY_APPLIED"]);
    check_refused("a\nb\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+x\n"), &["EXPECTED_MISMATCH.LINE_ENDINGS"]);
    check_refused("a\nb\nc\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{none}"), &["EXPECTED_MISMATCH.LINE_ENDINGS"]);
    check_refused("a\nb", "@@ -2,0 +3 @@\n+x\n", &["EXPECTED_MISMATCH.NO_CONTEXT"]);
    // of a line that has one, the marker is below one side only, or in the middle
    check_refused("a\nb\n", &format!("@@ -1,2 +1,2 @@\n-a\n{none}+x\n b\n"), &["PATCH_MALFORMED.END_OF_FILE"]);
    check_refused("a\nb\n", &format!("@@ -1,2 +1,3 @@\n a\n+x\n{none} b\n"), &["PATCH_MALFORMED.END_OF_FILE"]);
}

/// Lines that occur elsewhere, once, are changed there with a warning; lines that occur nowhere or twice are refused.
#[test]
fn lines_that_moved_are_found_only_if_there_is_one_place() {
    let hunk = "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n";
    let changed = check("0\n0\na\nb\nc\n", hunk, "0\n0\na\nx\nc\n", &["HUNK_OFFSET"]);
    let [report] = changed.reports[0].changes.as_slice() else { panic!("one hunk") };
    assert_eq!((report.tier, report.start_line, report.end_line), (Tier::Exact, 4, 4));
    check_refused("0\na\nb\nc\na\nb\nc\n", hunk, &["TEXT_NOT_UNIQUE"]);
    check("a\nb\nc\na\nb\nc\n", hunk, "a\nx\nc\na\nb\nc\n", &[]);
    check_refused("a\nB\nc\n", hunk, &["EXPECTED_MISMATCH"]);
    check_refused("", hunk, &["EXPECTED_MISMATCH"]);
    // line 0, or one far below the end
    check("0\na\nb\nc\n", "@@ -0,3 +0,3 @@\n a\n-b\n+x\n c\n", "0\na\nx\nc\n", &["HUNK_OFFSET"]);
    check("a\nb\nc\n", "@@ -900,3 +900,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", &["HUNK_OFFSET"]);
    check_refused("a\nb\nc\n", "@@ -900,3 +900,3 @@\n a\n-y\n+x\n c\n", &["EXPECTED_MISMATCH"]);
    // where the header says with other ends, and elsewhere with the same ones
    for added in [hunk, "@@ -1,3 +1,4 @@\n+x\n a\n b\n c\n", "@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n"] {
        check_refused("a\r\nb\r\nc\r\n0\na\nb\nc\n", added, &["TEXT_NOT_UNIQUE"]);
        check_refused("a\r\nb\nc\n0\na\nb\nc\n", added, &["TEXT_NOT_UNIQUE"]);
    }
    // headers whose two sides put the hunk in two places
    check("a\nb\nc\n0\n", "@@ -1,3 +2,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n0\n", &[]);
    check_refused("a\nb\nc\n0\na\nb\nc\n", "@@ -1,3 +5,3 @@\n a\n-b\n+x\n c\n", &["TEXT_NOT_UNIQUE"]);
    // lines that also occur in what the hunk above leaves
    let two = "@@ -1,2 +1,4 @@\n k\n+a\n+b\n l\n@@ -9,2 +11,2 @@\n a\n-b\n+x\n";
    check_refused("k\nl\n0\na\nb\n", two, &["TEXT_NOT_UNIQUE"]);
    let within = "@@ -1,2 +1,4 @@\n k\n+a\n+a\n l\n@@ -9,3 +11,3 @@\n a\n a\n-a\n+x\n";
    check_refused("k\nl\n0\na\na\na\na\n", within, &["TEXT_NOT_UNIQUE"]);
}

/// The work of looking for lines that moved is bounded.
#[test]
fn a_search_that_takes_too_long_says_what_helps_a_diff() {
    let hunk = format!("@@ -1,200001 +1,200001 @@\n{}-y\n+z\n", " x\n".repeat(200_000));
    let diff = format!("--- a/f\n+++ b/f\n{hunk}");
    let before = "x\n".repeat(400_000);
    let failures = apply(&tree(&[("f", before.as_bytes())]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["MATCH_BUDGET_EXCEEDED"]);
    let Some(hint) = &failures[0].hint else { panic!("{failures:?}") };
    assert!(hint.contains("line numbers") && !failures[0].message.contains("old text"), "{failures:?}");
}

/// Hunks are listed top to bottom, and none reaches into another.
#[test]
fn hunks_out_of_order_are_refused() {
    let three = "a\nb\nc\nd\n";
    for hunks in [
        "@@ -3 +3 @@\n-c\n+x\n@@ -1 +1 @@\n-a\n+y\n",
        "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n@@ -3,2 +3,2 @@\n c\n-d\n+y\n",
        "@@ -9,2 +9,2 @@\n c\n-d\n+y\n@@ -11,2 +11,2 @@\n-a\n+x\n b\n",
    ] {
        check_refused(three, hunks, &["PATCH_MALFORMED.HUNK_ORDER"]);
    }
}

/// Lines that differ in their ends alone keep the file's, if the diff is not about them.
#[test]
fn a_file_keeps_its_line_endings() {
    let kept = &["LINE_ENDINGS_KEPT"][..];
    let hunk = "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n";
    let changed = check("a\r\nb\r\nc\r\n", hunk, "a\r\nx\r\ny\r\nc\r\n", kept);
    assert_eq!(changed.reports[0].changes[0].tier, Tier::Eol);
    check("a\r\nb\r\nc", hunk, "a\r\nx\r\ny\r\nc", kept);
    check("a\r\nb\nc\r\n", hunk, "a\r\nx\ny\nc\r\n", kept);
    check("0\r\na\r\nb\r\nc\r\n", hunk, "0\r\na\r\nx\r\ny\r\nc\r\n", &["HUNK_OFFSET", "LINE_ENDINGS_KEPT"]);
    check("a\nb\nc\n", &hunk.replace('\n', "\r\n"), "a\nx\ny\nc\n", kept);
    check("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc", kept);
    check("a\nb", "@@ -1,2 +1 @@\n a\n-b\n", "a", kept);
    check("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb\r\nc\r\n", kept);
    check("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n+0\n a\n b\n", "0\r\na\r\nb\r\n", kept);
    check("a\r\nb\r\n", "@@ -1 +1 @@\n-a\n+x\n", "x\r\nb\r\n", kept);
    check("a\nb\n", "@@ -2 +2 @@\r\n-b\r\n+x\r\n", "a\nx\n", kept);
    let ends = &["EXPECTED_MISMATCH.LINE_ENDINGS"];
    check_refused("a\nb\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n", ends);
    check_refused("a\r\nb \r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", &["EXPECTED_MISMATCH"]);
}

/// Counts and names that are wrong, and can be understood, come with a warning.
#[test]
fn wrong_counts_and_missing_prefixes_are_said() {
    check_refused("a\nb\nc\n", "@@ -1,9 +1,9 @@\n a\n-b\n+x\n c\n", &["PATCH_TRUNCATED"]);
    check("a\nb\nc\n", "@@ -1 +1 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", &["HUNK_COUNTS"]);
    let two = "@@ -1,2 +1,2 @@\n a\n-b\n+x\n+y\n@@ -4,2 +4,2 @@\n d\n-e\n+z\n";
    check("a\nb\nc\nd\ne\n", two, "a\nx\ny\nc\nd\nz\n", &["HUNK_COUNTS"]);
    let changed = apply(&tree(&[("d/f", b"a\n")]), b"--- d/f\n+++ d/f\n@@ -1 +1 @@\n-a\n+b\n", &Settings::DEFAULT);
    assert_eq!(changed.unwrap().warnings(), ["NO_PREFIX"]);
    for (diff, expected) in [
        (&b"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"[..], "PATCH_MALFORMED.PREFIX"),
        (b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+x\n", "PATCH_MALFORMED.COUNTS"),
        (b"--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n-a\n+b\n c\n", "EXPECTED_MISMATCH.OFFSET"),
        (b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\r\n+b\r\n c\r\n", "EXPECTED_MISMATCH.LINE_ENDINGS"),
    ] {
        let failures = apply(&tree(&[("f", b"a\nc\n")]), diff, &STRICT).unwrap_err();
        assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), [expected]);
        assert!(apply(&tree(&[("f", b"a\nc\n")]), diff, &Settings::DEFAULT).is_ok());
    }
}

/// FILE-SPEC-8.5: a file that was changed where the diff changes it is left alone; one that has every change is known.
#[test]
fn local_changes_are_never_overwritten() {
    let hunks = "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n@@ -8,3 +8,4 @@\n h\n i\n+y\n j\n";
    let before = b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    let after = check(before, hunks, "a\nx\nc\nd\ne\nf\ng\nh\ni\ny\nj\n", &[]).tree["f"].0.clone();
    check_refused(&after, hunks, &["ALREADY_APPLIED"]);
    check_refused("a\nmine\nc\nd\ne\nf\ng\nh\ni\nj\n", hunks, &["EXPECTED_MISMATCH"]);
    check_refused("a\nmine\nc\nd\ne\nf\ng\nh\nmine\nj\n", hunks, &["EXPECTED_MISMATCH", "EXPECTED_MISMATCH"]);
    let diff = format!("--- a/f\n+++ b/f\n{hunks}");
    let failures = apply(&tree(&[("f", b"a\nmine\nc\nd\n")]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
    let first = &failures[0];
    assert_eq!((first.file_index, first.path.as_deref(), first.change_index), (Some(0), Some("f"), Some(0)));
    assert_eq!((first.line, first.nearest[0].text.as_str()), (Some(2), "a\nmine\nc"));
    assert_eq!(first.current_sha256, Some(aptix_engine::digest::sha256(b"a\nmine\nc\nd\n")));
}

/// One failure leaves every file alone.
#[test]
fn one_file_that_does_not_fit_refuses_all() {
    let diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n";
    let failures = apply(&tree(&[("f", b"a\n"), ("g", b"x\n")]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["EXPECTED_MISMATCH"]);
    assert_eq!(failures[0].path.as_deref(), Some("g"));
}

/// The tree that some words say.
fn of_words(words: &[&str]) -> Tree {
    let file = |word: &&str| {
        let (path, content) = word.split_once('=').unwrap();
        let is_executable = path.starts_with('*');
        (path.trim_start_matches('*').to_owned(), (content.replace("\\n", "\n").into_bytes(), is_executable))
    };
    words.iter().map(file).collect()
}

/// Applies a diff; git agrees, and with the diff that is shown for it.
fn check_as_in_git(before: &Tree, diff: &str, after: &Tree, statuses: &[FileStatus]) {
    let changed =
        apply(before, diff.as_bytes(), &Settings::DEFAULT).unwrap_or_else(|failures| panic!("{diff}: {failures:?}"));
    assert_eq!(words(&changed.tree), words(after), "{diff}");
    assert_eq!(changed.reports.iter().map(|report| report.status).collect::<Vec<_>>(), statuses, "{diff}");
    assert_eq!(changed.warnings(), [""; 0], "{diff}");
    let shown_diff = String::from_utf8_lossy(&changed.diff);
    for (whose, diff) in [("the author's", diff), ("the shown", &*shown_diff)] {
        let found = git_apply(before, diff.as_bytes(), &[]).unwrap_or_else(|| panic!("git refuses {whose} {diff}"));
        assert_eq!(words(&found), words(&changed.tree), "{whose} {diff}");
    }
    let again = apply(before, &changed.diff, &STRICT).unwrap();
    assert_eq!(words(&again.tree), words(&changed.tree), "{shown_diff}");
}

/// Files come, go, move, are copied and get other modes; git agrees, and with the diff that is shown for it.
#[test]
fn files_come_and_go_as_in_git() {
    use FileStatus::{Created, Deleted, Modified, Renamed};
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    type Case<'a> = (&'a [&'a str], String, &'a [&'a str], &'a [FileStatus]);
    let cases: Vec<Case<'_>> = vec![
        (
            &[],
            "diff --git a/d/f b/d/f\nnew file mode 100644\n--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+x\n".into(),
            &["d/f=x\\n"],
            &[Created],
        ),
        (&[], "diff --git a/f b/f\nnew file mode 100755\nindex 0000000..e69de29\n".into(), &["*f="], &[Created]),
        (
            &["f=a\\n"],
            "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n".into(),
            &[],
            &[Deleted],
        ),
        (&["f="], "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n".into(), &[], &[Deleted]),
        (&["f=a\\n"], "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n".into(), &["*f=a\\n"], &[Modified]),
        (
            &["*f=a\\n"],
            format!("diff --git a/f b/f\nold mode 100755\nnew mode 100644\n--- a/f\n+++ b/f\n{hunk}"),
            &["f=b\\n"],
            &[Modified],
        ),
        (&["*f=a\\n"], format!("--- a/f\n+++ b/f\n{hunk}"), &["*f=b\\n"], &[Modified]),
        (
            &["*e=a\\n"],
            "diff --git a/e b/d/f g\nsimilarity index 100%\nrename from e\nrename to d/f g\n".into(),
            &["*d/f g=a\\n"],
            &[Renamed],
        ),
        (
            &["e=a\\n"],
            format!(
                "diff --git a/e b/f\nold mode 100644\nnew mode 100755\nrename from e\nrename to f\n--- a/e\n+++ b/f\n{hunk}"
            ),
            &["*f=b\\n"],
            &[Renamed],
        ),
        (
            &["*e=a\\n"],
            "diff --git a/e b/f\nsimilarity index 100%\ncopy from e\ncopy to f\n".into(),
            &["*e=a\\n", "*f=a\\n"],
            &[Created],
        ),
        (
            &["e=a\\n"],
            format!(
                "diff --git a/e b/f\ncopy from e\ncopy to f\n--- a/e\n+++ b/f\n{hunk}diff --git a/e b/e\n--- a/e\n+++ b/e\n@@ -1 +1 @@\n-a\n+c\n"
            ),
            &["e=c\\n", "f=b\\n"],
            &[Created, Modified],
        ),
    ];
    for (before, diff, after, statuses) in cases {
        check_as_in_git(&of_words(before), &diff, &of_words(after), statuses);
    }
}

/// Files that take each other's names, in whatever order the diff names them, and with changes; git agrees.
#[test]
fn files_swap_and_hand_over_their_names() {
    let hunk = |from: &str, to: &str| format!("--- a/{from}\n+++ b/{to}\n@@ -1 +1 @@\n-{from}\n+{from}{to}\n");
    let edited = |from: &str, to: &str| moved(from, to) + &hunk(from, to);
    let cases: &[(String, &[&str])] = &[
        (moved("f", "g") + &moved("g", "f"), &["f=g\\n", "g=f\\n", "h=h\\n"]),
        (edited("f", "g") + &edited("g", "f"), &["f=gf\\n", "g=fg\\n", "h=h\\n"]),
        (moved("f", "g") + &moved("g", "h") + &moved("h", "f"), &["f=h\\n", "g=f\\n", "h=g\\n"]),
        (moved("g", "h") + &edited("f", "g") + &moved("h", "f"), &["f=h\\n", "g=fg\\n", "h=g\\n"]),
        (moved("f", "g") + &moved("g", "i"), &["g=f\\n", "h=h\\n", "i=g\\n"]),
        (moved("g", "i") + &moved("f", "g"), &["g=f\\n", "h=h\\n", "i=g\\n"]),
        (moved("f", "F"), &["F=f\\n", "g=g\\n", "h=h\\n"]),
        (edited("f", "F"), &["F=fF\\n", "g=g\\n", "h=h\\n"]),
        (moved("f", "G") + &moved("g", "F"), &["F=g\\n", "G=f\\n", "h=h\\n"]),
    ];
    let before = tree(&[("f", b"f\n"), ("g", b"g\n"), ("h", b"h\n")]);
    for (diff, after) in cases {
        let changed =
            apply(&before, diff.as_bytes(), &Settings::DEFAULT).unwrap_or_else(|why| panic!("{diff}: {why:?}"));
        assert_eq!(words(&changed.tree), *after, "{diff}");
        assert!(changed.reports.iter().all(|report| report.status == FileStatus::Renamed), "{diff}");
        let found = git_apply(&before, diff.as_bytes(), &[]).map(|tree| words(&tree));
        assert_eq!(found.unwrap_or_default(), *after, "{diff}");
    }
}

/// The index line of a change of a file with the line `a`.
const SHA1: &str = "index 78981922613b2afb6025042ff6bd878ac1994e85..0000000000000000000000000000000000000000";

/// A diff of the line `a` with an index line.
fn id(index: &str) -> String {
    format!("diff --git a/f b/f\n{index} 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
}

/// A diff that makes a file.
const CREATE: &str = "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";

fn moved(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n")
}

/// Asserts that each diff is refused for the files that some words say, and with which code.
fn check_all_refused(cases: Vec<(&[&str], String, &str)>) {
    for (before, diff, expected) in cases {
        let failures = apply(&of_words(before), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
        assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), [expected], "{diff}");
        assert!(failures.iter().all(|failure| failure.hint.is_some()), "{diff}");
    }
}

/// What a file must be for a diff to make it, take it away, move it or copy it.
#[test]
fn files_that_are_not_as_the_diff_wants_are_left_alone() {
    let delete = "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    let rename = "diff --git a/f b/g\nrename from f\nrename to g\n";
    let copy = "diff --git a/f b/g\ncopy from f\ncopy to g\n";
    let wrong = "index 1111111111111111111111111111111111111111..1111111111111111111111111111111111111111";
    let cases: Vec<(&[&str], String, &str)> = vec![
        (&["f=y\\n"], CREATE.into(), "FILE_EXISTS"),
        (&["f=x\\n"], CREATE.into(), "FILE_EXISTS"),
        (&[], format!("{CREATE}{CREATE}"), "INVALID_REQUEST.DUPLICATE_PATH"),
        (&["f=a\\n"], format!("{delete}{CREATE}{CREATE}"), "INVALID_REQUEST.DUPLICATE_PATH"),
        (&[], delete.into(), "FILE_MISSING"),
        (&["f=b\\n"], delete.into(), "EXPECTED_MISMATCH"),
        (&["f=a\\nb\\n"], delete.into(), "EXPECTED_MISMATCH"),
        (&["f="], delete.into(), "EXPECTED_MISMATCH"),
        (&["f=a\\n"], "diff --git a/f b/f\ndeleted file mode 100644\n".into(), "EXPECTED_MISMATCH"),
        (&["f=a\\n"], delete.replace("@@ -1 +0,0 @@\n-a", "@@ -1 +1 @@\n a"), "PATCH_MALFORMED.LINE_KIND"),
        (&[], CREATE.replace("@@ -0,0 +1 @@\n+x", "@@ -1 +1,2 @@\n a\n+x"), "PATCH_MALFORMED.LINE_KIND"),
        (&[], CREATE.replace("+x", "+x\0"), "NOT_TEXT.BINARY"),
        (&[], rename.into(), "FILE_MISSING"),
        (&["g=a\\n"], rename.into(), "FILE_MISSING"),
        (&["f=a\\n", "g=a\\n"], rename.into(), "FILE_EXISTS"),
        (&[], copy.into(), "FILE_MISSING"),
        (&["f=a\\n", "g=a\\n"], copy.into(), "FILE_EXISTS"),
        (
            &["f=a\\n"],
            "diff --git a/f b/G\nrename from f\nrename to G\ndiff --git a/g b/g\nnew file mode 100644\nindex 0000000..e69de29\n".into(),
            "AMBIGUOUS_PATH.CASE_COLLISION",
        ),
        // Only a file that is renamed gives its name up, and to one other file.
        (&["f=a\\n", "g=b\\n", "h=c\\n"], format!("{}{}", moved("f", "h"), moved("g", "f")), "FILE_EXISTS"),
        (
            &["f=a\\n", "g=b\\n", "h=c\\n"],
            format!("{}{}{}", moved("f", "g"), moved("h", "g"), moved("g", "i")),
            "INVALID_REQUEST.DUPLICATE_PATH",
        ),
        (&["f=a\\n"], format!("{}{}", moved("f", "g"), moved("f", "h")), "INVALID_REQUEST.DUPLICATE_PATH"),
        (&["f=a\\n"], format!("{}{}", moved("f", "F"), moved("g", "h")), "FILE_MISSING"),
        (&["f=a\\n", "g=b\\n"], format!("{}{}", moved("f", "H"), moved("g", "h")), "AMBIGUOUS_PATH.CASE_COLLISION"),
        (&["d/f=a\\n"], moved("d/f", "D/f"), "AMBIGUOUS_PATH.CASE_COLLISION"),
        (
            &["f=a\\n", "g=a\\n"],
            format!("{}{}{}", id("index 1111111..2222222").replace("/f", "/g"), moved("f", "g"), moved("g", "f")),
            "INVALID_REQUEST.DUPLICATE_PATH",
        ),
        // Which of the two files that have the name is not sure; git refuses it too.
        (
            &["f=a\\n", "g=a\\n"],
            format!("{}{}diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", moved("f", "g"), moved("g", "f")),
            "INVALID_REQUEST.DUPLICATE_PATH",
        ),
        (&["f=a\\n"], moved("f", "f/g"), "INVALID_REQUEST.PREFIX_CONFLICT"),
        (&["f=a\\n"], id(wrong), "INDEX_MISMATCH"),
        (&["f=a\\n"], format!("diff --git a/f b/g\nrename from f\nrename to g\n{wrong}\n"), "INDEX_MISMATCH"),
        (&["f=b\\n"], id(SHA1), "ALREADY_APPLIED"),
        (&[], "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n".into(), "FILE_MISSING"),
    ];
    check_all_refused(cases);
}

/// Paths that no diff may name.
#[test]
fn paths_outside_of_what_a_diff_may_name_are_refused() {
    let cases: Vec<(&[&str], String, &str)> = vec![
        (&[], "diff --git a/../outside b/f\ncopy from ../outside\ncopy to f\n".into(), "INVALID_PATH.TRAVERSAL"),
        (&[], "diff --git a//etc/hostname b/f\ncopy from /etc/hostname\ncopy to f\n".into(), "INVALID_PATH.ABSOLUTE"),
        (&[], "diff --git a/.git/config b/f\ncopy from .git/config\ncopy to f\n".into(), "POLICY_DENIED.PROTECTED"),
        // Secrets are the caller's to close: no one else knows who asks.
        (&[], "diff --git a/.env b/f\ncopy from .env\ncopy to f\n".into(), "FILE_MISSING"),
        (&[], "diff --git a/../outside b/f\nrename from ../outside\nrename to f\n".into(), "INVALID_PATH.TRAVERSAL"),
        (&[], "diff --git a/f b/../outside\nrename from f\nrename to ../outside\n".into(), "INVALID_PATH.TRAVERSAL"),
        (&[], "--- a/a/../f\n+++ b/a/../f\n@@ -1 +1 @@\n-a\n+b\n".into(), "INVALID_PATH.TRAVERSAL"),
        (&[], "--- /dev/null\n+++ \"b/\\056\\056/x\"\n@@ -0,0 +1 @@\n+b\n".into(), "INVALID_PATH.TRAVERSAL"),
        (&[], "--- /dev/null\n+++ \"b/x\\ny\"\n@@ -0,0 +1 @@\n+b\n".into(), "INVALID_PATH.CONTROL"),
        (&[], "--- /dev/null\n+++ \"b/x\\\\y\"\n@@ -0,0 +1 @@\n+b\n".into(), "INVALID_PATH.BACKSLASH"),
        (&[], "--- /dev/null\n+++ \"b/x\\\"y\"\n@@ -0,0 +1 @@\n+b\n".into(), "INVALID_PATH.CHAR"),
        (&[], "diff --git a/x:y b/x:y\nnew file mode 100644\nindex 0000000..e69de29\n".into(), "INVALID_PATH.COLON"),
        (&["f=a\\n"], "diff --git a/f \"b/x\\\"y\"\nrename from f\nrename to \"x\\\"y\"\n".into(), "INVALID_PATH.CHAR"),
        (&[], "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+b\n".into(), "POLICY_DENIED.PROTECTED"),
    ];
    check_all_refused(cases);
}

/// The full id of an index line stands for the file, whatever the context; not for numbers that contradict each other.
#[test]
fn the_id_of_the_file_is_evidence() {
    let sha256 = "index f8625e43f9e04f24291f77cdbe4c71b3c2a3b0003f60419b3ed06a058d766c8b..1111111111111111111111111111111111111111111111111111111111111111";
    // Where both numbers of a hunk without context contradict each other, the id of the file does not help.
    let add = |numbers: &str| {
        let index = "index de980441c3ab03a8c07dda1ad27b8a11f39deb1e..1111111111111111111111111111111111111111 100644";
        let diff = format!("diff --git a/f b/f\n{index}\n--- a/f\n+++ b/f\n@@ {numbers} @@\n+x\n");
        let changed = apply(&of_words(&["f=a\\nb\\nc\\n"]), diff.as_bytes(), &Settings::DEFAULT);
        changed.map(|changed| words(&changed.tree)).map_err(|failures| failures.iter().map(code).collect::<Vec<_>>())
    };
    for (numbers, expected) in [
        ("-3,0 +4", Ok("f=a\\nb\\nc\\nx\\n")),
        ("-2,0 +3", Err("PATCH_UNSUPPORTED.NO_CONTEXT")),
        ("-3,0 +2", Err("EXPECTED_MISMATCH.NO_CONTEXT")),
        ("-2,0 +4", Err("PATCH_UNSUPPORTED.NO_CONTEXT")),
    ] {
        let expected = expected.map(|word: &str| vec![word.to_owned()]).map_err(|code: &str| vec![code.to_owned()]);
        assert_eq!(add(numbers), expected, "{numbers}");
    }
    for index in [SHA1, sha256, "index 1111111..2222222", "index 7898192..2222222"] {
        assert!(apply(&of_words(&["f=a\\n"]), id(index).as_bytes(), &Settings::DEFAULT).is_ok(), "{index}");
    }
    let crlf = apply(
        &tree(&[("f", b"a\r\n")]),
        id(SHA1).replace("@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\r\n+b\r\n").as_bytes(),
        &STRICT,
    );
    assert_eq!(words(&crlf.unwrap().tree), ["f=b\\r\\n"], "git keeps the text with line feeds alone");
}
