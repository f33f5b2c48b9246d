//! New text that looks like an edit instead of the content of a file, in each kind of edit.

use aptix_engine::plan::plan;
use aptix_engine::planning::settings::Settings;
use aptix_engine::planning::settings::Suspicion;
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;

use crate::boundary::{apply_all, apply_with, code, observed};
use crate::cost::assert_linear;

const BASE: &str = "fn a() {\n    one();\n    two();\n    three();\n}\n";

/// What comes of a document for one file: the codes of its warnings, or the failure.
fn judge(dialect: Dialect, document: &str, base: Option<&str>) -> Result<Vec<String>, Failure> {
    let document = parse(document.as_bytes(), Some(dialect)).unwrap_or_else(|error| panic!("{error:?}: {document}"));
    match apply_all(&document.batch, &[base.map(str::as_bytes)], &Limits::DEFAULT) {
        Ok(applied) => Ok(applied[0].report.warnings.iter().map(|warning| warning.code.clone()).collect()),
        Err(mut failures) => {
            assert_eq!(failures.len(), 1, "{failures:?}");
            Err(failures.remove(0))
        }
    }
}

fn refused(dialect: Dialect, document: &str, base: Option<&str>) -> (String, Option<usize>, Option<usize>) {
    let failure = judge(dialect, document, base).expect_err(document);
    assert!(failure.next_action.is_none() && failure.hint.is_some(), "{failure:?}");
    (code(&failure), failure.line, failure.change_index)
}

fn write(path: &str, content: &str, format: Option<&str>) -> FilePatch {
    let edit = WriteFile {
        content: Content::Text(content.into()),
        presence: Presence::Either,
        content_format: format.map(str::to_owned),
    };
    FilePatch { target: Target::Path(path.into()), key: None, label: None, edit: FileEdit::WriteFile(edit) }
}

fn batch(patch: FilePatch) -> Batch {
    Batch { files: vec![patch], ..Batch::default() }
}

/// Text that comes in a chunk, a block or a new file of a diff is looked at like any other.
#[test]
fn every_dialect_is_looked_at() {
    let elided = ("SUSPECT_CONTENT.ELISION".to_owned(), Some(2), Some(0));
    let chunk = "*** Begin Patch\n*** Update File: a.rs\n@@\n fn a() {\n-    one();\n-    two();\n+    // ... existing code ...\n     three();\n*** End Patch\n";
    assert_eq!(refused(Dialect::CodexPatch, chunk, Some(BASE)), elided);
    let block =
        "a.rs\n<<<<<<< SEARCH\n    one();\n    two();\n=======\n    // ... existing code ...\n>>>>>>> REPLACE\n";
    assert_eq!(refused(Dialect::SearchReplace, block, Some(BASE)), elided);
    let call =
        r#"{"command":"str_replace","path":"a.rs","old_str":"    one();\n    two();\n","new_str":"    // ...\n"}"#;
    assert_eq!(refused(Dialect::StrReplace, call, Some(BASE)), elided);

    let fenced = "SUSPECT_CONTENT.FENCED";
    let added = "*** Begin Patch\n*** Add File: a.rs\n+```rust\n+x\n+```\n*** End Patch\n";
    assert_eq!(refused(Dialect::CodexPatch, added, None).0, fenced);
    let created = "a.rs\n<<<<<<< SEARCH\n=======\n```rust\nx\n```\n>>>>>>> REPLACE\n";
    assert_eq!(refused(Dialect::SearchReplace, created, None).0, fenced);
    let diff = "diff --git a/a.rs b/a.rs\nnew file mode 100644\n--- /dev/null\n+++ b/a.rs\n@@ -0,0 +1,3 @@\n+```rust\n+x\n+```\n";
    assert_eq!(refused(Dialect::GitPatch, diff, None).0, fenced);
}

/// A stated digest and the context of a diff are evidence of what the author means.
#[test]
fn a_digest_and_the_context_of_a_diff_are_evidence() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,5 +1,4 @@\n fn a() {\n-    one();\n-    two();\n+    // ... existing code ...\n     three();\n }\n";
    assert_eq!(judge(Dialect::GitPatch, diff, Some(BASE)), Ok(vec![]));
    let sha256 = aptix_engine::digest::sha256(BASE.as_bytes());
    let lines = format!(
        r#"{{"files":[{{"docPath":"repo/a.rs","originalSha256":"{sha256}","changes":[{{"operation":"replace","startLine":2,"endLine":3,"expectedOriginalLines":["    one();","    two();"],"newLines":["    // ..."]}}]}}]}}"#
    );
    assert_eq!(judge(Dialect::LinePatch, &lines, Some(BASE)), Ok(vec![]));
}

/// A diff that makes a file, or fills an empty one, has no context, whether it names /dev/null or not.
#[test]
fn a_diff_without_context_is_no_evidence() {
    let hunk = "@@ -0,0 +1,3 @@\n+```rust\n+x\n+```\n";
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    for (document, base) in [
        (format!("--- a/a.rs\n+++ b/a.rs\n{hunk}"), None),
        (format!("--- a/a.rs\n+++ b/a.rs\n{hunk}"), Some("")),
        (format!("diff --git a/a.rs b/a.rs\nindex {empty}..89abcde 100644\n--- a/a.rs\n+++ b/a.rs\n{hunk}"), Some("")),
    ] {
        assert_eq!(refused(Dialect::GitPatch, &document, base).0, "SUSPECT_CONTENT.FENCED", "{document}");
    }
}

/// Removed text adds no comment, although the parts of a line that stay may look like one.
#[test]
fn a_deletion_adds_no_comment() {
    let base = "a();\n# rest of the file is parsed later, and slowly\n";
    for (find, replace) in [(" is parsed later", ""), ("a();\n", ""), (" is parsed later, and slowly", "")] {
        let document =
            format!(r#"{{"patches":[{{"path":"a.py","replacements":[{{"find":{find:?},"replace":{replace:?}}}]}}]}}"#);
        assert_eq!(judge(Dialect::StructuredPatch, &document, Some(base)), Ok(vec![]), "{find}");
    }
}

/// Many comments and conflicts: the time grows with their number, and not with its square.
#[test]
fn the_time_is_linear() {
    let comment = |at: usize| format!("// ... existing code {at} ...\n");
    let conflict = |at: usize| format!("<<<<<<< a\n{at}\n=======\n>>>>>>> b\n");
    let kinds: [(&dyn Fn(usize) -> String, _, _); 2] =
        [(&comment, "", true), (&conflict, "<<<<<<< x\n=======\n>>>>>>> y\n", false)];
    for (text, end, is_applied) in kinds {
        let make = |count| {
            let text: String = (0..count).map(text).collect();
            (batch(write("a.rs", &format!("{text}{end}"), None)), format!("{}{text}", "x\n".repeat(count)))
        };
        assert_linear(&text(0), 1_000, make, |(patch, base)| {
            let applied = apply_all(patch, &[Some(base.as_bytes())], &Limits::DEFAULT);
            assert_eq!(applied.is_ok(), is_applied);
        });
    }
}

/// What a file is already, and holds already, it may be and hold again.
#[test]
fn what_the_base_has_is_not_suspect() {
    let fenced = "```\nx\n```\n";
    let markers = "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n";
    let elided = "a\nb\n// ...\n";
    for (base, content) in [
        (fenced, "```\ny\n```\n"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+c\n"),
        (markers, &markers.replace('1', "3")),
        (elided, "a\n// ...\n"),
        ("x\n", "a longer text\n// ... existing code ...\nthan it was\n"),
        ("x\n", "x\n"),
    ] {
        let patch = batch(write("a.rs", content, None));
        let applied = apply_all(&patch, &[Some(base.as_bytes())], &Limits::DEFAULT);
        assert!(applied.is_ok_and(|applied| applied[0].report.warnings.is_empty()), "{content:?} over {base:?}");
    }
    let twice = markers.repeat(2);
    let failures = apply_all(&batch(write("a.rs", &twice, None)), &[Some(markers.as_bytes())], &Limits::DEFAULT);
    assert_eq!(code(&failures.unwrap_err()[0]), "SUSPECT_CONTENT.CONFLICT_MARKERS");
}

/// A byte order mark, carriage returns and a missing last terminator hide nothing.
#[test]
fn the_form_of_a_text_hides_nothing() {
    for (content, expected) in [
        ("\u{feff}```\r\nx\r\n```", "FENCED"),
        ("\u{feff}--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b", "LOOKS_LIKE_DIFF"),
        ("````md\n```\nx\n```\n````\n", "FENCED"),
        ("```md\n```py\nx\n```\n```\n", "FENCED"),
        ("x\r\n<<<<<<<\r\n=======\r\n>>>>>>> y", "CONFLICT_MARKERS"),
        ("x\r\n// ...", "ELISION"),
        ("\u{feff}// ...\r\nx", "ELISION"),
    ] {
        let base = "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n10\r\n11\r\n12\r\n13\r\n14\r\n";
        let failures = apply_all(&batch(write("a.rs", content, None)), &[Some(base.as_bytes())], &Limits::DEFAULT);
        let failures = failures.expect_err(content);
        assert_eq!(code(&failures[0]), format!("SUSPECT_CONTENT.{expected}"), "{content:?}");
    }
}

/// The author's way past it, and the user's; another content format is refused by name.
#[test]
fn such_text_is_written_where_it_is_declared() {
    let content = "```\nx\n```\n";
    let none = [(None, None)];
    let with = |suspicion| Settings { suspicion, ..Settings::DEFAULT };
    for (suspicion, format, expected) in [
        (Suspicion::Refuse, Some("verbatim"), 0),
        (Suspicion::Warn, Some("verbatim"), 0),
        (Suspicion::Warn, None, 1),
        (Suspicion::Off, None, 0),
    ] {
        let (applied, _) = apply_with(&batch(write("a.rs", content, format)), &none, &with(suspicion)).unwrap();
        assert_eq!(applied[0].report.warnings.len(), expected, "{suspicion:?} {format:?}");
        assert_eq!(applied[0].content, content.as_bytes());
    }
    let failures = apply_with(&batch(write("a.rs", "x", Some("raw"))), &none, &Settings::DEFAULT).unwrap_err();
    assert_eq!(
        (code(&failures[0]), failures[0].field.as_deref()),
        ("INVALID_REQUEST.CONTENT_FORMAT".to_owned(), Some("files[0].contentFormat"))
    );
    assert!(failures[0].message.contains("'raw'"), "{failures:?}");
}

/// Whether a text is written over a file that its author cannot read does not depend on what the file holds.
#[test]
fn a_withheld_file_is_not_looked_at() {
    for (content, is_refused) in
        [("<<<<<<<\n=======\n>>>>>>>\n", true), ("```\nx\n```\n", true), ("// ...\n", false), ("x\n", false)]
    {
        let patch = batch(write("a.rs", content, None));
        for base in [
            None,
            Some("x\n".repeat(9)),
            Some(content.to_owned() + "y\n"),
            Some(format!("{content}{content}")),
            Some(content.to_owned()),
        ] {
            let mut valid = validate(&patch, &Limits::DEFAULT).unwrap();
            valid.blind(|_| true);
            let mut file = observed("a.rs", None);
            file.content = base.as_deref().map(str::as_bytes);
            let files = [file];
            assert_eq!(plan(&valid, &files, &Settings::DEFAULT).is_err(), is_refused, "{content:?} over {base:?}");
        }
    }
    // Nor is its form taken over.
    let patch = batch(write("a.rs", "x\ny\n", None));
    let mut valid = validate(&patch, &Limits::DEFAULT).unwrap();
    valid.blind(|_| true);
    let files = [observed("a.rs", Some(b"\xef\xbb\xbfa\r\n"))];
    let plan = plan(&valid, &files, &Settings::DEFAULT).unwrap();
    assert_eq!((&*plan.files[0].content(), plan.files[0].normalized.as_slice()), (&b"x\ny\n"[..], &[][..]));
}
