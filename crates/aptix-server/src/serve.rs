//! Puts the server together: services, health, reflection, every limit, and an orderly end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::wire::FILE_DESCRIPTOR_SET;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Connected, Router};
use tower::layer::util::{Identity, Stack};
use tower::util::{Either, option_layer};

use crate::accept::Incoming;
use crate::blob_sweep::BlobSweep;
use crate::caller::Peers;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approvals::CurrentApprovals;
use crate::dispatcher::other_servers::OtherServers;
use crate::fleet::{Fleet, FleetOptions};
use crate::identity::Registry;
use crate::mint;
use crate::options::{Changeable, Options};
use crate::quota::Quotas;
use crate::retention::Retainer;
use crate::room::Room;
use crate::service::admin::{AdminServer, AdminService};
use crate::service::admission::Admission;
use crate::service::agent::{AgentServer, AgentService};
use crate::service::backup::Backups;
use crate::service::batch::{BatchServer, BatchService};
use crate::service::file::{FileServer, FileService};
use crate::service::fleet::{FleetServer, FleetService};
use crate::service::other_servers::Connections;
use crate::service::service_health::Health;
use crate::service::session::{SessionServer, SessionService};
use crate::service::tool::{ToolServer, ToolService};
use crate::service::web::WebLayer;
use crate::service::workspace::{WorkspaceServer, WorkspaceService};
use crate::shared_quotas::share;
use crate::steady_clock::SteadyClock;
use crate::store::{Store, StoreError};
use crate::web_origins::WebOrigins;

/// How often workspaces and open batches are counted.
const SURVEY_EVERY: Duration = Duration::from_secs(15);

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
    /// The tokens in the store could not be read.
    #[error("failed to read the tokens in the store: {0}")]
    Tokens(StoreError),
    /// The store could not be closed in order.
    #[error("failed to close the store: {0}")]
    Store(#[from] StoreError),
}

/// Serves the connections that come in until `shutdown` is done; then takes no new work, ends every stream, finishes
/// what is in flight, and closes the store, all within ten seconds.
///
/// # Errors
/// When the tokens cannot be read, the connections fail, or the store cannot be closed in order.
pub async fn serve<I, C, E>(
    store: Arc<dyn Store>,
    (options, changeable): (Options, impl Into<Changeable>),
    incoming: I,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError>
where
    I: Stream<Item = Result<C, E>> + Send,
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let Changeable { approvals, quotas, retention, origins, fleet } = changeable.into();
    let mut shutdown = pin!(async {
        shutdown.await;
        tracing::info!("shutting down");
    });
    let (fleet, dispatcher, registry) = tokio::select! {
        started = start(&store, &options, (approvals, fleet)) => started?,
        () = &mut shutdown => return end(store.close(), Ok(())).await,
    };
    let (quotas, identity) = (Quotas::new(quotas), (Arc::clone(&registry), Arc::clone(&fleet)));
    let admission = Admission::new(options, dispatcher.closing(), identity, Arc::clone(&quotas));
    let (health, health_service) = Health::begin(dispatcher.low_disk()).await;
    let retainer = Retainer::new(Arc::clone(&store), retention, Arc::clone(&fleet));
    let blob_sweep = BlobSweep::new(Arc::clone(&store), Arc::clone(&dispatcher), options.blob_retention);
    let admin = AdminServer::new(AdminService {
        registry: Arc::clone(&registry),
        retainer: Arc::clone(&retainer),
        blob_sweep: Arc::clone(&blob_sweep),
        backups: Backups::new(Arc::clone(&store), dispatcher.closing()),
        dispatcher: Arc::clone(&dispatcher),
        health: Arc::clone(&health),
        started: mint::now(),
    });
    let router = router(&dispatcher, &options, (&admission, &origins))?.add_service(health_service).add_service(admin);
    let stopped = CancellationToken::new();
    let stopping = async {
        shutdown.await;
        health.stop().await;
        dispatcher.stop();
        stopped.cancel();
    };
    let room = Room::new(options.connections, options.patience);
    let incoming = Incoming::new(incoming, room, Peers::new(options.calls), stopped.clone());
    let served = tokio::select! {
        served = router.serve_with_incoming_shutdown(incoming, stopping) => served,
        () = overdue(&stopped) => {
            tracing::warn!("calls in flight were cut off");
            Ok(())
        }
        never = health.run(store.as_ref()) => match never {},
        never = dispatcher.watch_disk() => match never {},
        never = admission.watch_answers() => match never {},
        never = dispatcher.look_again() => match never {},
        never = fleet.run() => match never {},
        never = dispatcher.follow() => match never {},
        never = share(&quotas, &store, &fleet) => match never {},
        never = registry.follow(fleet.tokens()) => match never {},
        never = dispatcher.finish_deletions() => match never {},
        never = blob_sweep.run() => match never {},
        never = retainer.run(options.retention_interval) => match never {},
        never = expire(&dispatcher) => match never {},
        never = survey(&dispatcher) => match never {},
        never = registry.expire() => match never {},
    };
    dispatcher.stop();
    end(dispatcher.finish(), served).await
}

/// Ends what is left, and closes the store, as far as that is done in time.
async fn end(
    work: impl Future<Output = Result<(), StoreError>>,
    served: Result<(), tonic::transport::Error>,
) -> Result<(), ServeError> {
    match timeout(LAST_GRACE, work).await {
        Ok(ended) => ended?,
        Err(_) => tracing::warn!("the store was not closed in time; what it acknowledged is durable"),
    }
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// This server among those on its store, what decides about batches, and who calls. A store that is slow to answer takes its time.
async fn start(
    store: &Arc<dyn Store>,
    options: &Options,
    (approvals, fleet): (CurrentApprovals, FleetOptions),
) -> Result<(Arc<Fleet>, Arc<Dispatcher>, Arc<Registry>), ServeError> {
    let others = Arc::new(Connections::new(fleet.authorities.clone(), fleet.connect.clone()));
    let fleet = Fleet::of(store, fleet);
    let (clock, beside) = (SteadyClock::default(), (Arc::clone(&fleet), others as Arc<dyn OtherServers>));
    let dispatcher = Dispatcher::in_fleet(Arc::clone(store), options.dispatch, (approvals, clock), beside);
    if let Err(error) = dispatcher.recall_time().await {
        tracing::warn!(%error, "the newest time in the store cannot be read; prepared batches expire by the time of day alone");
    }
    let registry = Registry::load(Arc::clone(store)).await.map_err(ServeError::Tokens)?;
    dispatcher.look_at_disk().await;
    Ok((fleet, dispatcher, registry))
}

/// Waits until calls in flight have had their time after the stop.
async fn overdue(stopped: &CancellationToken) {
    stopped.cancelled().await;
    sleep(GRACE).await;
}

/// What is in front of the services: admission, and in front of that gRPC-Web, if pages may call.
type Layers = Stack<Admission, Stack<Either<WebLayer, Identity>, Identity>>;

/// All services behind admission, with every limit of the transport set.
fn router(
    dispatcher: &Arc<Dispatcher>,
    options: &Options,
    (admission, origins): (&Admission, &WebOrigins),
) -> Result<Router<Layers>, ServeError> {
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
    let others = FleetServer::new(FleetService { dispatcher: Arc::clone(dispatcher), patience });
    Ok(Server::builder()
        .accept_http1(!origins.is_empty())
        .layer(option_layer(WebLayer::of(origins)))
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
        .add_service(others.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(tools.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES))
        .add_service(files.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES)))
}

/// Ends prepared batches whose time is over.
async fn expire(dispatcher: &Arc<Dispatcher>) -> Infallible {
    loop {
        sleep(dispatcher.settings().expiry_sweep).await;
        if dispatcher.is_first()
            && let Err(error) = dispatcher.expire().await
        {
            tracing::warn!(?error, "prepared batches whose time is over could not be ended");
        }
    }
}

/// Counts at intervals what there is, for the metrics.
async fn survey(dispatcher: &Arc<Dispatcher>) -> Infallible {
    loop {
        match dispatcher.survey().await {
            Ok(survey) => survey.publish(),
            Err(error) => tracing::debug!(%error, "what there is could not be counted"),
        }
        sleep(SURVEY_EVERY).await;
    }
}
