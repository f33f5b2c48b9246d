//! `aptix apply-prepared`: lets a prepared batch be applied.

use aptix_model::id::{BatchId, IdError, RequestId};

use super::exit::Exit;
use super::origin::OwnerArgs;
use super::output::{self, Form};
use super::server::{self, ServerArgs};
use crate::present::view::state_for_people;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    owner: OwnerArgs,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

/// Lets the batch be applied under a request id that is used for nothing else.
pub(super) async fn run(args: Args, form: Form, request: Result<RequestId, IdError>) -> anyhow::Result<Exit> {
    let (request, owner) = (request?, args.owner.owner());
    server::run(form, async {
        // Its request id sees to it that a repeat is answered as the first call.
        let call = || async { args.server.connect().await?.apply_prepared(&request, args.batch, &owner).await };
        let state = server::retry(call).await?;
        server::say_if_held(args.batch, state);
        Ok(output::print(&format!("{} {}\n", args.batch, state_for_people(state))))
    })
    .await
}
