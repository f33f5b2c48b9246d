//! The wire: what goes out comes back the same, and what protobuf lets through is still refused.

use aptix_model::batch::{
    Batch, BlobRef, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Origin, Target,
};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::id::{BatchId, Revision, Uuid};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchOutline, BatchRecord, FileIds, UnixMillis};
use aptix_model::report::{
    ChangeReport, FileReport, FileStatus, Normalization, Outcome, Report, Tier, Warning, Written,
};
use aptix_model::state::BatchState;
use aptix_model::wire::{event_message, listed_message, v1};

fn batch() -> Batch {
    let change = |operation| Change { key: Some("ck".into()), description: None, operation };
    let changes = vec![
        change(Operation::Insert { after_line: 0, new_lines: vec!["a".into()] }),
        change(Operation::Replace {
            start_line: 2,
            end_line: 2,
            expected_original_lines: vec!["b".into()],
            new_lines: vec!["c".into()],
        }),
        change(Operation::Delete { start_line: 3, end_line: 3, expected_original_lines: vec![String::new()] }),
    ];
    let edit = FileEdit::LinePatch(LinePatch { original_sha256: Sha256Digest::EMPTY.to_string(), changes });
    let lines = FilePatch { target: Target::DocPath("r/a".into()), key: Some("k".into()), label: None, edit };
    let created = |content, path: &str| FilePatch {
        target: Target::Path(path.into()),
        key: None,
        label: Some("l".into()),
        edit: FileEdit::CreateFile(CreateFile { content, overwrite: true }),
    };
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 7 };
    let files = vec![lines, created(Content::Text(String::new()), "b"), created(Content::Blob(blob), "c")];
    Batch { label: Some("L".into()), key: None, files }
}

fn applied() -> Report {
    let file = FileReport {
        path: "a".into(),
        doc_path: "r/a".into(),
        status: FileStatus::Modified,
        sha256_before: Some(Sha256Digest::EMPTY),
        renamed_to: Some("b".into()),
        written: Some(Written { sha256: Sha256Digest::from_bytes([7; 32]), size_bytes: 3 }),
        normalized: Normalization::ALL.to_vec(),
        warnings: vec![Warning { code: "W".into(), message: "m".into() }],
        changes: vec![ChangeReport { tier: Tier::Exact, candidates: 1, start_line: 4, end_line: 3 }],
    };
    Report { outcome: Outcome::Applied, files: vec![file], failures: Vec::new(), diff: "d".into(), diff_omitted: false }
}

fn failed() -> Report {
    let mut failure = Failure::new(Reason::ShaMismatch, "m")
        .detail(Detail::Line)
        .hint("h")
        .field("f")
        .file(0, "a")
        .change(2)
        .line(9)
        .current(Sha256Digest::EMPTY);
    failure.nearest.push(Excerpt { start_line: 1, end_line: 2, text: "x\ny".into() });
    Report {
        outcome: Outcome::Failed,
        files: Vec::new(),
        failures: vec![failure],
        diff: String::new(),
        diff_omitted: false,
    }
}

fn record() -> BatchRecord {
    let mut next = 0_u128;
    let batch = batch();
    let ids = FileIds::mint(&batch, || {
        next += 1;
        Uuid::from_u128(next)
    });
    BatchRecord {
        id: BatchId(Uuid::from_u128(99)),
        workspace: "w".parse().unwrap(),
        revision: Revision(5),
        state: BatchState::Approved,
        batch,
        ids,
        origin: Origin { session_id: Some("s".into()), conversation_id: None, turn_id: Some("t".into()) },
        request_id: "r-1".parse().unwrap(),
        created: UnixMillis(1_700_000_000_123),
        updated: UnixMillis(1_700_000_000_456),
        report: Some(applied()),
    }
}

/// TUL-002-7.1.1, TUL-002-7.2.2: every id and key makes the journey.
#[test]
fn a_record_comes_back_as_it_went() {
    let message = v1::Batch::from(record());
    assert_eq!(BatchRecord::try_from(message), Ok(record()));
    assert_eq!(Report::try_from(v1::Report::from(failed())), Ok(failed()));
}

#[test]
fn a_report_that_contradicts_itself_is_refused() {
    let (applied, failed) = (v1::Report::from(applied()), v1::Report::from(failed()));
    let mut outside = applied.clone();
    outside.files[0].path = "../../etc/passwd".into();
    let contradictions = [
        v1::Report { failures: failed.failures.clone(), ..applied.clone() },
        v1::Report { files: applied.files.clone(), ..failed.clone() },
        v1::Report { failures: Vec::new(), ..failed.clone() },
        v1::Report { diff: "x".repeat((1 << 20) + 1), ..applied },
        outside,
    ];
    for report in contradictions {
        assert!(Report::try_from(report).is_err());
    }
}

#[test]
fn an_event_of_an_ended_batch_and_a_list_carry_no_content() {
    let ended = event_message(BatchRecord { state: BatchState::Applied, ..record() });
    assert_eq!((ended.edit.clone(), ended.report.clone()), (None, None));
    assert_eq!(BatchOutline::try_from(ended).unwrap().state, BatchState::Applied);
    assert_eq!(BatchRecord::try_from(event_message(record())), Ok(record()));
    let listed = listed_message(record());
    assert!(listed.edit.as_ref().unwrap().files.iter().all(|file| file.action.is_none()));
    let outline = BatchOutline::try_from(listed).unwrap();
    assert_eq!((outline.label.as_deref(), outline.targets.len()), (Some("L"), 3));
}

/// TUL-002-5.1.4: an operation that is not set is no operation.
#[test]
fn unset_oneofs_are_all_named_at_once() {
    let mut edit = v1::Edit::from(batch());
    edit.files[0].target = None;
    if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut edit.files[0].action {
        patch.changes[1].operation = None;
    }
    edit.files[1].action = None;
    edit.files[2].action = Some(v1::file_patch::Action::CreateFile(v1::CreateFile::default()));
    let failures = Batch::try_from(edit).unwrap_err();
    let fields: Vec<_> = failures.iter().map(|failure| failure.field.as_deref().unwrap()).collect();
    assert_eq!(fields, ["files[0].target", "files[0].changes[1].operation", "files[1].action", "files[2].createFile"]);
    assert!(failures.iter().all(|failure| failure.detail == Some(Detail::Missing)));
}

#[test]
fn unknown_enum_values_and_oversized_inline_text_are_refused() {
    let message = v1::Report { outcome: 127, ..applied().into() };
    assert_eq!(Report::try_from(message).unwrap_err()[0].detail, Some(Detail::UnknownEnum));
    let mut message = v1::Report::from(applied());
    message.files[0].status = 127;
    assert_eq!(Report::try_from(message).unwrap_err()[0].field.as_deref(), Some("report.files[0].status"));
    let mut edit = v1::Edit::from(batch());
    let text = "x".repeat((1 << 20) + 1);
    let content = Some(v1::create_file::Content::Text(text));
    edit.files[1].action = Some(v1::file_patch::Action::CreateFile(v1::CreateFile { content, overwrite: false }));
    assert_eq!(Batch::try_from(edit).unwrap_err()[0].reason, Reason::TooLarge);
}

#[test]
fn a_reason_of_a_newer_version_is_kept_in_words() {
    let failure = Failure::from(v1::Failure { reason: "NEWER".into(), message: "m".into(), ..v1::Failure::default() });
    assert_eq!((failure.reason, failure.message.as_str()), (Reason::Internal, "NEWER: m"));
}
