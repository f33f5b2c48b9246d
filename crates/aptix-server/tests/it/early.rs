//! A batch that is only validated, while no agent serves: its line patches are held against the cloud copies.

use aptix_model::wire::v1;
use aptix_model::wire::v1::submit_batch_request::Content;

use crate::server::{Clients, Server, applied, create_text, line_patch, sha256, submit};

/// A workspace with these cloud files below the root `app`, which no agent serves; answers the batch that made them.
async fn with_cloud_files(client: &mut Clients, files: &[(&str, &str)]) -> v1::Batch {
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    for (_, text) in files {
        client.upload("w", text.as_bytes()).await.unwrap();
    }
    let patches = files.iter().map(|(path, text)| create_text(path, text)).collect();
    let batch = client.submit(submit("w", "made", patches)).await.unwrap();
    let files: Vec<_> = files.iter().map(|(path, text)| ("app", *path, text.as_bytes())).collect();
    let mut report = applied(&files);
    for file in &mut report.files {
        file.status = v1::FileStatus::Created.into();
        file.sha256_before = None;
    }
    client.report("w", &batch.batch_id, epoch, report).await.unwrap()
}

async fn validated(client: &mut Clients, files: Vec<v1::FilePatch>) -> Option<v1::Report> {
    let request = v1::SubmitBatchRequest { validate_only: true, ..submit("w", "validated", files) };
    client.batches.submit_batch(request).await.unwrap().into_inner().preview
}

/// What does not fit the copy is answered with its digest, time and batch, for each file by itself; what fits, and what is no
/// line patch or has no copy, is not spoken of. The batch itself is stored: the agent decides.
#[tokio::test]
async fn line_patches_are_compared_with_the_cloud_copies() {
    let server = Server::start();
    let mut client = server.connect().await;
    let made = with_cloud_files(&mut client, &[("Fits.txt", "old\n"), ("stale.txt", "new\n")]).await;
    assert_eq!(validated(&mut client, vec![line_patch("app/fits.txt")]).await, None);
    assert_eq!(validated(&mut client, vec![line_patch("app/none.txt"), create_text("other.txt", "x")]).await, None);

    let files = vec![create_text("other.txt", "x"), line_patch("app/fits.txt"), line_patch("app/stale.txt")];
    let preview = validated(&mut client, files.clone()).await.unwrap();
    assert_eq!((preview.outcome(), preview.failures.len()), (v1::Outcome::Failed, 1), "{preview:?}");
    assert_eq!(preview.warnings[0].code, "CLOUD_COPY");
    let failure = &preview.failures[0];
    assert_eq!((failure.reason.as_str(), failure.file_index), ("SHA_MISMATCH", Some(2)), "{failure:?}");
    assert_eq!(failure.path, "stale.txt", "as the cloud file is written");
    assert_eq!(failure.current_sha256(), sha256(b"new\n"));
    assert_eq!(failure.current_source(), v1::Source::Cloud);
    assert_eq!((failure.current_time, &failure.current_batch_id), (made.update_time, &made.batch_id));

    let mut other_lines = line_patch("app/fits.txt");
    if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut other_lines.action
        && let Some(v1::change::Operation::Replace(replace)) = &mut patch.changes[1].operation
    {
        replace.expected_original_lines = vec!["older".to_owned()];
    }
    let preview = validated(&mut client, vec![other_lines]).await.unwrap();
    assert_eq!(preview.failures[0].reason, "EXPECTED_MISMATCH", "{preview:?}");
    assert_eq!(preview.failures[0].nearest[0].text, "old");

    let stored = client.submit(submit("w", "stored", files)).await.unwrap();
    assert_eq!(stored.state(), v1::BatchState::Approved, "the copy alone refuses no batch");
}

/// Copies are compared as far as they have 1 MiB together, and a failure is in the terms of the document.
#[tokio::test]
async fn a_comparison_reads_so_much_and_speaks_of_the_document() {
    let server = Server::start();
    let mut client = server.connect().await;
    let most = "x\n".repeat(1 << 19);
    with_cloud_files(&mut client, &[("a.txt", &most), ("b.txt", "x\n")]).await;
    let stale = |path: &str| line_patch(path);
    let preview = validated(&mut client, vec![stale("app/a.txt"), stale("app/b.txt")]).await.unwrap();
    let files: Vec<_> = preview.failures.iter().map(|failure| failure.file_index).collect();
    assert_eq!(files, [Some(0)], "there is no room for the second");

    let text = format!(
        r#"{{"files": [{{"docPath": "app/b.txt", "originalSha256": "{}", "changes": [{{"operation": "delete",
        "startLine": 1, "endLine": 2, "expectedOriginalLines": ["x", "y"]}}]}}]}}"#,
        sha256(b"x\n")
    );
    let document = v1::Document { dialect: String::new(), text: text.into() };
    let content = Some(Content::Document(document));
    let request = v1::SubmitBatchRequest { validate_only: true, content, ..submit("w", "validated", Vec::new()) };
    let preview = client.batches.submit_batch(request).await.unwrap().into_inner().preview.unwrap();
    let failure = &preview.failures[0];
    assert_eq!((failure.reason.as_str(), failure.path.as_str()), ("LINE_RANGE", "b.txt"), "{failure:?}");
}
