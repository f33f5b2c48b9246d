//! The command `status`: how the server is that uses a data directory.

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use aptix_model::record::UnixMillis;
use aptix_model::wire;
use aptix_server::dispatcher::survey::Survey;
use aptix_server::listen::OwnerSocket;
use aptix_server::service::owner::Owner;
use aptix_server::service::server_status::ServerStatus;
use aptix_server::store::Space;
use aptix_server::store::embedded::format;
use serde_json::{Value, json};

use super::{Order, print};

/// How it is printed. Only a server that runs is asked, wherever it keeps its data.
#[derive(clap::Args)]
#[command(mut_arg("store", |argument| argument.hide(true)))]
pub(crate) struct StatusCommand {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    order: Order,
}

/// Prints how the server is; exit 1 if it does not serve as a whole. While only new batches are refused it does.
///
/// # Errors
/// When no server answers.
pub(crate) async fn status(command: StatusCommand) -> anyhow::Result<ExitCode> {
    let StatusCommand { json, order } = command;
    let dir = order.data_dir.display();
    let nowhere = || format!("there is no server's data in {dir}; name its directory with --data-dir");
    let held = File::open(&order.data_dir).with_context(nowhere)?;
    let owner = Owner::connect(&held, OwnerSocket::Server).await;
    // A server that keeps its data in a database has its socket in the directory, and nothing else.
    if owner.is_err() && !format::is_store(&order.data_dir) {
        bail!(nowhere());
    }
    let mut owner = owner.map_err(|error| {
        // The errors above the cause repeat its words.
        let error = anyhow::Error::from(error);
        let (cause, start) = (error.root_cause(), format!("`aptix-server --data-dir {dir}`"));
        anyhow!("no server answers in the data directory {dir}: {cause}; hint: start one with {start}")
    })?;
    let status = owner.status().await?;
    print(&if json { vec![object(&status).to_string()] } else { lines(&status) })?;
    let is_serving = status.services.iter().any(|(name, is_serving)| name.is_empty() && *is_serving);
    Ok(ExitCode::from(u8::from(!is_serving)))
}

/// A line for each subject.
fn lines(status: &ServerStatus) -> Vec<String> {
    let ServerStatus { version, started, survey, tokens, last_backup, certificate_expiry, .. } = status;
    let time = |at: &UnixMillis| wire::rfc3339(*at);
    let mut lines = vec![format!("version: {version}, serving since {}", time(started)), health(&status.services)];
    match survey {
        Some(survey) => lines.extend(contents(survey, status.served_workspaces)),
        None => lines.push("store: cannot be read at present; the server's log says why".to_owned()),
    }
    lines.push(match tokens {
        Some(tokens) => format!("tokens: {tokens} in force"),
        None => "tokens: none made, calls need none".to_owned(),
    });
    let backup = last_backup.as_ref().map_or("none since the server was started".to_owned(), time);
    lines.push(format!("last backup: {backup}"));
    lines.extend(certificate_expiry.as_ref().map(|at| format!("certificate: expires {}", time(at))));
    lines
}

fn health(services: &[(String, bool)]) -> String {
    let not_serving: Vec<_> = services.iter().filter(|(_, is_serving)| !is_serving).map(|(name, _)| name).collect();
    match not_serving.as_slice() {
        [] => "health: all services serve".to_owned(),
        [whole, ..] if whole.is_empty() => {
            "health: no service serves: the store takes no writes, or the server stops".to_owned()
        }
        some => {
            let names: Vec<_> = some.iter().map(|name| name.rsplit('.').next().unwrap_or(name)).collect();
            format!("health: not serving: {}; the disk has less free than its reserve", names.join(", "))
        }
    }
}

fn contents(survey: &Survey, served: u64) -> Vec<String> {
    let Survey { workspaces, damaged_workspaces, open_batches, waiting_batches, space, reserve } = survey;
    let damaged = match damaged_workspaces {
        0 => String::new(),
        damaged => format!(", {damaged} damaged: `aptix-server verify` names the damage"),
    };
    let mut lines = vec![
        format!("workspaces: {workspaces}, {served} served by an agent{damaged}"),
        format!("open batches: {open_batches}, {waiting_batches} waiting for a person or their owner"),
    ];
    lines.extend(space.map(|Space { free, size }| format!("disk: {free} of {size} bytes free, {reserve} reserved")));
    lines
}

fn object(status: &ServerStatus) -> Value {
    let time = |at: &UnixMillis| wire::rfc3339(*at);
    let service = |(name, is_serving): &(String, bool)| json!({ "service": name, "isServing": is_serving });
    let contents = |survey: &Survey| {
        let disk =
            |Space { free, size }| json!({ "freeBytes": free, "sizeBytes": size, "reserveBytes": survey.reserve });
        json!({
            "workspaces": survey.workspaces,
            "damagedWorkspaces": survey.damaged_workspaces,
            "openBatches": survey.open_batches,
            "waitingBatches": survey.waiting_batches,
            "disk": survey.space.map(disk),
        })
    };
    json!({
        "version": status.version,
        "startTime": time(&status.started),
        "services": status.services.iter().map(service).collect::<Vec<_>>(),
        "contents": status.survey.as_ref().map(contents),
        "servedWorkspaces": status.served_workspaces,
        "tokens": status.tokens,
        "lastBackupTime": status.last_backup.as_ref().map(time),
        "certificateExpireTime": status.certificate_expiry.as_ref().map(time),
    })
}
