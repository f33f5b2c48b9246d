//! Submitting what a model wrote: documents of every dialect, read by the server.

use aptix_model::documents::{self, Dialect};
use aptix_model::limits::LINES;
use aptix_model::wire::v1;
use aptix_model::wire::v1::submit_batch_request::Content;
use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::server::{Clients, Server, assert_refused, fields, refusal, submit};

/// A document in each dialect that creates or changes `a.txt`.
const DOCUMENTS: [(&str, &str); 10] = [
    (
        "line-patch",
        r#"{"files":[{"docPath":"app/a.txt","originalSha256":"0000000000000000000000000000000000000000000000000000000000000000","changes":[{"operation":"delete","startLine":1,"endLine":1,"expectedOriginalLines":["one"]}]}]}"#,
    ),
    ("create-file", r#"{"path":"a.txt","content":"one\n"}"#),
    ("search-patch", r#"{"path":"a.txt","patches":[{"operation":"replace","oldText":"one","newText":"two"}]}"#),
    ("structured-patch", r#"{"patches":[{"path":"a.txt","replacements":[{"find":"one","replace":"two"}]}]}"#),
    ("file-bundle", r#"{"files":[{"path":"a.txt","operation":"create","content":"one\n"}]}"#),
    ("codex-patch", "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"),
    ("search-replace", "a.txt\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n"),
    ("str-replace", r#"{"command":"create","path":"a.txt","file_text":"one\n"}"#),
    ("git-patch", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"),
    ("chat", "Here it is.\n\n```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n```\n\nThat is all.\n"),
];

fn document(request: &str, dialect: &str, text: impl Into<Vec<u8>>) -> v1::SubmitBatchRequest {
    let document = v1::Document { dialect: dialect.to_owned(), text: text.into().into() };
    v1::SubmitBatchRequest { content: Some(Content::Document(document)), ..submit("w", request, Vec::new()) }
}

async fn sent(client: &mut Clients, request: v1::SubmitBatchRequest) -> Result<v1::SubmitBatchResponse, Status> {
    Ok(client.batches.submit_batch(request).await?.into_inner())
}

/// What the server stores of a document is what the document says; the dialect may be named or not, and a repeated call is
/// answered with the batch that was stored.
#[tokio::test]
async fn a_document_of_every_dialect_is_stored_as_what_it_says() {
    let server = Server::start();
    let mut client = server.connect().await;
    assert_eq!(DOCUMENTS.map(|(name, _)| name), Dialect::ALL.map(Dialect::name));
    for (name, text) in DOCUMENTS {
        let said = documents::parse(text.as_bytes(), None).unwrap();
        for dialect in ["", name] {
            let request = document(&format!("{name}-{dialect}"), dialect, text);
            let answer = sent(&mut client, request.clone()).await.unwrap();
            assert_eq!(answer.dialect, name);
            let stored = answer.batch.unwrap();
            let again = sent(&mut client, request).await.unwrap().batch.unwrap();
            assert_eq!(stored.batch_id, again.batch_id, "{name}");
            assert_eq!(aptix_model::batch::Batch::try_from(stored.edit.unwrap()).unwrap(), said.batch, "{name}");
        }
    }
}

/// What was read and has no effect is said to the author, who else would not know.
#[tokio::test]
async fn what_has_no_effect_is_said() {
    let server = Server::start();
    let mut client = server.connect().await;
    let text = "<think>\n```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n```\n</think>\n";
    let answer = sent(&mut client, document("r1", "chat", format!("{text}{}", DOCUMENTS[9].1))).await.unwrap();
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
}

/// A dialect, a document, and the reason, detail and fields that it is refused with.
type Case = (&'static str, &'static [u8], &'static str, &'static str, &'static [&'static str]);

/// A document is refused for the reasons, and in the words, of the command line; nothing is stored.
#[tokio::test]
async fn a_document_that_says_no_edit_is_refused_in_its_own_terms() {
    let server = Server::start();
    let mut client = server.connect().await;
    let cases: [Case; 9] = [
        ("", b"no edit at all", "NO_EDIT_FOUND", "", &[]),
        ("", b" \n ", "INVALID_REQUEST", "EMPTY", &[]),
        ("nonsense", b"{}", "INVALID_REQUEST", "UNKNOWN_ENUM", &["document.dialect"]),
        ("auto", b"{}", "INVALID_REQUEST", "UNKNOWN_ENUM", &["document.dialect"]),
        ("line-patch", &DOCUMENTS[0].1.as_bytes()[..100], "INVALID_REQUEST", "JSON", &[]),
        ("line-patch", &[b'['; 1 << 20], "INVALID_REQUEST", "DEPTH", &[]),
        ("git-patch", b"\xff\xfe\x00", "PATCH_MALFORMED", "NUL", &[]),
        ("codex-patch", b"*** Begin Patch\n*** Add File: a.txt\n+one\n", "PATCH_TRUNCATED", "MARKER", &[]),
        (
            "search-patch",
            br#"{"path":"../a.txt","patches":[{"operation":"replace","oldText":"","newText":"two"}]}"#,
            "INVALID_PATH",
            "TRAVERSAL",
            &["path", "patches[0].oldText"],
        ),
    ];
    for (dialect, text, reason, detail, named) in cases {
        let answer = client.batches.submit_batch(document("r1", dialect, text)).await;
        let status = answer.unwrap_err();
        let (code, found, finer) = refusal(&status);
        let shown = String::from_utf8_lossy(&text[..text.len().min(40)]);
        assert_eq!(
            (code, found.as_str(), finer.as_str()),
            (Code::InvalidArgument, reason, detail),
            "{shown}: {status:?}"
        );
        if !named.is_empty() {
            assert_eq!(fields(&status), named);
        }
    }
    let many_lines = format!("--- a/a\n+++ b/a\n@@ -0,0 +1,{LINES} @@\n{}", "+\n".repeat(LINES));
    let refused = client.batches.submit_batch(document("r1", "", many_lines)).await.unwrap_err();
    assert_eq!(refusal(&refused), (Code::InvalidArgument, "TOO_LARGE".into(), "DOCUMENT".into()));
    let listed = client.batches.list_batches(v1::ListBatchesRequest { workspace_id: "w".into(), ..Default::default() });
    assert_eq!(listed.await.unwrap_err().code(), Code::NotFound, "nothing was stored");
}

/// TUL-002-9.2: a wrong shape in one file of a document hides nothing that is wrong with the others, nor with the call.
#[tokio::test]
async fn everything_wrong_with_a_document_is_named_at_once() {
    let server = Server::start();
    let mut client = server.connect().await;
    let cases: [(&str, &[&str]); 5] = [
        (
            r#"{"files": [{"docPath": "../a", "originalSha256": "abc", "changes": []},
                {"docPath": "r/b", "originalSha256": "", "changes": [{"operation": "insert", "afterLine": "1"}]},
                {"docPath": "r/c", "originalSha256": "", "changes": [{"operation": "x"}]}]}"#,
            &[
                "files[0].docPath",
                "files[0].originalSha256",
                "files[0].changes",
                "files[1].changes[0].afterLine",
                "files[2].changes[0].operation",
            ],
        ),
        (
            r#"{"patches": [{"path": "a", "replacements": {}}, {"path": "../b", "replacements": [{"find": "", "replace": ""}]}]}"#,
            &["patches[0].replacements", "patches[1].path", "patches[1].replacements[0].find"],
        ),
        (
            r#"{"files": [{"path": "a//b", "content": ""}, {"path": "b", "content": 1}, {"path": "c"}]}"#,
            &["files[0].path", "files[1].content", "files[2].content"],
        ),
        (
            r#"{"path": "../a", "patches": [{"operation": "replace", "oldText": 1}, {"operation": "append"}]}"#,
            &["patches[0].oldText", "patches[1].operation"],
        ),
        (
            r#"[{"command": "str_replace", "path": "a", "old_str": "", "new_str": "x"}, {"command": "view", "path": "b"}]"#,
            &["old_str", "[1].command"],
        ),
    ];
    for (text, named) in cases {
        let status = client.batches.submit_batch(document("r1", "", text)).await.unwrap_err();
        assert_eq!(fields(&status), named, "{text}");
        let status = client.batches.submit_batch(document("no id", "", text)).await.unwrap_err();
        assert_eq!(fields(&status), [&["requestId"], named].concat(), "{text}");
    }
}

/// Content that is too large for a message is stored as a blob; the same document again names the same blob.
#[tokio::test]
async fn large_content_of_a_document_becomes_a_blob() {
    let server = Server::start();
    let mut client = server.connect().await;
    let large = "x".repeat((1 << 20) + 1);
    let half = "y".repeat(900 << 10);
    let file = |path: &str, content: &str| format!(r#"{{"path":"{path}","operation":"create","content":"{content}"}}"#);
    let files = [file("a", &large), file("b", &half), file("c", &half), file("d", &half)];
    let text = format!(r#"{{"files":[{}]}}"#, files.join(","));
    let text = text.into_bytes();
    assert!(text.len() + 1000 < 4 << 20);
    let rehearsed = v1::SubmitBatchRequest { validate_only: true, ..document("r1", "", text.clone()) };
    assert_eq!(sent(&mut client, rehearsed).await.unwrap().batch.unwrap().batch_id, "");
    let stored = sent(&mut client, document("r1", "", text.clone())).await.unwrap().batch.unwrap();
    let again = sent(&mut client, document("r1", "", text)).await.unwrap().batch.unwrap();
    assert_eq!(stored.batch_id, again.batch_id);
    let whole = client.get("w", &stored.batch_id).await.unwrap();
    assert!(whole.encoded_len() < 4 << 20);
    let contents: Vec<_> = aptix_model::batch::Batch::try_from(whole.edit.unwrap())
        .unwrap()
        .files
        .iter()
        .map(|file| match file.edit.content().unwrap() {
            aptix_model::batch::Content::Blob(blob) => (true, blob.size_bytes as usize),
            aptix_model::batch::Content::Text(text) => (false, text.len()),
        })
        .collect();
    assert_eq!(contents, [(true, large.len()), (false, half.len()), (false, half.len()), (true, half.len())]);
    assert_eq!(client.download("w", &crate::server::sha256(large.as_bytes())).await.unwrap(), large.into_bytes());
}

/// A request id that was used with a document is not free for another one.
#[tokio::test]
async fn a_request_id_identifies_one_document() {
    let server = Server::start();
    let mut client = server.connect().await;
    sent(&mut client, document("r1", "", DOCUMENTS[1].1)).await.unwrap();
    let other = client.batches.submit_batch(document("r1", "", DOCUMENTS[2].1)).await;
    assert_refused(other, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
}

/// A refusal names the part by its author's keys: of a document, and of an edit of this protocol.
#[tokio::test]
async fn a_wrong_shape_is_named_by_the_keys_of_its_author() {
    let server = Server::start();
    let mut client = server.connect().await;
    let text = r#"{"files":[{"fileKey":"f","docPath":"app/a.txt","originalSha256":"","changes":[{"changeKey":"c","operation":"insert","afterLine":0,"newLines":7}]}]}"#;
    let change = v1::Change { key: "c".to_owned(), operation: None, ..v1::Change::default() };
    let patch = v1::LinePatch { original_sha256: String::new(), changes: vec![change] };
    let file = v1::FilePatch {
        key: "f".to_owned(),
        target: Some(v1::file_patch::Target::DocPath("app/a.txt".to_owned())),
        action: Some(v1::file_patch::Action::LinePatch(patch)),
        ..v1::FilePatch::default()
    };
    for request in [document("r", "", text), submit("w", "r", vec![file])] {
        let status = sent(&mut client, request).await.unwrap_err();
        let info = status.get_error_details().error_info().unwrap().clone();
        let named = ["fileIndex", "fileKey", "changeIndex", "changeKey"].map(|key| info.metadata[key].clone());
        assert_eq!(named, ["0", "f", "0", "c"], "{status:?}");
        let violations = status.get_error_details().bad_request().unwrap().field_violations.clone();
        assert!(violations[0].description.contains(r#"(fileKey "f") (changeKey "c")"#), "{violations:?}");
    }
}
