//! Rule 3.7: what was applied already is not applied again, whatever the dialect; evidence of the whole file comes first.

use aptix_engine::plan::{plan, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::target::ValidTarget;
use aptix_engine::validate::validate;
use aptix_model::batch::{Anchor, AnchorMatch};
use aptix_model::batch::{AnchorEdit, AnchorPlace, Batch, FileEdit, FilePatch, Target};
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;

use crate::boundary::{apply, code};
use crate::tree::blob_id;

/// What a batch of one file makes of it, with the codes of its warnings; `None` is a file that is not there.
fn planned(batch: &Batch, before: Option<&str>) -> Result<(String, Vec<String>), Vec<Failure>> {
    let settled = settle(batch, |path| if path == "f" && before.is_some() { Entry::File } else { Entry::Absent })?;
    let valid = validate(settled.as_ref(), &Settings::DEFAULT.limits)?;
    let observe = |target: &ValidTarget| {
        let ValidTarget::Path(path) = target else { panic!("a path") };
        Observed {
            path: WorkspacePath::new(path.as_str()).unwrap(),
            doc_path: format!("repo/{}", path.folded()),
            content: before.map(str::as_bytes),
            digest: None,
            is_executable: false,
            other: None,
        }
    };
    let snapshot: Vec<_> = reads(&valid).map(|reads| observe(reads.target)).collect();
    let plan = plan(&valid, &snapshot, &Settings::DEFAULT)?;
    let file = &plan.files[0];
    let warnings = file.report(&file.content()).warnings.into_iter().map(|warning| warning.code);
    Ok((String::from_utf8(file.content().into_owned()).unwrap(), warnings.collect()))
}

pub(crate) fn sent(
    dialect: Dialect,
    document: &str,
    before: Option<&str>,
) -> Result<(String, Vec<String>), Vec<Failure>> {
    planned(&parse(document.as_bytes(), Some(dialect))?.batch, before)
}

/// Asserts what a document makes of a file, and that it is refused when it is sent a second time.
#[track_caller]
fn once(dialect: Dialect, document: &str, before: &str, after: &str, again: &str) -> Failure {
    let (found, _) = sent(dialect, document, Some(before)).unwrap_or_else(|failures| panic!("{failures:?}"));
    assert_eq!(found, after, "{document}");
    refused(dialect, document, after, again)
}

#[track_caller]
fn refused(dialect: Dialect, document: &str, before: &str, expected: &str) -> Failure {
    match sent(dialect, document, Some(before)) {
        Ok((found, _)) => panic!("applied, {found:?}: {document}"),
        Err(mut failures) => {
            assert_eq!(code(&failures[0]), expected, "{document}: {}", failures[0]);
            let failure = failures.remove(0);
            assert!(failure.hint.is_some() && failure.current_sha256.is_some(), "{failure:?}");
            failure
        }
    }
}

#[track_caller]
fn applied(dialect: Dialect, document: &str, before: &str, after: &str) -> Vec<String> {
    let (found, warnings) = sent(dialect, document, Some(before)).unwrap_or_else(|failures| panic!("{failures:?}"));
    assert_eq!(found, after, "{document}");
    warnings
}

pub(crate) fn diff(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

pub(crate) fn search(patches: &str) -> String {
    format!("{{\"path\":\"f\",\"patches\":[{patches}]}}")
}

fn swap(old: &str, new: &str) -> String {
    search(&swap_of(old, new))
}

pub(crate) fn swap_of(old: &str, new: &str) -> String {
    format!("{{\"operation\":\"replace\",\"oldText\":{old:?},\"newText\":{new:?}}}")
}

pub(crate) fn steps(steps: &[(&str, &str, &str)]) -> String {
    let steps = steps
        .iter()
        .map(|(find, replace, limit)| format!("{{\"find\":{find:?},\"replace\":{replace:?},\"limit\":{limit:?}}}"));
    let steps = steps.collect::<Vec<_>>().join(",");
    format!("{{\"patches\":[{{\"path\":\"f\",\"replacements\":[{steps}]}}]}}")
}

pub(crate) fn blocks(blocks: &[(&str, &str)]) -> String {
    let blocks = blocks.iter().map(|(old, new)| format!("f\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"));
    blocks.collect()
}

pub(crate) fn codex(chunks: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{chunks}*** End Patch\n")
}

const ALREADY: &str = "ALREADY_APPLIED";
const TWICE: &str = "TEXT_NOT_UNIQUE";

/// An insertion is around its own place once it is made.
#[test]
fn an_insertion_is_made_once_in_every_dialect() {
    use Dialect::{CodexPatch, GitPatch, SearchPatch, SearchReplace, StrReplace, StructuredPatch};
    let (before, after) = ("a\nb\nc\n", "a\nx\nb\nc\n");
    once(GitPatch, &diff("@@ -1 +1,2 @@\n a\n+x\n"), "a\nb\n", "a\nx\nb\n", ALREADY);
    for hunk in ["@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n", "@@ -2,2 +2,3 @@\n+x\n b\n c\n"] {
        let failure = once(GitPatch, &diff(hunk), before, after, ALREADY);
        assert!(failure.line.is_some(), "{failure:?}");
    }
    once(GitPatch, &diff("@@ -3,0 +4 @@\n+x\n"), before, "a\nb\nc\nx\n", ALREADY);
    once(CodexPatch, &codex("@@\n a\n+x\n"), before, after, ALREADY);
    once(CodexPatch, &codex("@@\n+x\n b\n"), before, after, ALREADY);
    once(CodexPatch, &codex("@@ a\n+x\n"), before, after, ALREADY);
    once(CodexPatch, &codex("@@\n+x\n"), "a\n", "a\nx\n", ALREADY);
    once(CodexPatch, &codex("@@\n c\n+x\n*** End of File\n"), before, "a\nb\nc\nx\n", ALREADY);
    once(SearchReplace, &blocks(&[("a\n", "a\nx\n")]), before, after, ALREADY);
    once(SearchReplace, &blocks(&[("b\n", "x\nb\n")]), before, after, ALREADY);
    once(SearchReplace, &blocks(&[("", "x\n")]), "a\n", "a\nx\n", ALREADY);
    once(SearchPatch, &swap("a\n", "a\nx\n"), before, after, ALREADY);
    once(SearchPatch, &swap("b", "x\nb"), before, after, ALREADY);
    once(SearchPatch, &swap("f(a)", "f(a), f(b)"), "f(a);\n", "f(a), f(b);\n", ALREADY);
    once(SearchPatch, &swap("use a;", "use a;\nuse ab;"), "use a;\n", "use a;\nuse ab;\n", ALREADY);
    once(SearchPatch, &swap("import a", "import a\nimport ab"), "import a\n", "import a\nimport ab\n", ALREADY);
    once(StructuredPatch, &steps(&[("a\n", "a\nx\n", "once")]), before, after, ALREADY);
    once(StructuredPatch, &steps(&[("a", "a1", "all")]), "a b a\n", "a1 b a1\n", ALREADY);
    once(StructuredPatch, &steps(&[("a", "aa", "all")]), "a b a\n", "aa b aa\n", ALREADY);
    let command = |fields: &str| format!("{{\"command\":{fields},\"path\":\"f\"}}");
    let insert = |line, text| command(&format!("\"insert\",\"insert_line\":{line},\"insert_text\":{text:?}"));
    once(StrReplace, &insert(1, "x\n"), before, after, ALREADY);
    once(StrReplace, &insert(0, "x"), "a\n", "x\na\n", ALREADY);
    once(StrReplace, &insert(1, "x"), "a\n", "a\nx\n", ALREADY);
    once(StrReplace, &insert(1, "x\n"), "a", "a\nx", ALREADY);
    let swapped = command("\"str_replace\",\"old_str\":\"a\\n\",\"new_str\":\"a\\nx\\n\"");
    once(StrReplace, &swapped, before, after, ALREADY);
}

/// Between lines that are then no longer adjacent.
#[test]
fn an_insertion_between_its_lines_is_named_too() {
    let (before, after) = ("a\nb\nc\n", "a\nx\nb\nc\n");
    once(Dialect::SearchPatch, &swap("a\nb", "a\nx\nb"), before, after, ALREADY);
    once(Dialect::SearchReplace, &blocks(&[("a\nb\n", "a\nx\nb\n")]), before, after, ALREADY);
    once(Dialect::CodexPatch, &codex("@@\n a\n+x\n b\n"), before, after, ALREADY);
    once(Dialect::SearchPatch, &swap("f(a)", "f(a, b)"), "f(a);\n", "f(a, b);\n", ALREADY);
    once(Dialect::GitPatch, &diff("@@ -7,2 +7,3 @@\n a\n+x\n b\n"), before, after, ALREADY);
    // A replacement whose new text is anywhere proves nothing.
    refused(Dialect::SearchPatch, &swap("y", "b"), after, "TEXT_NOT_FOUND");
}

/// The ends of a file, with the way to a second copy.
#[test]
fn text_at_either_end_is_added_once() {
    let end = search("{\"operation\":\"append_eof\",\"newText\":\"x\\n\"}");
    let failure = once(Dialect::SearchPatch, &end, "a\n", "a\nx\n", ALREADY);
    let hint = failure.hint.unwrap();
    assert!(hint.contains(r#""oldText": "x\n""#) && hint.contains(r#""newText": "x\nx\n""#), "{hint}");
    applied(Dialect::SearchPatch, &swap("x\n", "x\nx\n"), "a\nx\n", "a\nx\nx\n");
    let bare = search("{\"operation\":\"append_eof\",\"newText\":\"x\"}");
    once(Dialect::SearchPatch, &bare, "a", "a\nx", ALREADY);
    applied(Dialect::SearchPatch, &bare, "ax\n", "ax\nx");
    let top = search("{\"operation\":\"prepend_bof\",\"newText\":\"x\\n\"}");
    let failure = once(Dialect::SearchPatch, &top, "a\n", "x\na\n", ALREADY);
    let hint = failure.hint.unwrap();
    assert!(hint.contains(r#""oldText": "x\n""#) && hint.contains(r#""newText": "x\nx\n""#), "{hint}");
    let both = search(
        "{\"operation\":\"append_eof\",\"newText\":\"x\\n\"},{\"operation\":\"append_eof\",\"newText\":\"y\\n\"}",
    );
    once(Dialect::SearchPatch, &both, "a\n", "a\nx\ny\n", ALREADY);
    // The lines that would add a second copy occur only once.
    let failure = refused(Dialect::SearchPatch, &end, "x\na\nx\n", ALREADY);
    assert!(failure.hint.unwrap().contains(r#""oldText": "a\nx\n""#));
}

/// Of several changes one was made: nothing is applied, and the author is asked for the others.
#[test]
fn the_changes_beside_a_made_one_are_asked_for() {
    let two = [swap_of("a\n", "a\nx\n"), swap_of("c\n", "d\n")].join(",");
    let failure = refused(Dialect::SearchPatch, &search(&two), "a\nx\nc\n", ALREADY);
    assert_eq!(failure.change_index, Some(0));
    assert!(failure.hint.is_some_and(|hint| hint.contains("send the others")));
    // An insertion has no lines of which more could be given.
    let insert = "{\"command\":\"insert\",\"path\":\"f\",\"insert_line\":1,\"insert_text\":\"x\\n\"}";
    let failure = refused(Dialect::StrReplace, insert, "a\nx\n", ALREADY);
    assert!(failure.hint.is_some_and(|hint| hint.contains("send a change of more of the lines")));
}

/// Several places: all of them, or some.
#[test]
fn several_places_count_together() {
    use Dialect::{CodexPatch, SearchPatch, SearchReplace, StructuredPatch};
    let all = steps(&[("a", "a1", "all")]);
    let failure = refused(StructuredPatch, &all, "a1 b\na\n", TWICE);
    assert!(failure.message.contains("line 1") && failure.message.contains("line 2"), "{failure}");
    let equal = search(&[swap_of("a\n", "c\n"), swap_of("a\n", "c\n")].join(","));
    applied(SearchPatch, &equal, "a\nb\na\n", "c\nb\nc\n");
    refused(SearchPatch, &equal, "a\nb\na\na\n", TWICE);
    refused(SearchPatch, &equal, "a\nb\n", "MATCH_OVERLAP");
    let equal = search(&[swap_of("a\n", "a\nx\n"), swap_of("a\n", "a\nx\n")].join(","));
    once(SearchPatch, &equal, "a\nb\na\n", "a\nx\nb\na\nx\n", ALREADY);
    refused(SearchPatch, &equal, "a\nx\nb\na\n", TWICE);
    for new in ["c\n", "a\nx\n"] {
        let after = format!("{new}b\n{new}");
        let again = if new == "c\n" { "TEXT_NOT_FOUND" } else { ALREADY };
        let equal = blocks(&[("a\n", new), ("a\n", new)]);
        once(SearchReplace, &equal, "a\nb\na\n", &after, again);
        refused(SearchReplace, &equal, "a\nb\na\na\n", TWICE);
        assert!(sent(SearchReplace, &equal, Some("a\nb\n")).is_err());
        let equal = steps(&[("a\n", new, "once"), ("a\n", new, "once")]);
        once(StructuredPatch, &equal, "a\nb\na\n", &after, again);
    }
    let equal = codex("@@\n-a\n+c\n@@\n-a\n+c\n");
    once(CodexPatch, &equal, "a\nb\na\n", "c\nb\nc\n", "TEXT_NOT_FOUND");
    refused(CodexPatch, &equal, "a\nb\na\na\n", TWICE);
}

/// Lines that go, and would go again.
#[test]
fn what_would_occur_there_again_is_refused_the_first_time() {
    use Dialect::{CodexPatch, GitPatch, SearchPatch, SearchReplace, StructuredPatch};
    refused(GitPatch, &diff("@@ -2 +1,0 @@\n-a\n"), "0\na\na\nb\n", TWICE);
    refused(GitPatch, &diff("@@ -1,2 +1 @@\n x\n-y\n"), "x\ny\ny\nz\n", TWICE);
    applied(GitPatch, &diff("@@ -1,3 +1,2 @@\n x\n-y\n y\n"), "x\ny\ny\nz\n", "x\ny\nz\n");
    let id = &blob_id("x\ny\ny\nz\n")[..8];
    let known = |hunk: &str| format!("diff --git a/f b/f\nindex {id}..1111111 100644\n--- a/f\n+++ b/f\n{hunk}");
    applied(GitPatch, &known("@@ -1,2 +1 @@\n x\n-y\n"), "x\ny\ny\nz\n", "x\ny\nz\n");
    refused(SearchPatch, &swap("x\ny\n", "x\n"), "x\ny\ny\nz\n", TWICE);
    refused(SearchReplace, &blocks(&[("x\ny\n", "x\n")]), "x\ny\ny\nz\n", TWICE);
    refused(StructuredPatch, &steps(&[("x\ny\n", "x\n", "once")]), "x\ny\ny\nz\n", TWICE);
    refused(CodexPatch, &codex("@@\n x\n-y\n"), "x\ny\ny\nz\n", TWICE);
    refused(StructuredPatch, &steps(&[("  ", " ", "all")]), "a    b\n", TWICE);
    applied(StructuredPatch, &steps(&[("  ", " ", "all")]), "a  b  c\n", "a b c\n");
    // Once more with other white space.
    refused(SearchPatch, &swap("x\ny\n", ""), "x\ny\n  x\n  y\n", TWICE);
    applied(SearchPatch, &swap("x\ny\n", "x\n"), "x\ny\nz\n", "x\nz\n");
}

/// The first of several places, or the one that is meant for another reason, is not the next one the second time.
#[test]
fn the_next_place_is_not_taken_the_second_time() {
    use Dialect::{CodexPatch, GitPatch, SearchPatch, StructuredPatch};
    once(StructuredPatch, &steps(&[("a\n", "x\n", "once")]), "a\nb\na\n", "x\nb\na\n", TWICE);
    // Lines that occur twice are refused the first time, so that those that occur once need no proof.
    refused(StructuredPatch, &steps(&[("a\nb\n", "x\n", "once")]), "a\nb\na\nb\n", TWICE);
    applied(StructuredPatch, &steps(&[("a\nb\n", "x\n", "once")]), "x\na\nb\n", "x\nx\n");
    refused(StructuredPatch, &steps(&[("a\n", "}\n", "once")]), "a\nb\na\n", TWICE);
    refused(StructuredPatch, &steps(&[("a\n", "", "once")]), "a\nb\na\n", TWICE);
    once(StructuredPatch, &steps(&[("a\n", "a\nx\n", "once")]), "a\nb\na\n", "a\nx\nb\na\n", ALREADY);
    let hunk = "@@ -1,2 +1,2 @@\n-a\n+x\n b\n";
    once(GitPatch, &diff(hunk), "a\nb\na\nb\nc\n", "x\nb\na\nb\nc\n", ALREADY);
    let file = "def a():\n    return 1\n\ndef b():\n    return 1\n";
    let chunk = codex("@@ def a():\n-    return 1\n+    return 2\n");
    once(CodexPatch, &chunk, file, &file.replacen('1', "2", 1), ALREADY);
    refused(CodexPatch, &codex("@@ def a():\n-    return 1\n"), file, TWICE);
    // The other place differs in white space alone.
    once(SearchPatch, &swap("x\ny\n", "x\nz\n"), "x\ny\n  x\n  y\n", "x\nz\n  x\n  y\n", TWICE);
    let equal = search(&[swap_of("x\ny\n", ""), swap_of("x\ny\n", "")].join(","));
    refused(SearchPatch, &equal, "x\ny\n0\nx\ny\n1\n  x\n  y\n2\n  x\n  y\n", TWICE);
    once(SearchPatch, &swap("  x\n  y\n", "    x\n    y\n"), "  x\n  y\n", "    x\n    y\n", ALREADY);
}

/// Lines that were found with other white space: what is left of them in their own place is no sign that they went, and
/// the same text elsewhere is none that the change was made.
#[test]
fn what_is_found_with_other_white_space_is_not_called_made() {
    use Dialect::{CodexPatch, SearchPatch, SearchReplace, StrReplace, StructuredPatch};
    let (before, after) = ("f:\n    a()\n    b()\n    c()\n", "f:\n    a()\n    c()\n");
    let (old, new) = ("a()\nb()\n", "a()\n");
    applied(SearchPatch, &swap(old, new), before, after);
    applied(SearchReplace, &blocks(&[(old, new)]), before, after);
    applied(StructuredPatch, &steps(&[(old, new, "once")]), before, after);
    applied(StructuredPatch, &steps(&[(old, new, "all")]), before, after);
    applied(CodexPatch, &codex("@@\n a()\n-b()\n"), before, after);
    let command = format!("{{\"command\":\"str_replace\",\"path\":\"f\",\"old_str\":{old:?},\"new_str\":{new:?}}}");
    applied(StrReplace, &command, before, after);
    applied(SearchPatch, &swap("a\nb\n", "a\n"), "a\nb", "a");
    let failure = refused(SearchPatch, &swap(old, "c()\n"), before, TWICE);
    assert!(failure.message.contains("line 4") && failure.message.contains("line 2"), "{failure}");
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("white space")), "{failure:?}");
}

/// A diff whose lines end otherwise than the file's: where its header puts it, it was made.
#[test]
fn a_diff_that_ends_its_lines_otherwise_is_made_once() {
    let hunk = diff("@@ -1,2 +1,3 @@\n x\n+n\n a\n");
    once(Dialect::GitPatch, &hunk, "x\r\na\r\nb\r\nx\r\na\r\n", "x\r\nn\r\na\r\nb\r\nx\r\na\r\n", ALREADY);
    let hunk = diff("@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n");
    once(Dialect::GitPatch, &hunk, "a\r\nb", "a\r\nb\r\nc", ALREADY);
}

/// A byte order mark is no part of the first line, and no letter before it; a last line may lack its terminator.
#[test]
fn neither_end_of_a_file_hides_anything() {
    use Dialect::{CodexPatch, GitPatch, SearchPatch};
    refused(GitPatch, &diff("@@ -1,2 +1 @@\n b\n-x\n"), "\u{feff}b\nx\nx\n", TWICE);
    once(GitPatch, &diff("@@ -2,1 +2,2 @@\n b\n+b\n"), "\u{feff}b\n", "\u{feff}b\nb\n", ALREADY);
    once(SearchPatch, &swap("b\n", "b\nb\n"), "\u{feff}b\n", "\u{feff}b\nb\n", ALREADY);
    refused(CodexPatch, &codex("@@\n b\n-x\n"), "\u{feff}b\nx\nx\n", TWICE);
    refused(GitPatch, &diff("@@ -1 +1,2 @@\n b\n+\n"), "b", TWICE);
    refused(GitPatch, &diff("@@ -1,2 +1 @@\n b\n-b\n"), "b\nb\nb", TWICE);
    refused(GitPatch, &diff("@@ -3,2 +3,2 @@\n b\n-b\n+ab\n"), "b\nb\nx\na\nb\nb", TWICE);
}

/// The last of an evolving text: what the steps above added is no sign that this one was made.
#[test]
fn steps_of_one_document_do_not_hide_each_other() {
    use Dialect::{SearchReplace, StructuredPatch};
    let two = steps(&[("x\n", "a\nx\nb\n", "once"), ("x\n", "x\nb\n", "once")]);
    applied(StructuredPatch, &two, "x\n", "a\nx\nb\nb\n");
    let two = blocks(&[("one\n", "one\nx\n"), ("", "x\n")]);
    applied(SearchReplace, &two, "one\n", "one\nx\nx\n");
    let two = steps(&[("a", "b", "once"), ("c", "b", "once")]);
    once(StructuredPatch, &two, "a c c\n", "b b c\n", "TEXT_NOT_FOUND");
}

/// What is no addition, or blank, or not the whole new side, or only the beginning of a longer word, is applied.
#[test]
fn what_is_not_there_is_applied() {
    use Dialect::{GitPatch, SearchPatch};
    applied(SearchPatch, &swap("a\n", "a\nx\n"), "a\nxy\n", "a\nx\nxy\n");
    applied(
        SearchPatch,
        &swap("import a\n", "import a\nimport b\n"),
        "import a\nimport bc\n",
        "import a\nimport b\nimport bc\n",
    );
    applied(
        SearchPatch,
        &swap("import a;", "import a;\nimport b"),
        "import a;\nimport bc\n",
        "import a;\nimport b\nimport bc\n",
    );
    applied(GitPatch, &diff("@@ -1,2 +1,3 @@\n a\n+x\n b\n"), "a\nb\nx\n", "a\nx\nb\nx\n");
    applied(SearchPatch, &swap("a\n", "a\nx\ny\n"), "a\nx\nz\n", "a\nx\ny\nx\nz\n");
    applied(SearchPatch, &swap("a\nb\n", "a\n\nb\n"), "a\nb\n", "a\n\nb\n");
}

/// The id of a blob: in full or abbreviated, of this file, another one or an empty one.
#[test]
fn index_ids_are_evidence() {
    let git = |index: &str| format!("diff --git a/f b/f\nindex {index}..111111 100644\n--- a/f\n+++ b/f\n");
    let hunk = "@@ -1 +1,2 @@\n a\n+x\n";
    // The blob `a\nx\n`.
    let (id, text) = ("f20c6b8b1d6d1c7e1e1c2b4c6f6f7b7e", "a\nx\n");
    let id = blob_id(text).get(..7).unwrap_or(id).to_owned();
    let none: [String; 0] = [];
    for id in [id.clone(), blob_id(text), id.to_uppercase()] {
        assert_eq!(applied(Dialect::GitPatch, &format!("{}{hunk}", git(&id)), text, "a\nx\nx\n"), none, "{id}");
    }
    refused(Dialect::GitPatch, &format!("{}{hunk}", git("2222222")), text, ALREADY);
    for other in ["2222222", "222222222222"] {
        let warnings = applied(Dialect::GitPatch, &format!("{}{hunk}", git(other)), "a\n", "a\nx\n");
        assert_eq!(warnings, ["INDEX_DIFFERS"], "{other}");
    }
    for unread in ["222222", "0000000"] {
        assert_eq!(applied(Dialect::GitPatch, &format!("{}{hunk}", git(unread)), "a\n", "a\nx\n"), none, "{unread}");
    }
    let document = format!("{}{hunk}", git("e69de29"));
    let failure = refused(Dialect::GitPatch, &document, "a\n", "INDEX_MISMATCH");
    assert!(failure.message.contains("empty"), "{failure}");
    let failure = refused(Dialect::GitPatch, &format!("{}{hunk}", git(&"2".repeat(40))), "a\n", "INDEX_MISMATCH");
    assert!(failure.message.contains("for this id"), "{failure}");
    let crlf = "@@ -1 +1,2 @@\n a\r\n+x\r\n";
    let id = &blob_id("a\n")[..9];
    assert_eq!(applied(Dialect::GitPatch, &format!("{}{crlf}", git(id)), "a\r\n", "a\r\nx\r\n"), none);
}

/// Where a hunk says that the file is empty, it is.
#[test]
fn a_hunk_of_an_empty_file_fits_no_other() {
    let hunk = diff("@@ -0,0 +1 @@\n+x\n");
    applied(Dialect::GitPatch, &hunk, "", "x\n");
    refused(Dialect::GitPatch, &hunk, "x\n", ALREADY);
    let failure = refused(Dialect::GitPatch, &hunk, "a\nb\n", "EXPECTED_MISMATCH.NO_CONTEXT");
    assert!(failure.message.contains("2 lines"), "{failure}");
}

/// WS-MOD: edits beside an anchor or at the end.
#[test]
fn anchor_edits_are_made_once() {
    let edit = |place, content: &str| FilePatch {
        target: Target::Path("f".to_owned()),
        key: None,
        label: None,
        edit: FileEdit::AnchorEdit(AnchorEdit { place, content: content.to_owned() }),
    };
    let anchor = |text: &str| Anchor { text: text.to_owned(), matching: AnchorMatch::Equals, occurrence: None };
    for (place, content, before, after) in [
        (AnchorPlace::After(anchor("a")), "x", "a\nb\n", "a\nx\nb\n"),
        (AnchorPlace::After(anchor("b")), "x\n", "a\r\nb", "a\r\nb\r\nx\r\n"),
        (AnchorPlace::Before(anchor("b")), "x\ny\n", "a\nb\n", "a\nx\ny\nb\n"),
        (AnchorPlace::Append, "x", "a\n", "a\nx\n"),
        (AnchorPlace::Append, "x\n", "a", "a\nx\n"),
        (AnchorPlace::Range { start_line: 1, end_line: Some(1) }, "a\nx\n", "a\nb\n", "a\nx\nb\n"),
    ] {
        let content = apply(edit(place.clone(), content), Some(before.as_bytes())).unwrap().content;
        assert_eq!(String::from_utf8(content).unwrap(), after);
    }
    for (place, content, after) in [
        (AnchorPlace::After(anchor("a")), "x", "a\nx\nb\n"),
        (AnchorPlace::After(anchor("b")), "x\n", "a\r\nb\r\nx\r\n"),
        (AnchorPlace::Before(anchor("b")), "x\ny\n", "a\nx\ny\nb\n"),
        (AnchorPlace::Append, "x", "a\nx\n"),
        (AnchorPlace::Range { start_line: 1, end_line: Some(1) }, "a\nx\n", "a\nx\nb\n"),
    ] {
        let failure = apply(edit(place.clone(), content), Some(after.as_bytes())).unwrap_err();
        assert_eq!(code(&failure), ALREADY, "{place:?}: {failure}");
        assert!(failure.hint.is_some() && !failure.nearest.is_empty(), "{failure:?}");
    }
}
