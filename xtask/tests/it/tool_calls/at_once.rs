//! Two callers of one owner who use a plan at once: one body for every way in.

use std::sync::Barrier;
use std::thread::scope;

use aptix_model::wire::v1;
use aptix_model::wire::v1::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use super::answer::Answer;
use super::grpc::answered;
use super::mcp::Model;
use crate::processes::{Machine, connected, served, wait_until_served};

const ROUNDS: usize = 20;

/// A caller who shares its plans with others of the same owner.
trait Caller: Send {
    fn call(&mut self, tool: &str, arguments: &Value) -> Answer;
}

impl Caller for Model {
    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.call_with(tool, &arguments.to_string())
    }
}

/// A caller over gRPC, with a connection of its own.
struct Service {
    runtime: Runtime,
    tools: ToolServiceClient<Channel>,
    name: &'static str,
    calls: usize,
}

impl Caller for Service {
    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.calls += 1;
        let request = v1::CallToolRequest {
            workspace_id: "demo".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_string().into(),
            owner: "ann".to_owned(),
            request_id: format!("{}-{}", self.name, self.calls),
            ..v1::CallToolRequest::default()
        };
        answered(self.runtime.block_on(self.tools.call_tool(request)))
    }
}

/// Plays a body over each way in, with a project and two callers of one owner.
fn play(body: impl Fn(&Machine, [&mut dyn Caller; 2])) {
    let machine = Machine::new();
    let [mut one, mut other] = [(); 2].map(|()| {
        Model::start_in(&machine, |command| {
            command.args(["--owner", "ann"]);
        })
    });
    body(&machine, [&mut one, &mut other]);

    let (machine, server, _agent) = served("auto");
    wait_until_served(&server);
    let [mut one, mut other] = ["one", "other"].map(|name| {
        let (runtime, channel) = connected(&server);
        Service { runtime, tools: ToolServiceClient::new(channel), name, calls: 0 }
    });
    body(&machine, [&mut one, &mut other]);
}

/// Has both callers call at once; their answers.
fn at_once(callers: &mut [&mut dyn Caller; 2], calls: [(&str, &Value); 2]) -> [Answer; 2] {
    let ready = Barrier::new(2);
    let call = |caller: &mut dyn Caller, (tool, arguments): (&str, &Value)| {
        ready.wait();
        caller.call(tool, arguments)
    };
    let [one, other] = callers;
    scope(|scope| {
        let other = scope.spawn(|| call(*other, calls[1]));
        [call(*one, calls[0]), other.join().unwrap()]
    })
}

fn append(text: &str) -> Value {
    json!({ "path": "a.txt", "content": text })
}

/// The id of a new plan.
fn planned(caller: &mut dyn Caller, arguments: &Value) -> Value {
    let answer = caller.call("prepare_file_append", arguments);
    assert!(!answer.is_error, "{}", answer.text);
    answer.structured["hunkId"].clone()
}

/// WS-MOD-4.1.2: of two callers who apply a plan at once one does, and the other reads that.
#[test]
fn two_callers_apply_a_plan_once() {
    play(|machine, mut callers| {
        machine.put("a.txt", "begin\n");
        let mut expected = "begin\n".to_owned();
        for round in 0..ROUNDS {
            let text = format!("round {round}\n");
            let apply = json!({ "hunk_id": planned(callers[round % 2], &append(&text)) });
            let answers = at_once(&mut callers, [("apply_file_modification", &apply); 2]);
            let refused: Vec<_> = answers.iter().filter(|answer| answer.is_error).collect();
            assert_eq!(refused.len(), 1, "round {round}");
            let code = refused[0].code();
            assert!(["ALREADY_APPLIED", "INVALID_STATE NOT_PREPARED"].contains(&code.as_str()), "{code}");
            expected.push_str(&text);
            assert_eq!(machine.files(), [("a.txt".to_owned(), expected.clone())], "round {round}");
        }
    });
}

/// WS-MOD-4.2.6: of two callers, of whom one applies a plan and the other replaces it at once, the first takes effect alone: what was
/// applied is not replaced, and what was replaced is written as it is now or not at all.
#[test]
fn a_plan_is_applied_or_replaced_by_two_callers() {
    play(|machine, mut callers| {
        machine.put("a.txt", "begin\n");
        let mut expected = "begin\n".to_owned();
        for round in 0..ROUNDS {
            let (first, second) = (format!("first {round}\n"), format!("second {round}\n"));
            let hunk = planned(callers[round % 2], &append(&first));
            let mut again = append(&second);
            again["existing_hunk_id"] = hunk.clone();
            let calls = [("apply_file_modification", &json!({ "hunk_id": hunk })), ("prepare_file_append", &again)];
            let [applied, replaced] = at_once(&mut callers, calls);
            match (applied.is_error, replaced.is_error) {
                (false, true) => {
                    let code = replaced.code();
                    assert!(["ALREADY_APPLIED", "INVALID_STATE NOT_PREPARED"].contains(&code.as_str()), "{code}");
                    expected.push_str(&first);
                }
                (true, false) => {
                    assert_eq!(applied.code(), "INVALID_STATE CHANGED");
                    let apply = json!({ "hunk_id": replaced.structured["hunkId"] });
                    assert!(!callers[0].call("apply_file_modification", &apply).is_error);
                    expected.push_str(&second);
                }
                // A plan keeps its id when it is replaced.
                (false, false) => {
                    assert_eq!(replaced.structured["hunkId"], hunk);
                    expected.push_str(&second);
                }
                (true, true) => panic!("{} and {}", applied.text, replaced.text),
            }
            assert_eq!(machine.files(), [("a.txt".to_owned(), expected.clone())], "round {round}");
        }
    });
}
