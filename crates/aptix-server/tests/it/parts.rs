//! One file patch or change of a batch: each is answered alone, with its own report, failures and diff.

use aptix_model::wire::v1;

use crate::server::{Clients, Server, applied, failed, line_patch, submit, two_changes};

const HEAD: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n";
const FIRST: &str = "@@ -1,2 +1,3 @@\n+new\n 1\n 2\n";
const SECOND: &str = "@@ -9,1 +10,1 @@\n-9\n+nine\n";

async fn get(client: &mut Clients, id: &str) -> v1::GetChangeResponse {
    let request = v1::GetChangeRequest { workspace_id: "w".to_owned(), id: id.to_owned() };
    client.batches.get_change(request).await.unwrap().into_inner()
}

/// A file patch and its changes, by their ids.
async fn parts(client: &mut Clients, file: &v1::FilePatch) -> (v1::GetChangeResponse, Vec<v1::GetChangeResponse>) {
    let Some(v1::file_patch::Action::LinePatch(patch)) = &file.action else { panic!("a line patch") };
    let mut changes = Vec::new();
    for change in &patch.changes {
        changes.push(get(client, &change.change_id).await);
    }
    (get(client, &file.file_patch_id).await, changes)
}

fn failure(message: &str, file: Option<u32>, change: Option<u32>) -> v1::Failure {
    let (file_index, change_index, message) = (file, change, message.to_owned());
    v1::Failure { file_index, change_index, message, ..failed("EXPECTED_MISMATCH").failures.remove(0) }
}

/// TUL-002-7.1.4: a failure is answered with the entry that it names, and with no other.
#[tokio::test]
async fn a_part_has_its_own_failures() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r", vec![line_patch("app/a.txt"), line_patch("app/b.txt")])).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let failures = vec![
        failure("whole", None, None),
        failure("file", Some(1), None),
        failure("first", Some(1), Some(0)),
        failure("second", Some(1), Some(1)),
        failure("other", Some(0), Some(1)),
    ];
    let report = v1::Report { failures, ..failed("EXPECTED_MISMATCH") };
    client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    let files = batch.edit.unwrap().files;
    let messages = |part: &v1::GetChangeResponse| {
        assert_eq!((part.state(), part.file_report.as_ref(), part.diff.as_str()), (v1::BatchState::Failed, None, ""));
        part.failures.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>()
    };
    let (file, changes) = parts(&mut client, &files[1]).await;
    assert_eq!(messages(&file), ["file", "first", "second"]);
    assert_eq!(changes.iter().map(messages).collect::<Vec<_>>()[..2], [vec!["first"], vec!["second"]]);
    let (file, changes) = parts(&mut client, &files[0]).await;
    assert_eq!(messages(&file), ["other"]);
    assert!(messages(&changes[0]).is_empty());
}

/// TUL-002-7.1.4: of a batch that was applied a file has its part of the diff, a change its lines and its report alone.
#[tokio::test]
async fn a_part_has_its_own_lines_of_the_diff() {
    let server = Server::start();
    let mut client = server.connect().await;
    let patches = vec![line_patch("app/z.txt"), line_patch("app/a.txt")];
    let batch = client.submit(submit("w", "r", patches)).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let files = batch.edit.unwrap().files;
    let mut report = applied(&[("app", "z.txt", b"z"), ("app", "a.txt", b"a")]);
    for file in [b"z", b"a"] {
        client.upload("w", file).await.unwrap();
    }
    let change =
        |start_line, end_line| v1::ChangeReport { tier: "exact".to_owned(), candidates: 1, start_line, end_line };
    let changes = [change(1, 1), change(10, 10), change(1, 0)];
    for (file, patch) in report.files.iter_mut().zip(&files) {
        let Some(v1::file_patch::Action::LinePatch(patch)) = &patch.action else { panic!("a line patch") };
        file.changes = changes.iter().take(patch.changes.len()).cloned().collect();
    }
    let other = "diff --git a/z.txt b/z.txt\n--- a/z.txt\n+++ b/z.txt\n@@ -1 +1 @@\n-1\n+2\n";
    report.diff = [other, HEAD, FIRST, SECOND].concat();
    client.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
    let (file, found) = parts(&mut client, &files[1]).await;
    assert_eq!((file.state(), file.failures.len()), (v1::BatchState::Applied, 0));
    assert_eq!(file.diff, [HEAD, FIRST, SECOND].concat());
    assert_eq!(file.file_report.as_ref(), Some(&report.files[1]));
    assert_eq!(found[0].diff, [HEAD, FIRST].concat());
    assert_eq!(found[1].diff, [HEAD, SECOND].concat());
    for (index, part) in found.iter().enumerate() {
        assert_eq!(part.file_report.as_ref().unwrap().changes, [changes[index].clone()]);
    }
}

/// A diff is what an agent says: numbers that no file has are answered like others.
#[tokio::test]
async fn a_diff_of_impossible_numbers_is_cut_all_the_same() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"a").await.unwrap();
    let most = usize::MAX;
    for (request, header) in [
        ("r1", format!("@@ -{most},0 +{most},0 @@")),
        ("r2", format!("@@ -1 +{most} @@")),
        ("r3", format!("@@ -{most} +1 @@")),
    ] {
        let batch = client.submit(submit("w", request, vec![line_patch("app/a.txt")])).await.unwrap();
        let mut report = applied(&[("app", "a.txt", b"a")]);
        report.files[0].changes = two_changes();
        report.files[0].changes[0].end_line = u32::MAX;
        report.diff = format!("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n{header}\n-1\n+2\n 3\n-4\n");
        client.report("w", &batch.batch_id, epoch, report).await.unwrap();
        parts(&mut client, &batch.edit.unwrap().files[0]).await;
    }
}
