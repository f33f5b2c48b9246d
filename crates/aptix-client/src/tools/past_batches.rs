//! `history` and `get_patch_change`: the batches that the history of the roots keeps, as far as their caller may know of them.

use std::borrow::Cow;

use aptix_engine::target::ValidTarget;
use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::path_style::PathStyle;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileStatus, Withheld};
use aptix_model::tools::past::{Batches, LISTED, PastBatch, PastFile};
use aptix_model::tools::result::Stored;
use aptix_model::tools::result::tool_result::DIFF_BYTES;

use crate::live::IsOver;
use crate::live::past_batch::past_batch;
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::choices::ReportLocal;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::present::id_prefix::IdPrefix;
use crate::present::kept::find;
use crate::present::log::{Query, Row, log};
use crate::present::past::{Past, past};
use crate::present::view::{BatchView, Subject};
use crate::workspace::keep::history::entries::{self, Entry};
use crate::workspace::keep::history::past_file::{self, Kept};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::resolve::resolve_to_read;
use crate::workspace::roots::workspace::Workspace;

/// The history, for one caller.
#[derive(Clone, Copy)]
pub(super) struct PastBatches<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) policy: &'a Policy,
    pub(super) is_over: IsOver<'a>,
}

impl PastBatches<'_> {
    /// Lists the newest batches.
    ///
    /// # Errors
    /// When the history cannot be read, or is not for this caller.
    pub(super) fn list(&self, most: usize, path: Option<&str>) -> Result<Batches, Failure> {
        self.check_reported()?;
        let log = log(self.workspace, Query { most: Some(most), path, ..Query::default() })?;
        Ok(Batches { success: true, batches: log.batches.into_iter().map(row).collect() })
    }

    /// Finds a batch, or a part of one, by an id or its beginning.
    ///
    /// # Errors
    /// When there is none or several, a file of it is one that `read_file` does not show, or the history is not for this caller.
    pub(super) fn find(&self, id: &str) -> Result<Past, Failure> {
        self.check_reported()?;
        let id: IdPrefix =
            id.parse().map_err(|_| Failure::new(Reason::InvalidRequest, "the id is none").hint(LISTED))?;
        let (entry, named) = find(self.workspace, &id, LISTED)?;
        let mut past = past(self.workspace, &entry).named(named);
        self.check_shown(&entry, &past)?;
        self.check_told(&entry, &past)?;
        if past.report.diff.len() > DIFF_BYTES {
            past.report.diff.clear();
            past.report.diff_omitted = true;
        }
        Ok(past)
    }

    /// A batch as its record is shown.
    pub(super) fn view<'p>(&self, past: &'p Past) -> BatchView<'p>
    where
        Self: 'p,
    {
        let paths = PathStyle::among(self.workspace.roots().len());
        let stored = Stored { id: past.id, state: past.report.outcome.into(), ids: Cow::Borrowed(&past.ids) };
        BatchView {
            paths,
            root: None,
            stored: Some(stored),
            is_record: true,
            begins: past.begins,
            ..BatchView::of(Subject::Kept(&past.summary), Ok(Some(&past.report)))
        }
    }

    /// Refuses to tell a server of batches that a person's policy does not report.
    fn check_reported(&self) -> Result<(), Failure> {
        if self.policy.caller != Caller::Server || self.policy.report_local == ReportLocal::On {
            return Ok(());
        }
        let message =
            "the policy of the workstation reports no batches of its own to servers, and the history has them";
        Err(Failure::new(Reason::PolicyDenied, message)
            .detail(Detail::Withheld)
            .hint("ask a person at the workstation"))
    }

    /// Refuses to show a server a file of which it would not be told in the batch's report.
    fn check_told(&self, entry: &Entry, past: &Past) -> Result<(), Failure> {
        if self.policy.caller != Caller::Server {
            return Ok(());
        }
        let told = past_batch(self.workspace, self.policy, entry, self.is_over)?;
        for file in told.iter().flat_map(|told| &told.described.report.files) {
            let is_shown = past.report.files.iter().any(|shown| {
                shown.path == file.path || shown.renamed_to.as_ref().is_some_and(|path| *path == file.path)
            });
            if let Some(why) = file.withheld.filter(|_| is_shown) {
                let disclosure = Disclosure::new(self.workspace, self.policy);
                return Err(Failure { path: Some(file.path.clone()), ..disclosure.not_read(why) });
            }
        }
        Ok(())
    }

    /// Refuses to show files that the caller may not read, as they are and as they were before and after, and those of other roots.
    fn check_shown(&self, entry: &Entry, past: &Past) -> Result<(), Failure> {
        let mut disclosure = Disclosure::new(self.workspace, self.policy);
        let mut listings = Listings::default();
        let kept = entries::kept(entry).unwrap_or_default();
        for shown in &past.report.files {
            let is_shown = |file: &past_file::PastFile| file.names(self.workspace, &file.path).0 == shown.path;
            let known = entry.files.iter().position(is_shown);
            if shown.doc_path.is_empty() || (known.is_none() && shown.status != FileStatus::Unchanged) {
                let hint = "ask for the parts of the batch that are in this one, by their ids, or ask the user";
                return Err(elsewhere(hint));
            }
            // A file of which passages are kept never began as a private key does.
            let heads = match known.and_then(|index| kept.get(index)) {
                Some(Kept::Images(images)) => [images.before.as_deref(), images.after.as_deref()],
                Some(Kept::Passages(_)) | None => [None, None],
            };
            let heads: Vec<_> =
                heads.into_iter().flatten().map(|head| head.get(..KEY_HEAD_BYTES).unwrap_or(head)).collect();
            for path in [Some(&shown.path), shown.renamed_to.as_ref()].into_iter().flatten() {
                let target = WorkspacePath::new(path).map(ValidTarget::Path);
                let place = target.ok().and_then(|to| resolve_to_read(self.workspace, &mut listings, &to).ok());
                let mut why = |head| match &place {
                    Some(place) => disclosure.withheld(place, Inside { names: 1, head }),
                    None => Some(Withheld::Unknown),
                };
                if let Some(why) = heads.iter().copied().chain([&[][..]]).find_map(&mut why) {
                    return Err(Failure { path: Some(path.clone()), ..disclosure.not_read(why) });
                }
            }
        }
        Ok(())
    }
}

fn row(row: Row) -> PastBatch {
    // A file of another root has no key, and a path of this machine.
    let files = row.files.into_iter().filter(|file| file.doc_path.is_some());
    let files = files.map(|file| PastFile { path: file.path, status: file.status, renamed_to: file.renamed_to });
    PastBatch {
        batch_id: row.batch_id,
        batch_label: row.batch_label,
        applied_unix_ms: row.applied_unix_ms,
        files: files.collect(),
        undoes: row.undoes,
        undone_by: row.undone_by,
        can_be_undone: row.can_be_undone,
    }
}

/// The refusal of a batch that has files in a root which is not open.
pub(crate) fn elsewhere(hint: &str) -> Failure {
    let message = "the batch has files in a directory that is not served to this connection";
    Failure::new(Reason::PolicyDenied, message).hint(hint)
}
