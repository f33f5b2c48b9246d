//! What the agent remembers between runs: its own name, and how far it has read a server's events.

use std::os::fd::AsFd;
use std::path::PathBuf;

use aptix_model::cursor::Cursor;
use aptix_model::id::{AgentId, Revision, WorkspaceId};
use rustix::io::Errno;

use crate::workspace::roots::own_file::{self, Damage, Found, Owner};
use crate::workspace::roots::state::{StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// The file with the agent's name.
const AGENT: &str = "agent-id";
/// The file that says how far which server's events have been dealt with.
pub(in crate::workspace) const CURSOR: &str = "cursor";

/// Why something cannot be remembered.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
}

/// What the agent of these roots is called: `new` from now on, if it has no name yet. The caller holds the agent lock.
///
/// # Errors
/// When the name cannot be read or kept.
pub fn agent_id(workspace: &Workspace, new: AgentId) -> Result<AgentId, NoteError> {
    match read(workspace, AGENT)?.map(|name| name.parse()) {
        Some(Ok(name)) => return Ok(name),
        Some(Err(_)) => set_aside(workspace, AGENT, Damage::Content)?,
        None => {}
    }
    write(workspace, AGENT, new.as_str()).map(|()| new)
}

/// How far a server's events have been dealt with. What is not known is the beginning: events that come again do no
/// harm.
///
/// # Errors
/// When the system refuses to read it.
pub fn position(workspace: &Workspace, server: &str, id: &WorkspaceId) -> Result<Option<Noted>, NoteError> {
    let note = read(workspace, CURSOR)?.unwrap_or_default();
    let mut words = note.split_whitespace();
    let known = words.next() == Some(server) && words.next() == Some(id.as_str());
    let Some(revision) = words.next().filter(|_| known).and_then(|word| word.parse().ok().map(Revision)) else {
        return Ok(None);
    };
    // A note of an earlier version ends here.
    let bound = (words.next().and_then(|word| word.parse().ok())).zip(words.next().and_then(|word| word.parse().ok()));
    let history = bound.map(|(history, digest)| Cursor { history, revision, digest });
    Ok(Some(Noted { revision, cursor: history }))
}

/// A noted position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noted {
    /// The last event that was dealt with.
    pub revision: Revision,
    /// The same in its history, if that is known.
    pub cursor: Option<Cursor>,
}

/// Keeps how far a server's events have been dealt with.
///
/// # Errors
/// When it cannot be kept.
pub fn put_position(workspace: &Workspace, server: &str, id: &WorkspaceId, noted: Noted) -> Result<(), NoteError> {
    let bound = noted.cursor.map(|cursor| format!(" {} {}", cursor.history, cursor.digest)).unwrap_or_default();
    write(workspace, CURSOR, &format!("{server} {id} {}{bound}\n", noted.revision))
}

fn path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.primary().state().path().join("agent").join(name)
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: "agent", name, state }
}

/// What a note says. One that is damaged is set aside, and says nothing.
fn read(workspace: &Workspace, name: &str) -> Result<Option<String>, NoteError> {
    let state = workspace.primary().state();
    let dir = state.open_agent()?;
    let found = own_file::read(dir.as_fd(), owner(state, name));
    let found = found.map_err(|errno| NoteError::System { doing: "read", path: path(workspace, name), errno })?;
    match found {
        None => Ok(None),
        Some(Found::Sealed(bytes) | Found::Old(bytes)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Some(Found::Damaged(damage)) => set_aside(workspace, name, damage).map(|()| None),
    }
}

fn set_aside(workspace: &Workspace, name: &str, damage: Damage) -> Result<(), NoteError> {
    let state = workspace.primary().state();
    let dir = state.open_agent()?;
    own_file::set_aside(workspace.disk(), dir.as_fd(), owner(state, name), damage)?;
    Ok(())
}

fn write(workspace: &Workspace, name: &str, text: &str) -> Result<(), NoteError> {
    let state = workspace.primary().state();
    let dir = state.open_agent()?;
    Ok(own_file::put(workspace.disk(), dir.as_fd(), owner(state, name), text.as_bytes())?)
}
