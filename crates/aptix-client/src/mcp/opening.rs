//! The workspace of a connection: one that was opened before it, or one over the roots that its client names.

#![expect(deprecated, reason = "clients of the protocol before 2026-07-28 name their roots")]

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rmcp::RoleServer;
use rmcp::model::{ProtocolVersion, Root};
use rmcp::service::Peer;
use tokio::time::timeout;

use super::serve_error::{RootsError, ServeError};
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

/// How long a client may take to name its roots.
const PATIENCE: Duration = Duration::from_secs(10);

/// A workspace, and the directories of its roots as the user wrote them, absolute: absolute paths in calls may begin with them.
#[derive(Debug)]
pub struct Opened {
    /// The workspace.
    pub workspace: Workspace,
    /// The directory of each root, in their order.
    pub directories: Vec<PathBuf>,
}

/// A workspace that is being opened.
pub type Begun = Pin<Box<dyn Future<Output = Result<Opened, ServeError>> + Send>>;

/// Opens a workspace over these roots.
pub type Open = Box<dyn FnOnce(Vec<RootSpec>) -> Begun + Send>;

/// Where the workspace of a connection comes from.
pub enum Opening {
    /// It is open.
    Done(Box<Opened>),
    /// It is opened over the roots that the client names; over the usual one where the client names none.
    OfClient {
        /// The root where the client names none.
        usual: RootSpec,
        /// Opens it.
        open: Open,
    },
}

impl fmt::Debug for Opening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(opened) => out.debug_tuple("Done").field(opened).finish(),
            Self::OfClient { usual, .. } => out.debug_struct("OfClient").field("usual", usual).finish_non_exhaustive(),
        }
    }
}

/// The directories that a client names as its roots; none if it names none.
///
/// # Errors
/// When it announced roots and does not name them, or one is no directory of this machine: another directory than it means must not
/// take their place.
pub(super) async fn of_client(peer: &Peer<RoleServer>) -> Result<Vec<RootSpec>, RootsError> {
    let Some(client) = peer.peer_info() else { return Ok(Vec::new()) };
    // Versions are dates; from this one on a server sends no requests.
    let is_asked = client.protocol_version.as_str() < ProtocolVersion::V_2026_07_28.as_str();
    if client.capabilities.roots.is_none() || !is_asked {
        return Ok(Vec::new());
    }
    let listed = timeout(PATIENCE, peer.list_roots()).await.map_err(|_| RootsError::Silent(PATIENCE.as_secs()))??;
    let directories = listed.roots.iter().map(directory).collect::<Result<Vec<_>, _>>()?;
    Ok(outermost(directories).into_iter().map(|dir| RootSpec { name: None, dir }).collect())
}

/// The directory that a `file:` URI names.
fn directory(root: &Root) -> Result<PathBuf, RootsError> {
    let elsewhere = || RootsError::Elsewhere(root.uri.clone());
    let path = root.uri.strip_prefix("file://").ok_or_else(elsewhere)?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = percent_decode_str(path).decode_utf8().map_err(|_| elsewhere())?;
    Some(PathBuf::from(path.into_owned())).filter(|path| path.is_absolute()).ok_or_else(elsewhere)
}

/// Without those that lie in another one, of which they are a part.
fn outermost(directories: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for directory in directories {
        if kept.iter().any(|other| directory.starts_with(other)) {
            continue;
        }
        kept.retain(|other| !other.starts_with(&directory));
        kept.push(directory);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_directory_of_this_machine() {
        for (uri, expected) in [
            ("file:///srv/ws", Some("/srv/ws")),
            ("file://localhost/srv/ws", Some("/srv/ws")),
            ("file:///srv/my%20ws/%C3%A9%25", Some("/srv/my ws/é%")),
            ("file://elsewhere/srv/ws", None),
            ("file:///srv/%ff", None),
            ("file://", None),
            ("file:srv", None),
            ("vscode-vfs://github/a/b", None),
            ("/srv/ws", None),
        ] {
            assert_eq!(directory(&Root::new(uri)).ok(), expected.map(PathBuf::from), "{uri}");
        }
    }

    #[test]
    fn a_root_in_another_one_is_a_part_of_it() {
        let outermost_of = |paths: &[&str]| outermost(paths.iter().map(PathBuf::from).collect());
        assert_eq!(outermost_of(&["/a/b", "/a", "/a", "/ab", "/a/c"]), ["/a", "/ab"].map(PathBuf::from));
    }
}
