//! Who of those that wait may use a processor next, or a place among the calls: a bounded number of turns at one time, shared out
//! between parties (holders of tokens, or connections without one) and not between calls.
//!
//! The party whose last turn is longest ago is first, and who has none at present counts as never served. A party that
//! already has turns does not get the last free one. Among the requests of one party the lane (a connection, or a workspace) whose last
//! turn is longest ago is first.
//!
//! Bound: let a party ask while it has no turn and no other request. Until it is served, at most one turn of each other party
//! begins, and only of those that were waiting for their first turn by then. Turns that are under way at that time come on
//! top: at most as many as there are turns in all.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::caller::{Party, Who};

/// Shares out turns. Copies share the same turns.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    free: usize,
    /// Every party that has a turn or waits for one.
    callers: HashMap<Who, CallerState>,
    /// Those who wait, the next one first.
    order: BTreeSet<(u64, Who)>,
    /// Counts turns and arrivals.
    now: u64,
    /// Turns that have begun.
    begun: u64,
}

#[derive(Debug, Default)]
struct CallerState {
    running: usize,
    lanes: HashMap<u64, Lane>,
    /// Lanes in which requests wait, the next one first: by when they were last served, and by when the request came.
    order: BTreeSet<(u64, u64, u64)>,
    /// Turns of this caller that have begun since it is known.
    begun: u64,
    /// When it came, or was last served: below [`SERVED`] for those who have not been served yet.
    place: u64,
}

/// The requests of one lane that wait.
#[derive(Debug, Default)]
struct Lane {
    /// When it was last served; when it came, if it was not, as far as is known.
    served: u64,
    waiting: VecDeque<Request>,
}

/// A request for a turn that waits.
#[derive(Debug)]
struct Request {
    called: oneshot::Sender<Turn>,
    /// When it was made.
    made: u64,
    /// Turns of other callers that had begun then.
    others: u64,
}

/// Lanes of one party whose last turns are remembered.
const LANES: usize = 1024;

/// Places of callers that were served are behind those of callers that were not.
const SERVED: u64 = 1 << 63;

/// The right to use a processor, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    caller: Who,
    turns: Turns,
    /// How many turns of other callers began between asking for this one and being given it.
    pub(crate) waited: u64,
}

impl Turns {
    /// So many turns at one time, at least one.
    pub(crate) fn new(width: usize) -> Self {
        let queue = Queue { free: width.max(1), callers: HashMap::new(), order: BTreeSet::new(), now: 0, begun: 0 };
        Self(Arc::new(Mutex::new(queue)))
    }

    /// Waits for a turn. Who stops waiting loses its place.
    pub(crate) async fn take(&self, party: Party) -> Turn {
        loop {
            let (called, waits) = oneshot::channel();
            self.queue().add(party, called);
            self.share_out();
            // A turn is always given or taken back with its waiter; should it be lost, it is asked for anew.
            if let Ok(turn) = waits.await {
                return turn;
            }
        }
    }

    /// A turn, if it would be given now.
    pub(crate) fn take_at_once(&self, party: Party) -> Option<Turn> {
        let begun = self.queue().begin_at_once(party);
        begun.then(|| Turn { caller: party.who, turns: self.clone(), waited: 0 })
    }

    /// Gives free turns to those who wait.
    fn share_out(&self) {
        loop {
            let Some((caller, called, waited)) = self.queue().next() else { return };
            // Should it just have stopped waiting, the turn comes back here as it is dropped.
            drop(called.send(Turn { caller, turns: self.clone(), waited }));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn add(&mut self, Party { who, lane }: Party, called: oneshot::Sender<Turn>) {
        self.now += 1;
        let known = self.callers.entry(who).or_insert(CallerState { place: self.now, ..CallerState::default() });
        let others = self.begun.saturating_sub(known.begun);
        known.add(lane, Request { called, made: self.now, others });
        self.order.insert((known.place, who));
    }

    /// Whether there is a free turn for this caller.
    fn is_free_for(&self, who: &Who) -> bool {
        match self.free {
            0 => false,
            1 => self.callers.get(who).is_none_or(|known| known.running == 0),
            _ => true,
        }
    }

    /// Begins a turn if there is a free one and nobody waits for one.
    fn begin_at_once(&mut self, Party { who, lane }: Party) -> bool {
        if !self.order.is_empty() || !self.is_free_for(&who) {
            return false;
        }
        self.callers.entry(who).or_default();
        self.begin(who, lane);
        true
    }

    /// Notes that a turn of this caller begins, and which place that leaves it.
    fn begin(&mut self, who: Who, lane: u64) {
        let Some(known) = self.callers.get_mut(&who) else { return };
        self.now += 1;
        known.place = SERVED + self.now;
        known.running += 1;
        known.serve(lane, self.now);
        self.begun += 1;
        known.begun += 1;
        self.free -= 1;
    }

    /// Who is next, if there is a free turn for a caller that waits; and how many turns of others have begun meanwhile.
    fn next(&mut self) -> Option<(Who, oneshot::Sender<Turn>, u64)> {
        loop {
            let place = *self.order.iter().find(|(_, who)| self.is_free_for(who))?;
            self.order.remove(&place);
            let who = place.1;
            let known = self.callers.get_mut(&who)?;
            let Some((lane, Request { called, others, .. })) = known.first() else {
                if known.running == 0 {
                    self.callers.remove(&who);
                }
                continue;
            };
            let waited = self.begun.saturating_sub(known.begun).saturating_sub(others);
            self.begin(who, lane);
            if let Some(known) = self.callers.get(&who).filter(|known| known.waits()) {
                self.order.insert((known.place, who));
            }
            return Some((who, called, waited));
        }
    }

    fn take_back(&mut self, caller: Who) {
        self.free += 1;
        if let Some(known) = self.callers.get_mut(&caller) {
            known.running -= 1;
            if known.running == 0 && !known.waits() {
                self.callers.remove(&caller);
            }
        }
    }
}

impl CallerState {
    fn waits(&self) -> bool {
        !self.order.is_empty()
    }

    fn add(&mut self, lane: u64, request: Request) {
        // One that is not known is behind those that wait, each of which has one turn before it.
        let unknown = || Lane { served: request.made, waiting: VecDeque::new() };
        let lane_state = self.lanes.entry(lane).or_insert_with(unknown);
        if lane_state.waiting.is_empty() {
            self.order.insert((lane_state.served, request.made, lane));
        }
        lane_state.waiting.push_back(request);
    }

    /// Takes the request that is next: the oldest one of the lane that was served longest ago. Those of who gave up are dropped.
    fn first(&mut self) -> Option<(u64, Request)> {
        while let Some((_, _, lane)) = self.order.pop_first() {
            let Some(lane_state) = self.lanes.get_mut(&lane) else { continue };
            let request = lane_state.waiting.pop_front();
            if let Some(next) = lane_state.waiting.front() {
                self.order.insert((lane_state.served, next.made, lane));
            }
            if let Some(request) = request.filter(|request| !request.called.is_closed()) {
                return Some((lane, request));
            }
        }
        None
    }

    /// Notes that a lane is served now.
    fn serve(&mut self, lane: u64, now: u64) {
        if self.lanes.len() >= LANES {
            self.lanes.retain(|_, lane| !lane.waiting.is_empty());
        }
        let lane_state = self.lanes.entry(lane).or_default();
        if let Some(next) = lane_state.waiting.front() {
            self.order.remove(&(lane_state.served, next.made, lane));
            self.order.insert((now, next.made, lane));
        }
        lane_state.served = now;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.queue().take_back(self.caller);
        self.turns.share_out();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::caller::ConnectionId;

    const BUSY: Party = of(1);
    const QUIET: Party = of(2);

    const fn of(connection: u64) -> Party {
        Party { who: Who::Connection(ConnectionId(connection)), lane: connection }
    }

    /// Asks for a turn, and answers who is waiting for it.
    async fn ask(turns: &Turns, caller: Party) -> impl Future<Output = Turn> + use<> {
        let turns = turns.clone();
        let mut waiting = Box::pin(async move { turns.take(caller).await });
        let early = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
        async move {
            match early {
                Poll::Ready(turn) => turn,
                Poll::Pending => waiting.await,
            }
        }
    }

    async fn is_served(waiting: &mut (impl Future<Output = Turn> + Unpin)) -> Option<Turn> {
        match poll_fn(|context| Poll::Ready(pin!(&mut *waiting).poll(context))).await {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    /// With one turn for all, a caller that asks rarely waits for the turn under way, and for no other.
    #[tokio::test]
    async fn a_quiet_caller_waits_for_one_turn_of_another_at_most() {
        let turns = Turns::new(1);
        let mut under_way = turns.take(BUSY).await;
        let mut crowd = VecDeque::new();
        for _ in 0..100 {
            crowd.push_back(Box::pin(ask(&turns, BUSY).await));
        }
        for _ in 0..10 {
            let mut quiet = Box::pin(ask(&turns, QUIET).await);
            assert!(is_served(&mut quiet).await.is_none(), "there is one turn");
            drop(under_way);
            let turn = is_served(&mut quiet).await.expect("it is the quiet caller's turn");
            drop(turn);
            under_way = is_served(crowd.front_mut().unwrap()).await.expect("then the next one of the crowd");
            crowd.pop_front();
        }
    }

    /// The bound, by counting; the control is a queue that serves in the order of arrival.
    #[tokio::test]
    async fn at_most_one_turn_of_each_other_caller_begins_meanwhile() {
        const BUSY_CALLERS: u64 = 5;
        let (turns, fifo) = (Turns::new(1), Arc::new(tokio::sync::Semaphore::new(1)));
        let begun = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (under_way, first) = (turns.take(QUIET).await, fifo.clone().acquire_owned().await.unwrap());
        let (mut crowd, mut line) = (Vec::new(), Vec::new());
        for number in 0..100 {
            crowd.push(Box::pin(ask(&turns, of(10 + number % BUSY_CALLERS)).await));
            let (fifo, begun) = (fifo.clone(), Arc::clone(&begun));
            let mut waiting = Box::pin(async move {
                drop(fifo.acquire_owned().await.unwrap());
                begun.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
            });
            assert!(poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await.is_pending());
            line.push(waiting);
        }
        drop(under_way);
        let mut quiet = Box::pin(ask(&turns, QUIET).await);
        let mut served = 0;
        let waited = loop {
            if let Some(turn) = is_served(&mut quiet).await {
                break turn.waited;
            }
            let mut ended = None;
            for (index, waits) in crowd.iter_mut().enumerate() {
                if let Some(turn) = is_served(waits).await {
                    ended = Some((index, turn));
                    break;
                }
            }
            let (index, turn) = ended.expect("there is always one turn");
            drop(crowd.swap_remove(index));
            served += 1;
            drop(turn);
        };
        // The first of them had been given the turn before it was asked for.
        assert_eq!(waited + 1, served);
        assert!(keeps_the_bound(waited, BUSY_CALLERS), "{waited}");

        let mut last = Box::pin(fifo.acquire_owned());
        assert!(poll_fn(|context| Poll::Ready(last.as_mut().poll(context))).await.is_pending());
        drop(first);
        for waiting in line {
            waiting.await;
        }
        drop(last.await.unwrap());
        let waited = begun.load(std::sync::atomic::Ordering::SeqCst);
        assert!(!keeps_the_bound(waited, BUSY_CALLERS), "the control is not caught: {waited}");
    }

    fn keeps_the_bound(waited: u64, others: u64) -> bool {
        waited <= others
    }

    /// With several turns, one caller alone never has all of them.
    #[tokio::test]
    async fn the_last_free_turn_is_for_somebody_else() {
        let turns = Turns::new(3);
        let (_first, _second) = (turns.take(BUSY).await, turns.take(BUSY).await);
        let mut third = Box::pin(ask(&turns, BUSY).await);
        assert!(is_served(&mut third).await.is_none());
        let mut quiet = Box::pin(ask(&turns, QUIET).await);
        assert!(is_served(&mut quiet).await.is_some());
    }

    /// Of several callers that always ask, each has as many turns as any other.
    #[tokio::test]
    async fn those_who_always_ask_take_turns() {
        let turns = Turns::new(1);
        let mut under_way = turns.take(of(0)).await;
        let mut waiting = Vec::new();
        for round in 0..30 {
            waiting.push((round % 3, Box::pin(ask(&turns, of(round % 3)).await)));
        }
        let mut served = Vec::new();
        while !waiting.is_empty() {
            drop(under_way);
            let mut next = None;
            for (index, (_, waits)) in waiting.iter_mut().enumerate() {
                if let Some(turn) = is_served(waits).await {
                    next = Some((index, turn));
                    break;
                }
            }
            let (index, turn) = next.expect("somebody is served");
            served.push(waiting.remove(index).0);
            under_way = turn;
        }
        for window in served.chunks(3) {
            let mut each = window.to_vec();
            each.sort_unstable();
            assert_eq!(each, [0, 1, 2], "{served:?}");
        }
    }

    /// The calls of one token take turns between their lanes, however many of them wait in one; and a token is one caller however many
    /// lanes it has.
    #[tokio::test]
    async fn lanes_of_one_token_take_turns() {
        let noisy = |lane| Party { who: Who::Token(1), lane };
        let turns = Turns::new(1);
        let mut under_way = turns.take_at_once(noisy(0)).unwrap();
        assert!(turns.take_at_once(QUIET).is_none(), "there is one turn");
        let mut waiting = Vec::new();
        for _ in 0..50 {
            waiting.push((1, Box::pin(ask(&turns, noisy(1)).await)));
        }
        for lane in 2..5 {
            waiting.push((lane, Box::pin(ask(&turns, noisy(lane)).await)));
        }
        waiting.push((99, Box::pin(ask(&turns, QUIET).await)));
        let mut served = Vec::new();
        while served.len() < 6 {
            drop(under_way);
            let mut next = None;
            for (index, (_, waits)) in waiting.iter_mut().enumerate() {
                if let Some(turn) = is_served(waits).await {
                    next = Some((index, turn));
                    break;
                }
            }
            let (index, turn) = next.expect("somebody is served");
            served.push(waiting.remove(index).0);
            under_way = turn;
        }
        // The quiet one was not served yet, and comes before every call of the token but the one that was given the turn before.
        assert!(served[..2].contains(&99), "{served:?}");
        let mut lanes: Vec<_> = served.iter().copied().filter(|lane| *lane != 99).take(4).collect();
        lanes.sort_unstable();
        assert_eq!(lanes, [1, 2, 3, 4], "{served:?}");
    }

    /// However many lanes come, one that waits is passed by none that came after it.
    #[tokio::test]
    async fn a_lane_that_comes_waits_behind_those_that_wait() {
        let lane = |lane| Party { who: Who::Token(1), lane };
        let turns = Turns::new(1);
        let under_way = turns.take_at_once(lane(0)).unwrap();
        let mut known = Box::pin(ask(&turns, lane(0)).await);
        let mut new = Box::pin(ask(&turns, lane(1)).await);
        drop(under_way);
        assert!(is_served(&mut new).await.is_none());
        drop(is_served(&mut known).await.expect("it waits since before the other came"));
        assert!(is_served(&mut new).await.is_some());
    }

    /// A caller that gave up delays no other, and leaves nothing behind.
    #[tokio::test]
    async fn who_gave_up_is_passed_over() {
        let turns = Turns::new(1);
        let under_way = turns.take(BUSY).await;
        let gone: Vec<_> = [ask(&turns, BUSY).await, ask(&turns, of(3)).await].into_iter().map(Box::pin).collect();
        let mut last = Box::pin(ask(&turns, QUIET).await);
        drop(gone);
        drop(under_way);
        drop(is_served(&mut last).await.expect("nobody else waits"));
        let queue = turns.queue();
        assert_eq!((queue.free, queue.callers.len(), queue.order.len()), (1, 0, 0));
    }
}
