//! A client that speaks HTTP/2 by hand, to leave undone what a proper one does: send the rest, read the answer.

use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::bytes::{BufMut, Bytes, BytesMut};

/// One connection, and the calls on it that are left as they are.
pub(crate) struct Raw {
    calls: SendRequest<Bytes>,
    _connection: JoinSet<()>,
    pub(crate) open: Vec<(Option<ResponseFuture>, SendStream<Bytes>)>,
    pub(crate) unread: Vec<RecvStream>,
}

impl Raw {
    /// Connects; answers are sent into a window of so many bytes.
    pub(crate) async fn connect(address: &str, window: u32) -> Result<Self, h2::Error> {
        let stream = TcpStream::connect(address).await.map_err(|_| h2::Reason::CONNECT_ERROR)?;
        let (calls, connection) = h2::client::Builder::new()
            .initial_window_size(window)
            .initial_connection_window_size(16 << 20)
            .handshake::<_, Bytes>(stream)
            .await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { calls, _connection: tasks, open: Vec::new(), unread: Vec::new() })
    }

    /// Begins a call, with a message or without, and goes no further.
    pub(crate) async fn begin(&mut self, method: &str, message: Option<&[u8]>) -> Result<(), h2::Error> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://server/aptix.v1.{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .expect("the request is one");
        self.calls = self.calls.clone().ready().await?;
        let (answer, mut sender) = self.calls.send_request(request, false)?;
        if let Some(message) = message {
            sender.send_data(Bytes::copy_from_slice(message), false)?;
        }
        self.open.push((Some(answer), sender));
        Ok(())
    }

    /// Begins a call whose messages go on, and waits for the beginning of its answer, of which nothing is read.
    pub(crate) async fn begin_and_leave(&mut self, method: &str, message: &impl Message) -> Result<(), h2::Error> {
        self.begin(method, Some(&framed(message))).await?;
        let Some((answer, _)) = self.open.last_mut() else { return Ok(()) };
        if let Some(answer) = answer.take() {
            self.unread.push(answer.await?.into_body());
        }
        Ok(())
    }

    /// Sends a whole call and waits for the beginning of its answer, of which nothing is read.
    pub(crate) async fn call_and_leave(&mut self, method: &str, message: &impl Message) -> Result<(), h2::Error> {
        self.begin(method, Some(&framed(message))).await?;
        let Some((Some(answer), mut sender)) = self.open.pop() else { return Ok(()) };
        sender.send_data(Bytes::new(), true)?;
        self.unread.push(answer.await?.into_body());
        Ok(())
    }
}

/// A message as gRPC sends it.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).expect("messages are small"));
    message.encode(&mut bytes).expect("there is room");
    bytes.freeze()
}
