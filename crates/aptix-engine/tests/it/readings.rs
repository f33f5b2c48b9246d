//! Names of a diff that can be read in several ways: decided by the files that exist, one way for the whole diff.

use aptix_engine::plan::Settings;
use aptix_engine::readings::{Entry, settle, validate_open};
use aptix_model::documents::{Dialect, parse};
use aptix_model::limits::Limits;

use crate::boundary::code;
use crate::tree::{apply, tree};

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
