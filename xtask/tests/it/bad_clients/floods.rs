//! Floods of HTTP/2 frames that cost their sender little and the server an answer, a stream or memory each.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Quiet, SOON, assert_waited_little, machine};

/// Connections that flood at one time.
const FLOODERS: usize = 4;
/// Units that each sends at most: more than the server ends a connection for, or answers in passing.
const UNITS: u32 = 20_000;
/// Units of a sender that reads no answer: more than the buffers of both systems hold.
const DEAF_UNITS: u32 = 1_000_000;
/// Units that are sent in one write.
const WRITE: u32 = 100;
/// Rounds of the quiet client in which the server takes nothing more from a sender that it does not read from.
const STALLED: usize = 3;
/// The most memory that each connection may take, in a build without optimisation.
const MOST: u64 = 1 << 20;

/// Types of frames, and the flags that the floods use.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// The error code of a GOAWAY that ends a connection for its load.
const ENHANCE_YOUR_CALM: u32 = 11;
/// The error code of a call that its sender no longer wants.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, encoded without a table and without Huffman.
fn head() -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let path = text("/aptix.v1.BatchService/SubmitBatch");
    let (content_type, te, trailers) = (text("application/grpc"), text("te"), text("trailers"));
    // POST, http, then literals: `:path`, `:authority`, `content-type`, and one with a name of its own.
    [&[0x83, 0x86, 0x04], &*path, &[0x01], &*text("server"), &[0x0f, 0x10], &*content_type, &[0x00], &*te, &*trailers]
        .concat()
}

fn begin(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &head())
}

/// The number of the call that unit `number` begins.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

/// What the server does about a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It ends the connection.
    Ends,
    /// It answers each unit in its turn.
    Answers,
    /// It takes no more than it could send the answers of, which the sender does not read.
    Throttles,
}

/// What a flood sends first, and then again and again.
#[derive(Clone, Copy)]
struct Flood {
    first: fn() -> Vec<u8>,
    unit: fn(u32) -> Vec<u8>,
    outcome: Outcome,
}

/// Reads until the connection ends, and returns the code of the last GOAWAY; or until so many answers of this type have come.
async fn read(mut stream: OwnedReadHalf, kind: u8, most: u32) -> Result<(), Option<u32>> {
    let (mut goaway, mut answers) = (None, 0);
    let mut head = [0; 9];
    while answers < most {
        let mut payload = Vec::new();
        if stream.read_exact(&mut head).await.is_ok() {
            payload.resize(usize::from(head[1]) << 8 | usize::from(head[2]), 0);
        } else {
            return Err(goaway);
        }
        if stream.read_exact(&mut payload).await.is_err() {
            return Err(goaway);
        }
        if head[3] == GOAWAY {
            goaway = payload.get(4..8).map(|code| u32::from_be_bytes(code.try_into().unwrap()));
        }
        answers += u32::from((head[3], head[4]) == (kind, ACK));
    }
    Ok(())
}

impl Flood {
    fn units(self) -> u32 {
        if self.outcome == Outcome::Throttles { DEAF_UNITS } else { UNITS }
    }

    /// Sends all units, as fast as the server takes them.
    async fn send(self, mut stream: OwnedWriteHalf, sent: Arc<AtomicU32>) -> io::Result<()> {
        stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &(self.first)()].concat()).await?;
        for begin in (0..self.units()).step_by(WRITE as usize) {
            let units: Vec<_> = (begin..begin + WRITE).flat_map(self.unit).collect();
            stream.write_all(&units).await?;
            sent.fetch_add(WRITE, Ordering::Relaxed);
        }
        // The answer to this one shows that the flood was survived.
        stream.write_all(&frame(PING, 0, 0, &[0; 8])).await
    }

    /// One connection: how it ended, unless every unit was answered.
    async fn run(self, address: String, sent: Arc<AtomicU32>) -> Result<(), Option<u32>> {
        let (reads, writes) = TcpStream::connect(address).await.unwrap().into_split();
        let sending = self.send(writes, sent);
        let answers = match self.outcome {
            Outcome::Throttles => return sending.await.map_err(|_| None),
            Outcome::Answers => read(reads, (self.unit)(0)[3], UNITS),
            Outcome::Ends => read(reads, PING, 1),
        };
        // What the server sent before it ended the connection can be read after a write has failed.
        tokio::join!(sending, answers).1
    }
}

/// Floods over several connections beside a quiet client, and holds the server to what it does about it.
async fn assert_withstood(flood: Flood) {
    let (machine, server) = machine("", 4096);
    let mut quiet = Quiet::connect(&server).await;
    quiet.rounds(3).await;
    let before = server.memory();
    let sent = Arc::new(AtomicU32::new(0));
    let mut floods = JoinSet::from_iter((0..FLOODERS).map(|_| flood.run(server.address.clone(), Arc::clone(&sent))));
    let (mut taken, mut rounds) = (0, 0);
    while flood.outcome == Outcome::Throttles && rounds < STALLED {
        quiet.rounds(1).await;
        let now = sent.load(Ordering::Relaxed);
        rounds = if now == taken && now > 0 { rounds + 1 } else { 0 };
        taken = now;
    }
    if flood.outcome == Outcome::Throttles {
        assert!(floods.try_join_next().is_none(), "a connection ended");
        let all = u32::try_from(FLOODERS).unwrap() * DEAF_UNITS;
        assert!(taken < all, "the server took all of {all} units, and none of its answers was read");
    } else {
        quiet.rounds(3).await;
        while let Some(ended) = timeout(SOON, floods.join_next()).await.expect("the flood is over in time") {
            match (flood.outcome, ended.unwrap()) {
                (Outcome::Ends, Err(Some(ENHANCE_YOUR_CALM))) | (Outcome::Answers, Ok(())) => {}
                (expected, ended) => panic!("expected that the server {expected:?} it, but it ended with {ended:?}"),
            }
            quiet.rounds(1).await;
        }
    }
    let (most, now) = (before + FLOODERS as u64 * MOST, server.memory());
    assert!(now <= most, "{} bytes more, at most {}", now - before, most - before);
    assert_waited_little(&machine, FLOODERS as u64);
    drop(floods);
    quiet.rounds(1).await;
    assert!(server.terminate());
}

/// Calls that their sender resets as soon as they began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_calls_that_are_reset_at_once_is_ended() {
    let unit = |number| [begin(stream(number)), frame(RST_STREAM, 0, stream(number), &CANCEL)].concat();
    assert_withstood(Flood { first: Vec::new, unit, outcome: Outcome::Ends }).await;
}

/// Headers that never end, whether their parts have something in them or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_headers_that_never_end_is_ended() {
    let first = || frame(HEADERS, 0, stream(0), &head());
    let filled = |_| frame(CONTINUATION, 0, stream(0), b"\x00\x01x\x01y");
    let empty = |_| frame(CONTINUATION, 0, stream(0), &[]);
    assert_withstood(Flood { first, unit: filled, outcome: Outcome::Ends }).await;
    assert_withstood(Flood { first, unit: empty, outcome: Outcome::Ends }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_empty_data_is_ended() {
    let unit = |_| frame(DATA, 0, stream(0), &[]);
    assert_withstood(Flood { first: || begin(stream(0)), unit, outcome: Outcome::Ends }).await;
}

/// Frames that ask for an answer: the server takes the next one when the answer is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_pings_or_settings_takes_no_more_than_its_answers() {
    let ping = |number: u32| frame(PING, 0, 0, &[number.to_be_bytes(), [0; 4]].concat());
    // A table of 4096 bytes for headers.
    let settings = |_| frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0]);
    for unit in [ping as fn(u32) -> Vec<u8>, settings] {
        for outcome in [Outcome::Answers, Outcome::Throttles] {
            assert_withstood(Flood { first: Vec::new, unit, outcome }).await;
        }
    }
}
