//! A caller that asks for as much work as it can does not delay others: other calls, heartbeats and the end of the program
//! go on while every costly input is sent, and no call outlives its deadline.
//!
//! What a quiet caller waits behind is counted by the server, in turns and groups of writes, and not measured in seconds.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use prost::Message;
use tempfile::NamedTempFile;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::process::Program;
use crate::server::{connect_agent, create_text, hello, line_patch, next, submit};

/// The deadline of each costly call.
const DEADLINE: Duration = Duration::from_secs(20);
/// How late the end of a call may be noticed on a busy machine.
const LATEST: Duration = Duration::from_secs(120);
/// Heartbeats that come while costly calls are under way.
const HEARTBEATS: usize = 3;
/// Calls that write at one time.
const WRITERS: usize = 6;

const SUBMIT: &str = "/aptix.v1.BatchService/SubmitBatch";

/// Messages as the bytes that they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(to, &item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; prost::bytes::Buf::remaining(from)];
        prost::bytes::Buf::copy_to_slice(from, &mut bytes);
        Ok(Some(bytes))
    }
}

async fn channel(address: &str) -> Channel {
    Endpoint::new(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A submit that is only checked.
fn rehearsal(files: Vec<v1::FilePatch>) -> Vec<u8> {
    v1::SubmitBatchRequest { validate_only: true, ..submit("hostile", "r1", files) }.encode_to_vec()
}

/// A field of a message, by its number, that is itself a message of these bytes.
fn nested(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(bytes.len() + 8);
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut field);
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend_from_slice(bytes);
    field
}

fn anchored(path: &str, text: String) -> v1::FilePatch {
    let anchor = v1::Anchor { text, r#match: v1::AnchorMatch::Regex.into(), ..v1::Anchor::default() };
    let edit = v1::AnchorEdit {
        place: Some(v1::anchor_edit::Place::After(anchor)),
        content: "x\n".to_owned(),
        ..v1::AnchorEdit::default()
    };
    v1::FilePatch { action: Some(v1::file_patch::Action::AnchorEdit(edit)), ..create_text(path, "") }
}

fn changes(count: i64) -> v1::FilePatch {
    let mut file = line_patch("app/a.txt");
    if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut file.action {
        let insert = |line| v1::InsertLines { after_line: line, new_lines: vec!["x".to_owned()] };
        let operation = |line| Some(v1::change::Operation::Insert(insert(line)));
        patch.changes =
            (0..count).map(|line| v1::Change { operation: operation(line), ..v1::Change::default() }).collect();
    }
    file
}

/// Everything that costs much to read or to check, by its name, with the method it is sent to.
fn costly() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let names = |count: usize| (0..count).map(|number| format!("a/b{number}/c/d/e/f/g"));
    let deep = (0..200_000).fold(Vec::new(), |mut bytes, _| {
        // Each key opens a group, which nothing closes.
        prost::encoding::encode_key(90, prost::encoding::WireType::StartGroup, &mut bytes);
        bytes
    });
    let base = submit("hostile", "r1", Vec::new());
    let around = |edit: &[u8]| {
        let message = v1::SubmitBatchRequest { content: None, validate_only: true, ..base.clone() };
        [message.encode_to_vec(), nested(3, edit)].concat()
    };
    let patch_of = |changes: &[u8]| {
        let patch = [nested(1, crate::server::sha256(b"").as_bytes()), changes.to_vec()].concat();
        around(&nested(3, &[nested(4, b"app/a.txt"), nested(6, &patch)].concat()))
    };
    let empty = |number: u32, count: usize| nested(number, b"").repeat(count);
    let mut long = String::new();
    for number in 0..300_000 {
        write!(long, "{number:x}|").unwrap();
    }
    vec![
        (
            "regexes",
            SUBMIT,
            rehearsal((0..10_000).map(|n| anchored(&format!("f{n}"), format!("{n}\\w{{1,30}}"))).collect()),
        ),
        ("one large regex", SUBMIT, rehearsal(vec![anchored("f", long)])),
        (
            "nested repeats",
            SUBMIT,
            rehearsal((0..5_000).map(|n| anchored(&format!("f{n}"), format!("((\\pL{{9}}){{9}}){{9}}{n}"))).collect()),
        ),
        ("files", SUBMIT, rehearsal(names(10_000).map(|name| create_text(&name, "x")).collect())),
        ("too many files", SUBMIT, rehearsal(names(60_000).map(|name| create_text(&name, "")).collect())),
        ("changes", SUBMIT, rehearsal(vec![changes(60_000)])),
        ("too many changes", SUBMIT, rehearsal(vec![changes(300_000)])),
        ("empty files", SUBMIT, around(&empty(3, 2_000_000))),
        ("empty changes", SUBMIT, patch_of(&empty(2, 2_000_000))),
        ("unclosed groups", SUBMIT, [base.encode_to_vec(), deep].concat()),
        ("unknown fields", SUBMIT, [base.encode_to_vec(), empty(99, 1_000_000)].concat()),
        ("empty digests", "/aptix.v1.FileService/FindMissingBlobs", [nested(1, b"w"), empty(2, 2_000_000)].concat()),
        (
            "empty failures",
            "/aptix.v1.AgentService/ReportBatch",
            [nested(1, b"w"), nested(4, &empty(3, 2_000_000))].concat(),
        ),
        ("too large", SUBMIT, vec![0; 5 << 20]),
    ]
}

/// What one costly call came to. It ends at its deadline, however late that is noticed.
async fn send(channel: Channel, method: &'static str, message: Vec<u8>) -> (Code, String) {
    let mut client = tonic::client::Grpc::new(channel).max_encoding_message_size(64 << 20);
    client.ready().await.unwrap();
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    let call = client.unary(request, PathAndQuery::from_static(method), Raw);
    match timeout(DEADLINE + LATEST, call).await.expect("no call outlives its deadline") {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

/// What the server counted for calls that waited, by connection: turns of others, and groups of writes.
pub(crate) fn counted(log: &str) -> Vec<(u64, u64, u64)> {
    let number = |line: &str, key: &str| {
        let value = line.split_once(key)?.1;
        value.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let lines = log.lines().filter(|line| line.contains("call waited"));
    lines
        .map(|line| {
            let counts = ["connection=", "waitedTurns=", "waitedGroups="].map(|key| number(line, key));
            let [Some(connection), Some(turns), Some(groups)] = counts else { panic!("{line}") };
            (connection, turns, groups)
        })
        .collect()
}

/// A server that beats every second and logs the calls that waited.
fn start(dir: &Path, config: &NamedTempFile, log: &NamedTempFile) -> Program {
    std::io::Write::write_all(&mut config.as_file(), b"heartbeat_seconds = 1").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(["--listen", "127.0.0.1:0", "--log", "warn,aptix_server::waited=debug", "--config"]);
    command.arg(config.path()).arg("--data-dir").arg(dir).stdout(Stdio::piped()).stderr(log.reopen().unwrap());
    Program::spawn(command)
}

/// Counts the messages that an agent is sent, until all is over.
async fn hear(channel: Channel, heard: Arc<AtomicUsize>, over: Arc<AtomicBool>) {
    let (_sender, mut feed) = connect_agent(&mut AgentServiceClient::new(channel), hello("w", "agent")).await.unwrap();
    while !over.load(Ordering::Relaxed) {
        next(&mut feed).await.unwrap();
        heard.fetch_add(1, Ordering::Relaxed);
    }
}

/// Submits one batch after the other until all is over.
async fn ask_quietly(channel: Channel, over: Arc<AtomicBool>) {
    let mut client = BatchServiceClient::new(channel);
    for number in 0.. {
        // A message that weighs something has its turn as soon as a small one.
        let text = "x".repeat(if number % 4 == 0 { 1 << 20 } else { 1 });
        let request = submit("quiet", &format!("r{number}"), vec![create_text("a", &text)]);
        client.submit_batch(v1::SubmitBatchRequest { validate_only: number % 2 == 0, ..request }).await.unwrap();
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
}

async fn write_much(channel: Channel, writer: usize, over: Arc<AtomicBool>) {
    let mut client = BatchServiceClient::new(channel);
    for number in 0.. {
        let files = vec![create_text("a", &"x".repeat(20_000))];
        client.submit_batch(submit("hostile", &format!("{writer}-{number}"), files)).await.unwrap();
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
}

/// Sends all costly inputs at once, twice, and until heartbeats have come meanwhile.
async fn send_all(channel: &Channel, inputs: &[(&'static str, &'static str, Vec<u8>)], heard: &AtomicUsize) {
    let before = heard.load(Ordering::Relaxed);
    let mut rounds = 0;
    while rounds < 2 || heard.load(Ordering::Relaxed) < before + HEARTBEATS {
        rounds += 1;
        let mut sent = JoinSet::new();
        for (name, method, message) in inputs.iter().cloned() {
            let call = send(channel.clone(), method, message);
            sent.spawn(async move { (name, call.await) });
        }
        while let Some(answer) = sent.join_next().await {
            let (name, (code, message)) = answer.unwrap();
            println!("{name}: {code:?}: {message:.200}");
            assert!(code != Code::Internal || name == "unclosed groups", "{name}: {message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_of_costly_calls_does_not_delay_others() {
    let dir = tempfile::tempdir().unwrap();
    let config = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let log = NamedTempFile::new().unwrap();
    let program = start(dir.path(), &config, &log);
    // The server numbers connections in the order in which they come.
    let (quiet, hostile) = (channel(&program.address).await, channel(&program.address).await);
    let over = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(AtomicUsize::new(0));
    let hearing = JoinSet::from_iter([hear(channel(&program.address).await, Arc::clone(&heard), Arc::clone(&over))]);
    let asking = JoinSet::from_iter([ask_quietly(quiet, Arc::clone(&over))]);
    let writing = JoinSet::from_iter((0..WRITERS).map(|writer| write_much(hostile.clone(), writer, Arc::clone(&over))));
    let inputs = costly();
    send_all(&hostile, &inputs, &heard).await;
    over.store(true, Ordering::Relaxed);
    asking.join_all().await;
    writing.join_all().await;
    hearing.join_all().await;
    let (of_quiet, of_others): (Vec<_>, Vec<_>) = counted(&std::fs::read_to_string(log.path()).unwrap())
        .into_iter()
        .partition(|(connection, ..)| *connection == 1);
    let most = |waits: &[(u64, u64, u64)]| {
        let most = |of: fn(&(u64, u64, u64)) -> u64| waits.iter().map(of).max().unwrap_or_default();
        (waits.len(), most(|wait| wait.1), most(|wait| wait.2))
    };
    let (quiet_waits, other_waits) = (most(&of_quiet), most(&of_others));
    println!("calls that waited, most turns, most groups: quiet {quiet_waits:?}, others {other_waits:?}");
    let (_, turns, groups) = quiet_waits;
    assert!(turns <= 1, "{turns} turns of the one other caller began before a quiet call had its own");
    assert!(groups <= 1, "a quiet call waited for {groups} groups");
    // What is not counted cannot be too much: a caller with many calls at once waits for the quiet one.
    let (_, turns, groups) = other_waits;
    assert!(turns > 0 && groups > 0, "{other_waits:?}");

    // While there is as much to do as there can be, the program ends in time.
    let mut last = JoinSet::new();
    for (_, method, message) in inputs {
        last.spawn(send(hostile.clone(), method, message));
    }
    last.join_next().await.unwrap().unwrap();
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
}
