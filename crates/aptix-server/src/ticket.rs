//! What a call holds while it is worked on, and how it gives that back while it waits for an agent.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::caller::{Caller, ConnectionId, InUse, Peer, Peers, Share};
use crate::quota::Held;
use crate::room::Place;
use crate::turns::Turn;

/// What a call holds once its message has come whole.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Its places among the calls of its connection and of its caller, and the weight of its message.
    pub(crate) permits: Vec<OwnedSemaphorePermit>,
    /// Its place among the calls that are worked on.
    pub(crate) place: Option<Turn>,
    /// Calls of others that were given a place while it waited for its own.
    pub(crate) waited: u64,
    /// The bytes of its message, as its token and its workspace are held to them.
    pub(crate) bytes: Vec<Held>,
    /// Its connection is not idle meanwhile.
    pub(crate) in_use: Option<InUse>,
}

/// Where a call's ticket is put.
pub(crate) type TicketBox = Arc<Mutex<Option<Ticket>>>;

/// The stream that a workspace is held to, once the workspace is known.
pub(crate) type StreamHeld = Arc<OnceLock<Held>>;

/// What a call holds that may go on for as long as the server runs.
#[derive(Debug)]
pub(crate) struct LongLived {
    _place: Place,
    _of_token: Option<Held>,
    pub(crate) in_workspace: StreamHeld,
}

impl LongLived {
    /// The place of a call, and its token's stream.
    pub(crate) fn new(place: Place, of_token: Option<Held>) -> Self {
        Self { _place: place, _of_token: of_token, in_workspace: StreamHeld::default() }
    }
}

/// A call that asks an agent: where it came from, and what it gives back while it waits.
#[derive(Clone, Debug)]
pub struct Asker {
    pub(crate) peer: Peer,
    pub(crate) ticket: TicketBox,
}

impl Asker {
    /// The call of a request. Admission has seen to it that every call has one.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        request.extensions().get().cloned().ok_or_else(|| Status::internal("the call was not admitted"))
    }

    /// An asker that has not called over a connection, and holds nothing. Askers of one number share what one connection gets.
    #[must_use]
    pub fn unconnected(number: u64) -> Self {
        let peer = Peers::new(Share::of(1)).meet(Caller::Local, CancellationToken::new());
        Self { peer: Peer { connection: ConnectionId(number), ..peer }, ticket: TicketBox::default() }
    }

    /// Gives back the call's places. Its connection stays in use.
    pub(crate) fn release(&self) {
        if let Some(ticket) = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            ticket.permits.clear();
            ticket.place = None;
        }
    }
}
