//! Diffs that no parser writes: messages made by hand are refused by name, whatever their numbers are.

use aptix_model::wire::v1;
use aptix_model::wire::v1::file_patch::{Action, Target};
use tonic::Code;

use crate::server::{Server, applied, assert_refused, refusal, submit};

fn line(kind: v1::LineKind, text: &str) -> v1::HunkLine {
    v1::HunkLine { kind: kind.into(), content: text.to_owned().into() }
}

/// A hunk that removes one line and adds one.
fn hunk() -> v1::Hunk {
    let lines = vec![line(v1::LineKind::Removed, "old\n"), line(v1::LineKind::Added, "new\n")];
    v1::Hunk { old_start: 1, old_count: 1, new_start: 1, new_count: 1, lines, ..v1::Hunk::default() }
}

fn modify(hunks: Vec<v1::Hunk>) -> v1::GitPatch {
    v1::GitPatch { kind: v1::GitKind::Modify.into(), hunks, ..v1::GitPatch::default() }
}

fn file(action: Action) -> v1::FilePatch {
    v1::FilePatch { target: Some(Target::Path("f".to_owned())), action: Some(action), ..v1::FilePatch::default() }
}

fn series(parts: Vec<v1::GitPatch>) -> v1::FilePatch {
    file(Action::GitSeries(v1::GitSeries { parts }))
}

/// A number that no header has is refused, and does not stop the server.
#[tokio::test]
async fn numbers_that_no_header_has_are_refused() {
    let server = Server::start();
    let mut client = server.connect().await;
    let fields: [fn(&mut v1::Hunk) -> &mut i64; 4] = [
        |hunk| &mut hunk.old_start,
        |hunk| &mut hunk.old_count,
        |hunk| &mut hunk.new_start,
        |hunk| &mut hunk.new_count,
    ];
    let mut number = 0;
    for field in fields {
        for value in [i64::MIN, i64::MIN + 1, -1] {
            for (lines, surplus) in [(true, false), (true, true), (false, true)] {
                let mut hunk = hunk();
                *field(&mut hunk) = value;
                if !lines {
                    hunk.lines.clear();
                }
                if surplus {
                    hunk.lines.push(line(v1::LineKind::SurplusContext, "below\n"));
                }
                number += 1;
                let request = submit("w", &format!("r{number}"), vec![file(Action::GitPatch(modify(vec![hunk])))]);
                let status = client.submit(request).await.unwrap_err();
                let (code, reason, _) = refusal(&status);
                assert_eq!(code, Code::InvalidArgument, "{value}: {}", status.message());
                assert!(["LINE_RANGE", "PATCH_TRUNCATED"].contains(&reason.as_str()), "{value}: {reason}");
            }
        }
        let mut hunk = hunk();
        *field(&mut hunk) = i64::MAX;
        number += 1;
        // The header may be wrong, as the server does not see the file; the file decides.
        let request = submit("w", &format!("r{number}"), vec![file(Action::GitPatch(modify(vec![hunk])))]);
        if let Err(status) = client.submit(request).await {
            assert_eq!(refusal(&status).0, Code::InvalidArgument, "{}", status.message());
        }
    }
}

/// Lists that say nothing, or that have no order, are refused.
#[tokio::test]
async fn parts_and_lines_that_fit_nowhere_are_refused() {
    let server = Server::start();
    let mut client = server.connect().await;
    let with = |lines: Vec<v1::HunkLine>| file(Action::GitPatch(modify(vec![v1::Hunk { lines, ..hunk() }])));
    let (removed, added) = (line(v1::LineKind::Removed, "old\n"), line(v1::LineKind::Added, "new\n"));
    let surplus = line(v1::LineKind::SurplusContext, "x\n");
    let unnumbered = v1::Hunk { is_unnumbered: true, ..hunk() };
    let mode = v1::GitPatch { executable: Some(true), ..modify(Vec::new()) };
    let kind = |kind: v1::GitKind| v1::GitPatch { kind: kind.into(), ..modify(vec![hunk()]) };
    for (file, reason, detail) in [
        (file(Action::GitPatch(modify(Vec::new()))), "PATCH_MALFORMED", "EMPTY"),
        (with(Vec::new()), "PATCH_TRUNCATED", ""),
        (with(vec![removed.clone(), surplus.clone(), added.clone()]), "INVALID_REQUEST", "UNEXPECTED_FIELD"),
        (with(vec![surplus, removed.clone(), added]), "INVALID_REQUEST", "UNEXPECTED_FIELD"),
        (with(vec![removed.clone(), line(v1::LineKind::Added, "")]), "PATCH_MALFORMED", "EMBEDDED_NEWLINE"),
        (with(vec![removed, line(v1::LineKind::Added, "a\nb\n")]), "PATCH_MALFORMED", "EMBEDDED_NEWLINE"),
        (file(Action::GitPatch(modify(vec![unnumbered]))), "INVALID_REQUEST", "UNEXPECTED_FIELD"),
        (file(Action::GitPatch(kind(v1::GitKind::Create))), "PATCH_MALFORMED", "LINE_KIND"),
        (file(Action::GitPatch(kind(v1::GitKind::Delete))), "PATCH_MALFORMED", "LINE_KIND"),
        (series(Vec::new()), "INVALID_REQUEST", "DUPLICATE_PATH"),
        (series(vec![mode.clone()]), "INVALID_REQUEST", "DUPLICATE_PATH"),
        (series(vec![mode.clone(); 100_001]), "TOO_LARGE", "CHANGES"),
    ] {
        assert_refused(client.submit(submit("w", "bad", vec![file])).await, Code::InvalidArgument, reason, detail);
    }
    client.submit(submit("w", "good", vec![series(vec![mode; 2])])).await.unwrap();
}

/// A file that a diff deletes and creates again may have another mode and the content that it had.
#[tokio::test]
async fn a_file_that_comes_again_may_change_its_mode_alone() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"x\n").await.unwrap();
    let part = |kind: v1::GitKind, line_kind, old, new| {
        let lines = vec![line(line_kind, "x\n")];
        let hunk =
            v1::Hunk { old_start: old, old_count: old, new_start: new, new_count: new, lines, ..v1::Hunk::default() };
        v1::GitPatch { kind: kind.into(), ..modify(vec![hunk]) }
    };
    let gone = part(v1::GitKind::Delete, v1::LineKind::Removed, 1, 0);
    let again = part(v1::GitKind::Create, v1::LineKind::Added, 0, 1);
    let batch = client.submit(submit("w", "r", vec![series(vec![gone, again])])).await.unwrap();
    let mut report = applied(&[("app", "f", b"x\n")]);
    let file = &mut report.files[0];
    file.sha256_before.clone_from(&file.sha256);
    client.report("w", &batch.batch_id, epoch, report).await.unwrap();
}
