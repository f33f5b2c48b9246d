//! A client that speaks HTTP/2 by hand: it sends what no gRPC client would, and takes the answer as it came.

use h2::client::SendRequest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tonic::Status;
use tonic::codegen::http::{HeaderMap, Request, request};

use crate::server::SOON;

/// One connection.
pub(crate) struct Raw {
    calls: SendRequest<Bytes>,
    _connection: JoinSet<()>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The status of HTTP.
    pub(crate) http: u16,
    /// The status of gRPC.
    pub(crate) status: Status,
}

impl Raw {
    pub(crate) async fn over(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (calls, connection) = h2::client::handshake(io).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        Self { calls, _connection: tasks }
    }

    /// Sends a request with this body, which stays open unless it `ends`; waits for the end of the answer.
    pub(crate) async fn call(&self, request: request::Builder, body: &[u8], ends: bool) -> Ended {
        let mut calls = self.calls.clone().ready().await.unwrap();
        let (answer, mut sender) = calls.send_request(request.body(()).unwrap(), false).unwrap();
        // The answer may have come before the body.
        let _ = sender.send_data(Bytes::copy_from_slice(body), ends);
        let answer = timeout(SOON, answer).await.expect("an answer").unwrap();
        let (http, mut headers) = (answer.status().as_u16(), answer.headers().clone());
        let mut body = answer.into_body();
        while let Some(data) = timeout(SOON, body.data()).await.expect("the answer ends") {
            let _ = body.flow_control().release_capacity(data.unwrap().len());
        }
        headers.extend(body.trailers().await.unwrap().unwrap_or_else(HeaderMap::new));
        let status = Status::from_header_map(&headers).unwrap_or_else(|| panic!("no status of gRPC: {headers:?}"));
        Ended { http, status }
    }
}

/// A call as a gRPC client begins it.
pub(crate) fn request(path: &str) -> request::Builder {
    let uri = format!("http://server{path}");
    Request::post(uri).header("content-type", "application/grpc").header("te", "trailers")
}

/// Bytes as a message: behind whether they are compressed, and their length.
pub(crate) fn framed(flag: u8, length: usize, bytes: &[u8]) -> Vec<u8> {
    [&[flag], u32::try_from(length).unwrap().to_be_bytes().as_slice(), bytes].concat()
}
