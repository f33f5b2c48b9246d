//! `aptix approve` and `aptix reject`: what a person decides about a batch at the server, and why.

use aptix_model::id::BatchId;

use crate::connection::CallError;
use crate::present::view::state_for_people;

use super::exit::Exit;
use super::output;
use super::server::ServerArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// Why, for the author of the batch and the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Who decides, for the author of the batch and the record; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", default_value = "", hide_env = true)]
    reviewer: String,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

/// Lets a batch go ahead that waits for a person.
pub(super) async fn approve(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.approve(args.batch, args.reason, args.reviewer).await?;
    Ok(output::print(&format!("{} {}\n", args.batch, state_for_people(state))))
}

/// Refuses a batch that has not ended.
pub(super) async fn reject(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.reject(args.batch, args.reason, args.reviewer).await?;
    Ok(output::print(&format!("{} {state}\n", args.batch)))
}
