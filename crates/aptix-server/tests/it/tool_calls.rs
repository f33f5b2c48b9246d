//! `ToolService.CallTool`: what a model said is answered in the words of the tool, and what its service said is not.

use aptix_model::tools::catalogue::TOOLS;
use aptix_model::tools::result::tool_result::is_object;
use aptix_model::tools::tool::{Effect, Form};
use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use aptix_model::wire::v1::serve_response::Message;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::live_files::{Disk, Twist};
use crate::server::{Clients, SOON, Server, assert_refused, fields, hello};

fn request(tool: &str, arguments: impl AsRef<[u8]>) -> v1::CallToolRequest {
    v1::CallToolRequest {
        workspace_id: "w".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.as_ref().to_vec().into(),
        ..v1::CallToolRequest::default()
    }
}

async fn call(client: &mut Clients, request: v1::CallToolRequest) -> Result<v1::CallToolResponse, Status> {
    Ok(client.tools.call_tool(request).await?.into_inner())
}

/// What a model got wrong, without an agent: the refusal of the tool, in its own form.
#[tokio::test]
async fn what_the_model_did_wrong_is_an_answer() {
    let server = Server::start();
    let mut client = server.connect().await;
    let deep = format!("{{\"path\":{}", "[".repeat(100_000));
    for (tool, arguments, code, detail) in [
        ("read_fil", b"{}".as_slice(), "INVALID_REQUEST", "UNKNOWN_OPERATION"),
        ("", b"{}", "INVALID_REQUEST", "UNKNOWN_OPERATION"),
        ("append_file", b"{}", "INVALID_REQUEST", "UNKNOWN_OPERATION"),
        ("read_file", deep.as_bytes(), "INVALID_REQUEST", "DEPTH"),
        ("undo", deep.as_bytes(), "INVALID_REQUEST", "DEPTH"),
        ("workspace_write_patch", deep.as_bytes(), "INVALID_REQUEST", "DEPTH"),
        ("read_file", b"{\"path\":\"\xff\xfe\"}", "INVALID_REQUEST", "UNICODE"),
    ] {
        let answer = call(&mut client, request(tool, arguments)).await.unwrap();
        assert!(answer.is_error && is_object(&answer.structured) && answer.text.len() == 1, "{tool}: {answer:?}");
        let form = TOOLS.iter().find(|known| known.name == tool).map_or(Form::Plain, |tool| tool.form);
        let object: serde_json::Value = serde_json::from_str(&answer.structured).unwrap();
        let failed = if form == Form::InvokeResult { &object["successful"] } else { &object["success"] };
        assert_eq!(failed, false, "{object}");
        let error = &object["errors"][0];
        assert_eq!((&error["code"], &error["detail"]), (&code.into(), &detail.into()), "{tool}: {object}");
        assert!(error["hint"].is_string() || detail == "DEPTH" || detail == "UNICODE", "{object}");
    }
}

/// What the calling service got wrong is a status, and names each field.
#[tokio::test]
async fn what_the_service_did_wrong_is_a_status() {
    let server = Server::start();
    let mut client = server.connect().await;
    let long = "x".repeat(65 << 10);
    let bad = v1::CallToolRequest {
        workspace_id: "a/b".to_owned(),
        request_id: "two words".to_owned(),
        owner: ".hidden".to_owned(),
        wait: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
        origin: Some(v1::Origin { session_id: long, ..v1::Origin::default() }),
        ..request("read_file", "{}")
    };
    let refused = call(&mut client, bad).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(fields(&refused), ["workspaceId", "requestId", "owner", "wait", "origin.sessionId"]);
    let silent = call(&mut client, request("read_file", r#"{"path":"a"}"#)).await;
    assert_refused(silent, Code::Unavailable, "UNAVAILABLE", "NO_AGENT");
}

/// A call that reads is asked of the agent as the model wrote it; the answer is passed on.
#[tokio::test]
async fn a_call_that_reads_is_asked_of_the_agent() {
    let server = Server::start();
    let (mut client, disk) = (server.connect().await, Disk::default());
    let agent = disk.serve(&mut client).await;
    let arguments = r#" {"path": "/srv/ws/a.txt" , "n": 12345678901234567890.0} "#;
    for tool in TOOLS.iter().filter(|tool| tool.effect == Effect::Reads) {
        let answer = call(&mut client, request(tool.name, arguments)).await.unwrap();
        assert_eq!(answer.text, [tool.name, arguments]);
        assert_eq!((answer.structured.as_str(), answer.is_error), (r#"{"success":true}"#, false));
    }
    let editor = "str_replace_based_edit_tool";
    let view = call(&mut client, request(editor, r#"{"command":"view","path":"/srv"}"#)).await.unwrap();
    assert_eq!(view.text[0], editor);
    assert_eq!(call(&mut client, request("history", "")).await.unwrap().text, ["history", "{}"]);
    let large = format!(r#"{{"path":"{}"}}"#, "x".repeat((4 << 20) - 200));
    let refused = call(&mut client, request("read_file", large)).await.unwrap();
    assert!(refused.is_error && refused.structured.contains("TOO_LARGE"), "{refused:?}");
    agent.abort();
}

/// An agent that does not say that it carries out calls is asked for none.
#[tokio::test]
async fn an_older_agent_is_not_asked() {
    let server = Server::start();
    let mut client = server.connect().await;
    let features = ["read", "stat", "list", "search", "preview", "prepare"].map(str::to_owned).to_vec();
    let (_, _feed) =
        client.serve(v1::Hello { features, version: "0.0.9".to_owned(), ..hello("w", "agent") }).await.unwrap();
    let refused = call(&mut client, request("read_file", r#"{"path":"a"}"#)).await;
    let message = refused.as_ref().unwrap_err().message().to_owned();
    assert!(message.contains("0.0.9") && message.contains("call_tool") && message.contains("hint: "), "{message}");
    assert_refused(refused, Code::Unavailable, "UNAVAILABLE", "NO_AGENT");
}

/// A caller that goes cancels its question.
#[tokio::test]
async fn a_call_is_cancelled_with_its_caller() {
    let server = Server::start();
    let mut client = server.connect().await;
    let hello = v1::Hello { features: vec!["call_tool".to_owned()], ..hello("w", "agent") };
    let (_, mut feed) = client.serve(hello).await.unwrap();
    let mut next = async || loop {
        match feed.stream.message().await.unwrap().unwrap().message.unwrap() {
            Message::Question(question) => return Ok(question.question_id),
            Message::QuestionCancelled(cancelled) => return Err(cancelled.question_id),
            _ => {}
        }
    };
    let mut other = server.connect().await;
    let asked = {
        let asking = call(&mut other, request("read_file", "{}"));
        tokio::select! {
            answer = asking => panic!("{answer:?}"),
            asked = next() => asked.unwrap(),
        }
    };
    assert_eq!(timeout(SOON, next()).await.unwrap(), Err(asked));
}

/// Nothing that an agent makes up is passed on.
#[tokio::test]
async fn an_answer_that_is_none_is_not_passed_on() {
    let server = Server::start();
    let (mut client, disk) = (server.connect().await, Disk::default());
    let agent = disk.serve(&mut client).await;
    let of = |twist: fn(&mut v1::ToolAnswer)| -> Twist {
        Box::new(move |answer| {
            let Answer::CallTool(answer) = answer else { return };
            twist(answer);
        })
    };
    for twist in [
        of(|answer| answer.text.clear()),
        of(|answer| answer.text = vec!["x".to_owned(); 17]),
        of(|answer| answer.structured = "[]".to_owned()),
        of(|answer| answer.structured = "{} {}".to_owned()),
        of(|answer| answer.structured = "{".repeat(1 << 20)),
    ] {
        *disk.twist.lock().unwrap() = Some(twist);
        let answer = call(&mut client, request("read_file", "{}")).await;
        assert_refused(answer, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    }
    agent.abort();
}
