//! Callers over gRPC: services in any language, which know the server's address and the workspace's name.

use std::collections::VecDeque;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::session_service_client::SessionServiceClient;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use tonic_types::StatusExt as _;

use super::answer::Answer;
use super::play::{Call, Side, WayIn};
use crate::clock::Clock;
use crate::events::as_json;
use crate::processes::{Machine, Running, Server, wait_until_served};

/// A machine that is served, and services that call its tools. Each caller is a session of its own.
pub(super) struct Grpc {
    machine: Machine,
    clock: Option<Clock>,
    _server: Server,
    agent: Running,
    runtime: Runtime,
    channel: Channel,
    tools: ToolServiceClient<Channel>,
    /// How far the clock was set forward.
    passed: Duration,
    /// The number of the scenario.
    scenario: u32,
    /// The number of the call.
    call: u32,
    /// The calls that were sent.
    sent: VecDeque<JoinHandle<Answer>>,
}

impl Grpc {
    pub(super) fn on(machine: Machine) -> Self {
        let server = machine.server_that(as_json);
        Self::to(machine, server, None)
    }

    /// With a clock that can be set: plans of a server expire by the time of day.
    pub(super) fn with_clock() -> Self {
        let machine = Machine::new().with_modes();
        let clock = Clock::of(&machine);
        let server = machine.server_that(|command| {
            as_json(command);
            clock.show(command);
        });
        Self::to(machine, server, Some(clock))
    }

    fn to(machine: Machine, server: Server, clock: Option<Clock>) -> Self {
        let agent = machine.agent_in(&server, "auto", as_json);
        wait_until_served(&server);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let channel = runtime.block_on(Endpoint::from_shared(server.url()).unwrap().connect()).unwrap();
        let tools = ToolServiceClient::new(channel.clone()).max_encoding_message_size(64 << 20);
        let sent = VecDeque::new();
        Self {
            machine,
            clock,
            _server: server,
            agent,
            runtime,
            channel,
            tools,
            passed: Duration::ZERO,
            scenario: 0,
            call: 0,
            sent,
        }
    }

    /// The session of a caller.
    fn session(&self, by: &str) -> String {
        format!("{by}-{}", self.scenario)
    }
}

impl WayIn for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn log(&self, side: Side) -> &'static str {
        match side {
            Side::Client => "agent.log",
            Side::Server => "server.log",
        }
    }

    fn begin(&mut self) {
        self.scenario += 1;
        self.sent.clear();
    }

    fn send(&mut self, call: &Call<'_>) -> u32 {
        self.call += 1;
        let request = v1::CallToolRequest {
            workspace_id: "demo".to_owned(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.to_owned().into(),
            origin: Some(v1::Origin {
                session_id: self.session(call.by),
                conversation_id: "conversation".to_owned(),
                turn_id: self.call.to_string(),
            }),
            request_id: self.call.to_string(),
            ..v1::CallToolRequest::default()
        };
        let mut tools = self.tools.clone();
        self.sent.push_back(self.runtime.spawn(async move { answered(tools.call_tool(request).await) }));
        self.agent.0.id()
    }

    fn wait(&mut self, call: usize) -> Answer {
        self.runtime.block_on(self.sent.remove(call).unwrap()).unwrap()
    }

    fn tools(&mut self) -> Vec<Value> {
        let asked = self.tools.list_tools(v1::ListToolsRequest::default());
        let listed = self.runtime.block_on(asked).unwrap().into_inner().tools;
        listed.iter().map(|tool| serde_json::from_str(&tool.definition).unwrap()).collect()
    }

    fn guide(&mut self) -> String {
        let asked = self.tools.get_guidance(v1::GetGuidanceRequest::default());
        self.runtime.block_on(asked).unwrap().into_inner().text
    }

    fn set_mode(&mut self, by: &str, mode: &str) {
        let request = v1::SetSessionModeRequest {
            workspace_id: "demo".to_owned(),
            session_id: self.session(by),
            owner: by.to_owned(),
            mode: v1::SessionMode::from_str_name(&format!("SESSION_MODE_{mode}")).unwrap().into(),
            request_id: format!("{mode}-{}", self.call),
            ..v1::SetSessionModeRequest::default()
        };
        let mut sessions = SessionServiceClient::new(self.channel.clone());
        let changed = self.runtime.block_on(sessions.set_session_mode(request)).unwrap().into_inner();
        assert_ne!(changed.state(), v1::ModeChangeState::Unspecified, "{changed:?}");
    }

    fn pass(&mut self, seconds: u64) {
        self.passed += Duration::from_secs(seconds);
        self.clock.as_ref().unwrap().set(&format!("+{}", self.passed.as_secs()));
    }

    fn ahead(&self) -> Duration {
        self.passed
    }
}

/// What a call is answered with.
pub(super) fn answered(answer: Result<Response<v1::CallToolResponse>, Status>) -> Answer {
    match answer.map(Response::into_inner) {
        Ok(v1::CallToolResponse { structured, text, is_error, .. }) => {
            let structured = serde_json::from_str(&structured).unwrap();
            Answer { structured, text: text.join("\n"), is_error, is_of_tool: true }
        }
        Err(status) => refused(&status),
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
    Answer { text: error.to_string(), structured: json!({ "errors": [error] }), is_error: true, is_of_tool: false }
}
