//! Applies one batch to a workspace: validate, resolve, read, plan, ask, commit, report.
//!
//! The command line and the agent share it; neither has another way to a file.

use std::collections::HashMap;

use aptix_engine::correct::correct;
use aptix_engine::file_plan::FilePlan;
use aptix_engine::plan::{self, BatchPlan, Clipboards, Observed, Settings};
use aptix_engine::validate::{self, ValidBatch, ValidTarget};
use aptix_model::batch::{Batch, FileEdit, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::{Failure, NextAction};
use aptix_model::id::BatchId;
use aptix_model::limits::NEXT_ACTION_BYTES;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, FileStatus, Outcome, Report, Warning};

use crate::policy::{Access, Deletions, Policy, Recovery, Several};
use crate::proposal::{Ask, Decision, Need, Proposal};
use crate::workspace::Workspace;
use crate::workspace::change::{Becomes, Change, Content};
use crate::workspace::clipboards::{self, Taken};
use crate::workspace::git_dir;
use crate::workspace::history::Reversal;
use crate::workspace::listing::Listings;
use crate::workspace::resolve::{self, Place, Same};
use crate::workspace::snapshot::{self, Attributes, Original, ReadError};
use crate::workspace::transaction::{self, CommitError, Loss, Notice, Receipt, Terms};

/// How a batch is to be applied.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// What the person lets batches do.
    pub policy: &'a Policy,
    /// Whose turn it came from; for the log.
    pub origin: &'a Origin,
    /// Bytes of diff that the report may carry.
    pub diff_bytes: usize,
    /// What happens once the batch is planned.
    pub mode: Mode<'a>,
}

/// What happens once a batch is planned.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// Nothing: the report says what would.
    DryRun,
    /// It is committed.
    Commit,
    /// It is committed, and known by this id from then on.
    CommitNamed {
        /// The id.
        batch: BatchId,
    },
    /// It is committed, and in the same step the outbox gets its receipt and its new contents.
    CommitWithReceipt {
        /// The batch's id at the server.
        batch: BatchId,
        /// Puts the report into the bytes that will be sent.
        encode: &'a dyn Fn(&Report) -> Vec<u8>,
    },
}

/// A batch that was not applied; nothing has changed unless a failure says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Everything that is known to be wrong, never empty.
    pub failures: Vec<Failure>,
}

impl Refusal {
    /// Whether the system failed, rather than the batch being wrong.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        self.failures.iter().any(|failure| {
            matches!(
                failure.reason,
                Reason::DirectoryCreateFailed
                    | Reason::Internal
                    | Reason::NeedsOperator
                    | Reason::ReadFailed
                    | Reason::ResourceExhausted
                    | Reason::WorkspaceBusy
                    | Reason::WriteFailed
            )
        })
    }
}

impl From<Vec<Failure>> for Refusal {
    fn from(failures: Vec<Failure>) -> Self {
        Self { failures }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failures: vec![failure] }
    }
}

/// Applies a batch, all of it or nothing. `confirm` is called once, with the whole proposal, before anything is written; in
/// a dry run as well, where it asks nobody and refuses what the run would be refused for.
///
/// # Errors
/// Everything that keeps the batch from being applied.
pub fn apply(
    workspace: &Workspace,
    batch: &Batch,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let outcome = attempt(workspace, batch, order, confirm);
    if !matches!(order.mode, Mode::DryRun) {
        log_created(batch, order.origin, &outcome);
    }
    outcome
}

fn attempt(
    workspace: &Workspace,
    batch: &Batch,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let policy = order.policy;
    policy.may_write()?;
    refuse_removed(workspace)?;
    let valid = validate::validate(batch, &policy.limits)?;
    let found = find(workspace, &valid, policy)?;
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let session = order.origin.session_id.as_deref().filter(|_| uses_clipboards(batch));
    let clipboards = session.map(|session| clipboards::read(workspace, session)).transpose();
    let clipboards = clipboards.map_err(|error| error.failure())?.unwrap_or_default();
    let settings = settings(policy, &clipboards);
    let plan = plan::plan(&valid, &observed, &settings)
        .map_err(|failures| with_next_action(failures, batch, &observed, &settings))?;
    let taken = session.map(|session| clipboards::taken(workspace, session, &clipboards, plan.clipboards.clone()));
    let taken = taken.transpose().map_err(|error| error.failure())?.flatten();
    carry_out(workspace, Planned { batch, found: &found, plan: &plan, undoes: None, taken }, order, confirm)
}

/// Refuses everything in a root that is no more.
pub(crate) fn refuse_removed(workspace: &Workspace) -> Result<(), Failure> {
    let Some(root) = workspace.roots().iter().find(|root| root.is_removed()) else { return Ok(()) };
    let message = format!("the root {} was removed after it was opened", root.path().display());
    let hint = "bring the directory back, then start the program again; until then nothing can be written there";
    Err(Failure::new(Reason::NeedsOperator, message).hint(hint))
}

/// A batch that is planned.
pub(crate) struct Planned<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) found: &'a [Found],
    pub(crate) plan: &'a BatchPlan<'a>,
    /// Which entry of the history it undoes.
    pub(crate) undoes: Option<Reversal>,
    /// What it leaves on the clipboards of its session.
    pub(crate) taken: Option<Taken>,
}

/// Does what is planned, once `confirm` says so.
pub(crate) fn carry_out(
    workspace: &Workspace,
    planned: Planned<'_>,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let Planned { batch, found, plan, undoes, taken } = planned;
    let policy = order.policy;
    let mut report = Report {
        outcome: Outcome::Applied,
        files: plan.files.iter().zip(found).map(|(plan, found)| report_file(plan, found)).collect(),
        failures: Vec::new(),
        diff: String::new(),
        diff_omitted: false,
    };
    add_diff(&mut report, plan, order.diff_bytes);
    let (changed, changes): (Vec<usize>, Vec<Change<'_>>) = (plan.files.iter().zip(found).zip(&report.files))
        .enumerate()
        .filter_map(|(index, ((plan, found), report))| Some((index, change(found, plan, report)?)))
        .unzip();
    let told = |error: &CommitError| tell(error, &changed, batch);
    let (name, receipt) = match order.mode {
        Mode::DryRun | Mode::Commit => (None, None),
        Mode::CommitNamed { batch } => (Some(batch), None),
        Mode::CommitWithReceipt { batch, encode } => (None, Some(Receipt { batch, bytes: encode(&report) })),
    };
    let needs = plan.files.iter().zip(found).map(|(plan, found)| need(policy, plan, found)).collect();
    let places = found.iter().map(|file| (&file.place, file.other.as_ref().map(|other| &other.place))).collect();
    let proposal = Proposal { batch, plan, needs, reports: &report.files, places, workspace, changes: &changes };
    confirm(&proposal).hold(|| proposal.digest())?;
    if matches!(order.mode, Mode::DryRun) {
        transaction::check(workspace, &changes).map_err(|error| told(&error))?;
        return Ok(report);
    }
    let terms =
        Terms { name, receipt: receipt.as_ref(), clipboards: taken.as_ref(), undoes, retention: policy.retention };
    let notices = transaction::commit(workspace, &changes, terms).map_err(|error| told(&error))?;
    for notice in notices {
        add_notice(&mut report, &changed, notice);
    }
    Ok(report)
}

/// Whether anything is to be taken up by a clipboard, or put down from one.
fn uses_clipboards(batch: &Batch) -> bool {
    batch.files.iter().any(|file| match &file.edit {
        FileEdit::SearchPatch(patch) => {
            patch.changes.iter().any(|change| change.to_clipboard.is_some() || change.from_clipboard.is_some())
        }
        _ => false,
    })
}

/// Failures to plan a batch, the first one with the document corrected, if that can be done.
fn with_next_action(
    mut failures: Vec<Failure>,
    batch: &Batch,
    observed: &[Observed<'_>],
    settings: &Settings<'_>,
) -> Vec<Failure> {
    let action = correct(batch, observed, settings, &failures).and_then(|batch| {
        let written = |dialect: Dialect| Some((dialect, documents::write(&batch, dialect)?));
        let (dialect, document) = Dialect::ALL.into_iter().find_map(written)?;
        Some(NextAction { dialect: dialect.name().to_owned(), document })
    });
    if let Some(first) = failures.first_mut() {
        first.next_action = action.filter(|action| action.document.len() <= NEXT_ACTION_BYTES);
    }
    failures
}

/// Plans a batch for the files as they are, in a session without clipboards, and shows the plan to `see`. Nothing is
/// written.
///
/// # Errors
/// Everything that keeps the batch from being planned.
pub fn look<R>(
    workspace: &Workspace,
    batch: &Batch,
    policy: &Policy,
    see: impl FnOnce(&BatchPlan<'_>) -> R,
) -> Result<R, Refusal> {
    let valid = validate::validate(batch, &policy.limits)?;
    let found = find(workspace, &valid, policy)?;
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    Ok(see(&plan::plan(&valid, &observed, &settings(policy, &Clipboards::new()))?))
}

const fn settings<'c>(policy: &Policy, clipboards: &'c Clipboards) -> Settings<'c> {
    Settings {
        limits: policy.limits,
        recovers: matches!(policy.recovery, Recovery::On),
        refuses_several: matches!(policy.once_with_several, Several::Refuse),
        clipboards,
    }
}

/// What was found for one file patch, or at the other path that it names.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) original: Option<Original>,
    pub(crate) other: Option<Box<Self>>,
    /// What a file in this place gets besides its bytes, where there is none yet.
    pub(crate) attributes: Option<Attributes>,
}

impl Found {
    pub(crate) fn observed(&self) -> Observed<'_> {
        Observed {
            path: self.place.path.clone(),
            doc_path: self.place.doc_path.clone(),
            content: self.original.as_ref().map(|original| original.bytes.as_slice()),
            digest: None,
            is_executable: self.original.as_ref().is_some_and(Original::is_executable),
            other: self.other.as_ref().map(|other| Box::new(other.observed())),
        }
    }
}

/// Resolves and reads every file of a batch.
fn find(workspace: &Workspace, batch: &ValidBatch<'_>, policy: &Policy) -> Result<Vec<Found>, Refusal> {
    let mut search = Search::new(workspace, policy);
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for (index, (reads, patch)) in plan::reads(batch).zip(&batch.batch.files).enumerate() {
        let other_is = if patch.edit.moved_to().is_some() { Role::Changed } else { Role::Read };
        let target_is = if patch.edit.edits_no_bytes() { Role::Whole } else { Role::Changed };
        let both = search.find(index, reads.target, target_is).and_then(|target| {
            let named = patch.edit.moved_to().or(patch.edit.copied_from()).unwrap_or_default();
            let other = reads
                .other
                .map(|other| search.find(index, other, other_is).map_err(|failure| other_is.told_of(named, failure)));
            let other = other.transpose()?;
            let leaves = |other: &Found| other.place.root() != target.place.root();
            if other_is == Role::Changed && other.as_ref().is_some_and(leaves) {
                let message = "the file is to be renamed from one root into another";
                return Err(Failure::new(Reason::PatchUnsupported, message)
                    .hint("create the file in the other root, and delete it in this one"));
            }
            Ok(Found { other: other.map(Box::new), ..target })
        });
        match both {
            Ok(file) => found.push(file),
            Err(failure) => {
                let is_full = failure.detail == Some(Detail::Files);
                failures.push(failure.file(index, patch.target.as_str()));
                if is_full {
                    break;
                }
            }
        }
    }
    if !failures.is_empty() {
        return Err(failures.into());
    }
    let written = found.iter().zip(&batch.batch.files).enumerate().flat_map(|(index, (found, patch))| {
        let stays = patch.edit != FileEdit::DeleteFile && patch.edit.moved_to().is_none();
        let to = found.other.as_ref().filter(|_| patch.edit.moved_to().is_some());
        let places = stays.then_some(&found.place).into_iter().chain(to.map(|to| &to.place));
        places.map(move |place| (index, place))
    });
    git_dir::refuse_made(workspace, written).map_err(|(index, error)| {
        let target = batch.batch.files.get(index).map_or("", |file| file.target.as_str());
        error.failure().file(index, target)
    })?;
    Ok(found)
}

/// What a batch does with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It may come to be something else.
    Changed,
    /// It goes, or stays what it is under another name.
    Whole,
    /// Its content is taken.
    Read,
}

impl Role {
    /// A failure about the other path that a file patch names, in this role: it stands with the file patch, and names that
    /// path.
    fn told_of(self, path: &str, failure: Failure) -> Failure {
        let is = match self {
            Self::Changed | Self::Whole => "where it is renamed to",
            Self::Read => "what it is copied from",
        };
        Failure { message: format!("{is}, {path:?}: {}", failure.message), ..failure }
    }
}

/// The files of a batch that were found so far, and how many more bytes may be read.
pub(crate) struct Search<'w> {
    workspace: &'w Workspace,
    policy: &'w Policy,
    listings: Listings,
    seen: HashMap<Same, usize>,
    left: u64,
}

impl<'w> Search<'w> {
    pub(crate) fn new(workspace: &'w Workspace, policy: &'w Policy) -> Self {
        let left = policy.limits.batch_bytes;
        Self { workspace, policy, listings: Listings::default(), seen: HashMap::new(), left }
    }

    fn find(&mut self, index: usize, target: &ValidTarget, role: Role) -> Result<Found, Failure> {
        let place = resolve::resolve(self.workspace, &mut self.listings, target).map_err(|error| error.failure())?;
        self.look(index, place, role)
    }

    /// As for a file patch that names it, for a path in a root whose position is known; the file may be as large as a
    /// batch, since what it was before may have been.
    pub(crate) fn find_in(&mut self, index: usize, root: usize, path: &WorkspacePath) -> Result<Found, Failure> {
        let place = resolve::resolve_in(self.workspace, &mut self.listings, root, path);
        self.look(index, place.map_err(|error| error.failure())?, Role::Whole)
    }

    fn look(&mut self, index: usize, place: Place, role: Role) -> Result<Found, Failure> {
        self.policy.open(place.named(&place.real())).map_err(|denial| denial.failure())?;
        let limits = &self.policy.limits;
        if role != Role::Read
            && let Some(other) = place.same_file_as(&mut self.seen, index)
        {
            let message = format!("files[{other}] leads to the same file");
            return Err(Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::DuplicateFile)
                .hint("put all changes of one file into one file patch"));
        }
        let limit = if role == Role::Whole { self.left } else { limits.file_bytes.min(self.left) };
        match snapshot::read(self.workspace, &mut self.listings, &place, limit) {
            Ok(original) => {
                self.left -= original.as_ref().map_or(0, |original| original.bytes.len() as u64);
                Ok(Found { place, original, other: None, attributes: None })
            }
            Err(ReadError::TooLarge { limit, .. }) if role == Role::Whole || limit < limits.file_bytes => {
                Err(ReadError::BatchTooLarge { limit: limits.batch_bytes }.failure())
            }
            Err(error) => Err(error.failure()),
        }
    }
}

/// Whether a person has to agree to what becomes of a file, wherever it comes from or goes to. One that stays as it is
/// concerns nobody.
fn need(policy: &Policy, plan: &FilePlan<'_>, found: &Found) -> Need {
    if plan.status == FileStatus::Unchanged {
        return Need::Nothing;
    }
    let other = found.other.as_ref().map(|other| &other.place);
    let places = || std::iter::once(&found.place).chain(other);
    let about =
        |place: &Place| other.filter(|other| std::ptr::eq(*other, place)).map(|_| place.path.as_str().to_owned());
    let access: Vec<_> = places().map(|place| policy.access(place.named(&place.real()))).collect();
    let listed = places().zip(&access).find_map(|(place, access)| match access {
        Access::Asked(listed) => Some((place, listed)),
        Access::Allowed | Access::Usual => None,
    });
    if let Some((place, listed)) = listed {
        return Need::Ask { ask: Ask::Listed(listed.clone()), other: about(place) };
    }
    if access.iter().all(|access| *access == Access::Allowed) {
        return Need::Nothing;
    }
    if let Some(place) = places().find(|place| place.sensitive) {
        return Need::Ask { ask: Ask::Sensitive, other: about(place) };
    }
    if let Some(place) = places().find(|place| place.is_new_dot_name()) {
        return Need::Ask { ask: Ask::NewDotName, other: about(place) };
    }
    let is_asked_about = plan.status == FileStatus::Deleted && policy.deletions == Deletions::Ask;
    if is_asked_about { Need::Ask { ask: Ask::Deletion, other: None } } else { Need::Usual }
}

/// What a plan does to the file that was found for it.
fn change<'a>(found: &'a Found, plan: &'a FilePlan<'a>, report: &FileReport) -> Option<Change<'a>> {
    let content = report.written.map(|written| Content {
        digest: written.sha256,
        executable: plan.executable,
        attributes: found.attributes.as_ref(),
        bytes: plan,
    });
    let becomes = match (content, plan.moved_to, &found.other) {
        (None, ..) => Becomes::Nothing,
        (Some(content), Some(_), Some(other)) => Becomes::Moved(&other.place, content),
        (Some(content), ..) => Becomes::Content(content),
    };
    let change =
        Change { place: &found.place, original: found.original.as_ref(), before: report.sha256_before, becomes };
    Some(change).filter(|change| plan.status != FileStatus::Unchanged && !change.is_idle())
}

fn report_file(plan: &FilePlan<'_>, found: &Found) -> FileReport {
    let mut report = plan.report(&plan.content());
    let is_replaced = matches!(plan.status, FileStatus::Modified | FileStatus::Renamed);
    let Some(original) = found.original.as_ref().filter(|_| is_replaced) else { return report };
    let links = original.links;
    if links > 1 {
        let message = format!("the file had {links} names; only this one has the new content");
        report.warnings.push(Warning { code: "HARD_LINK_BROKEN".to_owned(), message });
    }
    if original.is_setuid() {
        let message = "the file ran with the rights of its owner or group; with new content it does not".to_owned();
        report.warnings.push(Warning { code: "SETUID_CLEARED".to_owned(), message });
    }
    report
}

fn add_diff(report: &mut Report, plan: &BatchPlan<'_>, limit: usize) {
    for file in &plan.files {
        let room = limit - report.diff.len();
        let diff = file.diff(room);
        // Bytes that are no UTF-8 take more room as text.
        match diff.as_deref().map(String::from_utf8_lossy).filter(|diff| diff.len() <= room) {
            Some(diff) => report.diff.push_str(&diff),
            None => {
                report.diff.clear();
                report.diff_omitted = true;
                return;
            }
        }
    }
}

fn add_notice(report: &mut Report, changed: &[usize], notice: Notice) {
    let (change, warning) = match notice {
        Notice::Kept { change, name } => {
            let message =
                format!("somebody wrote the old file while it was being replaced; their version is in {name}");
            (change, Warning { code: "LATE_WRITE".to_owned(), message })
        }
        Notice::Overwritten { change } => {
            let message = "somebody wrote the file right after it was published; their version stands".to_owned();
            (change, Warning { code: "WRITTEN_AFTERWARDS".to_owned(), message })
        }
        Notice::NotUndoable => {
            let message = "what was in the files of the batch is more than `bytes` of `[history]` in the policy file lets \
                           be kept, so that `aptix undo` cannot take it back";
            (0, Warning { code: "NOT_UNDOABLE".to_owned(), message: message.to_owned() })
        }
        Notice::Lost { change, loss: Loss::Owner } => {
            let message = "the system does not let the new file have the owner and group of the old one".to_owned();
            (change, Warning { code: "OWNER_CHANGED".to_owned(), message })
        }
        Notice::Lost { change, loss: Loss::Attribute(name) } => {
            let message = format!("the system does not let the new file have the attribute {name:?} of the old one");
            (change, Warning { code: "ATTRIBUTE_LOST".to_owned(), message })
        }
    };
    if let Some(file) = changed.get(change).and_then(|index| report.files.get_mut(*index)) {
        file.warnings.push(warning);
    }
}

fn tell(error: &CommitError, changed: &[usize], batch: &Batch) -> Refusal {
    let file = error.change().and_then(|change| changed.get(change)).copied();
    let failure = error.failure();
    match file.and_then(|index| Some((index, batch.files.get(index)?))) {
        Some((index, file)) => failure.file(index, file.target.as_str()).into(),
        None => failure.into(),
    }
}

/// Logs every created file, done or refused (TUL-004 6.2).
fn log_created(batch: &Batch, origin: &Origin, outcome: &Result<Report, Refusal>) {
    for (index, file) in batch.files.iter().enumerate() {
        let FileEdit::CreateFile(create) = &file.edit else { continue };
        let done = outcome.as_ref().ok().and_then(|report| report.files.get(index)?.written);
        let refused = outcome.as_ref().err().and_then(|refusal| {
            let mut failures = refusal.failures.iter();
            failures.clone().find(|failure| failure.file_index == Some(index)).or_else(|| failures.next())
        });
        tracing::info!(
            name: "Tool.CreateFile.Executed",
            Event = "Tool.CreateFile.Executed",
            SessionId = origin.session_id,
            ConversationId = origin.conversation_id,
            TurnId = origin.turn_id,
            Path = ?file.target.as_str(),
            Overwrite = create.overwrite,
            Success = outcome.is_ok(),
            ErrorCode = refused.map(|failure| failure.reason.code()),
            SizeBytes = done.map(|written| written.size_bytes),
            Hash = done.map(|written| tracing::field::display(written.sha256)),
        );
    }
}
