//! How the server is at one moment, and the way of that over the wire.

use std::time::Duration;

use aptix_model::record::UnixMillis;
use aptix_model::wire::{self, v1};
use tokio::time::timeout;

use super::service_health::Health;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::survey::Survey;
use crate::identity::Registry;
use crate::metrics;
use crate::store::Space;

/// How long the store may take to be counted.
const PATIENCE: Duration = Duration::from_secs(5);

/// How the server is at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerStatus {
    /// Its version.
    pub version: String,
    /// When it began to serve.
    pub started: UnixMillis,
    /// Each service of `aptix.v1`, and before them the server as a whole, with an empty name; and whether it serves.
    pub services: Vec<(String, bool)>,
    /// What the store holds; `None` while it cannot be read.
    pub survey: Option<Survey>,
    /// How many workspaces an agent serves.
    pub served_workspaces: u64,
    /// How many tokens a call may use; `None` while calls need none.
    pub tokens: Option<u64>,
    /// When the last backup by the server ended, if there was one.
    pub last_backup: Option<UnixMillis>,
    /// When the certificate of the server expires, if it has one.
    pub certificate_expiry: Option<UnixMillis>,
}

/// Reads how the server is that began to serve at this time.
pub(super) async fn read(
    started: UnixMillis,
    dispatcher: &Dispatcher,
    registry: &Registry,
    health: &Health,
) -> ServerStatus {
    // A store that is being opened again lets its readers wait.
    let survey = timeout(PATIENCE, dispatcher.survey()).await.ok().and_then(|survey| {
        survey.inspect_err(|error| tracing::debug!(%error, "what there is could not be counted")).ok()
    });
    ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        services: health.services().map(|(name, is_serving)| (name.to_owned(), is_serving)).collect(),
        survey,
        served_workspaces: dispatcher.served_workspaces(),
        tokens: registry.is_closed().then(|| registry.tokens_in_use()),
        last_backup: metrics::last_backup(),
        certificate_expiry: metrics::certificate_expiry(),
    }
}

impl From<Survey> for v1::StoreContents {
    fn from(survey: Survey) -> Self {
        let Survey { workspaces, damaged_workspaces, open_batches, waiting_batches, space, reserve } = survey;
        let disk = |Space { free, size }| v1::DiskSpace { free_bytes: free, size_bytes: size, reserve_bytes: reserve };
        Self { workspaces, damaged_workspaces, open_batches, waiting_batches, disk: space.map(disk) }
    }
}

impl From<v1::StoreContents> for Survey {
    fn from(contents: v1::StoreContents) -> Self {
        let v1::StoreContents { workspaces, damaged_workspaces, open_batches, waiting_batches, disk } = contents;
        Self {
            workspaces,
            damaged_workspaces,
            open_batches,
            waiting_batches,
            space: disk.map(|disk| Space { free: disk.free_bytes, size: disk.size_bytes }),
            reserve: disk.map_or(0, |disk| disk.reserve_bytes),
        }
    }
}

impl From<ServerStatus> for v1::GetServerStatusResponse {
    fn from(status: ServerStatus) -> Self {
        let health = |(service, is_serving)| v1::ServiceHealth { service, is_serving };
        Self {
            version: status.version,
            start_time: Some(status.started.into()),
            services: status.services.into_iter().map(health).collect(),
            contents: status.survey.map(Into::into),
            served_workspaces: status.served_workspaces,
            tokens: status.tokens.unwrap_or_default(),
            needs_tokens: status.tokens.is_some(),
            last_backup_time: status.last_backup.map(Into::into),
            certificate_expire_time: status.certificate_expiry.map(Into::into),
        }
    }
}

impl From<v1::GetServerStatusResponse> for ServerStatus {
    fn from(response: v1::GetServerStatusResponse) -> Self {
        let time = |time: Option<prost_types::Timestamp>| time.as_ref().map(wire::millis);
        Self {
            version: response.version,
            started: time(response.start_time).unwrap_or(UnixMillis(0)),
            services: response.services.into_iter().map(|health| (health.service, health.is_serving)).collect(),
            survey: response.contents.map(Into::into),
            served_workspaces: response.served_workspaces,
            tokens: response.needs_tokens.then_some(response.tokens),
            last_backup: time(response.last_backup_time),
            certificate_expiry: time(response.certificate_expire_time),
        }
    }
}
