//! The record of every step has the name of the caller's token beside the name that the caller gave, over a restart.

use std::sync::Arc;

use aptix_model::token::Role;
use aptix_model::wire::v1;
use aptix_server::identity::Registry;
use aptix_server::options::Options;
use serde_json::json;

use crate::identity::{make, new, one, with};
use crate::place::{Place, durable};
use crate::server::{Clients, Server, connect_agent, create_text, failed, hello, next, submit};

/// The author of a batch, and the names of the actors of its steps.
async fn recorded(client: &mut Clients, token: &str, id: &str) -> (String, Vec<String>) {
    let get = v1::GetBatchRequest {
        workspace_id: "own".to_owned(),
        batch: Some(v1::get_batch_request::Batch::BatchId(id.to_owned())),
        ..v1::GetBatchRequest::default()
    };
    let answer = client.batches.get_batch(with(token, get)).await.unwrap().into_inner();
    let actors = answer.steps.into_iter().map(|step| step.actor.unwrap().name).collect();
    (answer.batch.unwrap().author.unwrap().name, actors)
}

fn mode(to: v1::SessionMode) -> v1::SetSessionModeRequest {
    v1::SetSessionModeRequest {
        workspace_id: "own".to_owned(),
        session_id: "s".to_owned(),
        owner: "ann".to_owned(),
        mode: to.into(),
        request_id: "m".to_owned(),
        wait: None,
    }
}

async fn changed_by(client: &mut Clients, token: &str) -> String {
    let request = v1::GetSessionRequest { workspace_id: "own".to_owned(), session_id: "s".to_owned() };
    let answer = client.sessions.get_session(with(token, request)).await.unwrap().into_inner();
    answer.session.unwrap().changed_by.unwrap().name
}

durable! {
    every_step_is_signed_with_the_name_of_the_token,
}

async fn every_step_is_signed_with_the_name_of_the_token(place: Place) {
    let store = place.open().await;
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    registry.create_workspace("own".parse().unwrap()).await.unwrap();
    let author = make(&registry, new("service", Role::Orchestrator, one("own"), None)).await;
    let agent = make(&registry, new("laptop", Role::Agent, one("own"), None)).await;
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut client = server.connect().await;
    let (_answers, mut feed) = connect_agent(&mut client.agent, with(&agent, hello("own", "desk"))).await.unwrap();
    let Some(v1::serve_response::Message::Lease(lease)) = next(&mut feed).await.unwrap().message else {
        panic!("the first message is the lease");
    };

    let sent = with(&author, submit("own", "r1", vec![create_text("a.txt", "")]));
    let submitted = client.batches.submit_batch(sent).await.unwrap().into_inner().batch.unwrap().batch_id;
    let call = v1::CallToolRequest {
        workspace_id: "own".to_owned(),
        tool: "workspace_create_file".to_owned(),
        arguments: json!({ "path": "b.txt", "content": "b" }).to_string().into_bytes().into(),
        request_id: "r2".to_owned(),
        wait: Some(prost_types::Duration::default()),
        ..v1::CallToolRequest::default()
    };
    let called = client.tools.call_tool(with(&author, call)).await.unwrap().into_inner().batch_id;
    let restricted = mode(v1::SessionMode::Restricted);
    client.sessions.set_session_mode(with(&author, restricted)).await.unwrap();

    for (id, decided_by) in [(&submitted, None), (&called, Some("rita"))] {
        let person = |name: &str| v1::Actor { kind: v1::ActorKind::Person.into(), name: name.to_owned() };
        let reported = v1::ReportBatchRequest {
            workspace_id: "own".to_owned(),
            batch_id: id.clone(),
            lease_epoch: lease.epoch,
            report: Some(failed("EXPECTED_MISMATCH")),
            lease_secret: lease.secret.clone(),
            decided_by: decided_by.map(person),
            ..v1::ReportBatchRequest::default()
        };
        client.agent.report_batch(with(&agent, reported)).await.unwrap();
    }
    drop((client, feed));
    server.stop().await.unwrap();
    drop((store, registry));

    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    let by = "token service".to_owned();
    let expected = (by.clone(), vec![by.clone(), "desk (token laptop)".to_owned()]);
    assert_eq!(recorded(&mut client, &author, &submitted).await, expected);
    let expected = (by.clone(), vec![by, "rita (token laptop)".to_owned()]);
    assert_eq!(recorded(&mut client, &author, &called).await, expected);
    assert_eq!(changed_by(&mut client, &author).await, "ann (token service)");
}
