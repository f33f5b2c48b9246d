//! A bounded resource, shared fairly: all together, each caller and each connection hold so much of it at most.
//! When it is used up, the holder that has made no progress for the longest gives way to the newcomer, so that no caller is
//! kept out by callers who do nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::caller::{Activity, Caller, ConnectionId, Peer, Share};

/// A holder that never began to use its place gives way after this long.
const NEVER_BEGAN: Duration = Duration::from_millis(50);

/// How often a caller that waits for room checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A bounded resource.
#[derive(Debug)]
pub(crate) struct Room {
    share: Share,
    /// A holder without progress for this long gives way.
    patience: Duration,
    held: Mutex<Held>,
}

/// Whose share is used up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// That of the whole server.
    Server,
    /// The caller's.
    Caller(Caller),
    /// The connection's.
    Connection(ConnectionId),
}

/// There is no room, and no holder gives way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// Whose share is used up.
    pub scope: Scope,
    /// How much that is.
    pub limit: usize,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    holders: HashMap<u64, Holder>,
    used: HashMap<Scope, usize>,
}

#[derive(Debug)]
struct Holder {
    weight: usize,
    scopes: [Scope; 3],
    activity: Arc<Activity>,
    cut: CancellationToken,
}

/// A held part of a resource; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    room: Arc<Room>,
    id: u64,
    activity: Arc<Activity>,
    /// Cancelled when the holder has to give way.
    pub(crate) cut: CancellationToken,
}

impl Place {
    /// Notes progress.
    pub(crate) fn moved(&self) {
        self.activity.moved();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.lock().remove(self.id);
    }
}

impl Room {
    pub(crate) fn new(share: Share, patience: Duration) -> Arc<Self> {
        Arc::new(Self { share, patience, held: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so much for a call of this peer.
    ///
    /// # Errors
    /// When a share is used up by holders that all make progress.
    pub(crate) fn take(self: &Arc<Self>, peer: &Peer, weight: usize) -> Result<Place, Full> {
        let activity = Arc::<Activity>::default();
        activity.spoke();
        self.take_for(peer, weight, activity, CancellationToken::new())
    }

    /// The same, and waits for room as long as holders need to show that they make no progress, and a little longer.
    ///
    /// # Errors
    /// When no holder gave way until then.
    pub(crate) async fn take_in_time(self: &Arc<Self>, peer: &Peer, weight: usize) -> Result<Place, Full> {
        let until = Instant::now() + self.patience.min(Duration::from_secs(2)) * 2;
        loop {
            match self.take(peer, weight) {
                Err(_) if Instant::now() < until => sleep(LOOK_AGAIN).await,
                taken => return taken,
            }
        }
    }

    /// Takes a place for a connection itself.
    ///
    /// # Errors
    /// When a share is used up by connections that are all in use.
    pub(crate) fn take_connection(self: &Arc<Self>, peer: &Peer) -> Result<Place, Full> {
        self.take_for(peer, 1, Arc::clone(&peer.activity), peer.cut.clone())
    }

    fn take_for(
        self: &Arc<Self>,
        peer: &Peer,
        weight: usize,
        activity: Arc<Activity>,
        cut: CancellationToken,
    ) -> Result<Place, Full> {
        let scopes = [Scope::Connection(peer.connection), Scope::Caller(peer.caller), Scope::Server];
        let mut held = self.lock();
        for scope in scopes {
            let limit = match scope {
                Scope::Connection(_) => self.share.connection,
                Scope::Caller(_) => self.share.caller.min(self.share.total),
                Scope::Server => self.share.total,
            };
            while held.used.get(&scope).copied().unwrap_or_default() + weight > limit {
                let idlest = held.idlest(scope, scopes[0], weight, self.patience).ok_or(Full { scope, limit })?;
                if let Some(holder) = held.remove(idlest) {
                    tracing::debug!(?scope, idle = ?holder.activity.idle(), "an idle holder gave way");
                    holder.cut.cancel();
                }
            }
        }
        activity.moved();
        held.next += 1;
        let id = held.next;
        for scope in scopes {
            *held.used.entry(scope).or_default() += weight;
        }
        held.holders.insert(id, Holder { weight, scopes, activity: Arc::clone(&activity), cut: cut.clone() });
        Ok(Place { room: Arc::clone(self), id, activity, cut })
    }
}

impl Held {
    /// Who has made no progress for the longest, if that is too long. Those who never began come first and give way soon;
    /// so do those of a connection that holds more than the newcomer's would.
    fn idlest(&self, scope: Scope, newcomer: Scope, weight: usize, patience: Duration) -> Option<u64> {
        let used = |scope: &Scope| self.used.get(scope).copied().unwrap_or_default();
        let fair = used(&newcomer) + weight;
        let candidates = self.holders.iter().filter(|(_, holder)| holder.scopes.contains(&scope));
        let idle = candidates.filter_map(|(id, holder)| {
            let (idle, began) = (holder.activity.idle(), holder.activity.has_spoken());
            let patience = match (began, used(&holder.scopes[0]) > fair) {
                (true, false) => patience,
                (true, true) => patience / 4,
                (false, _) => patience.min(NEVER_BEGAN),
            };
            (!idle.is_zero() && idle >= patience).then_some((!began, idle, *id))
        });
        idle.max().map(|(_, _, id)| id)
    }

    fn remove(&mut self, id: u64) -> Option<Holder> {
        let holder = self.holders.remove(&id)?;
        for scope in holder.scopes {
            if let Some(used) = self.used.get_mut(&scope) {
                *used = used.saturating_sub(holder.weight);
                if *used == 0 {
                    self.used.remove(&scope);
                }
            }
        }
        Some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Peers;

    fn peers() -> (Peer, Peer) {
        let peers = Peers::new(Share::of(4));
        let meet = || peers.meet(Caller::Local, CancellationToken::new());
        (meet(), meet())
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_makes_no_progress_for_the_longest_gives_way_and_nobody_else() {
        let patience = Duration::from_secs(1);
        let room = Room::new(Share { total: 2, caller: 2, connection: 2 }, patience);
        let (peer, _) = peers();
        let (first, second) = (room.take(&peer, 1).unwrap(), room.take(&peer, 1).unwrap());
        let full = Full { scope: Scope::Connection(peer.connection), limit: 2 };
        assert_eq!(room.take(&peer, 1).map(drop), Err(full), "both are new");
        tokio::time::advance(patience).await;
        first.moved();
        let third = room.take(&peer, 1).unwrap();
        assert!(second.cut.is_cancelled() && !first.cut.is_cancelled() && !third.cut.is_cancelled());
        // What gave way has given everything back already.
        drop(second);
        assert_eq!(room.take(&peer, 1).map(drop), Err(full));
        drop(third);
        assert!(room.take(&peer, 1).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_uses_up_its_share_leaves_the_others_theirs() {
        let room = Room::new(Share { total: 3, caller: 3, connection: 2 }, Duration::from_secs(1));
        let (greedy, other) = peers();
        let _held = (room.take(&greedy, 1).unwrap(), room.take(&greedy, 1).unwrap());
        let full = room.take(&greedy, 1).map(drop).unwrap_err();
        assert_eq!(full.scope, Scope::Connection(greedy.connection));
        let _one = room.take(&other, 1).unwrap();
        assert_eq!(room.take(&other, 1).map(drop).unwrap_err().limit, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_much_gives_way_to_one_with_little_soon() {
        let patience = Duration::from_secs(4);
        let room = Room::new(Share { total: 4, caller: 4, connection: 4 }, patience);
        let (greedy, modest) = peers();
        let _held: Vec<_> = (0..4).map(|_| room.take(&greedy, 1).unwrap()).collect();
        tokio::time::advance(patience / 4).await;
        let _second = (room.take(&modest, 1).unwrap(), room.take(&modest, 1).unwrap());
        assert!(room.take(&modest, 1).is_err(), "now both have two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_in_use_stays_and_one_that_never_spoke_goes_first() {
        let room = Room::new(Share { total: 2, caller: 2, connection: 1 }, Duration::from_secs(1));
        let peers = Peers::new(Share::of(4));
        let meet = || peers.meet(Caller::Local, CancellationToken::new());
        let (spoke, silent, third, fourth) = (meet(), meet(), meet(), meet());
        let _spoke = room.take_connection(&spoke).unwrap();
        spoke.activity.spoke();
        tokio::time::advance(Duration::from_secs(2)).await;
        let _silent = room.take_connection(&silent).unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        let _third = room.take_connection(&third).unwrap();
        third.activity.spoke();
        assert!(silent.cut.is_cancelled() && !spoke.cut.is_cancelled());
        let _use = (spoke.activity.enter(), third.activity.enter());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(room.take_connection(&fourth).map(drop).unwrap_err().limit, 2);
    }
}
