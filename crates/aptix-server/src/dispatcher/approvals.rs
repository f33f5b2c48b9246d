//! When a person has to approve a batch before its agent gets it: as the operator set it for each workspace, by what the server
//! knows of the batch. The agent's own policy decides afterwards.

use std::collections::BTreeMap;

use aptix_model::batch::{Batch, FileEdit, FilePatch, GitKind, GitPatch, Target};
use aptix_model::id::WorkspaceId;
use aptix_model::protection;
use tokio::sync::watch;

/// Which batches a person has to approve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Approval {
    /// None.
    #[default]
    Never,
    /// Those that may delete a file.
    Deletions,
    /// Those that name a file whose name is sensitive, or is that of secrets.
    Sensitive,
    /// All.
    Always,
}

impl Approval {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Never, Self::Deletions, Self::Sensitive, Self::Always];

    /// Its word in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Deletions => "deletions",
            Self::Sensitive => "sensitive",
            Self::Always => "always",
        }
    }
}

/// Which batches a person has to approve, by workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Approvals {
    /// In every workspace that has no entry of its own.
    pub usual: Approval,
    /// In these workspaces.
    pub workspaces: BTreeMap<WorkspaceId, Approval>,
}

/// The approvals of now: the configuration may be read again.
#[derive(Clone, Debug)]
pub struct CurrentApprovals(watch::Receiver<Approvals>);

impl CurrentApprovals {
    /// Whether a person has to approve this batch.
    pub(super) fn ask_about(&self, workspace: &WorkspaceId, batch: &Batch) -> bool {
        self.0.borrow().ask_about(workspace, batch)
    }
}

impl From<watch::Receiver<Approvals>> for CurrentApprovals {
    fn from(current: watch::Receiver<Approvals>) -> Self {
        Self(current)
    }
}

/// They stay as they are.
impl From<Approvals> for CurrentApprovals {
    fn from(fixed: Approvals) -> Self {
        Self(watch::channel(fixed).1)
    }
}

impl Approvals {
    /// Whether a person has to approve this batch.
    fn ask_about(&self, workspace: &WorkspaceId, batch: &Batch) -> bool {
        match self.workspaces.get(workspace).unwrap_or(&self.usual) {
            Approval::Never => false,
            Approval::Deletions => batch.files.iter().any(|file| may_delete(&file.edit)),
            Approval::Sensitive => batch.files.iter().any(is_sensitive),
            Approval::Always => true,
        }
    }
}

/// Whether an edit may leave no file. A revert may: what it takes back may have created the file.
fn may_delete(edit: &FileEdit) -> bool {
    let deletes = |patch: &GitPatch| patch.kind == GitKind::Delete;
    match edit {
        FileEdit::DeleteFile | FileEdit::Revert(_) => true,
        FileEdit::GitPatch(patch) => deletes(patch),
        FileEdit::GitSeries(parts) => parts.iter().any(deletes),
        _ => false,
    }
}

/// Whether a path that is written, or may be, has a sensitive name or one of secrets.
fn is_sensitive(file: &FilePatch) -> bool {
    let is_guarded = |path: &str| protection::is_sensitive(path) || protection::secret(path).is_some();
    let target = match &file.target {
        Target::Readings(readings) => readings.all().any(is_guarded),
        target => is_guarded(target.as_str()),
    };
    target || file.edit.moved_to().is_some_and(is_guarded)
}
