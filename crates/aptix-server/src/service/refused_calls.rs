//! The log of calls that are refused because of who calls: so many a second at most, and without what the caller sent as a token.

use aptix_model::failure::Failure;

use crate::caller::Peer;
use crate::identity::Principal;
use crate::log_limit::LogLimit;

/// Logs refused calls.
#[derive(Debug, Default)]
pub(super) struct RefusedCalls(LogLimit);

impl RefusedCalls {
    /// Logs that a method is refused to a caller, whose token is named if it has one that is of use.
    pub(super) fn log(&self, peer: &Peer, caller: Option<&Principal>, method: &str, failure: &Failure) {
        let Some(unlogged) = self.0.count() else { return };
        let token = caller.and_then(Principal::name).map(tracing::field::display);
        // A method that there is not may have any name.
        let method: String = method.chars().take(128).collect();
        tracing::warn!(caller = ?peer.caller, token, ?method, reason = failure.reason.code(), unlogged, "a call was refused");
    }
}
