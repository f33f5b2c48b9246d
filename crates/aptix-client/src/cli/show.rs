//! `aptix show`: a batch, a file patch or a change, by id.

use std::borrow::Cow;

use aptix_model::batch::Batch;
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use aptix_model::report::{Outcome, Report};

use crate::apply::Refusal;
use crate::connection::{CallError, ChangeView};
use crate::present::view::{BatchView, Stored};

use super::exit::Exit;
use super::output::{self, Form};
use super::server::{self, ServerArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    form: Form,
    /// The id of a batch, a file patch or a change
    #[arg(value_name = "ID")]
    id: BatchId,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let connection = args.server.connect().await?;
    match connection.get(args.id).await {
        Ok(record) => {
            let refusal = Refusal::from(record.report.as_ref().map_or_else(Vec::new, |report| report.failures.clone()));
            let outcome = match &record.report {
                Some(report) if report.outcome != Outcome::Applied => Err(&refusal),
                report => Ok(report.as_ref()),
            };
            return Ok(output::show(args.form, &BatchView { is_record: true, ..server::view_of(&record, outcome) }));
        }
        Err(error) if error.reason() == Some(Reason::NotFound) => {}
        Err(error) => return Err(error),
    }
    Ok(show_part(args.form, connection.get_change(&args.id.to_string()).await?))
}

fn show_part(form: Form, part: ChangeView) -> Exit {
    let report = part.report.map(|file| Report { diff: part.diff, ..Report::applied(vec![file]) });
    let refusal = Refusal::from(part.failures);
    let batch = Batch { files: vec![part.patch], ..Batch::default() };
    let outcome = if refusal.failures.is_empty() { Ok(report.as_ref()) } else { Err(&refusal) };
    let view = BatchView {
        stored: Some(Stored { id: part.batch, state: part.state, ids: Cow::Owned(vec![part.ids]) }),
        begins: (part.file_index, part.change_index.unwrap_or_default()),
        is_record: true,
        ..BatchView::new(&batch, outcome)
    };
    output::show(form, &view)
}
