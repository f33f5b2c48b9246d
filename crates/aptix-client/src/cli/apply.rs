//! `aptix apply`: one document, planned and applied here, without a server.

use std::sync::Arc;

use aptix_engine::planning::settings::Suspicion;
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::terms::in_terms_of;
use aptix_model::id::{BatchId, SessionId};
use aptix_model::report::Report;

use crate::apply::{ApplyOptions, Refusal, apply};
use crate::workspace::roots::root::RootSpec;

use super::document::DocumentArgs;
use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::progress::{self, Doing};
use super::writing::{Writing, WritingArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory to edit files in, and the name docPaths know it by; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    #[command(flatten)]
    document: DocumentArgs,
    /// The session that the document comes from
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    #[command(flatten)]
    pub(super) writing: WritingArgs,
    /// Write new text as it is, even if it looks like an edit instead of the content of a file (SUSPECT_CONTENT)
    #[arg(long)]
    verbatim: bool,
}

pub(super) fn run(args: &Args, homes: &HomeDirs, id: BatchId) -> anyhow::Result<Exit> {
    let mut batch = Batch::default();
    let mut writing = Writing::new(args.writing, &args.roots, homes, id)?;
    let outcome = attempt(args, &mut writing, &mut batch);
    Ok(writing.end(&batch, outcome.as_ref(), "applied"))
}

fn attempt(args: &Args, writing: &mut Writing<'_>, batch: &mut Batch) -> Result<Report, Refused> {
    let (workspace, mut policy) = writing.open()?;
    if args.verbatim {
        Arc::make_mut(&mut policy).suspect_content = Suspicion::Off;
    }
    progress::end();
    // Before an error in a document that is refused anyhow.
    policy.may_write()?;
    let document = args.document.read()?;
    writing.warnings.extend(document.warnings);
    *batch = document.batch;
    progress::begin(Doing::Planning(batch.files.len()));
    let session_id = args.session.as_ref().map(|session| session.as_str().to_owned());
    let origin = &Origin { session_id, ..Origin::default() };
    let options = ApplyOptions { origin, ..ApplyOptions::new(&policy, writing.mode) };
    let applied = apply(&workspace, batch, options, &mut |proposal| writing.decide(proposal, &policy));
    Ok(applied.map_err(|refusal| Refusal { failures: in_terms_of(document.dialect, batch, refusal.failures) })?)
}
