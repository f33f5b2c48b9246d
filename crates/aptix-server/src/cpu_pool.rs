//! Where calls do their work: off the async workers, on a bounded number of threads, in fair turns.
//!
//! A call is a future whose every poll (decode a message, validate it, encode an answer) is one turn. What waits for the
//! store or the network holds no thread, and an abandoned call gets no further turn.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::available_parallelism;

use tokio::sync::Notify;
use tokio::task::{JoinError, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use crate::caller::Party;
use crate::turns::Turns;
use crate::waited::Waited;

/// Runs the work of calls. Copies share the same threads.
#[derive(Clone, Debug)]
pub(crate) struct CpuPool {
    turns: Turns,
}

/// Wakes a call: it asks for its next turn.
struct Ring(Notify);

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl CpuPool {
    /// One thread more than there are processors: a caller may use them all, and never has the last turn.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self { turns: Turns::new(processors + 1) }
    }

    /// Runs a future to its end, each poll in a turn of `caller`, and notes what it waits for. Dropped early, the future gets no
    /// further turn.
    ///
    /// # Errors
    /// When the work panicked.
    pub(crate) async fn run<F>(
        &self,
        caller: Party,
        waited: Option<Arc<Waited>>,
        future: F,
    ) -> Result<F::Output, JoinError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut future = Box::pin(future);
        let ring = Arc::new(Ring(Notify::new()));
        let waker = Waker::from(Arc::clone(&ring));
        loop {
            let turn = self.turns.take(caller).await;
            if let Some(waited) = &waited {
                waited.for_turns(turn.waited);
            }
            let waker = waker.clone();
            let here = Call { pool: self.clone(), caller, waited: waited.clone(), turn_ended: None };
            let here = Turnkeeper(Some(here));
            let polled = spawn_blocking(move || {
                let here = Inside::of(here);
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                drop(turn);
                drop(here);
                (future, polled)
            });
            let (unfinished, polled) = polled.await?;
            match polled {
                Poll::Ready(output) => return Ok(output),
                Poll::Pending => future = unfinished,
            }
            ring.0.notified().await;
        }
    }
}

thread_local! {
    /// In whose turn this thread works.
    static HERE: Cell<Turnkeeper> = const { Cell::new(Turnkeeper(None)) };
}

/// Held while a thread works in a turn, also when the work panics.
struct Inside;

impl Inside {
    fn of(turns: Turnkeeper) -> Self {
        HERE.set(turns);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // What the call left to tasks may ask for turns now.
        if let Some(ended) = HERE.take().0.and_then(|call| call.turn_ended) {
            ended.cancel();
        }
    }
}

/// Whose turns work belongs to that a call leaves to a task of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turnkeeper(Option<Call>);

#[derive(Clone, Debug)]
struct Call {
    pool: CpuPool,
    caller: Party,
    waited: Option<Arc<Waited>>,
    /// Cancelled when the turn has ended in which this was made; a task that asked before would count as one that already has a
    /// turn, and lose the place of a caller that rarely asks.
    turn_ended: Option<CancellationToken>,
}

impl Turnkeeper {
    /// Of the call that is worked on here; none outside of calls.
    pub(crate) fn here() -> Self {
        let mut here = HERE.take();
        if let Some(call) = &mut here.0 {
            call.turn_ended.get_or_insert_with(CancellationToken::new);
        }
        HERE.set(here.clone());
        here
    }

    /// Where the call that is worked on here counts what it waits for.
    pub(crate) fn waited() -> Option<Arc<Waited>> {
        let here = HERE.take();
        let waited = here.0.as_ref().and_then(|call| call.waited.clone());
        HERE.set(here);
        waited
    }

    /// Runs a future in turns of that call; in place if there is none.
    ///
    /// # Errors
    /// When the work panicked.
    pub(crate) async fn run<F>(&self, future: F) -> Result<F::Output, JoinError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.0 {
            Some(Call { pool, caller, waited, turn_ended }) => {
                if let Some(ended) = turn_ended {
                    ended.cancelled().await;
                }
                pool.run(*caller, waited.clone(), future.with_current_subscriber()).await
            }
            None => Ok(future.await),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::sync::{Barrier, oneshot};
    use tokio::task::{JoinSet, yield_now};

    use super::*;
    use crate::caller::ConnectionId;

    /// What waits holds no thread: many more calls than threads wait for each other.
    #[tokio::test]
    async fn calls_that_wait_hold_no_thread() {
        let pool = CpuPool::new();
        let all = Arc::new(Barrier::new(200));
        let mut calls = JoinSet::new();
        for caller in 0..200 {
            let (pool, all) = (pool.clone(), Arc::clone(&all));
            calls.spawn(async move {
                pool.run(ConnectionId(caller % 7).into(), None, async move {
                    yield_now().await;
                    all.wait().await;
                    caller
                })
                .await
                .unwrap()
            });
        }
        assert_eq!(calls.join_all().await.into_iter().sum::<u64>(), 199 * 200 / 2);
    }

    /// One thread of the runtime goes on while every thread of the pool is busy, and an abandoned call gets
    /// no turn.
    #[tokio::test]
    async fn the_runtime_goes_on_and_what_nobody_waits_for_does_not_begin() {
        let pool = CpuPool::new();
        let begun = Arc::new(AtomicUsize::new(0));
        let mut blocked = Vec::new();
        let mut calls = JoinSet::new();
        for caller in 0..64 {
            let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
            let (pool, begun) = (pool.clone(), Arc::clone(&begun));
            blocked.push(release);
            calls.spawn(async move {
                let work = async move {
                    begun.fetch_add(1, Ordering::SeqCst);
                    released.recv()
                };
                pool.run(ConnectionId(caller).into(), None, work).await.unwrap().is_err()
            });
        }
        let width = available_parallelism().map_or(2, usize::from).max(2);
        while begun.load(Ordering::SeqCst) < width {
            yield_now().await;
        }
        let (began, mut never) = oneshot::channel::<()>();
        let late = pool.run(ConnectionId(99).into(), None, async move { began.send(()) });
        assert!(tokio::time::timeout(Duration::from_millis(1), late).await.is_err());
        drop(blocked);
        assert_eq!(calls.join_all().await.len(), 64);
        assert!(never.try_recv().is_err());
        assert_eq!(begun.load(Ordering::SeqCst), 64);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_turn_back() {
        let pool = CpuPool::new();
        for _ in 0..100 {
            let broken = pool.run(ConnectionId(1).into(), None, async { assert_eq!(1, 2, "on purpose") }).await;
            assert!(broken.unwrap_err().is_panic());
        }
        assert_eq!(pool.run(ConnectionId(1).into(), None, async { 7 }).await.unwrap(), 7);
    }

    /// What a call leaves to a task is done in the call's turns as well, and not by the workers of the runtime.
    #[tokio::test]
    async fn what_a_call_leaves_to_a_task_is_done_in_its_turns() {
        let pool = CpuPool::new();
        let worker = std::thread::current().id();
        assert_eq!(Turnkeeper::here().run(async { std::thread::current().id() }).await.unwrap(), worker);
        let call = pool.run(ConnectionId(1).into(), None, async {
            let turns = Turnkeeper::here();
            let mut tasks = JoinSet::new();
            tasks.spawn(async move { turns.run(async { std::thread::current().id() }).await.unwrap() });
            tasks.join_next().await.unwrap().unwrap()
        });
        assert_ne!(call.await.unwrap(), worker);
        assert!(Turnkeeper::here().0.is_none());
    }
}
