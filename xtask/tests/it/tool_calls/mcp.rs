//! Callers of `aptix mcp`, each with a process of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use aptix_engine::digest::sha256;
use serde_json::{Value, json};

use super::answer::Answer;
use super::play::{Call, Side, WayIn};
use crate::events::as_json;
use crate::processes::{Machine, Running, write};

/// A client of `aptix mcp`.
pub(crate) struct Model {
    calls: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// The requests so far.
    asked: u64,
    /// The responses that came before they were waited for.
    early: Vec<Value>,
    program: Running,
}

impl Model {
    /// Starts the program on the machine's project.
    pub(crate) fn start(machine: &Machine) -> Self {
        Self::start_in(machine, |_| ())
    }

    /// Starts it in surroundings of its own.
    pub(crate) fn start_in(machine: &Machine, surround: impl FnOnce(&mut Command)) -> Self {
        let mut command = machine.aptix(&["mcp", "--root", "project"]);
        command.stderr(machine.log("mcp.log"));
        surround(&mut command);
        let mut program = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let (calls, answers) = (program.0.stdin.take().unwrap(), program.0.stdout.take().unwrap());
        let answers = BufReader::new(answers).lines();
        let mut model = Self { calls, answers, asked: 0, early: Vec::new(), program };
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        model.ask("initialize", &hello.to_string());
        model
    }

    fn ask(&mut self, method: &str, params: &str) -> Value {
        let request = self.send(method, params);
        self.wait(request)
    }

    /// Sends a request without waiting for the response, and returns its id.
    fn send(&mut self, method: &str, params: &str) -> u64 {
        self.asked += 1;
        let id = self.asked;
        writeln!(self.calls, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).unwrap();
        id
    }

    /// Waits for the response to a request. What could not be parsed is answered without an id.
    fn wait(&mut self, request: u64) -> Value {
        let is_wanted = |response: &Value| response["id"] == request || response["id"].is_null();
        loop {
            if let Some(index) = self.early.iter().position(is_wanted) {
                return self.early.remove(index);
            }
            self.early.push(serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap());
        }
    }

    /// The tools that it lists.
    pub(super) fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", "{}")["result"]["tools"].as_array().unwrap().clone()
    }

    /// What a tool answers to arguments as they are written. An error of the protocol is a refusal with its number as the code.
    pub(crate) fn call_with(&mut self, tool: &str, arguments: &str) -> Answer {
        let request = self.send_call(tool, arguments);
        self.answer(request)
    }

    /// Sends a call, and returns the id of its request.
    fn send_call(&mut self, tool: &str, arguments: &str) -> u64 {
        self.send("tools/call", &format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(tool)))
    }

    /// Waits for the answer to a call.
    fn answer(&mut self, request: u64) -> Answer {
        let heard = self.wait(request);
        if let Some(error) = heard.get("error") {
            let error = json!({ "code": error["code"].to_string(), "message": error["message"] });
            return Answer {
                text: error.to_string(),
                structured: json!({ "errors": [error] }),
                is_error: true,
                is_of_tool: false,
            };
        }
        let result = &heard["result"];
        let texts = result["content"].as_array().unwrap_or_else(|| panic!("{heard}"));
        Answer {
            structured: result["structuredContent"].clone(),
            text: texts.iter().map(|text| text["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n"),
            is_error: result["isError"] == true,
            is_of_tool: true,
        }
    }

    /// What a tool answers to a program.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.call_with(tool, &arguments.to_string()).structured
    }
}

/// A machine, and the models that are connected to its tools.
pub(super) struct Mcp {
    machine: Machine,
    models: BTreeMap<String, Model>,
    /// The calls that were sent: who sent each, and the id of its request.
    sent: VecDeque<(String, u64)>,
}

impl Mcp {
    pub(super) fn on(machine: Machine) -> Self {
        Self { machine, models: BTreeMap::new(), sent: VecDeque::new() }
    }
}

impl WayIn for Mcp {
    fn name(&self) -> &'static str {
        "MCP"
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn log(&self, _: Side) -> &'static str {
        "mcp.log"
    }

    fn begin(&mut self) {
        self.models.clear();
        self.sent.clear();
    }

    fn send(&mut self, call: &Call<'_>) -> u32 {
        let start = || Model::start_in(&self.machine, as_json);
        let model = self.models.entry(call.by.to_owned()).or_insert_with(start);
        // A message is one line.
        let request = model.send_call(call.tool, &call.arguments.replace('\n', " "));
        self.sent.push_back((call.by.to_owned(), request));
        model.program.0.id()
    }

    fn wait(&mut self, call: usize) -> Answer {
        let (by, request) = self.sent.remove(call).unwrap();
        self.models.get_mut(&by).unwrap().answer(request)
    }

    fn tools(&mut self) -> Vec<Value> {
        Model::start(&self.machine).tools()
    }

    /// The guide is printed by the program that serves the tools.
    fn guide(&mut self) -> String {
        String::from_utf8(self.machine.aptix(&["prompt"]).output().unwrap().stdout).unwrap()
    }

    fn set_mode(&mut self, _: &str, _: &str) {
        panic!("a connection of MCP has the mode of the policy");
    }

    /// The age clock of the root, by which its plans expire, is a sealed file.
    fn pass(&mut self, seconds: u64) {
        let roots = std::fs::read_dir(self.machine.path("state/aptix/roots")).unwrap();
        let file = roots.map(|root| root.unwrap().path().join("age/clock")).find(|file| file.exists()).unwrap();
        let sealed = std::fs::read_to_string(&file).unwrap();
        let (owner, look) = sealed.split_once('\n').unwrap().1.split_once('\n').unwrap();
        let mut look: Value = serde_json::from_str(look).unwrap();
        look["age"] = json!(look["age"].as_u64().unwrap() + seconds * 1000);
        let body = format!("{owner}\n{look}");
        write(&file, &format!("aptix-own-1 {}\n{body}", sha256(body.as_bytes())));
    }

    fn ahead(&self) -> Duration {
        Duration::ZERO
    }
}
