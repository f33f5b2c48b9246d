//! Waiting: until something holds, and for the random moment at which something is broken.

use std::time::{Duration, Instant};

use anyhow::Result;

/// Waits until something holds, and looks again after each step; whether it held in time.
pub(crate) fn until(within: Duration, step: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<bool> {
    let due = Instant::now() + within;
    loop {
        if holds()? {
            return Ok(true);
        }
        if Instant::now() >= due {
            return Ok(false);
        }
        std::thread::sleep(step);
    }
}

/// Lets time pass: when something is killed, cut off or saved is part of the case. Nothing is waited for in this way.
pub(crate) fn pass(time: Duration) {
    std::thread::sleep(time);
}
