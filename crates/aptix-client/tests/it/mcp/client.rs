//! A client of the real `aptix mcp` process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A client, and the server that it started on a directory `ws`.
pub(super) struct Client {
    pub(super) place: tempfile::TempDir,
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) lines: Receiver<String>,
    next: u64,
}

/// What a call was answered with.
pub(super) struct Answer {
    pub(super) structured: Value,
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Client {
    pub(super) fn start(lay_out: impl FnOnce(&Path)) -> Self {
        Self::start_in(lay(lay_out))
    }

    /// One whose server logs its events as JSON.
    pub(super) fn logged(lay_out: impl FnOnce(&Path)) -> Self {
        let mut server = server();
        server.env("APTIX_LOG", "aptix::events=info").env("APTIX_LOG_FORMAT", "json");
        Self::spawn(lay(lay_out), server).initialized()
    }

    pub(super) fn start_in(place: tempfile::TempDir) -> Self {
        Self::spawn(place, server()).initialized()
    }

    /// One for whom prepared edits are kept under a name.
    pub(super) fn owned(owner: &str, lay_out: impl FnOnce(&Path)) -> Self {
        Self::spawn_with(lay(lay_out), server(), &["--owner", owner]).initialized()
    }

    /// Another one on the same root and state.
    pub(super) fn beside(other: &Self, options: &[&str]) -> Self {
        Self::spawn_at(lay(|_| {}), other.place.path(), server(), options).initialized()
    }

    /// Kills the server; a new one serves the same place for this owner.
    pub(super) fn killed_and_restarted(mut self, owner: &str) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::spawn_with(self.place, server(), &["--owner", owner]).initialized()
    }

    /// One that is served these tools.
    pub(super) fn with_tools(tools: &str, lay_out: impl FnOnce(&Path)) -> Self {
        Self::spawn_with(lay(lay_out), server(), &["--tools", tools]).initialized()
    }

    /// One that shows forms, and whose server logs its events as JSON.
    pub(super) fn with_forms(lay_out: impl FnOnce(&Path)) -> Self {
        let mut server = server();
        server.env("APTIX_LOG", "aptix::events=info").env("APTIX_LOG_FORMAT", "json");
        Self::spawn(lay(lay_out), server).initialized_with(&json!({ "elicitation": { "form": {} } }))
    }

    /// One with these options, which has these capabilities.
    pub(super) fn with(options: &[&str], capabilities: &Value, lay_out: impl FnOnce(&Path)) -> Self {
        Self::spawn_with(lay(lay_out), server(), options).initialized_with(capabilities)
    }

    fn initialized(self) -> Self {
        self.initialized_with(&json!({}))
    }

    fn initialized_with(self, capabilities: &Value) -> Self {
        let mut client = self.listening();
        let info = client.ask("initialize", &hello(capabilities));
        assert_eq!(info["result"]["serverInfo"]["name"], "aptix", "{info}");
        assert!(info["result"]["capabilities"]["tools"].is_object(), "{info}");
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    /// One that has said nothing yet.
    pub(super) fn silent() -> Self {
        Self::spawn(lay(|_| {}), server()).listening()
    }

    fn listening(mut self) -> Self {
        let (sender, lines) = sync_channel(4_096);
        let stdout = self.child.stdout.take().unwrap();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        self.lines = lines;
        self
    }

    /// One that says hello and never reads anything.
    pub(super) fn deaf_in(place: tempfile::TempDir) -> Self {
        let mut client = Self::spawn(place, server());
        client.say(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello(&json!({})) }).to_string(),
        );
        client
    }

    fn spawn(place: tempfile::TempDir, server: Command) -> Self {
        Self::spawn_with(place, server, &[])
    }

    fn spawn_with(place: tempfile::TempDir, server: Command, options: &[&str]) -> Self {
        let at = place.path().to_owned();
        Self::spawn_at(place, &at, server, options)
    }

    /// A server on the root and state at a path, which logs to a place of its own.
    fn spawn_at(place: tempfile::TempDir, at: &Path, mut server: Command, options: &[&str]) -> Self {
        let mut child = server
            .arg("mcp")
            .args(options)
            .current_dir(at.join("ws"))
            .env("XDG_STATE_HOME", at.join("state"))
            .env("XDG_CONFIG_HOME", at.join("config"))
            .env("HOME", at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(place.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        Self { place, child, stdin, lines: sync_channel(0).1, next: 0 }
    }

    /// Writes the policy of the user, which each call reads anew.
    pub(super) fn set_policy(&self, policy: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.place.path().join("config/aptix/policy.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, policy).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(super) fn ws(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    pub(super) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            panic!("{error}: {}", std::fs::read_to_string(self.place.path().join("log")).unwrap())
        });
        serde_json::from_str(&line).unwrap()
    }

    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.request(method, params);
        self.response()
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
    }

    fn response(&self) -> Value {
        let heard = self.hear();
        assert_eq!(heard["id"], self.next, "{heard}");
        heard
    }

    /// Sends a call whose answer is waited for later.
    pub(super) fn send(&mut self, tool: &str, arguments: &Value) {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
    }

    /// The question that the server asks next, and its id.
    #[track_caller]
    pub(super) fn question(&self) -> (Value, String) {
        let heard = self.hear();
        assert_eq!(
            (&heard["method"], &heard["params"]["mode"]),
            (&"elicitation/create".into(), &"form".into()),
            "{heard}"
        );
        (heard["id"].clone(), heard["params"]["message"].as_str().unwrap().to_owned())
    }

    /// Answers a question.
    pub(super) fn decide(&mut self, question: &Value, result: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": question, "result": result }).to_string());
    }

    /// The answer of the call that was sent last.
    pub(super) fn answered(&mut self) -> Answer {
        answer(&self.response())
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let heard = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        answer(&heard)
    }

    #[track_caller]
    pub(super) fn done(&mut self, tool: &str, arguments: &Value) -> Answer {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {}", answer.structured);
        answer
    }

    /// The code of a call's first error, and its detail.
    #[track_caller]
    pub(super) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(answer.is_error, "{tool} {arguments}: {}", answer.structured);
        code(&answer.structured)
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.ws().join(path)).unwrap()
    }

    pub(super) fn end(mut self) -> (tempfile::TempDir, String) {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(self.lines.recv_timeout(PATIENCE).is_err(), "nothing but answers is on stdout");
        let log = std::fs::read_to_string(self.place.path().join("log")).unwrap();
        (self.place, log)
    }
}

/// A directory with an empty root `ws`, which this lays out.
fn lay(lay_out: impl FnOnce(&Path)) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    lay_out(&place.path().join("ws"));
    place
}

fn server() -> Command {
    Command::new(env!("CARGO_BIN_EXE_aptix"))
}

fn hello(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

pub(super) fn answer(heard: &Value) -> Answer {
    let result = &heard["result"];
    let content = result["content"].as_array().unwrap_or_else(|| panic!("{heard}"));
    let text = content.iter().map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n");
    Answer { structured: result["structuredContent"].clone(), text, is_error: result["isError"].as_bool().unwrap() }
}

pub(super) fn code(answer: &Value) -> String {
    let error = &answer["errors"][0];
    assert!(error["message"].is_string(), "{answer}");
    match (&error["code"], &error["detail"]) {
        (Value::String(code), Value::String(detail)) => format!("{code}.{detail}"),
        (Value::String(code), _) => code.clone(),
        _ => panic!("{answer}"),
    }
}
