//! The program itself: its first line, its end, its configuration.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::server::{connect_agent, create_text, hello, next, next_event, refusal, submit};

pub(crate) struct Program {
    child: Option<Child>,
    pid: u32,
    pub(crate) address: String,
}

impl Program {
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        let mut command = command(data_dir);
        command.args(more);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("the first line says where").to_owned();
        Self { pid: child.id(), child: Some(child), address }
    }

    /// What it writes to stderr, once.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.child.as_mut().and_then(|child| child.stderr.take()).unwrap()
    }

    /// The most bytes of its address space that it ever had, whether it used them or not.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
        size.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid.to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; answers its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let (ended, end) = mpsc::sync_channel(1);
        std::thread::spawn(move || ended.send(child.wait().unwrap().code()));
        end.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            self.signal("-KILL");
            panic!("the server ends within a minute")
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(["--listen", "127.0.0.1:0", "--log", "warn", "--data-dir"]).arg(data_dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn connect(program: &Program) -> BatchServiceClient<Channel> {
    let endpoint = tonic::transport::Endpoint::new(format!("http://{}", program.address)).unwrap();
    BatchServiceClient::new(endpoint.connect().await.unwrap())
}

/// The server says where it listens, keeps what it acknowledged through an orderly end and through a kill, and ends
/// with 0 when asked to.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept: Vec<v1::Batch> = Vec::new();
    for (round, signal) in ["-TERM", "-KILL", "-INT"].into_iter().enumerate() {
        let program = Program::start(dir.path(), &[]);
        let mut client = connect(&program).await;
        read_back(&mut client, &kept).await;
        let request = submit("w", &format!("r{round}"), vec![create_text("a", "text")]);
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
        assert_eq!(kept.last().unwrap().revision, kept.len() as u64);
        program.signal(signal);
        let expected = if signal == "-KILL" { None } else { Some(0) };
        assert_eq!(program.end(), expected, "{signal}");
    }
}

/// What the server cannot start with is said, with what to do, and ends it with 2 or 3.
#[test]
fn a_start_that_cannot_be_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let running = Program::start(dir.path(), &[]);
    let other = tempfile::tempdir().unwrap();
    let config = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut config.as_file(), b"lisen = '127.0.0.1:0'\n").unwrap();
    let config = config.path().to_str().unwrap();
    let cases: [(&Path, &[&str], i32, &str); 5] = [
        (dir.path(), &[], 3, "--data-dir"),
        (other.path(), &["--config", config], 3, "lisen"),
        (other.path(), &["--config", "/nonexistent/file"], 3, "/nonexistent/file"),
        (other.path(), &["--log-format", "xml"], 2, "xml"),
        (other.path(), &["--lisen", "1"], 2, "--lisen"),
    ];
    for (data_dir, arguments, code, said) in cases {
        let mut child = command(data_dir).args(arguments).spawn().unwrap();
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{error}");
        assert!(error.contains(said), "{said} in {error}");
    }
    running.signal("-TERM");
    assert_eq!(running.end(), Some(0));
}

/// An address that other machines can reach is refused, on the command line and in the file, unless the operator consents.
#[test]
fn an_address_that_other_machines_reach_needs_a_flag() {
    let dir = tempfile::tempdir().unwrap();
    let config = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut config.as_file(), b"listen = '0.0.0.0:0'\n").unwrap();
    let by_file = ["--config", config.path().to_str().unwrap()];
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
        command.args(arguments).arg("--data-dir").arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for arguments in [["--listen", "0.0.0.0:0"], ["--listen", "[::]:0"], by_file] {
        let output = program(&arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(error.contains("--insecure-no-auth"), "{error}");
    }
    let exposed = Program::spawn(program(&["--listen", "0.0.0.0:0", "--insecure-no-auth"]));
    exposed.signal("-TERM");
    assert_eq!(exposed.end(), Some(0));
}

/// A damaged journal stops the start, and `verify` names what is missing, until the operator accepts the loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_stops_the_start_until_its_loss_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::start(dir.path(), &[]);
    let mut client = connect(&program).await;
    let mut kept: Vec<v1::Batch> = Vec::new();
    for number in 0..20 {
        let request = submit("w", &format!("r{number}"), vec![create_text("a", &noise(3000, number))]);
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
    }
    assert_eq!(verify(dir.path()).0, Some(3), "a server uses the directory");
    program.signal("-KILL");
    program.end();
    assert_eq!(verify(dir.path()), (Some(0), String::new()));
    let journal = std::fs::File::options().write(true).open(dir.path().join("0.jnl")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&journal, &[0; 4096], 8 * 4096).unwrap();

    let mut child = command(dir.path()).spawn().unwrap();
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{error}");
    let (code, damages) = verify(dir.path());
    assert_eq!(code, Some(1), "{damages}");
    for said in [&error, &damages] {
        assert!(said.contains("workspace w: revisions ") && said.contains(" to 20"), "{said}");
    }
    assert!(error.contains("--accept-loss"), "{error}");

    let program = Program::start(dir.path(), &["--accept-loss"]);
    let mut client = connect(&program).await;
    let request = submit("w", "after", vec![create_text("a", "")]);
    let next = client.submit_batch(request).await.unwrap().into_inner().batch.unwrap();
    assert!(next.revision > 1 && next.revision < 20, "{}", next.revision);
    read_back(&mut client, &kept[..usize::try_from(next.revision).unwrap() - 1]).await;
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
    assert_eq!(verify(dir.path()).0, Some(0));
    assert_eq!(verify(&dir.path().join("nothing")).0, Some(3));
}

/// What `aptix-server verify` ends with, and the damages it names.
fn verify(data_dir: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    let output = command.args(["verify", "--data-dir"]).arg(data_dir).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let damages: Vec<_> = said.lines().filter(|line| line.starts_with("damage: ")).collect();
    (output.status.code(), damages.join("\n"))
}

/// What `status` exits with and prints.
fn status(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    let output = command.arg("status").args(arguments).arg("--data-dir").arg(data_dir).output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), format!("{printed}{said}"))
}

/// `status` describes the server that uses a data directory, and needs one.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_running_server_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let (code, said) = status(dir.path(), &[]);
    assert!(code == Some(3) && said.contains("there is no server's data in"), "{said}");
    let program = Program::start(dir.path(), &[]);
    let mut client = connect(&program).await;
    client.submit_batch(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    let endpoint = tonic::transport::Endpoint::new(format!("http://{}", program.address)).unwrap();
    let mut agent = AgentServiceClient::new(endpoint.connect().await.unwrap());
    let (_sender, mut feed) = connect_agent(&mut agent, hello("w", "a")).await.unwrap();
    next(&mut feed).await.unwrap();
    let (code, said) = status(dir.path(), &[]);
    let lines = [
        "health: all services serve",
        "workspaces: 1, 1 served by an agent",
        "open batches: 1, 0 waiting for a person or their owner",
        "tokens: none made, calls need none",
        "last backup: none since the server was started",
    ];
    assert_eq!(code, Some(0), "{said}");
    for line in lines {
        assert!(said.lines().any(|printed| printed == line), "{line:?} in {said}");
    }
    let operator = ["token", "create", "--workspace", "*", "--role", "operator", "--data-dir"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    assert!(command.args(operator).arg(dir.path()).output().unwrap().status.success());
    let (_, object) = status(dir.path(), &["--json"]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!((&object["tokens"], &object["contents"]["openBatches"]), (&1.into(), &1.into()), "{object}");
    assert_eq!(object["services"][0], serde_json::json!({ "service": "", "isServing": true }));
    assert_eq!(object["services"].as_array().unwrap().len(), 8, "the server, and each service of the protocol");
    assert!(object["contents"]["disk"]["freeBytes"].as_u64() > Some(0), "{object}");
    program.signal("-TERM");
    program.end();
    let (code, said) = status(dir.path(), &[]);
    assert!(code == Some(3) && said.contains("no server answers in the data directory"), "{said}");
    assert_eq!(said.matches("(os error").count(), 1, "{said}");
    let (code, help) = status(dir.path(), &["--help"]);
    assert!(code == Some(0) && !help.contains("--store"), "{help}");
}

/// After a write that the disk refused, every other is refused by name, what was acknowledged stays readable, and it is
/// all there when the disk is mended.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_stops_all_writes_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let limited = limited_program(dir.path());
    limit_files(&limited, "3000000");
    let mut client = connect(&limited).await;
    let mut kept = Vec::new();
    let refused = loop {
        let text = noise(500_000, kept.len() as u64);
        let request = submit("w", &format!("r{}", kept.len()), vec![create_text("a", &text)]);
        match client.submit_batch(request).await {
            Ok(answer) => kept.push(answer.into_inner().batch.unwrap()),
            Err(status) => break status,
        }
        assert!(kept.len() < 100, "the limit is reached");
    };
    assert!(!kept.is_empty());
    let expected = (Code::Unavailable, "UNAVAILABLE".to_owned(), "READ_ONLY".to_owned());
    assert_eq!(refusal(&refused), expected);
    let small = client.submit_batch(submit("w", "small", vec![create_text("a", "")])).await.unwrap_err();
    assert_eq!(refusal(&small), expected, "what would fit is refused too");
    let endpoint = tonic::transport::Endpoint::new(format!("http://{}", limited.address)).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    for service in ["", "aptix.v1.BatchService"] {
        let mut states = health.watch(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner();
        while next(&mut states).await.unwrap().status() != ServingStatus::NotServing {}
    }
    let (code, said) = status(dir.path(), &[]);
    assert!(code == Some(1) && said.contains("no service serves"), "{code:?} {said}");
    read_back(&mut client, &kept).await;

    // A new agent gets what there is, and cannot report.
    let endpoint = tonic::transport::Endpoint::new(format!("http://{}", limited.address)).unwrap();
    let mut agent = AgentServiceClient::new(endpoint.connect().await.unwrap());
    let (_sender, mut feed) = connect_agent(&mut agent, hello("w", "a")).await.unwrap();
    next(&mut feed).await.unwrap();
    for batch in &kept {
        assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().batch_id, batch.batch_id);
    }

    // It heals by itself when the cause has gone, without losing or inventing anything.
    limit_files(&limited, "unlimited");
    let mut states = health.watch(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    while next(&mut states).await.unwrap().status() != ServingStatus::Serving {}
    assert_eq!(status(dir.path(), &[]).0, Some(0));
    read_back(&mut client, &kept).await;
    let after = client.submit_batch(submit("w", "after", vec![create_text("a", "")])).await.unwrap().into_inner();
    kept.push(after.batch.unwrap());
    // What was refused may have been stored all the same, and comes first.
    while next_event(&mut feed).await.unwrap().batch.unwrap().batch_id != kept[kept.len() - 1].batch_id {}
    read_back(&mut client, &kept).await;
    limited.signal("-KILL");
    limited.end();

    let mended = Program::start(dir.path(), &[]);
    let mut client = connect(&mended).await;
    read_back(&mut client, &kept).await;
    client.submit_batch(submit("w", "next", vec![create_text("a", "")])).await.unwrap();
}

/// A server for which a write past a limit fails as one on a full disk does, instead of ending the process.
fn limited_program(dir: &Path) -> Program {
    let server = env!("CARGO_BIN_EXE_aptix-server");
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "--", server, "--listen", "127.0.0.1:0"]);
    command.args(["--log", "off", "--data-dir"]).arg(dir).stdout(Stdio::piped());
    Program::spawn(command)
}

/// Sets how many bytes a file of the program may have.
fn limit_files(program: &Program, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    assert!(Command::new("prlimit").args([&limit, "--pid", &program.pid.to_string()]).status().unwrap().success());
}

async fn read_back(client: &mut BatchServiceClient<Channel>, kept: &[v1::Batch]) {
    for batch in kept {
        let which = Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone()));
        let request =
            v1::GetBatchRequest { workspace_id: "w".to_owned(), batch: which, view: v1::BatchView::Full.into() };
        assert_eq!(client.get_batch(request).await.unwrap().into_inner().batch.as_ref(), Some(batch));
    }
}

/// Text that does not compress.
pub(crate) fn noise(length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).unwrap())
    });
    letters.take(length).collect()
}

#[test]
fn a_name_in_place_of_an_address_is_refused_with_what_is_expected() {
    let server = env!("CARGO_BIN_EXE_aptix-server");
    let refused = Command::new(server).args(["--listen", "localhost:7420"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("localhost:7420") && said.contains("such as 127.0.0.1:7420"), "{said}");
}
