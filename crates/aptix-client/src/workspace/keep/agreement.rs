//! What the user agreed to have served from a root: the server, the workspace and all roots of the agent.
//!
//! Each root keeps its own copy, so that a start that names one root more, or one less, is compared with what was agreed to
//! for each of its roots. Agents of other roots have copies of their own.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use aptix_model::failure::Visible;
use aptix_model::id::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::workspace::roots::own_file::{self, Damage, Found, Owner};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// The file that holds it, in the state directory of each root.
const AGREEMENT: &str = "agreement";

/// What an agent serves: which workspace of which server, from which roots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    server: String,
    workspace: String,
    /// By name; the order on the command line changes nothing.
    roots: Vec<AgreedRoot>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgreedRoot {
    name: String,
    path: OsString,
}

/// What the roots of a workspace keep, compared with one agreement.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Other agreements, each once.
    pub(crate) others: Vec<Agreement>,
    /// Files that cannot be used, and why.
    pub(crate) damaged: Vec<(PathBuf, Damage)>,
    /// Whether a root keeps none.
    pub(crate) is_missing: bool,
}

impl Agreement {
    /// To serve a workspace of a server from all roots that are open.
    pub(crate) fn new(local: &Workspace, server: &str, workspace: &WorkspaceId) -> Self {
        let root = |root: &Root| AgreedRoot { name: root.name().to_owned(), path: root.path().into() };
        let mut roots: Vec<_> = local.roots().iter().map(root).collect();
        roots.sort();
        Self { server: server.to_owned(), workspace: workspace.to_string(), roots }
    }

    /// Compares it with what each root keeps.
    ///
    /// # Errors
    /// When the system refuses to read one of the files.
    pub(crate) fn compare(&self, local: &Workspace) -> Result<Kept, StateError> {
        let mut kept = Kept::default();
        for state in local.roots().iter().map(Root::state) {
            match read(state)? {
                None => kept.is_missing = true,
                Some(Ok(agreement)) if agreement == *self || kept.others.contains(&agreement) => {}
                Some(Ok(other)) => kept.others.push(other),
                Some(Err(damage)) => kept.damaged.push((state.part(Part::AGENT).join(AGREEMENT), damage)),
            }
        }
        Ok(kept)
    }

    /// Keeps it for each root, in the place of what was kept before; a file that cannot be used is set aside. The caller holds
    /// the agent lock. When this is cut short, the roots that keep the earlier agreement are asked about again.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub(crate) fn put(&self, local: &Workspace) -> Result<(), StateError> {
        // Texts alone: there is nothing in it that JSON could refuse.
        let body = serde_json::to_vec(self).unwrap_or_default();
        for state in local.roots().iter().map(Root::state) {
            let dir = state.open(Part::AGENT)?;
            if let Some(Err(damage)) = read(state)? {
                own_file::set_aside(local.disk(), dir.as_fd(), owner(state), damage)?;
            }
            own_file::put(local.disk(), dir.as_fd(), owner(state), &body)?;
        }
        Ok(())
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workspace {} of {} from ", Visible(&self.workspace), Visible(&self.server))?;
        for (index, AgreedRoot { name, path }) in self.roots.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let path = Path::new(path).display().to_string();
            write!(f, "{separator}{}={}", Visible(name), Visible(&path))?;
        }
        Ok(())
    }
}

const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: Part::AGENT, name: AGREEMENT, state }
}

/// What a root keeps; nothing where it keeps nothing.
fn read(state: &StateDir) -> Result<Option<Result<Agreement, Damage>>, StateError> {
    let Some(dir) = state.find(Part::AGENT)? else { return Ok(None) };
    let found = own_file::read(dir.as_fd(), owner(state)).map_err(owner(state).failed("read"))?;
    Ok(found.map(|found| match found {
        Found::Sealed(body) => serde_json::from_slice(&body).map_err(|_| Damage::Content),
        // No version wrote one that is not sealed.
        Found::Old(_) => Err(Damage::Content),
        Found::Damaged(damage) => Err(damage),
    }))
}
