//! Callers of `aptix mcp`, each with a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::answer::Answer;
use super::play::{Call, WayIn};
use crate::processes::{Machine, Running};

/// A client of `aptix mcp`.
pub(crate) struct Model {
    calls: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _program: Running,
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
        let mut model = Self { calls, answers: BufReader::new(answers).lines(), _program: program };
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        model.ask("initialize", &hello.to_string());
        model
    }

    fn ask(&mut self, method: &str, params: &str) -> Value {
        writeln!(self.calls, r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).unwrap();
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    /// The tools that it lists.
    pub(super) fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", "{}")["result"]["tools"].as_array().unwrap().clone()
    }

    /// What a tool answers to arguments as they are written. An error of the protocol is a refusal with its number as the code.
    pub(crate) fn call_with(&mut self, tool: &str, arguments: &str) -> Answer {
        let heard = self.ask("tools/call", &format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(tool)));
        if let Some(error) = heard.get("error") {
            let error = json!({ "code": error["code"].to_string(), "message": error["message"] });
            return Answer { text: error.to_string(), structured: json!({ "errors": [error] }), is_error: true };
        }
        let result = &heard["result"];
        let texts = result["content"].as_array().unwrap_or_else(|| panic!("{heard}"));
        Answer {
            structured: result["structuredContent"].clone(),
            text: texts.iter().map(|text| text["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n"),
            is_error: result["isError"] == true,
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
}

impl Mcp {
    pub(super) fn new() -> Self {
        Self { machine: Machine::new().with_modes(), models: BTreeMap::new() }
    }
}

impl WayIn for Mcp {
    fn name(&self) -> &'static str {
        "MCP"
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn begin(&mut self) {
        self.models.clear();
    }

    fn call(&mut self, call: &Call<'_>) -> Answer {
        let start = || Model::start(&self.machine);
        let model = self.models.entry(call.by.to_owned()).or_insert_with(start);
        // A message is one line.
        model.call_with(call.tool, &call.arguments.replace('\n', " "))
    }
}
