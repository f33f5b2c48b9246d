//! Diffs: made from the plan, in git's form.

use std::process::{Command, Stdio};

use aptix_model::batch::{Change, FilePatch};

use crate::boundary::{Applied, apply, create, delete, insert, line_patch, overwrite, replace, shown};

/// Runs `git apply` on files in a directory of their own; what the files then hold.
pub(crate) fn git_apply(files: &[(&str, Option<&[u8]>)], diff: &[u8]) -> Vec<Vec<u8>> {
    use std::io::Write;
    let root = tempfile::tempdir().unwrap();
    for (path, before) in files {
        let file = root.path().join(path);
        #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
        if let Some(before) = before {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, before).unwrap();
        }
    }
    let mut git = Command::new("git");
    git.args(["-c", "core.autocrlf=false", "-c", "core.whitespace=-trailing-space", "apply", "-p1", "-"]);
    git.current_dir(root.path()).env("GIT_CEILING_DIRECTORIES", root.path()).env("GIT_CONFIG_NOSYSTEM", "1");
    let mut git = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(diff).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), shown(diff));
    files.iter().map(|(path, _)| std::fs::read(root.path().join(path)).unwrap()).collect()
}

fn edited(before: &str, changes: &[Change]) -> Applied {
    apply(line_patch(before.as_bytes(), changes), Some(before.as_bytes())).unwrap()
}

#[track_caller]
fn check(before: &str, changes: &[Change], hunks: &str) {
    let expected = format!("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n{hunks}");
    let applied = edited(before, changes);
    assert_eq!(String::from_utf8(applied.diff.clone()).unwrap(), expected);
    let found = git_apply(&[("a.txt", Some(before.as_bytes()))], &applied.diff);
    assert_eq!(shown(&found[0]), shown(&applied.content));
}

#[track_caller]
fn check_whole(patch: FilePatch, before: Option<&[u8]>, expected: &str) {
    let applied = apply(patch, before).unwrap();
    assert_eq!(String::from_utf8(applied.diff.clone()).unwrap(), expected);
    if !expected.is_empty() {
        assert_eq!(git_apply(&[(&applied.report.path, before)], &applied.diff), [applied.content]);
    }
}

/// Three lines of context; hunks whose contexts touch are one.
#[test]
fn hunks_have_three_lines_of_context() {
    let ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
    check(ten, &[replace(5, 5, &["5"], &["x", "y"])], "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+x\n+y\n 6\n 7\n 8\n");
    check(
        ten,
        &[insert(0, &["x"]), delete(12, 12, &["12"])],
        "@@ -1,3 +1,4 @@\n+x\n 1\n 2\n 3\n@@ -9,4 +10,3 @@\n 9\n 10\n 11\n-12\n",
    );
    check(
        ten,
        &[delete(2, 2, &["2"]), delete(9, 9, &["9"])],
        "@@ -1,12 +1,10 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n 10\n 11\n 12\n",
    );
    check(
        ten,
        &[delete(2, 2, &["2"]), delete(10, 10, &["10"])],
        "@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n@@ -7,6 +6,5 @@\n 7\n 8\n 9\n-10\n 11\n 12\n",
    );
}

/// Lines that are given anew but stay the same are no change.
#[test]
fn what_stays_the_same_is_left_out() {
    check("a\nb\nc\n", &[replace(1, 3, &["a", "b", "c"], &["a", "x", "c"])], "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    check("a\na\n", &[insert(1, &["a"])], "@@ -1,2 +1,3 @@\n a\n+a\n a\n");
    check("x\na\n", &[replace(1, 1, &["x"], &["x"]), delete(2, 2, &["a"])], "@@ -1,2 +1 @@\n x\n-a\n");
}

/// Empty files, and files whose last line has no terminator.
#[test]
fn ends_of_files_are_shown() {
    check("", &[insert(0, &["x"])], "@@ -0,0 +1 @@\n+x\n");
    check("x\n", &[delete(1, 1, &["x"])], "@@ -1 +0,0 @@\n-x\n");
    check(
        "a\nb",
        &[replace(2, 2, &["b"], &["x"])],
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n",
    );
    check(
        "a\nb",
        &[insert(2, &["x"])],
        "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+x\n\\ No newline at end of file\n",
    );
    check(
        "a\nb",
        &[delete(2, 2, &["b"])],
        "@@ -1,2 +1 @@\n-a\n-b\n\\ No newline at end of file\n+a\n\\ No newline at end of file\n",
    );
    check("a\nb", &[insert(0, &["x"])], "@@ -1,2 +1,3 @@\n+x\n a\n b\n\\ No newline at end of file\n");
    check("a\r\nb\r\n", &[replace(1, 1, &["a"], &["x"])], "@@ -1,2 +1,2 @@\n-a\r\n+x\r\n b\r\n");
}

/// Created and replaced files.
#[test]
fn whole_files_are_shown_as_git_shows_them() {
    let new = "diff --git a/d/a b/d/a\nnew file mode 100644\n";
    check_whole(
        create("d/a", "x\ny"),
        None,
        &format!("{new}--- /dev/null\n+++ b/d/a\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"),
    );
    check_whole(create("d/a", ""), None, &format!("{new}index 0000000..e69de29\n"));
    let head = "diff --git a/a b/a\n--- a/a\n+++ b/a\n";
    check_whole(
        overwrite("a", "1\n2\nx\n4\n5\n6\n7\n8\n"),
        Some(b"1\n2\n3\n4\n5\n6\n7\n8\n"),
        &format!("{head}@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n"),
    );
    check_whole(
        overwrite("a", "a\nb\n"),
        Some(b"a\nb"),
        &format!("{head}@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"),
    );
    check_whole(overwrite("a", "x\nab\n"), Some(b"ab\n"), &format!("{head}@@ -1 +1,2 @@\n+x\n ab\n"));
    check_whole(overwrite("a", ""), Some(b"ab\n"), &format!("{head}@@ -1 +0,0 @@\n-ab\n"));
    check_whole(overwrite("a", "ab\n"), Some(b"ab\n"), "");
}

/// Names with blanks and with other letters than ASCII's.
#[test]
fn names_are_quoted_as_git_quotes_them() {
    check_whole(
        create("a b/c", "x\n"),
        None,
        "diff --git a/a b/c b/a b/c\nnew file mode 100644\n--- /dev/null\n+++ b/a b/c\t\n@@ -0,0 +1 @@\n+x\n",
    );
    check_whole(
        create("é b", "x\n"),
        None,
        "diff --git \"a/\\303\\251 b\" \"b/\\303\\251 b\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\251 b\"\t\n@@ -0,0 +1 @@\n+x\n",
    );
}
