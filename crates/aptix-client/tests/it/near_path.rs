//! A path that leads to no file: which other one may be meant, reported only to callers that may know of that one.

use std::path::Path;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_model::batch::Origin;
use aptix_model::documents;
use aptix_model::failure::Failure;
use serde_json::json;

use crate::command_line::{aptix, text};
use crate::faults::{self, Fault};

fn lay(place: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let file = place.join("ws").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

/// The first failure of a document, and nothing else.
fn refused(place: &Path, caller: Caller, document: &str) -> Failure {
    let (workspace, _) = faults::open(place, Fault::None).unwrap();
    let batch = documents::parse(document.as_bytes(), None).unwrap().batch;
    let policy = Policy::unstated(caller);
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 0,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    apply(&workspace, &batch, options, &mut |_| Decision::Apply).unwrap_err().failures.remove(0)
}

fn edit(path: &str) -> String {
    json!({ "command": "str_replace", "path": path, "old_str": "x", "new_str": "y" }).to_string()
}

#[test]
fn the_file_that_may_be_meant_is_named() {
    let place = tempfile::tempdir().unwrap();
    lay(place.path(), &[("src/app.py", "x\n"), ("src/lib/Util.py", "x\n"), ("a/same", "x\n"), ("b/same", "x\n")]);
    let did_you_mean = "did you mean \"src/app.py\"? a path is given from the root down";
    let all = [Caller::Shell, Caller::Server, Caller::Model];
    for caller in all {
        for path in ["app.py", "ws/src/app.py", "other/App.py"] {
            let failure = refused(place.path(), caller, &edit(path));
            assert_eq!(
                (failure.reason.code(), failure.hint.as_deref()),
                ("FILE_MISSING", Some(did_you_mean)),
                "{path}"
            );
            assert!(failure.next_action.is_none(), "{path}");
        }
        let several = refused(place.path(), caller, &edit("same")).hint.unwrap();
        assert_eq!(several, "did you mean one of \"a/same\", \"b/same\"? a path is given from the root down");
        let none = refused(place.path(), caller, &edit("src/none.py")).hint.unwrap();
        assert_eq!(none, "check the path, or create the file instead");
    }
    let lines = json!({ "files": [{ "docPath": "ws/util.py", "originalSha256": "0".repeat(64),
        "changes": [{ "operation": "insert", "afterLine": 0, "newLines": ["x"] }] }] });
    let hint = refused(place.path(), Caller::Shell, &lines.to_string()).hint.unwrap();
    assert!(hint.starts_with("did you mean \"ws/src/lib/util.py\"?"), "{hint}");
}

/// What a server or a model would not be shown if it asked for it is not named to them either.
#[test]
fn a_file_that_a_caller_may_not_read_is_not_named() {
    let key = "-----BEGIN PRIVATE KEY-----\nx\n";
    let place = tempfile::tempdir().unwrap();
    lay(
        place.path(),
        &[
            (".gitignore", "build/\n"),
            ("build/made.py", "x\n"),
            ("deep/prod.tfvars", "x\n"),
            ("deep/deploy", key),
            ("deep/.git/config", "x\n"),
        ],
    );
    for (path, callers) in [
        ("made.py", &[Caller::Server, Caller::Model][..]),
        ("prod.tfvars", &[Caller::Server, Caller::Model]),
        ("deploy", &[Caller::Server, Caller::Model]),
    ] {
        for caller in callers {
            let failure = refused(place.path(), *caller, &edit(path));
            assert!(
                !format!("{failure} {:?}", failure.hint).contains("did you mean"),
                "{path}, {caller:?}: {failure:?}"
            );
        }
    }
}

/// The hint is in the words of each dialect.
#[test]
fn a_refusal_has_the_words_of_its_dialect() {
    let place = tempfile::tempdir().unwrap();
    lay(place.path(), &[("a", "x\n")]);
    let cases = [
        (r#"{"path": "a", "content": "y"}"#, "set overwrite"),
        (r#"{"files": [{"path": "a", "content": "y", "operation": "create"}]}"#, "the operation 'replace'"),
        ("*** Begin Patch\n*** Add File: a\n+y\n*** End Patch\n", "'*** Update File:'"),
        (r#"{"command": "create", "path": "a", "file_text": "y"}"#, "str_replace"),
        (r#"{"files": [{"path": "gone", "operation": "delete"}]}"#, "if the file is gone already"),
        ("*** Begin Patch\n*** Delete File: gone\n*** End Patch\n", "if the file is gone already"),
        ("--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "if the file is gone already"),
        ("*** Begin Patch\n*** Update File: gone\n*** Move to: b\n*** End Patch\n", "check the path"),
        (r#"{"command": "insert", "path": "a", "insert_line": -1, "insert_text": "y"}"#, "insert_line: a line number"),
        (r#"{"command": "str_replace", "path": "a", "old_str": "", "new_str": "y"}"#, "old_str: the text to replace"),
        (
            r#"{"path": "a", "patches": [{"operation": "replace", "oldText": "", "newText": "y"}]}"#,
            "patches[0].oldText",
        ),
        (
            r#"{"patches": [{"path": "a", "replacements": [{"find": "", "replace": "y"}]}]}"#,
            "patches[0].replacements[0].find",
        ),
    ];
    for (document, words) in cases {
        let output = aptix(place.path(), &["apply", "--json"], document);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{document}: {printed}");
        assert!(printed.contains(words), "{document}: {words}: {printed}");
        assert!(!printed.contains("create the file instead"), "{document}: {printed}");
    }
}
