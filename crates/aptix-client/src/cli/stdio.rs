//! Standard input and output as streams, carried by threads of their own. No work on files is ever done by these, so that the wall
//! around the roots holds for all that work on files although it is raised after them.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::net::unix::pipe;

/// How long the last answers may take to be read once nothing is served any more.
const LAST: Duration = Duration::from_secs(5);

/// Bytes that are handed on at once.
const PIECE: usize = 64 << 10;

/// Standard input and output.
pub(super) struct Stdio {
    pub(super) input: pipe::Receiver,
    pub(super) output: pipe::Sender,
    pub(super) written: Written,
}

/// Whether all that was sent to `output` is written.
pub(super) struct Written(Receiver<()>);

impl Written {
    /// Waits a while for it, once `output` is dropped.
    pub(super) fn wait(self) {
        _ = self.0.recv_timeout(LAST);
    }
}

/// Begins to carry them.
///
/// # Errors
/// When the system gives no pipe or no thread.
pub(super) fn open() -> io::Result<Stdio> {
    let (input, mut to_input) = io::pipe()?;
    let (mut from_output, output) = io::pipe()?;
    let (done, written) = sync_channel(1);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let carried = carry(&mut io::stdin().lock(), &mut to_input);
        // Once nothing is served any more, what still comes is left.
        if let Err(error) = carried
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            tracing::error!(%error, "stdin cannot be read");
        }
    })?;
    thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        let carried = carry(&mut from_output, &mut io::stdout().lock());
        _ = done.send(());
        carried
    })?;
    Ok(Stdio {
        input: pipe::Receiver::from_owned_fd(input.into())?,
        output: pipe::Sender::from_owned_fd(output.into())?,
        written: Written(written),
    })
}

/// Hands on what comes as it comes, up to the end. `io::copy` may leave that to the kernel, which holds back what goes to a socket.
fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let piece = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => buffer.get(..bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(piece)?;
        to.flush()?;
    }
}
