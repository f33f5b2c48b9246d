//! Who calls: the key that limits are counted by, and the connection that a call came over.
//!
//! Callers are distinguished by their address until they have an identity; then a variant of [`Caller`] takes its place.

use std::any::Any;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Request, Status};

use crate::listen::Origin;

/// The key that limits are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Caller {
    /// Every connection from one IPv4 address, or from one IPv6 network of 64 bits.
    Address(IpAddr),
    /// Connections without an address.
    Local,
    /// The owner of the data directory, through the socket in it.
    Owner,
}

impl Caller {
    /// The caller behind the information of a connection.
    pub(crate) fn of(connect_info: &dyn Any) -> Self {
        let tcp = match connect_info.downcast_ref() {
            Some(Origin::Owner) => return Self::Owner,
            Some(Origin::Tcp(tcp)) => Some(tcp),
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

/// The connection that a call came over. Copies share all of it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) caller: Caller,
    /// Differs from that of every other connection.
    pub(crate) connection: ConnectionId,
    /// Places for calls of this connection.
    pub(crate) calls: Arc<Semaphore>,
    /// Places for calls of all connections of its caller.
    pub(crate) calls_of_caller: Arc<Semaphore>,
    /// What large messages of this connection may weigh together, in bytes.
    pub(crate) weight: Arc<Semaphore>,
    pub(crate) activity: Arc<Activity>,
    /// Cancelled when the connection is to be closed.
    pub(crate) cut: CancellationToken,
}

impl Peer {
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
    callers: HashMap<Caller, Weak<Semaphore>>,
    connections: u64,
}

impl Peers {
    /// Each caller and each connection gets its share of the calls.
    pub(crate) fn new(calls: Share) -> Self {
        Self { calls, known: Mutex::default() }
    }

    /// The peer of a new connection.
    pub(crate) fn meet(&self, caller: Caller, cut: CancellationToken) -> Peer {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.connections += 1;
        let connection = ConnectionId(known.connections);
        let calls_of_caller = match known.callers.get(&caller).and_then(Weak::upgrade) {
            Some(calls) => calls,
            None => {
                known.callers.retain(|_, calls| calls.strong_count() > 0);
                let calls = Arc::new(Semaphore::new(self.calls.caller));
                known.callers.insert(caller, Arc::downgrade(&calls));
                calls
            }
        };
        let calls = Arc::new(Semaphore::new(self.calls.connection));
        let weight = Arc::new(Semaphore::new(WEIGHT));
        Peer { caller, connection, calls, calls_of_caller, weight, activity: Arc::default(), cut }
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
