//! Starts the project's programs in a directory of their own, and ends them with it.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use aptix_model::wire::v1;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::skip::skip;

/// A person's machine: a project directory, and a state directory that no other test uses.
pub(crate) struct Machine {
    directory: TempDir,
    /// What `aptix` is started by: programs that take something away from it, each with its options.
    behind: Vec<String>,
}

impl Machine {
    /// With an empty directory `project`.
    pub(crate) fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap(), behind: Vec::new() };
        for name in ["project", "state", "config", "data"] {
            make(&machine.path(name));
        }
        machine
    }

    /// With a person's policy for all their roots.
    pub(crate) fn with_policy(self, policy: &str) -> Self {
        self.set_policy(policy);
        self
    }

    /// With programs that may write only where modes allow it, even as root.
    pub(crate) fn with_modes(self) -> Self {
        match rustix::process::geteuid().is_root() {
            true => self.behind(&["setpriv", "--bounding-set=-dac_override"]),
            false => self,
        }
    }

    /// With programs that the system lets write so many bytes into one file.
    pub(crate) fn with_files_of_at_most(self, bytes: u64) -> Self {
        // By default the signal ends the program; without it the write fails.
        self.behind(&["env", "--ignore-signal=XFSZ", "prlimit", &format!("--fsize={bytes}")])
    }

    fn behind(mut self, words: &[&str]) -> Self {
        self.behind.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// Makes this the person's policy for all their roots.
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    pub(crate) fn set_policy(&self, policy: &str) {
        let file = self.path("config/aptix/policy.toml");
        write(&file, policy);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A path in this machine's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a file into the project.
    pub(crate) fn put(&self, name: &str, content: &str) {
        write(&self.path("project").join(name), content);
    }

    /// Every file of the project with its text, by path.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        collect(&self.path("project"), "", &mut files);
        files.sort();
        files
    }

    /// Whether a file of the project is executable.
    pub(crate) fn is_executable(&self, name: &str) -> bool {
        fs::metadata(self.path("project").join(name)).unwrap().permissions().mode() & 0o111 != 0
    }

    /// `aptix` with arguments, its state kept on this machine.
    pub(crate) fn aptix(&self, arguments: &[&str]) -> Command {
        let aptix = binary("aptix");
        let mut command = match self.behind.split_first() {
            Some((program, options)) => {
                let mut command = Command::new(program);
                command.args(options).arg(aptix);
                command
            }
            None => Command::new(aptix),
        };
        command
            .args(arguments)
            .env("HOME", self.directory.path())
            .env("USER", "ann")
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    /// Starts a server that keeps its data on this machine.
    pub(crate) fn server(&self) -> Server {
        self.server_at("127.0.0.1:0")
    }

    /// Starts a server again, where an earlier one listened.
    pub(crate) fn server_at(&self, address: &str) -> Server {
        self.start_server(Command::new(binary("aptix-server")), address, |_| ())
    }

    /// Starts a server in surroundings of its own.
    pub(crate) fn server_that(&self, surround: impl FnOnce(&mut Command)) -> Server {
        self.start_server(Command::new(binary("aptix-server")), "127.0.0.1:0", surround)
    }

    /// Starts a server with a configuration, under a limit of open files. Its threads share one heap: with one for each, as glibc
    /// has it, what is freed in one is of no use to the others, and how much memory a busy server takes depends on how many
    /// threads its machine keeps waiting.
    pub(crate) fn server_with(&self, config: &str, open_files: u32) -> Server {
        write(&self.path("server.toml"), config);
        let mut command = Command::new("prlimit");
        command.args([format!("--nofile={open_files}:{open_files}"), "--".to_owned()]).arg(binary("aptix-server"));
        command.env("MALLOC_ARENA_MAX", "1");
        command.arg("--config").arg(self.path("server.toml")).env("APTIX_LOG", "info,aptix_server::waited=debug");
        self.start_server(command, "127.0.0.1:0", |_| ())
    }

    fn start_server(&self, mut command: Command, address: &str, surround: impl FnOnce(&mut Command)) -> Server {
        command.args(["--listen", address, "--data-dir"]).arg(self.path("data")).stdout(Stdio::piped());
        command.stderr(self.log("server.log"));
        surround(&mut command);
        let mut process = Running(command.spawn().unwrap());
        let mut first = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim_end().strip_prefix("listening on ").map(str::to_owned);
        let address =
            address.unwrap_or_else(|| panic!("the server began with {first:?}\n{}", self.logged("server.log")));
        Server { process, address }
    }

    /// Starts an agent that serves this machine's project as workspace `demo` and asks no one.
    pub(crate) fn agent(&self, server: &Server) -> Running {
        self.agent_that(server, "auto")
    }

    /// Starts an agent that decides about writes in this way.
    pub(crate) fn agent_that(&self, server: &Server, approve: &str) -> Running {
        self.agent_in(server, approve, |_| ())
    }

    /// Starts an agent that decides in this way, in surroundings of its own.
    pub(crate) fn agent_in(&self, server: &Server, approve: &str, surround: impl FnOnce(&mut Command)) -> Running {
        self.agent_at(&server.url(), approve, surround)
    }

    /// Starts one that is given this address of its server.
    pub(crate) fn agent_at(&self, url: &str, approve: &str, surround: impl FnOnce(&mut Command)) -> Running {
        let arguments = ["agent", "--server", url, "--workspace", "demo", "--root", "project", "--approve", approve];
        let mut command = self.aptix(&arguments);
        command.stderr(self.log("agent.log"));
        surround(&mut command);
        Running(command.spawn().unwrap())
    }

    /// A file for a process to write its log to, after what is in it.
    pub(crate) fn log(&self, name: &str) -> fs::File {
        write(&self.path(name), &self.logged(name));
        fs::File::options().append(true).open(self.path(name)).unwrap()
    }

    /// What was logged so far.
    pub(crate) fn logged(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What comes of a command that talks to the server.
    pub(crate) fn call(&self, server: &Server, command: &str, arguments: &[&str]) -> Output {
        let url = server.url();
        let all = [&[command, "--server", &url, "--workspace", "demo"], arguments].concat();
        self.aptix(&all).output().unwrap()
    }

    /// What such a command prints as JSON, and its exit code.
    #[track_caller]
    pub(crate) fn ask(&self, server: &Server, command: &str, arguments: &[&str]) -> (Value, Option<i32>) {
        json(&self.call(server, command, &[&["--json"], arguments].concat()))
    }

    /// Submits a document and waits until its batch has ended.
    #[track_caller]
    pub(crate) fn submit(&self, server: &Server, document: &str) -> (Value, Option<i32>) {
        write(&self.path("submitted.json"), document);
        self.ask(server, "submit", &["--wait", "submitted.json"])
    }
}

/// A machine with a server, and an agent that decides about writes in this way.
pub(crate) fn served(approve: &str) -> (Machine, Server, Running) {
    let machine = Machine::new();
    let server = machine.server();
    let agent = machine.agent_that(&server, approve);
    // Of what is done on the workstation an agent reports what came after its first start.
    wait_until_served(&server);
    (machine, server, agent)
}

/// A server that takes calls.
pub(crate) struct Server {
    process: Running,
    /// Host and port.
    pub(crate) address: String,
}

impl Server {
    /// What clients of ours are given.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// The most memory that it ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.process.peak_memory()
    }

    /// The memory that it has now, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.process.memory_of("VmRSS:")
    }

    /// Bytes of memory that the system keeps when it crashes, at most.
    pub(crate) fn core_dump_bytes(&self) -> String {
        self.process.core_dump_bytes()
    }

    /// Asks it to end as a service manager does, and returns whether it ended well.
    pub(crate) fn terminate(mut self) -> bool {
        self.process.terminate() == Some(0)
    }
}

/// A process that is killed, as by `kill -9`, when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// The most memory that it ever had, in bytes, without the pages of its program, which grow with what is built in.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory_of("VmHWM:").saturating_sub(self.memory_of("RssFile:"))
    }

    /// Bytes of memory that the system keeps when it crashes, at most, whoever raises the limit.
    pub(crate) fn core_dump_bytes(&self) -> String {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.0.id())).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn memory_of(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        size.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    /// Asks it to end as a service manager does, and returns its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

/// Waits until something holds, and holds for good: a busy machine may look late. Two minutes are enough for anything here.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A random number below this one.
pub(crate) fn below(bound: u64) -> u64 {
    RandomState::new().hash_one(()) % bound
}

/// An address that no outgoing connection takes while no process listens there.
pub(crate) fn unused_address() -> String {
    let bind = || TcpListener::bind(("127.0.0.1", 20_000 + u16::try_from(below(12_000)).unwrap()));
    let listener = std::iter::repeat_with(bind).find_map(Result::ok).unwrap();
    listener.local_addr().unwrap().to_string()
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A request to create `a.txt` in the workspace `w`.
pub(crate) fn create_request(request: &str, text: &str) -> v1::SubmitBatchRequest {
    let create =
        v1::CreateFile { content: Some(v1::create_file::Content::Text(text.to_owned())), ..Default::default() };
    let file = v1::FilePatch {
        target: Some(v1::file_patch::Target::Path("a.txt".to_owned())),
        action: Some(v1::file_patch::Action::CreateFile(create)),
        ..Default::default()
    };
    let edit = v1::Edit { files: vec![file], ..Default::default() };
    v1::SubmitBatchRequest {
        workspace_id: "w".to_owned(),
        request_id: request.to_owned(),
        content: Some(v1::submit_batch_request::Content::Edit(edit)),
        view: v1::BatchView::Full.into(),
        ..Default::default()
    }
}

/// A request for a batch of the workspace `w`.
pub(crate) fn get_request(batch: &v1::Batch) -> v1::GetBatchRequest {
    let batch = Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone()));
    v1::GetBatchRequest { workspace_id: "w".to_owned(), batch, view: v1::BatchView::Full.into() }
}

/// A connection to a server, and the runtime that it lives in.
pub(crate) fn connected(server: &Server) -> (Runtime, Channel) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let channel = runtime.block_on(Endpoint::from_shared(server.url()).unwrap().connect()).unwrap();
    (runtime, channel)
}

/// Waits until an agent serves the workspace `demo`.
pub(crate) fn wait_until_served(server: &Server) {
    let (runtime, channel) = connected(server);
    let mut workspaces = WorkspaceServiceClient::new(channel);
    eventually("an agent serves the workspace", || {
        let asked = v1::GetWorkspaceRequest { workspace_id: "demo".to_owned() };
        let answer = runtime.block_on(workspaces.get_workspace(asked));
        answer.is_ok_and(|answer| answer.into_inner().workspace.is_some_and(|found| found.serving.is_some()))
    });
}

/// Runs Python code or a script with the example client's environment.
pub(crate) fn python(arguments: &[&str]) -> Output {
    python_with(arguments, "")
}

/// Runs it with an input.
pub(crate) fn python_with(arguments: &[&str], input: &str) -> Output {
    with_input(&mut python_command(arguments), input)
}

/// The command that runs it.
pub(crate) fn python_command(arguments: &[&str]) -> Command {
    let mut command = python_of("python-venv");
    command.args(arguments).current_dir(repository("examples/python"));
    command
}

/// The interpreter of an environment in the target directory.
pub(crate) fn python_of(environment: &str) -> Command {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let target = xtask.parent().and_then(Path::parent).unwrap();
    Command::new(made(target.join(environment).join("bin/python")))
}

/// Runs a compiled script of the example client in TypeScript; `None` where this machine cannot compile it.
pub(crate) fn node(script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let mut command = node_command(&format!("examples/typescript/dist/{script}"))?;
    Some(with_input(command.args(arguments), input))
}

/// The command that runs a script of the repository in Node.js; `None` where there is none.
pub(crate) fn node_command(script: &str) -> Option<Command> {
    if Command::new("npm").arg("--version").output().is_err() {
        skip(&format!("npm is not installed, so {script} was not tried"));
        return None;
    }
    let mut command = Command::new("node");
    command.arg(made(repository(script)));
    Some(command)
}

/// A path of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn made(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `cargo xtask test`, which makes it", path.display());
    path
}

/// What a command answers to this input.
pub(crate) fn with_input(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The one JSON object a command printed, and its exit code.
#[track_caller]
pub(crate) fn json(output: &Output) -> (Value, Option<i32>) {
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let streams = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        panic!("{error} in what it printed: {streams:?}")
    });
    (value, output.status.code())
}

pub(crate) fn binary(name: &str) -> PathBuf {
    made(Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name(name))
}

fn collect(directory: &Path, prefix: &str, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's own directory")]
pub(crate) fn make(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test's own files")]
pub(crate) fn write(file: &Path, content: &str) {
    make(file.parent().unwrap());
    fs::write(file, content).unwrap();
}
