//! The one place where the server reads the clock and makes up ids. Nothing depends on the clock going forward.

use std::time::SystemTime;

use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;

/// The time of day, for people to read.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the edge of the program")]
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// 32 random bytes.
///
/// # Errors
/// When the system gives no random bytes.
pub fn secret() -> Result<[u8; 32], getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A new `UUIDv7`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the edge of the program")]
pub fn uuid() -> Uuid {
    Uuid::now_v7()
}
