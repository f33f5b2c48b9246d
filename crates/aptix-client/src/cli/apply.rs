//! `aptix apply`: one document, planned and applied here, without a server.

use std::sync::Arc;

use aptix_engine::planning::settings::Suspicion;
use aptix_model::batch::Batch;
use aptix_model::documents::terms::in_terms_of;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::id::BatchId;
use aptix_model::report::Report;

use crate::apply::acting::Acting;
use crate::apply::traced::Traced;
use crate::apply::{ApplyOptions, Mode, Refusal, apply, refuse_document};
use crate::present::refused;
use crate::workspace::roots::root::RootSpec;

use super::document::DocumentArgs;
use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::origin::OriginArgs;
use super::progress::{self, Doing};
use super::writing::{Writing, WritingArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory to edit files in, and the name docPaths know it by; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    #[command(flatten)]
    document: DocumentArgs,
    #[command(flatten)]
    origin: OriginArgs,
    #[command(flatten)]
    pub(super) writing: WritingArgs,
    /// Write new text as it is, even if it looks like an edit instead of the content of a file (SUSPECT_CONTENT)
    #[arg(long)]
    verbatim: bool,
}

pub(super) fn run(args: &Args, homes: &HomeDirs, id: BatchId) -> anyhow::Result<Exit> {
    let mut batch = None;
    let mut writing = Writing::new(args.writing, &args.roots, homes, id)?;
    let (origin, is_dry_run) = (args.origin.origin(), args.writing.dry_run);
    let traced = Traced::begin(Trace { origin, batch: Some(id), is_dry_run, ..Trace::new(Via::Apply) });
    let _work = traced.trace.span().entered();
    let outcome = attempt(args, &mut writing, &mut batch, &traced);
    let known = batch.as_ref().filter(|batch| !batch.files.is_empty());
    traced.ended(known, outcome.as_ref().map_err(|refused| refused.refusal.failures.as_slice()));
    Ok(writing.end((&batch.unwrap_or_default(), None), outcome.as_ref(), "applied"))
}

/// Applies the document; `understood` gets its batch as soon as that is known.
fn attempt(
    args: &Args,
    writing: &mut Writing<'_>,
    understood: &mut Option<Batch>,
    traced: &Traced,
) -> Result<Report, Refused> {
    let (workspace, mut policy) = writing.open()?;
    if args.verbatim {
        Arc::make_mut(&mut policy).suspect_content = Suspicion::Off;
    }
    progress::end();
    // Before an error in a document that is refused anyhow.
    policy.may_write()?;
    let document = args.document.read().map_err(Refusal::from)?;
    let document = document.map_err(|document| {
        // What it is called, for the answer.
        let Batch { key, label, .. } = &document.part.batch;
        *understood = Some(Batch { key: key.clone(), label: label.clone(), ..Batch::default() });
        refuse_document(&workspace, &document, &policy)
    })?;
    writing.warnings.extend(document.warnings);
    let batch = &*understood.insert(document.batch);
    traced.log(Event::Received(batch));
    progress::begin(Doing::Planning(batch.files.len()));
    let origin = &traced.trace.origin;
    let acting = Acting::of(&writing.user);
    let options = ApplyOptions { origin, acting, ..ApplyOptions::new(&policy, writing.mode) };
    let applied = apply(&workspace, batch, options, &mut |proposal| writing.decide(proposal, &policy));
    let applied =
        applied.map_err(|refusal| Refusal { failures: in_terms_of(document.dialect, batch, refusal.failures) });
    if let (Err(refusal), Mode::CommitNamed { batch: id }) = (&applied, writing.mode) {
        refused::keep(&workspace, &policy, (id, &writing.user), batch, &refusal.failures);
    }
    Ok(applied?)
}
