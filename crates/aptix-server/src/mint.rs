//! The one place where the server reads the clock and makes up ids. What decides by the time reads
//! a `SteadyClock`.

use std::time::{Duration, SystemTime};

use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use uuid::{NoContext, Timestamp};

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

/// The least time over which callers are spread that may call again at the same time.
const LEAST_SPREAD: Duration = Duration::from_millis(100);

/// A time between this one and twice as much, at random: many callers that wait for the same thing do not come back at once. Short
/// times are spread over 100 ms.
#[must_use]
pub fn spread(least: Duration) -> Duration {
    let mut random = [0; 4];
    // Without random bytes they come back at once.
    let _ = getrandom::fill(&mut random);
    let part = f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX);
    least.saturating_add(least.max(LEAST_SPREAD).mul_f64(part))
}

/// A new `UUIDv7` of this time.
#[must_use]
pub fn uuid_at(time: UnixMillis) -> Uuid {
    let (seconds, millis) = (time.0 / 1000, time.0 % 1000);
    let nanos = u32::try_from(millis).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos))
}

/// A new `UUIDv7`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the edge of the program")]
pub fn uuid() -> Uuid {
    Uuid::now_v7()
}
