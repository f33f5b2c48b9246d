//! FILE-SPEC 3: what is no diff, or is one that cannot be carried out.

use super::{HUNK, check_refused};

fn git(header: &str) -> String {
    format!("diff --git a/f b/f\n{header}")
}

fn plain(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

fn refuse_each(cases: &[(String, &str)]) {
    for (diff, expected) in cases {
        check_refused(diff, expected);
    }
}

/// FILE-SPEC-3.1.2, FILE-SPEC-3.1.4, FILE-SPEC-8.2.2: what is no unified diff of text files is refused by name.
#[test]
fn what_is_no_diff_is_refused_by_name() {
    refuse_each(&[
        // other formats
        (git("index 1111111..2222222\nGIT binary patch\nliteral 0\n"), "PATCH_UNSUPPORTED.BINARY"),
        (git("Binary files a/f and b/f differ\n"), "PATCH_UNSUPPORTED.BINARY"),
        ("Binary files a/f and b/f differ\n".into(), "PATCH_UNSUPPORTED.BINARY"),
        (
            "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n".into(),
            "PATCH_UNSUPPORTED.FORMAT",
        ),
        (plain("@@@ -1,1 -1,1 +1,1 @@@\n- a\n"), "PATCH_UNSUPPORTED.FORMAT"),
        (
            "*** a/f\t2024\n--- b/f\t2024\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n".into(),
            "PATCH_UNSUPPORTED.FORMAT",
        ),
        ("1c1\n< a\n---\n> b\n".into(), "PATCH_UNSUPPORTED.FORMAT"),
        ("2,3d1\n< a\n".into(), "PATCH_UNSUPPORTED.FORMAT"),
        ("1c\nb\n.\n".into(), "PATCH_UNSUPPORTED.FORMAT"),
        (format!("{}Property changes on: f\n", plain(HUNK)), "PATCH_UNSUPPORTED.FORMAT"),
        ("Index: f\n=====\nCannot display: file marked as a binary type.\n".into(), "PATCH_TRUNCATED"),
        (format!("{}1c1\n< a\n---\n> b\n", plain(HUNK)), "PATCH_UNSUPPORTED.FORMAT"),
        ("Content-Transfer-Encoding: base64\n\n".into(), "PATCH_MALFORMED.GARBAGE"),
        (
            format!("From: a@b\nContent-Transfer-Encoding: quoted-printable\n\n{}", plain(HUNK)),
            "PATCH_UNSUPPORTED.FORMAT",
        ),
        // no file at all
        ("Only in old: f\n".into(), "PATCH_MALFORMED.GARBAGE"),
        ("diff -u a b\n".into(), "PATCH_MALFORMED.GARBAGE"),
        ("Here is the patch.\n".into(), "PATCH_MALFORMED.GARBAGE"),
        // a part of a diff between words
        (format!("{}and\n{HUNK}", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\n--- a/g\n", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\n+++ b/g\n{HUNK}", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\nrename from d/g\nrename to d/h\n", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\nnew file mode 100644\n", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\nindex 1111111..2222222 100644\n", plain(HUNK)), "PATCH_MALFORMED.NAMES"),
        (format!("{}and\nBinary files a/g and b/g differ\n", plain(HUNK)), "PATCH_UNSUPPORTED.BINARY"),
        // a diffstat that counts more files than follow
        (
            format!(" f | 2 +-\n g | 2 +-\n 2 files changed, 2 insertions(+), 2 deletions(-)\n\n{}", plain(HUNK)),
            "PATCH_TRUNCATED",
        ),
        (" f | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n".into(), "PATCH_TRUNCATED"),
    ]);
}

/// Names that are those of no file, or of two, are refused.
#[test]
fn names_that_contradict_each_other_are_refused() {
    refuse_each(&[
        // names
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n".into(), "PATCH_MALFORMED.NAMES"),
        ("--- a/f\n+++ dev/null\n@@ -1 +0,0 @@\n-a\n".into(), "PATCH_MALFORMED.NAMES"),
        (git(&format!("--- a/g\n+++ b/g\n{HUNK}")), "PATCH_MALFORMED.NAMES"),
        (git("new file mode 100644\n--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"), "PATCH_MALFORMED.NAMES"),
        (git("new file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+a\n"), "PATCH_MALFORMED.NAMES"),
        (git("new file mode 100644\ndeleted file mode 100644\n"), "PATCH_MALFORMED.NAMES"),
        (git("rename from f\n"), "PATCH_MALFORMED.NAMES"),
        (git("rename from f\nrename to g\ncopy from f\ncopy to g\n"), "PATCH_MALFORMED.NAMES"),
        (git(&format!("rename from f\nrename to g\n--- a/f\n+++ b/h\n{HUNK}")), "PATCH_MALFORMED.NAMES"),
        ("diff --git a/f b/g\nold mode 100644\nnew mode 100755\n".into(), "PATCH_MALFORMED.NAMES"),
        (HUNK.into(), "PATCH_MALFORMED.NAMES"),
        (git("old mode 100644\n"), "PATCH_MALFORMED.NAMES"),
        (git("rename from f\nrename to f\n"), "INVALID_REQUEST.NO_OP"),
        (format!("--- \"a/\\9\"\n+++ \"b/\\9\"\n{HUNK}"), "PATCH_MALFORMED.QUOTE"),
        (format!("--- \"a/f\n+++ \"b/f\n{HUNK}"), "PATCH_MALFORMED.QUOTE"),
        (format!("--- \"a/\\377\"\n+++ \"b/\\377\"\n{HUNK}"), "INVALID_PATH.UNICODE"),
        (format!("--- a/f\0g\n+++ b/f\0g\n{HUNK}"), "PATCH_MALFORMED.NUL"),
        (git("new file mode 100644\0\n"), "PATCH_MALFORMED.NUL"),
        // names that were cut short, or are different ones
        (
            "diff --git a/f b/n/new.py\nsimilarity index 100%\nrename from f\nrename to n/ne".into(),
            "PATCH_MALFORMED.NAMES",
        ),
        ("diff --git a/f b/n/new.py\nsimilarity index 100%\nrename from f\nrename to".into(), "PATCH_TRUNCATED"),
        ("diff --git a/f b/n/new.py\nsimilarity index 100%\nrename from f\n".into(), "PATCH_MALFORMED.NAMES"),
        (
            "diff --git a/f b/n/new.py\nsimilarity index 100%\ncopy from f\ncopy to n/new.p".into(),
            "PATCH_MALFORMED.NAMES",
        ),
        (format!("diff --git a/n/new.py b/n/ne\n--- a/n/new.py\n+++ b/n/new.py\n{HUNK}"), "PATCH_MALFORMED.NAMES"),
        ("diff --git a/n/new.py b/n/ne".into(), "PATCH_MALFORMED.NAMES"),
        (git("new file mode 100644\n--- /dev/null\n+++ b/f.p\n@@ -0,0 +1 @@\n+a\n"), "PATCH_MALFORMED.NAMES"),
        ("--- a/f\n".into(), "PATCH_MALFORMED.NAMES"),
        (format!("--- a/f\n{HUNK}"), "PATCH_MALFORMED.NAMES"),
        (git("--- a/f\n"), "PATCH_TRUNCATED"),
    ]);
}

/// Modes of what is no regular file are refused.
#[test]
fn modes_that_no_text_file_has_are_refused() {
    refuse_each(&[
        (git("new file mode 120000\n"), "PATCH_UNSUPPORTED.SYMLINK"),
        (git(&format!("index 1111111..2222222 120000\n--- a/f\n+++ b/f\n{HUNK}")), "PATCH_UNSUPPORTED.SYMLINK"),
        (git("new file mode 160000\n"), "PATCH_UNSUPPORTED.SUBMODULE"),
        (git("old mode 100644\nnew mode 104755\n"), "PATCH_UNSUPPORTED.MODE"),
        (git("new file mode 100777\n"), "PATCH_UNSUPPORTED.MODE"),
        (git("new file mode 100666\n"), "PATCH_UNSUPPORTED.MODE"),
        (git("new file mode 060000\n"), "PATCH_MALFORMED.MODE"),
        (git("new file mode 040000\n"), "PATCH_MALFORMED.MODE"),
        (git("new file mode 999999\n"), "PATCH_MALFORMED.MODE"),
        (git("new file mode abc\n"), "PATCH_MALFORMED.MODE"),
    ]);
}

/// Hunks without the numbers or the lines that they need are refused.
#[test]
fn hunks_without_their_numbers_or_lines_are_refused() {
    refuse_each(&[
        (plain("@@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ -1 +1 @@\n-a\n+b\n@@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ def foo(): @@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ ... @@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ -1 +1\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ --1 +1 @@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ -99999999999999999999 +1 @@\n-a\n+b\n"), "PATCH_MALFORMED.HUNK_HEADER"),
        (plain("@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"), "PATCH_MALFORMED.END_OF_FILE"),
        (
            plain("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n\\ No newline at end of file\n"),
            "PATCH_MALFORMED.END_OF_FILE",
        ),
        (
            plain("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n\\ No newline at end of file\n+b\n"),
            "PATCH_MALFORMED.END_OF_FILE",
        ),
        (plain("@@ -0,0 +1 @@\n+\n\\ No newline at end of file\n"), "PATCH_MALFORMED.END_OF_FILE"),
        (
            plain("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n").replace('\n', "\r\n"),
            "PATCH_MALFORMED.END_OF_FILE",
        ),
        (plain("@@ -1 +1 @@\n"), "PATCH_TRUNCATED"),
        (plain("@@ -1,0 +1,0 @@\n"), "PATCH_MALFORMED.EMPTY"),
        (git(""), "PATCH_MALFORMED.EMPTY"),
    ]);
}

/// A diff that ends above its first hunk was cut off.
#[test]
fn a_diff_that_ends_above_its_hunks_is_refused() {
    refuse_each(&[
        (plain(""), "PATCH_TRUNCATED"),
        (git("index 1111111..2222222\n"), "PATCH_TRUNCATED"),
        (git("old mode 100644\nnew mode 100755\nindex 1111111..2222222\n"), "PATCH_TRUNCATED"),
        (git("new file mode 100644\nindex 0000000..2222222\n"), "PATCH_TRUNCATED"),
        (git("new file mode 100755\n"), "PATCH_TRUNCATED"),
        (git("new file mode 100644\nindex 0000000..e69de2"), "PATCH_TRUNCATED"),
        (git("new file mode 100644\nindex 0000000..e"), "PATCH_TRUNCATED"),
        (git("deleted file mode 100644\nindex e69de29..000000"), "PATCH_TRUNCATED"),
        (git("new file mode 100644\n--- /dev/null\n+++ b/f\n"), "PATCH_TRUNCATED"),
        (git("deleted file mode 100644\nindex 1111111..0000000\n--- a/f\n+++ /dev/null\n"), "PATCH_TRUNCATED"),
        (git("similarity index 100%\n"), "PATCH_MALFORMED.EMPTY"),
        ("diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n".into(), "PATCH_TRUNCATED"),
        ("diff --git a/f b/g\nsimilarity index 9".into(), "PATCH_MALFORMED.NAMES"),
        ("Index: f\n===================================================================\n".into(), "PATCH_TRUNCATED"),
    ]);
}
