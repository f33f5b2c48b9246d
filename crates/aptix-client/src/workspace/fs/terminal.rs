//! The terminal of this process, read without waiting: what was typed before a moment is kept apart from what came after.

use std::fs::File;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

/// The terminal that this process was started on.
#[derive(Debug)]
pub(crate) struct Terminal(File);

/// What a look at the terminal found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// End of input, by Ctrl-D. More may be typed afterwards.
    End,
    /// The terminal is closed.
    Gone,
}

impl Terminal {
    /// The terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        File::open("/dev/tty").ok().map(Self)
    }

    /// Waits until something can be read. Reads nothing.
    pub(crate) fn await_input(&self) {
        // A wait that fails is over: reading reports why.
        let _ = self.readable(None);
    }

    /// Reads what has been typed, if anything has.
    pub(crate) fn read_input(&self, buffer: &mut [u8]) -> Input {
        if !self.readable(Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(true) {
            return Input::Nothing;
        }
        match rustix::io::read(&self.0, buffer) {
            Ok(0) if self.is_gone() => Input::Gone,
            Ok(0) => Input::End,
            Ok(count) => Input::Bytes(count),
            Err(Errno::INTR | Errno::AGAIN) => Input::Nothing,
            Err(_) => Input::Gone,
        }
    }

    /// Throws away what was typed and not read yet.
    pub(crate) fn discard_input(&self) {
        // Where it fails the terminal is gone, and no answer will come either.
        let _ = tcflush(&self.0, QueueSelector::IFlush);
    }

    /// Its rows and columns; 0 where it does not report them.
    pub(crate) fn size(&self) -> (u16, u16) {
        tcgetwinsize(&self.0).map_or((0, 0), |size| (size.ws_row, size.ws_col))
    }

    /// Whether the other end is closed.
    fn is_gone(&self) -> bool {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let hung_up = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        poll(&mut watched, Some(&now)).is_err() || watched.iter().any(|watched| watched.revents().intersects(hung_up))
    }

    fn readable(&self, wait: Option<&Timespec>) -> Result<bool, Errno> {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut watched, wait) {
            Err(Errno::INTR) => Ok(false),
            outcome => outcome.map(|ready| ready > 0),
        }
    }
}

/// What is typed on the terminal of stdin is not shown, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hidden(Option<Termios>);

impl Hidden {
    /// Begins, as far as stdin is a terminal.
    pub(crate) fn input() -> Self {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            // Where the terminal refuses, what is typed is seen.
            let _ = tcsetattr(&stdin, OptionalActions::Flush, &hidden);
        }
        Self(before)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
