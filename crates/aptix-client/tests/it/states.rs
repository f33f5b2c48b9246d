//! A record is printed as what it is, in each state that a batch can be in and for each dialect: what is printed is read back and
//! compared with the batch.

use std::borrow::Cow;

use aptix_client::apply::Refusal;
use aptix_client::present::text::batch_text;
use aptix_client::present::view::BatchView;
use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, FileEdit};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::id_block;
use aptix_model::reason::Reason;
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Report, Tier, Written};
use aptix_model::state::BatchState;
use aptix_model::tools::result::Stored;
use aptix_model::tools::result::batch_object::object;
use serde_json::{Value, json};

use crate::shown::{documents, parsed};

const ID: &str = "018f6d2e-7c1a-7b3e-9d55-012345680000";

/// What an agent could have reported of a batch.
fn report(batch: &Batch) -> Report {
    let change = |number: usize| {
        let number = u32::try_from(number).unwrap();
        ChangeReport { tier: Tier::Eol, candidates: number + 1, start_line: number + 2, end_line: number + 3 }
    };
    let files = batch.files.iter().enumerate().map(|(index, patch)| {
        let path = format!("dir {index}/{}", patch.target.as_str());
        FileReport {
            doc_path: format!("ws/{}", path.to_lowercase()),
            status: FileStatus::Modified,
            renamed_to: patch.edit.moved_to().map(str::to_owned),
            sha256_before: Some(sha256(b"old")),
            written: Some(Written { sha256: sha256(path.as_bytes()), size_bytes: path.len() as u64 }),
            normalized: Vec::new(),
            warnings: Vec::new(),
            changes: (0..patch.edit.change_count()).map(change).collect(),
            withheld: None,
            path,
        }
    });
    Report { diff: "diff --git a/x b/x\n".to_owned(), ..Report::applied(files.collect()) }
}

/// A failure of the last change of the last file.
fn refusal(batch: &Batch) -> Refusal {
    let last = batch.files.len() - 1;
    let failure = Failure::new(Reason::TextNotFound, "expected \u{202e} x").hint("do y").file(last, "p");
    let change = batch.files[last].edit.change_count().checked_sub(1);
    Failure { change_index: change, ..failure }.into()
}

/// What is printed of a file is what its author wrote about it, and its ids.
fn check_file(batch: &Batch, index: usize, file: &Value) {
    let (patch, ids) = (&batch.files[index], &id_block::of(ID.parse().unwrap(), batch)[index]);
    assert_eq!(file["filePatchId"], json!(ids.file.to_string()));
    assert_eq!((&file["fileKey"], &file["fileLabel"]), (&json!(patch.key), &json!(patch.label)));
    let changes = file["changes"].as_array().unwrap();
    assert_eq!(changes.len(), patch.edit.change_count());
    for (at, change) in changes.iter().enumerate() {
        assert_eq!(change["changeId"], json!(ids.changes[at].to_string()));
        if let FileEdit::LinePatch(lines) = &patch.edit {
            let words = &lines.changes[at];
            assert_eq!((&change["changeKey"], &change["description"]), (&json!(words.key), &json!(words.description)));
        }
    }
}

fn check(batch: &Batch, state: BatchState) {
    let (report, refusal) = (report(batch), refusal(batch));
    let outcome = match state {
        BatchState::Applied => Ok(Some(&report)),
        BatchState::Failed => Err(&refusal),
        _ => Ok(None),
    };
    let id: BatchId = ID.parse().unwrap();
    let stored = Some(Stored { id, state, ids: Cow::Owned(id_block::of(id, batch)) });
    let view = BatchView { stored, is_record: true, ..BatchView::new(batch, outcome) };
    let printed = parsed(serde_json::to_value(object(&view.result(), |_| None)).unwrap());
    let is_success = state.is_open() || state == BatchState::Applied;
    assert_eq!((&printed["state"], &printed["success"]), (&json!(state.word()), &json!(is_success)));
    assert_eq!((&printed["batchId"], &printed["batchKey"]), (&json!(ID), &json!(batch.key)));
    assert_eq!((&printed["batchLabel"], &printed["dryRun"]), (&json!(batch.label), &json!(false)));
    let files = printed["files"].as_array().unwrap();
    assert_eq!(files.len(), batch.files.len());
    for (index, file) in files.iter().enumerate() {
        check_file(batch, index, file);
        let is_last = index + 1 == files.len();
        let status = match state {
            BatchState::Applied => report.files[index].status.word(),
            BatchState::Failed if is_last => "failed",
            _ => "not_applied",
        };
        assert_eq!(file["status"], status);
        let reported = (state == BatchState::Applied).then(|| &report.files[index]);
        assert_eq!(file["sha256"], json!(reported.map(|file| file.written.unwrap().sha256.to_string())));
        for (at, change) in file["changes"].as_array().unwrap().iter().enumerate() {
            let found = reported.map(|file| file.changes[at]);
            assert_eq!(change["tier"], json!(found.map(|found| found.tier.word())));
            assert_eq!(change["endLine"], json!(found.map(|found| found.end_line)));
            let fails = state == BatchState::Failed && is_last && at + 1 == file["changes"].as_array().unwrap().len();
            assert_eq!(change["failure"], json!(fails.then_some(0)));
        }
    }
    let errors = printed["errors"].as_array().unwrap();
    assert_eq!(errors.len(), usize::from(state == BatchState::Failed));
    if let Some(error) = errors.first() {
        assert_eq!((&error["code"], &error["message"]), (&json!("TEXT_NOT_FOUND"), &json!("expected \u{202e} x")));
        assert_eq!((&error["hint"], &error["fileIndex"]), (&json!("do y"), &json!(files.len() - 1)));
        assert_eq!(error["filePatchId"], files.last().unwrap()["filePatchId"]);
    }
    assert_eq!(printed["diff"].as_str().unwrap().is_empty(), state != BatchState::Applied);
    assert_eq!(printed["asked"].as_str().unwrap().is_empty(), state == BatchState::Applied);
    check_text(&view, &printed);
}

/// The text for people names the same batch, state, files and failure.
fn check_text(view: &BatchView<'_>, printed: &Value) {
    let text = anstream::adapter::strip_str(&batch_text(view)).to_string();
    // People read QUEUED of what nobody has approved yet.
    let state = match printed["state"].as_str().unwrap() {
        "APPROVED" => "QUEUED",
        state => state,
    };
    let head = format!("batch {ID} {state}");
    assert!(text.lines().next().unwrap().starts_with(&head), "{text}");
    assert_eq!(text.matches("error: TEXT_NOT_FOUND").count(), printed["errors"].as_array().unwrap().len(), "{text}");
    assert!(!text.contains('\u{202e}'), "{text}");
    let is_open = printed["success"] == true && printed["state"] != "APPLIED";
    let files = printed["files"].as_array().unwrap();
    let words: Vec<_> = files.iter().map(|file| file["status"].as_str().unwrap().replace('_', " ")).collect();
    let lines = || text.lines().rev().take(files.len()).collect::<Vec<_>>().into_iter().rev();
    let is_listed = lines().zip(&words).all(|(line, word)| line.starts_with(&format!("{word} ")));
    assert!(is_open || is_listed, "{words:?}: {text}");
}

#[test]
fn a_record_is_printed_as_it_is_for_each_dialect_in_each_state() {
    let documents = documents();
    assert_eq!(documents.len(), Dialect::ALL.len(), "there is a document of each dialect");
    for (dialect, good, _) in documents {
        let batch = documents::parse(good.as_bytes(), Some(dialect.parse().unwrap())).unwrap().batch;
        BatchState::ALL.into_iter().for_each(|state| check(&batch, state));
    }
}
