//! Puts the server together: services, health, reflection, every limit, and an orderly end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::record::UnixMillis;
use aptix_model::wire::FILE_DESCRIPTOR_SET;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::{Connected, Router};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::layer::util::{Identity, Stack};

use crate::accept::Incoming;
use crate::caller::Peers;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approvals::Approvals;
use crate::identity::Registry;
use crate::mint;
use crate::options::Options;
use crate::room::Room;
use crate::service::admin::{AdminServer, AdminService};
use crate::service::admission::Admission;
use crate::service::agent::{AgentServer, AgentService};
use crate::service::batch::{BatchServer, BatchService};
use crate::service::file::{FileServer, FileService};
use crate::service::session::{SessionServer, SessionService};
use crate::service::tool::{ToolServer, ToolService};
use crate::service::workspace::{WorkspaceServer, WorkspaceService};
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
    (options, approvals): (Options, Approvals),
    incoming: I,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError>
where
    I: Stream<Item = Result<C, E>> + Send,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let dispatcher = Dispatcher::new(Arc::clone(&store), options.dispatch, approvals);
    if let Err(error) = dispatcher.recall_time().await {
        tracing::warn!(%error, "the newest time in the store cannot be read; prepared batches expire by the time of day alone");
    }
    let registry = Registry::load(Arc::clone(&store)).await?;
    let admission = Admission::new(options, dispatcher.closing(), Arc::clone(&registry));
    let (health, health_service) = tonic_health::server::health_reporter();
    set_all(&health, ServingStatus::Serving).await;
    let admin = AdminServer::new(AdminService(Arc::clone(&registry)));
    let router = router(&dispatcher, &options, &admission)?.add_service(health_service).add_service(admin);
    let stopped = CancellationToken::new();
    let stopping = async {
        shutdown.await;
        tracing::info!("shutting down");
        set_all(&health, ServingStatus::NotServing).await;
        dispatcher.stop();
        stopped.cancel();
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
        never = report_health(store.as_ref(), &health) => match never {},
        never = admission.watch_answers() => match never {},
        never = sweep(store.as_ref(), options.blob_retention) => match never {},
        never = expire(&dispatcher) => match never {},
        never = registry.expire() => match never {},
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

/// All services behind admission, with every limit of the transport set.
fn router(
    dispatcher: &Arc<Dispatcher>,
    options: &Options,
    admission: &Admission,
) -> Result<Router<Stack<Admission, Identity>>, ServeError> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // The caller hears that the agent is silent before its own time is up.
    let patience = options.call_deadline * 9 / 10;
    let batches = BatchServer::new(BatchService { dispatcher: Arc::clone(dispatcher), patience });
    let agents = AgentServer::new(AgentService(Arc::clone(dispatcher)));
    let files = FileServer::new(FileService {
        dispatcher: Arc::clone(dispatcher),
        patience,
        upload_idle: options.upload_idle,
        upload_total: options.upload_total,
    });
    let tools = ToolServer::new(ToolService { dispatcher: Arc::clone(dispatcher), patience });
    let workspaces = WorkspaceServer::new(WorkspaceService(Arc::clone(dispatcher)));
    let sessions = SessionServer::new(SessionService { dispatcher: Arc::clone(dispatcher), patience });
    Ok(Server::builder()
        .layer(admission.clone())
        .max_concurrent_streams(options.connection_streams)
        .http2_max_header_list_size(options.header_bytes)
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .max_connection_age(options.connection_age)
        .max_connection_age_grace(options.connection_age_grace)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .add_service(batches.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(agents.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(workspaces.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(sessions.max_decoding_message_size(MESSAGE_BYTES))
        .add_service(tools.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(files.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES)))
}

/// Reports the server unhealthy for as long as its store takes no writes.
async fn report_health(store: &dyn Store, health: &HealthReporter) -> Infallible {
    loop {
        store.failed().await;
        tracing::error!("the store takes no writes: the server is not healthy until it does");
        set_all(health, ServingStatus::NotServing).await;
        store.healed().await;
        tracing::info!("the server is healthy again");
        set_all(health, ServingStatus::Serving).await;
    }
}

/// Removes unnamed blobs that are older than `retention`, at intervals of as long.
async fn sweep(store: &dyn Store, retention: Duration) -> Infallible {
    loop {
        sleep(retention.max(SWEEP_AT_MOST_EVERY)).await;
        let millis = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        match store.sweep_blobs(UnixMillis(mint::now().0.saturating_sub(millis))).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "unnamed blobs were removed"),
            Err(error) => tracing::warn!(%error, "unnamed blobs could not be removed"),
        }
    }
}

/// Ends prepared batches whose time is over.
async fn expire(dispatcher: &Arc<Dispatcher>) -> Infallible {
    loop {
        sleep(dispatcher.settings().expiry_sweep).await;
        if let Err(error) = dispatcher.expire().await {
            tracing::warn!(?error, "prepared batches whose time is over could not be ended");
        }
    }
}

/// Sets the health of every service, and of the server as a whole.
async fn set_all(health: &HealthReporter, status: ServingStatus) {
    let named = [AdminServer::NAME, BatchServer::NAME, AgentServer::NAME, FileServer::NAME, WorkspaceServer::NAME];
    for service in named.into_iter().chain(["", SessionServer::NAME, ToolServer::NAME]) {
        health.set_service_status(service, status).await;
    }
}
