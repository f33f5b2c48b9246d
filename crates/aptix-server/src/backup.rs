//! The commands that make a backup, read it, and restore it.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use aptix_model::wire;
use aptix_server::config::StoreChoice;
use aptix_server::store::backup::{self, BackupError, NewFile, Summary};
use aptix_server::store::embedded::restore::{self, RestoredTokens};
#[cfg(feature = "postgres")]
use aptix_server::store::postgres::PostgresStore;
use tokio::signal::unix::{SignalKind, signal};

#[cfg(feature = "postgres")]
use crate::administer::choose_bucket;
use crate::administer::{New, Order, ask, choose};
#[cfg(feature = "postgres")]
use crate::opening::name_database;

/// What is backed up, and where to.
#[derive(clap::Args)]
pub(crate) struct BackUp {
    /// File that becomes the backup; only its owner can read it
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    order: Order,
}

/// What is restored, and where to.
#[derive(clap::Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Directory that becomes the data directory: a new or an empty one
    #[arg(long, value_name = "DIR", required_unless_present = "store")]
    data_dir: Option<PathBuf>,
    /// What is made of the backup: `embedded`, a data directory, or the address of a PostgreSQL database that has no store yet; then no
    /// directory is used [default: embedded]
    #[arg(long, value_name = "STORE", env = "APTIX_SERVER_STORE", hide_env_values = true)]
    store: Option<OsString>,
    /// Bucket that gets the bytes of blobs in the place of the database, s3://BUCKET/PREFIX
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "BUCKET", env = "APTIX_SERVER_BLOBS")]
    blobs: Option<OsString>,
    /// Revoke every token in the backup; calls still need one
    #[arg(long)]
    revoke_tokens: bool,
}

/// Makes a backup: by the server that uses the data directory, if there is one.
///
/// # Errors
/// When it cannot be made or written; then there is no file.
pub(crate) async fn back_up(BackUp { to, force, order }: BackUp) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let mut file = NewFile::create(&to, force)?;
    let made = ask(&order, New::Read, async |owner| owner.back_up(|bytes| file.write(bytes)).await);
    tokio::select! {
        made = made => made?,
        _ = terminate.recv() => bail!("the backup was broken off; nothing was written to {}", to.display()),
        _ = interrupt.recv() => bail!("the backup was broken off; nothing was written to {}", to.display()),
    }
    let summary = tokio::task::spawn_blocking(move || file.finish()).await??;
    print(&format!("made {}: {}", to.display(), about(&summary)))
}

/// Makes a data directory or a store in a database of a backup.
///
/// # Errors
/// When the backup is damaged, the directory is not empty, the database has a store, or the system refuses.
pub(crate) async fn restore(command: Restore) -> anyhow::Result<()> {
    #[cfg(feature = "postgres")]
    let blobs = choose_bucket(command.blobs.as_deref())?;
    let Restore { from, data_dir, store, revoke_tokens, .. } = command;
    let tokens = if revoke_tokens { RestoredTokens::Revoked } else { RestoredTokens::Kept };
    let failed = || format!("failed to restore {}", from.display());
    let (place, summary) = match choose(store.as_deref())? {
        #[cfg(feature = "postgres")]
        StoreChoice::Embedded if blobs.is_some() => {
            bail!("expected a database as --store with --blobs, found embedded")
        }
        StoreChoice::Embedded => {
            let data_dir = data_dir.context("expected --data-dir, the directory to restore into, found none")?;
            let (place, from) = (data_dir.display().to_string(), from.clone());
            let restored = tokio::task::spawn_blocking(move || restore::restore(&from, &data_dir, tokens)).await?;
            (place, restored.with_context(failed)?)
        }
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres(address) => {
            let address = address.with_blobs(blobs);
            let backup = std::fs::File::open(&from).with_context(failed)?;
            let restored = PostgresStore::restore(&address, std::io::BufReader::new(backup), tokens).await;
            let place = address.to_string();
            let restored = restored.map_err(|error| name_database(&place, error)).with_context(failed)?;
            (place, restored)
        }
    };
    let tokens = match (summary.tokens, revoke_tokens) {
        (0, _) => "",
        (_, true) => "; every token is revoked: make new ones with `aptix-server token create`",
        (_, false) => "; tokens are as they were then: revoke again what was revoked since",
    };
    print(&format!("restored {} into {place}: {summary}{tokens}", from.display()))
}

/// Reads all of a backup.
///
/// # Errors
/// When it cannot be read. Damage is no error, and ends with 1.
pub(crate) fn verify(file: &Path) -> anyhow::Result<ExitCode> {
    match backup::verify(file) {
        Ok(summary) => {
            print(&format!("{} is whole: {}", file.display(), about(&summary)))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(damage @ (BackupError::Damaged { .. } | BackupError::NoBackup)) => {
            print(&format!("damage: {}: {damage}", file.display()))?;
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// What is said of a backup.
fn about(summary: &Summary) -> String {
    let taken = summary.taken.map(wire::rfc3339).unwrap_or_default();
    let digest = summary.digest.map(|digest| digest.to_string()).unwrap_or_default();
    format!("{summary}; {} bytes, as of {taken}, digest {digest}", summary.bytes)
}

fn print(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("failed to write to stdout")
}
