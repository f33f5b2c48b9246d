//! The configuration of the server: one list of keys ([`KEYS`]), which the file, the environment and the command line set.
//!
//! To add a key: a field with its default in [`Config`] (or in what it holds, such as [`Options`]), and a row in `keys.rs`.
//! Parsing, `APTIX_SERVER_<KEY>`, the effective configuration and the rows of `docs/reference/server.md` follow from the row.

mod effective;
mod entry;
mod fault;
mod field;
mod file;
mod fleet;
mod given;
mod keys;
mod retention;
mod sources;
mod store_choice;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use aptix_model::id::WorkspaceId;

use crate::dispatcher::approvals::{Approval, Approvals};
use crate::options::Options;
use crate::quota::{Allowance, QuotaRules};
use crate::retention::RetentionRules;
use crate::store::bucket_address::BucketAddress;
use crate::store::retention::Limits;
use crate::tls::TlsFiles;
use crate::web_origins::WebOrigins;

pub use effective::{Effective, Setting};
pub use entry::Origin;
pub use fault::{Fault, Faults};
pub use field::{LogFilter, LogFormat};
pub use fleet::{FleetConfig, NoAuthorities, ServerAddress};
pub use keys::{Change, KEYS, Key};
pub use sources::Sources;
pub use store_choice::{StoreChoice, StoreChoiceError};

/// Where the server listens by default.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7420);

/// Where the server keeps its data by default, in the directory it is started in.
pub const DATA_DIR: &str = "aptix-data";

/// How long records are kept at least by default: for as long an author may repeat a request.
const RECORD_LEAST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The whole configuration. Its default is that of every key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where it keeps its data, or its socket alone if that is kept in a database.
    pub data_dir: PathBuf,
    /// What it keeps its data in.
    pub store: StoreChoice,
    /// The bucket that a database leaves blobs to; without it the database decides.
    pub blobs: Option<BucketAddress>,
    /// Which addresses it may listen on while callers need no token: any, if true, and loopback alone otherwise.
    pub insecure_no_auth: bool,
    /// How it lives beside other servers on one database.
    pub fleet: FleetConfig,
    /// What connections are secured with.
    pub tls: TlsConfig,
    /// Pages of which origins may call.
    pub web_origins: WebOrigins,
    /// What is logged.
    pub log: LogFilter,
    /// How it is logged.
    pub log_format: LogFormat,
    /// What it holds itself and its callers to.
    pub options: Options,
    /// Where it answers scrapes of its metrics, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Whether that may be an address which other machines can reach.
    pub metrics_beyond_loopback: bool,
    /// What each token may use.
    pub quota_per_token: Allowance,
    /// What holds in a workspace that has no table of its own.
    pub usual: WorkspaceConfig,
    /// What holds in these workspaces.
    pub workspaces: BTreeMap<WorkspaceId, WorkspaceConfig>,
}

/// The files that connections are secured with: none, or at least a certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsConfig {
    /// The server's certificate.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// The authorities of client certificates.
    pub client_ca: Option<PathBuf>,
}

/// Some of the files of TLS are configured, and others are not that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "tls needs both tls.certificate and tls.key, found only a part; hint: set both, or no key of tls to serve without it"
)]
pub struct HalfTls;

impl TlsConfig {
    /// The files, if connections are to be secured.
    ///
    /// # Errors
    /// When some are set that are of no use without the others.
    pub fn files(&self) -> Result<Option<TlsFiles>, HalfTls> {
        match self.clone() {
            Self { certificate: Some(certificate), key: Some(key), client_ca } => {
                Ok(Some(TlsFiles { certificate, key, client_ca }))
            }
            Self { certificate: None, key: None, client_ca: None } => Ok(None),
            _ => Err(HalfTls),
        }
    }
}

/// What can be set for each workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkspaceConfig {
    /// Which of its batches a person has to approve.
    pub approval: Approval,
    /// What all its callers may use together.
    pub quota: Allowance,
    /// What it keeps of batches that have ended.
    pub retention: Limits,
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        let retention = Limits { record_least: RECORD_LEAST, ..Limits::default() };
        Self { approval: Approval::default(), quota: Allowance::default(), retention }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: LISTEN,
            data_dir: DATA_DIR.into(),
            store: StoreChoice::default(),
            blobs: None,
            insecure_no_auth: false,
            fleet: FleetConfig::default(),
            tls: TlsConfig::default(),
            web_origins: WebOrigins::default(),
            log: LogFilter::default(),
            log_format: LogFormat::default(),
            options: Options::default(),
            metrics: None,
            metrics_beyond_loopback: false,
            quota_per_token: Allowance::default(),
            usual: WorkspaceConfig::default(),
            workspaces: BTreeMap::new(),
        }
    }
}

/// The server would listen on an address that other machines can reach, while callers need no token.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "refused to listen on {0}: other machines can reach it and no token was made, so that callers need none; expected a \
     loopback address such as {LISTEN}; hint: make a token with `aptix-server token create`, forward a port over SSH, or \
     accept the risk with --insecure-no-auth"
)]
pub struct Exposed(SocketAddr);

/// Other machines can reach the address of the metrics, and the configuration does not allow that.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "refused to serve metrics on {0}: other machines can reach it; expected a loopback address such as 127.0.0.1:9464; hint: \
     scrape from this machine, or set metrics_beyond_loopback = true: metrics need no token"
)]
pub struct ExposedMetrics(SocketAddr);

impl Config {
    /// Why values of it cannot be used together.
    pub(super) fn contradictions(&self) -> impl Iterator<Item = String> {
        let tls = self.tls.files().err().map(|error| error.to_string());
        let metrics = self.check_metrics_exposure().err().map(|error| error.to_string());
        let blobs = self.blobs.as_ref().filter(|_| self.store.is_embedded()).map(|blobs| {
            format!(
                "blobs = {blobs} needs a database, found store = embedded; hint: leave blobs out, or set store as well"
            )
        });
        tls.into_iter().chain(metrics).chain(blobs)
    }

    /// Refuses an address for metrics that other machines can reach.
    ///
    /// # Errors
    /// When it is one, and `metrics_beyond_loopback` does not allow that.
    pub fn check_metrics_exposure(&self) -> Result<(), ExposedMetrics> {
        match self.metrics {
            Some(address) if !self.metrics_beyond_loopback && !address.ip().to_canonical().is_loopback() => {
                Err(ExposedMetrics(address))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an address that other machines can reach, while callers need no token.
    ///
    /// # Errors
    /// When it is one, and `insecure_no_auth` does not allow that.
    pub fn check_exposure(&self) -> Result<(), Exposed> {
        if !self.insecure_no_auth && !self.listen.ip().to_canonical().is_loopback() {
            return Err(Exposed(self.listen));
        }
        Ok(())
    }

    /// Which batches a person has to approve, by workspace.
    #[must_use]
    pub fn approvals(&self) -> Approvals {
        let workspaces = self.workspaces.iter().map(|(id, own)| (id.clone(), own.approval)).collect();
        Approvals { usual: self.usual.approval, workspaces }
    }

    /// What tokens and workspaces may use.
    #[must_use]
    pub fn quotas(&self) -> QuotaRules {
        let workspaces = self.workspaces.iter().map(|(id, own)| (id.clone(), own.quota)).collect();
        QuotaRules { token: self.quota_per_token, workspace: self.usual.quota, workspaces }
    }

    /// What workspaces keep.
    #[must_use]
    pub fn retention(&self) -> RetentionRules {
        let workspaces = self.workspaces.iter().map(|(id, own)| (id.clone(), own.retention)).collect();
        RetentionRules { usual: self.usual.retention, workspaces }
    }

    /// Sets what follows from several keys.
    fn settle(&mut self) {
        self.options.connections.connection = 1;
        self.options.dispatch.slow_after = self.options.slow_after;
        self.options.dispatch.patience = self.options.patience;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_metrics_that_other_machines_reach_needs_consent() {
        let scraped = |address: &str, metrics_beyond_loopback| {
            let metrics = Some(address.parse().unwrap());
            Config { metrics, metrics_beyond_loopback, ..Config::default() }.check_metrics_exposure()
        };
        assert!(scraped("127.0.0.1:1", false).is_ok() && scraped("[::1]:1", false).is_ok());
        assert!(scraped("0.0.0.0:1", false).is_err() && scraped("[::]:1", false).is_err());
        assert!(scraped("0.0.0.0:1", true).is_ok());
        assert!(Config::default().check_metrics_exposure().is_ok());
    }

    #[test]
    fn an_address_that_other_machines_reach_needs_consent() {
        let listening = |address: &str, insecure_no_auth| {
            let config = Config { listen: address.parse().unwrap(), insecure_no_auth, ..Config::default() };
            config.check_exposure()
        };
        for address in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(listening(address, false).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "192.0.2.1:1"] {
            assert!(listening(address, false).is_err(), "{address}");
            assert!(listening(address, true).is_ok(), "{address}");
        }
    }
}
