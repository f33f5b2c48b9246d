//! How the server is at one moment, and the way of that over the wire.

use aptix_model::record::UnixMillis;
use aptix_model::wire::{self, v1};

use super::service_health::Health;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::survey::Survey;
use crate::identity::Registry;
use crate::metrics;
use crate::store::{Space, StoreError};

/// How the server is at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerStatus {
    /// Its version.
    pub version: String,
    /// When it began to serve.
    pub started: UnixMillis,
    /// Each service of `aptix.v1`, and before them the server as a whole, with an empty name; and whether it serves.
    pub services: Vec<(String, bool)>,
    /// What there is.
    pub survey: Survey,
    /// How many tokens a call may use; `None` while calls need none.
    pub tokens: Option<u64>,
    /// When the last backup by the server ended, if there was one.
    pub last_backup: Option<UnixMillis>,
    /// When the certificate of the server expires, if it has one.
    pub certificate_expiry: Option<UnixMillis>,
}

/// Reads how the server is that began to serve at this time.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn read(
    started: UnixMillis,
    dispatcher: &Dispatcher,
    registry: &Registry,
    health: &Health,
) -> Result<ServerStatus, StoreError> {
    Ok(ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        services: health.services().map(|(name, is_serving)| (name.to_owned(), is_serving)).collect(),
        survey: dispatcher.survey().await?,
        tokens: registry.is_closed().then(|| registry.tokens_in_use()),
        last_backup: metrics::last_backup(),
        certificate_expiry: metrics::certificate_expiry(),
    })
}

impl From<ServerStatus> for v1::GetServerStatusResponse {
    fn from(status: ServerStatus) -> Self {
        let ServerStatus { version, started, services, survey, tokens, last_backup, certificate_expiry } = status;
        let health = |(service, is_serving)| v1::ServiceHealth { service, is_serving };
        let disk =
            |Space { free, size }| v1::DiskSpace { free_bytes: free, size_bytes: size, reserve_bytes: survey.reserve };
        Self {
            version,
            start_time: Some(started.into()),
            services: services.into_iter().map(health).collect(),
            workspaces: survey.workspaces,
            damaged_workspaces: survey.damaged_workspaces,
            open_batches: survey.open_batches,
            waiting_batches: survey.waiting_batches,
            served_workspaces: survey.served_workspaces,
            tokens: tokens.unwrap_or_default(),
            needs_tokens: tokens.is_some(),
            disk: survey.space.map(disk),
            last_backup_time: last_backup.map(Into::into),
            certificate_expire_time: certificate_expiry.map(Into::into),
        }
    }
}

impl From<v1::GetServerStatusResponse> for ServerStatus {
    fn from(response: v1::GetServerStatusResponse) -> Self {
        let time = |time: Option<prost_types::Timestamp>| time.as_ref().map(wire::millis);
        Self {
            started: time(response.start_time).unwrap_or(UnixMillis(0)),
            services: response.services.into_iter().map(|health| (health.service, health.is_serving)).collect(),
            survey: Survey {
                workspaces: response.workspaces,
                damaged_workspaces: response.damaged_workspaces,
                open_batches: response.open_batches,
                waiting_batches: response.waiting_batches,
                served_workspaces: response.served_workspaces,
                space: response.disk.map(|disk| Space { free: disk.free_bytes, size: disk.size_bytes }),
                reserve: response.disk.map_or(0, |disk| disk.reserve_bytes),
            },
            tokens: response.needs_tokens.then_some(response.tokens),
            last_backup: time(response.last_backup_time),
            certificate_expiry: time(response.certificate_expire_time),
            version: response.version,
        }
    }
}
