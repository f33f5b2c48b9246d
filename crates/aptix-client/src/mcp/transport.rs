//! Newline-delimited JSON-RPC over stdin and stdout: rmcp's transport, with a reader that keeps what rmcp's drops.
//!
//! rmcp ignores a line that is not JSON, reads without bound, and waits for a client that does not read. Here such a line is
//! answered, nothing is read while [`CALLS`] requests are in progress, and such a client is disconnected.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::events::event::Event;
use aptix_model::events::trace::Trace;
use aptix_model::failure::Failure;
use aptix_model::limits::DOCUMENT_BYTES;
use aptix_model::reason::Reason;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, Empty, empty};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::line::{self, Message};

/// Requests in progress at a time.
const CALLS: usize = 16;
/// Longest message, in bytes: the largest document, and what is around it.
const LINE_BYTES: usize = DOCUMENT_BYTES + (1 << 20);

/// A place among the requests in progress; free once every clone is dropped.
type Place = Arc<OwnedSemaphorePermit>;

/// The transport of one client.
pub(super) struct LineTransport<R, W: AsyncWrite> {
    lines: FramedRead<R, AnyDelimiterCodec>,
    /// Messages read so far.
    count: u64,
    /// Writes; its own reading half has nothing to read.
    write: AsyncRwTransport<RoleServer, Empty, W>,
    /// How long writing a message may take.
    patience: Duration,
    /// What log events say of the connection.
    trace: Trace,
    /// Cancelled once a message could not be written.
    gone: CancellationToken,
    /// Cancelled once there is nothing more to read: no question is answered any more.
    left: CancellationToken,
    places: Arc<Semaphore>,
    /// The places of requests that are not answered.
    held: HashMap<RequestId, Place>,
    /// The answer to a line that was not a message, while it is being written.
    rejection: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new((read, write): (R, W), patience: Duration, trace: Trace, left: CancellationToken) -> Self {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), LINE_BYTES);
        Self {
            lines: FramedRead::new(read, codec),
            count: 0,
            write: AsyncRwTransport::new(empty(), write),
            patience,
            trace,
            gone: CancellationToken::new(),
            left,
            places: Arc::new(Semaphore::new(CALLS)),
            held: HashMap::new(),
            rejection: None,
        }
    }

    /// Admits a message: a request takes its place, and a cancelled one leaves it.
    fn admit(&mut self, mut message: Message, place: OwnedSemaphorePermit) -> Result<Message, ErrorData> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if self.held.contains_key(&request.id) {
                    let message = format!("a request with the id {} is not answered yet", request.id);
                    return Err(ErrorData::invalid_request(message, None));
                }
                let place = Arc::new(place);
                request.request.extensions_mut().insert(Arc::clone(&place));
                self.held.insert(request.id.clone(), place);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // rmcp does not answer it.
                    self.held.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    /// Begins to answer a line that is not a message.
    fn reject(&mut self, error: ErrorData, id: Option<RequestId>) {
        let failure = Failure::new(Reason::InvalidRequest, "a line on stdin is not a message");
        let trace = Trace { request: id.as_ref().map(ToString::to_string), ..self.trace.clone() };
        trace.log(Duration::ZERO, Event::CallRefused(&[failure]));
        self.rejection = Some(Box::pin(self.put(ServerJsonRpcMessage::error(error, id))));
    }

    /// Writes a message. A client that does not read it in time is disconnected.
    fn put(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (patience, gone) = (self.patience, self.gone.clone());
        let write = self.write.send(message);
        async move {
            let written = timeout(patience, write).await.unwrap_or_else(|late| Err(late.into()));
            written.inspect_err(|error| {
                tracing::error!(%error, "the client does not read its answers");
                gone.cancel();
            })
        }
    }

    /// Reads the next message. Cancel safe: what is under way is kept in `self`.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(rejection) = &mut self.rejection {
                let written = rejection.await;
                self.rejection = None;
                written.ok()?;
            }
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            // After an error the stream ends once, then continues.
            let line = match self.lines.next().await {
                Some(Ok(line)) if line.trim_ascii().is_empty() => continue,
                Some(Ok(line)) => line,
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    self.lines.next().await;
                    let message = format!("a message has at most {LINE_BYTES} bytes");
                    self.reject(ErrorData::invalid_request(message, None), None);
                    continue;
                }
                Some(Err(AnyDelimiterCodecError::Io(error))) => {
                    tracing::error!(%error, "stdin cannot be read");
                    return None;
                }
                None => return None,
            };
            self.count += 1;
            match line::parse(&line, self.count).and_then(|message| self.admit(message, place)) {
                Ok(message) => return Some(message),
                Err(error) => {
                    // An id in progress belongs to another request.
                    let id = line::id(&line).filter(|id| !self.held.contains_key(id));
                    self.reject(error, id);
                }
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
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

    async fn receive(&mut self) -> Option<Message> {
        let gone = self.gone.clone();
        tokio::select! {
            biased;
            () = gone.cancelled() => None,
            next = self.next() => next.or_else(|| {
                self.left.cancel();
                None
            }),
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The streams are closed when they are dropped: a message that the client does not read is not waited for.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

    use aptix_model::events::trace::Via;

    use super::*;

    fn ping(id: u32) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    fn id(message: Option<Message>) -> RequestId {
        match message {
            Some(JsonRpcMessage::Request(request)) => request.id,
            other => panic!("expected a request, found {other:?}"),
        }
    }

    /// A client, and the transport to it.
    fn connected(
        buffer: usize,
        patience: Duration,
    ) -> (DuplexStream, LineTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>) {
        let (client, server) = tokio::io::duplex(buffer);
        let (read, write) = tokio::io::split(server);
        (client, LineTransport::new((read, write), patience, Trace::new(Via::Mcp), CancellationToken::new()))
    }

    /// Whether a future is pending when first polled.
    fn waits_for<T>(future: impl Future<Output = T>) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(future).poll(&mut context).is_pending()
    }

    /// Only so many requests are read; one that is answered, or cancelled, makes room for the next.
    #[tokio::test]
    async fn no_more_is_read_than_is_answered() {
        let (mut client, mut transport) = connected(1 << 20, Duration::from_secs(60));
        for number in 0..20 {
            client.write_all(ping(number).as_bytes()).await.unwrap();
        }
        let mut taken = Vec::new();
        for _ in 0..CALLS {
            taken.push(transport.receive().await.unwrap());
        }
        assert!(waits_for(transport.receive()));
        let answer = JsonRpcMessage::error(ErrorData::invalid_request("x", None), Some(id(taken.pop())));
        transport.send(answer).await.unwrap();
        assert_eq!(id(transport.receive().await), RequestId::Number(16));
        assert!(waits_for(transport.receive()));
        let held = transport.held.remove(&id(taken.pop()));
        drop(held);
        assert_eq!(id(transport.receive().await), RequestId::Number(17));
    }

    /// A client that does not read is disconnected after the timeout, whatever it sends.
    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected() {
        let (mut client, mut transport) = connected(100, Duration::from_millis(10));
        client.write_all(ping(1).as_bytes()).await.unwrap();
        let asked = id(transport.receive().await);
        let answer = JsonRpcMessage::error(ErrorData::invalid_request("x".repeat(1_000), None), Some(asked));
        assert_eq!(transport.send(answer).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        client.write_all(ping(2).as_bytes()).await.unwrap();
        assert!(transport.receive().await.is_none());
    }

    /// A line that is too long is answered, and the next one is read.
    #[tokio::test]
    async fn a_line_that_is_too_long_is_answered() {
        let (mut client, mut transport) = connected(1 << 20, Duration::from_secs(60));
        let sent = async {
            for _ in 0..=LINE_BYTES >> 20 {
                client.write_all(&[b'x'; 1 << 20]).await.unwrap();
            }
            client.write_all(format!("\n{}", ping(3)).as_bytes()).await.unwrap();
            let mut answer = String::new();
            BufReader::new(&mut client).read_line(&mut answer).await.unwrap();
            answer
        };
        let (received, answer) = tokio::join!(transport.receive(), sent);
        assert!(answer.contains("-32600") && answer.contains("a message has at most"), "{answer}");
        assert_eq!(id(received), RequestId::Number(3));
    }

    /// A line that comes in parts, with reading broken off between them, is one; the last one needs no end.
    #[tokio::test]
    async fn a_line_is_read_to_its_end() {
        let (mut client, mut transport) = connected(1 << 20, Duration::from_secs(60));
        let line = ping(7);
        let (one, other) = line.trim_end().split_at(10);
        client.write_all(one.as_bytes()).await.unwrap();
        assert!(waits_for(transport.receive()));
        client.write_all(other.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(id(transport.receive().await), RequestId::Number(7));
        assert!(transport.receive().await.is_none());
    }
}
