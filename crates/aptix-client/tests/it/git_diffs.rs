//! Git takes the diffs that `apply`, `show` and `log -p` print, in a workspace of one root and of several: in a directory that has
//! the roots by their names, it makes of the old files what Aptix made of them.

use std::path::Path;

use serde_json::Value;

use crate::command_line::{aptix, text};
use crate::shown::{Files, by_git, files, git_diff, old, put};

fn ask(place: &Path, arguments: &[&str], document: &str) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files of the roots, with the names of the roots in front.
fn of_roots(place: &Path) -> Files {
    let of = |root: &'static str| {
        let files = files(&place.join(root)).into_iter();
        files.map(move |(name, file)| (format!("{root}/{name}"), file))
    };
    of("one").chain(of("two")).collect()
}

fn two_roots() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    ["one", "two"].iter().for_each(|root| put(&place.path().join(root), &old()));
    place
}

const ROOTS: [&str; 4] = ["--root", "../one", "--root", "../two"];

#[test]
fn git_takes_the_diff_of_a_batch_over_several_roots() {
    let place = two_roots();
    let before = of_roots(place.path());
    let document = git_diff("one") + &git_diff("two");
    let run = |arguments: &[&str], document: &str| ask(place.path(), &[arguments, &ROOTS].concat(), document);
    let diff = |answer: &Value| answer["diff"].as_str().unwrap().to_owned();
    let planned = run(&["apply", "--json", "--yes", "--dry-run"], &document);
    let done = run(&["apply", "--json", "--yes"], &document);
    let after = of_roots(place.path());
    assert_ne!(after, before);
    let id = done["batchId"].as_str().unwrap();
    let shown = run(&["show", "--json", id], "");
    let log = run(&["log", "-p", "--json"], "");
    for (diff, what) in [&planned, &done, &shown, &log["batches"][0]].iter().map(|answer| diff(answer)).zip(0..) {
        assert_eq!(by_git(&before, &diff), after, "{what}: {diff}");
    }
    // The parts make the whole.
    let parts = done["files"].as_array().unwrap().iter().map(|file| {
        let part = run(&["show", "--json", file["filePatchId"].as_str().unwrap()], "");
        assert_eq!(part["files"][0]["path"], file["path"]);
        diff(&part)
    });
    assert_eq!(by_git(&before, &parts.collect::<String>()), after);
    let undone = run(&["undo", "--json", "--yes"], "");
    assert_eq!(by_git(&after, &diff(&undone)), before);
    assert_eq!(of_roots(place.path()), before);
    let shown = run(&["show", "--json", undone["batchId"].as_str().unwrap()], "");
    assert_eq!(by_git(&after, &diff(&shown)), before);
}

/// What is printed for people is such a diff as well, among lines that git passes over, where no character has to be made visible.
#[test]
fn git_takes_the_text_that_is_printed() {
    let renamed = "diff --git a/DIR/open.txt b/DIR/new/name.txt\nsimilarity index 50%\nrename from DIR/open.txt\nrename to \
                   DIR/new/name.txt\n--- a/DIR/open.txt\n+++ b/DIR/new/name.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+2\n c\n\\ No newline at end of \
                   file\n";
    let deleted = "diff --git a/DIR/gone.txt b/DIR/gone.txt\ndeleted file mode 100644\n--- a/DIR/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    let made = "diff --git a/DIR/made b/DIR/made\nnew file mode 100755\n--- /dev/null\n+++ b/DIR/made\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No \
                newline at end of file\n";
    let changed = "diff --git \"a/DIR/\\303\\274n\\303\\257/\\346\\227\\245\\346\\234\\254.txt\" \
                   \"b/DIR/\\303\\274n\\303\\257/\\346\\227\\245\\346\\234\\254.txt\"\n--- \
                   \"a/DIR/\\303\\274n\\303\\257/\\346\\227\\245\\346\\234\\254.txt\"\n+++ \
                   \"b/DIR/\\303\\274n\\303\\257/\\346\\227\\245\\346\\234\\254.txt\"\n@@ -1,2 +1,2 @@\n-\u{e9}\n+e\n \u{8a9e}\n";
    let document = [renamed, deleted, made, changed].concat();
    for roots in [&ROOTS[..2], &ROOTS] {
        let place = two_roots();
        let is_one = roots.len() == 2;
        let read = || if is_one { files(&place.path().join("one")) } else { of_roots(place.path()) };
        let document = match is_one {
            true => document.replace("DIR/", ""),
            false => document.replace("DIR/", "one/") + &document.replace("DIR/", "two/"),
        };
        let run = |arguments: &[&str], document: &str| {
            let output = aptix(place.path(), &[arguments, roots].concat(), document);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let before = read();
        let done = run(&["apply", "--yes"], &document);
        let after = read();
        let id = done.split(' ').nth(1).unwrap();
        for shown in [&done, &run(&["show", id], ""), &run(&["log", "-p"], "")] {
            assert_eq!(by_git(&before, shown), after, "{shown}");
        }
        assert_eq!(by_git(&after, &run(&["undo", "--yes"], "")), before);
    }
}
