//! `aptix show`: a batch, a file patch or a change, by id.

use aptix_model::batch::Batch;
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use aptix_model::report::Report;

use crate::connection::{CallError, ChangeView};
use crate::present::answer::{BatchView, Stored};

use super::exit::Exit;
use super::output::{self, Form};
use super::server::{self, ServerArgs};
use crate::present::description::described;

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
            let printed = server::show_ended(args.form, &record, &[]);
            return Ok(if printed == Exit::Environment { printed } else { Exit::Done });
        }
        Err(error) if error.reason() == Some(Reason::NotFound) => {}
        Err(error) => return Err(error),
    }
    Ok(show_change(args.form, connection.get_change(&args.id.to_string()).await?))
}

fn show_change(form: Form, view: ChangeView) -> Exit {
    let diff = String::from_utf8_lossy(&described(&view.patch)).into_owned();
    let report = view.report.map(|mut file| {
        if let Some(index) = view.change_index {
            file.changes = file.changes.into_iter().skip(index).take(1).collect();
        }
        Report { diff, ..Report::applied(vec![file]) }
    });
    let batch = Batch { files: vec![view.patch], ..Batch::default() };
    let stored = Some(Stored { id: view.batch, state: view.state, ids: std::slice::from_ref(&view.ids) });
    output::show(form, &BatchView { stored, ..BatchView::new(&batch, Ok(report.as_ref())) })
}
