//! The program `aptix-server`: reads its configuration, opens its store, listens, and ends in order.

mod administer;
mod backup;
mod check_config;
#[cfg(feature = "postgres")]
mod migrate;
mod opening;
mod reload;
mod service_manager;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitCode, Termination};
use std::time::Duration;

use anyhow::{Context, bail};
use aptix_server::config::{Config, Effective, LogFilter, LogFormat, Sources};
use aptix_server::descriptors;
use aptix_server::listen::{OwnerSocket, incoming, listen, listen_to_owner};
use aptix_server::metrics;
use aptix_server::metrics::scrape::answer_scrapes;
use aptix_server::options::Changeable;
use aptix_server::serve::serve;
use aptix_server::service::owner::Unanswered;
use aptix_server::store::embedded::format;
use aptix_server::store::embedded::verify::{self, Findings};
use aptix_server::tls::Tls;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::administer::{RetentionCommand, StatusCommand, TokenCommand, WorkspaceCommand};
use crate::backup::{BackUp, Restore};
use crate::check_config::{CheckConfig, check_config};
use crate::opening::Opened;
use crate::reload::{Reload, SetLog};
use crate::service_manager::{ServiceManager, State};

/// Keeps batches of file edits and streams them to the agents that apply them.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Address and port to listen on; port 0 lets the system choose [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Allow --listen on an address that other machines can reach, although no token was made and callers need none
    #[arg(long)]
    insecure_no_auth: bool,
    /// Directory for everything the server keeps [default: aptix-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where batches are kept: `embedded`, in the data directory, or the address of a PostgreSQL database, postgres://USER@HOST/DATABASE.
    /// Other users see the options of a program: set one with a password in the file or as APTIX_SERVER_STORE [default: embedded]
    #[arg(long, value_name = "STORE")]
    store: Option<OsString>,
    /// Start although something that was acknowledged is missing from the data directory: its journals are copied aside
    /// there, and what is left is served
    #[arg(long)]
    accept_loss: bool,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is logged, to stderr: a level, or target=level pairs [default: info]
    #[arg(long, value_name = "FILTER", value_parser = log_filter)]
    log: Option<String>,
    /// How it is logged [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
}

/// Reads an address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:7420".to_owned())
}

/// Checks a log filter.
fn log_filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    LogFilter::new(text).map(|_| text.to_owned())
}

impl Args {
    /// Where the configuration comes from.
    fn sources(&self) -> Sources {
        let options: [(_, Option<OsString>); 6] = [
            ("listen", self.listen.map(|listen| listen.to_string().into())),
            ("data_dir", self.data_dir.clone().map(Into::into)),
            ("store", self.store.clone()),
            ("insecure_no_auth", self.insecure_no_auth.then(|| "true".into())),
            ("log", self.log.clone().map(Into::into)),
            ("log_format", self.log_format.clone().map(Into::into)),
        ];
        let command_line = options.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        Sources { command_line, environment: std::env::vars_os().collect(), file: self.config.clone() }
    }
}

#[derive(clap::Subcommand)]
enum Command {
    /// Reads everything in a data directory that no server uses, or in a backup, changes nothing, and names every damage; exit
    /// 1 if there is any
    Verify {
        /// Directory that the server keeps everything in
        #[arg(long, value_name = "DIR", default_value = aptix_server::config::DATA_DIR)]
        data_dir: PathBuf,
        /// A backup, in the place of a data directory
        #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
        backup: Option<PathBuf>,
    },
    /// Makes a backup of everything that the server keeps, while it runs or not
    Backup(BackUp),
    /// Makes a data directory, or a store in a database, of a backup
    Restore(Restore),
    /// Moves a whole store from a data directory into a PostgreSQL database, or back. No server may use it. Run again after it was cut
    /// off, the same command goes on into a database, and begins anew into a directory
    #[cfg(feature = "postgres")]
    Migrate(migrate::Migrate),
    /// Reads the configuration as the server would and prints what takes effect and where it comes from, or, with exit 1,
    /// everything that is wrong with it
    CheckConfig(CheckConfig),
    /// Prints how the server is that uses a data directory: exit 0 if it serves, 1 if it takes no writes or stops, 3 if none answers
    Status(StatusCommand),
    /// Makes, lists and revokes tokens: who may call the server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Creates, lists and deletes workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Removes what workspaces keep no longer by the configuration of the server, or only counts it
    Retention(RetentionCommand),
}

fn main() -> ExitCode {
    descriptors::leave_no_core_dump();
    let mut args = Args::parse();
    let done = match args.command.take() {
        Some(command) => log_of_command().and_then(|()| carry_out(command)),
        None => start(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(if matches!(error.downcast_ref(), Some(Unanswered::Refused(_))) { 1 } else { 3 })
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Verify { backup: Some(file), .. } => backup::verify(&file),
        Command::Verify { data_dir, .. } => verify(&data_dir),
        Command::Backup(command) => run(backup::back_up(command)),
        Command::Restore(command) => run(backup::restore(command)),
        #[cfg(feature = "postgres")]
        Command::Migrate(command) => run(migrate::migrate(command)),
        Command::CheckConfig(command) => check_config(command),
        Command::Status(command) => run(administer::status(command)),
        Command::Token(command) => run(administer::token(command)),
        Command::Workspace(command) => run(administer::workspace(command)),
        Command::Retention(command) => run(administer::retention(command)),
    }
}

/// Reads the configuration and serves; each fault of it is logged by itself.
fn start(args: &Args) -> anyhow::Result<ExitCode> {
    let sources = args.sources();
    match sources.read() {
        Ok(effective) => {
            let set_log = log(&effective.config.log, effective.config.log_format);
            run(exporting_spans(serve_until_signal((sources, effective), set_log, args.accept_loss)))
        }
        Err(faults) => {
            let _unchanged = log(&LogFilter::default(), LogFormat::default());
            faults.iter().for_each(|fault| tracing::error!("{fault}"));
            Ok(ExitCode::from(3))
        }
    }
}

/// Logs what `APTIX_LOG` says, as all our programs do.
#[expect(clippy::disallowed_methods, reason = "commands read no configuration")]
fn log_of_command() -> anyhow::Result<()> {
    let general = |variable| std::env::var(variable).ok().filter(|value| !value.is_empty());
    let is_json = general("APTIX_LOG_FORMAT").is_some_and(|format| format == "json");
    let filter = LogFilter::new(general("APTIX_LOG").as_deref().unwrap_or("warn"));
    let format = if is_json { LogFormat::Json } else { LogFormat::Text };
    let _unchanged = log(filter.as_ref().unwrap_or(&LogFilter::default()), format);
    filter.map(drop).context("failed to read APTIX_LOG")
}

/// Begins to log, and answers what changes the filter.
fn log(filter: &LogFilter, format: LogFormat) -> SetLog {
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // A handle that is gone has no log to change.
    match format {
        LogFormat::Text => {
            let logs = logs.with_env_filter(filter.filter()).with_filter_reloading();
            let handle = logs.reload_handle();
            logs.init();
            Box::new(move |filter| drop(handle.reload(filter.filter())))
        }
        LogFormat::Json => {
            let logs = logs.json().flatten_event(true).with_env_filter(filter.filter()).with_filter_reloading();
            let handle = logs.reload_handle();
            logs.init();
            Box::new(move |filter| drop(handle.reload(filter.filter())))
        }
    }
}

/// Prints each damage in a line of its own, and how much was read.
fn verify(data_dir: &Path) -> anyhow::Result<ExitCode> {
    if !format::is_store(data_dir) {
        bail!("{} has no store in it; hint: name the directory of one with --data-dir", data_dir.display());
    }
    let found = verify::verify(data_dir)?;
    let mut out = std::io::stdout().lock();
    for damage in &found.damages {
        writeln!(out, "damage: {damage}")?;
    }
    for note in &found.notes {
        writeln!(out, "note: {note}")?;
    }
    let Findings { records, blob_bytes, damages, .. } = &found;
    writeln!(out, "{records} records and {blob_bytes} bytes of blobs were read, {} damages", damages.len())?;
    Ok(if damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long abandoned work may delay the end of the process.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

fn run(work: impl Future<Output = anyhow::Result<impl Termination>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("failed to start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_BEHIND);
    done.map(Termination::report)
}

/// Exports the spans of work, if the environment says where to.
async fn exporting_spans(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    aptix_telemetry::begin("aptix-server");
    let done = work.await;
    aptix_telemetry::finish().await;
    done
}

async fn serve_until_signal(
    (sources, started): (Sources, Effective),
    set_log: SetLog,
    accept_loss: bool,
) -> anyhow::Result<()> {
    let manager = ServiceManager::of_environment(&sources.environment);
    let mut config = started.config.clone();
    let tls = config.tls.files()?.map(Tls::open).transpose()?;
    let descriptors = descriptors::reserve(config.options.connections.total)?;
    config.options.connections.shrink(descriptors.connections);
    let mut signalled = pin!(signals()?);
    let hangup = signal(SignalKind::hangup()).context("failed to listen for SIGHUP")?;
    let (Opened { store, dir: _held }, needs_no_token) = tokio::select! {
        opened = open(&config, descriptors.store_files, accept_loss) => opened?,
        () = &mut signalled => {
            tracing::info!("stopped before the store was open");
            return Ok(());
        }
    };
    if needs_no_token {
        config.check_exposure()?;
    }
    let owner = listen_to_owner(&config.data_dir, OwnerSocket::Server).inspect_err(|error| {
        tracing::warn!(%error, "the socket in the data directory cannot be used: tokens can be made while the server is stopped");
    });
    let listener = listen(config.listen)
        .with_context(|| format!("failed to listen on {}; give another address with --listen", config.listen))?;
    let address = listener.local_addr().context("failed to learn the address")?;
    if needs_no_token && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(%address, "callers need no token: a process that reaches this address can change files");
    }
    let fleet = config.fleet.options(address, tls.is_some())?;
    metrics::begin();
    let metrics = listen_for_scrapes(config.metrics).await?;
    tracing::info!(%address, tls = tls.is_some(), dataDir = %config.data_dir.display(), store = %config.store, "serving");
    // The process that started the server waits for this line; from here on connections are answered.
    writeln!(std::io::stdout(), "listening on {address}").context("failed to write to stdout")?;
    manager.report(State::Ready);
    let incoming = incoming(Some(listener), owner.ok(), tls.clone());
    let (approvals, current_approvals) = watch::channel(config.approvals());
    let (quotas, current_quotas) = watch::channel(config.quotas());
    let (retention, current_retention) = watch::channel(config.retention());
    let changeable = Changeable {
        approvals: current_approvals.into(),
        quotas: current_quotas.into(),
        retention: current_retention.into(),
        origins: config.web_origins.clone(),
        fleet,
    };
    let reload = Reload { sources, started, approvals, quotas, retention, set_log };
    let stopped = async {
        signalled.await;
        manager.report(State::Stopping);
    };
    tokio::select! {
        served = serve(store, (config.options, changeable), incoming, stopped) => served?,
        never = Tls::watch(tls) => match never {},
        never = reload.run(hangup, &manager) => match never {},
        never = answer_scrapes(metrics) => match never {},
    }
    Ok(())
}

/// Ends with SIGTERM or SIGINT, from when this was called.
fn signals() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Opens the store; answers also whether callers need no token.
async fn open(config: &Config, open_files: usize, accept_loss: bool) -> anyhow::Result<(Opened, bool)> {
    let opened = opening::open(config, open_files, accept_loss).await?;
    let needs_no_token = opened.store.tokens().await?.is_empty();
    Ok((opened, needs_no_token))
}

/// The listener for scrapes of the metrics, if there is to be one.
async fn listen_for_scrapes(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = listen(address)
        .with_context(|| format!("failed to listen on {address} for metrics; set metrics to another address"))?;
    let address = listener.local_addr().context("failed to learn the address of the metrics")?;
    tracing::info!(%address, "metrics can be scraped");
    Ok(Some(listener))
}
