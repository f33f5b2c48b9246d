//! The wire format: messages round-trip, and what protobuf lets through is still refused.

use aptix_model::batch::{
    Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Atomicity, Batch, BlobRef, Change, Chunk, ChunkLine, Content,
    ContextPatch, CreateFile, EditorCommand, EditorCommands, FileEdit, FilePatch, GitKind, GitPatch, Hunk, HunkLine,
    LineKind, LinePatch, Occurrence, Operation, Origin, Presence, Reindent, Replacement, Replacements, Scope,
    SearchChange, SearchOperation, SearchPatch, Target, WriteFile,
};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::{Excerpt, Failure, NextAction};
use aptix_model::id::{BatchId, Revision, Uuid};
use aptix_model::path_readings::PathReadings;
use aptix_model::quote::{Quote, QuoteName};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchOutline, BatchRecord, FileIds, Sent, Source, UnixMillis};
use aptix_model::report::{
    ChangeReport, FileReport, FileStatus, Normalization, Outcome, Report, Tier, Warning, Written,
};
use aptix_model::state::BatchState;
use aptix_model::wire::v1::file_patch::Action;
use aptix_model::wire::{View, event_message, v1};

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
        edit: FileEdit::CreateFile(CreateFile { content, overwrite: true, content_format: None }),
    };
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 7 };
    let files = vec![lines, created(Content::Text(String::new()), "b"), created(Content::Blob(blob), "c")];
    Batch { label: Some("L".into()), files, ..Batch::default() }
}

/// Every kind of edit, with every value of each of its choices.
fn every_edit() -> Vec<FileEdit> {
    let blob = Content::Blob(BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 7 });
    let write = |content, presence| {
        FileEdit::WriteFile(WriteFile { content, presence, content_format: Some("verbatim".into()) })
    };
    let change = |operation, text: Option<&str>| SearchChange {
        operation,
        new_text: text.map(Into::into),
        to_clipboard: text.map(|_| String::new()),
        from_clipboard: text.map(Into::into),
        reindent: text.map(|text| Reindent { strip: text.into(), add: String::new() }),
    };
    let operations = [
        SearchOperation::Replace { old_text: "o".into() },
        SearchOperation::AppendEof,
        SearchOperation::PrependBof,
        SearchOperation::Overwrite,
    ];
    let changes = operations.into_iter().zip([None, Some(""), Some("t")].into_iter().cycle());
    let commands = vec![
        EditorCommand::StrReplace { old_text: "o".into(), new_text: String::new() },
        EditorCommand::Insert { after_line: -1, text: "t".into() },
    ];
    let scopes = [Scope::First, Scope::All, Scope::Block { start_line: None }, Scope::Block { start_line: Some(0) }];
    let steps = scopes.map(|scope| Replacement { find: "f".into(), replace: String::new(), scope });
    vec![
        write(Content::Text("t".into()), Presence::Absent),
        write(blob, Presence::Present),
        write(Content::Text(String::new()), Presence::Either),
        FileEdit::DeleteFile,
        FileEdit::SearchPatch(SearchPatch { changes: changes.map(|(at, text)| change(at, text)).collect() }),
        FileEdit::EditorCommands(EditorCommands { commands }),
        FileEdit::Replacements(Replacements { steps: steps.into() }),
    ]
    .into_iter()
    .chain(diffs())
    .chain(anchored())
    .collect()
}

/// Edits that show the lines around what they change.
fn diffs() -> Vec<FileEdit> {
    let kinds = [LineKind::Context, LineKind::Removed, LineKind::Added];
    let hunk = Hunk {
        old_start: 1,
        old_count: -2,
        new_start: i64::MAX,
        new_count: 0,
        is_unnumbered: false,
        lines: kinds.map(|kind| HunkLine { kind, bytes: b"\xff\r\n".to_vec() }).into(),
        surplus: kinds.map(|kind| HunkLine { kind, bytes: b"s".to_vec() }).into(),
    };
    let numbers = Hunk { old_start: 0, old_count: 0, new_start: 0, new_count: 0, ..hunk.clone() };
    let unnumbered = Hunk { is_unnumbered: true, surplus: Vec::new(), ..numbers };
    let git = |kind, executable, base_id: Option<&str>| {
        let hunks = vec![hunk.clone(), Hunk { lines: Vec::new(), ..hunk.clone() }, unnumbered.clone()];
        let base_id: Option<String> = base_id.map(Into::into);
        let result_id = base_id.clone().map(|id| id + "5");
        FileEdit::GitPatch(GitPatch { kind, executable, base_id, result_id, is_unprefixed: true, hunks })
    };
    let lines = kinds.map(|kind| ChunkLine { kind, text: "l".into() }).to_vec();
    let chunk = |anchors: &[&str], is_at_end| Chunk {
        anchors: anchors.iter().map(|anchor| (*anchor).into()).collect(),
        lines: lines.clone(),
        is_at_end,
    };
    let context = |move_to: Option<&str>| {
        let chunks = vec![chunk(&[], true), chunk(&["a", ""], false)];
        FileEdit::ContextPatch(ContextPatch { move_to: move_to.map(Into::into), chunks })
    };
    vec![
        git(GitKind::Modify, None, None),
        git(GitKind::Create, Some(true), Some("1234")),
        git(GitKind::Delete, Some(false), Some("")),
        git(GitKind::Rename { to: "to".into() }, None, None),
        git(GitKind::Copy { from: "from".into() }, None, None),
        context(None),
        context(Some("to")),
        FileEdit::GitSeries(
            [git(GitKind::Create, None, None), git(GitKind::Modify, None, None)]
                .into_iter()
                .filter_map(|edit| if let FileEdit::GitPatch(part) = edit { Some(part) } else { None })
                .collect(),
        ),
    ]
}

/// An anchor edit at each kind of place.
fn anchored() -> impl Iterator<Item = FileEdit> {
    let anchor = |matching, occurrence| Anchor { text: "t".into(), matching, occurrence };
    let places = [
        AnchorPlace::Range { start_line: -1, end_line: None },
        AnchorPlace::Range { start_line: 2, end_line: Some(0) },
        AnchorPlace::Append,
        AnchorPlace::After(anchor(AnchorMatch::Contains, None)),
        AnchorPlace::Before(anchor(AnchorMatch::Equals, Some(Occurrence::Last))),
        AnchorPlace::Between {
            start: anchor(AnchorMatch::Regex, Some(Occurrence::Number(0))),
            end: anchor(AnchorMatch::Regex, None),
            takes_anchors: true,
        },
        AnchorPlace::Whole { content_format: None },
        AnchorPlace::Whole { content_format: Some("diff".into()) },
    ];
    places.into_iter().map(|place| FileEdit::AnchorEdit(AnchorEdit { place, content: "c".into() }))
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
        warnings: vec![Warning { code: "W".into(), message: "m".into(), line: Some(7) }],
        changes: vec![ChangeReport { tier: Tier::Exact, candidates: 1, start_line: 4, end_line: 3 }],
        withheld: None,
    };
    Report {
        outcome: Outcome::Applied,
        files: vec![file],
        failures: Vec::new(),
        warnings: vec![Warning { code: "W".into(), message: "m".into(), line: None }],
        diff: "d".into(),
        diff_omitted: false,
    }
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
        warnings: Vec::new(),
        diff: String::new(),
        diff_omitted: false,
    }
}

pub(crate) fn record() -> BatchRecord {
    let (batch, mut numbers) = (batch(), 1..);
    let ids = FileIds::mint(&batch, || Uuid::from_u128(numbers.next().unwrap()));
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
        source: Source::Submitted,
        reverted_by: None,
        is_restricted: false,
        removed_content: None,
        sent: Sent::default(),
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
fn every_kind_of_edit_comes_back_as_it_went_with_an_id_for_each_change() {
    let patch = |(index, edit)| FilePatch { target: Target::Path(format!("f{index}")), key: None, label: None, edit };
    let mut files: Vec<_> = every_edit().into_iter().enumerate().map(patch).collect();
    for file in files.iter_mut().filter(|file| matches!(file.edit, FileEdit::GitPatch(_))) {
        let written = vec!["a/f".into(), "b/f".into()];
        file.target = Target::Readings(PathReadings { stripped: vec!["f".into()], written });
    }
    let batch = Batch { files, ..Batch::default() };
    let mut next = 0_u128;
    let ids = FileIds::mint(&batch, || {
        next += 1;
        Uuid::from_u128(next)
    });
    let counts: Vec<_> = ids.iter().map(|ids| ids.changes.len()).collect();
    assert_eq!(counts, [0, 0, 0, 0, 4, 2, 4, 3, 3, 3, 3, 3, 2, 2, 6, 1, 1, 1, 1, 1, 1, 1, 1]);
    let record = BatchRecord { batch, ids, report: None, ..record() };
    assert_eq!(BatchRecord::try_from(v1::Batch::from(record.clone())), Ok(record));
}

/// Quotes are the last entries of an edit, without ids; an agent that does not know them finds no action there.
#[test]
fn quotes_come_back_as_they_went_behind_the_file_patches() {
    let name = |path: &str, is_path| QuoteName { path: path.into(), is_path };
    let quote = |is_announced| Quote {
        first_line: 3,
        last_line: 5,
        names: vec![name("src/a.rs", true), name("Usage", false)],
        is_announced,
        text: "fn a() {}\n".into(),
    };
    let quoting = Batch { quotes: vec![quote(false), quote(true)], ..batch() };
    let edit = v1::Edit::from(quoting.clone());
    assert_eq!(edit.files.len(), quoting.files.len() + 2);
    assert_eq!(Batch::try_from(edit.clone()), Ok(quoting.clone()));
    let mut next = 0_u128;
    let ids = FileIds::mint(&quoting, || {
        next += 1;
        Uuid::from_u128(next)
    });
    assert_eq!(ids.len(), quoting.files.len());
    let record = BatchRecord { batch: quoting, ids, report: None, ..record() };
    let listed = View::Basic.message(record.clone());
    assert_eq!(listed.edit.unwrap().files.len(), record.batch.files.len());
    assert_eq!(BatchRecord::try_from(v1::Batch::from(record.clone())), Ok(record));

    let last = edit.files.len() - 1;
    let mut swapped = edit.clone();
    swapped.files.swap(0, last);
    let failure = Batch::try_from(swapped).unwrap_err().remove(0);
    assert_eq!(failure.field.as_deref(), Some("files[0].quote"));
    let mut long = edit;
    if let Some(v1::file_patch::Action::Quote(quote)) = &mut long.files[last].action {
        quote.text = "x".repeat((1 << 20) + 1);
    }
    let failure = Batch::try_from(long).unwrap_err().remove(0);
    assert_eq!((failure.reason, failure.detail), (Reason::TooLarge, Some(Detail::Text)));
}

#[track_caller]
fn refused(action: Action, expected: &[(&str, Detail)]) {
    let target = Some(v1::file_patch::Target::Path("a".into()));
    let files = vec![v1::FilePatch { target, action: Some(action), ..v1::FilePatch::default() }];
    let failures = Batch::try_from(v1::Edit { files, ..v1::Edit::default() }).unwrap_err();
    let found: Vec<_> =
        failures.iter().map(|failure| (failure.field.as_deref().unwrap(), failure.detail.unwrap())).collect();
    assert_eq!(found, expected);
    assert!(failures.iter().all(|failure| failure.file_index == Some(0)));
}

#[test]
fn what_an_edit_lacks_or_has_too_much_is_named() {
    let write = |content, presence| Action::WriteFile(v1::WriteFile { content, presence, content_format: None });
    let text = |length| Some(v1::write_file::Content::Text("x".repeat(length)));
    refused(write(None, 1), &[("files[0].writeFile", Detail::Missing)]);
    refused(write(text(1), 0), &[("files[0].writeFile.presence", Detail::UnknownEnum)]);
    refused(write(text(1), 9), &[("files[0].writeFile.presence", Detail::UnknownEnum)]);
    refused(write(text((1 << 20) + 1), 1), &[("files[0].writeFile.text", Detail::File)]);
    let blob = Some(v1::write_file::Content::Blob(v1::BlobRef { sha256: "x".into(), size_bytes: 1 }));
    refused(write(blob, 1), &[("files[0].writeFile.blob.sha256", Detail::ShaFormat)]);
    let changes = vec![v1::SearchChange::default(); 2];
    let both = [("files[0].changes[0].operation", Detail::Missing), ("files[0].changes[1].operation", Detail::Missing)];
    refused(Action::SearchPatch(v1::SearchPatch { changes }), &both);
    let commands = vec![v1::EditorCommand::default()];
    let expected = [("files[0].changes[0].command", Detail::Missing)];
    refused(Action::EditorCommands(v1::EditorCommands { commands }), &expected);
    let step = |scope, start_line| v1::Replacement { scope, start_line, ..v1::Replacement::default() };
    let steps = vec![step(0, None), step(1, Some(1)), step(2, Some(1)), step(3, Some(1)), step(7, None)];
    let expected = [
        ("files[0].changes[0].scope", Detail::UnknownEnum),
        ("files[0].changes[1].startLine", Detail::UnexpectedField),
        ("files[0].changes[2].startLine", Detail::UnexpectedField),
        ("files[0].changes[4].scope", Detail::UnknownEnum),
    ];
    refused(Action::Replacements(v1::Replacements { steps }), &expected);
}

#[test]
fn what_a_diff_lacks_or_has_too_much_is_named() {
    let git = |kind, rename_to: &str, copy_from: &str| {
        let names = (rename_to.into(), copy_from.into());
        Action::GitPatch(v1::GitPatch { kind, rename_to: names.0, copy_from: names.1, ..v1::GitPatch::default() })
    };
    refused(git(0, "", ""), &[("files[0].gitPatch.kind", Detail::UnknownEnum)]);
    refused(git(4, "", ""), &[("files[0].gitPatch.renameTo", Detail::Missing)]);
    refused(git(5, "", ""), &[("files[0].gitPatch.copyFrom", Detail::Missing)]);
    refused(git(1, "b", ""), &[("files[0].gitPatch.renameTo", Detail::UnexpectedField)]);
    refused(git(4, "b", "c"), &[("files[0].gitPatch.copyFrom", Detail::UnexpectedField)]);
    let lines = vec![v1::HunkLine { kind: 1, ..v1::HunkLine::default() }, v1::HunkLine::default()];
    let hunks = vec![v1::Hunk { lines, ..v1::Hunk::default() }];
    let patch = v1::GitPatch { kind: 1, hunks, ..v1::GitPatch::default() };
    refused(Action::GitPatch(patch), &[("files[0].changes[0].lines[1].kind", Detail::UnknownEnum)]);
    let lines = vec![v1::HunkLine::default()];
    let part = |kind| v1::GitPatch {
        kind,
        hunks: vec![v1::Hunk { lines: lines.clone(), ..v1::Hunk::default() }],
        ..v1::GitPatch::default()
    };
    let expected = [
        ("files[0].changes[0].lines[0].kind", Detail::UnknownEnum),
        ("files[0].gitSeries.parts[0].kind", Detail::UnknownEnum),
        ("files[0].changes[1].lines[0].kind", Detail::UnknownEnum),
        ("files[0].changes[2].lines[0].kind", Detail::UnknownEnum),
        ("files[0].gitSeries.parts[2].renameTo", Detail::Missing),
    ];
    refused(Action::GitSeries(v1::GitSeries { parts: [0, 1, 4].map(part).into() }), &expected);
    let line = |kind| v1::HunkLine { kind, ..v1::HunkLine::default() };
    let of = |hunk| Action::GitPatch(v1::GitPatch { kind: 1, hunks: vec![hunk], ..v1::GitPatch::default() });
    let hunk = v1::Hunk { lines: vec![line(1), line(6), line(3)], ..v1::Hunk::default() };
    refused(of(hunk), &[("files[0].changes[0].lines[2]", Detail::UnexpectedField)]);
    let hunk = v1::Hunk { lines: vec![line(7)], ..v1::Hunk::default() };
    refused(of(hunk), &[("files[0].changes[0].lines[0].kind", Detail::UnknownEnum)]);
    for hunk in [
        v1::Hunk { lines: vec![line(1), line(4)], ..v1::Hunk::default() },
        v1::Hunk { old_start: 1, lines: vec![line(1)], ..v1::Hunk::default() },
    ] {
        let hunk = v1::Hunk { is_unnumbered: true, ..hunk };
        refused(of(hunk), &[("files[0].changes[0].isUnnumbered", Detail::UnexpectedField)]);
    }
    let chunks =
        vec![v1::Chunk { lines: vec![v1::ChunkLine { kind: 4, text: String::new() }], ..v1::Chunk::default() }];
    let patch = v1::ContextPatch { move_to: None, chunks };
    refused(Action::ContextPatch(patch), &[("files[0].changes[0].lines[0].kind", Detail::UnknownEnum)]);
}

#[test]
fn one_change_is_kept_of_any_edit_that_has_it() {
    // An anchor edit is one change, and cannot be without it.
    for edit in every_edit().into_iter().filter(|edit| !matches!(edit, FileEdit::AnchorEdit(_))) {
        for index in 0..=edit.change_count() {
            let mut one = edit.clone();
            one.keep_change(index);
            assert_eq!(one.change_count(), usize::from(index < edit.change_count()));
        }
    }
    let FileEdit::Replacements(all) = &every_edit()[6] else { panic!("the order of the edits changed") };
    let mut second = every_edit()[6].clone();
    second.keep_change(1);
    assert_eq!(second, FileEdit::Replacements(Replacements { steps: vec![all.steps[1].clone()] }));
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
    let listed = View::Basic.message(record());
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
    edit.files[1].action =
        Some(v1::file_patch::Action::CreateFile(v1::CreateFile { content, overwrite: false, content_format: None }));
    assert_eq!(Batch::try_from(edit).unwrap_err()[0].reason, Reason::TooLarge);
}

#[test]
fn a_failure_comes_back_with_the_corrected_document() {
    let next_action = NextAction { dialect: "line-patch".into(), document: "{}".into() };
    let failure = Failure { next_action: Some(next_action), ..Failure::new(Reason::ShaMismatch, "m").file(1, "a") };
    assert_eq!(Failure::from(v1::Failure::from(failure.clone())), failure);
}

#[test]
fn a_reason_of_a_newer_version_is_kept_in_words() {
    let failure = Failure::from(v1::Failure { reason: "NEWER".into(), message: "m".into(), ..v1::Failure::default() });
    assert_eq!((failure.reason, failure.message.as_str()), (Reason::Internal, "NEWER: m"));
}

#[test]
fn what_an_edit_requires_and_no_reader_knows_is_refused() {
    let named = |atomicity: i32, required: &[&str]| {
        let required_features = required.iter().map(|word| (*word).to_owned()).collect();
        let edit = v1::Edit { atomicity, required_features, ..v1::Edit::default() };
        let found = Batch::try_from(edit).unwrap_err().remove(0);
        (found.field.unwrap(), found.detail.unwrap())
    };
    assert_eq!(named(2, &["per_file", "x"]), ("requiredFeatures[1]".to_owned(), Detail::UnknownFeature));
    assert_eq!(named(2, &[]), ("requiredFeatures".to_owned(), Detail::Missing));
    assert_eq!(named(0, &["per_file"]), ("requiredFeatures".to_owned(), Detail::UnexpectedField));
    assert_eq!(named(9, &[]).1, Detail::UnknownEnum);
}

#[test]
fn a_batch_and_its_report_may_be_in_part() {
    let per_file = Batch { atomicity: Atomicity::PerFile, ..batch() };
    assert_eq!(Batch::try_from(v1::Edit::from(per_file.clone())).unwrap(), per_file);
    let mut report =
        Report { outcome: Outcome::Partial, files: [applied().files, applied().files].concat(), ..applied() };
    let refused = |report: &Report| Report::try_from(v1::Report::from(report.clone())).unwrap_err().remove(0);
    assert!(refused(&report).message.contains("names those that were not"));
    report.failures.push(Failure::new(Reason::ShaMismatch, "m").file(0, "a"));
    assert!(refused(&report).message.contains("names those that were not"));
    report.files[0].status = FileStatus::Failed;
    assert_eq!(Report::try_from(v1::Report::from(report.clone())).unwrap(), report);
    report.files.truncate(1);
    assert!(refused(&report).message.contains("no file was applied"));
}

#[test]
fn the_number_of_reported_violations_is_bounded() {
    let files = vec![v1::FilePatch::default(); 2000];
    assert_eq!(Batch::try_from(v1::Edit { files, ..v1::Edit::default() }).unwrap_err().len(), 1000);
}
