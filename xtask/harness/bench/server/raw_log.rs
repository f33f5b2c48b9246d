//! The least that keeping something takes: a log to which one thread appends everything that waits, with one flush for each group.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

/// As many as the server's store takes at once.
const GROUP: usize = 256;

/// What is to be appended, and who waits for it.
type Entry = (Vec<u8>, oneshot::Sender<()>);

/// The way to the thread, which ends with the last of these.
#[derive(Clone)]
pub(crate) struct RawLog(mpsc::Sender<Entry>);

impl RawLog {
    /// Makes a log.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)?;
        let (sender, entries) = mpsc::channel(GROUP);
        std::thread::Builder::new().name("raw log".to_owned()).spawn(move || work(file, entries))?;
        Ok(Self(sender))
    }

    /// Appends an entry, and waits until it is durable.
    pub(crate) async fn append(&self, entry: Vec<u8>) -> Result<()> {
        let (sender, written) = oneshot::channel();
        self.0.send((entry, sender)).await.context("the log ended")?;
        written.await.context("the log cannot be written")
    }
}

/// Ends at the first failure: those who wait then learn of it.
fn work(mut file: File, mut entries: mpsc::Receiver<Entry>) {
    let mut group = Vec::new();
    while entries.blocking_recv_many(&mut group, GROUP) > 0 {
        let bytes: Vec<u8> = group.iter().flat_map(|(entry, _)| entry).copied().collect();
        if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        for (_, written) in group.drain(..) {
            // Its writer may have gone.
            let _ = written.send(());
        }
    }
}
