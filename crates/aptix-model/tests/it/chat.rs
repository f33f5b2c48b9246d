//! Whole answers: which of their blocks are edits, and how the others are handled.

use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::quote::QuoteName;
use proptest::prelude::*;

use crate::cost::assert_linear;

pub(crate) const A: &str = r#"{"files": [{"path": "a", "content": "x\n"}]}"#;

/// The paths of an answer's edits, the names that the files decide about, with `?` behind what only may be a path and `:`
/// behind the words of a sentence, and the codes of its warnings; or what it is refused for.
pub(crate) fn read(answer: &str) -> Result<(Vec<String>, Vec<String>), Failure> {
    let document = parse(answer.as_bytes(), None).map_err(|mut failures| failures.swap_remove(0))?;
    assert_eq!(document.dialect, Dialect::Chat, "{answer}");
    let mut paths: Vec<_> = document.batch.files.iter().map(|file| file.target.as_str().to_owned()).collect();
    for quote in &document.batch.quotes {
        let name = |name: &QuoteName| format!("{}{}", name.path, if name.is_path { "" } else { "?" });
        let names: Vec<_> = quote.names.iter().map(name).collect();
        paths.push(format!("{}{}", names.join(" "), if quote.is_announced { ":" } else { "" }));
    }
    Ok((paths, document.warnings.into_iter().map(|warning| warning.code).collect()))
}

/// The edits of an answer, whatever else it has.
#[track_caller]
pub(crate) fn check_edits(answer: &str, expected: &[&str]) {
    let document = parse(answer.as_bytes(), None).unwrap_or_else(|failures| panic!("{answer}\n{}", failures[0]));
    let found: Vec<_> = document.batch.files.iter().map(|file| file.target.as_str()).collect();
    assert_eq!((document.dialect, found.as_slice()), (Dialect::Chat, expected), "{answer}");
}

#[track_caller]
pub(crate) fn check(answer: &str, expected: &[&str]) {
    let (paths, warnings) = read(answer).unwrap_or_else(|failure| panic!("{answer}\n{failure}"));
    let found: Vec<_> = paths.iter().chain(&warnings).map(String::as_str).collect();
    assert_eq!(found, expected, "{answer}");
}

#[track_caller]
pub(crate) fn refuse(answer: &str, code: &str, words: &str) {
    let failure = read(answer).expect_err(answer);
    let detail = failure.detail.map_or_else(String::new, |detail| format!(".{detail}"));
    assert_eq!(format!("{}{detail}", failure.reason), code, "{answer}\n{failure}");
    let said = format!("{failure} {}", failure.hint.as_deref().unwrap_or_default());
    assert!(said.contains(words), "{answer}\n{said}");
}

/// FILE-SPEC-1.0.1: edits are in fenced blocks, however these are fenced.
#[test]
fn a_block_is_found_whatever_its_fence() {
    for answer in [
        format!("Here:\n\n```json\n{A}\n```\nDone."),
        format!("```json\n{A}\n```"),
        format!("````json\n{A}\n````\n"),
        format!("~~~json\n{A}\n~~~\n"),
        format!("~~~~~ json title=\"a\"\n{A}\n~~~~~~~\n"),
        format!("Here:\r\n```json\r\n{A}\r\n```\r\n"),
        format!("1. First:\n\n   ```json\n   {A}\n   ```\n"),
        format!("> ```json\n> {A}\n> ```\n"),
        format!("  ```json\n{A}\n```  \n"),
        format!("A run of ``` in a line.\n\n```json\n{A}\n```\n"),
        format!("<source>json\n{A}\n</source>\n"),
        format!("<pre>never closed\n\n```json\n{A}\n```\n"),
        format!("<pre>\n```json\n{A}\n```\n</pre>\n"),
        format!("<details>\n```json\n{A}\n```\n</details>\n"),
        // what is no edit
        format!("<!--\n```json\n{A}\n```\n-->\n```json\n{A}\n```\n"),
        format!("```bash\ncargo test\n```\n```json\n{A}\n```\n```\nplain\n```"),
        format!("    ```json\n    not fenced, but indented\n\n```json\n{A}\n```\n"),
        format!("```json\n```\n```json\n{A}\n```\n"),
    ] {
        check_edits(&answer, &["a"]);
    }
    let sample = "{\"name\": \"package\", \"version\": 3}";
    check(&format!("```json\n{sample}\n```\n```json\n{A}\n```\n"), &["a", "BLOCK_IGNORED"]);
    let inside = r#"{"files": [{"path": "b.md", "content": "```json\n{}\n```\n~~~\n"}]}"#;
    check(&format!("```json\n{inside}\n```\n"), &["b.md"]);
}

/// FILE-SPEC-2.1.1: a structured patch comes in one `json` block.
#[test]
fn a_structured_patch_is_read_from_its_block() {
    let patch = r#"{"root": ".", "patches": [{"path": "a", "replacements": [{"find": "x", "replace": "y"}]}]}"#;
    check(&format!("Only this:\n\n```json\n{patch}\n```\n"), &["a"]);
    refuse(&format!("```json\n{patch}\n```\n\n```json\n{patch}\n```\n"), "INVALID_REQUEST.DUPLICATE_PATH", "");
}

/// FILE-SPEC-1.0.2, FILE-SPEC-1.0.3, FILE-SPEC-1.0.4, FILE-SPEC-1.0.5, FILE-SPEC-8.1, FILE-SPEC-8.2.1: a block holds an edit and nothing else.
#[test]
fn failures_are_reported_with_their_block_and_line() {
    let block = |text: &str| format!("One.\n\n```json\n{text}\n```\n");
    refuse(
        &block("{\"path\": \"a\",\n // why\n \"content\": \"\"}"),
        "INVALID_REQUEST.JSON",
        "lines 3 to 7 of the answer",
    );
    refuse(&block("{\"path\": \"a\",\n \"content\": \"\"} so"), "INVALID_REQUEST.TRAILING", "line 5");
    refuse(
        &block("{\"files\": [{\"path\": \"a\",\n\n \"contents\": \"\"}]}"),
        "INVALID_REQUEST.UNKNOWN_FIELD",
        "line 6",
    );
    refuse(&block("Sure:\n{\"path\": \"a\", \"content\": \"\"}"), "INVALID_REQUEST.JSON", "line 4");
    refuse(
        "```json\n{\"files\": [{\"content\": \"\",\n```\n\"path\": \"a\"}]}\n",
        "INVALID_REQUEST.JSON",
        "json block at lines 1 to 3",
    );
    refuse(&block(&format!("{A}{A}")), "INVALID_REQUEST.MULTIPLE_BLOCKS", "send one");
    refuse(&format!("```json\n{A}\n```\n\n```json\n{A}\n```"), "INVALID_REQUEST.DUPLICATE_PATH", "lines 5 to 7");
    // cut short
    refuse(&format!("```json\n{A}\n"), "INVALID_REQUEST.FENCE", "no closing fence");
    refuse(&format!("````json\n{A}\n```"), "INVALID_REQUEST.FENCE", "no closing fence");
    refuse(&format!("- ```json\n  {A}\n\nMore."), "INVALID_REQUEST.FENCE", "no closing fence");
    refuse(&format!("```json\n{A}\n```\n```text\nand"), "INVALID_REQUEST.FENCE", "text block at lines 4 to 5");
    for tag in ["", "JSON", "json5", "jsonc"] {
        check(&format!("```{tag}\n{A}\n```"), &["a"]);
    }
    // tags that edits do not have
    for tag in ["text", "js"] {
        refuse(&format!("```{tag}\n{A}\n```"), "INVALID_REQUEST.FENCE", "tagged json");
    }
}

#[test]
fn an_answer_without_an_edit_is_refused_as_such() {
    refuse("Nothing to do here.", "NO_EDIT_FOUND", "no fenced block");
    refuse("```bash\nls\n```", "NO_EDIT_FOUND", "none of its 1 fenced blocks");
    refuse("```json\n{\"name\": 1}\n```", "NO_EDIT_FOUND", "its keys are 'name'");
    refuse("```json\n\"a\"\n```", "NO_EDIT_FOUND", "its keys are none");
    refuse("```json\n```", "NO_EDIT_FOUND", "none");
}

/// FILE-SPEC-2.4.4, FILE-SPEC-2.4.5, FILE-SPEC-3.2.1, FILE-SPEC-6.1.1, FILE-SPEC-6.2.1, FILE-SPEC-8.3: the fixed sentences are known.
#[test]
fn an_author_who_declines_is_heard() {
    let no_patch = "A patch cannot be safely generated with the information provided.";
    let no_git = "Unable to generate a safe Git patch; fallback to Aptix file bundle or structured patch.";
    for sentence in [no_patch, no_git] {
        refuse(sentence, "AUTHOR_DECLINED", sentence);
        refuse(&format!("Sorry.\n\n> `{sentence}`\n\nMore."), "AUTHOR_DECLINED", sentence);
        refuse(&format!("```\n{sentence}\n```"), "AUTHOR_DECLINED", sentence);
        refuse(&sentence.replacen(' ', "\n", 4), "AUTHOR_DECLINED", sentence);
    }
    refuse(&format!("{no_patch}\n```json\n{A}\n```"), "AUTHOR_DECLINED", "an edit all the same");
    check(&format!("{no_git}\n```json\n{A}\n```"), &["a"]);
    let quoting = format!(r#"{{"files": [{{"path": "a", "content": "{no_patch}"}}]}}"#);
    check(&format!("```json\n{quoting}\n```"), &["a"]);
}

/// An envelope is found in any fence or none; what it holds may look like a fence.
#[test]
fn an_envelope_is_found_wherever_it_stands() {
    let envelope = "*** Begin Patch\n*** Add File: n.md\n+```json\n+{}\n*** Update File: m.md\n@@\n ```\n-a\n+b\n ```\n*** End Patch";
    for answer in [
        format!("Now:\n{envelope}\nDone."),
        format!("```\n{envelope}\n```"),
        format!("Now:\n```bash\napply_patch <<'EOF'\n{envelope}\nEOF\n```"),
        format!("Now:\r\n```patch\r\n{}\r\n```", envelope.replace('\n', "\r\n")),
    ] {
        check(&answer, &["n.md", "m.md"]);
    }
    let indented = "- Now:\n  ```\n  *** Begin Patch\n  *** Delete File: a\n  *** End Patch\n  ```\n";
    check(indented, &["a"]);
    check(&format!("Both:\n{envelope}\n```json\n{A}\n```"), &["a", "n.md", "m.md"]);
    let delete = "*** Begin Patch\n*** Delete File: A\n*** End Patch";
    refuse(&format!("Both:\n{delete}\n{delete}"), "INVALID_REQUEST.DUPLICATE_PATH", "lines 5 to 7");
    check(&format!("Both:\n{delete}\n{}", delete.replace(": A", ": B")), &["A", "B"]);
    refuse(&format!("One:\n```\n{}", &envelope[..40]), "PATCH_TRUNCATED.MARKER", "lines 3 to 5 of the answer");
    refuse("Look:\n\n*** Begin Patch\n*** Drop File: a\n*** End Patch", "PATCH_MALFORMED.MARKER", "line 4");
}

/// FILE-SPEC-5.1, FILE-SPEC-5.2, FILE-SPEC-5.3, FILE-SPEC-5.4: blocks of different kinds are one batch, and are not about one file.
#[test]
fn blocks_of_different_kinds_are_one_batch() {
    let delete = |path: &str| format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
    check(&format!("One.\n{}\n```json\n{A}\n```", delete("b")), &["a", "b"]);
    refuse(&format!("One.\n{}```json\n{A}\n```", delete("A")), "INVALID_REQUEST.DUPLICATE_PATH", "lines 5 to 7");
    refuse(&format!("One.\n{}```json\n{A}\n```", delete("A")), "INVALID_REQUEST.DUPLICATE_PATH", "lines 2 to 4");
    let bundle = r#"{"files": [{"path": "a", "content": "x"}]}"#;
    let every =
        format!("One.\n{}\nf.rs\n{}\n```patch\n{}```\n```json\n{bundle}\n```", delete("b"), blocks("x"), diff("d"));
    check(&every, &["a", "b", "f.rs", "d"]);
    refuse(
        &every.replace("f.rs", "d"),
        "INVALID_REQUEST.DUPLICATE_PATH",
        "\"d\" is edited by the SEARCH/REPLACE block",
    );
    refuse(
        &format!("```patch\n{0}```\n```patch\n{0}```", diff("d")),
        "INVALID_REQUEST.DUPLICATE_PATH",
        "\"d\" is edited by the patch block at lines 1 to 9 of the answer and by the patch block at lines 10 to 18",
    );
    check(&format!("```patch\n{}```\n```patch\n{}```", diff("d"), diff("e")), &["d", "e"]);
}

pub(crate) fn diff(path: &str) -> String {
    format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n")
}

pub(crate) fn blocks(old: &str) -> String {
    format!("<<<<<<< SEARCH\n{old}\n=======\nnew\n>>>>>>> REPLACE\n")
}

/// FILE-SPEC-3.1.1, FILE-SPEC-8.1: a git patch comes in a block tagged `patch` or `diff`, and has no commentary.
#[test]
fn a_diff_is_read_from_its_block() {
    for tag in ["patch", "diff"] {
        check(&format!("So:\n```{tag}\n{}```\n", diff("d")), &["d"]);
        check(&format!("So:\r\n```{tag}\r\n{}```\r\n", diff("d").replace('\n', "\r\n")), &["d"]);
    }
    check(&format!("Like this\n```diff\n-a\n+b\n```\nso:\n```diff\n{}```\n", diff("d")), &["d", "BLOCK_IGNORED"]);
    // a diff elsewhere is not passed over
    for tag in ["", "udiff", "Diff"] {
        check(&format!("```diff\n{}```\n```{tag}\n{}```\n", diff("d"), diff("e")), &["d", "e"]);
    }
    for tag in ["python", "text"] {
        let answer = format!("```diff\n{}```\n```{tag}\n{}```\n", diff("d"), diff("e"));
        refuse(&answer, "INVALID_REQUEST.FENCE", "tagged diff or patch");
    }
    let answer = format!("```diff\n{}```\nand\n{}", diff("d"), diff("e"));
    refuse(&answer, "INVALID_REQUEST.FENCE", "the text outside of its blocks holds a diff");
    for other in [
        "--- a/e\n+++ b/e\n@@\n-a\n+b\n",
        "diff --git a/e b/e\ndeleted file mode 100644\n",
        "diff --git a/e b/f\nsimilarity index 100%\nrename from e\nrename to f\n",
    ] {
        refuse(&format!("So:\n```json\n{A}\n```\n{other}"), "INVALID_REQUEST.FENCE", "line 5");
        refuse(&format!("So:\n```json\n{A}\n```\n```text\n{other}```\n"), "INVALID_REQUEST.FENCE", "line 6");
    }
    let fenced = diff("d").replace(" c\n", " ```\n");
    check(&format!("So:\n````patch\n{fenced}````\n"), &["d"]);
    refuse(&format!("So:\n```patch\n{fenced}```\n"), "INVALID_REQUEST.FENCE", "longer fences");
    refuse(&format!("So:\n```patch\n{}", diff("d")), "INVALID_REQUEST.FENCE", "no closing fence");
    check(&format!("So:\n```patch\n{}and so on\n```\n", diff("d")), &["d"]);
    let said = read(&format!("So:\n```patch\n{}and so on\n+++ b/e\n```\n", diff("d"))).unwrap_err();
    assert!(said.message.contains("patch block at lines 2 to 12") && said.to_string().contains("line 11"), "{said}");
}

/// All SEARCH/REPLACE blocks are one document, whatever their fences and what they hold.
#[test]
fn blocks_of_old_and_new_lines_are_one_document() {
    for answer in [
        format!(
            "One:\n\nf.md\n```python\n{}```\nTwo:\n\nf.md\n<source>python\n{}</source>\n",
            blocks("a"),
            blocks("b")
        ),
        format!("One:\nf.md\n```\n{}```\n", blocks("```json\n{}\n~~~")),
        format!("One:\nf.md\n{}", blocks("*** Begin Patch")),
        format!("f.md\n```diff\n{}```\n```json\n```", blocks("a")),
    ] {
        check_edits(&answer, &["f.md"]);
    }
    check(&format!("f.md\n{}\n```json\n{A}\n```\n", blocks("a")), &["a", "f.md"]);
    refuse("Here:\nf.md\n<<<<<<< SEARCH\na\n", "PATCH_TRUNCATED.MARKER", "");
    refuse(&format!("Now do this:\n{}", blocks("a")), "PATCH_MALFORMED.MISSING", "block at lines 2 to 6 of the answer");
    let indented = blocks("a").replace('\n', "\n  ");
    refuse(&format!("- f.md\n\n  ```\n  {indented}```\n"), "INVALID_REQUEST.MARKER", "line 4");
}

/// A text that begins with a bracket need not be JSON.
#[test]
fn an_answer_may_begin_with_a_bracket() {
    for begin in ["[INST] So [/INST]", "[1] says so.", "{{user}}:"] {
        check(&format!("{begin}\n```json\n{A}\n```\n"), &["a"]);
    }
    let broken = parse(b"{\"files\": [{\"path\": \"a\", \"content\": \"x\"},]}", None).unwrap_err().remove(0);
    assert_eq!(broken.detail.map(|detail| detail.to_string()).as_deref(), Some("JSON"), "{broken}");
}

/// A thought before an answer contains no edits; one that seems to is reported.
#[test]
fn what_was_thought_is_no_edit() {
    let json = format!("```json\n{A}\n```\n");
    check(&format!("<think>\nHm.\n</think>\n\nSo:\n{json}"), &["a"]);
    check(&format!("\n<thinking>Hm.</thinking>\n{json}"), &["a"]);
    check(&format!("<think>\r\nHm.\r\n</think>{json}"), &["a"]);
    check(&format!("<reasoning>\nf.md\n{}</reasoning>\n{json}", blocks("x")), &["a", "BLOCK_IGNORED"]);
    for draft in
        [json.replace("\"a\"", "\"b\""), blocks("x"), format!("```diff\n{}```", diff("d")), A.replace("\"a\"", "\"b\"")]
    {
        check(&format!("<think>\nPerhaps\n{draft}\nNo.\n</think>\nf.md\n{}", blocks("a")), &["f.md", "BLOCK_IGNORED"]);
        refuse(&format!("<think>\n{draft}\n</think>\nNothing."), "NO_EDIT_FOUND", "");
        refuse(&format!("<think>\nf.md\n{draft}\n"), "INVALID_REQUEST.FENCE", "nothing ends it with </think>");
    }
    // What is below may be a document alone; lines are those of the answer.
    let alone = |text: &str| parse(format!("<think>\nHm.\n</think>\n{text}").as_bytes(), None);
    assert_eq!(alone(A).unwrap().batch.files.len(), 1);
    assert_eq!(alone(&diff("d")).unwrap().batch.files.len(), 1);
    assert_eq!(alone(&format!("f.md\n{}", blocks("a"))).unwrap().batch.files.len(), 1);
    let broken = alone("{\"path\": \"a\"\n \"content\": \"\"}").unwrap_err().remove(0);
    assert!(broken.to_string().contains("line 5"), "{broken}");
    refuse(
        "<think>\nHm.\n</think>\n```json\n{\"files\": [{\"path\": \"a\",\n \"contents\": \"\"}]}\n```\n",
        "INVALID_REQUEST.UNKNOWN_FIELD",
        "line 6",
    );
    // Where a thought ends that did not begin, or ends twice, edits above may be part of it.
    check(&format!("Hm.\n</think>\n{json}"), &["a"]);
    refuse(&format!("Hm.\n{json}</think>\nSo.\n"), "INVALID_REQUEST.FENCE", "only have been thought of");
    refuse(
        &format!("<think>\nAfter </think> then:\nf.md\n{}</think>\n{json}", blocks("x")),
        "INVALID_REQUEST.FENCE",
        "line 9",
    );
    refuse(&format!("f.md\n{}\n</think>\nSo.\n", blocks("x")), "INVALID_REQUEST.FENCE", "only have been thought of");
    // In an edit the tags are text like any other.
    check(&format!("One:\nf.md\n{}", blocks("<think>\n</think>")), &["f.md"]);
    check_edits(&format!("One:\n```\n</think>\n```\n{json}```\n</think>\n```"), &["a"]);
}

/// An edit in JSON outside of blocks is not skipped.
#[test]
fn json_outside_of_blocks_is_not_passed_over() {
    let edits = format!("f.md\n{}", blocks("a"));
    let bundle = "{\n  \"files\": [\n\n    {\"path\": \"b\", \"content\": \"x\"}\n  ]\n}";
    let command = r#"[{"command": "insert", "path": "b", "insert_line": 0, "insert_text": "x"}]"#;
    for json in [A, bundle, command, &A.replace('}', ",}"), &format!("Then {A}."), &A[..A.len() - 2]] {
        for answer in
            [format!("{edits}\n{json}\n"), format!("{json}\n\n{edits}"), format!("So:\n{edits}\nAnd:\n\n{json}\n")]
        {
            if answer.starts_with(['{', '[']) {
                continue; // a JSON document with something behind it
            }
            refuse(&answer, "INVALID_REQUEST.FENCE", "tagged json");
        }
    }
    refuse(&format!("So:\n{A}\n"), "INVALID_REQUEST.FENCE", "line 2");
    for text in [
        "{x}",
        "{",
        "{\"name\": \"content\"}",
        "`{\"path\": ...}`",
        "[1] and [2]",
        "`{\"role\": \"user\", \"content\": \"x\"}`",
        "{\"command\": \"npm\", \"args\": [\"x\"]}",
        "{}{}{}",
        "<!--\n{A}\n-->",
    ] {
        check(&format!("So:\n{edits}\n{}\n", text.replace("{A}", A)), &["f.md"]);
    }
    check(&format!("So:\nf.md\n{}", blocks(A)), &["f.md"]);
    refuse(&format!("So:\n{edits}\n{{{A}}}\n"), "INVALID_REQUEST.FENCE", "tagged json");
}

/// Calls of tools, and patches that are indented outside of blocks, are not read, and not passed over either.
#[test]
fn what_is_written_for_other_readers_is_not_passed_over() {
    let edits = format!("So:\nf.md\n{}", blocks("a"));
    for call in
        ["<write_to_file>\n<path>b</path>\n<content>\nx\n</content>\n</write_to_file>", "  <invoke name=\"edit\">"]
    {
        refuse(&format!("{edits}{call}\n"), "INVALID_REQUEST.FENCE", "calls a tool");
        refuse(&format!("f.md\n{}{call}\n", blocks("a")), "INVALID_REQUEST.FENCE", "calls a tool");
        check(&format!("{edits}```\n{call}\n```\n"), &["f.md", "BLOCK_IGNORED"]);
        check(&format!("So:\nf.md\n{}", blocks(call)), &["f.md"]);
    }
    let indented = "1. Do\n\n   *** Begin Patch\n   *** Delete File: a\n   *** End Patch\n";
    refuse(&format!("{indented}\n{edits}"), "INVALID_REQUEST.MARKER", "line 3");
    refuse(&format!("{edits}```\n  *** Begin Patch\n```\n"), "INVALID_REQUEST.MARKER", "line 9");
}

/// The text of a comment is not shown to a reader, who may think that it is not there.
#[test]
fn no_edit_is_taken_from_a_comment() {
    let (old, new) = (format!("f.md\n{}", blocks("a")), format!("g.md\n{}", blocks("b")));
    let envelope = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
    for hidden in [&old, envelope] {
        refuse(&format!("So:\n<!--\n{hidden}-->\n{new}"), "INVALID_REQUEST.FENCE", "is in a comment");
        refuse(&format!("{new}<!--\n{hidden}-->\n"), "INVALID_REQUEST.FENCE", "is in a comment");
    }
    check(&format!("So:\n<!-- f.html -->\n{}", blocks("a")), &["f.html"]);
    check(&format!("So:\n{old}<!-- and -->\n{new}"), &["f.md", "g.md"]);
    check(&format!("So:\nf.md\n{}{new}", blocks("<!--")), &["f.md", "g.md"]);
}

fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "```",
        "````",
        "~~~",
        "json",
        "patch",
        "diff",
        "\n",
        "\n",
        "\r\n",
        "- ",
        "> ",
        "   ",
        "<pre>",
        "</pre>",
        "<source>json",
        "<!--",
        "*** Begin Patch",
        "*** End Patch",
        "*** Delete File: a",
        "<<<<<<< SEARCH",
        "=======",
        ">>>>>>> REPLACE",
        "f.rs",
        "python:f.py",
        "// f.rs",
        "File: ",
        "<think>",
        "</think>",
        A,
        "diff --git a/x b/x",
        "--- a/x",
        "+++ b/x",
        "@@ -1 +1 @@",
        "-a",
        "+b",
        "\u{e9}",
        "\"",
        "{",
        "\\",
    ];
    let line = (proptest::sample::select(pieces.to_vec()), any::<bool>());
    proptest::collection::vec(line, 0..60)
        .prop_map(|lines| lines.into_iter().flat_map(|(text, ends)| [text, if ends { "\n" } else { "" }]).collect())
}

proptest! {
    #[test]
    fn every_text_is_an_answer_or_refused(text in soup()) {
        for dialect in [None, Some(Dialect::Chat)] {
            if let Err(failures) = parse(text.as_bytes(), dialect) {
                prop_assert!(!failures.is_empty());
            }
        }
    }
}

/// Answers that are nothing but the beginnings of something are read in time that grows with their length.
#[test]
fn no_answer_takes_long() {
    for piece in [
        "```\n",
        "```json\n{}\n```\n",
        "> ",
        "- ",
        "<pre>\n",
        "<source>\n",
        "*** Begin Patch\n",
        "[",
        "![](",
        "`",
        "*_",
        "<!--",
        "<a ",
        "&",
        "\\",
        "| a ",
        "```json\n\"a\"\n",
        "{",
        "{\"a\":",
        "{\"a\": {\n",
        "{\"a\": \"",
        "{\"a\": [{}, {}",
        "<think>\n",
        "</think>\n",
        "```a:b.c\n",
        "a.b\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
    ] {
        let text = |bytes| format!("So:\n{}", piece.repeat(bytes / piece.len()));
        assert_linear(piece, 3_000, text, |text| parse(text.as_bytes(), Some(Dialect::Chat)));
    }
    for open in ["<tool_call>\n", "<aptix>\n"] {
        let text = |count| format!("So:\n{}", open.repeat(count));
        assert_linear(open, 1_000, text, |text| refuse(text, "INVALID_REQUEST.FENCE", "has no end"));
    }
}
