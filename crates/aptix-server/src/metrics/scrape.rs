//! Answers Prometheus: HTTP/1.1 on a listener of its own, so that a busy server can still be looked at.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Connections at one time.
pub const CONNECTIONS: usize = 4;

/// Bytes of a request's line and headers.
const HEAD_BYTES: usize = 8 << 10;

/// How long a connection may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// Answers scrapes for as long as it is polled; without a listener there are none. Where there are too many connections, the oldest is
/// closed: one that never asks keeps no other from an answer.
pub async fn answer_scrapes(listener: Option<TcpListener>) -> Infallible {
    let Some(listener) = listener else { return std::future::pending().await };
    let (mut connections, mut oldest) = (JoinSet::new(), VecDeque::new());
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if oldest.len() >= CONNECTIONS {
                        oldest.pop_front().as_ref().inspect(|connection: &&AbortHandle| connection.abort());
                    }
                    oldest.push_back(connections.spawn(timeout(DEADLINE, answer(stream))));
                }
                Err(error) => {
                    tracing::warn!(%error, "a scrape could not be accepted");
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => oldest.retain(|connection| !connection.is_finished()),
        }
    }
}

/// Answers one request and ends the connection.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await?;
        if read == 0 || head.len() + read > HEAD_BYTES {
            return respond(&mut stream, "400 Bad Request", "expected a request of at most 8 KiB\n").await;
        }
        head.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    match line.split(|byte| *byte == b' ').collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics", _] => respond(&mut stream, "200 OK", &super::text()).await,
        [b"GET", ..] => respond(&mut stream, "404 Not Found", "expected /metrics\n").await,
        _ => respond(&mut stream, "405 Method Not Allowed", "expected GET /metrics\n").await,
    }
}

async fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
