//! Messages as lines of JSON over stdin and stdout.
//!
//! Arguments reach their tool as they were written: a strict reader of documents sees a name that is there twice. Only a few
//! calls are taken at a time; until one of them is answered, nothing more is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::limits::DOCUMENT_BYTES;
use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Calls that are taken at a time.
const CALLS: usize = 16;
/// Bytes of a message: the largest document, and what is around it.
const LINE_BYTES: usize = DOCUMENT_BYTES + (1 << 20);

/// The arguments of a call as they were written.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) text: Arc<str>,
    /// Position of the call among all calls that were read.
    pub(super) number: u64,
}

/// A place among the calls that are taken; free once nobody holds it.
type Place = Arc<OwnedSemaphorePermit>;

/// Lines in, lines out.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    write: Arc<Mutex<W>>,
    /// What was read of a line so far.
    line: Vec<u8>,
    /// How many lines were read.
    lines: u64,
    /// Whether the rest of the line is passed over, because it is too long.
    passes_over: bool,
    places: Arc<Semaphore>,
    /// For the next call.
    free: Option<Place>,
    /// Of calls that are not answered.
    held: HashMap<RequestId, Place>,
    /// What is being written about a line that was no message.
    complaint: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    /// How long the client may take to read a message.
    patience: Duration,
    /// Cancelled once the client does not read any more.
    gone: CancellationToken,
}

/// How a line ended.
enum Line {
    Whole,
    TooLong,
    End,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The arguments of the call of this number, and the line without them; nothing if it is no call, or cannot be
/// understood.
fn take_apart(line: &[u8], number: u64) -> Option<(Arguments, Vec<u8>)> {
    let call: Call<'_> = serde_json::from_slice(line).ok()?;
    if call.method != "tools/call" {
        return None;
    }
    let Some(written) = call.params.arguments.map(RawValue::get) else {
        return Some((Arguments { text: "{}".into(), number }, line.to_owned()));
    };
    let start = written.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    let rest = [line.get(..start)?, b"{}", line.get(start + written.len()..)?].concat();
    Some((Arguments { text: written.into(), number }, rest))
}

#[derive(Deserialize)]
struct Numbered {
    id: RequestId,
}

fn no_call() -> ErrorData {
    ErrorData::invalid_params("a call has a name, a text, and arguments, an object; each once", None)
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, patience: Duration) -> Self {
        Self {
            read: BufReader::new(read),
            write: Arc::new(Mutex::new(write)),
            line: Vec::new(),
            lines: 0,
            passes_over: false,
            places: Arc::new(Semaphore::new(CALLS)),
            free: None,
            held: HashMap::new(),
            complaint: None,
            patience,
            gone: CancellationToken::new(),
        }
    }

    /// Reads to the end of a line. Nothing is lost when it is broken off: what was read stays in `line`.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                let is_whole = !self.line.is_empty() && !self.passes_over;
                return Ok(if is_whole { Line::Whole } else { Line::End });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.passes_over {
                self.line.extend_from_slice(available.get(..taken).unwrap_or_default());
            }
            self.read.consume(taken);
            if self.line.len() > LINE_BYTES {
                self.line = Vec::new();
                self.passes_over = true;
            }
            if end.is_some() {
                return Ok(if std::mem::take(&mut self.passes_over) { Line::TooLong } else { Line::Whole });
            }
        }
    }

    /// Understands a whole line.
    fn understand(&mut self, line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, ErrorData> {
        self.lines += 1;
        let call = take_apart(line, self.lines);
        let rest = call.as_ref().map_or(line, |(_, rest)| rest.as_slice());
        let mut message: RxJsonRpcMessage<RoleServer> = match serde_json::from_slice(rest) {
            Ok(message) => message,
            Err(error) if error.is_data() => return Err(ErrorData::invalid_request(error.to_string(), None)),
            Err(error) => return Err(ErrorData::parse_error(error.to_string(), None)),
        };
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if self.held.contains_key(&request.id) {
                    let message = format!("a request with the id {} is not answered yet", request.id);
                    return Err(ErrorData::invalid_request(message, None));
                }
                match (&mut request.request, call) {
                    (ClientRequest::CallToolRequest(request), Some((arguments, _))) => {
                        request.extensions.insert(arguments);
                    }
                    (ClientRequest::CallToolRequest(_), None) => return Err(no_call()),
                    (ClientRequest::CustomRequest(request), _) if request.method == "tools/call" => {
                        return Err(no_call());
                    }
                    _ => {}
                }
                if let Some(place) = self.free.take() {
                    request.request.extensions_mut().insert(Arc::clone(&place));
                    self.held.insert(request.id.clone(), place);
                }
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It will not be answered.
                    self.held.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    fn complain(&mut self, error: ErrorData, id: Option<RequestId>) {
        tracing::warn!(message = %error.message, "a line on stdin is no message");
        self.complaint = Some(Box::pin(self.put(ServerJsonRpcMessage::error(error, id))));
    }

    /// Writes a message as a line. A client that does not read it is gone.
    fn put(&self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static + use<R, W> {
        let (write, patience, gone) = (Arc::clone(&self.write), self.patience, self.gone.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let written = async {
                let mut write = write.lock().await;
                write.write_all(&line).await?;
                write.flush().await
            };
            let written = timeout(patience, written).await.unwrap_or_else(|late| Err(late.into()));
            written.inspect_err(|error| {
                tracing::error!(%error, "the client does not read what it is told");
                gone.cancel();
            })
        }
    }

    /// The next message. Whenever it is broken off, the next call goes on where it was.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(complaint) = &mut self.complaint {
                let written = complaint.await;
                self.complaint = None;
                written.ok()?;
            }
            if self.free.is_none() {
                self.free = Some(Arc::new(Arc::clone(&self.places).acquire_owned().await.ok()?));
            }
            match self.read_line().await {
                Ok(Line::Whole) => {}
                Ok(Line::TooLong) => {
                    let message = format!("a message has at most {LINE_BYTES} bytes");
                    self.complain(ErrorData::invalid_request(message, None), None);
                    continue;
                }
                Ok(Line::End) => return None,
                Err(error) => {
                    tracing::error!(%error, "stdin cannot be read");
                    return None;
                }
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match self.understand(&line) {
                Ok(message) => return Some(message),
                Err(error) => {
                    let id = serde_json::from_slice::<Numbered>(&line).ok().map(|numbered| numbered.id);
                    // The answer to another request is not given here.
                    let id = id.filter(|id| !self.held.contains_key(id));
                    self.complain(error, id);
                }
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let place = id.and_then(|id| self.held.remove(id));
        let put = self.put(message);
        async move {
            let put = put.await;
            drop(place);
            put
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let gone = self.gone.clone();
        tokio::select! {
            biased;
            () = gone.cancelled() => None,
            next = self.next() => next,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.write.try_lock() {
            Ok(mut write) => write.shutdown().await,
            // Somebody waits for a client that does not read; nobody waits for them.
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(id: u32) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    fn id(message: Option<RxJsonRpcMessage<RoleServer>>) -> RequestId {
        match message {
            Some(JsonRpcMessage::Request(request)) => request.id,
            other => panic!("expected a request, found {other:?}"),
        }
    }

    /// Whether nothing comes of it yet.
    fn waits_for<T>(future: impl Future<Output = T>) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(future).poll(&mut context).is_pending()
    }

    /// Only so many calls are taken; one that is answered, or taken back, makes room for the next.
    #[tokio::test]
    async fn no_more_is_read_than_is_answered() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(server);
        let mut lines = Lines::new(read, write, Duration::from_secs(60));
        for number in 0..20 {
            client.write_all(ping(number).as_bytes()).await.unwrap();
        }
        let mut taken = Vec::new();
        for _ in 0..CALLS {
            taken.push(lines.receive().await.unwrap());
        }
        assert!(waits_for(lines.receive()));
        let answer = JsonRpcMessage::error(ErrorData::invalid_request("x", None), Some(id(taken.pop())));
        lines.send(answer).await.unwrap();
        assert_eq!(id(lines.receive().await), RequestId::Number(16));
        assert!(waits_for(lines.receive()));
        // Whoever still deals with it holds its place as well.
        let held = lines.held.remove(&id(taken.pop()));
        drop(held);
        assert_eq!(id(lines.receive().await), RequestId::Number(17));
    }

    /// A client that does not read is gone after a while, whatever it has to say.
    #[tokio::test]
    async fn who_does_not_read_is_gone() {
        let (mut client, server) = tokio::io::duplex(100);
        let (read, write) = tokio::io::split(server);
        let mut lines = Lines::new(read, write, Duration::from_millis(10));
        client.write_all(ping(1).as_bytes()).await.unwrap();
        let asked = id(lines.receive().await);
        let answer = JsonRpcMessage::error(ErrorData::invalid_request("x".repeat(1_000), None), Some(asked));
        assert_eq!(lines.send(answer).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        client.write_all(ping(2).as_bytes()).await.unwrap();
        assert!(lines.receive().await.is_none());
    }

    /// A line that comes in parts, with reading broken off between them, is one; the last one needs no end.
    #[tokio::test]
    async fn a_line_is_read_to_its_end() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(server);
        let mut lines = Lines::new(read, write, Duration::from_secs(60));
        let line = ping(7);
        let (one, other) = line.trim_end().split_at(10);
        client.write_all(one.as_bytes()).await.unwrap();
        assert!(waits_for(lines.receive()));
        client.write_all(other.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(id(lines.receive().await), RequestId::Number(7));
        assert!(lines.receive().await.is_none());
    }
}
