//! Puts the server together: services, health, reflection, every limit, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::record::UnixMillis;
use aptix_model::wire::FILE_DESCRIPTOR_SET;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::accept::Incoming;
use crate::caller::Peers;
use crate::dispatcher::Dispatcher;
use crate::mint;
use crate::options::Options;
use crate::room::Room;
use crate::service::admission::{Admission, Limits};
use crate::service::agent::{AgentServer, AgentService};
use crate::service::batch::{BatchServer, BatchService};
use crate::service::file::{FileServer, FileService};
use crate::store::{Store, StoreError};

/// How often blobs are swept at most.
const SWEEP_AT_MOST_EVERY: Duration = Duration::from_millis(20);

/// How long calls in flight may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(7);

/// How long the rest of the end may take.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// Why the server ended otherwise than in order.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The connections failed.
    #[error("failed to serve: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// Reflection could not be set up.
    #[error("failed to describe the protocol: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The store could not be closed in order.
    #[error("failed to close the store: {0}")]
    Store(#[from] StoreError),
}

/// Serves the connections that come in until `shutdown` is done; then takes no new work, ends every stream, finishes
/// what is in flight, and closes the store, all within ten seconds.
///
/// # Errors
/// When the connections fail, or the store cannot be closed in order.
pub async fn serve<I, C, E>(
    store: Arc<dyn Store>,
    options: Options,
    incoming: I,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError>
where
    I: Stream<Item = Result<C, E>> + Send,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let dispatcher = Dispatcher::new(Arc::clone(&store), options.dispatch);
    let (health, health_service) = tonic_health::server::health_reporter();
    set_all(&health, ServingStatus::Serving).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let files = FileService {
        dispatcher: Arc::clone(&dispatcher),
        upload_idle: options.upload_idle,
        upload_total: options.upload_total,
    };
    let limits = Limits {
        calls: options.calls,
        deadline: options.call_deadline,
        silence: options.request_idle,
        long_lived: options.long_lived,
        patience: options.patience,
        slow_after: options.slow_after,
    };
    let admission = Admission::new(limits, dispatcher.closing());
    let router = Server::builder()
        .layer(admission.clone())
        .max_concurrent_streams(options.connection_streams)
        .http2_max_header_list_size(options.header_bytes)
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .max_connection_age(options.connection_age)
        .max_connection_age_grace(options.connection_age_grace)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(
            BatchServer::new(BatchService(Arc::clone(&dispatcher)))
                .max_decoding_message_size(MESSAGE_BYTES)
                .max_encoding_message_size(MESSAGE_BYTES),
        )
        .add_service(
            AgentServer::new(AgentService(Arc::clone(&dispatcher)))
                .max_decoding_message_size(MESSAGE_BYTES)
                .max_encoding_message_size(MESSAGE_BYTES),
        )
        .add_service(
            FileServer::new(files).max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES),
        );
    let stopped = tokio_util::sync::CancellationToken::new();
    let stopping = async {
        shutdown.await;
        tracing::info!("shutting down");
        set_all(&health, ServingStatus::NotServing).await;
        dispatcher.stop();
        stopped.cancel();
    };
    let ill = async {
        loop {
            store.failed().await;
            tracing::error!("the store takes no writes: the server is not healthy until it does");
            set_all(&health, ServingStatus::NotServing).await;
            store.healed().await;
            tracing::info!("the server is healthy again");
            set_all(&health, ServingStatus::Serving).await;
        }
    };
    let sweeping = async {
        loop {
            sleep(options.blob_retention.max(SWEEP_AT_MOST_EVERY)).await;
            let retention = u64::try_from(options.blob_retention.as_millis()).unwrap_or(u64::MAX);
            match store.sweep_blobs(UnixMillis(mint::now().0.saturating_sub(retention))).await {
                Ok(0) => {}
                Ok(swept) => tracing::info!(swept, "unnamed blobs were removed"),
                Err(error) => tracing::warn!(%error, "unnamed blobs could not be removed"),
            }
        }
    };
    let overdue = async {
        stopped.cancelled().await;
        sleep(GRACE).await;
    };
    let room = Room::new(options.connections, options.patience);
    let incoming = Incoming::new(incoming, room, Peers::new(options.calls));
    let served = tokio::select! {
        served = router.serve_with_incoming_shutdown(incoming, stopping) => served,
        () = overdue => {
            tracing::warn!("calls in flight were cut off");
            Ok(())
        }
        never = ill => match never {},
        never = admission.watch_answers() => match never {},
        never = sweeping => match never {},
    };
    dispatcher.stop();
    match timeout(LAST_GRACE, dispatcher.finish()).await {
        Ok(finished) => finished?,
        Err(_) => tracing::warn!("the store was not closed in time; what it acknowledged is durable"),
    }
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// Says of every service, and of the server as a whole, how it is.
async fn set_all(health: &HealthReporter, status: ServingStatus) {
    for service in ["", BatchServer::NAME, AgentServer::NAME, FileServer::NAME] {
        health.set_service_status(service, status).await;
    }
}
