//! A stream of events over a connection of its own, of which nothing is read: the harness has thousands of them.

use anyhow::{Context, Result};
use h2::{RecvStream, SendStream};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::bytes::{BufMut as _, Bytes, BytesMut};

/// Begun, and left as it is.
pub(crate) struct IdleStream {
    _messages: SendStream<Bytes>,
    _answer: RecvStream,
    _connection: JoinSet<()>,
}

impl IdleStream {
    /// Calls a method with one message, and waits for the beginning of its answer. The call's messages go on if `is_open`.
    pub(crate) async fn open(
        address: &str,
        token: Option<&str>,
        method: &str,
        message: &impl Message,
        is_open: bool,
    ) -> Result<Self> {
        let (calls, connection) = h2::client::handshake(TcpStream::connect(address).await?).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // The server closes it at the end.
            let _ = connection.await;
        });
        let mut request = http::Request::post(format!("http://server/aptix.v1.{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(())?;
        let (answer, mut messages) = calls.ready().await?.send_request(request, false)?;
        messages.send_data(framed(message)?, !is_open)?;
        let answer = answer.await?;
        let refused = answer.headers().get("grpc-status");
        anyhow::ensure!(refused.is_none(), "the stream is refused: {:?}", answer.headers());
        Ok(Self { _messages: messages, _answer: answer.into_body(), _connection: tasks })
    }
}

/// A message as gRPC sends it.
fn framed(message: &impl Message) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).context("the message is small")?);
    message.encode(&mut bytes)?;
    Ok(bytes.freeze())
}
