//! `aptix log`: the batches that were applied in a workspace and can be undone, newest first.

use std::fmt::Write as _;
use std::path::Path;

use aptix_model::failure::Visible;
use serde::Serialize;

use crate::apply::Refusal;
use crate::undo;
use crate::workspace::Workspace;
use crate::workspace::disk::SystemDisk;
use crate::workspace::history::{self, Entry, PastFile};
use crate::workspace::root::RootSpec;

use super::apply::End;
use super::output::{self, Form};
use super::{Exit, Places};

/// Arguments of `aptix log`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory whose batches are listed; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    roots: Vec<RootSpec>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Answer {
    batches: Vec<Row>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    batch_id: String,
    applied_unix_ms: u64,
    undoes: Option<String>,
    files: Vec<FileRow>,
    /// Copies of what somebody wrote into old files after they were replaced.
    kept: Vec<String>,
    /// Paths of roots that have files of the batch and are not open: to undo it they have to be.
    other_roots: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileRow {
    path: String,
    status: &'static str,
    renamed_to: Option<String>,
}

impl Row {
    fn of(entry: Entry, workspace: &Workspace) -> Self {
        let other_roots = entry.other_roots(workspace);
        Self {
            other_roots: other_roots.iter().map(|root| root.display().to_string()).collect(),
            batch_id: entry.name(),
            applied_unix_ms: entry.id.time().0,
            undoes: entry.undoes,
            kept: entry.kept,
            files: entry.files.into_iter().map(FileRow::from).collect(),
        }
    }
}

impl From<PastFile> for FileRow {
    fn from(file: PastFile) -> Self {
        Self { status: file.status().word(), path: file.path, renamed_to: file.moved_to }
    }
}

pub(super) fn run(args: &Args, places: &Places) -> anyhow::Result<Exit> {
    let form = Form::of(args.json);
    Ok(match rows(args, &places.state_home()?) {
        Ok(rows) => match form {
            Form::Json => output::print_object(&Answer { batches: rows }),
            Form::Text => output::print(&rows.iter().map(line).collect::<String>()),
        },
        Err(end) => {
            output::show_refusal(form, &end.refusal);
            end.exit
        }
    })
}

fn rows(args: &Args, state_home: &Path) -> Result<Vec<Row>, End> {
    let workspace = Workspace::open_to_look(&args.roots, state_home, Box::new(SystemDisk))?;
    let failed = |error| Refusal::from(undo::told(&error));
    let entries = history::list(&workspace).map_err(failed)?;
    Ok(entries.into_iter().map(|entry| Row::of(entry, &workspace)).collect())
}

fn line(row: &Row) -> String {
    let mut line = row.batch_id.clone();
    let first = row.files.first().map_or("", |file| file.path.as_str());
    let word = row.files.first().map_or("", |file| file.status);
    let _ = write!(line, "  {word} {}", Visible(first));
    if row.files.len() > 1 {
        let _ = write!(line, " and {} more", row.files.len() - 1);
    }
    if let Some(undone) = &row.undoes {
        let _ = write!(line, "  (undid {})", Visible(undone));
    }
    for kept in &row.kept {
        let _ = write!(line, "  (written afterwards, kept as {})", Visible(kept));
    }
    for root in &row.other_roots {
        let _ = write!(line, "  (with files in {})", Visible(root));
    }
    line.push('\n');
    line
}
