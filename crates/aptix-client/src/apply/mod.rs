//! Applies one batch to a workspace: validate, resolve, read, plan, ask, commit, report.
//!
//! The command line and the agent share it; neither has another way to a file.

pub mod acting;
mod clipboards;
mod files;
pub(crate) mod find;
pub mod located;
mod names;
mod near_path;
mod need;
mod options;
pub(crate) mod per_file;
pub(crate) mod planned;
pub mod proposal;
mod refusal;
mod reported;
pub(crate) mod subject;
#[cfg(any(feature = "agent", feature = "mcp"))]
pub(crate) mod traced;
mod units;
mod violations;
pub(crate) mod withheld;

use std::borrow::Cow;

use aptix_engine::correct::correct;
use aptix_engine::plan::{self, BatchPlan};
use aptix_engine::planning::clipboards::Clipboards;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::valid::ValidBatch;
use aptix_engine::validate;
use aptix_model::batch::{Atomicity, Batch};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::{Failure, NextAction};
use aptix_model::limits::NEXT_ACTION_BYTES;
use aptix_model::report::{Report, Withheld};

pub use self::options::{ApplyOptions, Mode};
pub use self::refusal::Refusal;
pub use self::violations::refuse_document;
pub use self::withheld::Hidden;

use self::clipboards::SessionClipboards;
use self::files::Files;
use self::per_file::Whole;
use self::planned::{Planned, carry_out, refuse_removed, refuse_unsaved};
use self::proposal::{Decision, Proposal};
use self::refusal::add_verbatim_hints;
use crate::policy::Policy;
use crate::policy::choices::Several;
use crate::workspace::roots::workspace::Workspace;

/// Applies a batch, all of it or nothing, or [file by file](Atomicity::PerFile). `confirm` is called with the whole proposal before anything is written; in
/// a dry run as well, to refuse what the run would be refused for without asking. It is called once, unless files that it agreed
/// to are refused afterwards and the others are still to be applied.
///
/// # Errors
/// Everything that keeps the batch from being applied.
pub fn apply(
    workspace: &Workspace,
    batch: &Batch,
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    options.policy.may_write()?;
    refuse_removed(workspace)?;
    let settled = settle(workspace, batch, options.policy);
    let applied = settled.and_then(|settled| match settled.atomicity {
        Atomicity::AllOrNothing => apply_settled(workspace, (settled.as_ref(), None), options, confirm),
        Atomicity::PerFile => {
            // A batch that is wrong in itself is refused whole, as a server would.
            valid(workspace, settled.as_ref(), options.policy)?;
            per_file::apply(workspace, settled.as_ref(), options, &mut |part, whole| {
                apply_settled(workspace, (part, Some(whole)), options, confirm)
            })
        }
    });
    applied.map_err(|refusal| located::by_target(workspace, refusal.failures, |file| batch.files.get(file)).into())
}

/// As [`apply`], for a batch with one path for each of its files, all or nothing; `whole` is the batch that it is a part of.
fn apply_settled(
    workspace: &Workspace,
    (batch, whole): (&Batch, Option<&Whole<'_>>),
    options: ApplyOptions<'_>,
    confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    let policy = options.policy;
    let mut valid = valid(workspace, batch, policy)?;
    let mut files = Files::find(workspace, &valid, policy, &|| options.mode.check_wanted())?;
    options.mode.check_wanted()?;
    refuse_unsaved(workspace, policy.caller, batch, &files.found)?;
    let clipboards = SessionClipboards::read(workspace, batch, options)?;
    let settings = settings(policy, &clipboards.content);
    let hidden = agreed_to(&valid, &mut files, &settings, options)?;
    files.blind(&mut valid);
    let (observed, quotable) = files.observed();
    let planned = match options.prepared {
        Some(prepared) => plan::plan_prepared(&valid, &observed, &quotable, &settings, prepared),
        None => plan::plan_quoting(&valid, &observed, &quotable, &settings),
    };
    let plan = planned.map_err(|failures| match hidden.is_empty() {
        true if options.mode.check_wanted().is_err() => failures.into(),
        true => {
            let failures = match options.prepared {
                Some(_) => failures,
                None => with_next_action(failures, batch, &observed, &settings),
            };
            not_planned(failures, workspace, policy, &valid, &files)
        }
        false => withheld::not_applied(&failures, &hidden, policy.caller).into(),
    })?;
    let taken = clipboards.taken(workspace, &plan)?;
    let planned = Planned { batch, found: &files.found, plan: &plan, undoes: None, taken, hidden: &hidden, whole };
    let mut is_decided_against = false;
    let outcome = carry_out(workspace, planned, options, &mut |proposal| {
        confirm(proposal).check(proposal).inspect_err(|_| is_decided_against = true)
    });
    outcome.map_err(|refusal| match is_decided_against && !hidden.is_empty() {
        true => withheld::not_applied(&refusal.failures, &hidden, policy.caller).into(),
        false => located::by_place(withheld::without_content(refusal.failures, &files.found), &files.found).into(),
    })
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
    let settled = settle(workspace, batch, policy)?;
    let mut valid = valid(workspace, settled.as_ref(), policy)?;
    let files = Files::find(workspace, &valid, policy, &|| Ok(()))?;
    refuse_unsaved(workspace, policy.caller, settled.as_ref(), &files.found)?;
    let hidden = files.hidden(&valid);
    if !hidden.is_empty() {
        return Err(withheld::not_compared(&hidden, policy.caller).into());
    }
    files.blind(&mut valid);
    let (observed, quotable) = files.observed();
    let planned = plan::plan_quoting(&valid, &observed, &quotable, &settings(policy, &Clipboards::new()));
    Ok(see(&planned.map_err(|failures| not_planned(failures, workspace, policy, &valid, &files))?))
}

/// The batch with one path for each of its files.
fn settle<'b>(workspace: &Workspace, batch: &'b Batch, policy: &Policy) -> Result<Cow<'b, Batch>, Refusal> {
    let settled = names::settle(workspace, batch);
    settled.map_err(|refusal| violations::refuse(workspace, batch, policy, refusal.failures))
}

fn valid<'b>(workspace: &Workspace, batch: &'b Batch, policy: &Policy) -> Result<ValidBatch<'b>, Refusal> {
    let valid = validate::validate(batch, &policy.limits);
    valid.map_err(|_| violations::refuse(workspace, batch, policy, Vec::new()))
}

/// The withheld files that the batch is compared with, because a person agreed to it.
fn agreed_to<'b>(
    batch: &ValidBatch<'b>,
    files: &mut Files,
    settings: &Settings<'_>,
    options: ApplyOptions<'_>,
) -> Result<Vec<Hidden<'b>>, Refusal> {
    let mut hidden = files.hidden(batch);
    if hidden.is_empty() {
        return Ok(hidden);
    }
    withheld::check_rest(batch.batch, &files.found, &hidden, (settings, options.policy.caller))?;
    // Where there is no person to ask, none agrees. Of a batch that is applied file by file, what becomes of the other files would
    // disclose whether these fitted: there nobody is asked.
    let is_per_file = batch.batch.atomicity == Atomicity::PerFile;
    if is_per_file || !matches!(options.mode, Mode::CommitWithReceipt { compare, .. } if compare(&hidden)) {
        return Err(withheld::not_compared(&hidden, options.policy.caller).into());
    }
    files.open_if_approved();
    hidden.retain(|hidden| hidden.why != Withheld::Unapproved);
    Ok(hidden)
}

/// Failures to plan a batch, as its author gets them.
fn not_planned(
    mut failures: Vec<Failure>,
    workspace: &Workspace,
    policy: &Policy,
    batch: &ValidBatch<'_>,
    files: &Files,
) -> Refusal {
    add_verbatim_hints(&mut failures, batch.batch, policy.caller);
    let failures = near_path::with_near_paths(failures, workspace, policy, batch, &files.found);
    located::by_place(withheld::without_content(failures, &files.found), &files.found).into()
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

const fn settings<'c>(policy: &Policy, clipboards: &'c Clipboards) -> Settings<'c> {
    Settings {
        limits: policy.limits,
        recovers: policy.recovers,
        refuses_several: matches!(policy.once_with_several, Several::Refuse),
        suspicion: policy.suspect_content,
        clipboards,
    }
}
