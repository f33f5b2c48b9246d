//! Batches that the server refuses before it stores anything, and everything that it says is wrong with them.

use aptix_model::wire::v1;
use tonic::Code;
use tonic_types::StatusExt;

use crate::server::{Server, assert_refused, create_text, fields, line_patch, refusal, submit};

type Operation = v1::file_patch::Action;

/// TUL-002-8.6.2: a batch is validated before anything is stored; everything wrong is said at once.
/// TUL-002-9.2, TUL-002-10.3, TUL-002-10.4: overlaps, bad ranges and malformed digests are refused by name.
#[tokio::test]
async fn a_batch_that_is_not_acceptable_is_refused_whole() {
    let server = Server::start();
    let mut client = server.connect().await;
    let mut digest = line_patch("app/a.txt");
    let mut overlap = line_patch("app/b.txt");
    let mut range = line_patch("app/c.txt");
    let replace = |start_line, end_line| v1::Change {
        operation: Some(v1::change::Operation::Replace(v1::ReplaceLines {
            start_line,
            end_line,
            expected_original_lines: vec![String::new(); usize::try_from(end_line - start_line + 1).unwrap_or(1)],
            new_lines: vec!["x".to_owned()],
        })),
        ..v1::Change::default()
    };
    if let Some(Operation::LinePatch(patch)) = &mut digest.action {
        patch.original_sha256 = "abc".to_owned();
    }
    if let Some(Operation::LinePatch(patch)) = &mut overlap.action {
        patch.changes = vec![replace(1, 3), replace(3, 4)];
    }
    if let Some(Operation::LinePatch(patch)) = &mut range.action {
        patch.changes = vec![replace(0, 0), replace(5, 4)];
    }
    let answer = client.submit(submit("w", "r1", vec![digest, overlap, range])).await;
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let named = fields(&status);
    for file in ["files[0]", "files[1]", "files[2]"] {
        assert!(named.iter().any(|field| field.starts_with(file)), "{file} in {named:?}");
    }
    let listed = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    assert_refused(client.batches.list_batches(listed).await, Code::NotFound, "NOT_FOUND", "");
}

/// A file of the wrong shape hides its own violations alone: one answer names those of every file, by its position in the
/// request.
#[tokio::test]
async fn wrong_shapes_and_broken_rules_of_different_files_are_named_together() {
    use v1::change::Operation as Wire;
    let server = Server::start();
    let mut client = server.connect().await;
    let file = |path: &str, action| {
        let target = Some(v1::file_patch::Target::Path(path.to_owned()));
        v1::FilePatch { target, action, ..v1::FilePatch::default() }
    };
    let delete = || Some(Operation::DeleteFile(v1::DeleteFile {}));
    let lines = |sha256: &str, operations: Vec<Option<Wire>>| {
        let change = |operation| v1::Change { operation, ..v1::Change::default() };
        let changes = operations.into_iter().map(change).collect();
        Some(Operation::LinePatch(v1::LinePatch { original_sha256: sha256.to_owned(), changes }))
    };
    let removed = |start_line, end_line| {
        let expected_original_lines = vec![String::new(); usize::try_from(end_line - start_line + 1).unwrap_or(1)];
        Some(Wire::Delete(v1::DeleteLines { start_line, end_line, expected_original_lines }))
    };
    let digest = "0".repeat(64);
    let blob = v1::BlobRef { sha256: "abc".to_owned(), size_bytes: 1 };
    let content = Some(v1::create_file::Content::Blob(blob));
    let blob = Some(Operation::CreateFile(v1::CreateFile { content, ..v1::CreateFile::default() }));
    let parts = [
        (file("../a", delete()), vec!["files[0].path"]),
        (v1::FilePatch { target: None, ..file("", delete()) }, vec!["files[1].target"]),
        (file("c", None), vec!["files[2].action"]),
        (file("d", lines("abc", vec![removed(1, 1)])), vec!["files[3].originalSha256"]),
        // A wrong shape hides the wrong path, digest and line of its file.
        (file("../e", lines("abc", vec![removed(0, 0), None])), vec!["files[4].changes[1].operation"]),
        (file("f", lines(&digest, vec![removed(1, 3), removed(3, 4)])), vec!["files[5].changes[1].startLine"]),
        (file("g", Some(Operation::GitPatch(v1::GitPatch::default()))), vec!["files[6].gitPatch.kind"]),
        (file("h", blob), vec!["files[7].createFile.blob.sha256"]),
        (file("i/../j", delete()), vec!["files[8].path"]),
    ];
    let (files, expected): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let status = client.submit(submit("w", "r1", files.clone())).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(fields(&status), expected.concat());
    let status = client.submit(submit("w", "not one id", files)).await.unwrap_err();
    assert_eq!(fields(&status), [vec!["requestId"], expected.concat()].concat());
    let parts =
        [("r2", vec![file("x", None)], vec!["files[0].action"]), ("not one id", vec![], vec!["requestId", "files"])];
    for (request, files, expected) in parts {
        let status = client.submit(submit("w", request, files)).await.unwrap_err();
        assert_eq!(fields(&status), expected);
    }

    // Every violation is named or counted, and a message names files by their positions in the request too.
    let files = (0..60).map(|index| if index % 2 == 0 { file("x", None) } else { file("../x", delete()) }).collect();
    let status = client.submit(submit("w", "r2", files)).await.unwrap_err();
    let details = status.get_error_details();
    let omitted = &details.error_info().unwrap().metadata["omittedViolations"];
    assert_eq!(fields(&status).len() + omitted.parse::<usize>().unwrap(), 60);
    let files = vec![file("x", None), file("same", delete()), file("y", None), file("same", delete())];
    let status = client.submit(submit("w", "r3", files)).await.unwrap_err();
    assert_eq!(fields(&status), ["files[0].action", "files[2].action", "files[3].path"]);
    let named = status.get_error_details().bad_request().unwrap().field_violations[2].description.clone();
    assert!(named.contains("entry 2"), "{named}");
}

/// A hunk with fewer lines than its header counts was cut off, and is not stored.
#[tokio::test]
async fn a_diff_that_was_cut_off_is_not_stored() {
    let server = Server::start();
    let mut client = server.connect().await;
    let line = |kind: v1::LineKind, text: &str| v1::HunkLine { kind: kind.into(), content: text.to_owned().into() };
    let lines = vec![line(v1::LineKind::Context, "one\n"), line(v1::LineKind::Removed, "two\n")];
    let file = |new_count| {
        let hunk = v1::Hunk {
            old_start: 1,
            old_count: 2,
            new_start: 1,
            new_count,
            lines: lines.clone(),
            ..v1::Hunk::default()
        };
        let git = v1::GitPatch { kind: v1::GitKind::Modify.into(), hunks: vec![hunk], ..v1::GitPatch::default() };
        let target = Some(v1::file_patch::Target::Path("app/f".to_owned()));
        vec![v1::FilePatch { target, action: Some(Operation::GitPatch(git)), ..v1::FilePatch::default() }]
    };
    let refused = client.submit(submit("w", "cut", file(2))).await;
    assert_refused(refused, Code::InvalidArgument, "PATCH_TRUNCATED", "");
    client.submit(submit("w", "whole", file(1))).await.unwrap();
}

/// REQ-PATCH-008.1: a search patch of more than 60,000 tokens is refused, also if no document was parsed.
#[tokio::test]
async fn a_search_patch_with_too_many_tokens_is_not_stored() {
    let server = Server::start();
    let mut client = server.connect().await;
    let appending = |texts: &[&str]| {
        let change = |text: &&str| v1::SearchChange {
            operation: Some(v1::search_change::Operation::AppendEof(v1::AppendEof {})),
            new_text: Some((*text).to_owned()),
            ..v1::SearchChange::default()
        };
        let changes = texts.iter().map(change).collect();
        let action = Some(Operation::SearchPatch(v1::SearchPatch { changes }));
        v1::FilePatch { action, ..create_text("a.txt", "") }
    };
    let most = "hello\n".repeat(30_000);
    let refused = client.submit(submit("w", "r1", vec![appending(&[&most, "x"])])).await.unwrap_err();
    assert_eq!(refusal(&refused), (Code::InvalidArgument, "TOO_LARGE".to_owned(), "TOKENS".to_owned()));
    assert_eq!(fields(&refused), ["files[0].changes"]);
    client.submit(submit("w", "r1", vec![appending(&[&most])])).await.unwrap();
}
