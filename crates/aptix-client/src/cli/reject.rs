//! `aptix reject`: refuses a batch that has not ended, and says why.

use aptix_model::id::BatchId;

use crate::connection::CallError;

use super::exit::Exit;
use super::output;
use super::server::ServerArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// Why, for the author of the batch
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Who rejects it, for the author of the batch; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", default_value = "", hide_env = true)]
    reviewer: String,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.reject(args.batch, args.reason, args.reviewer).await?;
    Ok(output::print(&format!("{} {state}\n", args.batch)))
}
