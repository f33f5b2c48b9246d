//! The workspace of a connection: one that was opened before it, or one over the roots that its client names.

#![expect(deprecated, reason = "clients of the protocol before 2026-07-28 name their roots")]

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use aptix_model::path::{WorkspacePath, fold};
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

/// Roots that a client may have.
const ROOTS: usize = 64;

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

/// Whether a client is asked which roots it means.
pub(super) fn names_roots(peer: &Peer<RoleServer>) -> bool {
    // Versions are dates; from this one on a server sends no requests.
    peer.peer_info().is_some_and(|client| {
        client.capabilities.roots.is_some() && client.protocol_version.as_str() < ProtocolVersion::V_2026_07_28.as_str()
    })
}

/// The directories that a client names as its roots; none if it names none.
///
/// # Errors
/// When it announced roots and does not name them, or one is no directory of this machine: another directory than it means must not
/// take their place.
pub(super) async fn of_client(peer: &Peer<RoleServer>) -> Result<Vec<RootSpec>, RootsError> {
    if !names_roots(peer) {
        return Ok(Vec::new());
    }
    let late = |_| RootsError::Silent(PATIENCE.as_secs());
    let listed = timeout(PATIENCE, peer.list_roots()).await.map_err(late)??.roots;
    if listed.len() > ROOTS {
        return Err(RootsError::TooMany(listed.len(), ROOTS));
    }
    Ok(named(outermost(listed.iter().map(Listed::of).collect::<Result<_, _>>()?)))
}

/// The directory that a `file:` URI names.
fn directory(uri: &str) -> Result<PathBuf, RootsError> {
    let elsewhere = || RootsError::Elsewhere(uri.to_owned());
    let (scheme, rest) = uri.split_once(':').ok_or_else(elsewhere)?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    let path = percent_decode_str(path).decode_utf8().map_err(|_| elsewhere())?;
    let path = Some(PathBuf::from(path.into_owned())).filter(|path| path.is_absolute());
    path.filter(|_| scheme.eq_ignore_ascii_case("file")).ok_or_else(elsewhere)
}

/// A root of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Listed<'a> {
    /// As the client names it.
    dir: PathBuf,
    /// Where links lead.
    real: PathBuf,
    /// What the client calls it.
    called: Option<&'a str>,
}

impl<'a> Listed<'a> {
    fn of(root: &'a Root) -> Result<Self, RootsError> {
        let dir = directory(&root.uri)?;
        // What is not there is named when it is opened.
        let real = std::fs::canonicalize(&dir).unwrap_or_else(|_| dir.clone());
        Ok(Self { dir, real, called: root.name.as_deref() })
    }
}

/// Without those that lie in another one, of which they are a part.
fn outermost(listed: Vec<Listed<'_>>) -> Vec<Listed<'_>> {
    let mut kept: Vec<Listed<'_>> = Vec::new();
    for one in listed {
        if kept.iter().any(|other| one.real.starts_with(&other.real)) {
            continue;
        }
        kept.retain(|other| !other.real.starts_with(&one.real));
        kept.push(one);
    }
    kept
}

/// The roots with a name of their own each: that of the directory, else what the client calls it, else a number behind that.
fn named(listed: Vec<Listed<'_>>) -> Vec<RootSpec> {
    let mut taken = HashSet::new();
    let named = listed.into_iter().map(|Listed { dir, real, called }| {
        let own = real.file_name().map_or_else(String::new, |name| fold(&name.to_string_lossy()));
        let called = called.map(fold).filter(|name| WorkspacePath::new(name).is_ok() && !name.contains('/'));
        let numbered = (2..).map(|number| format!("{own}-{number}"));
        let mut names = std::iter::once(own.clone()).chain(called).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone())).filter(|name| *name != own);
        RootSpec { name, dir }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_directory_of_this_machine() {
        for (uri, expected) in [
            ("file:///srv/ws", Some("/srv/ws")),
            ("file:/srv/ws", Some("/srv/ws")),
            ("FILE://localhost/srv/ws", Some("/srv/ws")),
            ("file:///srv/my%20ws/%C3%A9%25", Some("/srv/my ws/é%")),
            ("file://elsewhere/srv/ws", None),
            ("file:///srv/%ff", None),
            ("file://", None),
            ("file:srv", None),
            ("vscode-vfs://github/a/b", None),
            ("/srv/ws", None),
        ] {
            assert_eq!(directory(uri).ok(), expected.map(PathBuf::from), "{uri}");
        }
    }

    #[test]
    fn roots_of_one_name_are_told_apart() {
        let listed = [("/a/src", None), ("/b/SRC", Some("Back")), ("/c/src", Some("src")), ("/d/src", Some("a/b"))];
        let listed = listed.map(|(dir, called)| Listed { dir: dir.into(), real: dir.into(), called });
        let names: Vec<_> = named(listed.to_vec()).into_iter().map(|root| root.name).collect();
        assert_eq!(names, [None, Some("back".to_owned()), Some("src-2".to_owned()), Some("src-3".to_owned())]);
    }
}
