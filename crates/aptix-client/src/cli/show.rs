//! `aptix show`: a batch, a file patch or a change, by its id or the beginning of it; from a server, or from the history of the
//! workspace here.

use std::borrow::Cow;
use std::path::Path;

use aptix_model::batch::Batch;
use aptix_model::batch_event::EventFacts;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::id_block;
use aptix_model::path_style::PathStyle;
use aptix_model::reason::Reason;
use aptix_model::record::{BatchRecord, FileIds};
use aptix_model::report::Report;
use aptix_model::state::BatchState;
use aptix_model::tools::result::Stored;

use crate::apply::Refusal;
use crate::connection::batch_query::BatchQuery;
use crate::connection::{CallError, ChangeView, Connection, Server, ServerUrl};
use crate::policy::caller::Caller;
use crate::present::id_prefix::{IdPrefix, Named};
use crate::present::kept::find_in;
use crate::present::past::{Past, past};
use crate::present::view::{BatchView, Subject, Undoes};
use crate::undo::failure::history_failure;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::refused;
use crate::workspace::keep::refused::batch::RefusedBatch;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output::{self, Form};
use super::server;
use super::token::TokenArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Where the server listens: https://HOST:PORT, or http://HOST:PORT without TLS; when absent, the batches of the workspace here are looked at
    #[arg(long, value_name = "URL", requires = "workspace", conflicts_with = "roots")]
    server: Option<ServerUrl>,
    /// The workspace at the server
    #[arg(long, value_name = "ID", requires = "server")]
    workspace: Option<WorkspaceId>,
    #[command(flatten)]
    pub(super) token: TokenArgs,
    /// A directory that the batch changed files in; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    #[command(flatten)]
    form: Form,
    /// The id of a batch, a file patch or a change, or the beginning of it
    #[arg(value_name = "ID")]
    id: IdPrefix,
}

impl Args {
    /// The server that is to be asked, and the workspace there.
    pub(super) fn server(&self) -> Option<(Server, &WorkspaceId)> {
        Some((self.token.server(self.server.as_ref()?), self.workspace.as_ref()?))
    }

    pub(super) const fn id(&self) -> &IdPrefix {
        &self.id
    }
}

/// Shows what is kept of a batch of the workspace here.
pub(super) fn run_here(args: &Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    Ok(match find_here(args, &homes.state_home()?) {
        Ok(here) => show_here(args, &here),
        Err(refused) => output::show_refused(args.form, &refused),
    })
}

/// What is kept here under an id.
struct Here {
    kept: Kept,
    /// The name of the root, if it is the only one.
    root: Option<String>,
}

/// A batch, or a part of it.
enum Kept {
    /// That was applied, and the batch that it takes back.
    Applied(Past, Option<Undoes<'static>>),
    /// That was refused, the ids of its files, and the positions at which the part begins.
    Refused(RefusedBatch, Vec<FileIds>, (usize, usize)),
}

/// A batch whose id, or that of a part of it, begins as asked.
#[derive(Clone, Copy)]
enum Candidate<'a> {
    Applied(&'a Entry),
    Refused(&'a RefusedBatch),
}

fn find_here(args: &Args, state_home: &Path) -> Result<Here, Refused> {
    let workspace = Workspace::open_to_look(&args.roots, state_home, Box::new(SystemDisk))?;
    let entries = entries::list(&workspace).map_err(|error| history_failure(&error, Caller::Shell))?;
    let refused = refused::list(&workspace, |id| args.id.may_be_of(id)).map_err(|error| error.failure())?;
    let of_refused = refused.iter().flat_map(|batch| {
        let found = args.id.find_in(batch.id, &ids_of_refused(batch));
        found.into_iter().map(move |(id, named)| (id, (Candidate::Refused(batch), named)))
    });
    let of_applied = entries.iter().flat_map(|entry| {
        find_in(entry, &args.id).into_iter().map(move |(id, named)| (id, (Candidate::Applied(entry), named)))
    });
    let hint =
        "`aptix log --state all` lists the batches that are kept here; --server and --workspace name a server to ask";
    let (found, named) = args.id.only(of_applied.chain(of_refused).collect(), hint)?;
    let kept = match found {
        Candidate::Applied(entry) => applied(&workspace, &entries, entry, named),
        Candidate::Refused(batch) => refused_part(batch.clone(), named),
    };
    let root = match workspace.roots() {
        [root] => Some(root.name().to_owned()),
        _ => None,
    };
    Ok(Here { kept, root })
}

fn applied(workspace: &Workspace, entries: &[Entry], entry: &Entry, named: Named) -> Kept {
    let undone = |id: &str| match entries.iter().find(|entry| entry.id.to_string() == id) {
        Some(entry) => Undoes { id: entry.name().into(), label: entry.label().map(Into::into) },
        None => Undoes { id: id.to_owned().into(), label: None },
    };
    let past = past(workspace, entry).named(named);
    Kept::Applied(past, entry.undoes.as_deref().map(undone))
}

fn ids_of_refused(batch: &RefusedBatch) -> Vec<FileIds> {
    id_block::counted(batch.id, batch.files.iter().map(|file| file.changes.len()))
}

fn refused_part(batch: RefusedBatch, named: Named) -> Kept {
    let ids = ids_of_refused(&batch);
    let (file, change) = match named {
        Named::Batch => return Kept::Refused(batch, ids, (0, 0)),
        Named::File(file) => (file, None),
        Named::Change(file, change) => (file, Some(change)),
    };
    let mut ids: Vec<_> = ids.into_iter().skip(file).take(1).collect();
    if let (Some(change), Some(ids)) = (change, ids.first_mut()) {
        ids.changes = ids.changes.get(change).copied().into_iter().collect();
    }
    Kept::Refused(batch.part(file, change), ids, (file, change.unwrap_or_default()))
}

fn show_here(args: &Args, Here { kept, root }: &Here) -> Exit {
    let nobody = Batch::default();
    let view = BatchView {
        paths: PathStyle::among(args.roots.len()),
        root: root.as_deref(),
        is_record: true,
        ..BatchView::new(&nobody, Ok(None))
    };
    match kept {
        Kept::Applied(past, undoes) => {
            let stored = Stored { id: past.id, state: past.report.outcome.into(), ids: Cow::Borrowed(&past.ids) };
            let view = BatchView {
                subject: Subject::Kept(&past.summary),
                stored: Some(stored),
                undoes: undoes.clone(),
                steps: &past.summary.steps(),
                outcome: Ok(Some(&past.report)),
                begins: past.begins,
                ..view
            };
            output::show(args.form, &view)
        }
        Kept::Refused(batch, ids, begins) => {
            let (refusal, step) = (Refusal::from(batch.failures()), batch.step());
            let stored = Stored { id: batch.id, state: BatchState::Failed, ids: Cow::Borrowed(ids) };
            let view = BatchView {
                subject: Subject::Refused(batch),
                stored: Some(stored),
                outcome: Err(&refusal),
                steps: step.as_slice(),
                begins: *begins,
                ..view
            };
            output::show(args.form, &view)
        }
    }
}

/// Shows what a server keeps.
pub(super) async fn run_there(
    form: Form,
    server: Server,
    workspace: &WorkspaceId,
    id: &IdPrefix,
) -> Result<Exit, CallError> {
    let connection = Connection::open(&server, workspace).await?;
    let Some(id) = id.whole() else { return show_found(form, &connection, id).await };
    match connection.get_with_steps(id).await {
        Ok((record, steps)) => Ok(show_record(form, &record, &steps)),
        Err(error) if error.reason() == Some(Reason::NotFound) => show_part(form, &connection, &id.to_string()).await,
        Err(error) => Err(error),
    }
}

/// Looks through the batches of the workspace for an id that begins so.
async fn show_found(form: Form, connection: &Connection, prefix: &IdPrefix) -> Result<Exit, CallError> {
    let mut batches: Vec<BatchId> = Vec::new();
    let mut token = String::new();
    loop {
        let page = connection.list(&BatchQuery::default(), token).await?;
        batches.extend(page.batches.iter().map(|batch| batch.id).filter(|batch| prefix.may_be_of(*batch)));
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    let refused = CallError::refused;
    let found = batches.into_iter().map(|batch| (batch.to_string(), batch)).collect();
    let hint = "`aptix batches` lists the batches of the workspace";
    let (record, steps) = connection.get_with_steps(prefix.only(found, hint).map_err(refused)?).await?;
    let part = prefix.only(prefix.find_in(record.id, &record.ids), hint).map_err(refused)?;
    let file = |file: usize| record.ids.get(file);
    let id = match part {
        Named::Batch => None,
        Named::File(at) => file(at).map(|ids| ids.file.to_string()),
        Named::Change(at, change) => file(at).and_then(|ids| ids.changes.get(change)).map(ToString::to_string),
    };
    match id {
        None => Ok(show_record(form, &record, &steps)),
        Some(id) => show_part(form, connection, &id).await,
    }
}

fn show_record(form: Form, record: &BatchRecord, steps: &[EventFacts]) -> Exit {
    let refusal = Refusal::from(record.report.as_ref().map_or_else(Vec::new, |report| report.failures.clone()));
    let outcome = match &record.report {
        Some(report) if !report.outcome.has_applied() => Err(&refusal),
        _ => Ok(server::report_of(record)),
    };
    output::show(form, &BatchView { is_record: true, steps, ..server::view_of(record, outcome) })
}

async fn show_part(form: Form, connection: &Connection, id: &str) -> Result<Exit, CallError> {
    let part = connection.get_change(id).await?;
    let (whole, steps) = connection.get_with_steps(part.batch).await?;
    Ok(show_change(form, part, whole.batch, &steps))
}

fn show_change(form: Form, part: ChangeView, whole: Batch, steps: &[EventFacts]) -> Exit {
    let report = part.report.map(|file| Report { diff: part.diff, ..Report::applied(vec![file]) });
    let refusal = Refusal::from(part.failures);
    let batch = Batch { files: vec![part.patch], ..whole };
    let outcome = if refusal.failures.is_empty() { Ok(report.as_ref()) } else { Err(&refusal) };
    let view = BatchView {
        stored: Some(Stored { id: part.batch, state: part.state, ids: Cow::Owned(vec![part.ids]) }),
        begins: (part.file_index, part.change_index.unwrap_or_default()),
        is_record: true,
        steps,
        ..BatchView::new(&batch, outcome)
    };
    output::show(form, &view)
}
