//! Whether the store takes writes.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::fault::Fault;
use crate::store::StoreError;

/// Whether the store takes writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    Well,
    /// A write failed; it is tried again in the background.
    Failed(String),
    /// The task that writes ended unasked: only another start mends it.
    Ended,
    Closed,
}

/// The state, and who waits for it to change.
pub(super) struct Health {
    state: watch::Sender<State>,
    reopenings: watch::Sender<u64>,
    /// Whether the task that writes is asked to end.
    is_closing: AtomicBool,
}

impl Health {
    pub(super) fn new() -> Self {
        Self {
            state: watch::channel(State::Well).0,
            reopenings: watch::channel(0).0,
            is_closing: AtomicBool::new(false),
        }
    }

    /// Refuses a write while none are taken.
    pub(super) fn admit(&self) -> Result<(), StoreError> {
        match &*self.state.borrow() {
            State::Well => Ok(()),
            State::Failed(cause) => Err(StoreError::ReadOnly { cause: cause.clone() }),
            State::Ended => {
                Err(StoreError::ReadOnly { cause: "its writer ended unasked, start the server again".to_owned() })
            }
            State::Closed => Err(StoreError::Closed),
        }
    }

    /// Takes no more writes, if a fault means that the next one fails, too.
    pub(super) fn note(&self, fault: &Fault) {
        match fault {
            Fault::Unavailable(cause) => self.fail(cause),
            Fault::Locked
            | Fault::Busy(_)
            | Fault::Conflict(_)
            | Fault::Changed
            | Fault::Failed(_)
            | Fault::Refused(_) => {}
        }
    }

    pub(super) fn fail(&self, cause: &str) {
        let changed = self.state.send_if_modified(|state| {
            let is_well = *state == State::Well;
            if is_well {
                *state = State::Failed(cause.to_owned());
            }
            is_well
        });
        if changed {
            tracing::error!(cause, "store refuses writes until PostgreSQL takes them again");
        }
    }

    /// Takes writes again.
    pub(super) fn heal(&self) {
        let changed = self.state.send_if_modified(|state| {
            let has_failed = matches!(state, State::Failed(_));
            if has_failed {
                *state = State::Well;
            }
            has_failed
        });
        if changed {
            self.reopenings.send_modify(|count| *count += 1);
            tracing::info!("the store takes writes again");
        }
    }

    /// Notes that the task that writes is asked to end: its end closes the store.
    pub(super) fn begin_close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Takes no more writes, because the task that writes ended; does nothing if the store was closed.
    pub(super) fn end(&self) {
        if self.is_closing.load(Ordering::SeqCst) {
            return self.close();
        }
        self.state.send_if_modified(|state| {
            let changes = *state != State::Closed;
            if changes {
                *state = State::Ended;
            }
            changes
        });
    }

    pub(super) fn close(&self) {
        self.state.send_replace(State::Closed);
    }

    pub(super) fn reopenings(&self) -> watch::Receiver<u64> {
        self.reopenings.subscribe()
    }

    /// Waits for a state; for ever if it does not come.
    pub(super) async fn until(&self, is_wanted: impl Fn(&State) -> bool + Send) {
        let mut state = self.state.subscribe();
        if state.wait_for(|state| is_wanted(state)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
