//! What a call's headers ask for: whether it is gRPC at all, and how long its caller waits.

use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode, header};

use super::status::status;
use crate::dispatcher::refusal::Refusal;

/// The header with the time that a caller gives its call.
const TIMEOUT: &str = "grpc-timeout";

/// How long before a caller's time is over its call is ended at most: the caller then has the reason instead of none.
const LEAD: Duration = Duration::from_millis(5);

/// How long before a caller's time is over a call that waits stops waiting at most: its answer has still to be made and sent.
const MARGIN: Duration = Duration::from_secs(1);

/// Refuses a request that is no call: another method than POST, or another content than gRPC. The answer is one of HTTP and of gRPC.
pub(super) fn check(request: &Request<Body>) -> Result<(), Response<Body>> {
    if request.method() != Method::POST {
        let failure =
            Failure::new(Reason::InvalidRequest, "the HTTP method is not POST").hint("call with a gRPC client");
        return Err(refused(StatusCode::METHOD_NOT_ALLOWED, failure));
    }
    let content = request.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    let essence = content.map(|value| value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii());
    match essence {
        Some(b"application/grpc" | b"application/grpc+proto") => Ok(()),
        _ => {
            let failure = Failure::new(Reason::InvalidRequest, "the content type is not application/grpc");
            Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure.hint("call with a gRPC client")))
        }
    }
}

/// A refusal in the words of HTTP and of gRPC.
pub(super) fn refused(http: StatusCode, failure: Failure) -> Response<Body> {
    let mut answer = status(Refusal::denied(failure)).into_http();
    *answer.status_mut() = http;
    answer
}

/// The time that a caller gives its call, if it names one. One that cannot be read counts as none.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    read(headers.get(TIMEOUT)?.as_bytes())
}

/// Reads at most eight digits and a unit.
fn read(value: &[u8]) -> Option<Duration> {
    let (unit, number) = value.split_last()?;
    if number.len() > 8 || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// When a caller stops waiting for its call; never, if it named no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline of a call that begins now. It is a little earlier than its caller asks for.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let at = timeout(headers).and_then(|time| Instant::now().checked_add(time.saturating_sub(LEAD.min(time / 4))));
        Self(at)
    }

    /// Waits for work until the deadline; then drops it.
    ///
    /// # Errors
    /// [`Over`] when the deadline came first.
    pub(super) async fn bound<F: Future>(self, work: F) -> Result<F::Output, Over> {
        match self.0 {
            None => Ok(work.await),
            Some(at) => timeout_at(at, work).await.map_err(|_| Over),
        }
    }

    /// When a call that waits stops waiting, so that its answer is there before the deadline: a quarter of the time that is left
    /// before, at most [`MARGIN`]. `None` if there is no deadline.
    pub(super) fn with_margin(self) -> Option<Instant> {
        let now = Instant::now();
        let left = self.0?.saturating_duration_since(now);
        Some(now + (left - MARGIN.min(left / 4)))
    }

    /// Ends when the deadline comes; `None` if there is none.
    pub(super) fn sleep(self) -> Option<Sleep> {
        self.0.map(sleep_until)
    }
}

/// The time that a caller gave its call is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Over;

/// What a caller is told whose time is over.
pub(super) fn over() -> Failure {
    Failure::new(Reason::DeadlineExceeded, "the time that the caller gave the call is over")
        .hint("ask what became of it, then call again with more time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_time_is_read_as_the_protocol_writes_it() {
        let read = |value: &str| read(value.as_bytes());
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(read("99999999m"), Some(Duration::from_millis(99_999_999)));
        assert_eq!(read("15u"), Some(Duration::from_micros(15)));
        for wrong in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1 S"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_never_later_than_the_callers() {
        let given = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::HeaderName::from_static(TIMEOUT), value.parse().unwrap())]);
            Deadline::of(&headers)
        };
        for (value, millis) in [("0n", 0), ("1m", 1), ("100m", 95), ("1S", 995)] {
            let begun = Instant::now();
            assert_eq!(given(value).bound(std::future::pending::<()>()).await, Err(Over));
            assert!(begun.elapsed() <= Duration::from_millis(millis + 1), "{value}: {:?}", begun.elapsed());
        }
        for (value, millis) in [("0n", 0), ("40m", 26), ("60S", 58_995)] {
            let waits = given(value).with_margin().unwrap().duration_since(Instant::now());
            assert_eq!(waits.as_millis(), millis, "{value}");
        }
        assert_eq!(Deadline::of(&HeaderMap::new()).with_margin(), None);
        assert_eq!(given("99999999H").bound(async { 1 }).await, Ok(1));
        assert_eq!(Deadline::of(&HeaderMap::new()).bound(async { 1 }).await, Ok(1));
    }
}
