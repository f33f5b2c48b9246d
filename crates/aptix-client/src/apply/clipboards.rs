//! The clipboards of the session that a batch comes from, while the batch is planned.

use aptix_engine::plan::BatchPlan;
use aptix_engine::planning::clipboards::Clipboards;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;

use super::options::ApplyOptions;
use crate::workspace::commit::record::Taken;
use crate::workspace::keep::clipboards;
use crate::workspace::roots::workspace::Workspace;

pub(super) struct SessionClipboards {
    /// The session; none where the batch uses no clipboards, or comes from no session.
    session: Option<String>,
    pub(super) content: Clipboards,
}

impl SessionClipboards {
    /// Reads the clipboards that a batch may use.
    pub(super) fn read(workspace: &Workspace, batch: &Batch, options: ApplyOptions<'_>) -> Result<Self, Failure> {
        let uses_clipboards = batch.files.iter().any(|file| file.edit.uses_clipboards());
        let session = options.origin.session_id.as_deref().filter(|_| uses_clipboards);
        let session = session.map(|id| options.policy.caller.session(id));
        let content = session.as_deref().map(|session| clipboards::read(workspace, session)).transpose();
        let content = content.map_err(|error| error.failure())?.unwrap_or_default();
        Ok(Self { session, content })
    }

    /// What a planned batch leaves on them.
    pub(super) fn taken(&self, workspace: &Workspace, plan: &BatchPlan<'_>) -> Result<Option<Taken>, Failure> {
        let Some(session) = &self.session else { return Ok(None) };
        let taken = clipboards::taken(workspace, session, &self.content, plan.clipboards.clone());
        taken.map_err(|error| error.failure())
    }
}
