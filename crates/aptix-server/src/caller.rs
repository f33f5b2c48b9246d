//! Who calls: the key that shares are counted by, the connection that a call came over, and whose turns it takes.
//!
//! Connections are counted by their address. A call of the holder of a token is counted by the token, over whatever connection it came.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use aptix_model::id::WorkspaceId;
use aptix_model::token::CertificateName;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Request, Status};

use crate::listen::Origin;
use crate::quota::CallQuota;

/// The key that limits are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Caller {
    /// Every connection from one IPv4 address, or from one IPv6 network of 64 bits.
    Address(IpAddr),
    /// Connections without an address.
    Local,
    /// The owner of the data directory, through the socket in it.
    Owner,
    /// The holder of a token, by a number that no other token of this process has.
    Token(u64),
}

impl Caller {
    /// The caller behind the information of a connection.
    pub(crate) fn of(connect_info: &dyn Any) -> Self {
        let tcp = match connect_info.downcast_ref() {
            Some(Origin::Owner) => return Self::Owner,
            Some(Origin::Tcp(tcp, _)) => Some(tcp),
            None => connect_info.downcast_ref(),
        };
        let address = tcp.and_then(TcpConnectInfo::remote_addr);
        match address.map(|address| address.ip().to_canonical()) {
            Some(IpAddr::V6(address)) => Self::Address(IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into())),
            Some(address) => Self::Address(address),
            None => Self::Local,
        }
    }
}

/// A connection, by a number that no other of this process has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub(crate) u64);

/// Whom turns are shared out between.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// Calls of one connection, whose caller has no token.
    Connection(ConnectionId),
    /// Calls of the holder of one token, over all connections.
    Token(u64),
}

/// Whose turns a call takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Party {
    /// Those who take turns with each other.
    pub(crate) who: Who,
    /// Of several calls of one party, those of different lanes take turns: a lane is a connection or a workspace.
    pub(crate) lane: u64,
}

impl Party {
    /// The same party, in the lane of a workspace.
    pub(crate) fn about(self, workspace: &WorkspaceId) -> Self {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        Self { lane: hasher.finish(), ..self }
    }
}

impl From<ConnectionId> for Party {
    fn from(connection: ConnectionId) -> Self {
        Self { who: Who::Connection(connection), lane: connection.0 }
    }
}

/// How much of something may be in use at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// By all together.
    pub total: usize,
    /// By one caller.
    pub caller: usize,
    /// By one connection.
    pub connection: usize,
}

impl Share {
    /// A total of which one caller gets at most three quarters, and one connection at most half.
    #[must_use]
    pub const fn of(total: usize) -> Self {
        Self { total, caller: (total * 3).div_ceil(4), connection: total.div_ceil(2) }
    }

    /// Lowers the total; a caller's share stays below it.
    pub fn shrink(&mut self, total: usize) {
        if total < self.total {
            self.total = total;
            self.caller = self.caller.min(Self::of(total).caller);
        }
    }
}

/// When something last made progress, and how often it is in use.
#[derive(Debug)]
pub(crate) struct Activity {
    began: Instant,
    moved: AtomicU64,
    open: AtomicUsize,
    spoke: AtomicBool,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            moved: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            spoke: AtomicBool::new(false),
        }
    }
}

impl Activity {
    /// Notes progress.
    pub(crate) fn moved(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(since, Ordering::Relaxed);
    }

    /// Notes that it has begun to be used for what it is for.
    pub(crate) fn spoke(&self) {
        self.spoke.store(true, Ordering::Relaxed);
    }

    /// Counts a use in, for as long as the answer is held.
    pub(crate) fn enter(self: &Arc<Self>) -> InUse {
        self.open.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// How long it has made no progress; zero while it is in use.
    pub(crate) fn idle(&self) -> Duration {
        if self.open.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.began.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Ordering::Relaxed)))
    }

    /// Whether it was ever used for what it is for.
    pub(crate) fn has_spoken(&self) -> bool {
        self.spoke.load(Ordering::Relaxed)
    }
}

/// A use of something that is not idle meanwhile.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Activity>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.moved();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The names of a client's certificate, set once the client has proven that it has one.
pub(crate) type ClientNames = Arc<OnceLock<Vec<CertificateName>>>;

/// The connection that a call came over. Copies share all of it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) caller: Caller,
    pub(crate) names: ClientNames,
    /// Differs from that of every other connection.
    pub(crate) connection: ConnectionId,
    /// Places for calls of this connection.
    pub(crate) calls: Arc<Semaphore>,
    /// What all connections of its caller share.
    pub(crate) of_caller: Arc<CallerShare>,
    /// What large messages of this connection may weigh together, in bytes.
    pub(crate) weight: Arc<Semaphore>,
    pub(crate) activity: Arc<Activity>,
    /// Cancelled when the connection is to be closed.
    pub(crate) cut: CancellationToken,
    /// What a call over it is held to; of the connection itself, nothing.
    pub(crate) quota: CallQuota,
}

/// What a caller has of the server over all its connections.
#[derive(Debug)]
pub(crate) struct CallerShare {
    /// Places for calls.
    pub(crate) calls: Arc<Semaphore>,
    /// What large messages may weigh together, in bytes: those of one token no more than those of one connection, so that they leave
    /// room for others. Connections without a token are bounded each by itself.
    pub(crate) weight: Arc<Semaphore>,
}

impl CallerShare {
    fn new(caller: Caller, calls: Share) -> Arc<Self> {
        let weight = if matches!(caller, Caller::Token(_)) { WEIGHT } else { Semaphore::MAX_PERMITS };
        Arc::new(Self { calls: Arc::new(Semaphore::new(calls.caller)), weight: Arc::new(Semaphore::new(weight)) })
    }
}

impl Peer {
    /// Whose turns its calls take.
    pub(crate) const fn party(&self) -> Party {
        let lane = self.connection.0;
        match self.caller {
            Caller::Token(token) => Party { who: Who::Token(token), lane },
            Caller::Address(_) | Caller::Local | Caller::Owner => Party { who: Who::Connection(self.connection), lane },
        }
    }

    /// Who sent a request.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<&Self, Status> {
        request.extensions().get().ok_or_else(|| Status::internal("the call came over no connection"))
    }
}

/// Bytes of large messages of one connection that are decoded and worked on at one time. It is half of what all
/// connections have, so that no connection makes the messages of another wait behind a queue of its own.
pub(crate) const WEIGHT: usize = 8 << 20;

/// Makes the peers of connections.
#[derive(Debug)]
pub(crate) struct Peers {
    calls: Share,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    callers: HashMap<Caller, Weak<CallerShare>>,
    connections: u64,
}

impl Known {
    /// What a caller has, by whatever connection it comes.
    fn share(&mut self, caller: Caller, calls: Share) -> Arc<CallerShare> {
        if let Some(share) = self.callers.get(&caller).and_then(Weak::upgrade) {
            return share;
        }
        self.callers.retain(|_, share| share.strong_count() > 0);
        let share = CallerShare::new(caller, calls);
        self.callers.insert(caller, Arc::downgrade(&share));
        share
    }
}

impl Peers {
    /// Each caller and each connection gets its share of the calls.
    pub(crate) fn new(calls: Share) -> Self {
        Self { calls, known: Mutex::default() }
    }

    /// The peer of a call of the holder of this token over this connection.
    pub(crate) fn with_token(&self, connection: Peer, token: u64) -> Peer {
        let caller = Caller::Token(token);
        let of_caller = self.known.lock().unwrap_or_else(PoisonError::into_inner).share(caller, self.calls);
        Peer { caller, of_caller, ..connection }
    }

    /// The peer of a new connection.
    pub(crate) fn meet(&self, caller: Caller, cut: CancellationToken) -> Peer {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.connections += 1;
        let connection = ConnectionId(known.connections);
        let of_caller = known.share(caller, self.calls);
        drop(known);
        let calls = Arc::new(Semaphore::new(self.calls.connection));
        let weight = Arc::new(Semaphore::new(WEIGHT));
        Peer {
            caller,
            names: Arc::default(),
            connection,
            calls,
            of_caller,
            weight,
            activity: Arc::default(),
            cut,
            quota: CallQuota::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_told_apart_by_address_or_network() {
        let caller = |address: &str| {
            Caller::of(&TcpConnectInfo { local_addr: None, remote_addr: Some(address.parse().unwrap()) })
        };
        assert_eq!(caller("192.0.2.1:1"), caller("192.0.2.1:2"));
        assert_eq!(caller("192.0.2.1:1"), caller("[::ffff:192.0.2.1]:1"));
        assert_ne!(caller("192.0.2.1:1"), caller("192.0.2.2:1"));
        assert_eq!(caller("[2001:db8::1]:1"), caller("[2001:db8::ffff:2]:1"));
        assert_ne!(caller("[2001:db8::1]:1"), caller("[2001:db8:0:1::1]:1"));
        assert_eq!(Caller::of(&()), Caller::Local);
    }
}
