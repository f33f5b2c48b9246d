//! `aptix agent`: serves a workspace until a signal stops it.

use std::net::SocketAddr;
use std::sync::Arc;

use aptix_model::failure::Visible;
use aptix_model::id::{AgentId, IdError};

use crate::agent::{AgentError, Approve, Attended, FromDisk, Service, serve};
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::roots::root::RootSpec;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output;
use super::review_page;
use super::server::ServerArgs;
use super::serving;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// A directory to edit files in, and the name docPaths know it by; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    /// Who decides whether a batch is written
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    approve: Approve,
    /// Serve the review page at this address, on which batches are also approved and refused
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = review_page::loopback)]
    review: Option<SocketAddr>,
    /// Agree to serve this, although another server, workspace or other roots were agreed to before
    #[arg(long = "agree")]
    is_agreed: bool,
}

/// Serves; `new_id` is the agent's name from now on, if it has none yet.
pub(super) async fn run(args: Args, homes: &HomeDirs, new_id: Result<AgentId, IdError>) -> anyhow::Result<Exit> {
    let (server, workspace) = (args.server.server(), args.server.workspace);
    let policy = Arc::new(PolicyFiles::new(&homes.config_home()?, Caller::Server));
    let directories = args.roots.iter().map(|root| std::path::absolute(&root.dir)).collect::<Result<_, _>>()?;
    let answering = Arc::new(FromDisk { workspace: Some(workspace.clone()), directories });
    let (approve, attended) = (args.approve, Attended::OnTerminal);
    let is_agreed = args.is_agreed;
    let review = match args.review {
        Some(address) => Some(Arc::new(review_page::bind(address, homes).await?)),
        None => None,
    };
    let service = Service { server, workspace, approve, attended, review, is_agreed, policy, answering };
    let new_id = new_id?;
    aptix_telemetry::begin("aptix-agent");
    let ended = serving::run(args.roots, homes, |local, stop| serve(local, service, new_id, stop)).await;
    aptix_telemetry::finish().await;
    match ended.as_ref().err().and_then(|error| error.downcast_ref()) {
        Some(AgentError::NotAgreed(failure)) => {
            output::say(&format!("error: {}", Visible(&failure.to_string())));
            output::say(&format!("hint: {}", failure.hint.as_deref().unwrap_or_default()));
            Ok(Exit::Refused)
        }
        _ => ended,
    }
}
