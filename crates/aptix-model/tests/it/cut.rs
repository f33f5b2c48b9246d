//! Truncated documents: each is refused at every byte, or has the same result as the whole.

use aptix_model::batch::{Batch, FileEdit};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;

const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Whole documents, each with the dialect it is in.
fn documents() -> Vec<(Dialect, String)> {
    let block = "<<<<<<< SEARCH\nold one\n=======\nnew one\nand more\n>>>>>>> REPLACE\n";
    let dashed = "------- SEARCH\nold two\n=======\nnew two\n+++++++ REPLACE\n";
    vec![
        (Dialect::SearchReplace, format!("a/one.txt\n{block}\n`b/two.txt`\n```text\n{block}```\n")),
        (Dialect::SearchReplace, format!("a/one.txt\n```\n{block}\n{block}```\n\n### b/two.txt\n\n~~~\n{block}~~~\n")),
        (Dialect::SearchReplace, format!("a/one.txt\r\n{block}\r\n<source>\r\n// b/two.txt\r\n{block}</source>\r\n")),
        (Dialect::SearchReplace, format!("Change this:\n\na/one.txt\n{dashed}\nAnd the other:\n\nb/two.txt\n{dashed}")),
        (
            Dialect::CodexPatch,
            "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Delete File: old.txt\n*** Update File: a.txt\n\
             *** Move to: b.txt\n@@ fn main\n one\n-two\n+three\n*** End of File\n*** Update File: c.txt\n-x\n+y\n\
             *** End Patch\n"
                .to_owned(),
        ),
        (
            Dialect::CodexPatch,
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n*** End Patch\nEOF\n".to_owned(),
        ),
        (Dialect::CodexPatch, " *** Begin Patch\n *** Update File: a.txt\n@@\n one\n-two\n *** End Patch\n".to_owned()),
        (
            Dialect::StrReplace,
            r#"[{"command": "str_replace", "path": "a", "old_str": "x\u00e4", "new_str": "y"},
                {"command": "insert", "path": "b", "insert_line": 12, "insert_text": "z\n"}]"#
                .to_owned(),
        ),
        (
            Dialect::SearchPatch,
            r#"{"path": "a", "patches": [{"operation": "replace", "oldText": "x", "newText": null}]}"#.to_owned(),
        ),
        (
            Dialect::LinePatch,
            format!(
                r#"{{"files": [{{"docPath": "r/a", "originalSha256": "{SHA}", "changes": [
                    {{"operation": "replace", "startLine": 12, "endLine": 12, "expectedOriginalLines": ["a"], "newLines": ["b"]}},
                    {{"operation": "insert", "afterLine": 120, "newLines": ["b", ""]}}]}}]}}"#
            ),
        ),
        (Dialect::CreateFile, r#"{"path": "a", "content": "one\ntwo\n", "overwrite": true}"#.to_owned()),
        (
            Dialect::StructuredPatch,
            r#"{"root": ".", "patches": [{"path": "a", "replacements": [{"find": "x", "replace": "y", "limit": "all"}]}]}"#
                .to_owned(),
        ),
        (Dialect::FileBundle, r#"{"files": [{"path": "a", "content": "x"}, {"path": "b", "operation": "delete"}]}"#.to_owned()),
    ]
}

/// Whether a batch has the first edits of another one, and no others: what is left of a text of several blocks that was cut
/// between two of them, which is indistinguishable from one that ends there.
fn is_head(part: &Batch, whole: &Batch) -> bool {
    part.files.iter().zip(&whole.files).all(|(part, whole)| match (&part.edit, &whole.edit) {
        (FileEdit::Replacements(part), FileEdit::Replacements(whole)) => whole.steps.starts_with(&part.steps),
        (part, whole) => part == whole,
    })
}

#[test]
fn a_document_cut_at_any_byte_is_refused_or_has_the_same_result() {
    for (dialect, text) in documents() {
        let whole = parse(text.as_bytes(), Some(dialect)).unwrap_or_else(|failures| panic!("{text}\n{failures:?}"));
        for end in 0..text.len() {
            let Some(head) = text.get(..end) else { continue };
            for given in [Some(dialect), None] {
                let Ok(part) = parse(head.as_bytes(), given) else { continue };
                let tail = head.rsplit(" REPLACE").next().unwrap_or_default();
                let ends_between = dialect == Dialect::SearchReplace
                    && tail.len() < head.len()
                    && !tail.contains("<<<")
                    && !tail.contains("----")
                    && is_head(&part.batch, &whole.batch);
                assert!(part.batch == whole.batch || ends_between, "applied in part, given {given:?}:\n{head}");
            }
        }
    }
}

const DIFF: &str = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn a_truncated_document_is_refused_as_truncated() {
    let block = "a/one.txt\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";
    let cut = |failures: &[Failure]| {
        failures.iter().all(|failure| failure.hint.as_deref().is_some_and(|hint| hint.contains("cut short")))
    };
    let texts = [
        (Dialect::SearchReplace, format!("{block}<<<<")),
        (Dialect::SearchReplace, format!("{block}b.txt\n<<<<<<< SEA")),
        (Dialect::SearchReplace, format!("{block}b.txt\n<<<<<<< SEARCH\nold\n====")),
        (Dialect::SearchReplace, format!("{block}b.txt\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPL")),
        (Dialect::SearchReplace, format!("{block}src/b.txt\n")),
        (Dialect::SearchReplace, format!("{block}\nsr")),
        (Dialect::SearchReplace, format!("{block}\nREADME.")),
        (Dialect::SearchReplace, format!("{block}\n```python\n")),
        (Dialect::SearchReplace, format!("{block}\nAnd in the other file:\n")),
        (Dialect::Chat, format!("Words.\n\n```diff\n{DIFF}```\n\nAnd the other one.\n\n``")),
        (Dialect::Chat, format!("Words.\n\n~~~diff\n{DIFF}~~~\n\n~")),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Pat".to_owned()),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Upd".to_owned()),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Add File: a\n+x\n***".to_owned()),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Delete File: a\n*** E".to_owned()),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n".to_owned()),
        (Dialect::StrReplace, r#"{"command": "create", "path": "a", "file_text": "x"#.to_owned()),
        (Dialect::SearchPatch, r#"{"path": "a", "patches": [{"operation": "repl"#.to_owned()),
        (Dialect::LinePatch, r#"{"files": [{"docPath": "r/a", "changes": [{"startLine": 1"#.to_owned()),
        (Dialect::CreateFile, r#"{"path": "a", "content": "one\u00"#.to_owned()),
        (Dialect::CreateFile, r#"{"path": "a", "content": "one", "overwrite": tr"#.to_owned()),
    ];
    for (dialect, text) in texts {
        let failures = parse(text.as_bytes(), Some(dialect)).expect_err(&text);
        assert!(cut(&failures), "{text}\n{failures:?}");
    }
}

/// Prose below a block may have what a marker begins with, as long as nothing says that a block follows.
#[test]
fn prose_below_the_last_block_is_read_over() {
    let block = "a/one.txt\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n";
    for prose in [
        "",
        "Done.\n",
        "---\n",
        "```\n",
        "Run it:\n\n```sh\nmake\n```\n",
        "Files:\n- src/b.txt\n",
        "Makefile\n",
        "</details>\n",
    ] {
        let text = format!("{block}{prose}");
        assert!(parse(text.as_bytes(), Some(Dialect::SearchReplace)).is_ok(), "{text}");
    }
}

/// A header that breaks off within a line: what is above the break is never taken for all that happens to the file.
#[test]
fn a_git_header_cut_within_a_line_is_refused() {
    let whole = "diff --git a/f b/f\nindex 1111111..2222222 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    let headers = [
        "new file mode 100644\nindex 0000000..3333333\n--- /dev/null\n+++ b/g\n",
        "old mode 100644\nnew mode 100755\nindex 1111111..2222222\n--- a/g\n+++ b/g\n",
        "deleted file mode 100644\nindex 3333333..0000000\n--- a/g\n+++ /dev/null\n",
        "old mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from g\nrename to h\nindex 1111111..2222222\n",
        "similarity index 100%\nrename from g\nrename to h\n",
        "index 1111111..2222222 100644\n--- a/g\n+++ b/g\n",
    ];
    for header in headers {
        let new = if header.contains("rename") { "h" } else { "g" };
        let first = format!("{whole}diff --git a/g b/{new}\n");
        let text = format!("{first}{header}{hunk}");
        for end in whole.len() + 1..first.len() + header.len() {
            let head = &text[..end];
            // What ends at a line can be whole: a file whose mode changes, or one that is removed or renamed as it is.
            let ends_a_line = text[end..].starts_with('\n') || head.ends_with('\n');
            if !ends_a_line {
                assert!(parse(head.as_bytes(), Some(Dialect::GitPatch)).is_err(), "{head}");
            }
        }
    }
}
