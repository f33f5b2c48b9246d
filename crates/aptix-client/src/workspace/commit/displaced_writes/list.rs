//! The displaced writes of a workspace, and which of them a result has named.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use aptix_model::failure::Visible;
use aptix_model::report::Warning;
use rustix::io::Errno;

use super::displaced_file::{DisplacedFile, Standing, beside};
use super::index;
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// A file that another process wrote after a batch had replaced or removed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisplacedWrite {
    /// Position of the root.
    pub(crate) root: usize,
    /// Real path in the root of the file that was replaced; only its name where a power cut took the rest.
    pub path: String,
    /// Where the version of the other process is kept.
    pub kept_as: PathBuf,
    /// The entry of the history whose batch replaced the file; absent when the batch was rolled back.
    pub entry: Option<String>,
    /// Whether a result has named it.
    pub is_named: bool,
    /// The name in the index.
    name: String,
}

impl DisplacedWrite {
    /// The code of the warning about it.
    pub const CODE: &str = "DISPLACED_WRITE";

    /// Path of the file as users of the workspace name it: with several roots it begins with the root's name.
    #[must_use]
    pub fn path_in(&self, workspace: &Workspace) -> String {
        match workspace.root(self.root) {
            Some(root) if workspace.roots().len() > 1 => format!("{}/{}", root.name(), self.path),
            _ => self.path.clone(),
        }
    }

    /// The warning about it for a reader on this machine.
    #[must_use]
    pub fn warning(&self, workspace: &Workspace) -> Warning {
        self.warn(workspace, &format!("that version is kept as {}", self.kept_as.display()))
    }

    /// The warning about it for a reader who does not learn where the state directory is.
    #[must_use]
    pub fn warning_elsewhere(&self, workspace: &Workspace) -> Warning {
        self.warn(workspace, "`aptix log`, run by the user, names the kept copy")
    }

    fn warn(&self, workspace: &Workspace, kept: &str) -> Warning {
        let path = self.path_in(workspace);
        let path = Visible(&path);
        let message = format!("another process wrote to the old version of {path} after a batch replaced it; {kept}");
        Warning { code: Self::CODE.to_owned(), message, line: None }
    }
}

impl Workspace {
    /// The displaced writes of the roots that are kept, oldest first: what other processes wrote to files after batches had
    /// replaced or removed them.
    ///
    /// # Errors
    /// When the state directory cannot be read.
    pub fn displaced_writes(&self) -> Result<Vec<DisplacedWrite>, StateError> {
        list(self).map_err(|errno| self.displaced_failed(errno))
    }

    /// The displaced writes that no result has named yet. From now on they count as named.
    ///
    /// # Errors
    /// When another process holds the workspace for long, or the state directory cannot be read or written.
    pub fn unnamed_displaced_writes(&self) -> Result<Vec<DisplacedWrite>, StateError> {
        let failed = |errno| self.displaced_failed(errno);
        if self.are_all_named().map_err(failed)? {
            return Ok(Vec::new());
        }
        let _locks = self.lock()?;
        take_unnamed(self).map_err(failed)
    }

    /// Whether results have named every displaced write. Reading the indexes takes as long as there are displaced files, so
    /// they are read again only where they have changed since they were all named.
    fn are_all_named(&self) -> Result<bool, Errno> {
        let known = self.with_cache(Option::<Indexes>::take);
        let indexes = match known.filter(|indexes| indexes.are_current(self).is_ok_and(|are_current| are_current)) {
            Some(indexes) => indexes,
            None => {
                let indexes = Indexes::hold(self)?;
                if list(self)?.iter().any(|write| !write.is_named) {
                    return Ok(false);
                }
                indexes
            }
        };
        self.with_cache(|named| *named = Some(indexes));
        Ok(true)
    }

    fn displaced_failed(&self, errno: Errno) -> StateError {
        StateError::System { path: self.primary().state().part(Part::DISPLACED), source: errno.into() }
    }
}

/// The displaced writes of the roots of a workspace that are kept, oldest first.
///
/// # Errors
/// When the index cannot be read.
fn list(workspace: &Workspace) -> Result<Vec<DisplacedWrite>, Errno> {
    let mut writes = Vec::new();
    for (root, held) in workspace.roots().iter().enumerate() {
        let Some(dir) = held.state().find(Part::DISPLACED).map_err(|error| error.errno())? else { continue };
        let changed = index::read(held.state(), &dir)?.into_iter().filter(|file| file.standing != Standing::Held);
        for file in changed {
            let (place, kept) = match (&file.copy, &file.beside) {
                (Some(copy), _) => (held.path().to_owned(), copy.clone()),
                (None, None) => (held.state().part(Part::DISPLACED), file.name.clone()),
                (None, Some(dir)) => (held.path().join(dir), beside(&file.name)),
            };
            // A user may remove a copy that is no longer needed.
            if !matches!(rustix::fs::lstat(place.join(&kept)), Err(Errno::NOENT)) {
                let is_named = file.standing == Standing::Named;
                let DisplacedFile { path, entry, name, .. } = file;
                writes.push(DisplacedWrite { root, path, kept_as: place.join(kept), entry, is_named, name });
            }
        }
    }
    Ok(writes)
}

/// The indexes of the roots of a workspace, held open; nothing for a root without one.
struct Indexes(Vec<Option<OwnedFd>>);

impl Indexes {
    /// Holds the indexes that there are.
    fn hold(workspace: &Workspace) -> Result<Self, Errno> {
        let hold = |state: &StateDir| match state.find(Part::DISPLACED).map_err(|error| error.errno())? {
            Some(dir) => index::hold(&dir),
            None => Ok(None),
        };
        workspace.roots().iter().map(|root| hold(root.state())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether nothing has become known of a displaced file since, in this process or another one.
    fn are_current(&self, workspace: &Workspace) -> Result<bool, Errno> {
        for (root, held) in workspace.roots().iter().zip(&self.0) {
            let is_current = match root.state().find(Part::DISPLACED).map_err(|error| error.errno())? {
                Some(dir) => index::is_current(&dir, held.as_ref())?,
                None => held.is_none(),
            };
            if !is_current {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The displaced writes that no result has named yet; from now on they count as named. The caller holds the lock.
fn take_unnamed(workspace: &Workspace) -> Result<Vec<DisplacedWrite>, Errno> {
    let mut writes = list(workspace)?;
    writes.retain(|write| !write.is_named);
    for (root, held) in workspace.roots().iter().enumerate() {
        let Some(dir) = held.state().find(Part::DISPLACED).map_err(|error| error.errno())? else { continue };
        let is_taken = |file: &DisplacedFile| writes.iter().any(|write| write.root == root && write.name == file.name);
        let mut files = index::read(held.state(), &dir)?;
        let mut taken = files.iter_mut().filter(|file| is_taken(file)).peekable();
        if taken.peek().is_some() {
            taken.for_each(|file| file.standing = Standing::Named);
            index::write(workspace.disk(), held.state(), &dir, &files)?;
        }
    }
    Ok(writes)
}
