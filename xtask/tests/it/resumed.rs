//! An upload whose connection is cut, by a real client to a real server: it goes on where it was cut, also after the server was
//! killed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aptix_client::connection::{self, Connection};
use aptix_engine::digest::sha256;
use aptix_model::batch::BlobRef;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::upload_blob_request::Part;
use tonic::transport::{Channel, Endpoint};

use crate::processes::{Machine, Server};

const MIB: usize = 1 << 20;

/// What passed through a connection that is cut once.
#[derive(Default)]
struct Passed {
    connections: AtomicUsize,
    /// Bytes to the server by the first connection, and by all later ones.
    first: AtomicU64,
    later: AtomicU64,
}

/// Listens, and passes everything on to the server; cuts the first connection after so many bytes to the server.
fn cutting(server: &Server, after: u64) -> (String, Arc<Passed>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (to, passed) = (server.url().trim_start_matches("http://").to_owned(), Arc::<Passed>::default());
    let counted = Arc::clone(&passed);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
            let is_first = counted.connections.fetch_add(1, Ordering::SeqCst) == 0;
            let (mut back, mut forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || drop(std::io::copy(&mut back, &mut forth)));
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || pass(client, server, &counted, is_first.then_some(after)));
        }
    });
    (url, passed)
}

fn pass(mut client: TcpStream, mut server: TcpStream, passed: &Passed, cut_after: Option<u64>) {
    let count = if cut_after.is_some() { &passed.first } else { &passed.later };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
        let sent = count.fetch_add(read as u64, Ordering::SeqCst) + read as u64;
        if cut_after.is_some_and(|after| sent >= after) {
            break;
        }
    }
    for stream in [client, server] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Cut at 60 of 64 MiB, the client sends little more than the rest over its next connection.
#[test]
fn a_cut_upload_sends_only_the_rest() {
    let machine = Machine::new();
    let server = machine.server();
    let (url, passed) = cutting(&server, 60 * MIB as u64);
    let content: Vec<u8> = (0..64 * MIB).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect();
    let blob = BlobRef { sha256: sha256(&content), size_bytes: content.len() as u64 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let kept = runtime.block_on(async {
        let connection =
            Connection::open(&connection::Server::open(url.parse().unwrap()), &"demo".parse().unwrap()).await.unwrap();
        let kept = connection.upload(None, blob.sha256, content.clone()).await.unwrap();
        assert!(connection.download(blob).await.unwrap() == content);
        kept
    });
    assert_eq!(kept, blob);
    let later = passed.later.load(Ordering::SeqCst);
    assert!(passed.connections.load(Ordering::SeqCst) >= 2 && later > 0, "it was cut");
    // What was on its way when the connection was cut is sent again: some windows of it.
    assert!(later < 12 * MIB as u64, "{later} bytes were sent after the cut");
}

/// A server that is killed in the middle of an upload has what came when it starts again, and the upload goes on from there.
#[expect(clippy::disallowed_methods, reason = "the handle is kept, and awaited")]
#[test]
fn an_upload_goes_on_after_the_server_was_killed() {
    let machine = Machine::new();
    let content: Vec<u8> = (0..16 * MIB).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect();
    let blob = BlobRef { sha256: sha256(&content), size_bytes: content.len() as u64 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = machine.server();
    runtime.block_on(async {
        let (parts, stream) = tokio::sync::mpsc::channel(4);
        let mut files = files(&server).await;
        let start = v1::UploadBlobStart {
            workspace_id: "demo".to_owned(),
            blob: Some(blob.into()),
            ..v1::UploadBlobStart::default()
        };
        parts.send(Part::Start(start)).await.unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(stream);
        let messages = tokio_stream::StreamExt::map(stream, |part| v1::UploadBlobRequest { part: Some(part) });
        let mut uploading = files.clone();
        let call = tokio::spawn(async move { uploading.upload_blob(messages).await.map(drop) });
        for chunk in content[..12 * MIB].chunks(MIB) {
            parts.send(Part::Chunk(chunk.to_vec().into())).await.unwrap();
        }
        while received(&mut files, blob).await.0 < 12 * MIB as u64 {
            tokio::task::yield_now().await;
        }
        drop(server);
        assert!(call.await.unwrap().is_err());
    });
    let server = machine.server();
    runtime.block_on(async {
        let (there, is_in_progress) = received(&mut files(&server).await, blob).await;
        let mib = MIB as u64;
        // What was not flushed yet may be lost.
        assert!(!is_in_progress && there.is_multiple_of(mib) && (mib..=12 * mib).contains(&there), "{there}");
        let (url, passed) = cutting(&server, u64::MAX);
        let connection =
            Connection::open(&connection::Server::open(url.parse().unwrap()), &"demo".parse().unwrap()).await.unwrap();
        assert_eq!(connection.upload(None, blob.sha256, content.clone()).await.unwrap(), blob);
        let sent = passed.first.load(Ordering::SeqCst);
        assert!(sent < 17 * mib - there, "{sent} bytes were sent beside the {there} that were there");
        assert!(connection.download(blob).await.unwrap() == content);
    });
}

async fn files(server: &Server) -> FileServiceClient<Channel> {
    FileServiceClient::new(Endpoint::from_shared(server.url()).unwrap().connect().await.unwrap())
}

async fn received(files: &mut FileServiceClient<Channel>, blob: BlobRef) -> (u64, bool) {
    let request = v1::StatUploadRequest { workspace_id: "demo".to_owned(), blob: Some(blob.into()) };
    let found = files.stat_upload(request).await.unwrap().into_inner();
    (found.received_bytes, found.is_in_progress)
}
