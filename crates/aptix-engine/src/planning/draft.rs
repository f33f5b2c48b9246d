//! A dialect's draft of one file, and the [`FilePlan`] made from it.

use alloc::format;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{ChangeReport, FileStatus, Normalization, Warning};

use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect_of_caller};
use crate::planning::observed::Observed;
use crate::planning::presence::check_presence;
use crate::planning::work::Work;
use crate::shown::quoted_path;
use crate::target::Base;
use crate::text::whole_text::Formed;

/// What a dialect's rules make of one file.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) action: FileAction<'a>,
    pub(crate) normalized: Vec<Normalization>,
    pub(crate) warnings: Vec<Warning>,
    /// One entry for each change, in the patch's order.
    pub(crate) changes: Vec<ChangeReport>,
}

impl<'a> From<FileAction<'a>> for Draft<'a> {
    /// A draft of which there is nothing else to say.
    fn from(action: FileAction<'a>) -> Self {
        Self { action, normalized: Vec::new(), warnings: Vec::new(), changes: Vec::new() }
    }
}

/// The plan made from the draft of a file that keeps its path.
pub(crate) fn finish<'a>(observed: &'a Observed<'a>, original: Option<Original<'a>>, draft: Draft<'a>) -> FilePlan<'a> {
    let status = match (&original, &draft.action) {
        (_, FileAction::Delete) => FileStatus::Deleted,
        (None, _) => FileStatus::Created,
        (Some(original), FileAction::Write(bytes)) if original.bytes == &**bytes => FileStatus::Unchanged,
        (Some(original), FileAction::Edit(edit)) if edit.is_identity(original.bytes) => FileStatus::Unchanged,
        (Some(_), _) => FileStatus::Modified,
    };
    let Draft { action, normalized, warnings, changes } = draft;
    FilePlan {
        path: &observed.path,
        doc_path: &observed.doc_path,
        status,
        action,
        moved_to: None,
        executable: None,
        normalized,
        warnings,
        changes,
        is_authored: false,
        original,
    }
}

/// The plan for a file that gets another path as well, where nothing may be, or a file that is renamed too.
pub(crate) fn rename<'a>(
    plan: FilePlan<'a>,
    observed: &'a Observed<'a>,
    work: &Work<'_>,
) -> Result<FilePlan<'a>, Failure> {
    let Some(other) = observed.other.as_deref() else {
        return Err(defect_of_caller("the path that the file is renamed to was not looked at"));
    };
    if other.content.is_some() && !work.leaves(&other.doc_path, &other.path) {
        let message =
            format!("the file is to be renamed to {}, and that file already exists", quoted_path(other.path.as_str()));
        return Err(Failure::new(Reason::FileExists, message)
            .hint("choose another path, or delete that file in a batch before this one"));
    }
    Ok(FilePlan { status: FileStatus::Renamed, moved_to: Some(&other.path), ..plan })
}

/// The plan of a file whose new bytes are decided already, as when an edit is undone.
///
/// # Errors
/// INTERNAL: the edit does not fit the file.
pub fn decided<'a>(observed: &'a Observed<'a>, action: FileAction<'a>) -> Result<FilePlan<'a>, Failure> {
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    let plan = finish(observed, original, action.into());
    plan.check().map(|()| plan)
}

/// The plan of a file whose whole content is given.
pub(crate) fn plan_whole<'a>(
    precondition: Base,
    text: Formed<'a>,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    let Formed { bytes, normalized, warnings } = text;
    let is_there = observed.content == Some(&*bytes);
    let original = check_presence(precondition, observed).map_err(|failure| match failure.reason {
        Reason::FileExists if is_there => failure.hint("it already has exactly this content; nothing is left to do"),
        _ => failure,
    })?;
    let action = FileAction::Write(bytes);
    Ok(finish(observed, original, Draft { action, normalized, warnings, changes: Vec::new() }))
}
