//! Messages of protobuf by hand: those that cannot be decoded are refused, and what a decoder skips or overrides is not stored.

use std::path::Path;

use aptix_model::wire::v1;
use aptix_model::wire::v1::create_file::Content;
use aptix_model::wire::v1::submit_batch_request::Content as Submitted;
use prost::Message;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::http2::{Raw, framed, request};
use crate::process::Program;
use crate::server::{Clients, create_file, edit_of, refusal, submit};

/// The number of a field that no message has, as a group begins, as it ends, and with a length.
const GROUP: [u8; 2] = [0xc3, 0x3e];
const GROUP_END: [u8; 2] = [0xc4, 0x3e];
const UNKNOWN: [u8; 2] = [0xc2, 0x3e];

/// A method of each kind, and whether the string that begins its message is in a message of its own.
const METHODS: [(&str, bool); 10] = [
    ("BatchService/SubmitBatch", false),
    ("BatchService/GetBatch", false),
    ("BatchService/WatchBatch", false),
    ("FileService/ReadFile", false),
    ("FileService/UploadBlob", true),
    ("FileService/DownloadBlob", false),
    ("AgentService/Serve", true),
    ("AgentService/ReportBatch", false),
    ("ToolService/CallTool", false),
    ("WorkspaceService/WatchWorkspace", false),
];

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field with a length.
fn field(tag: &[u8], bytes: &[u8]) -> Vec<u8> {
    [tag, &varint(bytes.len() as u64), bytes].concat()
}

/// Groups, one in the other.
fn nested(levels: usize) -> Vec<u8> {
    [GROUP.repeat(levels), GROUP_END.repeat(levels)].concat()
}

async fn connected(server: &Program) -> (Raw, Clients) {
    let raw = Raw::over(TcpStream::connect(&server.address).await.unwrap()).await;
    let channel = Endpoint::new(format!("http://{}", server.address)).unwrap().connect().await.unwrap();
    (raw, Clients::over(channel))
}

/// Each is refused when it is decoded, whatever method it calls and whatever it is nested in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_decoded_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let (raw, _) = connected(&server).await;
    let cases = [
        ("a length of 2^40", [vec![0x0a], varint(1 << 40), b"w".to_vec()].concat()),
        ("a length of 2^64 - 1", [vec![0x0a], varint(u64::MAX), b"w".to_vec()].concat()),
        ("a string that is not UTF-8", field(&[0x0a], &[0xff, 0xfe])),
        ("101 levels", nested(101)),
        ("100,000 levels", nested(100_000)),
        ("a number without an end", vec![0xff; 11]),
        ("the number 0 of a field", vec![0x02, 0x00]),
    ];
    for (what, inner) in cases {
        for (method, is_nested) in METHODS {
            let message = if is_nested { field(&[0x0a], &inner) } else { inner.clone() };
            let body = framed(0, message.len(), &message);
            let ended = raw.call(request(&format!("/aptix.v1.{method}")), &body, true).await;
            let expected = (Code::InvalidArgument, "INVALID_REQUEST".to_owned(), String::new());
            assert_eq!(refusal(&ended.status), expected, "{method}, {what}: {ended:?}");
        }
    }
}

/// The length is believed neither by waiting for so much nor by making room for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_4_gib_is_refused_at_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let (raw, _) = connected(&server).await;
    let before = server.most_memory();
    for (method, _) in METHODS {
        let path = format!("/aptix.v1.{method}");
        // The body does not end: nothing but its length is known.
        let ended = raw.call(request(&path), &framed(0, u32::MAX as usize, &[]), false).await;
        let expected = (Code::InvalidArgument, "TOO_LARGE".to_owned(), "MESSAGE".to_owned());
        assert_eq!(refusal(&ended.status), expected, "{method}: {ended:?}");
    }
    let more = server.most_memory() - before;
    assert!(more < 1 << 30, "{more} bytes of address space for messages that were refused");
}

/// Whether a file below a directory has these bytes in it.
fn is_stored(directory: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_stored(&path, bytes);
        }
        std::fs::read(&path).is_ok_and(|content| content.windows(bytes.len()).any(|window| window == bytes))
    })
}

/// Submits these bytes as the message, then the request that they mean: one batch is stored, with the content of that request.
async fn assert_stored_once_as(server: &Program, message: &[u8], meant: v1::SubmitBatchRequest) {
    let (raw, mut client) = connected(server).await;
    let path = "/aptix.v1.BatchService/SubmitBatch";
    let ended = raw.call(request(path), &framed(0, message.len(), message), true).await;
    assert_eq!(ended.status.code(), Code::Ok, "{ended:?}");
    let list = v1::ListBatchesRequest {
        workspace_id: meant.workspace_id.clone(),
        view: v1::BatchView::Full.into(),
        ..Default::default()
    };
    let listed = client.batches.list_batches(list.clone()).await.unwrap().into_inner().batches;
    let [stored] = &*listed else { panic!("one batch is stored, not {listed:?}") };
    let again = client.submit(meant.clone()).await.unwrap();
    assert_eq!(again.batch_id, stored.batch_id, "it is the same request");
    let plain = v1::SubmitBatchRequest { workspace_id: "plain".to_owned(), ..meant };
    let plain = client.submit(plain).await.unwrap();
    let content = |batch: &v1::Batch| {
        let files = batch.edit.clone().unwrap_or_default().files;
        files.into_iter().map(|file| (file.target, file.action)).collect::<Vec<_>>()
    };
    let found = client.get("w", &stored.batch_id).await.unwrap();
    assert_eq!(content(&found), content(&plain), "it is stored as what it means");
    assert_eq!(client.batches.list_batches(list).await.unwrap().into_inner().batches.len(), 1);
}

/// Of a choice that is made twice the last one counts, as protobuf has it: the other one is neither stored nor compared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_choice_that_is_made_twice_the_last_one_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let meant = submit("w", "r1", vec![create_file("a", Content::Text("chosen-last".to_owned()))]);
    // In the request: a document, and then the edit.
    let document = v1::Document { dialect: String::new(), text: b"chosen-first".to_vec().into() };
    let first = v1::SubmitBatchRequest { content: Some(Submitted::Document(document)), ..Default::default() };
    // In the file: a text, and then the other one.
    let mut outer = meant.clone();
    let edit = edit_of(&mut outer);
    let [file] = &*edit.files else { panic!("the edit has a file") };
    let Some(v1::file_patch::Action::CreateFile(create)) = &file.action else { panic!("it is created") };
    let earlier = v1::CreateFile { content: Some(Content::Text("chosen-first".to_owned())), ..Default::default() };
    let create = [earlier.encode_to_vec(), create.encode_to_vec()].concat();
    let file = v1::FilePatch { action: None, ..file.clone() };
    let file = [file.encode_to_vec(), field(&[0x3a], &create)].concat();
    let edit = v1::Edit { files: Vec::new(), ..edit.clone() };
    let edit = [edit.encode_to_vec(), field(&[0x1a], &file)].concat();
    let outer = v1::SubmitBatchRequest { content: None, ..outer };
    let message = [first.encode_to_vec(), outer.encode_to_vec(), field(&[0x1a], &edit)].concat();
    assert_stored_once_as(&server, &message, meant).await;
    assert!(is_stored(dir.path(), b"chosen-last"), "the content is stored so that it can be found");
    assert!(!is_stored(dir.path(), b"chosen-first"));
}

/// Fields of a later version are skipped wherever they are, and what they had is not stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_fields_are_ignored_and_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let meant = submit("w", "r1", vec![create_file("a", Content::Text("is-known".to_owned()))]);
    let unknown = [field(&UNKNOWN, b"is-unknown"), nested(99)].concat();
    let mut outer = meant.clone();
    let edit = [edit_of(&mut outer).encode_to_vec(), unknown.clone()].concat();
    let outer = v1::SubmitBatchRequest { content: None, ..outer };
    let message = [unknown, outer.encode_to_vec(), field(&[0x1a], &edit)].concat();
    assert_stored_once_as(&server, &message, meant).await;
    assert!(is_stored(dir.path(), b"is-known"), "the content is stored so that it can be found");
    assert!(!is_stored(dir.path(), b"is-unknown"));
}
