//! FILE-SPEC 3: git patches, as documents.

mod refused;

use aptix_model::batch::{FileEdit, GitKind, LineKind, Target};
use aptix_model::documents::{Dialect, parse};

/// The outcome of each file of a diff, in words, or `REASON.DETAIL` of the refusal.
fn read(diff: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
    match parse(diff.as_ref(), Some(Dialect::GitPatch)) {
        Ok(document) => {
            let files = document.batch.files.iter();
            Ok(files
                .map(|file| {
                    let FileEdit::GitPatch(patch) = &file.edit else { panic!("not a git patch: {file:?}") };
                    let path = match &file.target {
                        Target::Path(path) => path.clone(),
                        Target::Readings(readings) => {
                            let (stripped, written) = (readings.stripped.join("|"), readings.written.join("|"));
                            // The usual names are shown by the path alone.
                            let usual = [
                                format!("a/{stripped}|b/{stripped}"),
                                format!("a/{stripped}"),
                                format!("b/{stripped}"),
                            ];
                            if usual.contains(&written) { stripped } else { format!("{stripped}?{written}") }
                        }
                        Target::DocPath(path) => panic!("a diff has paths: {path}"),
                    };
                    let mut words = match &patch.kind {
                        GitKind::Modify => format!("modify {path}"),
                        GitKind::Create => format!("create {path}"),
                        GitKind::Delete => format!("delete {path}"),
                        GitKind::Rename { to } => format!("rename {path} to {to}"),
                        GitKind::Copy { from } => format!("copy {from} to {path}"),
                    };
                    words += match patch.executable {
                        Some(true) => " +x",
                        Some(false) => " -x",
                        None => "",
                    };
                    words += if patch.is_unprefixed { " unprefixed" } else { "" };
                    words += &patch.base_id.as_ref().map(|id| format!(" {}", &id[..4])).unwrap_or_default();
                    for hunk in &patch.hunks {
                        words +=
                            &format!(" @{},{} {},{}:", hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count);
                        if hunk.is_unnumbered {
                            words += "?";
                        }
                        for (index, line) in hunk.lines.iter().chain(&hunk.surplus).enumerate() {
                            words += if index == hunk.lines.len() { "|" } else { "" };
                            words.push(match line.kind {
                                LineKind::Context => '=',
                                LineKind::Removed => '-',
                                LineKind::Added => '+',
                            });
                            words += &line.bytes.escape_ascii().to_string();
                        }
                    }
                    words
                })
                .collect())
        }
        Err(failures) => {
            let [failure] = failures.as_slice() else { panic!("one failure: {failures:?}") };
            assert!(failure.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{failure}");
            Err(failure.detail.map_or(failure.reason.to_string(), |detail| format!("{}.{detail}", failure.reason)))
        }
    }
}

#[track_caller]
fn check(diff: impl AsRef<[u8]>, expected: &[&str]) {
    assert_eq!(read(&diff).unwrap(), expected, "{}", diff.as_ref().escape_ascii());
}

#[track_caller]
fn check_refused(diff: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(read(&diff).unwrap_err(), expected, "{}", diff.as_ref().escape_ascii());
}

const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";
const READ: &str = "@1,1 1,1:-a\\n+b\\n";

/// Within one diff every name is that of before the diff; a later mail starts from what the one before leaves.
#[test]
fn a_name_is_the_one_of_before_the_diff_that_renames_to_it() {
    let moved = |from: &str, to: &str| format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n");
    let mail = |diff: &str| {
        format!(
            "From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] s\n\n---\n\n{diff}-- \n2.47.3\n\n"
        )
    };
    let edited = format!("diff --git a/g b/g\n--- a/g\n+++ b/g\n{HUNK}");
    check(moved("f", "g") + &moved("g", "f"), &["rename f to g", "rename g to f"]);
    check(moved("f", "g") + &moved("g", "h") + &moved("h", "f"), &["rename f to g", "rename g to h", "rename h to f"]);
    check(moved("f", "F"), &["rename f to F"]);
    check_refused(moved("f", "g") + &moved("g", "f") + &edited, "INVALID_REQUEST.DUPLICATE_PATH");
    // Each file, its new path, and how many parts it has.
    let series = |parts: &[&str]| {
        let mails = parts.iter().map(|part| mail(part)).collect::<String>();
        let files = parse(mails.as_bytes(), Some(Dialect::GitPatch)).unwrap().batch.files;
        let words = files.iter().map(|file| {
            let parts = if let FileEdit::GitSeries(parts) = &file.edit { parts.len() } else { 1 };
            format!("{} {} {parts}", file.target.as_str(), file.edit.moved_to().unwrap_or("-"))
        });
        words.collect::<Vec<_>>()
    };
    let copy = "diff --git a/g b/c\ncopy from g\ncopy to c\n".to_owned();
    assert_eq!(series(&[&(edited.clone() + &copy)]), ["g - 1", "c - 1"]);
    for mails in [[edited.clone(), copy.clone()], [edited.clone(), edited.replace("-a\n+b", "-b\n+c") + &copy]] {
        check_refused(mails.iter().map(|diff| mail(diff)).collect::<String>(), "INVALID_REQUEST.DUPLICATE_PATH");
    }
    // A copy names the file as it was before its mail, whatever the mail renames above it.
    for renames in [moved("g", "z"), moved("f", "g"), moved("f", "g") + &moved("g", "z")] {
        let mails = [edited.clone(), renames.clone() + &copy].map(|diff| mail(&diff));
        check_refused(mails.concat(), "INVALID_REQUEST.DUPLICATE_PATH");
        assert_eq!(series(&[&(renames.clone() + &copy)]).last().map(String::as_str), Some("c - 1"), "{renames}");
    }
    let swapped = moved("f", "g") + &moved("g", "f");
    assert_eq!(series(&[&edited, &swapped]), ["g f 2", "f g 1"]);
    assert_eq!(series(&[&swapped, &edited]), ["f g 2", "g f 1"]);
    let three = [moved("f", "t"), moved("g", "f"), moved("t", "g")];
    assert_eq!(series(&three.each_ref().map(String::as_str)), ["f g 2", "g f 1"]);
}

/// Of diffs that follow one another without a mail between them, nothing shows which of them copies a file that one changes.
#[test]
fn a_copy_of_a_changed_file_is_refused_in_diffs_that_follow_one_another() {
    let copy = "diff --git a/f b/c\nsimilarity index 100%\ncopy from f\ncopy to c\n";
    let edited = |file: &str, line: &str| {
        format!("diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-{line}\n+{line}{line}\n")
    };
    check(edited("f", "a") + copy, &["modify f @1,1 1,1:-a\\n+aa\\n", "copy f to c"]);
    check_refused(edited("f", "a") + &edited("f", "aa") + copy, "INVALID_REQUEST.DUPLICATE_PATH");
    check_refused(edited("f", "a") + copy + &edited("f", "aa"), "INVALID_REQUEST.DUPLICATE_PATH");
    check_refused(edited("f", "a") + &edited("g", "a") + &edited("g", "aa") + copy, "INVALID_REQUEST.DUPLICATE_PATH");
    // what is copied above is the file as it was
    let above = copy.to_owned() + &edited("f", "a") + &edited("f", "aa");
    assert_eq!(parse(above.as_bytes(), Some(Dialect::GitPatch)).unwrap().batch.files.len(), 2);
}

/// FILE-SPEC-3.1.2, FILE-SPEC-3.1.4: everything that a diff can say of a file.
#[test]
fn what_happens_to_each_file_is_read_from_its_header() {
    let ids = "1111111111111111111111111111111111111111..2222222222222222222222222222222222222222";
    let cases: Vec<(String, Vec<String>)> = vec![
        (format!("diff --git a/d/f b/d/f\nindex 1111111..2222222 100644\n--- a/d/f\n+++ b/d/f\n{HUNK}"), vec![format!("modify d/f 1111 {READ}")]),
        (format!("diff --git a/f b/f\nindex {ids} 100755\n--- a/f\n+++ b/f\n{HUNK}"), vec![format!("modify f 1111 {READ}")]),
        (
            "diff --git a/f b/f\nnew file mode 100755\nindex 0000000000000000000000000000000000000000..2222222222222222222222222222222222222222\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n".into(),
            vec!["create f +x @0,0 1,1:+x\\n".into()],
        ),
        ("diff --git a/f b/f\nnew file mode 100644\nindex 0000000..e69de29\n".into(), vec!["create f".into()]),
        ("diff --git a/f b/f\nnew file mode 100644\nindex 0000000..473a0f4".into(), vec!["create f".into()]),
        ("diff --git a/f b/f\nnew file mode 100644\nindex 0000..e69d\n".into(), vec!["create f".into()]),
        // Mercurial writes no ids.
        ("diff --git a/f b/f\nnew file mode 100644\ndiff --git a/g b/g\nold mode 100644\nnew mode 100755\n".into(), vec!["create f".into(), "modify g +x".into()]),
        ("diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n".into(), vec!["delete f e69d".into()]),
        ("diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000".into(), vec!["delete f e69d".into()]),
        ("diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n".into(), vec!["delete f @1,1 0,0:-a\\n".into()]),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n".into(), vec!["modify f +x".into()]),
        (format!("diff --git a/f b/f\nold mode 100755\nnew mode 100644\nindex 1111111..2222222\n--- a/f\n+++ b/f\n{HUNK}"), vec![format!("modify f -x 1111 {READ}")]),
        ("diff --git a/d/e b/f g\nsimilarity index 100%\nrename from d/e\nrename to f g\n".into(), vec!["rename d/e to f g".into()]),
        (
            format!("diff --git a/e b/f\nold mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from e\nrename to f\nindex {ids}\n--- a/e\n+++ b/f\n{HUNK}"),
            vec![format!("rename e to f +x 1111 {READ}")],
        ),
        (format!("diff --git a/e b/f\nsimilarity index 90%\ncopy from e\ncopy to f\n--- a/e\n+++ b/f\n{HUNK}"), vec![format!("copy e to f {READ}")]),
        (
            format!("diff --git a/f b/f\nold mode 100644\nnew mode 100755\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n{HUNK}\n\ndiff --git a/h b/h\n--- a/h\n+++ b/h\n{HUNK}{HUNK}"),
            vec!["modify f +x".into(), format!("modify g {READ}"), format!("modify h {READ} {READ}")],
        ),
        // without `diff --git`
        (format!("--- a/d/f\n+++ b/d/f\n{HUNK}--- old/g\t2024-01-01 10:00:00.5 +0100\n+++ new/g\t2024-01-01 10:00:01.5 +0100\n{HUNK}"), vec![format!("modify d/f {READ}"), format!("modify g?old/g|new/g {READ}")]),
        ("\n\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\n".into(), vec!["create f @0,0 1,1:+x\\n".into(), "delete g @1,1 0,0:-a\\n".into()]),
        // the time where tabs became blanks; what is not all of a time is the name's
        (format!("--- a/d/f 2024-01-01 10:00:00.5 +0100\n+++ b/d/f  2024-01-01 10:00:01\n{HUNK}"), vec![format!("modify d/f {READ}")]),
        (format!("--- a/d f 2024-01-01\n+++ b/d f 2024-01-01\n{HUNK}"), vec![format!("modify d f 2024-01-01 {READ}")]),
        (
            "--- old/f 1970-01-01 01:00:00.000000000 +0100\n+++ new/f 2024-01-01 10:00:00 +0100\n@@ -0,0 +1 @@\n+x\n".into(),
            vec!["create f?old/f|new/f @0,0 1,1:+x\\n".into()],
        ),
        (
            "diff -ruN old/f new/f\n--- old/f\t1970-01-01 01:00:00.000000000 +0100\n+++ new/f\t2024-01-01 10:00:00 +0100\n@@ -0,0 +1 @@\n+x\ndiff -ruN old/g new/g\n--- old/g\t2024-01-01 10:00:00 +0100\n+++ new/g\t1970-01-01 01:00:00 +0100\n@@ -1 +0,0 @@\n-a\n".into(),
            vec!["create f?old/f|new/f @0,0 1,1:+x\\n".into(), "delete g?new/g|old/g @1,1 0,0:-a\\n".into()],
        ),
        // names
        (format!("--- f\n+++ f\n{HUNK}"), vec![format!("modify f unprefixed {READ}")]),
        (format!("diff --git src/f src/f\n--- src/f\n+++ src/f\n{HUNK}"), vec![format!("modify src/f unprefixed {READ}")]),
        ("--- /dev/null\n+++ src/f\n@@ -0,0 +1 @@\n+x\n".into(), vec!["create src/f unprefixed @0,0 1,1:+x\\n".into()]),
        ("diff --git i/src/f w/src/f\nnew file mode 100644\n--- /dev/null\n+++ w/src/f\n@@ -0,0 +1 @@\n+x\n".into(), vec!["create src/f @0,0 1,1:+x\\n".into()]),
        (format!("diff --git a/a b/c b/a b/c\n--- a/a b/c\t\n+++ b/a b/c\t\n{HUNK}"), vec![format!("modify a b/c {READ}")]),
        (format!("diff --git \"a/\\303\\251 \\\"x\" \"b/\\303\\251 \\\"x\"\n--- \"a/\\303\\251 \\\"x\"\t\n+++ \"b/\\303\\251 \\\"x\"\n{HUNK}"), vec![format!("modify \u{e9} \"x {READ}")]),
        ("diff --git a/x \"b/\\303\\251\"\nrename from x\nrename to \"\\303\\251\"\n".into(), vec!["rename x to \u{e9}".into()]),
        (format!("--- a\\src\\f\n+++ b\\src\\f\n{HUNK}"), vec![format!("modify src/f {READ}")]),
        (format!("--- ./f.orig\n+++ ./f\n{HUNK}"), vec![format!("modify f.orig|f?f.orig|f {READ}")]),
        (format!("--- a/f\n+++ b/g\n{HUNK}"), vec![format!("modify f|g?a/f|b/g {READ}")]),
        (format!("--- a/f\n+++ a/f\n{HUNK}"), vec![format!("modify f unprefixed {READ}")]),
        (format!("diff --git a/f a/f\n--- a/f\n+++ a/f\n{HUNK}"), vec![format!("modify f unprefixed {READ}")]),
        (format!("diff --git a/f a/f\n--- a/f\n+++ b/f\n{HUNK}"), vec![format!("modify f {READ}")]),
        // names that git wrote show how the others are read
        (format!("diff --git a/g b/g\n--- a/g\n+++ b/g\n{HUNK}--- a/f\n+++ a/f\n{HUNK}"), vec![format!("modify g {READ}"), format!("modify f {READ}")]),
    ];
    for (diff, expected) in cases {
        check(diff, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Lines of files are bytes with their own terminators; a marker takes one away.
#[test]
fn hunk_lines_keep_their_bytes() {
    let head = "--- a/f\n+++ b/f\n";
    for (hunk, expected) in [
        ("@@ -1,2 +1,2 @@ fn x() {\n-a\r\n+b\r\n \u{ff}\n", "@1,2 1,2:-a\\r\\n+b\\r\\n=\\xff\\n"),
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "@1,1 1,1:-a+a\\n"),
        ("@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "@1,1 1,1:-a\\n+a"),
        ("@@ -1,2 +1 @@\n-x\n a\n\\ Kein Zeilenumbruch am Dateiende.\n", "@1,2 1,1:-x\\n=a"),
        ("@@ -1 +1 @@\n-a\r\n\\ No newline at end of file\n+a\n", "@1,1 1,1:-a\\r+a\\n"),
        // a diff whose blank context lines lost their blank
        ("@@ -1,3 +1,2 @@\n-a\n\n b\n", "@1,3 1,2:-a\\n=\\n=b\\n"),
        ("@@ -1,2 +1 @@\n-a\n\n", "@1,2 1,1:-a\\n|=\\n"),
        // lines that look like headers
        (
            "@@ -1,2 +1,2 @@\n--- a/g\n-@@ -1 +1 @@\n+++ b/g\n+diff --git a/g b/g\n",
            "@1,2 1,2:--- a/g\\n-@@ -1 +1 @@\\n+++ b/g\\n+diff --git a/g b/g\\n",
        ),
        ("@@ -1 +1 @@\n--- a/g\n+++ b/g\n@@ -9 +9 @@\n-a\n+b\n", "@1,1 1,1:--- a/g\\n+++ b/g\\n @9,1 9,1:-a\\n+b\\n"),
        // a diff whose every line ends with a carriage return
        ("@@ -1 +1 @@\r\n-a\r\n+b\r\n", "@1,1 1,1:-a\\r\\n+b\\r\\n"),
    ] {
        let hunk: Vec<u8> = hunk.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect();
        check([head.as_bytes(), &hunk].concat(), &[&format!("modify f {expected}")]);
    }
}

/// The counts of a header say which lines are the hunk's; others are refused, left out, or left to the file.
#[test]
fn hunks_are_read_by_their_counts() {
    let head = "--- a/f\n+++ b/f\n";
    for (hunks, expected) in [
        // fewer: only above another hunk, below context
        ("@@ -1,9 +1,9 @@\n-a\n+b\n c\n@@ -20 +20 @@\n-c\n+d\n", "@1,9 1,9:-a\\n+b\\n=c\\n @20,1 20,1:-c\\n+d\\n"),
        ("@@ -1,9 +1,9 @@\n-a\n+b\n c\n\n\n@@ -20 +20 @@\n-c\n+d\n", "@1,9 1,9:-a\\n+b\\n=c\\n @20,1 20,1:-c\\n+d\\n"),
        // more
        ("@@ -1 +1 @@\n a\n-b\n+c\n", "@1,1 1,1:=a\\n|-b\\n+c\\n"),
        ("@@ -1 +1 @@\n a\n\n-b\n+c\n\n\n", "@1,1 1,1:=a\\n|=\\n-b\\n+c\\n"),
        ("@@ -1 +1 @@\n a\n+b\n\n", "@1,1 1,1:=a\\n|+b\\n"),
        ("@@ -1 +1 @@\n-a\n+b\n\n c\n", "@1,1 1,1:-a\\n+b\\n|=\\n=c\\n"),
        ("@@ -1,0 +1 @@\n-a\n+b\n", "@1,0 1,1:-a\\n+b\\n"),
        ("@@ -0,0 +0,0 @@\n-a\n+b\n", "@0,0 0,0:-a\\n+b\\n"),
        ("@@ -1 +1 @@\n-a\n+b\n-- \n2.47.3\n", "@1,1 1,1:-a\\n+b\\n"),
        ("@@ -1 +1 @@\n-a\n+b\n-- words\n", "@1,1 1,1:-a\\n+b\\n|-- words\\n"),
        // lines without prefix, and a last one without line feed
        ("@@ -1,3 +1,3 @@\n-a\n+b\nc\n d\n", "@1,3 1,3:-a\\n+b\\n|=c\\n=d\\n"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n c", "@1,2 1,2:-a\\n+b\\n|=c\\n"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n\t\n", "@1,2 1,2:-a\\n+b\\n|=\\t\\n"),
        // no numbers
        ("@@\n-a\n+b\n@@ ... @@ fn x()\n a\n-- \n", "@0,0 0,0:?-a\\n+b\\n @0,0 0,0:?=a\\n"),
    ] {
        check(format!("{head}{hunks}"), &[&format!("modify f {expected}")]);
    }
    // an added line without line feed, for the id of the result to decide
    let ids = "diff --git a/f b/f\nindex 1111111..2222222 100644\n";
    let open = format!("{ids}{head}@@ -1 +1 @@\n-a\n+b");
    check(open, &["modify f 1111 @1,1 1,1:-a\\n|+b\\n"]);
    for (hunks, expected) in [
        ("@@ -1 +1 @@\n-a\n+b", "PATCH_TRUNCATED"),
        ("@@ -1,9 +1,9 @@\n-a\n+b\n c\n", "PATCH_TRUNCATED"),
        ("@@ -1,9 +1,9 @@\n-a\n+b\n@@ -20 +20 @@\n-c\n+d\n", "PATCH_TRUNCATED"),
        ("@@ -1,3 +1,3 @@\n-a\n+b\nc\n", "PATCH_TRUNCATED"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\nc", "PATCH_TRUNCATED"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\nc\n d\n", "PATCH_TRUNCATED"),
        ("@@ -1 +1 @@\n a\n\n+b\n", "PATCH_MALFORMED.COUNTS"),
        ("@@ -1 +1 @@\n a\n+b\n\n+c\n", "PATCH_MALFORMED.COUNTS"),
        ("@@ -1 +1 @@\n a\n\\ No newline at end of file\n+b\n", "PATCH_MALFORMED.COUNTS"),
    ] {
        check_refused(format!("{head}{hunks}"), expected);
    }
    let two = format!("{head}@@ -1,9 +1,9 @@\n-a\n+b\n c\n\n--- a/g\n+++ b/g\n{HUNK}");
    check_refused(&two, "PATCH_TRUNCATED");
    let git =
        format!("diff --git a/f b/f\n{head}@@ -1,2 +1,3 @@\n a\n b\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n{HUNK}");
    check_refused(&git, "PATCH_TRUNCATED");
}

/// A hunk of a block whose fence is closed ends with the block.
#[test]
fn a_closed_fence_ends_a_hunk_for_sure() {
    let hunks = |hunks: &str| {
        let answer = format!("Here:\n\n```diff\n--- a/f\n+++ b/f\n{hunks}```\n");
        let document =
            parse(answer.as_bytes(), Some(Dialect::Chat)).map_err(|failures| failures[0].reason.to_string())?;
        let FileEdit::GitPatch(patch) = &document.batch.files[0].edit else { panic!("a git patch") };
        Ok(patch.hunks.iter().map(|hunk| (hunk.lines.len(), hunk.surplus.len())).collect::<Vec<_>>())
    };
    assert_eq!(hunks("@@ ... @@\n a\n-b\n+c\n"), Ok(vec![(3, 0)]));
    assert_eq!(hunks("@@ -1 +1 @@\n a\n+b\n"), Ok(vec![(1, 1)]));
    assert_eq!(hunks("@@ -1,2 +1,3 @@\n a\n+b\n"), Err("PATCH_TRUNCATED".to_owned()));
    assert_eq!(hunks("@@ -1,3 +1,4 @@\n a\n+b\n```\n c\n"), Err("PATCH_TRUNCATED".to_owned()));
}

/// A diff with carriage returns throughout makes such files, with a warning.
#[test]
fn a_diff_with_carriage_returns_makes_files_with_them() {
    let diff = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let document = parse(diff.replace('\n', "\r\n").as_bytes(), Some(Dialect::GitPatch)).unwrap();
    assert_eq!(document.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(), ["CRLF_DIFF"]);
    check(diff.replace('\n', "\r\n"), &["create f @0,0 1,2:+a\\r\\n+b\\r\\n"]);
    for diff in [
        diff.to_owned(),
        diff.replace("+a\n+b\n", "+a\r\n+b\r\n"),
        format!("--- a/f\r\n+++ b/f\r\n{}", HUNK.replace('\n', "\r\n")),
    ] {
        assert_eq!(parse(diff.as_bytes(), Some(Dialect::GitPatch)).unwrap().warnings, [], "{diff}");
    }
}

/// FILE-SPEC-3.1.3.2: text around the files of a diff is skipped, and a mail's message becomes the label.
#[test]
fn text_around_the_files_of_a_diff_is_skipped() {
    let f = format!("--- a/f\n+++ b/f\n{HUNK}");
    let git = |path: &str| {
        format!("diff --git a/{path} b/{path}\nindex 1111111..2222222 100644\n--- a/{path}\n+++ b/{path}\n{HUNK}")
    };
    let stat = " f | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n";
    let id = "0123456789012345678901234567890123456789";
    let mail = |subject: &str, path: &str| {
        format!(
            "From {id} Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nDate: Mon, 1 Jan 2024 10:00:00 +0100\nSubject: [PATCH 1/2] {subject}\nMIME-Version: 1.0\n\nrename from x.c to y.c, since\n- it is\n\nSigned-off-by: A\n---\n{stat}{}-- \n2.47.3\n\n",
            git(path)
        )
    };
    let message = "\n\nrename from x.c to y.c, since\n- it is\n\nSigned-off-by: A";
    let log = format!(
        "commit {id} (HEAD -> main)\nAuthor: A <a@b>\nDate:   Mon Jan 1\n\n    Mend it\n\n    @@ -1 +1 @@ it was\n\n"
    );
    let cases: Vec<(String, &[&str], Option<String>)> = vec![
        (format!("Here is the patch:\n\n{f}"), &["f"], None),
        (format!("{f}\nThat is all.\n- really\n"), &["f"], None),
        (format!("```diff\n{f}```\n"), &["f"], None),
        (format!("{f}and\n{}", f.replace("/f", "/g")), &["f", "g"], None),
        (format!("{f}-- \n2.43.0\n"), &["f"], None),
        (format!("{f}-- \n2.39.3 (Apple Git-146)\n\n"), &["f"], None),
        (format!("{f}-- \n"), &["f"], None),
        (format!("diff -u f.orig f\n{f}"), &["f"], None),
        (format!("diff a/f b/f\n{f}"), &["f"], None),
        (format!("Index: f\n===================================================================\n{f}"), &["f"], None),
        (format!("Only in old: g\ndiff -ru old/f new/f\n{f}Only in new: h\n"), &["f"], None),
        (format!("---\n{stat}{}", git("f")), &["f"], None),
        (mail("Mend it", "f"), &["f"], Some(format!("Mend it{message}"))),
        (mail("Mend\n it all", "f").replace('\n', "\r\n"), &["f"], Some(format!("Mend it all{message}"))),
        (mail("=?UTF-8?q?M=C3=A9nd_it?=", "f"), &["f"], Some(format!("M\u{e9}nd it{message}"))),
        (mail("One", "f") + &mail("Two", "g"), &["f", "g"], Some(format!("One{message}\n\nTwo{message}"))),
        (format!("From: A <a@b>\nSubject: [RFC] it\n\n{}", git("f")), &["f"], Some("[RFC] it".into())),
        (format!("{log}{}", git("f")), &["f"], Some("Mend it\n\n@@ -1 +1 @@ it was".into())),
        (format!("{log}---\n{stat}{}", git("f")), &["f"], Some("Mend it\n\n@@ -1 +1 @@ it was".into())),
        (
            format!("{log}{}\n{log}{}", git("f"), git("g")),
            &["f", "g"],
            Some("Mend it\n\n@@ -1 +1 @@ it was\n\nMend it\n\n@@ -1 +1 @@ it was".into()),
        ),
    ];
    for (diff, paths, label) in cases {
        let document =
            parse(diff.as_bytes(), Some(Dialect::GitPatch)).unwrap_or_else(|error| panic!("{diff}\n{error:?}"));
        let found: Vec<_> = document.batch.files.iter().map(|file| file.target.as_str()).collect();
        assert_eq!((found.as_slice(), document.batch.label), (paths, label), "{diff}");
        assert_eq!(
            document.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(),
            match diff.contains("Only in") {
                true => vec!["FILE_LEFT_OUT"],
                false => vec![],
            }
        );
        // Without a fence, which belongs to an answer, the dialect need not be named.
        let found = parse(diff.as_bytes(), None).unwrap_or_else(|error| panic!("{diff}\n{error:?}"));
        let expected = if diff.starts_with("```") { Dialect::Chat } else { Dialect::GitPatch };
        assert_eq!(found.dialect, expected, "{diff}");
    }
}

/// Text around a diff is skipped, so that its author need not leave it out.
#[test]
fn a_text_without_a_diff_is_refused_with_what_begins_one() {
    for text in ["Here it is:\n", "> --- a/f\n> +++ b/f\n> @@ -1 +1 @@\n> -a\n> +b\n"] {
        let failures = parse(text.as_bytes(), Some(Dialect::GitPatch)).unwrap_err();
        let hint = failures[0].hint.clone().unwrap_or_default();
        assert!(hint.contains("'--- a/path'") && hint.contains("start of a line"), "{text}{hint}");
    }
}

/// A message ends where a diff begins: no file of it is taken for a header of the message.
#[test]
fn a_message_ends_where_a_diff_begins() {
    let git = |path: &str| format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{HUNK}");
    let id = "0123456789012345678901234567890123456789";
    let mail = format!("From {id} Mon Sep 17 00:00:00 2001\nSubject: s\n\n");
    for above in [
        format!("commit {id} broke this:\n"),
        format!("commit {id}\nAuthor: A\n"),
        format!("From {id} Mon Sep 17 00:00:00 2001\nSubject: s\n"),
        "Subject: s\n---\n f | 2 +-\n".to_owned(),
        format!("{mail}From {id} on it fails\n---\n f | 2 +-\n"),
        format!("{mail}From {id} on it fails\n\n---\n f | 2 +-\n"),
    ] {
        for first in [git("f"), format!("--- a/f\n+++ b/f\n{HUNK}")] {
            let document = parse(format!("{above}{first}\n{}", git("g")).as_bytes(), Some(Dialect::GitPatch));
            let document = document.unwrap_or_else(|error| panic!("{above}{first}{error:?}"));
            let found: Vec<_> = document.batch.files.iter().map(|file| file.target.as_str()).collect();
            assert_eq!(found, ["f", "g"], "{above}{first}");
            assert!(!document.batch.label.is_some_and(|label| label.contains("+++")), "{above}{first}");
        }
    }
    let document = parse(format!("{mail}From {id} on it fails\n---\n{}", git("f")).as_bytes(), None).unwrap();
    assert_eq!(document.batch.label.unwrap(), format!("s\n\nFrom {id} on it fails"));
}

/// Backslashes and two names are read in the usual way, and named.
#[test]
fn unusual_names_are_said() {
    let code = |diff: &str| -> Vec<String> {
        let document = parse(diff.as_bytes(), Some(Dialect::GitPatch)).unwrap();
        document.warnings.into_iter().map(|warning| warning.code).collect()
    };
    assert_eq!(code(&format!("--- a\\f\n+++ b\\f\n{HUNK}")), ["BACKSLASH"]);
    assert_eq!(code(&format!("diff --git a/d\\f b/d\\f\n--- a/d\\f\n+++ b/d\\f\n{HUNK}")), ["BACKSLASH"]);
    assert_eq!(code("diff --git a\\d\\f b\\d\\f\nold mode 100644\nnew mode 100755\n"), ["BACKSLASH"]);
    assert_eq!(code(&format!("--- f.old\n+++ f\n{HUNK}")), ["NAMES_DIFFER"]);
    assert_eq!(code(&format!("--- a/f\n+++ b/f\n{HUNK}")), [""; 0]);
}

/// A diff is known for one by its first lines.
#[test]
fn a_diff_is_recognised() {
    let hunk = format!("--- a/f\n+++ b/f\n{HUNK}");
    for diff in
        [hunk.clone(), format!("\n{hunk}"), format!("diff --git a/f b/f\n{hunk}"), format!("diff -u a/f b/f\n{hunk}")]
    {
        assert_eq!(parse(diff.as_bytes(), None).unwrap().dialect, Dialect::GitPatch, "{diff}");
    }
    let bytes = parse(b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\xff\n+\xfe\n", None).unwrap();
    assert_eq!(bytes.dialect, Dialect::GitPatch);
    for no_text in ["*** a/f\n--- b/f\n***************\n", "@@ -1 +1 @@\n-a\n+b\n", "diff --cc f\n"] {
        let failures = parse(no_text.as_bytes(), None).unwrap_err();
        assert!(failures[0].reason.code().starts_with("PATCH_"), "{failures:?}");
    }
}

/// However large a diff is, it is read in one pass or refused.
#[test]
fn large_diffs_are_bounded() {
    let head = "--- a/f\n+++ b/f\n";
    check_refused(format!("{head}{}", HUNK.repeat(100_001)), "TOO_LARGE.CHANGES");
    check_refused(format!("--- a/f\n+++ b/f\n{HUNK}").repeat(10_001), "TOO_LARGE.FILES");
    check_refused(format!("{head}@@ -1 +1 @@\n{}", "+\n".repeat(1 << 19)), "TOO_LARGE.DOCUMENT");
    assert!(read(format!("{head}@@ -1,9 +1,9 @@\n-a\n{} b\n", "\n".repeat(300_000))).is_ok());
    assert!(read(format!("{head}@@ -1,9 +1,9 @@\n-a\n{}", "\n b\n".repeat(200_000))).is_ok());
    assert!(read(format!("{head}{HUNK}{}", "\n".repeat(300_000))).is_ok());
}
