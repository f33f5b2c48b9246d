//! `aptix approve` and `aptix reject`: what a person decides about a batch at the server, and why.

use aptix_model::batch_event::StepRecord;
use aptix_model::failure::Visible;
use aptix_model::id::BatchId;

use crate::connection::{CallError, Decision};
use crate::present::utc::utc;
use crate::present::view::state_for_people;

use super::exit::Exit;
use super::output;
use super::server::{self, ServerArgs};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
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
    let who = (args.reason, args.reviewer);
    // The call can be repeated: whatever it decided stays.
    let call = || async { args.server.connect().await?.approve(args.batch, who.0.clone(), who.1.clone()).await };
    let decision = server::retry(call).await?;
    say_if_decided_before("approved", &decision, &who);
    Ok(output::print(&format!("{} {}\n", args.batch, state_for_people(decision.state))))
}

/// Refuses a batch that has not ended.
pub(super) async fn reject(args: Args) -> Result<Exit, CallError> {
    let who = (args.reason, args.reviewer);
    let call = || async { args.server.connect().await?.reject(args.batch, who.0.clone(), who.1.clone()).await };
    let decision = server::retry(call).await?;
    say_if_decided_before("rejected", &decision, &who);
    Ok(output::print(&format!("{} {}\n", args.batch, decision.state)))
}

/// Says who decided first, if that was another reviewer, or the same one for another reason.
fn say_if_decided_before(done: &str, decision: &Decision, (reason, reviewer): &(String, String)) {
    let Some(StepRecord { facts, .. }) = &decision.step else { return };
    let (name, why) = (facts.actor.name.as_deref().unwrap_or_default(), facts.reason.as_deref().unwrap_or_default());
    if is_signed(name, reviewer) && why == reason {
        return;
    }
    let name = if name.is_empty() { "another reviewer" } else { name };
    let why = if why.is_empty() { String::new() } else { format!(": {}", Visible(why)) };
    output::say(&format!("{} {done} the batch before, at {}{why}; nothing changed", Visible(name), utc(facts.at.0)));
}

/// Whether a name in a record is what this reviewer gave; the server puts the name of a token behind it.
fn is_signed(name: &str, given: &str) -> bool {
    let Some(token) = name.strip_prefix(given) else { return false };
    token.is_empty() || token.starts_with(if given.is_empty() { "token " } else { " (token " })
}
