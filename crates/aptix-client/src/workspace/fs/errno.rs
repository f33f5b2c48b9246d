//! The system's error numbers in the catalogue's words.

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::io::Errno;

/// What to do about a root that takes no batch.
pub(crate) const OPERATOR: &str = "a person has to look at the files that the record names, and remove the record; this root takes no batch until then";

/// The error number of a system error.
pub(crate) fn of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// `None` where the system finds nothing of the name.
pub(crate) fn optional<T>(outcome: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The finer word for an error number, where there is one.
#[must_use]
pub const fn detail(errno: Errno) -> Option<Detail> {
    match errno {
        Errno::NOSPC => Some(Detail::NoSpace),
        Errno::DQUOT => Some(Detail::Quota),
        Errno::ROFS => Some(Detail::ReadOnly),
        Errno::ACCESS | Errno::PERM => Some(Detail::Permission),
        Errno::MFILE | Errno::NFILE => Some(Detail::Fds),
        Errno::IO => Some(Detail::Io),
        _ => None,
    }
}

/// What a person or the author can do about a finer word.
const fn hint(detail: Option<Detail>) -> &'static str {
    match detail {
        Some(Detail::NoSpace | Detail::Quota) => "make room on the device, then send the batch again",
        Some(Detail::ReadOnly) => "the file system is mounted read-only; a person has to change that",
        Some(Detail::Permission) => "a person has to give access to the file and its directory",
        Some(Detail::Fds) => "send the batch again once other programs have closed some files",
        _ => "look at the system's log before sending the batch again",
    }
}

/// A failure of the system to read.
#[must_use]
pub fn read_failure(errno: Errno, message: String) -> Failure {
    failure(Reason::ReadFailed, errno, message)
}

/// A failure of the system to write.
#[must_use]
pub fn write_failure(errno: Errno, message: String) -> Failure {
    failure(Reason::WriteFailed, errno, message)
}

fn failure(reason: Reason, errno: Errno, message: String) -> Failure {
    let detail = detail(errno);
    let reason = if detail == Some(Detail::Fds) { Reason::ResourceExhausted } else { reason };
    let failure = Failure::new(reason, message).hint(hint(detail));
    match detail {
        Some(detail) => failure.detail(detail),
        None => failure,
    }
}
