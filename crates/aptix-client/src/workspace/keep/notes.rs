//! What the agent remembers between runs: its own name, how far it has read a server's events, and which batches of the
//! workstation itself it has reported.

use std::os::fd::AsFd;

use aptix_model::cursor::Cursor;
use aptix_model::id::{AgentId, Revision, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::workspace::keep::history::since::Marks;
use crate::workspace::roots::own_file::{self, Damage, Found, Owner};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// The file with the agent's name.
const AGENT: &str = "agent-id";
/// The file that records how far which server's events have been handled.
pub(crate) const CURSOR: &str = "cursor";

/// The file that records which batches of the workstation itself which server has.
const REPORTED: &str = "local-batches";
/// Workspaces that it records that for: those that were served last.
const WORKSPACES: usize = 16;

/// What the agent of these roots is called: `new` from now on, if it has no name yet. The caller holds the agent lock.
///
/// # Errors
/// When the name cannot be read or kept.
pub fn agent_id(workspace: &Workspace, new: AgentId) -> Result<AgentId, StateError> {
    match read(workspace, AGENT)?.map(|name| name.parse()) {
        Some(Ok(name)) => return Ok(name),
        Some(Err(_)) => set_aside(workspace, AGENT, Damage::Content)?,
        None => {}
    }
    write(workspace, AGENT, new.as_str()).map(|()| new)
}

/// How far a server's events have been handled. What is not known is the beginning: events that come again do no
/// harm.
///
/// # Errors
/// When the system refuses to read it.
pub fn position(workspace: &Workspace, server: &str, id: &WorkspaceId) -> Result<Option<Noted>, StateError> {
    let note = read(workspace, CURSOR)?.unwrap_or_default();
    let mut words = note.split_whitespace();
    let known = words.next() == Some(server) && words.next() == Some(id.as_str());
    let Some(revision) = words.next().filter(|_| known).and_then(|word| word.parse().ok().map(Revision)) else {
        return Ok(None);
    };
    // A note of an earlier version ends here.
    let bound = (words.next().and_then(|word| word.parse().ok())).zip(words.next().and_then(|word| word.parse().ok()));
    Ok(Some(Noted { revision, cursor: bound.map(|(history, digest)| Cursor { history, revision, digest }) }))
}

/// A noted position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noted {
    /// The last event that was dealt with.
    pub revision: Revision,
    /// The same in its history, if that is known.
    pub cursor: Option<Cursor>,
}

/// Keeps how far a server's events have been handled.
///
/// # Errors
/// When it cannot be kept.
pub fn put_position(workspace: &Workspace, server: &str, id: &WorkspaceId, noted: Noted) -> Result<(), StateError> {
    let bound = noted.cursor.map(|cursor| format!(" {} {}", cursor.history, cursor.digest)).unwrap_or_default();
    write(workspace, CURSOR, &format!("{server} {id} {}{bound}\n", noted.revision))
}

/// Up to which entries of the history a server has the batches of the workstation itself.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    server: String,
    workspace: String,
    marks: Marks,
}

/// Up to which entries of the history a server has the batches of the workstation itself; `None` where that is not known.
///
/// # Errors
/// When the system refuses to read it.
pub(crate) fn reported(workspace: &Workspace, server: &str, id: &WorkspaceId) -> Result<Option<Marks>, StateError> {
    let all = read_reported(workspace)?;
    Ok(all.into_iter().find(|known| known.server == server && known.workspace == id.as_str()).map(|known| known.marks))
}

/// Keeps up to which entries of the history a server has the batches of the workstation itself.
///
/// # Errors
/// When it cannot be kept.
pub(crate) fn put_reported(
    workspace: &Workspace,
    server: &str,
    id: &WorkspaceId,
    marks: &Marks,
) -> Result<(), StateError> {
    let mut all = read_reported(workspace)?;
    all.retain(|known| known.server != server || known.workspace != id.as_str());
    all.insert(0, Reported { server: server.to_owned(), workspace: id.to_string(), marks: marks.clone() });
    all.truncate(WORKSPACES);
    // Texts alone: there is nothing in it that JSON could refuse.
    write(workspace, REPORTED, &serde_json::to_string(&all).unwrap_or_default())
}

fn read_reported(workspace: &Workspace) -> Result<Vec<Reported>, StateError> {
    match read(workspace, REPORTED)?.map(|text| serde_json::from_str(&text)) {
        Some(Ok(all)) => Ok(all),
        Some(Err(_)) => set_aside(workspace, REPORTED, Damage::Content).map(|()| Vec::new()),
        None => Ok(Vec::new()),
    }
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: Part::AGENT, name, state }
}

/// The text of a note; none where there is none, or where it is damaged and was set aside.
fn read(workspace: &Workspace, name: &str) -> Result<Option<String>, StateError> {
    let state = workspace.primary().state();
    let dir = state.open(Part::AGENT)?;
    match own_file::read(dir.as_fd(), owner(state, name)).map_err(owner(state, name).failed("read"))? {
        None => Ok(None),
        Some(Found::Sealed(bytes) | Found::Old(bytes)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Some(Found::Damaged(damage)) => set_aside(workspace, name, damage).map(|()| None),
    }
}

fn set_aside(workspace: &Workspace, name: &str, damage: Damage) -> Result<(), StateError> {
    let state = workspace.primary().state();
    let dir = state.open(Part::AGENT)?;
    own_file::set_aside(workspace.disk(), dir.as_fd(), owner(state, name), damage).map(drop)
}

fn write(workspace: &Workspace, name: &str, text: &str) -> Result<(), StateError> {
    let state = workspace.primary().state();
    let dir = state.open(Part::AGENT)?;
    own_file::put(workspace.disk(), dir.as_fd(), owner(state, name), text.as_bytes())
}
