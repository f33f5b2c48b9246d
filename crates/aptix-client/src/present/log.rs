//! The batches that were applied in a workspace, newest first, and which of them are undone: as a JSON object and as text.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use aptix_model::batch_event::EventFacts;
use aptix_model::failure::{Failure, Visible};
use aptix_model::path::{PathError, WorkspacePath};
use aptix_model::path_style::PathStyle;
use aptix_model::reason::Reason;
use aptix_model::report::FileReport;
use aptix_model::state::BatchState;
use aptix_model::tools::result::batch_object::step_object;
use serde::{Serialize, Serializer};

use super::diff::show_diff;
use super::past::past;
use super::text::{add_step, and_more, by};
use super::untrusted::Quoted;
use super::utc::utc;
use crate::policy::caller::Caller;
use crate::undo::failure::history_failure;
use crate::workspace::commit::displaced_writes::list::DisplacedWrite;
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::history::find::Effects;
use crate::workspace::keep::history::newest;
use crate::workspace::keep::history::past_file::PastFile;
use crate::workspace::keep::history::summary::Summary;
use crate::workspace::keep::history::trail::{self, Touched, Trail};
use crate::workspace::keep::refused;
use crate::workspace::keep::refused::batch::RefusedBatch;
use crate::workspace::read::resolve;
use crate::workspace::roots::workspace::Workspace;

/// The batches of a workspace, newest first, and the displaced writes; serialized, the object that `aptix log --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    pub(crate) batches: Vec<Row>,
    displaced_writes: Vec<WriteRow>,
}

/// What another process wrote to a file after a batch had replaced it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteRow {
    path: String,
    /// The batch that replaced the file, if it was not rolled back and is known.
    batch_id: Option<String>,
    kept_as: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) batch_id: String,
    /// APPLIED, or FAILED where it was refused.
    pub(crate) state: &'static str,
    batch_key: Option<String>,
    pub(crate) batch_label: Option<String>,
    pub(crate) applied_unix_ms: u64,
    /// What was done to it, oldest first, by whom and why, as far as that is known.
    #[serde(serialize_with = "step_objects")]
    steps: Vec<EventFacts>,
    /// The batch that it took back: for a redo, an undo.
    pub(crate) undoes: Option<String>,
    /// For a redo, the batch that it brought back.
    redoes: Option<String>,
    /// The batch that took it back, unless it is in effect again.
    pub(crate) undone_by: Option<String>,
    /// Whether it can be undone: what was too much to be kept cannot.
    pub(crate) can_be_undone: bool,
    pub(crate) files: Vec<FileRow>,
    /// The kept copies of displaced writes to its files.
    kept: Vec<String>,
    /// Paths of roots that have files of the batch and are not open: to undo it they have to be.
    other_roots: Vec<String>,
    /// What it changed, where that was asked for and is kept.
    diff: Option<String>,
}

/// Serializes steps with the keys that every batch has for them.
fn step_objects<S: Serializer>(steps: &[EventFacts], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(step_object))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileRow {
    /// In its root; in a workspace of several, with the root's name in front; in a root that is not open, from `/`.
    pub(crate) path: String,
    /// `None` in a root that is not open, whose name is not known.
    pub(crate) doc_path: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) renamed_to: Option<String>,
}

/// Which batches are listed, and what of them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Query<'a> {
    /// At most so many of the newest; all, when absent.
    pub most: Option<usize>,
    /// Only those that touched this file or folder, also under a name it had before a batch renamed it: a path in the only root;
    /// in a workspace of several, a root's name, alone or before a path in it.
    pub path: Option<&'a str>,
    /// With what each changed.
    pub has_diffs: bool,
    /// Only those in these states.
    pub state: Shown,
}

/// Which batches a log shows, by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Shown {
    /// Those that were applied.
    #[default]
    Applied,
    /// Those that were refused, and changed nothing.
    Failed,
    /// Both.
    All,
}

/// Lists the batches that the history of a workspace keeps. With `most`, it takes as long as there are batches listed, however
/// many there are; with `path`, as long as there are batches that touched it, but for a line of the index for each batch.
///
/// # Errors
/// When the history or the displaced writes cannot be read, or the path can be none of a file.
pub fn log(workspace: &Workspace, query: Query<'_>) -> Result<Log, Failure> {
    let Query { most, path, has_diffs, state } = query;
    let trail = path.map(|path| trail(workspace, path)).transpose()?;
    let found = match (&trail, most) {
        _ if state == Shown::Failed => Ok(Touched::default()),
        (Some(trail), most) => trail::touched(workspace, trail, most.unwrap_or(usize::MAX)),
        (None, Some(most)) => newest::newest(workspace, most).map(Touched::all),
        (None, None) => entries::list(workspace).map(Touched::all),
    };
    let touched = found.map_err(|error| history_failure(&error, Caller::Shell))?;
    let mut writes = workspace.displaced_writes().map_err(|error| error.failure())?;
    if let Some(trail) = &trail {
        let is_listed = |id: &String| touched.entries().any(|entry| entry.id.to_string() == *id);
        let is_at =
            |write: &DisplacedWrite| workspace.root(write.root).is_some_and(|root| trail.leads_to(root, &write.path));
        writes.retain(|write| write.entry.as_ref().is_some_and(is_listed) || is_at(write));
    }
    let earlier = match query {
        // Everything that is referred to is among these.
        Query { most: None, path: None, .. } => Vec::new(),
        _ => earlier(workspace, &touched.read, &writes),
    };
    let diff = |entry: &Entry| {
        let report = has_diffs.then(|| past(workspace, entry).report);
        report.filter(|report| !report.diff_omitted).map(|report| report.diff)
    };
    let by_id = touched.read.iter().chain(&earlier).map(|entry| (entry.id.to_string(), entry)).collect();
    let known = Known { workspace, by_id, effects: Effects::of(&touched.read), writes: &writes };
    let mut batches: Vec<_> = touched.entries().map(|entry| Row { diff: diff(entry), ..known.row(entry) }).collect();
    if state != Shown::Applied {
        let refused = refused::list(workspace, |_| true).map_err(|error| error.failure())?;
        let refused = refused.iter().filter(|batch| trail.as_ref().is_none_or(|trail| is_on(workspace, trail, batch)));
        batches = merged(batches, refused.map(refused_row));
        batches.truncate(most.unwrap_or(usize::MAX));
    }
    let displaced_writes = writes.iter().map(|write| WriteRow {
        path: write.path_in(workspace),
        batch_id: write.entry.as_deref().map(|id| known.name(id)),
        kept_as: write.kept_as.display().to_string(),
    });
    Ok(Log { batches, displaced_writes: displaced_writes.collect() })
}

/// What a row says of its batch is read from.
struct Known<'a> {
    workspace: &'a Workspace,
    by_id: HashMap<String, &'a Entry>,
    effects: Effects<'a>,
    writes: &'a [DisplacedWrite],
}

impl Known<'_> {
    /// What the batch of an entry is called.
    fn name(&self, id: &str) -> String {
        self.by_id.get(id).map_or_else(|| id.to_owned(), |entry| entry.name())
    }

    /// A batch, without its diff.
    fn row(&self, entry: &Entry) -> Row {
        let id = entry.id.to_string();
        let undoes = entry.undoes.as_deref();
        let brought_back = || self.by_id.get(undoes?)?.undoes.as_deref();
        let displaced = self.writes.iter().filter(|write| write.entry.as_deref() == Some(&id));
        let displaced = displaced.map(|write| write.kept_as.display().to_string());
        let summary = entry.summary.as_ref();
        let style = PathStyle::among(self.workspace.roots().len());
        let refused = summary.into_iter().flat_map(|summary| summary.refused(style)).map(refused_file);
        Row {
            batch_id: entry.name(),
            state: match summary {
                Some(summary) if summary.is_partial => BatchState::Partial.word(),
                _ => BatchState::Applied.word(),
            },
            batch_key: summary.and_then(|summary| summary.key.clone()),
            batch_label: summary.and_then(|summary| summary.label.clone()),
            applied_unix_ms: entry.time.0,
            steps: summary.map(Summary::steps).unwrap_or_default(),
            undoes: undoes.map(|id| self.name(id)),
            redoes: entry.is_redo.then(brought_back).flatten().map(|id| self.name(id)),
            undone_by: self.effects.taken_back_by(entry).map(Entry::name),
            can_be_undone: entry.is_whole(),
            files: entry.files.iter().map(|file| file_row(self.workspace, file)).chain(refused).collect(),
            kept: entry.kept.iter().cloned().chain(displaced).collect(),
            other_roots: entry.other_roots(self.workspace).iter().map(|root| root.display().to_string()).collect(),
            diff: None,
        }
    }
}

/// Batches that were applied and batches that were refused, each newest first, in one order: that of their times, as far as the
/// order of each leaves it open.
fn merged(applied: Vec<Row>, refused: impl Iterator<Item = Row>) -> Vec<Row> {
    let (mut applied, mut refused) = (applied.into_iter().peekable(), refused.peekable());
    std::iter::from_fn(|| match (applied.peek(), refused.peek()) {
        (Some(one), Some(other)) if one.applied_unix_ms < other.applied_unix_ms => refused.next(),
        (Some(_), _) => applied.next(),
        (None, _) => refused.next(),
    })
    .collect()
}

/// Whether a refused batch names what a trail is of, by the names of today.
fn is_on(workspace: &Workspace, trail: &Trail, batch: &RefusedBatch) -> bool {
    batch.files.iter().any(|file| {
        let key = file.doc_path.as_deref().and_then(|key| key.split_once('/'));
        let Some((name, rest)) = key else { return false };
        // The path ends with the same file as the key, after the name of its root if there is one.
        let start = file.path.len().saturating_sub(rest.len());
        let path = file.path.get(start..).unwrap_or(&file.path);
        let root = workspace.roots().iter().find(|root| root.name() == name);
        root.is_some_and(|root| trail.leads_to(root, path))
    })
}

/// A file that a batch was refused for which was applied all the same.
fn refused_file(file: FileReport) -> FileRow {
    FileRow { path: file.path, doc_path: Some(file.doc_path), status: file.status.word(), renamed_to: None }
}

fn refused_row(batch: &RefusedBatch) -> Row {
    let files = batch.files.iter().enumerate().map(|(at, file)| FileRow {
        path: file.path.clone(),
        doc_path: file.doc_path.clone(),
        status: if batch.is_blamed(at) { "failed" } else { "not_applied" },
        renamed_to: file.moved_to.clone(),
    });
    Row {
        batch_id: batch.id.to_string(),
        state: BatchState::Failed.word(),
        batch_key: batch.key.clone(),
        batch_label: batch.label.clone(),
        applied_unix_ms: batch.unix_ms(),
        steps: batch.step().into_iter().collect(),
        undoes: None,
        redoes: None,
        undone_by: None,
        can_be_undone: false,
        files: files.collect(),
        kept: Vec::new(),
        other_roots: Vec::new(),
        diff: None,
    }
}

/// The file or folder that a path leads to, at the newest batch.
fn trail(workspace: &Workspace, path: &str) -> Result<Trail, Failure> {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let (root, rest) = match workspace.roots() {
        [root] => (Some(root), Some(path).filter(|path| !matches!(*path, "" | "."))),
        _ => {
            let (name, rest) = path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
            let root = resolve::find_root(workspace, name).map_err(|error| error.failure())?;
            (workspace.root(root), rest)
        }
    };
    let invalid = |error: PathError| {
        let hint = "name a file or folder as `aptix log` lists it: by its path in the root";
        Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()).hint(hint)
    };
    let rest = rest.map(WorkspacePath::new).transpose().map_err(invalid)?;
    Ok(Trail::new(root.unwrap_or_else(|| workspace.primary()), rest))
}

fn file_row(workspace: &Workspace, file: &PastFile) -> FileRow {
    let (path, key) = file.names(workspace, &file.path);
    FileRow {
        path,
        doc_path: Some(key).filter(|key| !key.is_empty()),
        status: file.status().word(),
        renamed_to: file.moved_to.as_deref().map(|path| file.names(workspace, path).0),
    }
}

/// The entries that those listed, and displaced writes, refer to and that are not listed.
fn earlier(workspace: &Workspace, listed: &[Entry], writes: &[DisplacedWrite]) -> Vec<Entry> {
    let written = writes.iter().filter_map(|write| write.entry.clone());
    let undone = |entries: &[Entry]| entries.iter().filter_map(|entry| entry.undoes.clone()).collect::<Vec<_>>();
    let mut known: HashSet<_> = listed.iter().map(|entry| entry.id.to_string()).collect();
    let mut find = |ids: Vec<String>| -> Vec<Entry> {
        ids.into_iter().filter(|id| known.insert(id.clone())).filter_map(|id| newest::named(workspace, &id)).collect()
    };
    let mut earlier = find(undone(listed).into_iter().chain(written).collect());
    // A redo names the batch that its undo had taken back.
    let of_undos = find(undone(&earlier));
    earlier.extend(of_undos);
    earlier
}

impl Log {
    /// One line for each batch, with its diff if there is one, and each displaced write, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let writes = self.displaced_writes.iter().map(|WriteRow { path, batch_id, kept_as }| {
            let batch = batch_id.as_ref().map_or_else(String::new, |id| format!(" (replaced by {})", Visible(id)));
            format!("displaced write: {}{batch}, kept as {}\n", Visible(path), Visible(kept_as))
        });
        let batches = self.batches.iter().map(|row| {
            let mut text = line(row);
            show_diff(&mut text, row.diff.as_deref().unwrap_or_default().as_bytes());
            text
        });
        batches.chain(writes).collect()
    }
}

fn line(row: &Row) -> String {
    let mut line = format!("{}  {}", row.batch_id, utc(row.applied_unix_ms));
    let (word, first) = row.files.first().map_or(("", ""), |file| (file.status, &file.path));
    let _ = write!(line, "  {} {}", word.replace('_', " "), Visible(first));
    line.push_str(&and_more(row.files.len().saturating_sub(1)));
    if row.state == BatchState::Partial.word() {
        line.push_str("  (applied in part)");
    }
    // The label of an undo is the name of what it undid.
    if let Some(label) = row.batch_label.as_ref().filter(|_| row.undoes.is_none()) {
        let _ = write!(line, "  {}", Quoted(label));
    }
    match (&row.redoes, &row.undoes) {
        (Some(brought_back), _) => _ = write!(line, "  (redid {})", Visible(brought_back)),
        (None, Some(undone)) => _ = write!(line, "  (undid {})", Visible(undone)),
        (None, None) => {}
    }
    if let Some(undo) = &row.undone_by {
        let _ = write!(line, "  (undone by {})", Visible(undo));
    }
    if !row.can_be_undone && row.state != BatchState::Failed.word() {
        line.push_str("  (too much to be kept: cannot be undone)");
    }
    for kept in &row.kept {
        let _ = write!(line, "  (written afterwards, kept as {})", Visible(kept));
    }
    for root in &row.other_roots {
        let _ = write!(line, "  (with files in {})", Visible(root));
    }
    if let Some(EventFacts { actor, reason, .. }) = row.steps.last() {
        let _ = write!(line, " {}", by(actor.kind.word(), actor.name.as_deref(), reason.as_deref()));
    }
    line.push('\n');
    // The only step of a batch has its time and its actor in that line.
    for step in row.steps.iter().filter(|_| row.steps.len() > 1) {
        line.push_str("    ");
        add_step(&mut line, step);
    }
    line
}
