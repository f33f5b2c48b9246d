//! Calls that write over gRPC, with a real server and agent: answered as `aptix mcp` answers them for the same files.

use std::time::Duration;

use aptix_engine::digest::sha256;
use aptix_model::id::Uuid;
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::processes::{Machine, Server, connected, served};
use crate::tool_calls::mcp::Model;

/// Calls tools over gRPC.
pub(crate) struct Caller {
    runtime: tokio::runtime::Runtime,
    tools: ToolServiceClient<Channel>,
    batches: BatchServiceClient<Channel>,
    calls: usize,
}

/// A call of ann's.
fn request(id: &str, tool: &str, arguments: &Value) -> v1::CallToolRequest {
    v1::CallToolRequest {
        workspace_id: "demo".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_string().into_bytes().into(),
        request_id: id.to_owned(),
        owner: "ann".to_owned(),
        origin: Some(turn()),
        ..v1::CallToolRequest::default()
    }
}

impl Caller {
    pub(crate) fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        let (tools, batches) = (ToolServiceClient::new(channel.clone()), BatchServiceClient::new(channel));
        Self { runtime, tools, batches, calls: 0 }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> v1::CallToolResponse {
        self.calls += 1;
        let request_id = format!("r{}", self.calls);
        self.call_as(&request_id, tool, arguments, None)
    }

    fn call_as(&mut self, id: &str, tool: &str, arguments: &Value, wait: Option<Duration>) -> v1::CallToolResponse {
        let wait = wait.map(|wait| wait.try_into().unwrap());
        let request = v1::CallToolRequest { wait, ..request(id, tool, arguments) };
        self.runtime.block_on(self.tools.call_tool(request)).unwrap().into_inner()
    }

    /// What a call under this request id is answered with.
    pub(crate) fn ask(&mut self, id: &str, tool: &str, arguments: &Value) -> Result<v1::CallToolResponse, Status> {
        self.runtime.block_on(self.tools.call_tool(request(id, tool, arguments))).map(Response::into_inner)
    }

    /// What two calls that come at once are answered with.
    pub(crate) fn ask_both(
        &mut self,
        [one, other]: [(&str, &str, &Value); 2],
    ) -> [Result<v1::CallToolResponse, Status>; 2] {
        let (mut ones, mut others) = (self.tools.clone(), self.tools.clone());
        let answers = self.runtime.block_on(async {
            tokio::join!(
                ones.call_tool(request(one.0, one.1, one.2)),
                others.call_tool(request(other.0, other.1, other.2)),
            )
        });
        [answers.0.map(Response::into_inner), answers.1.map(Response::into_inner)]
    }

    /// A batch as the server keeps it.
    fn batch(&mut self, id: &str) -> v1::Batch {
        let request = v1::GetBatchRequest {
            workspace_id: "demo".to_owned(),
            batch: Some(v1::get_batch_request::Batch::BatchId(id.to_owned())),
            view: v1::BatchView::Full.into(),
        };
        self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap()
    }
}

/// The turn that the calls belong to.
fn turn() -> v1::Origin {
    let [session_id, conversation_id, turn_id] = ["session", "conversation", "turn"].map(str::to_owned);
    v1::Origin { session_id, conversation_id, turn_id }
}

pub(crate) fn structured(answer: &v1::CallToolResponse) -> Value {
    serde_json::from_str(&answer.structured).unwrap()
}

/// An answer without what differs between two calls: ids and times.
fn neutral(value: &Value) -> Value {
    match value {
        Value::String(text) if text.parse::<Uuid>().is_ok() => json!("ID"),
        Value::Array(items) => items.iter().map(neutral).collect(),
        Value::Object(members) => {
            let is_time = |key: &str| ["expiresAtMs", "expires_at_ms"].contains(&key);
            let member =
                |(key, value): (&String, &Value)| (key.clone(), if is_time(key) { json!(0) } else { neutral(value) });
            members.iter().map(member).collect()
        }
        other => other.clone(),
    }
}

const CONTENT: &str = "one\ntwo\nthree\n";

/// A line patch of a file with this content.
fn line_patch(content: &str) -> Value {
    let digest = sha256(content.as_bytes()).to_string();
    let change = json!({
        "operation": "replace", "startLine": 2, "endLine": 2, "expectedOriginalLines": ["two"], "newLines": ["2"],
        "changeKey": "c",
    });
    json!({ "batchKey": "b", "files": [{ "docPath": "project/a.txt", "originalSha256": digest, "changes": [change] }] })
}

/// TUL-002-9.1, TUL-004-4.3.1, WS-MOD-2.1.2, WS-MOD-4.1.1: the answer of a call does not depend on the way that it took.
#[test]
fn a_call_that_writes_is_answered_alike_over_mcp_and_grpc() {
    let (machine, server, _agent) = served("auto");
    let local = Machine::new();
    for machine in [&machine, &local] {
        machine.put("a.txt", CONTENT);
    }
    let (mut caller, mut model) = (Caller::of(&server), Model::start(&local));
    let edit = |old: &str| json!({ "file_path": "a.txt", "old_string": old, "new_string": "3" });
    for (tool, arguments) in [
        ("workspace_write_patch", line_patch("other\n")),
        ("workspace_write_patch", line_patch(CONTENT)),
        ("workspace_create_file", json!({ "path": "new/b.txt", "content": "b" })),
        ("workspace_create_file", json!({ "path": "new/b.txt", "content": "c" })),
        ("edit", edit("thre\n")),
        ("edit", edit("three")),
        ("patch", json!({ "path": "../x", "patches": [{ "operation": "append_eof", "newText": "x" }] })),
        ("delete_file", json!({ "path": "none.txt" })),
    ] {
        let (far, near) = (caller.call(tool, &arguments), model.call_with(tool, &arguments.to_string()));
        assert_eq!(far.is_error, near.is_error, "{tool}: {far:?}");
        let mut near = near.structured;
        if far.batch_id.is_empty() {
            // Nothing was stored: there is nothing that ids could name.
            without_ids(&mut near);
        }
        assert_eq!(neutral(&structured(&far)), neutral(&near), "{tool}");
    }
    assert_eq!(machine.files(), local.files());

    let append = json!({ "path": "a.txt", "content": "end" });
    let (far, near) =
        (structured(&caller.call("prepare_file_append", &append)), model.call("prepare_file_append", &append));
    assert_eq!((neutral(&far["preview"]), &far["diff"]), (neutral(&near["preview"]), &near["diff"]), "{far}");
    let apply = |plan: &Value| json!({ "hunk_id": plan["hunkId"] });
    let (far, near) = (
        structured(&caller.call("apply_file_modification", &apply(&far))),
        model.call("apply_file_modification", &apply(&near)),
    );
    assert_eq!(neutral(&far), neutral(&near));
    assert_eq!(machine.files(), local.files());

    let undo = |answer: &Value| json!({ "batch_id": answer["batchId"] });
    let (far, near) = (structured(&caller.call("undo", &undo(&far))), model.call("undo", &undo(&near)));
    assert_eq!((&far["success"], neutral(&far["undoes"])), (&json!(true), neutral(&near["undoes"])), "{far}");
    assert_eq!(machine.files(), local.files());
}

fn without_ids(value: &mut Value) {
    match value {
        Value::String(text) if text.parse::<Uuid>().is_ok() => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(without_ids),
        Value::Object(members) => members.values_mut().for_each(without_ids),
        _ => {}
    }
}

/// TUL-004-3.1.1, TUL-004-3.2.6, TUL-004-3.2.7, TUL-004-6.1.3: a call that comes before the agent waits for it, and writes
/// nothing before, though the server runs in the very project; the same call is answered with the end of the one batch.
/// TUL-004-3.2.5, TUL-004-6.1.4.1: that batch stays readable, with the turn of the call and with its report.
#[test]
fn a_call_waits_for_an_agent() {
    let machine = Machine::new();
    let server = machine.server_that(|command| _ = command.current_dir(machine.path("project")));
    let mut caller = Caller::of(&server);
    let create = json!({ "path": "a.txt", "content": "new" });
    let pending = caller.call_as("r1", "workspace_create_file", &create, Some(Duration::ZERO));
    assert_eq!((pending.is_error, pending.state()), (true, v1::BatchState::Approved), "{pending:?}");
    assert!(machine.files().is_empty());
    let _agent = machine.agent(&server);
    let applied = caller.call_as("r1", "workspace_create_file", &create, None);
    assert_eq!((applied.is_error, &applied.batch_id), (false, &pending.batch_id), "{applied:?}");
    assert_eq!(structured(&applied)["created"], true, "it was not written twice");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "new".to_owned())]);

    let batch = caller.batch(&applied.batch_id);
    let (edit, report) = (batch.edit.unwrap(), batch.report.unwrap());
    assert_eq!((batch.origin, edit.files.len()), (Some(turn()), 1));
    let digest = sha256(b"new").to_string();
    assert_eq!((report.files[0].size_bytes(), report.files[0].sha256()), (3, digest.as_str()), "{report:?}");
}
