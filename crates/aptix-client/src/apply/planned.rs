//! Carries out a planned batch: proposes it for a decision, commits it, and reports.

use std::time::UNIX_EPOCH;

use aptix_engine::file_plan::FilePlan;
use aptix_engine::plan::BatchPlan;
use aptix_model::actor::Actor;
use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::record::UnixMillis;
use aptix_model::report::{FileReport, FileStatus, Report};
use aptix_model::state::BatchState;

use super::find::Found;
use super::need;
use super::options::{ApplyOptions, Mode};
use super::per_file::Whole;
use super::proposal::Proposal;
use super::refusal::Refusal;
use super::reported;
use super::withheld::{self, Hidden};
use crate::policy::caller::Caller;
use crate::unsaved::{Unsaved, held_back};
use crate::workspace::commit::change::{Becomes, Change, Content};
use crate::workspace::commit::check::check;
use crate::workspace::commit::commit_error::CommitError;
use crate::workspace::commit::record::Taken;
use crate::workspace::keep::history::entries::Reversal;
use crate::workspace::keep::history::summary::Summary;
use crate::workspace::roots::workspace::Workspace;
use crate::workspace::transaction::{self, CommitOptions, Receipt};

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
    /// The batch that this is what is left of, if it is applied file by file.
    pub(crate) whole: Option<&'a Whole<'a>>,
}

/// Commits what is planned, if `confirm` agrees, which answers whether a person was asked; a dry run only checks it.
///
/// # Errors
/// The decision is no, or the files cannot be written.
pub(crate) fn carry_out(
    workspace: &Workspace,
    planned: Planned<'_>,
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Result<bool, Vec<Failure>>,
) -> Result<Report, Refusal> {
    let Planned { batch, found, plan, undoes, taken, hidden, whole } = planned;
    let policy = options.policy;
    let full: Vec<_> = plan.files.iter().zip(found).map(|(plan, found)| reported::full(plan, found)).collect();
    let files = full.iter().zip(&batch.files).zip(found);
    let files = files.map(|((full, patch), found)| withheld::redacted(full, patch, found)).collect();
    let mut report = Report { warnings: plan.warnings.clone(), ..Report::applied(files) };
    reported::add_diff(&mut report, plan, options.diff_bytes);
    let (changed, changes): (Vec<usize>, Vec<Change<'_>>) = (plan.files.iter().zip(found).zip(&full))
        .enumerate()
        .filter_map(|(index, ((plan, found), report))| Some((index, change(found, plan, report)?)))
        .unzip();
    let needs = need::needs(policy, &plan.files, found, hidden);
    let places = found.iter().map(|file| (&file.place, file.other.as_ref().map(|other| &other.place))).collect();
    let left_out = whole.map_or(0, Whole::refused);
    let (changed, changes) = (&changed, &changes);
    let is_withheld = found.iter().any(|file| file.is_withheld());
    let proposal =
        Proposal { batch, plan, needs, reports: &full, places, workspace, changes, changed, is_withheld, left_out };
    let completed = |report: Report| whole.map_or(report.clone(), |whole| whole.report(report));
    // Encoded before anyone is asked: a report that cannot be sent refuses the batch.
    let mut receipt = receipt(options.mode, None, || completed(report.clone()))?;
    let has_agreed = confirm(&proposal)?;
    let person = options.acting.person.filter(|_| has_agreed);
    if person.is_some() {
        receipt = self::receipt(options.mode, person, || completed(report.clone()))?;
    }
    let refused = |error: CommitError| refusal(&error, changed, batch);
    if options.mode.is_dry_run() {
        check(workspace, changes).map_err(refused)?;
        return Ok(completed(report));
    }
    let mut summary = summary((batch, whole), plan, &full);
    let state = if summary.is_partial { BatchState::Partial } else { BatchState::Applied };
    let now = workspace.disk().now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = UnixMillis(u64::try_from(now).unwrap_or_default());
    summary.keep_steps(&options.acting.steps(person, state, now));
    // Asked once more under the commit lock: an editor may have announced a buffer since.
    let last_check = || refuse_unsaved(workspace, policy.caller, batch, found).map_err(first_failure);
    let name = options.mode.name();
    let commit = CommitOptions {
        last_check: Some(&last_check),
        name,
        prepared: name.filter(|_| options.prepared.is_some()),
        receipt: receipt.as_ref(),
        clipboards: taken.as_ref(),
        undoes,
        summary: Some(&summary),
        retention: policy.retention,
    };
    for notice in transaction::commit(workspace, changes, commit).map_err(refused)? {
        reported::add_notice(&mut report, changed, notice);
    }
    if receipt.is_some() {
        add_displaced_writes(workspace, &mut report);
    }
    Ok(completed(report))
}

/// The receipt of a batch that a server waits for, with the person who agreed to it, if one did.
fn receipt(
    mode: Mode<'_>,
    person: Option<&Actor>,
    report: impl FnOnce() -> Report,
) -> Result<Option<Receipt>, Refusal> {
    let Mode::CommitWithReceipt { batch, encode, .. } = mode else { return Ok(None) };
    let bytes = encode(&report(), person).map_err(|failure| *failure)?;
    Ok(Some(Receipt { batch, bytes }))
}

/// What the history keeps of a batch, or of the one that it is a part of.
fn summary((batch, whole): (&Batch, Option<&Whole<'_>>), plan: &BatchPlan<'_>, full: &[FileReport]) -> Summary {
    let mut summary = match whole {
        None => Summary::of(batch, full, &plan.warnings),
        Some(whole) => Summary::of(whole.batch(), &whole.kept_files(full.to_vec()), &plan.warnings),
    };
    let created = plan.files.iter().map(|plan| plan.executable.filter(|_| plan.base().is_none()));
    for (index, executable) in created.enumerate() {
        let position = whole.map_or(index, |whole| whole.position(index));
        if let Some(file) = summary.files.get_mut(position) {
            file.executable = executable;
        }
    }
    summary
}

/// Refuses the files of a batch that have unsaved buffers, whatever it does with them.
pub(crate) fn refuse_unsaved(
    workspace: &Workspace,
    caller: Caller,
    batch: &Batch,
    found: &[Found],
) -> Result<(), Refusal> {
    let unsaved = Unsaved::against(workspace, caller)?;
    let is_held = |file: &Found| {
        let on_disk = file.original.as_ref().map(|original| original.bytes.as_slice());
        unsaved.at(&file.place, on_disk).is_some()
    };
    let files = found.iter().zip(&batch.files).enumerate();
    let held = files.filter(|(_, (found, _))| is_held(found) || found.other.as_deref().is_some_and(is_held));
    let failures: Vec<_> = held.map(|(index, (_, file))| held_back().file(index, file.target.as_str())).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.into()) }
}

fn first_failure(refusal: Refusal) -> Failure {
    refusal.failures.into_iter().next().unwrap_or_else(held_back)
}

/// Refuses everything where a root was removed.
pub(crate) fn refuse_removed(workspace: &Workspace) -> Result<(), Failure> {
    let Some(root) = workspace.roots().iter().find(|root| root.is_removed()) else { return Ok(()) };
    let message = format!("the root {} was removed after it was opened", root.path().display());
    let hint = "bring the directory back, then start the program again; until then nothing can be written there";
    Err(Failure::new(Reason::NeedsOperator, message).hint(hint))
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

/// Names earlier displaced writes to files of the batch in the report that goes to a server, which is about no other files. All
/// of them are in the agent's own log.
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

/// Why the commit failed, under the name of the file that it failed at.
fn refusal(error: &CommitError, changed: &[usize], batch: &Batch) -> Refusal {
    let file = error.change().and_then(|change| changed.get(change)).copied();
    match file.and_then(|index| Some((index, batch.files.get(index)?))) {
        Some((index, file)) => error.failure().file(index, file.target.as_str()).into(),
        None => error.failure().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aptix_model::documents::parse;

    use super::*;
    use crate::apply::apply;
    use crate::apply::proposal::Decision;
    use crate::policy::Policy;
    use crate::unsaved::Source;
    use crate::unsaved::announced::announce;
    use crate::unsaved::buffers::Buffers;
    use crate::unsaved::protocol::FileName;
    use crate::workspace::fs::disk::SystemDisk;

    /// TUL-002-3.3: a buffer that an editor announces after the batch was planned, and while a person is asked, holds it back;
    /// an editor that crashes meanwhile does not.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn a_buffer_announced_after_the_plan_holds_the_batch_back() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("ws/a.txt");
        std::fs::create_dir(place.path().join("ws")).unwrap();
        std::fs::write(&file, "disk\n").unwrap();
        let spec = format!("ws={}", place.path().join("ws").display()).parse().unwrap();
        let workspace = Workspace::open(&[spec], &place.path().join("state"), Box::new(SystemDisk)).unwrap();
        let buffers: Arc<Buffers> = Arc::default();
        Source::Editors(Arc::clone(&buffers)).set(&workspace);
        let parsed = parse(b"a.txt\n<<<<<<< SEARCH\ndisk\n=======\nnew\n>>>>>>> REPLACE\n", None);
        let batch = parsed.unwrap().batch;
        let policy = Policy::unstated(Caller::Server);
        let name = FileName::Path(file.to_str().unwrap().to_owned());
        let apply_while = |crashes: bool| {
            let mut editor = None;
            apply(&workspace, &batch, ApplyOptions::new(&policy, Mode::Commit), &mut |_| {
                let connected = buffers.editor();
                assert!(announce(&workspace, &connected, &name, Some("typed\n".to_owned())).unwrap());
                editor = Some(connected).filter(|_| !crashes);
                Decision::Apply
            })
        };
        let refusal = apply_while(false).unwrap_err();
        let failure = &refusal.failures[0];
        assert_eq!((failure.reason, failure.path.as_deref()), (Reason::UnsavedBuffer, Some("a.txt")), "{failure:?}");
        assert_eq!(std::fs::read(&file).unwrap(), b"disk\n");
        apply_while(true).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new\n");
    }
}
