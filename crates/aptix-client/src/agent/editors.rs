//! Listens to editors on a Unix domain socket for each root: what they announce is held for as long as they are connected.
//!
//! An editor that says nothing costs nothing; one that sends half a line, or takes no answers, is disconnected.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::unsaved::Source;
use crate::unsaved::announced::announce;
use crate::unsaved::buffer::Buffer;
use crate::unsaved::buffers::{Buffers, Editor};
use crate::unsaved::protocol::{
    Answer, FileName, LINE_BYTES, Listed, Request, VERSION, line, not_greeted, request, too_long,
};
use crate::workspace::roots::editor_socket::EditorSocket;
use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::workspace::Workspace;

/// Most editors that are connected at one time, those that ask which buffers there are included.
const EDITORS: usize = 32;
/// How long an editor may take for its first line, for the rest of any other, and to take an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long nobody is accepted after the system refused to.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens for every root whose socket can be made, in tasks of `tasks`; logs where it cannot. Whoever
/// calls this holds the agent locks of all roots.
pub(super) fn listen(local: &Arc<Workspace>, locks: &[Lock], tasks: &mut JoinSet<()>) {
    let buffers: Arc<Buffers> = Arc::default();
    Source::Editors(Arc::clone(&buffers)).set(local);
    let places = Arc::new(Semaphore::new(EDITORS));
    let Some(lock) = locks.first() else { return };
    for (index, root) in local.roots().iter().enumerate() {
        let opened = root.state().listen_to_editors(lock).map_err(|error| error.to_string()).and_then(|socket| {
            let listener = socket.listener.try_clone().and_then(UnixListener::from_std);
            Ok((listener.map_err(|error| error.to_string())?, socket))
        });
        match opened {
            Ok((listener, socket)) => {
                tracing::info!(root = root.name(), socket = %socket.path.display(), "listening to editors");
                let desk = Desk { local: Arc::clone(local), root: index, buffers: Arc::clone(&buffers) };
                tasks.spawn(accept(listener, socket, Arc::new(desk), Arc::clone(&places)));
            }
            Err(why) => tracing::warn!(
                root = root.name(), %why,
                "the agent listens to no editors here: batches and reads do not know of unsaved buffers"
            ),
        }
    }
}

/// What the editors of one socket talk to.
struct Desk {
    local: Arc<Workspace>,
    root: usize,
    buffers: Arc<Buffers>,
}

async fn accept(listener: UnixListener, _socket: EditorSocket, desk: Arc<Desk>, places: Arc<Semaphore>) {
    let mut editors = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = editors.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let (desk, place) = (Arc::clone(&desk), Arc::clone(&places).try_acquire_owned());
                editors.spawn(async move {
                    let (read, mut write) = stream.into_split();
                    match place {
                        Ok(_place) => serve(&desk, BufReader::new(read), &mut write).await,
                        Err(_) => drop(send(&mut write, &line(&Answer::refused(too_many()))).await),
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no editor can connect for a moment");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Talks to one editor until it leaves, or does not keep to the protocol.
async fn serve(desk: &Arc<Desk>, mut read: BufReader<OwnedReadHalf>, write: &mut OwnedWriteHalf) {
    let editor = Arc::new(desk.buffers.editor());
    let mut is_greeted = false;
    loop {
        // Silence is fine once an editor has said which version it speaks.
        let begun = match is_greeted {
            true => read.fill_buf().await.is_ok(),
            false => matches!(timeout(PATIENCE, read.fill_buf()).await, Ok(Ok(_))),
        };
        if !begun {
            return;
        }
        let Ok(Ok(came)) = timeout(PATIENCE, next_line(&mut read)).await else { return };
        let answered = match came {
            Came::End => return,
            Came::TooLong => Answered::last(too_long()),
            Came::Line(text) => {
                let (desk, editor) = (Arc::clone(desk), Arc::clone(&editor));
                let work = tokio::task::spawn_blocking(move || answer(&desk, &editor, &text, is_greeted));
                let Ok(answered) = work.await else { return };
                answered
            }
        };
        let goes_on = answered.goes_on;
        if give(write, answered).await.is_err() || !goes_on {
            return;
        }
        is_greeted = true;
    }
}

/// What came from an editor.
enum Came {
    /// A line, without its line feed.
    Line(Vec<u8>),
    /// More than a line may have.
    TooLong,
    /// Nothing more, or half a line.
    End,
}

async fn next_line(read: &mut BufReader<OwnedReadHalf>) -> Result<Came, std::io::Error> {
    let mut line = Vec::new();
    loop {
        let piece = read.fill_buf().await?;
        if piece.is_empty() {
            return Ok(Came::End);
        }
        let (rest, is_whole) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(end) => (piece.get(..end).unwrap_or(piece), true),
            None => (piece, false),
        };
        if line.len() + rest.len() > LINE_BYTES {
            return Ok(Came::TooLong);
        }
        line.extend_from_slice(rest);
        let count = rest.len() + usize::from(is_whole);
        read.consume(count);
        if is_whole {
            return Ok(Came::Line(line));
        }
    }
}

/// What an editor is answered.
struct Answered {
    bytes: Vec<u8>,
    /// The buffers that follow. Each is written down when it is sent: as lines, all of them may take hundreds of megabytes.
    listed: Vec<Buffer>,
    /// Whether more may come.
    goes_on: bool,
}

impl Answered {
    fn with(answer: &Answer) -> Self {
        Self { bytes: line(answer), listed: Vec::new(), goes_on: true }
    }

    fn last(failure: Failure) -> Self {
        Self { goes_on: false, ..Self::with(&Answer::refused(failure)) }
    }
}

/// Answers a line. Blocks.
fn answer(desk: &Desk, editor: &Editor, text: &[u8], is_greeted: bool) -> Answered {
    let carried_out = match request(text) {
        Ok(Request::Hello { version: VERSION }) => Ok(hello(desk)),
        Ok(Request::Hello { version }) => return Answered::last(not_greeted(Some(version))),
        _ if !is_greeted => return Answered::last(not_greeted(None)),
        Ok(Request::Announce { path, doc_path, text }) => FileName::one_of(path, doc_path)
            .and_then(|name| announce(&desk.local, editor, &name, text))
            .map(|unsaved| Answer { unsaved: Some(unsaved), ..Answer::done() }),
        Ok(Request::Withdraw { path, doc_path }) => FileName::one_of(path, doc_path).map(|name| {
            editor.withdraw(name.as_str());
            Answer::done()
        }),
        Ok(Request::List {}) => return list(editor.list(desk.root)),
        Err(failure) => Err(failure),
    };
    Answered::with(&carried_out.unwrap_or_else(Answer::refused))
}

fn hello(desk: &Desk) -> Answer {
    let root = desk.local.roots().get(desk.root);
    Answer { version: Some(VERSION), root: root.map(|root| root.path().display().to_string()), ..Answer::done() }
}

fn list(listed: Vec<Buffer>) -> Answered {
    let answer = Answer { count: Some(listed.len()), ..Answer::done() };
    Answered { listed, ..Answered::with(&answer) }
}

fn listed_line(Buffer { path, real, text, .. }: Buffer) -> Vec<u8> {
    line(&Listed { path, real_path: real, text: text.as_deref().map(str::to_owned) })
}

fn too_many() -> Failure {
    Failure::new(Reason::ResourceExhausted, format!("{EDITORS} editors are connected to this agent, which is the most"))
        .hint("connect again once another one has left")
}

async fn give(write: &mut OwnedWriteHalf, Answered { bytes, listed, .. }: Answered) -> Result<(), std::io::Error> {
    send(write, &bytes).await?;
    for buffer in listed {
        let line = tokio::task::spawn_blocking(move || listed_line(buffer)).await?;
        send(write, &line).await?;
    }
    Ok(())
}

async fn send(write: &mut OwnedWriteHalf, bytes: &[u8]) -> Result<(), std::io::Error> {
    timeout(PATIENCE, write.write_all(bytes)).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}
