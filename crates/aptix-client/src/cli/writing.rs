//! What `aptix apply` and `aptix undo` have in common: they change files here, after the person at the terminal has agreed
//! where that is needed, and print what became of the batch.

use std::path::PathBuf;
use std::sync::Arc;

use aptix_model::actor::Actor;
use aptix_model::batch::Batch;
use aptix_model::failure::Visible;
use aptix_model::id::BatchId;
use aptix_model::path_style::PathStyle;
use aptix_model::report::{Report, Warning};

use crate::apply::Mode;
use crate::apply::proposal::{Decision, Proposal};
use crate::person::answer::Answer;
use crate::person::shown::shown;
use crate::person::user::user;
use crate::person::{Person, allow_always, in_time};
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::present::view::{BatchView, Undoes, stored_here};
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output::{self, Form};
use super::progress::{self, Doing};

/// What to do where a person has to agree and there is no terminal.
const UNATTENDED: &str =
    "look at what `--dry-run --yes` shows, then say `--yes`, or answer on a terminal; or leave the file alone";

/// Arguments of a command that changes files here.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct WritingArgs {
    /// Say what would happen, or what it would be refused for, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Answer yes to what a person would be asked: whether a sensitive or secret file may change. What is denied stays denied
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    form: Form,
}

/// A command that changes files here, as it runs.
pub(super) struct Writing<'a> {
    args: WritingArgs,
    roots: &'a [RootSpec],
    state_home: PathBuf,
    policies: PolicyFiles,
    pub(super) mode: Mode<'static>,
    /// Who runs the command.
    pub(super) user: Actor,
    /// The name of the root, if it is the only one.
    root: Option<String>,
    /// About the workspace and the document.
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(
        args: WritingArgs,
        roots: &'a [RootSpec],
        homes: &HomeDirs,
        batch: BatchId,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            args,
            roots,
            state_home: homes.state_home()?,
            policies: PolicyFiles::new(&homes.config_home()?, Caller::Shell),
            mode: if args.dry_run { Mode::DryRun } else { Mode::CommitNamed { batch } },
            user: user(),
            root: None,
            warnings: Vec::new(),
        })
    }

    /// Opens the workspace and reads its policy; the warnings name displaced writes that no result has named yet.
    pub(super) fn open(&mut self) -> Result<(Workspace, Arc<Policy>), Refused> {
        progress::begin(Doing::Opening);
        let open = if self.args.dry_run { Workspace::open_to_look } else { Workspace::open };
        let workspace = open(self.roots, &self.state_home, Box::new(SystemDisk))?;
        self.root = match workspace.roots() {
            [root] => Some(root.name().to_owned()),
            _ => None,
        };
        match workspace.unnamed_displaced_writes() {
            Ok(writes) => self.warnings.extend(writes.iter().map(|write| write.warning(&workspace))),
            Err(error) => tracing::warn!(%error, "displaced writes cannot be listed"),
        }
        let policy = self.policies.read(&workspace).map_err(|error| error.failure())?;
        Ok((workspace, policy))
    }

    /// Asks the person at the terminal where a person has to agree and has not done so with `--yes`. A dry run does
    /// not ask, and refuses what the run would be refused for.
    pub(super) fn decide(&self, proposal: &Proposal<'_>, policy: &Policy) -> Decision {
        let writing = || {
            if !self.args.dry_run {
                progress::begin(Doing::Writing(proposal.batch.files.len()));
            }
        };
        let unanswered = proposal.unanswered();
        if self.args.yes || unanswered.is_empty() {
            writing();
            return Decision::Apply;
        }
        let Some(person) = Person::present() else {
            return Decision::Refuse(unanswered.into_iter().map(|failure| failure.hint(UNATTENDED)).collect());
        };
        progress::end();
        if self.args.dry_run {
            for failure in &unanswered {
                output::say(&format!("a person would be asked: {}", Visible(&failure.to_string())));
            }
            return Decision::Apply;
        }
        let subject = proposal.digest();
        let shown = shown("This batch", proposal, subject);
        let decided = in_time(policy.approval, person.decide(&shown));
        let answer = tokio::runtime::Handle::current().block_on(decided);
        let Answer { verdict, always, .. } = answer.unwrap_or_else(|| Answer::too_late(policy.approval));
        let holds = self.policies.still_holds(proposal.workspace, policy);
        if holds.is_ok() {
            allow_always(proposal, &self.policies, &always);
        }
        match verdict.and(holds.map_err(|failure| vec![failure])) {
            Ok(()) => {
                writing();
                Decision::Approved(subject)
            }
            Err(failures) => Decision::Refuse(failures),
        }
    }

    /// Prints what became of the batch, which takes another one back if it is an undo; `done` is what people call it.
    pub(super) fn end(
        &self,
        (batch, undoes): (&Batch, Option<Undoes<'_>>),
        outcome: Result<&Report, &Refused>,
        done: &str,
    ) -> Exit {
        let view = BatchView {
            dry_run: self.args.dry_run,
            paths: self.paths(),
            root: self.root.as_deref(),
            stored: stored_here(self.mode, batch, outcome.is_ok()),
            undoes,
            warnings: &self.warnings,
            ..BatchView::new(batch, outcome.map(Some).map_err(|refused| &refused.refusal))
        };
        if outcome.is_ok() {
            output::print_head(self.args.form, &view);
        }
        let printed = output::show(self.args.form, &view);
        if let Err(refused) = outcome {
            return refused.exit;
        }
        if printed == Exit::Environment && !self.args.dry_run {
            output::say(&format!("the batch was {done} all the same"));
        }
        printed
    }

    fn paths(&self) -> PathStyle {
        PathStyle::among(self.roots.len())
    }
}
