//! The command `retention`: removes what workspaces keep no longer, or prints what would be removed and what would be kept.

use std::path::PathBuf;

use anyhow::Context;
use aptix_model::id::WorkspaceId;
use aptix_server::config::{Config, Sources};
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::options::{Changeable, Options};
use aptix_server::retention::{Outcome, RetentionRules};
use aptix_server::service::owner::{Owner, Unanswered};
use aptix_server::store::retention::{HeldBy, Limits, Retained};
use serde_json::{Value, json};

use super::{New, Order, ask_by, print, sweeping_nothing};

/// What is removed, of which workspaces, and how that is printed.
#[derive(clap::Args)]
pub(crate) struct RetentionCommand {
    /// Change nothing, and print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Only this workspace [default: all]
    #[arg(long, value_name = "ID")]
    workspace: Option<WorkspaceId>,
    /// Configuration file (TOML) whose [retention] and blob_retention_seconds count: for --dry-run, and while no server uses the data directory. A running
    /// server removes by its own configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    order: Order,
}

/// Carries out the command.
///
/// # Errors
/// When the configuration has faults, the server refuses, or the data directory cannot be used.
pub(crate) async fn retention(command: RetentionCommand) -> anyhow::Result<()> {
    let RetentionCommand { dry_run, workspace, config, json, order } = command;
    let config = config.map(read).transpose()?;
    let rules = config.as_ref().map(Config::retention);
    let store = match &config {
        Some(config) if order.store.is_none() => config.store.clone(),
        _ => order.store()?,
    };
    // Without a configuration it is not known how long blobs are kept.
    let options = match config.filter(|_| !dry_run) {
        Some(config) => config.options,
        None => sweeping_nothing(Options::default()),
    };
    // A server that runs only for a dry run removes nothing by itself.
    let by = if dry_run { RetentionRules::default() } else { rules.clone().unwrap_or_default() };
    let changeable = Changeable { retention: by.into(), ..Approvals::default().into() };
    let directory = if dry_run { New::Read } else { New::Refused };
    let done = ask_by(&order.data_dir, (store, directory), (options, changeable), async |owner| {
        let workspaces = match workspace {
            Some(workspace) => vec![workspace],
            None => owner.workspaces().await?,
        };
        let mut done = Vec::new();
        for workspace in workspaces {
            let outcome = match dry_run {
                true => owner.rehearse(&workspace, rules.as_ref().map(|rules| rules.of(&workspace))).await?,
                false => remove(owner, &workspace).await?,
            };
            done.push((workspace, outcome));
        }
        Ok(done)
    })
    .await?;
    if json {
        let workspaces: Vec<_> = done.iter().map(|(workspace, outcome)| object(workspace, outcome)).collect();
        return print(&[json!({ "isDryRun": dry_run, "workspaces": workspaces }).to_string()]);
    }
    print(&done.iter().map(|(workspace, outcome)| line(workspace, outcome, dry_run)).collect::<Vec<_>>())
}

/// A configuration file, with what the environment sets.
fn read(file: PathBuf) -> anyhow::Result<Config> {
    let sources = Sources { command_line: Vec::new(), environment: std::env::vars_os().collect(), file: Some(file) };
    let effective = sources.read().context("failed to read the configuration; see `aptix-server check-config`")?;
    Ok(effective.config)
}

/// Removes all that a workspace keeps no longer.
async fn remove(owner: &mut Owner, workspace: &WorkspaceId) -> Result<Outcome, Unanswered> {
    let mut sum = Retained::default();
    loop {
        let outcome = owner.retain(workspace).await?;
        let step = outcome.retained;
        sum = Retained {
            contents: sum.contents + step.contents,
            content_bytes: sum.content_bytes + step.content_bytes,
            records: sum.records + step.records,
            events: sum.events + step.events,
            ..step
        };
        if !step.has_more {
            return Ok(Outcome { retained: sum, ..outcome });
        }
    }
}

/// A workspace in a line.
fn line(workspace: &WorkspaceId, outcome: &Outcome, is_dry_run: bool) -> String {
    let Outcome { limits, retained, newest, open_batches } = outcome;
    let Retained { contents, content_bytes, records, events, oldest, held_by, .. } = retained;
    let removed = if limits.keep_all() {
        "keeps everything: it has no limit".to_owned()
    } else if contents + records + events == 0 {
        "has nothing to remove".to_owned()
    } else {
        let verb = if is_dry_run { "would remove" } else { "removed" };
        format!(
            "{verb} the content of {contents} batches ({content_bytes} bytes), {records} records and {events} events"
        )
    };
    let events = if oldest > newest { "no event".to_owned() } else { format!("events {oldest} to {newest}") };
    let held = match held_by {
        Some(HeldBy::Open(revision, batch)) => {
            format!("; events from {revision} on are past the limits and stay until batch {batch} has ended")
        }
        Some(HeldBy::Damaged(revision)) => {
            format!("; events from {revision} on are past the limits and stay because a record is damaged")
        }
        None => String::new(),
    };
    format!("{workspace}: {removed}; {events} and {open_batches} open batches stay{held}")
}

fn object(workspace: &WorkspaceId, outcome: &Outcome) -> Value {
    let Outcome { limits, retained, newest, open_batches } = outcome;
    let held = retained.held_by.map(|held| match held {
        HeldBy::Open(revision, batch) => json!({ "revision": revision.0, "batchId": batch.to_string() }),
        HeldBy::Damaged(revision) => json!({ "revision": revision.0, "isDamaged": true }),
    });
    json!({
        "workspaceId": workspace.to_string(),
        "limits": of_limits(limits),
        "contents": retained.contents,
        "contentBytes": retained.content_bytes,
        "records": retained.records,
        "events": retained.events,
        "oldestRevision": retained.oldest.0,
        "newestRevision": newest.0,
        "openBatches": open_batches,
        "heldBy": held,
    })
}

/// The limits, by the names of their keys.
fn of_limits(limits: &Limits) -> Value {
    json!({
        "content_seconds": limits.content_age.map(|age| age.as_secs()),
        "content_batches": limits.content_batches,
        "content_bytes": limits.content_bytes,
        "record_seconds": limits.record_age.map(|age| age.as_secs()),
        "record_events": limits.record_events,
        "record_least_seconds": limits.record_least.as_secs(),
    })
}
