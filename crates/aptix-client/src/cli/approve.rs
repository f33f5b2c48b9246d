//! `aptix approve`: lets a batch go ahead that waits for a person at the server.

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
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Who approves it, for the record; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", default_value = "", hide_env = true)]
    reviewer: String,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let state = args.server.connect().await?.approve(args.batch, args.reason, args.reviewer).await?;
    Ok(output::print(&format!("{} {}\n", args.batch, state_for_people(state))))
}
