//! The configuration of the server: its file and its command line. The command line wins.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aptix_model::id::IdError;
use serde::Deserialize;

use crate::caller::Share;
use crate::dispatcher::approvals::{Approval, Approvals};
use crate::options::Options;

/// Where the server listens by default.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7420);

/// Where the server keeps its data by default, in the directory it is started in.
pub const DATA_DIR: &str = "aptix-data";

/// The whole configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where it keeps its data.
    pub data_dir: PathBuf,
    /// What it holds itself and its callers to.
    pub options: Options,
    /// Which batches a person has to approve.
    pub approvals: Approvals,
}

/// Which addresses the server may listen on while callers need no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exposure {
    /// Loopback addresses only.
    Loopback,
    /// Any address: the operator accepts that every process that reaches it has every right.
    Anywhere,
}

/// The configuration file. A key it does not have is refused, not ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Address and port.
    pub listen: Option<SocketAddr>,
    /// Directory; relative to the one the server is started in.
    pub data_dir: Option<PathBuf>,
    /// Seconds between two signs of life on a feed, 1 to 3,600.
    pub heartbeat_seconds: Option<u64>,
    /// Connections at one time.
    pub connections: Option<usize>,
    /// Of these, those of one caller.
    pub connections_per_caller: Option<usize>,
    /// Calls that are worked on at one time.
    pub calls: Option<usize>,
    /// Of these, those of one caller.
    pub calls_per_caller: Option<usize>,
    /// Of these, those of one connection.
    pub calls_per_connection: Option<usize>,
    /// Streams of events at one time.
    pub streams: Option<usize>,
    /// Of the calls without an end, those of one caller.
    pub streams_per_caller: Option<usize>,
    /// Of the calls without an end, those of one connection.
    pub streams_per_connection: Option<usize>,
    /// Uploads and downloads at one time.
    pub transfers: Option<usize>,
    /// Of these, those of one caller.
    pub transfers_per_caller: Option<usize>,
    /// Of these, those of one connection.
    pub transfers_per_connection: Option<usize>,
    /// Seconds that a call's message may stop coming, 1 to 3,600.
    pub request_idle_seconds: Option<u64>,
    /// Seconds that an upload may stop coming, 1 to 3,600.
    pub upload_idle_seconds: Option<u64>,
    /// Seconds that an upload may take, 1 to 86,400.
    pub upload_seconds: Option<u64>,
    /// Seconds that a blob is kept which no batch and no file names, 60 to 31,536,000.
    pub blob_retention_seconds: Option<u64>,
    /// Seconds that a receiver may take nothing of an answer, 1 to 3,600.
    pub slow_seconds: Option<u64>,
    /// Seconds without progress after which a connection, an upload or an incomplete message gives way to another when
    /// there are too many, 1 to 3,600.
    pub patience_seconds: Option<u64>,
    /// Which batches a person has to approve: `never`, `deletions`, `sensitive` or `always`.
    pub approval: Option<Approval>,
    /// What is set for single workspaces.
    #[serde(default)]
    pub workspaces: BTreeMap<String, WorkspaceConfig>,
}

/// What is set for one workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Which of its batches a person has to approve.
    pub approval: Option<Approval>,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file is not what a configuration file is.
    #[error("{} is not a configuration: {error}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: Box<toml::de::Error>,
    },
    /// A number is out of its range.
    #[error("{key} is {found}, expected {least} to {most}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        found: u64,
        /// Its least value.
        least: u64,
        /// Its greatest value.
        most: u64,
    },
    /// A key of the table `workspaces` is no workspace's id.
    #[error("workspaces has {id:?}, which is no workspace: {error}")]
    Workspace {
        /// The key.
        id: String,
        /// What is wrong with it.
        error: IdError,
    },
    /// The address can be reached from other machines, and callers need no token.
    #[error(
        "refused to listen on {0}: other machines can reach it and no token was made, so that callers need none; expected a \
         loopback address such as {LISTEN}; hint: make a token with `aptix-server token create`, forward a port over SSH, or \
         accept the risk with --insecure-no-auth"
    )]
    Exposed(SocketAddr),
}

impl ConfigFile {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read, or has a key or a value that no configuration has.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
        toml::from_str(&text).map_err(|error| ConfigError::Parse { path: path.to_owned(), error: Box::new(error) })
    }
}

impl Config {
    /// Refuses an address that other machines can reach, while callers need no token.
    ///
    /// # Errors
    /// When it is one, and `exposure` does not allow that.
    pub fn check_exposure(&self, exposure: Exposure) -> Result<(), ConfigError> {
        if exposure == Exposure::Loopback && !self.listen.ip().to_canonical().is_loopback() {
            return Err(ConfigError::Exposed(self.listen));
        }
        Ok(())
    }

    /// Merges the command line's `listen` and `data_dir` with the file; the command line wins.
    ///
    /// # Errors
    /// When a number of the file is out of its range.
    pub fn new(listen: Option<SocketAddr>, data_dir: Option<PathBuf>, file: ConfigFile) -> Result<Self, ConfigError> {
        let listen = listen.or(file.listen).unwrap_or(LISTEN);
        let mut options = Options::default();
        seconds("heartbeat_seconds", file.heartbeat_seconds, 3600, &mut options.dispatch.heartbeat)?;
        let (connections, calls, streams) = (&mut options.connections, &mut options.calls, &mut options.long_lived);
        share("connections", file.connections, connections)?;
        connections.connection = 1;
        connections.caller = count("connections_per_caller", file.connections_per_caller, connections.caller)?;
        share("calls", file.calls, calls)?;
        calls.caller = count("calls_per_caller", file.calls_per_caller, calls.caller)?;
        calls.connection = count("calls_per_connection", file.calls_per_connection, calls.connection)?;
        options.dispatch.streams = count("streams", file.streams, options.dispatch.streams)?;
        streams.caller = count("streams_per_caller", file.streams_per_caller, streams.caller)?;
        streams.connection = count("streams_per_connection", file.streams_per_connection, streams.connection)?;
        let transfers = &mut options.dispatch.transfers;
        share("transfers", file.transfers, transfers)?;
        transfers.caller = count("transfers_per_caller", file.transfers_per_caller, transfers.caller)?;
        transfers.connection = count("transfers_per_connection", file.transfers_per_connection, transfers.connection)?;
        seconds("request_idle_seconds", file.request_idle_seconds, 3600, &mut options.request_idle)?;
        seconds("upload_idle_seconds", file.upload_idle_seconds, 3600, &mut options.upload_idle)?;
        seconds("upload_seconds", file.upload_seconds, 86_400, &mut options.upload_total)?;
        if let Some(seconds) = within("blob_retention_seconds", file.blob_retention_seconds, 60, 31_536_000)? {
            options.blob_retention = Duration::from_secs(seconds);
        }
        seconds("slow_seconds", file.slow_seconds, 3600, &mut options.slow_after)?;
        options.dispatch.slow_after = options.slow_after;
        seconds("patience_seconds", file.patience_seconds, 3600, &mut options.patience)?;
        options.dispatch.patience = options.patience;
        let approvals = approvals(file.approval, file.workspaces)?;
        let data_dir = data_dir.or(file.data_dir).unwrap_or_else(|| DATA_DIR.into());
        Ok(Self { listen, data_dir, options, approvals })
    }
}

fn approvals(usual: Option<Approval>, workspaces: BTreeMap<String, WorkspaceConfig>) -> Result<Approvals, ConfigError> {
    let usual = usual.unwrap_or_default();
    let own = |(id, config): (String, WorkspaceConfig)| match id.parse() {
        Ok(workspace) => Ok((workspace, config.approval.unwrap_or(usual))),
        Err(error) => Err(ConfigError::Workspace { id, error }),
    };
    Ok(Approvals { usual, workspaces: workspaces.into_iter().map(own).collect::<Result<_, _>>()? })
}

fn count(key: &'static str, found: Option<usize>, otherwise: usize) -> Result<usize, ConfigError> {
    let found = found.map(|found| found as u64);
    Ok(within(key, found, 1, 1_000_000)?.and_then(|found| usize::try_from(found).ok()).unwrap_or(otherwise))
}

/// Divides a total that is given among callers and connections.
fn share(key: &'static str, found: Option<usize>, share: &mut Share) -> Result<(), ConfigError> {
    if found.is_some() {
        *share = Share::of(count(key, found, share.total)?);
    }
    Ok(())
}

fn seconds(key: &'static str, found: Option<u64>, most: u64, time: &mut Duration) -> Result<(), ConfigError> {
    if let Some(seconds) = within(key, found, 1, most)? {
        *time = Duration::from_secs(seconds);
    }
    Ok(())
}

fn within(key: &'static str, found: Option<u64>, least: u64, most: u64) -> Result<Option<u64>, ConfigError> {
    match found {
        Some(found) if !(least..=most).contains(&found) => Err(ConfigError::Range { key, found, least, most }),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
        let file: ConfigFile = toml::from_str("listen = '0.0.0.0:1'\ndata_dir = 'a'\nheartbeat_seconds = 2").unwrap();
        let config = Config::new(None, Some("b".into()), file).unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.data_dir, PathBuf::from("b"));
        assert_eq!(config.options.dispatch.heartbeat, Duration::from_secs(2));
        let config = Config::new(None, None, ConfigFile::default()).unwrap();
        assert_eq!(config.listen, LISTEN);
    }

    #[test]
    fn an_address_that_other_machines_reach_needs_consent() {
        let listening = |address: &str, exposure| {
            let config = Config::new(Some(address.parse().unwrap()), None, ConfigFile::default()).unwrap();
            config.check_exposure(exposure)
        };
        for address in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(listening(address, Exposure::Loopback).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "192.0.2.1:1"] {
            assert!(matches!(listening(address, Exposure::Loopback), Err(ConfigError::Exposed(_))), "{address}");
            assert!(listening(address, Exposure::Anywhere).is_ok(), "{address}");
        }
    }

    #[test]
    fn an_unknown_key_and_a_number_out_of_range_are_refused() {
        assert!(toml::from_str::<ConfigFile>("lisen = '0.0.0.0:1'").is_err());
        let file = ConfigFile { heartbeat_seconds: Some(0), ..ConfigFile::default() };
        let refused = Config::new(None, None, file);
        assert!(matches!(refused, Err(ConfigError::Range { key: "heartbeat_seconds", .. })));
        assert!(toml::from_str::<ConfigFile>("approval = 'sometimes'").is_err());
        let file: ConfigFile = toml::from_str("[workspaces.'a b']\napproval = 'always'").unwrap();
        let refused = Config::new(None, None, file);
        assert!(matches!(refused, Err(ConfigError::Workspace { .. })), "{refused:?}");
    }
}
