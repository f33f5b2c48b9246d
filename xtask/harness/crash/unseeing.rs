//! An agent whose appends to a file do not always see the one before, as if nothing kept two writers apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use aptix_client::agent::{Approve, Attended, Service, serve};
use aptix_client::connection::Server;
use aptix_client::connection::question::Unanswered;
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::roots::workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::disk::{Operation, Verdict, Watched};

/// Arguments of the agent.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Unseeing {
    url: String,
}

/// Serves the directory `ws` of the directory it was started in, until it is killed.
pub(crate) fn serve_unseeing(args: &Unseeing) -> Result<()> {
    let place = std::env::current_dir()?;
    let root = place.join("ws").to_str().context("the directory has a name in UTF-8")?.parse()?;
    let local = Workspace::open(&[root], &place.join("state"), Box::new(overlaid()))?;
    let policy = Arc::new(PolicyFiles::new(&place.join("config"), Caller::Server));
    let (server, workspace) = (Server::open(args.url.parse()?), "w".parse()?);
    let (approve, attended, answering) = (Approve::Auto, Attended::Never, Arc::new(Unanswered));
    let is_agreed = true;
    let service = Service { server, workspace, approve, attended, review: None, is_agreed, policy, answering };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok(runtime.block_on(serve(local, service, "unseeing".parse()?, CancellationToken::new()))?)
}

/// The real disk, but every fifth append begins where the one before began.
fn overlaid() -> Watched<impl Fn(Operation<'_>) -> Verdict + Send + Sync + 'static> {
    let (appends, last) = (AtomicUsize::new(0), AtomicU64::new(0));
    Watched::new(move |operation: Operation<'_>| {
        let Operation::WriteAt(at) = operation else { return Verdict::Pass };
        let last = last.swap(at, Ordering::SeqCst);
        let is_unseeing = appends.fetch_add(1, Ordering::SeqCst) % 5 == 4 && last != 0;
        if is_unseeing { Verdict::At(last) } else { Verdict::Pass }
    })
}
