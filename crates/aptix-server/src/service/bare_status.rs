//! Statuses that are made below the services, by the gRPC library: each is given a reason of the catalogue, as `ErrorInfo`, and
//! the code of that reason.

use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::reason::{Detail, Reason};
use tonic::codegen::http::{HeaderMap, HeaderValue};
use tonic::{Code, Status};

use super::status::status;
use crate::dispatcher::refusal::Refusal;

/// When a status was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Made {
    /// Before the call was worked on: the library could not read the caller's message.
    BeforeWork,
    /// After some of the answer was sent.
    AfterWork,
}

/// Gives the status in these headers or trailers a reason, if there is a status that has none.
pub(super) fn complete(headers: &mut HeaderMap, made: Made) {
    if !headers.contains_key(Status::GRPC_STATUS) || headers.contains_key(Status::GRPC_STATUS_DETAILS) {
        return;
    }
    let Some(bare) = Status::from_header_map(headers).filter(|status| status.code() != Code::Ok) else { return };
    for name in [Status::GRPC_STATUS, Status::GRPC_MESSAGE] {
        headers.remove(name);
    }
    // A status whose message is not a header would leave none at all.
    if reasoned(&bare, made).add_header(headers).is_err() {
        headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("13"));
    }
}

/// The status of a message that the library could not read.
pub(super) fn undecoded(bare: &Status) -> Failure {
    match bare.code() {
        Code::OutOfRange => {
            let message = format!("the message is larger than {MESSAGE_BYTES} bytes, which is the most");
            Failure::new(Reason::TooLarge, message).detail(Detail::Message).hint("send less in one message")
        }
        Code::Unimplemented => unimplemented(bare),
        _ => {
            Failure::new(Reason::InvalidRequest, format!("the bytes are no message of this method: {}", bare.message()))
                .hint("send a message as the method's description has it, whole and behind its length")
        }
    }
}

fn unimplemented(bare: &Status) -> Failure {
    let message = if bare.message().is_empty() { "the server has no such method" } else { bare.message() };
    Failure::new(Reason::Unimplemented, message).hint("call a method that there is, and compress no message")
}

fn reasoned(bare: &Status, made: Made) -> Status {
    let reason = match bare.code() {
        Code::Internal | Code::InvalidArgument | Code::OutOfRange if made == Made::BeforeWork => {
            return status(Refusal::denied(undecoded(bare)));
        }
        Code::Unimplemented => return status(Refusal::denied(unimplemented(bare))),
        Code::InvalidArgument => Reason::InvalidRequest,
        Code::OutOfRange => Reason::TooLarge,
        Code::Cancelled => Reason::Interrupted,
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        Code::NotFound => Reason::NotFound,
        Code::AlreadyExists => Reason::AlreadyExists,
        Code::PermissionDenied => Reason::PermissionDenied,
        Code::Unauthenticated => Reason::Unauthenticated,
        Code::FailedPrecondition | Code::Aborted => Reason::InvalidState,
        Code::ResourceExhausted => Reason::ResourceExhausted,
        Code::Unavailable => Reason::Unavailable,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Reason::Internal,
    };
    status(Refusal::denied(Failure::new(reason, bare.message())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_types::StatusExt as _;

    fn completed(bare: &Status, made: Made) -> Status {
        let mut headers = HeaderMap::new();
        bare.add_header(&mut headers).unwrap();
        complete(&mut headers, made);
        assert_eq!(headers.get_all(Status::GRPC_STATUS).iter().count(), 1);
        Status::from_header_map(&headers).unwrap()
    }

    #[test]
    fn every_bare_status_gets_a_reason_and_the_code_of_that() {
        for code in (1..=16).map(Code::from_i32) {
            for made in [Made::BeforeWork, Made::AfterWork] {
                let status = completed(&Status::new(code, "b\u{e4}d\n"), made);
                let info = status.get_details_error_info().unwrap();
                let reason = Reason::from_code(&info.reason).unwrap();
                let expected = super::super::status::status(Refusal::denied(Failure::new(reason, "x"))).code();
                assert_eq!(status.code(), expected, "{code:?} {made:?}");
                assert_eq!(info.domain, "aptix.dev");
            }
        }
    }

    #[test]
    fn the_reason_of_an_unreadable_message_is_the_callers() {
        let told = |code, made| {
            let status = completed(&Status::new(code, "x"), made);
            (status.code(), status.get_details_error_info().unwrap().reason)
        };
        let invalid = (Code::InvalidArgument, "INVALID_REQUEST".to_owned());
        assert_eq!(told(Code::Internal, Made::BeforeWork), invalid);
        assert_eq!(told(Code::Internal, Made::AfterWork), (Code::Internal, "INTERNAL".to_owned()));
        assert_eq!(told(Code::OutOfRange, Made::BeforeWork), (Code::InvalidArgument, "TOO_LARGE".to_owned()));
    }

    #[test]
    fn a_status_with_details_and_one_that_is_no_refusal_stay() {
        let whole = status(Refusal::denied(Failure::new(Reason::Compacted, "x")));
        let kept = completed(&whole, Made::BeforeWork);
        assert_eq!((kept.code(), kept.details()), (whole.code(), whole.details()));
        let mut ok = HeaderMap::new();
        Status::ok("").add_header(&mut ok).unwrap();
        let before = ok.clone();
        complete(&mut ok, Made::AfterWork);
        assert_eq!(ok, before);
        let mut none = HeaderMap::new();
        complete(&mut none, Made::BeforeWork);
        assert!(none.is_empty());
    }
}
