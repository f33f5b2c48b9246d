//! Documents that end too early, over gRPC: each is refused and changes nothing, or has the result of the whole document.

use std::collections::BTreeSet;

use crate::line_patches::scene::{Scene, outcome};

/// The file that each document edits, and what it is afterwards.
const BEFORE: &str = "one\ntwo\nthree\n";
const AFTER: &str = "one\n2\nthree\n";

/// One document in each of these dialects.
fn documents() -> [(&'static str, String); 9] {
    let digest = aptix_engine::digest::sha256(BEFORE.as_bytes());
    let blocks = "a.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n";
    let search = r#"{"path":"a.txt","patches":[{"operation":"replace","oldText":"two","newText":"2"}]}"#;
    let line_patch = format!(
        r#"{{"files":[{{"docPath":"project/a.txt","originalSha256":"{digest}","changes":[{{"operation":"replace","startLine":2,"endLine":2,"expectedOriginalLines":["two"],"newLines":["2"]}}]}}]}}"#
    );
    [
        ("line-patch", line_patch),
        ("search-patch", search.to_owned()),
        ("str-replace", r#"{"command":"str_replace","path":"a.txt","old_str":"two","new_str":"2"}"#.to_owned()),
        ("create-file", r#"{"path":"a.txt","content":"one\n2\nthree\n","overwrite":true}"#.to_owned()),
        ("file-bundle", r#"{"files":[{"path":"a.txt","operation":"replace","content":"one\n2\nthree\n"}]}"#.to_owned()),
        ("search-replace", blocks.to_owned()),
        ("git-patch", "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n".to_owned()),
        (
            "codex-patch",
            "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** End Patch\n".to_owned(),
        ),
        ("chat", format!("I change the second line.\n\n```\n{blocks}```\n\nThat is all.\n")),
    ]
}

#[test]
fn a_document_cut_short_is_refused_or_has_the_result_of_the_whole_over_grpc() {
    let mut scene = Scene::new();
    for (dialect, document) in documents() {
        let mut refused = 0;
        let length = document.len();
        let cuts: BTreeSet<_> = (0..length).step_by(5).chain(length - 2..=length).collect();
        for cut in cuts {
            scene.machine.put("a.txt", BEFORE);
            let submitted = scene.submit(&format!("{dialect}-{cut}"), document.as_bytes()[..cut].to_vec());
            let (failures, files) = (outcome(&submitted), scene.machine.files());
            let expected = if failures.is_empty() { AFTER } else { BEFORE };
            assert_eq!(files, [("a.txt".to_owned(), expected.to_owned())], "{dialect} cut at {cut}: {failures:?}");
            refused += usize::from(!failures.is_empty());
            assert!(cut < length || failures.is_empty(), "{dialect}: {failures:?}");
        }
        assert!(refused > length / 10, "{dialect}: {refused} cuts were refused");
    }
}
