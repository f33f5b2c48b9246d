//! The connection of the agent that serves a workspace: its lease, and the events that it is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::digest::Sha256Digest;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::id::{AgentId, Revision, WorkspaceId};
use aptix_model::presence::Presence;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use aptix_telemetry::{BATCH, Kind, Span};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::event::WorkspaceEvent;
use super::lease::{Claim, LeaseSecret, secret_digest};
use super::questions::{Answered, Asked, Questions, Serving};
use super::refusal::Refusal;
use super::stream::{FeedEnd, Items, Outlet, Position, Start, Stop, WatchError, broken_off, check_workspace, stop};
use super::wake::{Topic, Waker};
use crate::cpu_pool::Turnkeeper;
use crate::fleet::Fleet;
use crate::metrics::Metric;
use crate::store::StoreError;
use crate::store::fleet::{Grant, Granted, Holder, LeaseName, ServerId};

/// Who asks to serve a workspace, and from where on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The agent.
    pub agent: AgentId,
    /// Where its events begin.
    pub from: Start,
    /// The digest of the secret of the lease that it held last: with it the lease is taken over at once.
    pub held: Option<Sha256Digest>,
    /// What it states of itself.
    pub presence: Presence,
}

/// One item of a feed.
#[derive(Clone, PartialEq, Debug)]
pub enum Delivery {
    /// The lease it holds: its epoch, and the secret that proves it.
    Lease(u64, LeaseSecret),
    /// Something happened.
    Event(WorkspaceEvent),
    /// Everything up to here was sent.
    Heartbeat(Revision),
    /// A question, or that its answer is not wanted any more.
    Asked(Asked),
}

/// A lease that was granted.
struct Leased {
    claim: Claim,
    epoch: u64,
    secret: LeaseSecret,
    /// Cancelled once other servers may grant it to other agents.
    over: CancellationToken,
    release: Release,
}

/// Has the store know, when this is dropped, that a lease is not held: also where nobody was told that it is.
struct Release {
    fleet: Arc<Fleet>,
    lease: LeaseName,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.fleet.release(self.lease.clone());
    }
}

impl Dispatcher {
    /// Takes a workspace's lease and streams its events, until either side ends the stream.
    ///
    /// # Errors
    /// When another agent serves the workspace, the history is another one, the revision does not exist, or the server
    /// takes no more streams.
    pub async fn serve<T: Send + 'static>(
        self: &Arc<Self>,
        hello: Hello,
        answers: impl Stream<Item = Result<Answered, Refusal>> + Send + Unpin + 'static,
        encode: impl Fn(Delivery) -> T + Send + Sync + 'static,
    ) -> Result<Items<T>, WatchError> {
        let Hello { workspace, agent, from, held, presence } = hello;
        let slot = self.stream_slot()?;
        let waker = self.wakes.subscribe(Topic::Workspace(workspace.clone()));
        let after = self.begin(&workspace, from).await?;
        let version = presence.version.clone();
        let questions = Questions::new(agent.clone(), presence);
        let (this, wanted, asked) = (Arc::clone(self), workspace.clone(), Arc::clone(&questions));
        let leased = self.to_the_end(async move { this.lease(&wanted, held, asked).await }).await?;
        let Leased { claim, epoch, secret, over, release } = leased;
        tracing::info!(WorkspaceId = %workspace, AgentId = %agent, epoch, after = after.revision.0, version, "lease granted");
        let (outlet, stream) = Outlet::open(claim.superseded.clone(), self.closing.clone()).await?;
        let this = Arc::clone(self);
        let (turns, encode) = (Turnkeeper::here(), Arc::new(encode));
        let connected = Metric::Agents.enter([]);
        self.tasks.spawn(async move {
            let _connected = connected;
            let lease = Delivery::Lease(epoch, secret);
            let sending = async {
                this.hand_over(&outlet, encode(lease)).await?;
                tokio::try_join!(
                    this.stream_events((&workspace, waker), after, &outlet, (&turns, &encode)),
                    this.stream_questions(&questions, &outlet, &*encode),
                )
            };
            let heard = turns.run(listen(answers, Arc::clone(&questions)));
            let stop = tokio::select! {
                Err(stop) = sending => stop,
                heard = heard => heard.unwrap_or_else(|error| stop(broken_off(&error))),
                () = over.cancelled() => Some(FeedEnd::Alone),
            };
            tracing::info!(WorkspaceId = %workspace, AgentId = %agent, epoch, end = ?stop, "lease ended");
            // The lease is free once the agent knows of the end.
            drop::<Claim>(claim);
            outlet.finish(stop);
            drop::<Release>(release);
            drop(slot);
        });
        Ok(stream)
    }

    /// Grants an epoch and then takes the lease, as one step.
    async fn lease(
        &self,
        workspace: &WorkspaceId,
        held: Option<Sha256Digest>,
        questions: Arc<Questions>,
    ) -> Result<Leased, WatchError> {
        // Waited for before the turn, which others of other workspaces wait for, too.
        let me = if self.fleet.is_shared() { Some(self.fleet.me_soon().await.ok_or(WatchError::Alone)?) } else { None };
        let turn = self.leases.turn(workspace).await;
        self.leases.ask(workspace, held).map_err(WatchError::LeaseHeld)?;
        let secret = LeaseSecret::mint()?;
        let digest = secret_digest(secret.bytes()).ok_or(StoreError::Closed)?;
        let release = Release { fleet: Arc::clone(&self.fleet), lease: (workspace.clone(), digest) };
        let (epoch, over) = match me {
            Some((server, over)) => {
                (self.take_lease(workspace, (digest, held), (server, &questions.serving)).await?, over)
            }
            None => (self.grant_lease(workspace, digest, &questions.serving).await?, CancellationToken::new()),
        };
        let claim = self.leases.hold(workspace, (Some(digest), epoch), questions);
        drop(turn);
        Ok(Leased { claim, epoch, secret, over, release })
    }

    /// The epoch of a lease that only agents of this server hold.
    async fn grant_lease(
        &self,
        workspace: &WorkspaceId,
        secret: Sha256Digest,
        serving: &Serving,
    ) -> Result<u64, StoreError> {
        match self.store.grant_lease(workspace.clone(), secret, serving.presence.roots.clone()).await {
            // A lease that cannot be kept is good for reading. Its reports are refused once the store takes writes again,
            // and the agent asks for another, which is kept.
            Err(StoreError::ReadOnly { .. }) => Ok(self.store.lease(workspace.clone()).await?.epoch + 1),
            granted => granted,
        }
    }

    /// The epoch of a lease that agents of other servers may hold.
    async fn take_lease(
        &self,
        workspace: &WorkspaceId,
        (secret, held): (Sha256Digest, Option<Sha256Digest>),
        (server, serving): (ServerId, &Serving),
    ) -> Result<u64, WatchError> {
        let Serving { agent, since, presence } = serving.clone();
        let holder = Holder { server, agent, since, presence: Arc::unwrap_or_clone(presence) };
        match self.store.take_lease(Grant { workspace: workspace.clone(), secret, held, holder }).await? {
            Granted::Epoch(epoch) => Ok(epoch),
            Granted::Held(since) => Err(WatchError::LeaseHeld(since)),
            Granted::Dead => Err(WatchError::Alone),
        }
    }

    /// Sends the questions of callers until the stream ends. A question waits here, and not in the stream, while the agent
    /// takes nothing.
    async fn stream_questions<T>(
        &self,
        questions: &Questions,
        outlet: &Outlet<T>,
        encode: &(impl Fn(Delivery) -> T + Send + Sync),
    ) -> Result<std::convert::Infallible, Stop> {
        loop {
            questions.sendable().await;
            let room = self.room(outlet).await?;
            if let Some(asked) = questions.next() {
                room.send(Ok(encode(Delivery::Asked(asked))));
            }
        }
    }

    /// Streams the events after a position until the stream ends.
    async fn stream_events<T: Send + 'static>(
        &self,
        (workspace, mut waker): (&WorkspaceId, Waker),
        after: Position,
        outlet: &Outlet<T>,
        (turns, encode): (&Turnkeeper, &Arc<impl Fn(Delivery) -> T + Send + Sync + 'static>),
    ) -> Result<std::convert::Infallible, Stop> {
        let mut sent = after;
        loop {
            let (events, more) = self.events_after((workspace, &waker), sent).await?;
            for event in events {
                let began = Instant::now();
                let room = self.room(outlet).await?;
                let mut event = self.event(workspace, event).await?;
                check_workspace(&waker, workspace)?;
                let (position, at) = (event.position(), event.facts.as_ref().map(|facts| facts.at));
                // What waits for its receiver is as small as what is sent.
                let encode = Arc::clone(encode);
                let work = async move {
                    // Logged before the receiver can read the message.
                    let _sending = event.batch.as_mut().ok().and_then(|batch| forwarded(batch, began));
                    encode(Delivery::Event(event))
                };
                room.send(Ok(turns.run(work).await.map_err(|error| stop(broken_off(&error)))?));
                if let Some(at) = at {
                    Metric::FeedLag.took(&[], Duration::from_millis(self.clock.now().0.saturating_sub(at.0)));
                }
                sent = position;
            }
            if !more {
                self.idle(outlet, &mut waker, || encode(Delivery::Heartbeat(sent.revision))).await?;
            }
        }
    }
}

/// Reads what the agent sends until it ends the stream, or sends what it must not.
async fn listen(
    mut answers: impl Stream<Item = Result<Answered, Refusal>> + Send + Unpin,
    questions: Arc<Questions>,
) -> Stop {
    while let Some(answer) = answers.next().await {
        if let Err(refused) = answer.and_then(|answer| questions.answer(answer)) {
            return Some(FeedEnd::Refused(Box::new(refused)));
        }
    }
    None
}

/// Logs that a batch which was read from the store at `began` is about to be sent to be carried out (TUL-004 6.1), and has what
/// the agent does follow this in its trace.
fn forwarded(record: &mut BatchRecord, began: Instant) -> Option<Span> {
    if record.state != BatchState::Approved {
        return None;
    }
    Trace::of(Via::Server, record).log(began.elapsed(), Event::Forwarded(&record.batch));
    let mut span = Span::below("send", Kind::Producer, record.sent.traceparent);
    span.note(BATCH, &record.id.to_string());
    record.sent.traceparent = span.context();
    Some(span)
}
