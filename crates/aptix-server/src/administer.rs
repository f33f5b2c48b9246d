//! The commands that make and revoke tokens, create and delete workspaces and show how the server is: asked of the server that uses the data
//! directory, or, while none does and the command is not about the server itself, of one that runs for as long as the command.

mod retention;
mod status;
mod workspace;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use aptix_model::id::{IdError, TokenName};
use aptix_model::record::UnixMillis;
use aptix_model::token::{CertificateName, Ended, Ending, Role, Scope, Token};
use aptix_model::wire;
use aptix_server::config::StoreChoice;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::identity::NewToken;
use aptix_server::listen::{OwnerSocket, incoming, listen_to_owner};
use aptix_server::mint;
use aptix_server::options::{Changeable, Options};
use aptix_server::serve::serve;
use aptix_server::service::owner::{Owner, Unanswered};
#[cfg(feature = "postgres")]
use aptix_server::store::bucket_address::BucketAddress;
use aptix_server::store::embedded::{EmbeddedStore, format};
use aptix_server::store::{Store, StoreError};
use tokio::task::JoinError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub(crate) use self::retention::{RetentionCommand, retention};
pub(crate) use self::status::{StatusCommand, status};
pub(crate) use self::workspace::{WorkspaceCommand, workspace};
use crate::opening;

/// How long a command waits for a data directory that another process has.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a data directory is looked at that another process has.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What is asked.
#[derive(clap::Args)]
pub(crate) struct Order {
    /// Directory that the server keeps everything in
    #[arg(long, value_name = "DIR", default_value = aptix_server::config::DATA_DIR, global = true)]
    data_dir: PathBuf,
    /// Where the server keeps batches, while none uses the data directory: `embedded`, in that directory, or the address of a
    /// PostgreSQL database [default: embedded]
    #[arg(long, value_name = "STORE", env = "APTIX_SERVER_STORE", hide_env_values = true, global = true)]
    store: Option<OsString>,
}

impl Order {
    /// The store that is asked while no server runs.
    fn store(&self) -> anyhow::Result<StoreChoice> {
        choose(self.store.as_deref())
    }
}

/// The store that an option or the environment names; one that is empty counts as not set.
///
/// # Errors
/// When it is none.
pub(crate) fn choose(given: Option<&OsStr>) -> anyhow::Result<StoreChoice> {
    let store = given.filter(|given| !given.is_empty()).map(StoreChoice::parse).transpose();
    Ok(store.context("failed to read --store or APTIX_SERVER_STORE")?.unwrap_or_default())
}

/// The bucket that an option or the environment names; one that is empty counts as not set.
///
/// # Errors
/// When it is none.
#[cfg(feature = "postgres")]
pub(crate) fn choose_bucket(given: Option<&OsStr>) -> anyhow::Result<Option<BucketAddress>> {
    let given = given.filter(|given| !given.is_empty());
    let bucket = given.map(|given| BucketAddress::parse(&given.to_string_lossy())).transpose();
    bucket.context("failed to read --blobs or APTIX_SERVER_BLOBS")
}

#[derive(clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it; it is never shown again. From the first one on, every call needs a token
    Create {
        /// The workspace it is for, or * for all of them
        #[arg(long = "workspace", value_name = "ID", value_parser = scope)]
        scope: Scope,
        /// What its holder may do
        #[arg(long, value_parser = role, value_name = "ROLE", help = ROLES)]
        role: Role,
        /// Its name, which lists and the records of decisions show [default: the role and the time]
        #[arg(long)]
        name: Option<TokenName>,
        /// When it expires: a time such as 2027-01-31T12:00:00Z, a date, or a while such as 90d, 12h or 30m [default: never]
        #[arg(long, value_name = "WHEN", value_parser = expiry)]
        expires: Option<UnixMillis>,
        /// A name in the certificate that proves who its holder is, as dns:NAME, uri:URI or email:ADDRESS; then no secret is made
        #[arg(long, value_name = "KIND:NAME")]
        certificate: Option<CertificateName>,
        #[command(flatten)]
        order: Order,
    },
    /// Lists all tokens, without their secrets, also those that have ended
    List {
        #[command(flatten)]
        order: Order,
    },
    /// Ends a token at once: open streams of its holder end too
    Revoke {
        /// Its name
        name: TokenName,
        #[command(flatten)]
        order: Order,
    },
}

const ROLES: &str = "What its holder may do: orchestrator, agent, reviewer, reader or operator";

fn role(text: &str) -> Result<Role, String> {
    Role::from_word(text).ok_or_else(|| format!("expected one of {}", Role::ALL.map(Role::word).join(", ")))
}

/// Reads a time, or how long from now.
fn expiry(text: &str) -> Result<UnixMillis, String> {
    let seconds = |unit| match unit {
        'd' => Some(86_400),
        'h' => Some(3600),
        'm' => Some(60),
        _ => None,
    };
    let mut rest = text.chars();
    if let Some((unit, number)) = rest.next_back().and_then(seconds).zip(rest.as_str().parse::<u32>().ok()) {
        return Ok(UnixMillis(mint::now().0.saturating_add(u64::from(number) * unit * 1000)));
    }
    wire::parse_time(text)
        .ok_or_else(|| "expected a time such as 2027-01-31T12:00:00Z, a date, or 90d, 12h or 30m".to_owned())
}

/// Reads the workspaces of a token.
fn scope(text: &str) -> Result<Scope, IdError> {
    if text == "*" { Ok(Scope::All) } else { text.parse().map(Scope::One) }
}

/// Carries out a command about tokens.
///
/// # Errors
/// When it is refused, or the data directory cannot be used.
pub(crate) async fn token(command: TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create { scope, role, name, expires, certificate, order } => {
            let made_up = || format!("{role}-{}", mint::now().0).parse();
            let name = name.map_or_else(made_up, Ok)?;
            let asked = NewToken { name, role, scope, expires, certificate };
            let (token, secret) = ask(&order, New::Made, async |owner| owner.create_token(asked).await).await?;
            let (name, about) = (&token.name, about(&token).join(", "));
            let next = match &token.certificate {
                Some(certificate) => format!("for certificates of {certificate}"),
                None => {
                    print(&[secret])?;
                    "keep it, it is not shown again".to_owned()
                }
            };
            say(&format!("made token {name}: {about}; {next}; end it with `aptix-server token revoke {name}`"));
        }
        TokenCommand::List { order } => {
            let listed = ask(&order, New::Read, async |owner| owner.list_tokens().await).await?;
            let lines: Vec<_> =
                listed.iter().map(|token| [&[token.name.to_string()][..], &about(token)].concat().join("\t")).collect();
            print(&lines)?;
        }
        TokenCommand::Revoke { name, order } => {
            let token = ask(&order, New::Refused, async |owner| owner.revoke_token(&name).await).await?;
            say(&format!("token {name} has ended: {}", about(&token).join(", ")));
        }
    }
    Ok(())
}

/// What is said of a token, beside its name.
fn about(token: &Token) -> Vec<String> {
    let time = |at: UnixMillis| wire::rfc3339(at);
    let workspace = match &token.scope {
        Scope::All => "*".to_owned(),
        Scope::One(workspace) => workspace.to_string(),
    };
    let end = match (token.ended, token.expires) {
        (Some(Ended { at, how: Ending::Expired }), _) => format!("expired {}", time(at)),
        (Some(Ended { at, how: Ending::Revoked }), _) => format!("revoked {}", time(at)),
        (None, Some(at)) => format!("expires {}", time(at)),
        (None, None) => "does not expire".to_owned(),
    };
    let certificate = token.certificate.as_ref().map(ToString::to_string);
    [token.role.to_string(), workspace, format!("made {}", time(token.created)), end]
        .into_iter()
        .chain(certificate)
        .collect()
}

/// Says what was done, beside what is printed.
fn say(line: &str) {
    // Nothing can be done about a closed stderr.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn print(lines: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context("failed to write to stdout")
}

/// What becomes of a directory that is no data directory yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum New {
    Made,
    Refused,
    /// Refused, and one that there is is only read.
    Read,
}

/// Asks the server that uses the data directory; one that runs as long, if there is none.
pub(crate) async fn ask<T>(
    order: &Order,
    new: New,
    call: impl AsyncFnOnce(&mut Owner) -> Result<T, Unanswered>,
) -> anyhow::Result<T> {
    let rules = (sweeping_nothing(Options::default()), Approvals::default().into());
    ask_by(&order.data_dir, (order.store()?, new), rules, call).await
}

/// Options of a server that removes no blob: it does not know how long the configured one keeps them.
fn sweeping_nothing(options: Options) -> Options {
    Options { blob_retention: Duration::MAX, ..options }
}

/// As [`ask`]; a server that runs only for the command is held to these rules.
async fn ask_by<T>(
    data_dir: &Path,
    (choice, new): (StoreChoice, New),
    (options, rules): (Options, Changeable),
    call: impl AsyncFnOnce(&mut Owner) -> Result<T, Unanswered>,
) -> anyhow::Result<T> {
    let unusable = || {
        let dir = data_dir.display();
        format!("failed to open the data directory {dir}; name it with --data-dir, as the server has it")
    };
    if choice.is_embedded() && !format::is_store(data_dir) {
        // A server that keeps its data in a database has its socket here, and nothing else.
        if let Ok(dir) = File::open(data_dir)
            && let Ok(mut owner) = Owner::connect(&dir, OwnerSocket::Server).await
        {
            return Ok(call(&mut owner).await?);
        }
        if new != New::Made {
            bail!(
                "there is no server's data in {}; name its directory with --data-dir, or its database with APTIX_SERVER_STORE",
                data_dir.display()
            );
        }
        say(&format!("{} is a new data directory", data_dir.display()));
    }
    opening::make_dir(data_dir).with_context(unusable)?;
    let dir = File::open(data_dir).with_context(unusable)?;
    let until = Instant::now() + PATIENCE;
    let store = loop {
        if let Ok(mut owner) = Owner::connect(&dir, OwnerSocket::Server).await {
            return Ok(call(&mut owner).await?);
        }
        // A server that starts or ends has the directory, and no socket.
        match open(&choice, data_dir, new).await {
            Err(StoreError::InUse { .. }) if Instant::now() < until => {
                sleep(LOOK_AGAIN).await;
            }
            opened => break opened?,
        }
    };
    let owner = listen_to_owner(data_dir, OwnerSocket::Command);
    let owner = owner.context("failed to make a socket in the data directory")?;
    let stop = CancellationToken::new();
    let stopping = stop.clone().cancelled_owned();
    let serving = serve(store, (options, rules), incoming(None, Some(owner), None), stopping);
    let asking = async {
        let _stop = stop.drop_guard();
        let mut owner = Owner::connect(&dir, OwnerSocket::Command)
            .await
            .context("failed to reach the server of the data directory")?;
        Ok(call(&mut owner).await?)
    };
    let (served, answer) = tokio::join!(serving, asking);
    if let Err(error) = OwnerSocket::Command.remove(data_dir) {
        tracing::warn!(%error, "the command's socket could not be removed");
    }
    served?;
    answer
}

/// Opens a store; a data directory of an older format that is only read is not upgraded.
async fn open(choice: &StoreChoice, data_dir: &Path, new: New) -> Result<Arc<dyn Store>, StoreError> {
    let data_dir = match choice {
        StoreChoice::Embedded => data_dir.to_owned(),
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres(address) => return opening::open_database(address).await,
    };
    let opened = tokio::task::spawn_blocking(move || match new {
        New::Read if format::is_old(&data_dir)? => EmbeddedStore::look(&data_dir),
        New::Made | New::Refused | New::Read => EmbeddedStore::open(&data_dir),
    })
    .await;
    let broken = |error: JoinError| StoreError::Failed { action: "be opened", cause: error.to_string() };
    let store: Arc<dyn Store> = Arc::new(opened.unwrap_or_else(|error| Err(broken(error)))?);
    Ok(store)
}
