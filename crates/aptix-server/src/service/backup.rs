//! A backup on its way out: one at a time, in pieces, as fast as its receiver takes them.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::wire::v1;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use super::status::status;
use crate::dispatcher::refusal::{Refusal, exhausted, shutting_down};
use crate::metrics;
use crate::store::Store;

/// Backups at one time: each keeps what the store would otherwise remove.
const BACKUPS: usize = 1;

/// How long one waits for another one, whose receiver may have gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of one answer.
const PIECE_BYTES: usize = 256 << 10;

/// Pieces that wait for their receiver.
const PIECES: usize = 4;

/// The pieces of a backup, and why it ended before its end.
pub(super) type Pieces = Pin<Box<dyn Stream<Item = Result<v1::BackupResponse, Status>> + Send>>;

/// Makes backups of a store.
pub struct Backups {
    store: Arc<dyn Store>,
    places: Arc<Semaphore>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Backups {
    /// Makes backups of this store until `closing` is cancelled.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, closing: CancellationToken) -> Self {
        Self { store, places: Arc::new(Semaphore::new(BACKUPS)), closing, tasks: TaskTracker::new() }
    }

    /// Begins a backup, once another one has ended.
    ///
    /// # Errors
    /// When one is under way and goes on.
    pub(super) async fn begin(&self) -> Result<Pieces, Refusal> {
        let place = timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.ok().and_then(Result::ok).ok_or_else(|| Refusal::denied(exhausted("backups", BACKUPS)))?;
        let (pieces, stream) = mpsc::channel(PIECES);
        let backup = back_up(Arc::clone(&self.store), pieces, self.closing.clone(), place);
        self.tasks.spawn(backup);
        Ok(Box::pin(ReceiverStream::new(stream)))
    }
}

type Sender = mpsc::Sender<Result<v1::BackupResponse, Status>>;

/// Makes a backup until it ends, its receiver goes, or the store has to be closed.
async fn back_up(store: Arc<dyn Store>, pieces: Sender, closing: CancellationToken, place: OwnedSemaphorePermit) {
    let cut = CancellationToken::new();
    let _cut = cut.clone().drop_guard();
    let out = Outlet { pieces: pieces.clone(), waiting: Vec::new(), cut, runtime: Handle::current() };
    let refused = tokio::select! {
        made = store.back_up(Box::new(out)) => match made {
            Ok(summary) => {
                metrics::backed_up();
                tracing::info!(bytes = summary.bytes, "backup made");
                None
            }
            Err(_) if pieces.is_closed() => {
                tracing::warn!("a backup was broken off by its receiver");
                None
            }
            Err(error) => Some(error.into()),
        },
        // A data directory that failed is opened again, once nothing reads it. A database is read on.
        () = store.failed(), if !store.is_shared() => Some(Refusal::denied(shutting_down())),
        () = closing.cancelled() => Some(Refusal::denied(shutting_down())),
    };
    if let Some(refused) = refused {
        // Where there is no receiver any more, nothing is to be sent.
        let _ = pieces.send(Err(status(refused))).await;
    }
    drop(place);
}

/// Where the store writes a backup, on a thread that may wait.
struct Outlet {
    pieces: Sender,
    waiting: Vec<u8>,
    cut: CancellationToken,
    runtime: Handle,
}

impl Outlet {
    fn send(&mut self) -> io::Result<()> {
        let piece = v1::BackupResponse { data: std::mem::take(&mut self.waiting).into() };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.cut.cancelled() => Err(io::Error::other("it was broken off")),
                sent = self.pieces.send(Ok(piece)) => sent.map_err(|_| io::ErrorKind::BrokenPipe.into()),
            }
        })
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES.saturating_sub(self.waiting.len()));
        self.waiting.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
        if self.waiting.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() { Ok(()) } else { self.send() }
    }
}
