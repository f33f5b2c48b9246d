//! Admits calls: a bounded number at one time, in all and for each caller and connection, a bounded weight of large messages,
//! a deadline for each, and turns on the processors that are fair between tokens, and between connections without one. A call takes its place when its message
//! has come whole, and gives it back when its answer is made: callers that neither send nor read delay no other.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::id::WorkspaceId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Response, Uri};
use tracing::instrument::WithSubscriber;

use super::body::LIGHT_BYTES;
use super::outflow::Outflow;
use super::refused_calls::RefusedCalls;
use super::status::{status, too_late};
use crate::caller::{self, Peer, Peers, Share};
use crate::cpu_pool::CpuPool;
use crate::dispatcher::refusal::{Refusal, broken_off, exhausted, full};
use crate::fleet::Fleet;
use crate::identity::Registry;
use crate::options::Options;
use crate::quota::Quotas;
use crate::room::{Place, Room};
use crate::ticket::Ticket;
use crate::turns::Turns;
use crate::waited::Waited;

/// How long a call waits for its turn before it is turned away.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of large messages that are decoded and worked on at one time: in memory a message takes many times its size.
const LARGE_BYTES: usize = 2 * caller::WEIGHT;

/// Bytes of large messages that have not come whole yet.
const PARTIAL_BYTES: Share = Share { total: 128 << 20, caller: 96 << 20, connection: 64 << 20 };

/// Admits calls.
#[derive(Clone, Debug)]
pub struct Admission {
    pub(super) options: Options,
    /// Places for calls that are worked on, shared out fairly.
    places: Turns,
    /// What large messages may weigh together, in bytes.
    weight: Arc<Semaphore>,
    /// Where calls are decoded, worked on and answered.
    pool: CpuPool,
    partial: Arc<Room>,
    pub(super) long_lived: Arc<Room>,
    pub(super) outflow: Arc<Outflow>,
    /// Makes the peers of connections without one of their own.
    pub(super) peers: Arc<Peers>,
    pub(super) closing: CancellationToken,
    pub(super) registry: Arc<Registry>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) quotas: Arc<Quotas>,
    pub(super) refused_calls: Arc<RefusedCalls>,
}

impl Admission {
    /// Admits calls of callers that the registry knows and of other servers of the fleet, within these options and limits. Once `closing` is cancelled, the streams of other
    /// services end.
    #[must_use]
    pub fn new(
        options: Options,
        closing: CancellationToken,
        (registry, fleet): (Arc<Registry>, Arc<Fleet>),
        quotas: Arc<Quotas>,
    ) -> Self {
        Self {
            options,
            places: Turns::new(options.calls.total),
            weight: Arc::new(Semaphore::new(LARGE_BYTES)),
            pool: CpuPool::new(),
            partial: Room::new(PARTIAL_BYTES, options.patience),
            long_lived: Room::new(options.long_lived, Duration::MAX),
            outflow: Outflow::new(options.patience, options.slow_after),
            peers: Arc::new(Peers::new(options.calls)),
            closing,
            registry,
            fleet,
            quotas,
            refused_calls: Arc::default(),
        }
    }

    /// Ends answers that no receiver takes, for as long as it is polled.
    pub async fn watch_answers(&self) -> std::convert::Infallible {
        self.outflow.watch().await
    }

    /// Room for a large message that has not come whole.
    pub(super) fn partial(&self, peer: &Peer, bytes: usize) -> Result<Place, Refusal> {
        let too_many = |found| Refusal::denied(full("bytes of incomplete messages", found));
        self.partial.take(peer, bytes).map_err(too_many)
    }

    /// The ticket of a call with a message of this length, if no other call waits.
    pub(super) fn at_once(&self, peer: &Peer, length: usize, counted: bool) -> Option<Ticket> {
        let mut ticket = Ticket { in_use: Some(peer.activity.enter()), ..Ticket::default() };
        if counted {
            if length > LIGHT_BYTES {
                for weight in self.weights_of(peer) {
                    ticket.permits.push(weight.try_acquire_many_owned(weight_of(length)).ok()?);
                }
            }
            for shares in Self::shares_of(peer) {
                ticket.permits.push(shares.try_acquire_owned().ok()?);
            }
            ticket.place = Some(self.places.take_at_once(peer.party())?);
        }
        Some(ticket)
    }

    /// The same, as soon as it is this call's turn.
    pub(super) async fn turn(&self, peer: &Peer, length: usize) -> Result<Ticket, Status> {
        let in_use = Some(peer.activity.enter());
        let exhausted_calls = || status(Refusal::denied(exhausted("calls", self.options.calls.total)));
        let mut permits = if length > LIGHT_BYTES { self.weigh(peer, length).await } else { Vec::new() };
        let place = async {
            let mut shares: Vec<OwnedSemaphorePermit> = Vec::new();
            for places in Self::shares_of(peer) {
                shares.push(places.acquire_owned().await?);
            }
            Ok((shares, self.places.take(peer.party()).await))
        };
        let place = timeout(PATIENCE, place).await.map_err(|_| exhausted_calls())?;
        let (shares, place) = place.map_err(|_: AcquireError| exhausted_calls())?;
        permits.extend(shares);
        Ok(Ticket { permits, waited: place.waited, place: Some(place), in_use, ..Ticket::default() })
    }

    /// What a call waits for before it waits for a place: its own shares, so that it keeps nothing from others.
    fn shares_of(peer: &Peer) -> [Arc<Semaphore>; 2] {
        [Arc::clone(&peer.calls), Arc::clone(&peer.of_caller.calls)]
    }

    /// Waits until there is room for a large message.
    pub(super) async fn weigh(&self, peer: &Peer, length: usize) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        for weight in self.weights_of(peer) {
            // Closed by no one.
            permits.extend(weight.acquire_many_owned(weight_of(length)).await.ok());
        }
        permits
    }

    /// Its own first, so that no other waits behind its queue.
    fn weights_of(&self, peer: &Peer) -> [Arc<Semaphore>; 3] {
        [Arc::clone(&peer.weight), Arc::clone(&peer.of_caller.weight), Arc::clone(&self.weight)]
    }

    /// Does a call's work in its party's turns, in the lane of the workspace that it names. It has waited already for so many calls of others.
    pub(super) async fn work<E: Send + 'static>(
        &self,
        peer: &Peer,
        (method, workspace, before): (&Uri, Option<WorkspaceId>, u64),
        work: impl Future<Output = Result<Response<Body>, E>> + Send + 'static,
    ) -> Result<Response<Body>, E> {
        let party = workspace.map_or_else(|| peer.party(), |workspace| peer.party().about(&workspace));
        let waited = Waited::begin(peer.connection, method);
        if let Some(waited) = &waited {
            waited.for_turns(before);
        }
        self.pool.run(party, waited, work.with_current_subscriber()).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a call broke off");
            Ok(status(Refusal::denied(broken_off())).into_http())
        })
    }

    pub(super) fn too_late(&self) -> Response<Body> {
        too_late(&format!("the call had no answer after {} seconds", self.options.call_deadline.as_secs())).into_http()
    }
}

fn weight_of(length: usize) -> u32 {
    u32::try_from(length.min(caller::WEIGHT)).unwrap_or(u32::MAX)
}
