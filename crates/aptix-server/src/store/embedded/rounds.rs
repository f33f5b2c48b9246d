//! Flushes the marks of commits while the journal is flushed, on a thread of its own: one round, two flushes at once.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::marks::{Flushed, Round, Writer};
use super::record::Head;
use crate::store::StoreError;

/// After so long without a commit, the note that the last one was flushed is flushed itself.
const QUIET: Duration = Duration::from_millis(200);

/// The other side of the thread.
#[derive(Debug)]
pub(super) struct Rounds {
    begin: Option<SyncSender<Round>>,
    ended: Receiver<Result<(), StoreError>>,
    flushed: Flushed,
    thread: Option<JoinHandle<()>>,
}

impl Rounds {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn start(marks: Writer) -> Result<Self, StoreError> {
        let flushed = marks.flushed()?;
        let (begin, rounds) = sync_channel(1);
        let (end, ended) = sync_channel(1);
        let thread = std::thread::Builder::new().name("marks".to_owned()).spawn(move || run(marks, &rounds, &end));
        let thread = thread
            .map_err(|error| StoreError::Failed { action: "start its writer of marks", cause: error.to_string() })?;
        Ok(Self { begin: Some(begin), ended, flushed, thread: Some(thread) })
    }

    /// Flushes the mark of a commit while `commit` is done, and notes that both were.
    ///
    /// # Errors
    /// When either fails.
    pub(super) fn during(
        &self,
        round: Round,
        commit: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let head: Head = round.head;
        let gone = || StoreError::Failed { action: "write the high-water mark", cause: "its writer ended".to_owned() };
        self.begin.as_ref().ok_or_else(gone)?.send(round).map_err(|_| gone())?;
        let committed = commit();
        self.ended.recv().map_err(|_| gone())??;
        committed?;
        self.flushed.note(head)
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.begin.take();
        if let Some(thread) = self.thread.take() {
            // It ends once there are no more rounds; whether it flushed its last note makes no difference to what was answered.
            let _ = thread.join();
        }
    }
}

fn run(mut marks: Writer, rounds: &Receiver<Round>, end: &SyncSender<Result<(), StoreError>>) {
    let mut noted = false;
    loop {
        let round = if noted { rounds.recv_timeout(QUIET) } else { rounds.recv().map_err(RecvTimeoutError::from) };
        match round {
            Ok(round) => {
                noted = true;
                if end.send(marks.write(&round)).is_err() {
                    return;
                }
            }
            Err(error) => {
                if let Err(error) = marks.flush() {
                    tracing::warn!(%error, "the note of the last commit is not flushed");
                }
                noted = false;
                if error == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}
