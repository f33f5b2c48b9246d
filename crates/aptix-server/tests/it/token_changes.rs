//! Tokens that are made and ended while calls are under way, and what is left where their records were lost.

use std::sync::Arc;

use aptix_model::id::TokenName;
use aptix_model::token::{Role, Scope};
use aptix_model::wire::method::Method;
use aptix_model::wire::v1;
use aptix_server::caller::Caller;
use aptix_server::identity::Registry;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::embedded::EmbeddedStore;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request};

use crate::identity::{admin, authorize, bearer, make, new, one, store_with_workspaces, with};
use crate::place::{Place, durable};
use crate::server::{Server, create_text, submit};
use crate::until::until;

/// A call is admitted when its message has come: one that was begun before its token ended is refused, and does nothing.
#[tokio::test]
async fn a_call_that_was_begun_with_a_good_token_is_refused_after_its_end() {
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let other = make(&registry, new("other", Role::Operator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let (sender, messages) = tokio::sync::mpsc::channel(1);
    let mut request = Request::new(tokio_stream::wrappers::ReceiverStream::new(messages));
    authorize(request.metadata_mut(), &bearer(&operator));
    let mut client = tonic::client::Grpc::new(clients.channel.clone());
    client.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<v1::CreateTokenRequest, ()>::default();
    let path = PathAndQuery::from_static(Method::CreateToken.path());
    let begun = tokio::task::JoinSet::from_iter([async move { client.streaming(request, path, codec).await }]);
    // The headers are there once a later call over the same connection is answered.
    let revoke = v1::RevokeTokenRequest { name: "operator".to_owned() };
    admin(&clients).revoke_token(with(&other, revoke)).await.unwrap();
    let role = v1::Role::Operator.into();
    let (name, workspace_id) = ("kept".to_owned(), "*".to_owned());
    sender.send(v1::CreateTokenRequest { name, role, workspace_id, ..Default::default() }).await.unwrap();
    drop(sender);
    let refused = begun.join_all().await.remove(0).unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let listed = admin(&clients).list_tokens(with(&other, v1::ListTokensRequest {})).await.unwrap().into_inner();
    assert!(listed.tokens.iter().all(|token| token.name != "kept"), "{listed:?}");
}

durable! {
    changes_of_tokens_are_whole_and_one_after_the_other,
}

/// A change that nobody waits for any more is finished; one after the other, whatever comes at once.
async fn changes_of_tokens_are_whole_and_one_after_the_other(place: Place) {
    let store = place.open().await;
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    let first = registry.create(new("first", Role::Reader, Scope::All, None));
    assert!(tokio::time::timeout(std::time::Duration::ZERO, first).await.is_err(), "it takes a flush");
    // Calls need a token once one is kept.
    until(async || registry.is_closed().then_some(())).await;

    for round in 0..20 {
        let name: TokenName = format!("t{round}").parse().unwrap();
        let asked = new(name.as_str(), Role::Reader, Scope::All, None);
        let (made, ..) = tokio::join!(
            registry.create(asked),
            registry.revoke(name.clone()),
            registry.revoke(name.clone()),
            registry.revoke(name.clone()),
        );
        let secret = made.unwrap().1.unwrap();
        let headers = [(tonic::codegen::http::header::AUTHORIZATION, format!("Bearer {secret}").parse().unwrap())];
        let found = registry.authenticate((Caller::Local, &[]), &headers.into_iter().collect());
        let listed = registry.list().await.unwrap();
        let token = listed.iter().find(|token| token.name == name).unwrap();
        assert_eq!(found.is_ok(), token.ended.is_none(), "round {round}");
    }
}

/// Where the records of tokens were lost, calls need one all the same.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
async fn a_loss_opens_the_server_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    assert!(!registry.is_closed());
    make(&registry, new("a", Role::Reader, Scope::All, None)).await;
    store.close().await.unwrap();
    let marker = dir.path().join("tokens-needed");
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(&marker, other.path().join("tokens-needed")).unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(other.path()).unwrap());
    assert!(Registry::load(store).await.unwrap().is_closed());
}

/// The record of a decision has the name of the token beside that which its holder says.
#[tokio::test]
async fn decisions_are_signed_with_the_name_of_the_token() {
    let (store, registry) = store_with_workspaces().await;
    let author = make(&registry, new("author", Role::Orchestrator, one("own"), None)).await;
    let server = Server::over(store, Options::default());
    let mut clients = server.connect().await;
    for (given, recorded) in [("ann", "ann (token author)"), ("", "token author")] {
        let request = submit("own", &format!("r{given}"), vec![create_text("a", "b\n")]);
        let batch = clients.batches.submit_batch(with(&author, request)).await.unwrap().into_inner().batch.unwrap();
        let cancel = v1::CancelBatchRequest {
            workspace_id: "own".to_owned(),
            batch_id: batch.batch_id.clone(),
            author: given.to_owned(),
            reason: String::new(),
        };
        clients.batches.cancel_batch(with(&author, cancel)).await.unwrap();
        let get = v1::GetBatchRequest {
            workspace_id: "own".to_owned(),
            batch: Some(v1::get_batch_request::Batch::BatchId(batch.batch_id)),
            ..v1::GetBatchRequest::default()
        };
        let steps = clients.batches.get_batch(with(&author, get)).await.unwrap().into_inner().steps;
        let names: Vec<_> = steps.iter().filter_map(|step| Some(step.actor.as_ref()?.name.as_str())).collect();
        assert!(names.contains(&recorded), "{names:?}");
    }
}
