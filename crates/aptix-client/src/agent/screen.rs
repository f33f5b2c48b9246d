//! What an agent shows on its terminal beside its questions: a line for each batch that ends. What it logs is shown there with `-v`.

use std::io::IsTerminal as _;

use aptix_model::failure::Visible;
use aptix_model::id::BatchId;
use aptix_model::report::{FileReport, Report};
use aptix_model::state::BatchState;

use super::service::Service;
use crate::person::prompt::aside;
use crate::present::untrusted::Name;

/// It is connected.
pub(super) fn serving(service: &Service) {
    show(format!("serving workspace {} of {}; Ctrl-C ends it", service.workspace, service.server.url));
}

/// The server knows what became of a batch.
pub(super) fn ended(batch: BatchId, report: &Report) {
    let what = match report.failures.as_slice() {
        [] => files(&report.files),
        [failure, ..] => failure.to_string(),
    };
    show(format!("batch {batch} {}: {}", BatchState::from(report.outcome).word(), Visible(&what)));
}

fn files(files: &[FileReport]) -> String {
    match files {
        [] => "nothing".to_owned(),
        [file] => named(file),
        [file, more @ ..] => format!("{} and {} more", named(file), more.len()),
    }
}

fn named(file: &FileReport) -> String {
    format!("{} {}", file.status.word(), Name(&file.path))
}

fn show(line: String) {
    if std::io::stderr().is_terminal() {
        aside(&(line + "\n"));
    }
}
