//! The command that moves a store from a data directory into a database, or back.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use aptix_server::config::StoreChoice;
use aptix_server::store::migration::{self, Place, Stage};
use clap::error::ErrorKind;
use tokio::signal::unix::{SignalKind, signal};

use crate::administer::{choose, choose_bucket};
use crate::opening::name_database;

/// What is moved, and where to.
#[derive(clap::Args)]
pub(crate) struct Migrate {
    /// Where the store is: in the data directory, or in the database
    #[arg(long, value_name = "KIND")]
    from: Kind,
    /// Where it is to be
    #[arg(long, value_name = "KIND")]
    to: Kind,
    /// The data directory; as the one to move into a new or an empty one
    #[arg(long, value_name = "DIR", default_value = aptix_server::config::DATA_DIR)]
    data_dir: PathBuf,
    /// The address of the PostgreSQL database; as the one to move into one that has no store
    #[arg(long, value_name = "STORE", env = "APTIX_SERVER_STORE", hide_env_values = true)]
    store: OsString,
    /// Bucket that gets the bytes of blobs in the place of the database, s3://BUCKET/PREFIX
    #[arg(long, value_name = "BUCKET", env = "APTIX_SERVER_BLOBS")]
    blobs: Option<OsString>,
}

/// A kind of store.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Embedded,
    Postgres,
}

/// Moves a store.
///
/// # Errors
/// When the system refuses, or what was written differs from the source. A source or a target that is refused is no error, and ends
/// with 1.
pub(crate) async fn migrate(Migrate { from, to, data_dir, store, blobs }: Migrate) -> anyhow::Result<ExitCode> {
    if from == to {
        let why =
            "expected --from and --to with two kinds of stores: embedded and postgres, or postgres and embedded\n";
        clap::Error::raw(ErrorKind::ArgumentConflict, why).exit();
    }
    let StoreChoice::Postgres(address) = choose(Some(&store))? else {
        bail!("expected the address of a PostgreSQL database as --store or APTIX_SERVER_STORE, found embedded");
    };
    let address = Box::new(address.with_blobs(choose_bucket(blobs.as_deref())?));
    let (dir, named) = (data_dir.display().to_string(), address.to_string());
    let database = named.clone();
    let again = match to {
        Kind::Postgres => "run the same command again, and it goes on",
        Kind::Embedded => "run the same command again, which begins anew",
    };
    let places = (Place::Embedded(data_dir), Place::Postgres(address));
    let ((source, target), names) = match from {
        Kind::Embedded => (places, (dir, named)),
        Kind::Postgres => ((places.1, places.0), (named, dir)),
    };
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let migrated = tokio::select! {
        migrated = migration::migrate(source, target, report) => migrated,
        _ = terminate.recv() => bail!("the migration was broken off; hint: {again}"),
        _ = interrupt.recv() => {
            tracing::error!("the migration was interrupted; hint: {again}");
            return Ok(ExitCode::from(130));
        }
    };
    match migrated.map_err(|error| name_database(&database, error)) {
        Ok(summary) => {
            let done = format!("moved {} into {}, read back and equal: {summary}", names.0, names.1);
            writeln!(std::io::stdout(), "{done}").context("failed to write to stdout")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.is_refusal() => {
            tracing::error!("refused to migrate: {error}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error).context("failed to migrate"),
    }
}

/// Reports progress on stderr.
fn report(stage: Stage, done: u64, total: u64) {
    let stage = match stage {
        Stage::Copy => "copied",
        Stage::Compare => "compared",
    };
    // Nothing can be done about a closed stderr.
    let _ = writeln!(std::io::stderr(), "{stage} {done} of {total} workspaces");
}
