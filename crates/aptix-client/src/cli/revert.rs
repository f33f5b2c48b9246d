//! `aptix revert`: takes back what an applied batch changed, by a batch of its own, and waits until that has ended.

use std::cell::OnceCell;

use aptix_model::id::{BatchId, IdError, RequestId};

use super::exit::Exit;
use super::origin::OriginArgs;
use super::output::Form;
use super::server::{self, ServerArgs};

#[derive(clap::Args, Debug)]
#[command(mut_arg("session", |argument| argument.help("The session that the call comes from")))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    origin: OriginArgs,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Who takes it back, for the record; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", default_value = "", hide_env = true)]
    author: String,
    #[command(flatten)]
    form: Form,
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: BatchId,
}

/// Has the batch taken back under a request id that is used for nothing else.
pub(super) async fn run(args: Args, request: Result<RequestId, IdError>) -> anyhow::Result<Exit> {
    let (form, request, sent) = (args.form, request?, OnceCell::new());
    let who = (args.reason, args.author);
    server::run_sending(form, &sent, async {
        // Its request id sees to it that the batch is stored once.
        let call = || async {
            args.server.connect().await?.revert(&request, args.batch, who.clone(), args.origin.origin()).await
        };
        let stored = server::retry(call).await?;
        Ok(server::show_end(form, &args.server, sent.get_or_init(|| stored), &[]).await)
    })
    .await
}
