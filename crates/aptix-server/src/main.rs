//! The program `aptix-server`: reads its configuration, opens its store, listens, and ends in order.

mod administer;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use aptix_server::config::{Config, ConfigFile, Exposure};
use aptix_server::descriptors;
use aptix_server::listen::{OwnerSocket, incoming, listen_to_owner};
use aptix_server::serve::serve;
use aptix_server::service::owner::Unanswered;
use aptix_server::store::Store as _;
use aptix_server::store::embedded::verify::{self, Findings};
use aptix_server::store::embedded::{EmbeddedStore, OnLoss, Opening};
use aptix_server::store::healing::HealingStore;
use clap::{Parser, ValueEnum};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::administer::{TokenCommand, WorkspaceCommand};

/// Keeps batches of file edits and streams them to the agents that apply them.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address and port to listen on; port 0 lets the system choose [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Allow --listen on an address that other machines can reach, although no token was made and callers need none
    #[arg(long)]
    insecure_no_auth: bool,
    /// Directory for everything the server keeps [default: aptix-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Start although something that was acknowledged is missing from the data directory: its journals are copied aside
    /// there, and what is left is served
    #[arg(long)]
    accept_loss: bool,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is logged, to stderr: a level, or target=level pairs [default: info; of commands warn]
    #[arg(long, value_name = "FILTER", env = "APTIX_LOG")]
    log: Option<EnvFilter>,
    /// How it is logged
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "APTIX_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Reads everything in a data directory that no server uses, changes nothing, and names every damage; exit 1 if there is
    /// any
    Verify {
        /// Directory that the server keeps everything in
        #[arg(long, value_name = "DIR", default_value = aptix_server::config::DATA_DIR)]
        data_dir: PathBuf,
    },
    /// Makes, lists and revokes tokens: who may call the server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Creates and lists workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let level = if args.command.is_some() { "warn" } else { "info" };
    let logs = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(args.log.clone().unwrap_or_else(|| EnvFilter::new(level)));
    match args.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    let done = match args.command {
        Some(Command::Verify { data_dir }) => verify(&data_dir),
        Some(Command::Token(command)) => run(administer::token(command)),
        Some(Command::Workspace(command)) => run(administer::workspace(command)),
        None => run(serve_until_signal(args)),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(if matches!(error.downcast_ref(), Some(Unanswered::Refused(_))) { 1 } else { 3 })
        }
    }
}

/// Prints each damage in a line of its own, and how much was read.
fn verify(data_dir: &Path) -> anyhow::Result<ExitCode> {
    let found = verify::verify(data_dir)?;
    let mut out = std::io::stdout().lock();
    for damage in &found.damages {
        writeln!(out, "damage: {damage}")?;
    }
    for note in &found.notes {
        writeln!(out, "note: {note}: nothing that follows was acknowledged")?;
    }
    let Findings { records, blob_bytes, damages, .. } = &found;
    writeln!(out, "{records} records and {blob_bytes} bytes of blobs were read, {} damages", damages.len())?;
    Ok(if damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long abandoned work may delay the end of the process.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

fn run(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("failed to start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_BEHIND);
    done.map(|()| ExitCode::SUCCESS)
}

async fn serve_until_signal(args: Args) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(ConfigFile::read).transpose()?.unwrap_or_default();
    let exposure = if args.insecure_no_auth { Exposure::Anywhere } else { Exposure::Loopback };
    let mut config = Config::new(args.listen, args.data_dir, file)?;
    let descriptors = descriptors::reserve(config.options.connections.total)?;
    config.options.connections.shrink(descriptors.connections);
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let (dir, open_files) = (config.data_dir.clone(), descriptors.store_files);
    // Consent is for what is missing at the start, and not for what may be missing after a failed write.
    let accept_loss = AtomicBool::new(args.accept_loss);
    let store = HealingStore::open(config.data_dir.clone(), move || {
        let on_loss = if accept_loss.swap(false, Ordering::Relaxed) { OnLoss::Accept } else { OnLoss::Refuse };
        Ok(Arc::new(EmbeddedStore::open_with(&dir, Opening { open_files, on_loss })?))
    })?;
    let needs_no_token = store.tokens().await?.is_empty();
    if needs_no_token {
        config.check_exposure(exposure)?;
    }
    let owner = listen_to_owner(&config.data_dir, OwnerSocket::Server).inspect_err(|error| {
        tracing::warn!(%error, "the socket in the data directory cannot be used: tokens can be made while the server is stopped");
    });
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("failed to listen on {}; give another address with --listen", config.listen))?;
    let address = listener.local_addr().context("failed to learn the address")?;
    if needs_no_token && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(%address, "callers need no token: a process that reaches this address can change files");
    }
    tracing::info!(%address, dataDir = %config.data_dir.display(), "serving");
    // The process that started the server waits for this line; from here on connections are answered.
    writeln!(std::io::stdout(), "listening on {address}").context("failed to write to stdout")?;
    let incoming = incoming(Some(listener), owner.ok());
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    serve(Arc::new(store), (config.options, config.approvals), incoming, stopped).await?;
    Ok(())
}
