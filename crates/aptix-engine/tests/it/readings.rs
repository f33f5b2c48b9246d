//! Names of a diff that can be read in several ways: decided by the files that exist, one way for the whole diff.

use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::validate::validate_open;
use aptix_model::documents::{Dialect, parse};
use aptix_model::limits::Limits;

use crate::boundary::code;
use crate::tree::{apply, git_apply, tree, words};

const HUNK: &str = "@@ -1 +1 @@\n-a\n+x\n";

/// Asserts which files a diff changes among those there are, each of which holds `a`; or `REASON.DETAIL` and what a message
/// must name.
#[track_caller]
fn check(diff: &str, files: &[&str], expected: Result<&[&str], (&str, &[&str])>) {
    let files: Vec<(&str, &[u8])> = files.iter().map(|path| (*path, &b"a\n"[..])).collect();
    let document = parse(diff.as_bytes(), Some(Dialect::GitPatch)).unwrap();
    assert_eq!(validate_open(&document.batch, &Limits::DEFAULT), Ok(()), "a server stores it: {diff}");
    match (apply(&tree(&files), diff.as_bytes(), &Settings::DEFAULT), expected) {
        (Ok(changed), Ok(expected)) => {
            let is_other = |(path, now): (&String, &(Vec<u8>, bool))| {
                let was = files.iter().find(|(other, _)| other == path).map(|(_, content)| *content);
                (was != Some(now.0.as_slice())).then(|| path.clone())
            };
            let found: Vec<_> = changed.tree.iter().filter_map(is_other).collect();
            assert_eq!(found, expected, "{diff}");
        }
        (Err(failures), Err((expected, named))) => {
            assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), [expected], "{diff}");
            for name in named {
                assert!(failures[0].message.contains(&format!("{name:?}")), "{name} in {failures:?}");
            }
        }
        (found, _) => panic!("{diff}{found:?}"),
    }
}

fn plain(old: &str, new: &str) -> String {
    format!("--- {old}\n+++ {new}\n{HUNK}")
}

/// Whether `a/` is a prefix or a directory, the files that exist say.
#[test]
fn prefixes_are_read_by_the_files_that_exist() {
    let both = Err(("AMBIGUOUS_PATH.NAMES", &["f", "a/f"][..]));
    for (old, new) in [("a/f", "b/f"), ("a/f", "a/f")] {
        check(&plain(old, new), &["f"], Ok(&["f"]));
        check(&plain(old, new), &["a/f"], Ok(&["a/f"]));
        check(&plain(old, new), &["f", "a/f"], both);
        check(&plain(old, new), &["f", "a/g"], Ok(&["f"]));
        check(&plain(old, new), &["g"], Err(("FILE_MISSING", &[])));
    }
    check(&format!("diff --git a/f a/f\n{}", plain("a/f", "a/f")), &["a/f"], Ok(&["a/f"]));
    check(
        &format!("diff --git b/f b/f\n{}", plain("b/f", "b/f")),
        &["b/f", "f"],
        Err(("AMBIGUOUS_PATH.NAMES", &["f", "b/f"])),
    );
    // git's own form leaves no question
    check(&format!("diff --git a/f b/f\n{}", plain("a/f", "b/f")), &["f", "a/f", "b/f"], Ok(&["f"]));
    check(&format!("diff --git a/a/f b/a/f\n{}", plain("a/a/f", "b/a/f")), &["f", "a/f"], Ok(&["a/f"]));
    check(&plain("src/f", "src/f"), &["src/f", "f"], Ok(&["src/f"]));
    check(&plain("old/f", "new/f"), &["f"], Ok(&["f"]));
    check(&plain("old/f", "new/f"), &["old/f"], Ok(&["old/f"]));
    check(&plain("old/f", "new/f"), &["old/f", "new/f"], Err(("AMBIGUOUS_PATH.NAMES", &["old/f", "new/f"])));
}

/// One reading holds for all files of a diff.
#[test]
fn one_reading_holds_for_the_whole_diff() {
    let two = plain("a/f", "b/f") + &plain("a/g", "b/g");
    check(&two, &["f", "g"], Ok(&["f", "g"]));
    check(&two, &["a/f", "a/g"], Ok(&["a/f", "a/g"]));
    // what one file leaves open, the other one decides
    check(&two, &["f", "a/f", "g"], Ok(&["f", "g"]));
    check(&two, &["f", "a/f", "a/g"], Ok(&["a/f", "a/g"]));
    let none = apply(&tree(&[("f", b"a\n"), ("a/g", b"a\n")]), two.as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!(none.iter().map(code).collect::<Vec<_>>(), ["AMBIGUOUS_PATH.NAMES"; 2]);
    check(&two, &["f"], Err(("FILE_MISSING", &[])));
    // a name that git wrote with a prefix shows that all have one
    let git = format!("diff --git a/g b/g\n{}{}", plain("a/g", "b/g"), plain("a/f", "a/f"));
    check(&git, &["g", "f", "a/f"], Ok(&["f", "g"]));
}

/// Names that are alike behind what may be a prefix are those of different files, where the diff has no prefixes.
#[test]
fn files_of_directories_called_a_and_b_are_not_taken_for_one() {
    let file = |path: &str, hunk: &str| format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n{hunk}");
    let (top, bottom) = ("@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "@@ -3,2 +3,2 @@\n c\n-d\n+y\n");
    let content: &[u8] = b"a\nb\nc\nd\n";
    let moved = "diff --git a/g a/h\nsimilarity index 100%\nrename from a/g\nrename to a/h\n";
    let cases = [
        (file("f", top) + &file("a/f", bottom), vec!["f", "a/f"], vec!["a/f=a\\nb\\nc\\ny\\n", "f=x\\nb\\nc\\nd\\n"]),
        (
            file("a/f", top) + &file("b/f", bottom),
            vec!["a/f", "b/f"],
            vec!["a/f=x\\nb\\nc\\nd\\n", "b/f=a\\nb\\nc\\ny\\n"],
        ),
        (
            file("a/f", top) + &file("a/f", bottom),
            vec!["a/f", "b/f"],
            vec!["a/f=x\\nb\\nc\\ny\\n", "b/f=a\\nb\\nc\\nd\\n"],
        ),
        (
            moved.to_owned() + &file("a/f", top),
            vec!["a/f", "a/g"],
            vec!["a/f=x\\nb\\nc\\nd\\n", "a/h=a\\nb\\nc\\nd\\n"],
        ),
    ];
    for (diff, files, expected) in cases {
        let files: Vec<(&str, &[u8])> = files.into_iter().map(|path| (path, content)).collect();
        let changed = apply(&tree(&files), diff.as_bytes(), &Settings::DEFAULT);
        let changed = changed.unwrap_or_else(|failures| panic!("{diff}{failures:?}"));
        assert_eq!(words(&changed.tree), expected, "{diff}");
    }
    // The names of a rename are there in full, and show that others have no prefixes.
    let diff = moved.to_owned() + &file("a/f", top);
    let files = tree(&[("f", content), ("a/f", content), ("a/g", content)]);
    let changed = apply(&files, diff.as_bytes(), &Settings::DEFAULT).unwrap();
    let expected = ["a/f=x\\nb\\nc\\nd\\n", "a/h=a\\nb\\nc\\nd\\n", "f=a\\nb\\nc\\nd\\n"];
    assert_eq!(words(&changed.tree), expected, "{diff}");
    // Without prefixes, one of them is not the other.
    let diff = file("f", top) + &file("a/f", bottom);
    let failures = apply(&tree(&[("f", content)]), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["FILE_MISSING"], "{diff}");
}

/// A section without prefixes shows that a diff has none, and that names which are alike on both sides begin with a directory.
#[test]
fn a_diff_without_prefixes_has_none_in_any_of_its_files() {
    let git = |path: &str| format!("diff --git {path} {path}\n{}", plain(path, path));
    let mode = |path: &str| git(path).replace("--- ", "old mode 100644\nnew mode 100755\n--- ");
    let new = |path: &str| {
        format!("diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n")
    };
    check(&(git("f") + &git("a/f")), &["f", "a/f"], Ok(&["a/f", "f"]));
    check(&(mode("a/f") + &git("f")), &["f", "a/f"], Ok(&["a/f", "f"]));
    check(&(git("src/f") + &new("a/n")), &["src/f"], Ok(&["a/n", "src/f"]));
    check(&(new("a/a/n") + &git("src/f")), &["src/f"], Ok(&["a/a/n", "src/f"]));
    check(&(git("src/f") + &git("a/f")), &["src/f", "f"], Err(("FILE_MISSING", &[])));
    let moved = "diff --git a/g x\nrename from a/g\nrename to x\n";
    check(&(moved.to_owned() + &mode("a/f")), &["a/g", "a/f", "f"], Ok(&["a/f", "x"]));
    let moved = "diff --git i/f a/f\nrename from i/f\nrename to a/f\n";
    check(&(moved.to_owned() + &git("a/f")), &["i/f"], Ok(&["a/f"]));
    // both prefixes, each on both sides
    check(&(git("a/f") + &git("b/g")), &["f", "g", "a/f", "b/g"], Ok(&["a/f", "b/g"]));
    // a new file alone says nothing, unless its names differ
    let both = Err(("AMBIGUOUS_PATH.NAMES", &["n", "a/n"][..]));
    for files in [&["f"][..], &["a/f"], &["a/n"]] {
        check(&new("a/n"), files, both);
    }
    check(&(new("a/n") + &git("a/f")), &["f"], Ok(&["f", "n"]));
    check(&(new("a/n") + &git("a/f")), &["a/f"], Ok(&["a/f", "a/n"]));
    check(&new("a/n").replace("+++ a/", "+++ b/"), &["a/f"], Ok(&["n"]));
    check(&new("a/n").replace("a/n a/n", "a/n b/n"), &["a/f"], Ok(&["n"]));
    // no '/dev/null': the empty file that is there is meant
    let bare = "diff --git a/n a/n\n--- a/n\n+++ a/n\n@@ -0,0 +1 @@\n+x\n";
    let changed = apply(&tree(&[("a/n", b"")]), bare.as_bytes(), &Settings::DEFAULT).unwrap();
    assert_eq!(words(&changed.tree), ["a/n=x\\n"]);
    // where a diff has sections of both kinds, the files decide
    let mixed = format!("diff --git a/g b/g\n{}{}{}", plain("a/g", "b/g"), git("f"), git("a/h"));
    check(&mixed, &["f", "g", "h"], Ok(&["f", "g", "h"]));
    check(&mixed, &["f", "g", "a/h"], Ok(&["a/h", "f", "g"]));
    check(&mixed, &["f", "g", "h", "a/h"], Err(("AMBIGUOUS_PATH.NAMES", &["h", "a/h"])));
}

/// Of two sides with different names, the one that exists is meant.
#[test]
fn of_two_names_the_one_that_exists_is_meant() {
    check(&plain("f.orig", "f"), &["f"], Ok(&["f"]));
    check(&plain("f", "f.new"), &["f"], Ok(&["f"]));
    check(&plain("a/f.orig", "b/f"), &["f"], Ok(&["f"]));
    check(&plain("a/f", "b/g"), &["g", "h"], Ok(&["g"]));
    check(&plain("f.orig", "f"), &["f", "f.orig"], Err(("AMBIGUOUS_PATH.NAMES", &["f.orig", "f"])));
    check(&plain("f.orig", "f"), &["g"], Err(("FILE_MISSING", &["f.orig", "f"])));
    check(&plain("/tmp/x/f", "f"), &["f"], Ok(&["f"]));
}

/// A file that is to come exists under neither reading; a directory that exists leaves the question open.
#[test]
fn a_new_file_is_behind_its_prefix_unless_there_is_such_a_directory() {
    let new = "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    check(new, &["f"], Ok(&["n"]));
    check(new, &["b/f"], Err(("AMBIGUOUS_PATH.NAMES", &["n", "b/n"])));
    check(&format!("{}{new}", plain("a/f", "b/f")), &["f", "b/g"], Ok(&["f", "n"]));
    check(&format!("{}{new}", plain("b/f", "b/f")), &["b/f"], Ok(&["b/f", "b/n"]));
    check("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", &["a/f"], Ok(&[]));
    // without /dev/null: an empty file, or none
    let bare = "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    check(bare, &["f"], Ok(&["n"]));
    check(&bare.replace("--- ", "diff --git a/n b/n\n--- "), &["f"], Ok(&["n"]));
    let changed = apply(&tree(&[("n", b"")]), bare.as_bytes(), &Settings::DEFAULT).unwrap();
    assert_eq!(changed.tree["n"].0, b"x\n");
}

/// Without open names a batch stays what it is, and nothing is looked up.
#[test]
fn a_batch_without_open_names_is_settled() {
    let document = parse(format!("diff --git a/f b/f\n{}", plain("a/f", "b/f")).as_bytes(), None).unwrap();
    let settled = settle(&document.batch, |path| -> Entry { panic!("{path} is looked up") }).unwrap();
    assert_eq!(*settled, document.batch);
}

/// Parts of one file follow one another: each changes what the one before leaves.
#[test]
fn parts_of_one_file_follow_one_another() {
    let file = |path: &str, hunk: &str| format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunk}");
    let (first, second) = ("@@ -1,2 +1,3 @@\n a\n+x\n b\n", "@@ -2,2 +2,2 @@\n-x\n+y\n b\n");
    let new = "diff --git a/f b/f\nnew file mode 100755\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let gone = "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n";
    let moved = "diff --git a/f b/g\nrename from f\nrename to g\n";
    let mode = "diff --git a/g b/g\nold mode 100644\nnew mode 100755\n";
    let id = "0123456789012345678901234567890123456789";
    let mail = |diff: &str| format!("From {id} Mon Sep 17 00:00:00 2001\nSubject: s\n\n{diff}-- \n2.47.3\n\n");
    let commit = |diff: &str| format!("commit {id}\nAuthor: A\n\n    m\n\n{diff}\n");
    let old: &[(&str, &[u8])] = &[("f", b"a\nb\n"), ("o", b"o\n")];
    let other: &[(&str, &[u8])] = &[("o", b"o\n")];
    let o = file("o", "@@ -1 +1 @@\n-o\n+O\n");
    type Files<'a> = &'a [(&'a str, &'a [u8])];
    let cases: Vec<(String, Files<'_>, &[&str])> = vec![
        (file("f", first) + &o + &file("f", second), old, &["f=a\\ny\\nb\\n", "o=O\\n"]),
        (mail(&file("f", first)) + &mail(&o) + &mail(&file("f", second)), old, &["f=a\\ny\\nb\\n", "o=O\\n"]),
        (new.to_owned() + &file("f", first), other, &["*f=a\\nx\\nb\\n", "o=o\\n"]),
        (mail(new) + &mail(&file("f", first)) + &mail(&file("f", second)), other, &["*f=a\\ny\\nb\\n", "o=o\\n"]),
        (gone.to_owned() + &new.replace("+a", "+z"), old, &["*f=z\\nb\\n", "o=o\\n"]),
        (mail(&file("f", first)) + &mail(moved), old, &["g=a\\nx\\nb\\n", "o=o\\n"]),
        (moved.to_owned() + &file("g", first), old, &["g=a\\nx\\nb\\n", "o=o\\n"]),
        (
            mail(&file("f", first)) + &mail(moved) + &mail(&file("g", second)) + &mail(mode),
            old,
            &["*g=a\\ny\\nb\\n", "o=o\\n"],
        ),
        (file("f", first) + &gone.replace("-1,2", "-1,3").replace("-b", "-x\n-b"), old, &["o=o\\n"]),
        (format!("--- a/f\n+++ b/f\n{first}--- a/f\n+++ b/f\n{second}"), old, &["f=a\\ny\\nb\\n", "o=o\\n"]),
    ];
    for (diff, files, expected) in cases {
        let changed = apply(&tree(files), diff.as_bytes(), &Settings { recovers: false, ..Settings::DEFAULT });
        let changed = changed.unwrap_or_else(|failures| panic!("{diff}{failures:?}"));
        assert_eq!(words(&changed.tree), expected, "{diff}");
        assert_eq!(changed.warnings(), [""; 0], "{diff}");
        // What git is shown of it is the whole change, once.
        let again = git_apply(&tree(files), &changed.diff, &[]).map(|tree| words(&tree));
        assert_eq!(again, Some(words(&changed.tree)), "{diff}");
    }
    for (diff, expected) in [
        // the second part is against the file as it was
        (file("f", first) + &file("f", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), "EXPECTED_MISMATCH"),
        (file("f", first) + &file("f", first), "INVALID_REQUEST.DUPLICATE_PATH"),
        (file("f", first) + new, "INVALID_REQUEST.DUPLICATE_PATH"),
        (gone.to_owned() + &file("f", first), "INVALID_REQUEST.DUPLICATE_PATH"),
        (file("f", first) + moved, "INVALID_REQUEST.DUPLICATE_PATH"),
        (commit(&file("f", second)) + &commit(&file("f", first)), "INVALID_REQUEST.DUPLICATE_PATH"),
        (
            mail(&file("f", first)) + &mail("diff --git a/f b/g\ncopy from f\ncopy to g\n"),
            "INVALID_REQUEST.DUPLICATE_PATH",
        ),
        (mail(moved) + &mail(new), "INVALID_REQUEST.DUPLICATE_PATH"),
    ] {
        let failures = apply(&tree(old), diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
        assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), [expected], "{diff}");
        assert!(failures[0].hint.is_some());
    }
    let failures = apply(&tree(other), (mail(new) + &mail(moved)).as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!(failures.iter().map(code).collect::<Vec<_>>(), ["INVALID_REQUEST.DUPLICATE_PATH"]);
    assert!(failures[0].message.contains("creates"), "{failures:?}");
}

/// Changes are counted over all parts, and refusals name the part.
#[test]
fn a_refused_part_is_named() {
    let file = |path: &str, hunk: &str| format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunk}");
    let first = file("f", "@@ -1,2 +1,3 @@\n a\n+x\n b\n") + &file("o", "@@ -1 +1 @@\n-o\n+O\n");
    let diff = first + &file("f", "@@ -1,3 +1,3 @@\n a\n-z\n+y\n b\n");
    let old = tree(&[("f", b"a\nb\n"), ("o", b"o\n")]);
    let failures = apply(&old, diff.as_bytes(), &Settings::DEFAULT).unwrap_err();
    assert_eq!((failures[0].file_index, failures[0].change_index), (Some(0), Some(1)), "{failures:?}");
    assert!(failures[0].message.contains("part 2"), "{failures:?}");
}
