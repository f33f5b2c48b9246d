//! `aptix cancel`: withdraws a batch that has not ended.

use aptix_model::id::BatchId;

use crate::connection::CallError;

use super::exit::Exit;
use super::output;
use super::server::ServerArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Who cancels it, for the record; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", default_value = "", hide_env = true)]
    author: String,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.cancel(args.batch, args.reason, args.author).await?;
    Ok(output::print(&format!("{} {state}\n", args.batch)))
}
