//! An early answer for a batch that is only validated while no agent serves the workspace: its line patches, compared with the
//! cloud copies of their files. It decides nothing about a batch that is stored.

use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::{Settings, Suspicion};
use aptix_engine::validate::validate;
use aptix_model::batch::{Batch, FileEdit, FilePatch, Target};
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::live::{FilePart, FileSelector, Portion};
use aptix_model::path::{DocPath, WorkspacePath};

use super::Dispatcher;
use super::files::{CloudCopy, CloudPart, CloudReads};
use super::refusal::{Refusal, is_of_one_file};

/// A failure that a line patch would have if the file were its cloud copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyFailure {
    /// What does not fit.
    pub failure: Failure,
    /// The copy that it was compared with.
    pub copy: CloudCopy,
}

impl Dispatcher {
    /// Compares the line patches of a valid batch with the cloud copies of their files: the digest that each states, and the lines
    /// that it expects. A file is left out that has no cloud copy, or whose copy does not fit into one answer with those before it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn compare(&self, workspace: &WorkspaceId, batch: &Batch) -> Result<Vec<EarlyFailure>, Refusal> {
        let mut cloud = self.cloud(workspace).await?;
        let mut found = Vec::new();
        for (index, patch) in batch.files.iter().enumerate() {
            let Some((copy, content)) = copy_of(&mut cloud, patch).await? else { continue };
            let failures = misfits(patch, &copy, &content, &self.settings);
            found.extend(failures.into_iter().map(|failure| {
                let doc_path = Some(copy.file.doc_path.to_string());
                let failure = Failure { doc_path, ..failure.file(index, &copy.path) };
                EarlyFailure { failure, copy: copy.clone() }
            }));
        }
        Ok(found)
    }
}

/// The cloud copy of a line patch's file, with its bytes.
async fn copy_of(cloud: &mut CloudReads<'_>, patch: &FilePatch) -> Result<Option<(CloudCopy, Vec<u8>)>, Refusal> {
    let (FileEdit::LinePatch(_), Some(file)) = (&patch.edit, selector(&patch.target)) else { return Ok(None) };
    match cloud.read(&FilePart { file, portion: Portion::Whole }).await {
        Ok(CloudPart { copy, content, .. }) => Ok(content.map(|content| (copy, content))),
        // There is no copy, or several could be meant: the agent decides.
        Err(Refusal::Denied(failure)) if is_of_one_file(&failure) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn selector(target: &Target) -> Option<FileSelector> {
    match target {
        Target::DocPath(key) => DocPath::new(key).ok().map(FileSelector::DocPath),
        Target::Path(path) => WorkspacePath::new(path).ok().map(FileSelector::Path),
        Target::Readings(_) => None,
    }
}

/// Where the patch does not fit the copy. What the workstation's policy and limits decide is left to it.
fn misfits(patch: &FilePatch, copy: &CloudCopy, content: &[u8], settings: &super::Settings) -> Vec<Failure> {
    let batch = Batch { files: vec![patch.clone()], ..Batch::default() };
    let Ok(valid) = validate(&batch, &settings.limits) else { return Vec::new() };
    let Ok(path) = WorkspacePath::new(copy.file.path.rest()) else { return Vec::new() };
    let observed = [Observed {
        path,
        doc_path: copy.file.doc_path.to_string(),
        content: Some(content),
        digest: Some(copy.file.content.sha256),
        is_executable: false,
        other: None,
    }];
    let settings = Settings { limits: settings.limits, suspicion: Suspicion::Off, ..Settings::DEFAULT };
    let failures = plan(&valid, &observed, &settings).err().unwrap_or_default();
    failures.into_iter().filter(|failure| failure.current_sha256.is_some()).collect()
}
