//! `aptix undo`: takes back what a batch changed, and nothing that came later; `--redo` takes an undo back.

use std::path::Path;
use std::sync::OnceLock;

use aptix_model::batch::{Batch, Origin};
use aptix_model::failure::Visible;
use aptix_model::id::BatchId;
use aptix_model::report::Warning;

use crate::apply::proposal::Proposal;
use crate::apply::{ApplyOptions, Mode, Refusal};
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::present::answer::{Shown, Stored};
use crate::undo::{Undone, acknowledge, undo};
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::keep::history::find::Wanted;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::apply::{End, decide, displaced_writes, foresee};
use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output::{self, Form};
use super::progress::{self, Doing};
use crate::apply::path_style::PathStyle;

/// Arguments of `aptix undo`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory that the batch changed files in; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    /// Say what would happen, or what it would be refused for, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Answer yes to what a person would be asked: whether a sensitive or secret file may change. What is denied stays denied
    #[arg(long)]
    yes: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// Take an undo back: the newest one, or the one of the batch that is named
    #[arg(long)]
    redo: bool,
    /// The batch; when absent, the newest that is neither an undo nor undone
    #[arg(value_name = "BATCH_ID")]
    batch: Option<String>,
}

/// The workspace of an undo whose answer was printed.
#[derive(Default)]
pub(super) struct Answered(OnceLock<Workspace>);

impl Answered {
    /// Lets the next undo be another one. To be called right before the process ends: one that was killed is run again by a
    /// person who does not know whether it was done.
    pub(super) fn acknowledge(&self) {
        if let Some(workspace) = self.0.get()
            && let Err(failure) = acknowledge(workspace)
        {
            let why = failure.to_string();
            output::say(&format!("warning: the next undo may report this one again: {}", Visible(&why)));
        }
    }
}

pub(super) fn run(args: &Args, homes: &HomeDirs, id: BatchId, answered: &Answered) -> anyhow::Result<Exit> {
    let nothing = Batch::default();
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Shell);
    let mode = if args.dry_run { Mode::DryRun } else { Mode::CommitNamed { batch: id } };
    let (mut opened, mut warnings) = (None, Vec::new());
    let outcome = attempt(args, &homes.state_home()?, &policies, mode, &mut opened, &mut warnings);
    let shown = Shown {
        batch: outcome.as_ref().map_or(&nothing, |undone| &undone.batch),
        dry_run: args.dry_run,
        paths: PathStyle::among(args.roots.len()),
        stored: outcome.as_ref().ok().and_then(|undone| {
            let mode = undone.name.map_or(mode, |batch| Mode::CommitNamed { batch });
            Stored::here(mode, &undone.report)
        }),
        outcome: outcome.as_ref().map(|undone| Some(&undone.report)).map_err(|end| &end.refusal),
        warnings: &warnings,
    };
    let printed = output::show(Form::of(args.json), &shown);
    if outcome.is_ok() && !args.dry_run && printed == Exit::Environment {
        output::say("the batch was undone all the same");
    }
    if let Some(workspace) = opened.filter(|_| outcome.is_ok() && !args.dry_run) {
        // There is one undo in a process.
        let _ = answered.0.set(workspace);
    }
    Ok(match (outcome, printed) {
        (Ok(_), printed) => printed,
        (Err(end), _) => end.exit,
    })
}

fn attempt(
    args: &Args,
    state_home: &Path,
    policies: &PolicyFiles,
    mode: Mode<'_>,
    opened: &mut Option<Workspace>,
    warnings: &mut Vec<Warning>,
) -> Result<Undone, End> {
    progress::begin(Doing::Opening);
    let open = if args.dry_run { Workspace::open_to_look } else { Workspace::open };
    let workspace = &*opened.insert(open(&args.roots, state_home, Box::new(SystemDisk))?);
    *warnings = displaced_writes(workspace);
    let policy = policies.read(workspace).map_err(|error| Refusal::from(error.failure()))?;
    let options = ApplyOptions { policy: &policy, origin: &Origin::default(), diff_bytes: usize::MAX, mode };
    let paths = PathStyle::among(args.roots.len());
    let decide = &mut |proposal: &Proposal<'_>| match args.dry_run {
        true => foresee(proposal, args.yes),
        false => decide(proposal, args.yes, paths, &policy, policies),
    };
    Ok(undo(workspace, Wanted::new(args.batch.as_deref(), args.redo), options, decide)?)
}
