//! Whether a call goes on: who makes it, which workspace it names, and what its token and that workspace may still use.

use std::sync::{Arc, PoisonError};

use aptix_model::failure::Failure;
use aptix_model::wire::method::Method;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::http::Request;

use super::admission::Admission;
use super::observed::CallFacts;
use super::scope;
use crate::caller::Peer;
use crate::dispatcher::refusal::{Refusal, full};
use crate::fleet::Fleet;
use crate::identity::{Principal, Registry, bearer};
use crate::quota::Limit;
use crate::ticket::{Asker, LongLived, StreamHeld};

/// Takes a long-lived call of the caller's, of its token's, and of the server's.
pub(super) fn long_lived(admission: &Admission, peer: &Peer) -> Result<LongLived, Refusal> {
    let of_token = peer.quota.take(Limit::Streams, 1)?;
    let too_many = |found| Refusal::denied(full("long-lived calls", found));
    let place = admission.long_lived.take(peer, 1).map_err(too_many)?;
    Ok(LongLived::new(place, of_token))
}

/// Whether a caller may make a call with this first message, once that has come, and whether the workspace that it names has room for
/// one more. A refusal because of who calls is logged.
pub(super) fn check(
    admission: &Admission,
    (peer, caller): (&Peer, &Principal),
    request: &Request<Body>,
    stream: Option<StreamHeld>,
) -> impl Fn(&[u8]) -> Result<(), Refusal> + Send + use<> {
    let (registry, refused_calls) = (Arc::clone(&admission.registry), Arc::clone(&admission.refused_calls));
    let (peer, caller) = (peer.clone(), caller.clone());
    let called = Method::from_path(request.uri().path());
    let facts = request.extensions().get::<CallFacts>().cloned();
    let ticket = request.extensions().get::<Asker>().map(|asker| Arc::clone(&asker.ticket)).unwrap_or_default();
    move |message| {
        let workspace = scope::workspace(called, message);
        if let Some(facts) = &facts {
            facts.note_workspace(workspace.clone());
        }
        let checked = registry.check(&caller).and_then(|()| scope::check(&caller, called, message));
        checked.map_err(|refused| {
            refused_calls.log(&peer, Some(&caller), called.map(Method::path).unwrap_or_default(), &refused);
            Refusal::denied(refused)
        })?;
        let Some(workspace) = workspace else { return Ok(()) };
        peer.quota.call_in(&workspace)?;
        let bytes = peer.quota.take_in(&workspace, Limit::BytesInFlight, message.len())?;
        if let Some(ticket) = ticket.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            ticket.bytes.extend(bytes);
        }
        if let Some(stream) = &stream
            && let Some(held) = peer.quota.take_in(&workspace, Limit::Streams, 1)?
        {
            // A call has one first message.
            drop(stream.set(held));
        }
        Ok(())
    }
}

/// Who makes a call, if they may make it. Calls about the server's health need no token.
pub(super) fn identify(
    (registry, fleet): (&Registry, &Fleet),
    needs_token: bool,
    peer: &Peer,
    request: &Request<Body>,
) -> Result<Principal, (Failure, Option<Principal>)> {
    if !needs_token {
        return Ok(Principal::Anyone(CancellationToken::new()));
    }
    let names = peer.names.get().map(Vec::as_slice).unwrap_or_default();
    let is_member = bearer(request.headers()).is_some_and(|secret| fleet.is_member(secret.digest()));
    let caller = match is_member {
        true => Principal::Member,
        false => registry.authenticate((peer.caller, names), request.headers()).map_err(|refused| (refused, None))?,
    };
    match caller.check_method(Method::from_path(request.uri().path())) {
        Ok(()) => Ok(caller),
        Err(refused) => Err((refused, Some(caller))),
    }
}
