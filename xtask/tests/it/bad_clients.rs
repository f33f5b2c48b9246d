//! Clients that hold what others need and do nothing with it, beside a quiet one: each of its calls succeeds.
//!
//! What the quiet client waited for is counted by the server, in turns of others and groups of writes, and held to the bounds of
//! `turns.rs` and `committer.rs`.
//!
//! Every abuse comes from the address that the quiet client has as well, so that no limit by address helps it.

mod agent_storm;
mod agents;
mod floods;
mod idle_agents;
mod raw;
mod trickle;

use std::sync::LazyLock;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use h2::RecvStream;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use self::raw::{Raw, framed};
use crate::processes::{Machine, Server, create_request, get_request};

/// Nothing that is waited for takes longer, unless it is broken.
const SOON: Duration = Duration::from_secs(120);
/// The window that a client has unless it asks for another.
const WINDOW: u32 = 65_535;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Submits, reads back, lists, uploads and downloads, each within its time.
struct Quiet {
    channel: Channel,
    /// Differs from that of every other.
    name: String,
    calls: usize,
}

impl Quiet {
    async fn connect(server: &Server) -> Self {
        let endpoint = Endpoint::new(server.url()).unwrap().connect_timeout(SOON);
        let channel = timeout(SOON, endpoint.connect()).await.expect("it connects in time").unwrap();
        let name = Instant::now().duration_since(*BEGUN).as_nanos().to_string();
        Self { channel, name, calls: 0 }
    }

    fn batches(&self) -> BatchServiceClient<Channel> {
        BatchServiceClient::new(self.channel.clone())
            .max_decoding_message_size(8 << 20)
            .max_encoding_message_size(8 << 20)
    }

    async fn within<T>(
        &mut self,
        what: &str,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, Status> {
        self.calls += 1;
        let answer = timeout(SOON, call).await.map_err(|_| Status::deadline_exceeded(what.to_owned()))?;
        Ok(answer?.into_inner())
    }

    async fn submit(&mut self, text: &str) -> Result<v1::Batch, Status> {
        let request = create_request(&format!("{}-{}", self.name, self.calls), text);
        let mut batches = self.batches();
        let answer = self.within("submit", batches.submit_batch(request)).await?;
        Ok(answer.batch.expect("the answer has the batch"))
    }

    async fn upload(&mut self) -> Result<(), Status> {
        self.upload_all(format!("content {}", self.calls).as_bytes()).await
    }

    async fn upload_all(&mut self, content: &[u8]) -> Result<(), Status> {
        let parts = upload_of(content);
        let mut files = FileServiceClient::new(self.channel.clone());
        self.within("upload", files.upload_blob(tokio_stream::iter(parts))).await.map(drop)
    }

    /// One round of everything that a client does.
    async fn round(&mut self) -> Result<(), Status> {
        let batch = self.submit("text").await?;
        let mut batches = self.batches();
        self.within("get", batches.get_batch(get_request(&batch))).await?;
        let request =
            v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 5, ..v1::ListBatchesRequest::default() };
        self.within("list", batches.list_batches(request)).await?;
        self.upload().await
    }

    async fn rounds(&mut self, count: usize) {
        for round in 0..count {
            let done = self.round().await;
            done.unwrap_or_else(|status| panic!("call {} in round {round}: {status:?}", self.calls));
        }
    }
}

/// What a call waited for: its connection, turns of others, and groups of writes.
struct Wait {
    connection: u64,
    turns: u64,
    groups: u64,
}

/// What the server counted for calls that waited.
fn waits(machine: &Machine) -> Vec<Wait> {
    let log = machine.logged("server.log");
    let number = |line: &str, key: &str| {
        let value = line.split_once(key).unwrap_or_else(|| panic!("{key} in {line}")).1;
        value.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().unwrap()
    };
    let lines = log.lines().filter(|line| line.contains("call waited"));
    let wait = |line| Wait {
        connection: number(line, "connection="),
        turns: number(line, "waitedTurns="),
        groups: number(line, "waitedGroups="),
    };
    lines.map(wait).collect()
}

/// Holds the first client to what a quiet one may wait for, beside so many other connections. The server numbers connections
/// in the order in which they come.
#[track_caller]
fn assert_waited_little(machine: &Machine, others: u64) {
    for Wait { turns, groups, .. } in waits(machine).into_iter().filter(|wait| wait.connection == 1) {
        assert!(turns <= others, "{turns} turns of {others} other connections began meanwhile");
        assert!(groups <= 1, "it waited for {groups} groups of writes");
    }
}

fn upload_of(content: &[u8]) -> Vec<v1::UploadBlobRequest> {
    use aptix_model::wire::v1::upload_blob_request::Part;
    let sha256 = aptix_engine::digest::sha256(content).to_string();
    let blob = Some(v1::BlobRef { sha256, size_bytes: content.len() as u64 });
    let start = v1::UploadBlobStart { workspace_id: "w".to_owned(), blob, ..Default::default() };
    [Part::Start(start), Part::Chunk(content.to_vec().into())]
        .map(|part| v1::UploadBlobRequest { part: Some(part) })
        .into()
}

/// How an agent begins.
fn hello(workspace: &str) -> v1::ServeRequest {
    let (workspace_id, agent_id) = (workspace.to_owned(), "a".to_owned());
    let hello = v1::Hello { workspace_id, agent_id, roots: vec!["app".to_owned()], ..v1::Hello::default() };
    v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) }
}

fn machine(config: &str, open_files: u32) -> (Machine, Server) {
    let machine = Machine::new();
    let server = machine.server_with(config, open_files);
    (machine, server)
}

/// Calls whose message never comes.
async fn half_open(server: &Server, calls: usize) -> Raw {
    let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
    for _ in 0..calls {
        timeout(SOON, raw.begin("BatchService/SubmitBatch", None)).await.unwrap().unwrap();
    }
    raw
}

/// Uploads that say what comes, and then nothing.
async fn silent_uploads(server: &Server, uploads: usize) -> Raw {
    let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
    let start = framed(&upload_of(b"never comes").remove(0));
    for _ in 0..uploads {
        timeout(SOON, raw.begin("FileService/UploadBlob", Some(&start))).await.unwrap().unwrap();
    }
    raw
}

/// Connections that say nothing at all.
async fn silent_connections(server: &Server, count: usize) -> Vec<TcpStream> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(TcpStream::connect(&server.address).await.unwrap());
    }
    connections
}

fn watch_request(batch: &v1::Batch) -> v1::WatchBatchRequest {
    let (workspace_id, batch_id) = ("w".to_owned(), batch.batch_id.clone());
    v1::WatchBatchRequest { workspace_id, batch_id, view: v1::BatchView::Full.into(), ..Default::default() }
}

/// Watchers that never read their events.
async fn deaf_watchers(server: &Server, batch: &v1::Batch, count: usize, window: u32) -> Vec<Raw> {
    let request = watch_request(batch);
    let mut all = Vec::new();
    for _ in 0..count.div_ceil(60) {
        let mut raw = Raw::connect(&server.address, window).await.unwrap();
        for _ in 0..60 {
            timeout(SOON, raw.call_and_leave("BatchService/WatchBatch", &request)).await.unwrap().unwrap();
        }
        all.push(raw);
    }
    all
}

/// Downloads of which nothing is read, more than there is room for.
async fn deaf_downloads(server: &Server, quiet: &mut Quiet) -> Raw {
    let content = vec![7; 1 << 20];
    quiet.upload_all(&content).await.unwrap();
    let sha256 = aptix_engine::digest::sha256(&content).to_string();
    let request = framed(&v1::DownloadBlobRequest { workspace_id: "w".to_owned(), sha256 });
    let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
    for _ in 0..40 {
        raw.begin("FileService/DownloadBlob", Some(&request)).await.unwrap();
        if let Some((_, sender)) = raw.open.last_mut() {
            sender.send_data(tokio_util::bytes::Bytes::new(), true).unwrap();
        }
    }
    raw
}

/// Messages of 4 MiB of which the beginning comes, and no more.
async fn incomplete_messages(server: &Server) -> Raw {
    let mut message = vec![0];
    message.extend((4_u32 << 20).to_be_bytes());
    message.resize(100_000, 0);
    let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
    for _ in 0..16 {
        raw.begin("BatchService/SubmitBatch", Some(&message)).await.unwrap();
    }
    raw
}

/// Waits until the server has cut a stream off; what came before makes no room for more.
async fn cut_off(stream: &mut RecvStream) {
    while let Some(data) = stream.data().await {
        if data.is_err() {
            return;
        }
    }
    panic!("the stream ended in order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_calls_hold_up_nobody_and_are_ended() {
    let (machine, server) = machine("request_idle_seconds = 3", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let mut raw = half_open(&server, 128).await;
    quiet.rounds(3).await;
    for (answer, _) in &mut raw.open {
        let answer = timeout(SOON, answer.take().unwrap()).await.expect("the call is ended");
        assert_eq!(answer.unwrap().headers()["grpc-status"], (Code::DeadlineExceeded as i32).to_string().as_str());
    }
    assert_waited_little(&machine, 1);
}

/// Agents that never say Hello, or only its beginning, and one whose later message is cut short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_do_not_say_hello_hold_up_nobody_and_are_ended() {
    let (machine, server) = machine("request_idle_seconds = 3", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
    let whole = framed(&hello("w"));
    for number in 0..60 {
        let begun = (number % 2 == 0).then(|| whole.slice(..whole.len() - 1));
        timeout(SOON, raw.begin("AgentService/Serve", begun.as_deref())).await.unwrap().unwrap();
    }
    let mut cut_short = Raw::connect(&server.address, WINDOW).await.unwrap();
    cut_short.begin_and_leave("AgentService/Serve", &hello("cut-short")).await.unwrap();
    let (_, sender) = cut_short.open.last_mut().unwrap();
    sender.send_data(whole.slice(..7), true).unwrap();
    quiet.rounds(3).await;
    for (answer, _) in &mut raw.open {
        let answer = timeout(SOON, answer.take().unwrap()).await.expect("the call is ended");
        assert_eq!(answer.unwrap().headers()["grpc-status"], (Code::DeadlineExceeded as i32).to_string().as_str());
    }
    let stream = cut_short.unread.last_mut().unwrap();
    while let Some(data) = timeout(SOON, stream.data()).await.expect("the call is ended") {
        data.unwrap();
    }
    let trailers = stream.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], (Code::InvalidArgument as i32).to_string().as_str(), "{trailers:?}");
    assert_waited_little(&machine, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_uploads_hold_up_nobody_and_are_ended() {
    let (machine, server) = machine("upload_idle_seconds = 3", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(silent_uploads(&server, 16).await);
    }
    quiet.rounds(3).await;
    for (answer, _) in all.iter_mut().flat_map(|raw| &mut raw.open) {
        let answer = timeout(SOON, answer.take().unwrap()).await.expect("the upload is ended").unwrap();
        assert_ne!(answer.headers()["grpc-status"], "0");
    }
    assert_waited_little(&machine, 4);
}

/// The control: where silence is not limited, silent uploads keep the quiet client out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_uploads_keep_others_out_where_no_limit_is_set() {
    let limits = "patience_seconds = 3600\ntransfers_per_connection = 32\ntransfers_per_caller = 32";
    let (_machine, server) = machine(limits, 4096);
    let mut quiet = Quiet::connect(&server).await;
    quiet.rounds(1).await;
    let _raw = silent_uploads(&server, 32).await;
    let deadline = Instant::now() + SOON;
    let refused = loop {
        if let Err(refused) = quiet.upload().await {
            break refused;
        }
        assert!(Instant::now() < deadline, "the places are taken");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sockets_leave_the_store_its_files_and_give_way() {
    let (machine, server) = machine("", 64);
    let mut quiet = Quiet::connect(&server).await;
    quiet.rounds(1).await;
    let _sockets = silent_connections(&server, 51).await;
    quiet.rounds(3).await;
    let mut late = Quiet::connect(&server).await;
    // What the store writes grows past its buffers while the sockets are there.
    for _ in 0..30 {
        late.submit(&"x".repeat(900_000)).await.unwrap();
    }
    late.rounds(1).await;
    assert!(machine.logged("server.log").contains("allows fewer connections"), "{}", machine.logged("server.log"));
    assert_waited_little(&machine, 52);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_on_one_channel_leave_streams_for_other_calls() {
    let (machine, server) = machine("", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let batch = quiet.submit("text").await.unwrap();
    let request = watch_request(&batch);
    let (mut kept, mut refused) = (Vec::new(), 0);
    let mut batches = quiet.batches();
    for _ in 0..128 {
        match quiet.within("watch", batches.watch_batch(request.clone())).await {
            Ok(stream) => kept.push(stream),
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                assert!(status.message().contains("open another connection"), "{status:?}");
                refused += 1;
            }
        }
    }
    assert_eq!((kept.len(), refused), (64, 64));
    quiet.rounds(3).await;
    assert_waited_little(&machine, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_that_never_read_take_little_memory_and_are_cut_off() {
    let (machine, server) = machine("slow_seconds = 2\nheartbeat_seconds = 1", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let large = quiet.submit(&"x".repeat(1_000_000)).await.unwrap();
    let mut watchers = deaf_watchers(&server, &large, 600, 10).await;
    let mut agents = Raw::connect(&server.address, 10).await.unwrap();
    for number in 0..60 {
        agents.begin_and_leave("AgentService/Serve", &hello(&format!("w{number}"))).await.unwrap();
    }
    watchers.push(agents);
    quiet.rounds(3).await;
    for stream in watchers.iter_mut().flat_map(|watcher| &mut watcher.unread) {
        timeout(SOON, cut_off(stream)).await.expect("a stream of which nothing is taken is cut off");
    }
    assert!(server.peak_memory() < 256 << 20, "{} bytes", server.peak_memory());
    quiet.rounds(1).await;
    assert_waited_little(&machine, 11);
}

/// Answers of which the transport has all, and the receiver takes nothing: each is small, and they are many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_answers_that_are_never_read_take_little_memory() {
    let (_machine, server) = machine("", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let small = quiet.submit(&"x".repeat(60_000)).await.unwrap();
    let request = get_request(&small);
    let mut clients = JoinSet::new();
    for _ in 0..12 {
        let (address, request) = (server.address.clone(), request.clone());
        clients.spawn(async move {
            let mut raw = Raw::connect(&address, 10).await.unwrap();
            for _ in 0..450 {
                // Those that are too many are cut off.
                if raw.call_and_leave("BatchService/GetBatch", &request).await.is_err() {
                    break;
                }
            }
            raw
        });
    }
    let held = clients.join_all().await;
    quiet.rounds(3).await;
    drop(held);
    assert!(server.peak_memory() < 256 << 20, "{} bytes", server.peak_memory());
    assert!(server.terminate());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_client_is_served_while_everything_is_tried_at_once() {
    let (machine, server) = machine("", 1024);
    let mut quiet = Quiet::connect(&server).await;
    let large = quiet.submit(&"x".repeat(1_000_000)).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(half_open(&server, 400).await);
        held.push(silent_uploads(&server, 16).await);
    }
    held.extend(deaf_watchers(&server, &large, 600, WINDOW).await);
    let request = get_request(&large);
    for _ in 0..4 {
        let mut raw = Raw::connect(&server.address, WINDOW).await.unwrap();
        for _ in 0..50 {
            // Those that are too many are cut off at once.
            let _ = raw.call_and_leave("BatchService/GetBatch", &request).await;
        }
        held.push(raw);
    }
    held.push(deaf_downloads(&server, &mut quiet).await);
    for _ in 0..4 {
        held.push(incomplete_messages(&server).await);
    }
    let _sockets = silent_connections(&server, 1200).await;
    // One that writes as fast as it can, from one connection: it waits for its own groups, and for turns of others.
    let writer = Quiet::connect(&server).await;
    let mut writing = JoinSet::from_iter((0..32).map(|number| {
        let mut batches = writer.batches();
        async move {
            for round in 0..10 {
                batches.submit_batch(create_request(&format!("writer-{number}-{round}"), "text")).await.unwrap();
            }
        }
    }));
    quiet.rounds(20).await;
    while let Some(written) = writing.join_next().await {
        written.unwrap();
    }
    let mut newcomer = Quiet::connect(&server).await;
    newcomer.rounds(5).await;
    let mut agents = AgentServiceClient::new(newcomer.channel.clone());
    let requests = tokio_stream::iter([hello("w")]).chain(tokio_stream::pending());
    let mut feed = newcomer.within("serve", agents.serve(requests)).await.unwrap();
    for _ in 0..10 {
        timeout(SOON, feed.message()).await.expect("an event comes in time").unwrap().unwrap();
    }
    assert!(server.peak_memory() < 256 << 20, "{} bytes", server.peak_memory());
    let others = u64::try_from(held.len()).unwrap() + 2;
    assert_waited_little(&machine, others);
    // The control: calls of others did wait, and the server counted it.
    assert!(waits(&machine).iter().any(|wait| wait.connection != 1 && wait.groups > 0), "nothing was counted");
    drop(held);
}
