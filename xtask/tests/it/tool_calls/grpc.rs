//! Callers over gRPC: a service in any language, which knows the server's address and the workspace's name.

use aptix_model::wire::v1;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::Value;

use super::mcp::Model;
use crate::processes::{Machine, connected};

/// TUL-004-3.2.1, TUL-004-3.2.2, TUL-004-4.1.1, TUL-004-4.1.2, TUL-004-4.1.3, WS-MOD-1.3, WS-MOD-2.1.3, REQ-PATCH-006.1,
/// REQ-PATCH-006.2: the catalogue says the same of every tool, whichever way it is asked for.
#[test]
fn the_catalogue_is_the_same_over_mcp_and_grpc() {
    let machine = Machine::new();
    let server = machine.server();
    let (runtime, channel) = connected(&server);
    let asked = v1::ListToolsRequest::default();
    let listed = runtime.block_on(ToolServiceClient::new(channel).list_tools(asked)).unwrap().into_inner().tools;
    let definition = |tool: &v1::ToolDefinition| serde_json::from_str::<Value>(&tool.definition).unwrap();
    let listed: Vec<_> = listed.iter().map(definition).collect();
    assert_eq!(Model::start(&machine).tools(), listed);
    let create = listed.iter().find(|tool| tool["name"] == "workspace_create_file").unwrap();
    assert_eq!(create["_meta"]["aptix/category"], "workspace");
    assert_eq!(create["_meta"]["aptix/executionLocation"], "client");
}
