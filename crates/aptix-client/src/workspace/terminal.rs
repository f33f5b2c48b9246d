//! The terminal on stdin, read without waiting: so that what was typed before a moment can be told from what came after.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

/// What a look at the terminal found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// Nobody will ever type again.
    End,
}

/// Waits until something can be read. Reads nothing.
pub(crate) fn await_input() {
    // A wait that fails is one that is over: reading says why.
    let _ = readable(None);
}

/// Reads what has been typed, if anything has.
pub(crate) fn read_input(buffer: &mut [u8]) -> Input {
    if !readable(Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(true) {
        return Input::Nothing;
    }
    match rustix::io::read(std::io::stdin(), buffer) {
        Ok(0) => Input::End,
        Ok(count) => Input::Bytes(count),
        Err(Errno::INTR | Errno::AGAIN) => Input::Nothing,
        Err(_) => Input::End,
    }
}

/// Throws away what was typed and not read yet.
pub(crate) fn discard_input() {
    // Where it fails there is no terminal, and no answer will come either.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

fn readable(wait: Option<&Timespec>) -> Result<bool, Errno> {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut watched, wait) {
        Err(Errno::INTR) => Ok(false),
        outcome => outcome.map(|ready| ready > 0),
    }
}
