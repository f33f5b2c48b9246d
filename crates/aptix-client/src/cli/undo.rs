//! `aptix undo`: takes back what a batch changed, and nothing that came later; `--redo` takes an undo back.

use std::sync::OnceLock;

use aptix_model::batch::Batch;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Visible;
use aptix_model::id::BatchId;
use aptix_model::limits::Limits;

use crate::apply::acting::Acting;
use crate::apply::traced::Traced;
use crate::apply::{ApplyOptions, Mode};
use crate::present::view::Undoes;
use crate::undo::{self, Undone};
use crate::workspace::keep::history::find::Wanted;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output;
use super::writing::{Writing, WritingArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory that the batch changed files in; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    #[command(flatten)]
    pub(super) writing: WritingArgs,
    /// Take an undo back: the newest one, or the one of the batch that is named
    #[arg(long)]
    redo: bool,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// The batch; when absent, the newest that is neither an undo nor undone
    #[arg(value_name = "BATCH_ID")]
    batch: Option<String>,
}

/// A reason that the record has room for.
fn reason(text: &str) -> Result<String, String> {
    let most = Limits::DEFAULT.text_bytes;
    if text.is_empty() || text.len() > most {
        return Err(format!("expected 1 to {most} bytes, found {}", text.len()));
    }
    Ok(text.to_owned())
}

/// Lets the next undo be another one, once the answer was printed. To be called right before the process ends: one that was
/// killed is run again by a user who does not know whether it was done.
pub(super) fn acknowledge(workspace: &Workspace) {
    if let Err(failure) = undo::acknowledge(workspace) {
        let why = failure.to_string();
        output::say(&format!("warning: the next undo may report this one again: {}", Visible(&why)));
    }
}

/// Undoes a batch; `answered` gets the workspace once the answer is printed.
pub(super) fn run(args: &Args, homes: &HomeDirs, id: BatchId, answered: &OnceLock<Workspace>) -> anyhow::Result<Exit> {
    let mut writing = Writing::new(args.writing, &args.roots, homes, id)?;
    let is_dry_run = args.writing.dry_run;
    let mut traced = Traced::begin(Trace { batch: Some(id), is_dry_run, ..Trace::new(Via::Undo) });
    let _work = traced.trace.span().entered();
    let (workspace, undone) = match attempt(args, &mut writing) {
        Ok(done) => done,
        Err(refused) => {
            traced.log(Event::Refused(None, &refused.refusal.failures));
            return Ok(writing.end((&Batch::default(), None), Err(&refused), "undone"));
        }
    };
    if let Some(batch) = undone.name {
        writing.mode = Mode::CommitNamed { batch };
        traced.trace.batch = Some(batch);
    }
    traced.log(if is_dry_run { Event::Checked(&undone.batch) } else { Event::Undone(&undone.batch, &undone.reverts) });
    let label = undone.reverts_label.as_deref().map(Into::into);
    let undoes = Undoes { id: undone.reverts.as_str().into(), label };
    let exit = writing.end((&undone.batch, Some(undoes)), Ok(&undone.report), "undone");
    if !args.writing.dry_run {
        // There is one undo in a process.
        let _ = answered.set(workspace);
    }
    Ok(exit)
}

fn attempt(args: &Args, writing: &mut Writing<'_>) -> Result<(Workspace, Undone), Refused> {
    let (workspace, policy) = writing.open()?;
    let acting = Acting { reason: args.reason.as_deref(), ..Acting::of(&writing.user) };
    let options = ApplyOptions { acting, ..ApplyOptions::new(&policy, writing.mode) };
    let wanted = Wanted::new(args.batch.as_deref(), args.redo);
    let undone = undo::undo(&workspace, wanted, options, &mut |proposal| writing.decide(proposal, &policy))?;
    Ok((workspace, undone))
}
