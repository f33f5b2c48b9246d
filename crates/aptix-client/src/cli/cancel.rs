//! `aptix cancel`: withdraws a batch that has not ended.

use aptix_model::id::BatchId;

use crate::connection::CallError;

use super::exit::Exit;
use super::output;
use super::server::ServerArgs;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.cancel(args.batch).await?;
    Ok(output::print(&format!("{} {state}\n", args.batch)))
}
