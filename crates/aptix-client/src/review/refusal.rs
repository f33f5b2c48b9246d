//! Why the page is not answered as it asks.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::board::NotTaken;

/// Why a request is not answered as asked: the status, and why in words for the person.
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, [(CONTENT_TYPE, "text/plain; charset=utf-8")], self.1).into_response()
    }
}

impl From<NotTaken> for Refusal {
    fn from(error: NotTaken) -> Self {
        let status = match error {
            NotTaken::Ended(_) | NotTaken::Gone | NotTaken::Answered | NotTaken::Changed => StatusCode::CONFLICT,
            NotTaken::Whole | NotTaken::NoFile(_) => StatusCode::BAD_REQUEST,
        };
        Self(status, error.to_string())
    }
}
