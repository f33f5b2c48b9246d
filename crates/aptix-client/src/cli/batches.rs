//! `aptix batches`: what a workspace was asked to change, newest first.

use std::fmt::Write as _;

use aptix_model::failure::Visible;
use aptix_model::record::BatchOutline;
use serde::Serialize;

use crate::connection::CallError;

use super::exit::Exit;
use super::output::{self, Form};
use super::server::ServerArgs;
use crate::present::untrusted::Quoted;
use crate::present::view::state_for_people;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct Answer {
    batches: Vec<Row>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    batch_id: String,
    state: &'static str,
    /// The state as people read it.
    #[serde(skip)]
    shown: &'static str,
    revision: u64,
    batch_key: Option<String>,
    label: Option<String>,
    created_unix_ms: Option<u64>,
    files: Vec<String>,
}

impl From<BatchOutline> for Row {
    fn from(batch: BatchOutline) -> Self {
        Self {
            batch_id: batch.id.to_string(),
            state: batch.state.word(),
            shown: state_for_people(batch.state),
            revision: batch.revision.0,
            batch_key: batch.key,
            label: batch.label,
            created_unix_ms: batch.created.map(|created| created.0),
            files: batch.targets.iter().map(|target| target.as_str().to_owned()).collect(),
        }
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let connection = args.server.connect().await?;
    let mut rows: Vec<Row> = Vec::new();
    let mut token = String::new();
    loop {
        let page = connection.list(token).await?;
        let page_rows = page.batches.into_iter().map(Row::from);
        if args.form.json {
            rows.extend(page_rows);
        } else {
            output::print(&page_rows.map(|row| line(&row)).collect::<String>());
        }
        match page.next {
            Some(next) => token = next,
            None if args.form.json => return Ok(output::print_object(&Answer { batches: rows })),
            None => return Ok(Exit::Done),
        }
    }
}

fn line(row: &Row) -> String {
    let mut line = format!("{}  {:<16}", row.batch_id, row.shown);
    let _ = write!(line, "  {}", Visible(row.files.first().map_or("", String::as_str)));
    if row.files.len() > 1 {
        let _ = write!(line, " and {} more", row.files.len() - 1);
    }
    if let Some(label) = &row.label {
        let _ = write!(line, "  {}", Quoted(label));
    }
    line.push('\n');
    line
}
