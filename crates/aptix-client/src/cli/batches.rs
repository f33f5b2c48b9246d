//! `aptix batches`: what a workspace was asked to change, newest first.

use std::fmt::Write as _;

use aptix_model::actor::ActorKind;
use aptix_model::failure::Visible;
use aptix_model::record::{BatchOutline, UnixMillis};
use aptix_model::state::BatchState;
use serde::Serialize;

use crate::connection::CallError;
use crate::connection::batch_query::{BatchQuery, parse_time};

use super::exit::Exit;
use super::output::{self, Form};
use super::server::ServerArgs;
use crate::present::text::{and_more, by};
use crate::present::untrusted::Quoted;
use crate::present::view::state_for_people;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// List batches of this session; may be repeated, as the others
    #[arg(long = "session", value_name = "ID")]
    sessions: Vec<String>,
    /// List batches in this state, such as applied or pending-approval
    #[arg(long = "state", value_name = "STATE", value_parser = state)]
    states: Vec<BatchState>,
    /// List batches that name this file, or with a / at the end a file below this directory; the root's name comes first
    #[arg(long = "path", value_name = "DOC_PATH")]
    paths: Vec<String>,
    /// List batches by these: author, agent, person or any, and with :NAME only who has this name
    #[arg(long = "author", value_name = "KIND[:NAME]", value_parser = author)]
    authors: Vec<Author>,
    /// List batches that were stored at this time or later: 2026-03-01 or 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<UnixMillis>,
    /// List batches that were stored before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<UnixMillis>,
    #[command(flatten)]
    form: Form,
}

/// What an author is, and their name.
type Author = (Option<ActorKind>, Option<String>);

fn author(text: &str) -> Result<Author, String> {
    let (kind, name) = text.split_once(':').map_or((text, None), |(kind, name)| (kind, Some(name.to_owned())));
    match (kind, ActorKind::from_word(&kind.to_ascii_uppercase())) {
        ("any", _) => Ok((None, name)),
        (_, Some(kind)) => Ok((Some(kind), name)),
        (_, None) => Err("expected author, agent, person or any, with :NAME for one of this name".to_owned()),
    }
}

fn state(text: &str) -> Result<BatchState, String> {
    let word = text.to_ascii_uppercase().replace('-', "_");
    BatchState::from_word(&word).ok_or_else(|| {
        let words: Vec<_> = BatchState::ALL.iter().map(|state| state.word()).collect();
        format!("expected one of {}", words.join(", ").to_ascii_lowercase().replace('_', "-"))
    })
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
    /// Who made it, and their name, as far as that is known.
    author: Option<&'static str>,
    author_name: Option<String>,
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
            author: batch.author.as_ref().map(|author| author.kind.word()),
            author_name: batch.author.and_then(|author| author.name),
            files: batch.targets.iter().map(|target| target.as_str().to_owned()).collect(),
        }
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let connection = args.server.connect().await?;
    let query = BatchQuery {
        states: args.states,
        sessions: args.sessions,
        doc_paths: args.paths,
        authors: args.authors,
        created_from: args.since,
        created_before: args.until,
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut token = String::new();
    loop {
        let page = connection.list(&query, token).await?;
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
    line.push_str(&and_more(row.files.len().saturating_sub(1)));
    if let Some(label) = &row.label {
        let _ = write!(line, "  {}", Quoted(label));
    }
    if let (Some(author), Some(name)) = (row.author, &row.author_name) {
        let _ = write!(line, "  {}", by(author, Some(name), None));
    }
    line.push('\n');
    line
}
