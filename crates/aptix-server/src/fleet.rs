//! This server among those on its store: it says again and again that it lives, knows who else does, and holds leases only as long as
//! the others believe it.
//!
//! On a store that one server has for itself there is nothing of that: leases are held by whoever is connected, for as long as it is.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use crate::mint;
use crate::secret::Secret;
use crate::store::fleet::{Company, LeaseName, Member, ServerId};
use crate::store::{Store, StoreError};

/// Opens the channel to another server; the channel connects when it is used.
#[derive(Clone)]
pub struct Connect(Arc<dyn Fn(&Endpoint) -> Channel + Send + Sync>);

impl Connect {
    /// Opens channels with this function instead of over TCP: a simulation gives a network of its own.
    #[must_use]
    pub fn with(connect: impl Fn(&Endpoint) -> Channel + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }

    /// The channel to the server of an endpoint.
    #[must_use]
    pub fn channel(&self, endpoint: &Endpoint) -> Channel {
        (self.0)(endpoint)
    }
}

/// Over TCP.
impl Default for Connect {
    fn default() -> Self {
        Self::with(Endpoint::connect_lazy)
    }
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect").finish_non_exhaustive()
    }
}

/// How a server lives beside others.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Where the others reach it, such as `https://10.0.0.5:7433`; without it they cannot ask the agents that are connected to it.
    pub address: Option<String>,
    /// The authorities of the certificates of the others, in PEM; without them those of the system are trusted.
    pub authorities: Option<Vec<u8>>,
    /// Opens the channels to the others.
    pub connect: Connect,
    /// How long the others believe that it lives after it last said so.
    pub lifetime: Duration,
    /// How often it looks at what the others changed, where no hint tells it.
    pub poll: Duration,
}

impl Default for FleetOptions {
    fn default() -> Self {
        let (lifetime, poll) = (Duration::from_secs(15), Duration::from_secs(2));
        Self { address: None, authorities: None, connect: Connect::default(), lifetime, poll }
    }
}

/// This server among those on its store.
#[derive(Debug)]
pub struct Fleet {
    store: Shared,
    options: FleetOptions,
    place: watch::Sender<Place>,
    tokens: watch::Sender<u64>,
    /// Leases whose end was not told to the store yet.
    unreleased: Mutex<Vec<LeaseName>>,
    released: Notify,
}

/// The store, if there may be other servers on it.
struct Shared(Option<Arc<dyn Store>>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Shared").field(&self.0.is_some()).finish()
    }
}

/// What is known of the servers.
#[derive(Clone, Debug, Default)]
struct Place {
    me: Option<Me>,
    company: Company,
}

impl Place {
    /// This server, if the others believe now that it lives.
    fn me(&self) -> Option<&Me> {
        self.me.as_ref().filter(|me| me.until > Instant::now())
    }
}

/// This server, as long as it counts among those that live.
#[derive(Clone, Debug)]
struct Me {
    member: Member,
    proof: Sha256Digest,
    /// The others believe until then, or later, that it lives.
    until: Instant,
    /// Cancelled once they do not.
    over: CancellationToken,
}

impl Fleet {
    /// A server on this store. It lives beside others only while [`Self::run`] is polled.
    #[must_use]
    pub fn of(store: &Arc<dyn Store>, options: FleetOptions) -> Arc<Self> {
        Self::new(Shared(store.is_shared().then(|| Arc::clone(store))), options)
    }

    /// A server that takes its store for its own, whatever others are on it.
    #[must_use]
    pub fn alone() -> Arc<Self> {
        Self::new(Shared(None), FleetOptions::default())
    }

    fn new(store: Shared, options: FleetOptions) -> Arc<Self> {
        let (place, tokens) = (watch::Sender::default(), watch::Sender::default());
        let (unreleased, released) = (Mutex::default(), Notify::new());
        Arc::new(Self { store, options, place, tokens, unreleased, released })
    }

    /// How it lives beside others.
    #[must_use]
    pub const fn options(&self) -> &FleetOptions {
        &self.options
    }

    /// Whether there may be other servers on its store.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.store.0.is_some()
    }

    /// Whether it does what one of the servers has to do for all: the one that has lived longest, as they all see it.
    #[must_use]
    pub fn is_first(&self) -> bool {
        let place = self.place.borrow();
        !self.is_shared()
            || place.me().is_some_and(|me| place.company.others.iter().all(|other| other.id > me.member.id))
    }

    /// Whether somebody who proves that they have a secret with this digest is one of the other servers.
    #[must_use]
    pub fn is_member(&self, proof: Sha256Digest) -> bool {
        // Digests are compared, so the time that takes says nothing about the secret.
        self.place.borrow().me().is_some_and(|me| me.proof == proof)
    }

    /// This server's name, if it counts among those that live now.
    #[must_use]
    pub fn me(&self) -> Option<ServerId> {
        self.place.borrow().me().map(|me| me.member.id)
    }

    /// Changes when a token was made or ended by one of the servers, as far as that is known.
    #[must_use]
    pub fn tokens(&self) -> watch::Receiver<u64> {
        self.tokens.subscribe()
    }

    /// Has whoever follows the tokens look at them.
    pub fn look_at_tokens(&self) {
        self.tokens.send_modify(|changes| *changes += 1);
    }

    /// This server's name, and what is cancelled once it does not count among those that live; `None` where it does not now, nor soon: one
    /// that has just started joins the others first.
    pub async fn me_soon(&self) -> Option<(ServerId, CancellationToken)> {
        let mut place = self.place.subscribe();
        let joined = timeout(self.options.lifetime / 3, place.wait_for(|place| place.me().is_some())).await;
        let joined = joined.ok()?.ok()?;
        joined.me().map(|me| (me.member.id, me.over.clone()))
    }

    /// Has the store know that a lease is not held any more, or is not if it was granted: it is told until it knows.
    pub fn release(&self, lease: LeaseName) {
        if self.is_shared() {
            self.unreleased().push(lease);
            self.released.notify_one();
        }
    }

    async fn release_all(&self, store: &dyn Store) -> Infallible {
        loop {
            self.released.notified().await;
            let leases = std::mem::take(&mut *self.unreleased());
            if !leases.is_empty() && store.release_leases(leases.clone()).await.is_err() {
                self.unreleased().extend(leases);
                sleep(self.options.lifetime / 15).await;
                self.released.notify_one();
            }
        }
    }

    /// Ends that this server counts among those that live.
    ///
    /// # Errors
    /// When the store fails; the others count this server as dead once its time is over.
    pub async fn leave(&self) -> Result<(), StoreError> {
        let me = self.place.send_replace(Place::default()).me;
        match (&self.store.0, me) {
            (Some(store), Some(me)) => store.leave(me.member.id).await,
            _ => Ok(()),
        }
    }

    fn unreleased(&self) -> MutexGuard<'_, Vec<LeaseName>> {
        self.unreleased.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that this server lives, for as long as it is polled.
    pub async fn run(&self) -> Infallible {
        let Some(store) = &self.store.0 else { return pending().await };
        tokio::select! {
            never = self.stay(store.as_ref()) => never,
            never = self.release_all(store.as_ref()) => never,
        }
    }

    async fn stay(&self, store: &dyn Store) -> Infallible {
        loop {
            let joined = self.live(store).await;
            self.place.send_modify(|place| {
                if let Some(me) = place.me.take() {
                    me.over.cancel();
                }
            });
            if let Err(error) = joined {
                tracing::warn!(%error, "this server does not count among those on its store; it holds no leases until it does");
            }
            sleep(mint::spread(self.options.lifetime / 15)).await;
        }
    }

    /// Joins the others, and lives until they do not believe it any more.
    async fn live(&self, store: &dyn Store) -> Result<(), StoreError> {
        let failed = |cause: getrandom::Error| StoreError::Failed { action: "mint a secret", cause: cause.to_string() };
        let (id, secret) = (ServerId(mint::uuid()), Secret::mint().map_err(failed)?);
        let member = Member { id, address: self.options.address.clone(), secret: secret.text() };
        let (asked, lifetime) = (Instant::now(), self.options.lifetime);
        let company = store.join(member.clone(), lifetime).await?;
        // What an earlier life of this server held is free.
        self.unreleased().clear();
        tracing::info!(server = %id.0, others = company.others.len(), "this server counts among those on its store");
        let me = Me { member, proof: secret.digest(), until: asked + lifetime, over: CancellationToken::new() };
        self.know(me.clone(), company);
        // Soon for the first time: those that joined at the same time do not know of each other yet.
        let (mut until, mut pause) = (me.until, lifetime / 15);
        loop {
            sleep_until(until.min(Instant::now() + pause)).await;
            pause = lifetime / 3;
            let Some((asked, company)) = self.renew(store, id, until).await? else { return Ok(()) };
            until = asked + lifetime;
            self.know(Me { until, ..me.clone() }, company);
        }
    }

    /// Says that this server lives, again and again until that is heard; `None` once the others do not believe it any more. Answers
    /// when it was said.
    async fn renew(
        &self,
        store: &dyn Store,
        id: ServerId,
        until: Instant,
    ) -> Result<Option<(Instant, Company)>, StoreError> {
        let lifetime = self.options.lifetime;
        loop {
            let asked = Instant::now();
            match timeout_at(until, store.renew(id, lifetime)).await {
                Ok(Ok(company)) => return Ok(company.map(|company| (asked, company))),
                Ok(Err(error)) if Instant::now() >= until => return Err(error),
                Ok(Err(_)) => sleep_until(until.min(Instant::now() + lifetime / 15)).await,
                Err(_) => return Ok(None),
            }
        }
    }

    fn know(&self, me: Me, company: Company) {
        self.place.send_replace(Place { me: Some(me), company });
    }
}
