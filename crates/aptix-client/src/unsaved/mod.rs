//! Unsaved buffers of editors: their text is what a file is to servers and models, and holds their batches back.

pub(crate) mod announced;
pub(crate) mod buffer;
pub mod buffers;
mod of_agent;
pub mod protocol;

use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use self::buffer::{Buffer, TEXT_BYTES};
use self::buffers::Buffers;
use crate::policy::caller::Caller;
use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::place::Place;
use crate::workspace::read::snapshot::ReadError;
use crate::workspace::roots::workspace::Workspace;

/// Where a process learns of unsaved buffers. It is kept with the [`Workspace`].
#[derive(Clone, Default, Debug)]
pub(crate) enum Source {
    /// Nowhere: there are none.
    #[default]
    None,
    /// From the editors that are connected to it.
    Editors(Arc<Buffers>),
    /// From the agent that serves the root, if one does.
    Agent,
}

impl Source {
    /// Lets every read and batch of the workspace ask here from now on.
    pub(crate) fn set(self, workspace: &Workspace) {
        workspace.with_cache(|source: &mut Self| *source = self);
    }
}

/// The buffers that there are at one moment, in the order in which they were announced.
#[derive(Clone, Default, Debug)]
pub(crate) struct Unsaved(Vec<Buffer>);

impl Unsaved {
    /// All buffers of a workspace.
    ///
    /// # Errors
    /// The agent that knows them gives no answer.
    pub(crate) fn of(workspace: &Workspace) -> Result<Self, Failure> {
        Ok(Self(match workspace.with_cache(|source: &mut Source| source.clone()) {
            Source::None => Vec::new(),
            Source::Editors(buffers) => buffers.all(),
            Source::Agent => of_agent::ask(workspace)?,
        }))
    }

    /// The buffers that hold back the batches of a caller: none for the user at their own shell, who knows their editor.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn against(workspace: &Workspace, caller: Caller) -> Result<Self, Failure> {
        if caller == Caller::Shell { Ok(Self::default()) } else { Self::of(workspace) }
    }

    /// The buffer announced last of the file at a place whose text differs from what is on disk.
    pub(crate) fn at(&self, place: &Place, on_disk: Option<&[u8]>) -> Option<&Buffer> {
        self.0.iter().rev().find(|buffer| buffer.is_of(place) && buffer.differs(on_disk))
    }

    /// As [`Self::at`], for a place whose file is not read yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn beside(&self, place: &Place, file: Option<&OpenFile>) -> Result<Option<&Buffer>, ReadError> {
        if !self.0.iter().any(|buffer| buffer.is_of(place)) {
            return Ok(None);
        }
        let on_disk = file.map(|file| file.small(TEXT_BYTES)).transpose().map_err(ReadError::System)?;
        Ok(self.at(place, on_disk.flatten().as_deref()))
    }

    /// As [`Self::at`], for a file at a real path of a root that was met on a walk.
    pub(crate) fn met(&self, root: usize, path: &str, on_disk: Option<&[u8]>) -> Option<&Buffer> {
        let is_of = |buffer: &Buffer| buffer.root == root && (buffer.real == path || buffer.path == path);
        self.0.iter().rev().find(|buffer| is_of(buffer) && buffer.differs(on_disk))
    }
}

/// The failure of a batch that names a file with an unsaved buffer.
pub(crate) fn held_back() -> Failure {
    let message = "an editor on the workstation holds unsaved text of the file, so nothing was written";
    Failure::new(Reason::UnsavedBuffer, message)
        .hint("ask the user to save or discard it in the editor, then read the file again and send the batch anew")
}

/// The failure of a read of a buffer whose text is not known.
pub(crate) fn not_shown() -> Failure {
    let message =
        "an editor on the workstation holds unsaved text of the file that it does not show, or that is too large";
    Failure::new(Reason::UnsavedBuffer, message).hint("ask the user to save it in the editor, then read the file again")
}
