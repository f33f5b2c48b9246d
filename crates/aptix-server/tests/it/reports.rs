//! Reports: which are taken, which are refused, and what they leave of the cloud files.

use aptix_model::wire::v1;
use aptix_model::wire::v1::file_patch::Action;
use aptix_model::wire::v1::file_selector::File;
use tonic::Code;

use crate::server::{
    Server, applied, assert_refused, create_text, failed, fields, line_patch, refusal, sha256, submit, two_changes,
};

/// A report is taken once. The same one again is answered alike, under whatever lease; another is refused.
#[tokio::test]
async fn a_report_is_final_and_may_be_repeated() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![line_patch("app/a.txt")])).await.unwrap();
    let (epoch, feed) = client.lease("w", "agent", 0).await.unwrap();
    let first = client.report("w", &batch.batch_id, epoch, failed("SHA_MISMATCH")).await.unwrap();
    drop(feed);
    let (newer, _feed) = client.lease("w", "agent", 0).await.unwrap();
    assert_eq!(newer, epoch + 1);
    for lease in [epoch, newer, 99] {
        assert_eq!(client.report("w", &batch.batch_id, lease, failed("SHA_MISMATCH")).await.unwrap(), first);
    }
    let rejected = v1::Report { outcome: v1::Outcome::Rejected.into(), ..failed("REJECTED") };
    for other in [failed("FILE_MISSING"), rejected, applied(&[("app", "a.txt", b"")])] {
        let answer = client.report("w", &batch.batch_id, newer, other).await;
        assert_refused(answer, Code::FailedPrecondition, "RESULT_FINAL", "");
    }
    assert_eq!(client.get("w", &batch.batch_id).await.unwrap().state(), v1::BatchState::Failed);
}

/// A report under an epoch that is not the newest is refused, and so is one for another workspace's batch.
#[tokio::test]
async fn a_report_needs_the_newest_lease_and_its_own_workspace() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![line_patch("app/a.txt")])).await.unwrap();
    for epoch in [0, 1] {
        let answer = client.report("w", &batch.batch_id, epoch, failed("SHA_MISMATCH")).await;
        assert_refused(answer, Code::FailedPrecondition, "LEASE_LOST", "");
    }
    let (old, _first) = client.lease("w", "agent", 0).await.unwrap();
    let (new, _second) = client.lease("w", "agent", 0).await.unwrap();
    let answer = client.report("w", &batch.batch_id, old, failed("SHA_MISMATCH")).await;
    assert_refused(answer, Code::FailedPrecondition, "LEASE_LOST", "");
    let (other, _third) = client.lease("v", "agent", 0).await.unwrap();
    let foreign = client.report("v", &batch.batch_id, other, failed("SHA_MISMATCH")).await.unwrap_err();
    let absent = client.report("v", &batch.batch_id.replace('0', "1"), other, failed("X")).await.unwrap_err();
    assert_eq!(refusal(&foreign), refusal(&absent));
    assert_eq!(refusal(&foreign).0, Code::NotFound);
    client.report("w", &batch.batch_id, new, failed("SHA_MISMATCH")).await.unwrap();
}

fn created(file: &mut v1::FileReport) {
    (file.status, file.sha256_before) = (v1::FileStatus::Created.into(), None);
}

/// A report that cannot be about its batch is refused, with every misfit named.
#[tokio::test]
async fn a_report_must_fit_its_batch() {
    let server = Server::start();
    let mut client = server.connect().await;
    let files = vec![line_patch("app/a.txt"), create_text("b.txt", "b")];
    let batch = client.submit(submit("w", "r1", files)).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let mut good = applied(&[("app", "a.txt", b""), ("app", "b.txt", b"")]);
    good.files[0].changes = two_changes();
    let edited = |edit: fn(&mut v1::Report)| {
        let mut report = good.clone();
        edit(&mut report);
        report
    };
    let cases = [
        (edited(|report| drop(report.files.pop())), "report.files"),
        (edited(|report| report.files.reverse()), "report.files[0].path"),
        (edited(|report| report.files[0].doc_path = "app/b.txt".to_owned()), "report.files[0].docPath"),
        (edited(|report| report.files[0].path = "../a.txt".to_owned()), "report.files[0].path"),
        (edited(|report| report.files[1].path = "B.txt".to_owned()), "report.files[1].path"),
        (edited(|report| report.files[0].changes.truncate(1)), "report.files[0].changes"),
        (edited(|report| report.files[1].changes = two_changes()), "report.files[1].changes"),
        (edited(|report| report.files[0].sha256_before = None), "report.files[0].status"),
        (edited(|report| report.files[1].sha256_before = Some(sha256(b""))), "report.files[1].status"),
        (edited(|report| report.files[1].status = v1::FileStatus::Created.into()), "report.files[1].status"),
        (edited(|report| report.files[1].status = v1::FileStatus::Unchanged.into()), "report.files[1].status"),
        (edited(|report| created(&mut report.files[0])), "report.files[0].status"),
        (edited(|report| report.files[1].sha256 = Some("no".to_owned())), "report.files[1].sha256"),
        (edited(|report| report.files[1].status = 127), "report.files[1].status"),
        (edited(|report| report.outcome = 0), "report.outcome"),
        (edited(|report| report.outcome = v1::Outcome::Failed.into()), "report"),
        (edited(|report| report.failures = failed("X").failures), "report"),
        (edited(|report| report.diff = "x".repeat((1 << 20) + 1)), "report"),
    ];
    for (report, field) in cases {
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        assert!(fields(&status).iter().any(|named| named == field), "{field} in {:?}", fields(&status));
    }
    client.report("w", &batch.batch_id, epoch, good).await.unwrap();
}

/// Only a batch that is applied file by file ends in part: what was applied becomes a cloud file, what was not has its names alone
/// and a failure.
#[tokio::test]
async fn a_partial_report_fits_only_a_batch_that_is_applied_file_by_file() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let files = || vec![create_text("a.txt", ""), create_text("b.txt", "b"), create_text("c.txt", "c")];
    let whole = client.submit(submit("w", "r1", files())).await.unwrap();
    let mut request = submit("w", "r2", files());
    let edit = crate::server::edit_of(&mut request);
    (edit.atomicity, edit.required_features) = (v1::Atomicity::PerFile.into(), vec!["per_file".to_owned()]);
    let batch = client.submit(request).await.unwrap();
    let file = |path: &str, status: v1::FileStatus| v1::FileReport {
        path: path.to_owned(),
        doc_path: format!("app/{path}"),
        status: status.into(),
        ..v1::FileReport::default()
    };
    let mut report = applied(&[("app", "a.txt", b"")]);
    created(&mut report.files[0]);
    report.outcome = v1::Outcome::Partial.into();
    report.files.extend([file("b.txt", v1::FileStatus::Failed), file("c.txt", v1::FileStatus::Skipped)]);
    report.failures = failed("FILE_EXISTS").failures;
    report.failures[0].file_index = Some(1);
    let edited = |edit: fn(&mut v1::Report)| {
        let mut report = report.clone();
        edit(&mut report);
        report
    };
    let cases = [
        (&whole, report.clone(), "report.outcome"),
        (&batch, edited(|report| report.failures[0].file_index = Some(0)), "report.files[1].status"),
        (&batch, edited(|report| report.files[1].sha256_before = Some(sha256(b""))), "report.files[1].status"),
        (&batch, edited(|report| report.files[2].path = "x.txt".to_owned()), "report.files[2].docPath"),
        (&batch, edited(|report| report.outcome = v1::Outcome::Applied.into()), "report"),
        (&batch, edited(|report| report.files.truncate(2)), "report.files"),
    ];
    for (batch, report, field) in cases {
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        assert!(fields(&status).iter().any(|named| named == field), "{field} in {:?}", fields(&status));
    }
    let taken = client.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
    assert_eq!(taken.state(), v1::BatchState::Partial);
    assert_eq!(client.report("w", &batch.batch_id, epoch, report).await.unwrap(), taken);
    let selector = |path: &str| File::DocPath(format!("app/{path}"));
    assert!(client.read("w", selector("a.txt")).await.is_ok());
    assert!(client.read("w", selector("b.txt")).await.is_err());
}

/// A file that a batch deleted is no cloud file any more, and a file written as it is becomes one. What a
/// report says must be a possible result of such an edit.
#[tokio::test]
async fn deleted_files_leave_the_cloud_files() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"text").await.unwrap();
    let write = |path: &str, presence: v1::Presence| {
        let content = Some(v1::write_file::Content::Text("text".to_owned()));
        patch(path, Action::WriteFile(v1::WriteFile { content, presence: presence.into(), content_format: None }))
    };
    let delete = |path: &str| patch(path, Action::DeleteFile(v1::DeleteFile {}));
    let files = vec![write("a.txt", v1::Presence::Absent), write("b.txt", v1::Presence::Either)];
    let made = client.submit(submit("w", "r1", files)).await.unwrap();
    let mut report = applied(&[("app", "a.txt", b"text"), ("app", "b.txt", b"text")]);
    report.files.iter_mut().for_each(created);
    client.report("w", &made.batch_id, epoch, report.clone()).await.unwrap();

    let files = vec![delete("a.txt"), write("b.txt", v1::Presence::Present), write("c.txt", v1::Presence::Absent)];
    let batch = client.submit(submit("w", "r2", files)).await.unwrap();
    let mut good = applied(&[("app", "a.txt", b""), ("app", "b.txt", b"text"), ("app", "c.txt", b"text")]);
    deleted(&mut good.files[0]);
    created(&mut good.files[2]);
    let edited = |edit: fn(&mut v1::Report)| {
        let mut report = good.clone();
        edit(&mut report);
        report
    };
    let cases = [
        (edited(|report| report.files[0].sha256_before = None), "report.files[0].sha256"),
        (edited(|report| report.files[0].status = v1::FileStatus::Modified.into()), "report.files[0].status"),
        (
            edited(|report| {
                report.files[0] =
                    v1::FileReport { doc_path: "app/a.txt".into(), path: "a.txt".into(), ..report.files[1].clone() };
            }),
            "report.files[0].status",
        ),
        (edited(|report| deleted(&mut report.files[1])), "report.files[1].status"),
        (edited(|report| created(&mut report.files[1])), "report.files[1].status"),
        (edited(|report| report.files[1].renamed_to = Some("d.txt".to_owned())), "report.files[1].status"),
        (edited(|report| report.files[2].renamed_to = Some("d.txt".to_owned())), "report.files[2].renamedTo"),
        (
            edited(|report| {
                report.files[2].status = v1::FileStatus::Modified.into();
                report.files[2].sha256_before = Some(sha256(b"old"));
            }),
            "report.files[2].status",
        ),
    ];
    for (report, field) in cases {
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec![field.to_owned()]), "{status:?}");
    }
    client.report("w", &batch.batch_id, epoch, good.clone()).await.unwrap();
    assert_eq!(client.report("w", &batch.batch_id, epoch, good).await.unwrap().state(), v1::BatchState::Applied);
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), page_size: 9, ..v1::ListFilesRequest::default() };
    let page = client.files.list_files(list).await.unwrap().into_inner();
    let paths: Vec<_> = page.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["b.txt", "c.txt"]);
    for which in [File::DocPath("app/a.txt".to_owned()), File::Path("a.txt".to_owned())] {
        assert_refused(client.read("w", which).await, Code::NotFound, "NOT_FOUND", "");
    }
}

/// A report that withholds what depends on a file's content is taken, and the server then keeps no copy of that file.
#[tokio::test]
async fn a_report_may_withhold_content() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"text").await.unwrap();
    let withhold = |file: &mut v1::FileReport| {
        file.withheld = "ignored".to_owned();
        file.sha256_before = None;
    };
    let make = |request: &str| submit("w", request, vec![create_text("a.txt", "text"), create_text("b.txt", "text")]);
    let made = client.submit(make("r1")).await.unwrap();
    let mut report = applied(&[("app", "a.txt", b"text"), ("app", "b.txt", b"text")]);
    report.files.iter_mut().for_each(withhold);
    client.report("w", &made.batch_id, epoch, report).await.unwrap();
    let a = || File::Path("a.txt".to_owned());
    assert!(client.read("w", a()).await.is_ok(), "what the author sent whole is kept");

    let replaced = |path: &str| {
        let change = v1::SearchChange {
            operation: Some(v1::search_change::Operation::AppendEof(v1::AppendEof {})),
            new_text: Some("x".to_owned()),
            ..v1::SearchChange::default()
        };
        patch(path, Action::SearchPatch(v1::SearchPatch { changes: vec![change] }))
    };
    let batch = client.submit(submit("w", "r2", vec![replaced("a.txt")])).await.unwrap();
    let mut good = applied(&[("app", "a.txt", b"")]);
    withhold(&mut good.files[0]);
    (good.files[0].sha256, good.files[0].size_bytes) = (None, None);
    let edited = |edit: fn(&mut v1::FileReport)| {
        let mut report = good.clone();
        edit(&mut report.files[0]);
        report
    };
    for (report, field) in [
        (edited(|file| file.sha256_before = Some(sha256(b"old"))), "report.files[0].sha256Before"),
        (edited(|file| file.status = v1::FileStatus::Unchanged.into()), "report.files[0].status"),
        (edited(|file| file.withheld.clear()), "report.files[0].sha256"),
    ] {
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec![field.to_owned()]), "{status:?}");
    }
    let mut unknown_word = good.clone();
    unknown_word.files[0].withheld = "a word of a newer agent".to_owned();
    client.report("w", &batch.batch_id, epoch, unknown_word).await.unwrap();
    assert_refused(client.read("w", a()).await, Code::NotFound, "NOT_FOUND", "");
}

/// A patch that moves a file and changes its only line.
fn rename(to: &str) -> Action {
    let line = |kind: v1::LineKind, text: &str| v1::ChunkLine { kind: kind.into(), text: text.to_owned() };
    let lines = vec![line(v1::LineKind::Removed, "text"), line(v1::LineKind::Added, "new")];
    let chunks = vec![v1::Chunk { lines, ..v1::Chunk::default() }];
    Action::ContextPatch(v1::ContextPatch { move_to: Some(to.to_owned()), chunks })
}

/// A renamed file leaves its old name and comes under its new one; a report of another name is refused.
#[tokio::test]
async fn renamed_files_come_under_their_new_name() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"text").await.unwrap();
    client.upload("w", b"new").await.unwrap();
    let files = vec![create_text("Old.txt", "text"), create_text("old.txt", "text"), create_text("b.txt", "text")];
    let made = client.submit(submit("w", "r1", files)).await.unwrap_err();
    assert_eq!(made.code(), Code::InvalidArgument, "two files that differ in case alone do not go into one batch");
    for (request, path) in [("r2", "Old.txt"), ("r3", "old.txt"), ("r4", "b.txt")] {
        let made = client.submit(submit("w", request, vec![create_text(path, "text")])).await.unwrap();
        let mut report = applied(&[("app", path, b"text")]);
        created(&mut report.files[0]);
        client.report("w", &made.batch_id, epoch, report).await.unwrap();
    }

    let by_key = v1::FilePatch {
        target: Some(v1::file_patch::Target::DocPath("app/b.txt".to_owned())),
        ..patch("", rename("app/d/c.txt"))
    };
    let batch = client.submit(submit("w", "r5", vec![patch("old.txt", rename("new.txt")), by_key])).await.unwrap();
    let change = v1::ChangeReport { tier: "exact".to_owned(), candidates: 1, start_line: 1, end_line: 1 };
    let mut good = applied(&[("app", "old.txt", b"new"), ("app", "b.txt", b"new")]);
    for (file, to) in good.files.iter_mut().zip(["new.txt", "D/C.txt"]) {
        file.status = v1::FileStatus::Renamed.into();
        file.renamed_to = Some(to.to_owned());
        file.changes = vec![change.clone()];
    }
    let edited = |edit: fn(&mut v1::Report)| {
        let mut report = good.clone();
        edit(&mut report);
        report
    };
    let cases = [
        (edited(|report| report.files[0].renamed_to = None), "report.files[0].status"),
        (edited(|report| report.files[0].renamed_to = Some("New.txt".to_owned())), "report.files[0].renamedTo"),
        (edited(|report| report.files[0].renamed_to = Some("../new.txt".to_owned())), "report.files[0].renamedTo"),
        (edited(|report| report.files[0].status = v1::FileStatus::Modified.into()), "report.files[0].status"),
        (
            edited(|report| {
                report.files[1].renamed_to = None;
                deleted(&mut report.files[1]);
            }),
            "report.files[1].status",
        ),
        (edited(|report| deleted(&mut report.files[1])), "report.files[1].renamedTo"),
        (edited(|report| report.files[1].renamed_to = Some("d/e.txt".to_owned())), "report.files[1].renamedTo"),
        (edited(|report| report.files[1].changes.extend(two_changes())), "report.files[1].changes"),
    ];
    for (report, field) in cases {
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec![field.to_owned()]), "{status:?}");
    }
    client.report("w", &batch.batch_id, epoch, good).await.unwrap();
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), page_size: 9, ..v1::ListFilesRequest::default() };
    let page = client.files.list_files(list).await.unwrap().into_inner();
    let paths: Vec<_> = page.files.iter().map(|file| (file.path.as_str(), file.size_bytes)).collect();
    assert_eq!(paths, [("D/C.txt", 3), ("Old.txt", 4), ("new.txt", 3)]);
    let read = client.read("w", File::DocPath("app/d/c.txt".to_owned())).await.unwrap();
    assert_eq!(read.content.as_deref(), Some(b"new".as_slice()));
    assert_refused(client.read("w", File::DocPath("app/b.txt".to_owned())).await, Code::NotFound, "NOT_FOUND", "");
}

/// A diff whose names can be read in several ways is stored as it is, and a report may be about any of its
/// paths, and about no other.
#[tokio::test]
async fn a_report_may_be_about_any_reading_of_a_name() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"new").await.unwrap();
    let open = |stripped: &[&str], written: &[&str]| {
        let text = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let readings = v1::PathReadings { stripped: text(stripped), written: text(written) };
        let line = |kind: v1::LineKind, text: &str| v1::HunkLine { kind: kind.into(), content: text.to_owned().into() };
        let lines = vec![line(v1::LineKind::Removed, "old\n"), line(v1::LineKind::Added, "new")];
        let hunk = v1::Hunk { old_start: 1, old_count: 1, new_start: 1, new_count: 1, lines, ..v1::Hunk::default() };
        let git = v1::GitPatch { kind: v1::GitKind::Modify.into(), hunks: vec![hunk], ..v1::GitPatch::default() };
        let target = Some(v1::file_patch::Target::PathReadings(readings));
        v1::FilePatch { target, action: Some(Action::GitPatch(git)), ..v1::FilePatch::default() }
    };
    for (index, (path, fits)) in [("f", true), ("a/f", true), ("b/f", true), ("c/f", false)].into_iter().enumerate() {
        let files = vec![open(&["f"], &["a/f", "b/f"])];
        let batch = client.submit(submit("w", &format!("r{index}"), files)).await.unwrap();
        let report = applied(&[("app", path, b"new")]);
        let done = client.report("w", &batch.batch_id, epoch, report).await;
        assert_eq!(done.is_ok(), fits, "{path}: {done:?}");
        if fits {
            let read = client.read("w", File::DocPath(format!("app/{path}"))).await.unwrap();
            assert_eq!(read.content.as_deref(), Some(b"new".as_slice()), "{path}");
        }
    }
    let other = v1::FilePatch { action: Some(Action::DeleteFile(v1::DeleteFile {})), ..open(&["f"], &["a/f"]) };
    for (file, reason, detail) in [
        (open(&[], &["a/f"]), "INVALID_REQUEST", "MISSING"),
        (open(&["f"], &["a", "b", "c"]), "INVALID_REQUEST", "MISSING"),
        (open(&["../f"], &["a/../f"]), "INVALID_PATH", "TRAVERSAL"),
        (other, "INVALID_REQUEST", "UNEXPECTED_FIELD"),
    ] {
        assert_refused(client.submit(submit("w", "bad", vec![file])).await, Code::InvalidArgument, reason, detail);
    }
}

fn patch(path: &str, action: Action) -> v1::FilePatch {
    let target = Some(v1::file_patch::Target::Path(path.to_owned()));
    v1::FilePatch { target, action: Some(action), ..v1::FilePatch::default() }
}

fn deleted(file: &mut v1::FileReport) {
    (file.status, file.sha256, file.size_bytes) = (v1::FileStatus::Deleted.into(), None, None);
}
