//! What a call holds while it is worked on, and how it gives that back while it waits for an agent.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::caller::{Caller, ConnectionId, InUse, Peer, Peers, Share};

/// What a call holds once its message has come whole.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Its places among the calls that are worked on, and the weight of its message.
    pub(crate) permits: Vec<OwnedSemaphorePermit>,
    /// Its connection is not idle meanwhile.
    pub(crate) in_use: Option<InUse>,
}

/// Where a call's ticket is put.
pub(crate) type TicketBox = Arc<Mutex<Option<Ticket>>>;

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
        }
    }
}
