//! Tool calls forwarded over a server: real processes answer in the words of `aptix mcp`.

use aptix_model::wire::v1;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::processes::{Machine, Server, connected, eventually, python, served, wait_until_served};
use crate::tool_calls::mcp::Model;

/// A service that forwards what a model said.
struct Forwarder {
    runtime: Runtime,
    client: ToolServiceClient<Channel>,
}

impl Forwarder {
    fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, client: ToolServiceClient::new(channel) }
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Result<v1::CallToolResponse, Status> {
        let request = v1::CallToolRequest {
            workspace_id: "demo".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.as_bytes().to_vec().into(),
            ..v1::CallToolRequest::default()
        };
        Ok(self.runtime.block_on(self.client.call_tool(request))?.into_inner())
    }
}

/// Calls that read, and what is wrong with some.
fn calls(machine: &Machine) -> Vec<(&'static str, String)> {
    let absolute = machine.path("project").canonicalize().unwrap().join("src/a.txt");
    let of = |tool, arguments: &str| (tool, arguments.to_owned());
    vec![
        of("read_file", r#"{"path":"src/a.txt"}"#),
        of("read_file", &json!({ "path": absolute }).to_string()),
        of("read_file", r#"{"path":"src/a.txt","range":"2~","max_lines":null}"#),
        of("read_file", r#"{"path":"src/a.txt","range":"9~"}"#),
        of("read_file", r#"{"path":"src/a.txt","range":"x"}"#),
        of("read_file", r#"{"path":"none.txt"}"#),
        of("read_file", r#"{"path":"../none.txt"}"#),
        of("read_file", r#"{"path":7}"#),
        of("read_file", r#"{"file":"src/a.txt"}"#),
        of("read_fil", "{}"),
        of("str_replace_based_edit_tool", r#"{"command":"view","path":"src"}"#),
        of("str_replace_based_edit_tool", r#"{"command":"view","path":"src/a.txt","view_range":[1,1]}"#),
        of("str_replace_based_edit_tool", r#"{"command":"view","path":"src/a.txt","file_text":"x"}"#),
        of("list_directory", "{}"),
        of("list_directory", r#"{"path":"src","max_files":1}"#),
        of("list_directory", r#"{"path":"none"}"#),
        of("ripgrep_files", r#"{"glob":"*.txt"}"#),
        of("ripgrep_content", r#"{"pattern":"t[a-z]+","context":1}"#),
        of("ripgrep_content", r#"{"pattern":"("}"#),
        of("history", "{}"),
        of("history", r#"{"path":"src/a.txt","max_batches":1}"#),
        of("get_patch_change", r#"{"id":"ffff"}"#),
    ]
}

/// TUL-004-3.2.1: the text and the object are the same, whichever way a model's call comes.
#[test]
fn calls_that_read_are_answered_alike_over_mcp_and_grpc() {
    let (machine, server, _agent) = served("auto");
    machine.put("src/a.txt", "one\ntwo\nthree\n");
    machine.put("src/b.txt", "four\n");
    wait_until_served(&server);
    let (mut model, mut forwarder) = (Model::start(&machine), Forwarder::of(&server));
    let arguments = r#"{"path":"src/a.txt","patches":[{"operation":"append_eof","newText":"ten\n"}]}"#;
    let patched = model.call_with("patch", arguments).structured;
    let id = patched["batchId"].as_str().unwrap();
    let mut calls = calls(&machine);
    calls.push(("get_patch_change", json!({ "id": id }).to_string()));
    for (tool, arguments) in calls {
        let (over_mcp, over_grpc) = (model.call_with(tool, &arguments), forwarder.call(tool, &arguments).unwrap());
        let object: Value = serde_json::from_str(&over_grpc.structured).unwrap();
        assert_eq!(object, over_mcp.structured, "{tool} {arguments}");
        assert_eq!(over_grpc.text.join("\n"), over_mcp.text, "{tool} {arguments}");
        assert_eq!(over_grpc.is_error, over_mcp.is_error, "{tool} {arguments}");
    }
}

/// Without an agent a call that reads is refused by name, and answered again once one has connected.
#[test]
fn a_call_that_reads_needs_an_agent() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut forwarder = Forwarder::of(&server);
    let mut read = || forwarder.call("read_file", r#"{"path":"a.txt"}"#);
    for _ in 0..2 {
        let refused = read().unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().starts_with("UNAVAILABLE (NO_AGENT): ") && refused.message().contains("hint: "));
        let agent = machine.agent(&server);
        eventually("the agent answers", || read().is_ok_and(|answer| !answer.is_error));
        drop(agent);
        eventually("the agent is missed", || read().is_err_and(|status| status.code() == Code::Unavailable));
    }
}

/// What a model said goes through the Python client and back.
#[test]
fn an_orchestrator_in_python_forwards_tool_calls() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let _agent = machine.agent(&server);
    wait_until_served(&server);
    let code = "
import json, sys
from aptix_client import Client
client = Client(sys.argv[1], 'demo')
print(sorted(tool['function']['name'] for tool in client.list_tools('OPENAI', ('read_file', 'undo'))))
answer = client.call_tool('read_file', '{\"path\": \"a.txt\"}')
print(answer.is_error, json.loads(answer.structured)['text'].strip())
answer = client.call_tool('read_file', b'{\"path\": ')
print(answer.is_error, json.loads(answer.structured)['errors'][0]['code'])
";
    let output = python(&["-c", code, &server.address]);
    let out = String::from_utf8_lossy(&output.stdout);
    let expected = "['read_file', 'undo']\nFalse one\nTrue INVALID_REQUEST\n";
    assert_eq!(out, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
