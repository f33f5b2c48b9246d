//! Applies one batch to a workspace: validate, resolve, read, plan, ask, commit, report.
//!
//! The command line and the agent share it; neither has another way to a file.

mod find;
mod names;
mod near_path;
mod need;
pub mod path_style;
pub mod proposal;
mod quoted;
mod reported;
pub(crate) mod subject;
mod withheld;

use aptix_engine::correct::correct;
use aptix_engine::file_plan::FilePlan;
use aptix_engine::plan::{self, BatchPlan};
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate;
use aptix_model::batch::{Batch, FileEdit, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::{Failure, NextAction};
use aptix_model::id::BatchId;
use aptix_model::limits::NEXT_ACTION_BYTES;
use aptix_model::reason::Reason;
use aptix_model::report::{FileReport, FileStatus, Outcome, Report, Withheld};

use self::find::find;
pub(crate) use self::find::{Found, Search};
use self::need::need;
use self::quoted::find_quoted;
pub use self::withheld::Hidden;
use crate::apply::proposal::{Decision, Proposal};
use crate::policy::Policy;
use crate::policy::choices::{Recovery, Several};
use crate::workspace::Workspace;
use crate::workspace::commit::change::{Becomes, Change, Content};
use crate::workspace::commit::transaction::{self, CommitError, Receipt, Terms};
use crate::workspace::keep::clipboards::{self, Taken};
use crate::workspace::keep::history::Reversal;

/// Failures that are logged where they are not told.
const LOGGED: usize = 20;

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
        /// Asks a person whether the batch may be compared with files that are withheld from its author.
        compare: &'a dyn Fn(&[Hidden<'_>]) -> bool,
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

impl Mode<'_> {
    /// Whether a person lets edits be compared with files that are withheld from their author. Where there is nobody to
    /// be asked, none does.
    fn may_compare(self, hidden: &[Hidden<'_>]) -> bool {
        match self {
            Self::CommitWithReceipt { compare, .. } => compare(hidden),
            Self::DryRun | Self::Commit | Self::CommitNamed { .. } => false,
        }
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
    let caller = policy.caller;
    let settled = names::settle(workspace, batch)?;
    let batch = settled.as_ref();
    let valid = validate::validate(batch, &policy.limits)?;
    let mut found = find(workspace, &valid, policy)?;
    withheld::refuse_sources(batch, &found, caller)?;
    let session = order.origin.session_id.as_deref().filter(|_| uses_clipboards(batch));
    let session = session.map(|id| caller.session(id));
    let session = session.as_deref();
    let clipboards = session.map(|session| clipboards::read(workspace, session)).transpose();
    let clipboards = clipboards.map_err(|error| error.failure())?.unwrap_or_default();
    let settings = settings(policy, &clipboards);
    let mut quoted = find_quoted(workspace, &valid, &found, policy)?;
    let mut hidden = withheld::hidden(batch, &found);
    hidden.extend(quoted::hidden(&valid, &quoted, &found));
    if !hidden.is_empty() {
        withheld::check_rest(batch, &found, &hidden, &settings)?;
        if !order.mode.may_compare(&hidden) {
            return Err(withheld::not_compared(&hidden, caller).into());
        }
        found.iter_mut().for_each(Found::open_if_approved);
        quoted::open_if_approved(&mut quoted);
        hidden.retain(|hidden| hidden.why != Withheld::Unapproved);
    }
    let not_applied = |failures: Vec<Failure>| {
        let found: Vec<_> = failures.iter().take(LOGGED).map(ToString::to_string).collect();
        tracing::info!(Failures = ?found, "edits of files that are withheld from their author were not applied; why is not told");
        Refusal::from(withheld::not_compared(&hidden, caller))
    };
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let mut valid = valid;
    valid.blind(|index| found.get(index).is_some_and(|found| found.withheld.is_some()));
    let quotable = quoted::observed(&quoted, &found);
    let planned = plan::plan_quoting(&valid, &observed, &quotable, &settings);
    let plan = planned.map_err(|failures| match hidden.is_empty() {
        true => {
            let failures = with_next_action(failures, batch, &observed, &settings);
            let failures = near_path::with_near_paths(failures, workspace, policy, &valid, &found);
            Refusal::from(withheld::without_content(failures, &found))
        }
        false => not_applied(failures),
    })?;
    let taken = session.map(|session| clipboards::taken(workspace, session, &clipboards, plan.clipboards.clone()));
    let taken = taken.transpose().map_err(|error| error.failure())?.flatten();
    let planned = Planned { batch, found: &found, plan: &plan, undoes: None, taken, hidden: &hidden };
    let mut is_decided_against = false;
    let outcome = carry_out(workspace, planned, order, &mut |proposal| {
        let decision = confirm(proposal);
        is_decided_against |= match &decision {
            Decision::Refuse(_) => true,
            Decision::Approved(digest) => *digest != proposal.digest(),
            Decision::Apply => false,
        };
        decision
    });
    outcome.map_err(|refusal| match is_decided_against && !hidden.is_empty() {
        true => not_applied(refusal.failures),
        false => Refusal::from(withheld::without_content(refusal.failures, &found)),
    })
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
    pub(crate) undoes: Option<&'a Reversal>,
    /// What it leaves on the clipboards of its session.
    pub(crate) taken: Option<Taken>,
    /// The withheld files that its edits were compared with.
    pub(crate) hidden: &'a [Hidden<'a>],
}

/// Does what is planned, once `confirm` says so.
pub(crate) fn carry_out(
    workspace: &Workspace,
    planned: Planned<'_>,
    order: Order<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let Planned { batch, found, plan, undoes, taken, hidden } = planned;
    let policy = order.policy;
    let full: Vec<_> = plan.files.iter().zip(found).map(|(plan, found)| reported::full(plan, found)).collect();
    let told_files =
        full.iter().zip(&batch.files).zip(found).map(|((full, patch), found)| withheld::told(full, patch, found));
    let mut report = Report {
        outcome: Outcome::Applied,
        files: told_files.collect(),
        failures: Vec::new(),
        warnings: plan.warnings.clone(),
        diff: String::new(),
        diff_omitted: false,
    };
    reported::add_diff(&mut report, plan, order.diff_bytes);
    let (changed, changes): (Vec<usize>, Vec<Change<'_>>) = (plan.files.iter().zip(found).zip(&full))
        .enumerate()
        .filter_map(|(index, ((plan, found), report))| Some((index, change(found, plan, report)?)))
        .unzip();
    let told = |error: &CommitError| tell(error, &changed, batch);
    let (name, receipt) = match order.mode {
        Mode::DryRun | Mode::Commit => (None, None),
        Mode::CommitNamed { batch } => (Some(batch), None),
        Mode::CommitWithReceipt { batch, encode, .. } => (None, Some(Receipt { batch, bytes: encode(&report) })),
    };
    let needs = plan.files.iter().zip(found).enumerate().map(|(index, (plan, found))| {
        let is_compared = hidden.iter().any(|hidden| hidden.file == index);
        need(policy, plan, found, is_compared)
    });
    let mut needs: Vec<_> = needs.collect();
    need::ask_about_hard_links(policy, &plan.files, found, &mut needs);
    let places = found.iter().map(|file| (&file.place, file.other.as_ref().map(|other| &other.place))).collect();
    let proposal = Proposal { batch, plan, needs, reports: &full, places, workspace, changes: &changes };
    confirm(&proposal).hold(|| proposal.digest())?;
    if matches!(order.mode, Mode::DryRun) {
        transaction::check(workspace, &changes).map_err(|error| told(&error))?;
        return Ok(report);
    }
    let terms =
        Terms { name, receipt: receipt.as_ref(), clipboards: taken.as_ref(), undoes, retention: policy.retention };
    let notices = transaction::commit(workspace, &changes, terms).map_err(|error| told(&error))?;
    for notice in notices {
        reported::add_notice(&mut report, &changed, notice);
    }
    if matches!(order.mode, Mode::CommitWithReceipt { .. }) {
        add_displaced_writes(workspace, &mut report);
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
    let settled = names::settle(workspace, batch)?;
    let batch = settled.as_ref();
    let valid = validate::validate(batch, &policy.limits)?;
    let found = find(workspace, &valid, policy)?;
    withheld::refuse_sources(batch, &found, policy.caller)?;
    let quoted = find_quoted(workspace, &valid, &found, policy)?;
    let mut hidden = withheld::hidden(batch, &found);
    hidden.extend(quoted::hidden(&valid, &quoted, &found));
    if !hidden.is_empty() {
        return Err(withheld::not_compared(&hidden, policy.caller).into());
    }
    let observed: Vec<_> = found.iter().map(Found::observed).collect();
    let mut valid = valid;
    valid.blind(|index| found.get(index).is_some_and(|found| found.withheld.is_some()));
    let quotable = quoted::observed(&quoted, &found);
    let planned = plan::plan_quoting(&valid, &observed, &quotable, &settings(policy, &Clipboards::new()));
    let told = |failures| {
        let failures = near_path::with_near_paths(failures, workspace, policy, &valid, &found);
        withheld::without_content(failures, &found)
    };
    Ok(see(&planned.map_err(told)?))
}

const fn settings<'c>(policy: &Policy, clipboards: &'c Clipboards) -> Settings<'c> {
    Settings {
        limits: policy.limits,
        recovers: matches!(policy.recovery, Recovery::On),
        refuses_several: matches!(policy.once_with_several, Several::Refuse),
        suspicion: policy.suspect_content,
        clipboards,
    }
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
    // A withheld file is written even if that changes nothing: whether it does must not be seen.
    let is_blind = found.withheld.is_some() && found.original.is_some();
    Some(change).filter(|change| is_blind || (plan.status != FileStatus::Unchanged && !change.is_idle()))
}

/// Names earlier displaced writes in the report that goes to a server: those to files that the batch changes, since the report
/// says nothing of other files. All of them are in the agent's own log.
fn add_displaced_writes(workspace: &Workspace, report: &mut Report) {
    let writes = workspace.unnamed_displaced_writes();
    let writes = writes.inspect_err(|error| tracing::warn!(%error, "displaced writes cannot be listed"));
    for write in writes.unwrap_or_default() {
        let path = write.path_in(workspace);
        let warning = write.warning_elsewhere(workspace);
        match report.files.iter_mut().find(|file| file.path == path) {
            Some(file) => file.warnings.push(warning),
            None => tracing::warn!(Code = warning.code, "{}", write.warning(workspace).message),
        }
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
