//! Callers over gRPC: services in any language, which know the server's address and the workspace's name.

use aptix_model::wire::v1;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use super::answer::Answer;
use super::mcp::Model;
use super::play::{Call, WayIn};
use crate::processes::{Machine, Running, Server, connected, wait_until_served};

/// A machine that is served, and services that call its tools. Each caller is a session of its own.
pub(super) struct Grpc {
    machine: Machine,
    _server: Server,
    _agent: Running,
    runtime: Runtime,
    tools: ToolServiceClient<Channel>,
    /// The number of the scenario.
    scenario: u32,
    /// The number of the call.
    call: u32,
}

impl Grpc {
    pub(super) fn new() -> Self {
        let machine = Machine::new().with_modes();
        let server = machine.server();
        let agent = machine.agent(&server);
        wait_until_served(&server);
        let (runtime, channel) = connected(&server);
        let tools = ToolServiceClient::new(channel).max_encoding_message_size(64 << 20);
        Self { machine, _server: server, _agent: agent, runtime, tools, scenario: 0, call: 0 }
    }
}

impl WayIn for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn begin(&mut self) {
        self.scenario += 1;
    }

    fn call(&mut self, call: &Call<'_>) -> Answer {
        self.call += 1;
        let request = v1::CallToolRequest {
            workspace_id: "demo".to_owned(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.to_owned().into(),
            origin: Some(v1::Origin {
                session_id: format!("{}-{}", call.by, self.scenario),
                conversation_id: "conversation".to_owned(),
                turn_id: self.call.to_string(),
            }),
            request_id: self.call.to_string(),
            ..v1::CallToolRequest::default()
        };
        let answer = match self.runtime.block_on(self.tools.call_tool(request)) {
            Ok(answer) => answer.into_inner(),
            Err(status) => return refused(&status),
        };
        let structured = serde_json::from_str(&answer.structured).unwrap();
        Answer { structured, text: answer.text.join("\n"), is_error: answer.is_error }
    }
}

/// A call that got no answer: its reason and detail, or its status where it has none.
fn refused(status: &Status) -> Answer {
    let details = status.get_error_details();
    let error = match details.error_info() {
        Some(info) => {
            json!({ "code": info.reason, "detail": info.metadata.get("detail"), "message": status.message() })
        }
        None => json!({ "code": format!("{:?}", status.code()), "message": status.message() }),
    };
    Answer { text: error.to_string(), structured: json!({ "errors": [error] }), is_error: true }
}

/// TUL-004-3.2.1, TUL-004-3.2.2, TUL-004-4.1.1, TUL-004-4.1.2, TUL-004-4.1.3, WS-MOD-1.3, WS-MOD-2.1.3, REQ-PATCH-006.1,
/// REQ-PATCH-006.2: the catalogue says the same of every tool, whichever way it is asked for.
#[test]
fn the_catalogue_is_the_same_over_mcp_and_grpc() {
    let mut way = Grpc::new();
    let asked = way.tools.list_tools(v1::ListToolsRequest::default());
    let listed = way.runtime.block_on(asked).unwrap().into_inner().tools;
    let definition = |tool: &v1::ToolDefinition| serde_json::from_str::<Value>(&tool.definition).unwrap();
    let listed: Vec<_> = listed.iter().map(definition).collect();
    assert_eq!(Model::start(&way.machine).tools(), listed);
    let create = listed.iter().find(|tool| tool["name"] == "workspace_create_file").unwrap();
    assert_eq!(create["_meta"]["aptix/category"], "workspace");
    assert_eq!(create["_meta"]["aptix/executionLocation"], "client");
}
