//! Reads open files, whatever signal interrupts it.

use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};

use crate::workspace::fs::errno;

/// Reads from an offset until the buffer is full or the file ends; returns the number of bytes.
pub(crate) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| rustix::io::pread(file, &mut *rest, at + count as u64))? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

/// Reads what is left of a file, at most so many bytes.
pub(crate) fn read_rest(file: OwnedFd, most: u64) -> Result<Vec<u8>, Errno> {
    let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size.min(most)).unwrap_or(usize::MAX)).map_err(|_| Errno::IO)?;
    let read = std::fs::File::from(file).take(most).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| errno::of(&error))
}
