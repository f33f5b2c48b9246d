//! Files as they are now: asked of the agent while one serves, else read from the cloud copy; and what becomes of an answer
//! that does not fit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aptix_engine::text::facts::Facts;
use aptix_model::live::FileInfo;
use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use aptix_model::wire::v1::file_selector::File;
use aptix_model::wire::v1::question::Ask;
use aptix_model::wire::v1::{serve_request, serve_response};
use aptix_server::options::Options;
use aptix_server::store::embedded::EmbeddedStore;
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::server::{Clients, Server, applied, assert_refused, create_text, fields, hello, refusal, submit};
use crate::until::until;

const FEATURES: [&str; 8] = ["read", "stat", "list", "search", "preview", "prepare", "call_tool", "resolve_paths"];

/// Makes an answer wrong.
pub(crate) type Twist = Box<dyn Fn(&mut Answer) + Send>;

/// A workstation: its files, and how its agent twists its answers.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    pub(crate) twist: Arc<Mutex<Option<Twist>>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

fn previewed(edit: v1::Edit) -> v1::Report {
    let file = |file: v1::FilePatch| v1::FileReport {
        path: "a.txt".to_owned(),
        doc_path: format!("app/{}", file.key),
        status: v1::FileStatus::Created.into(),
        ..Default::default()
    };
    let files = edit.files.into_iter().map(file).collect();
    v1::Report { outcome: v1::Outcome::Applied.into(), files, ..Default::default() }
}

impl Disk {
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
    }

    /// Serves the workspace from this disk until the task is ended.
    #[expect(clippy::disallowed_methods, reason = "the handle is kept, and ended with the test")]
    pub(crate) async fn serve(&self, client: &mut Clients) -> JoinHandle<()> {
        let features = FEATURES.map(str::to_owned).to_vec();
        let hello = v1::Hello {
            features,
            version: "1.2.3".to_owned(),
            approval_mode: v1::ApprovalMode::Auto.into(),
            lease_secret: client.secret("w"),
            ..hello("w", "agent")
        };
        let (_, mut feed) = client.serve(hello).await.unwrap();
        let disk = self.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = feed.stream.message().await {
                let Some(serve_response::Message::Question(question)) = message.message else { continue };
                disk.asked.fetch_add(1, Ordering::SeqCst);
                let mut answer = disk.answer(question.ask.unwrap());
                if let Some(twist) = &*disk.twist.lock().unwrap() {
                    twist(&mut answer);
                }
                let answer = v1::Answer { question_id: question.question_id, answer: Some(answer) };
                let message = Some(serve_request::Message::Answer(answer));
                if feed.sender.send(v1::ServeRequest { message }).await.is_err() {
                    return;
                }
            }
        })
    }

    fn answer(&self, ask: Ask) -> Answer {
        match ask {
            Ask::ReadFiles(asked) => {
                let results = asked.files.into_iter().map(|part| self.part(part.file, Some(part.range))).collect();
                Answer::ReadFiles(v1::ReadFilesResponse { results })
            }
            Ask::StatFiles(asked) => {
                let results = asked.files.into_iter().map(|file| self.part(Some(file), None)).collect();
                Answer::StatFiles(v1::StatFilesResponse { results })
            }
            Ask::ListFiles(_) => {
                let files = self.files.lock().unwrap();
                let bare = |(path, bytes): (&String, &Vec<u8>)| v1::FileState {
                    path: path.clone(),
                    doc_path: format!("app/{}", path.to_lowercase()),
                    size_bytes: bytes.len() as u64,
                    source: v1::Source::Active.into(),
                    ..v1::FileState::default()
                };
                let files = files.iter().map(bare).collect();
                Answer::ListFiles(v1::ListFilesResponse {
                    files,
                    next_page_token: "disk:x".to_owned(),
                    ..Default::default()
                })
            }
            Ask::SearchFiles(_) => {
                let excerpt = Some(v1::Excerpt { start_line: 1, end_line: 2, text: "one\ntwo".to_owned() });
                let found = v1::SearchMatch {
                    path: "src/A.txt".to_owned(),
                    doc_path: "app/src/a.txt".to_owned(),
                    line: 2,
                    excerpt,
                    is_unsaved: false,
                };
                Answer::SearchFiles(v1::SearchFilesResponse { matches: vec![found], ..Default::default() })
            }
            Ask::Preview(edit) => Answer::Preview(previewed(edit)),
            Ask::Prepare(asked) => {
                let report = previewed(asked.edit.unwrap());
                let files = vec![v1::PlannedFile::default(); report.files.len()];
                Answer::Prepare(v1::Plan { report: Some(report), files })
            }
            Ask::ResolvePaths(v1::PathsQuestion { paths }) => {
                let resolved = |path: String| match path.strip_prefix("/srv/ann/app/") {
                    Some(rest) => v1::ResolvedPath { path: rest.to_owned(), doc_path: format!("app/{rest}") },
                    None => v1::ResolvedPath::default(),
                };
                Answer::ResolvePaths(v1::PathsAnswer { paths: paths.into_iter().map(resolved).collect() })
            }
            Ask::CallTool(v1::ToolQuestion { tool, arguments, .. }) => Answer::CallTool(v1::ToolAnswer {
                text: vec![tool, arguments],
                structured: r#"{"success":true}"#.to_owned(),
                is_error: false,
            }),
        }
    }

    fn part(&self, file: Option<v1::FileSelector>, range: Option<Option<v1::Range>>) -> v1::FileResult {
        let wanted = match file.unwrap().file.unwrap() {
            File::DocPath(key) => key.trim_start_matches("app/").to_owned(),
            File::Path(path) => path.to_lowercase(),
        };
        let files = self.files.lock().unwrap();
        let Some((path, bytes)) = files.iter().find(|(path, _)| path.to_lowercase() == wanted) else {
            let failure = v1::Failure {
                reason: "NOT_FOUND".to_owned(),
                message: "no such file".to_owned(),
                ..Default::default()
            };
            return v1::FileResult { result: Some(v1::file_result::Result::Failure(failure)) };
        };
        let info = FileInfo {
            path: path.clone(),
            doc_path: format!("app/{wanted}"),
            size_bytes: bytes.len() as u64,
            is_executable: false,
            is_unsaved: false,
            text: Some(Facts::of(bytes)),
        };
        let (start, end) = match range.flatten().and_then(|range| range.range) {
            Some(v1::range::Range::Bytes(span)) => {
                let start = bytes.len().min(span.offset as usize);
                (start, bytes.len().min(start + span.length as usize))
            }
            // Lines are of four bytes here.
            Some(v1::range::Range::Lines(span)) => {
                (4 * (span.start_line as usize - 1), 4 * span.end_line.unwrap() as usize)
            }
            None => (0, bytes.len()),
        };
        let content = range.map(|_| bytes[start..end].to_vec().into());
        let first_line = 1 + bytes[..start].iter().filter(|byte| **byte == b'\n').count() as u64;
        let file = v1::FileContent { file: Some(info.into()), content, offset: start as u64, first_line };
        v1::FileResult { result: Some(v1::file_result::Result::File(file)) }
    }
}

pub(crate) fn selector(path: &str) -> Option<v1::FileSelector> {
    Some(v1::FileSelector { file: Some(File::Path(path.to_owned())) })
}

pub(crate) fn bytes(offset: u64, length: u64) -> Option<v1::Range> {
    Some(v1::Range { range: Some(v1::range::Range::Bytes(v1::ByteSpan { offset, length })) })
}

pub(crate) fn lines(start_line: i64, end_line: i64) -> Option<v1::Range> {
    let span = v1::LineSpan { start_line, end_line: Some(end_line) };
    Some(v1::Range { range: Some(v1::range::Range::Lines(span)) })
}

pub(crate) async fn read(
    client: &mut Clients,
    path: &str,
    range: Option<v1::Range>,
    source: v1::Source,
) -> Result<v1::FileContent, Status> {
    let (workspace_id, file) = ("w".to_owned(), selector(path));
    let request = v1::ReadFileRequest { workspace_id, file, range, source: source.into() };
    Ok(client.files.read_file(request).await?.into_inner().file.unwrap())
}

/// A workspace with one cloud file, `src/A.txt`, that no agent serves any more.
async fn with_cloud_file(client: &mut Clients, text: &str) -> v1::Batch {
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", text.as_bytes()).await.unwrap();
    let batch = client.submit(submit("w", "r", vec![create_text("src/A.txt", text)])).await.unwrap();
    let report = applied(&[("app", "src/A.txt", text.as_bytes())]);
    client.report("w", &batch.batch_id, epoch, report).await.unwrap()
}

/// While an agent serves, what is read is what is on disk; afterwards the cloud copy answers. A demanded source is kept to.
#[tokio::test]
async fn the_agent_answers_while_it_serves_and_the_cloud_copy_afterwards() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let batch = with_cloud_file(&mut agent, "one\ntwo\n").await;
    let disk = Disk::default();
    let any = v1::Source::Unspecified;
    wait_until_unserved(&mut client).await;
    let cloud = read(&mut client, "src/A.txt", None, any).await.unwrap();
    let refused = read(&mut client, "src/A.txt", None, v1::Source::Active).await;
    let status = refused.unwrap_err();
    assert_eq!(refusal(&status), (Code::Unavailable, "UNAVAILABLE".to_owned(), "NO_AGENT".to_owned()));
    let state = cloud.file.unwrap();
    let expected = v1::FileState {
        path: "src/A.txt".to_owned(),
        doc_path: "app/src/a.txt".to_owned(),
        sha256: crate::server::sha256(b"one\ntwo\n"),
        size_bytes: 8,
        line_count: Some(2),
        terminators: v1::Terminators::Lf.into(),
        encoding: v1::Encoding::Utf8.into(),
        source: v1::Source::Cloud.into(),
        revision: Some(2),
        time: batch.update_time,
        batch_id: batch.batch_id.clone(),
        ..v1::FileState::default()
    };
    assert_eq!(state, expected);

    let serving = disk.serve(&mut agent).await;
    for number in 0..100 {
        let text = format!("{number}\r\n").repeat(number);
        disk.write("src/A.txt", text.as_bytes());
        let file = read(&mut client, "src/A.txt", None, any).await.unwrap();
        assert_eq!(file.content.as_deref(), Some(text.as_bytes()), "always as it is on disk");
        assert_eq!(file.file.unwrap().source(), v1::Source::Active);
    }
    let cloud = read(&mut client, "src/A.txt", None, v1::Source::Cloud).await.unwrap();
    assert_eq!(cloud.content.as_deref(), Some(b"one\ntwo\n".as_slice()));
    let missing = read(&mut client, "src/b.txt", None, any).await;
    assert_refused(missing, Code::NotFound, "NOT_FOUND", "");
    serving.abort();
    wait_until_unserved(&mut client).await;
    assert_eq!(read(&mut client, "src/A.txt", None, any).await.unwrap().file.unwrap().source(), v1::Source::Cloud);
}

async fn workspace(client: &mut Clients) -> v1::Workspace {
    let request = v1::GetWorkspaceRequest { workspace_id: "w".to_owned() };
    client.workspaces.get_workspace(request).await.unwrap().into_inner().workspace.unwrap()
}

async fn wait_until_unserved(client: &mut Clients) {
    until(async || workspace(client).await.serving.is_none().then_some(())).await;
}

/// Who serves a workspace, since when and how; its roots stay known.
#[tokio::test]
async fn a_workspace_names_the_agent_that_serves_it() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    let serving = disk.serve(&mut agent).await;
    let served = workspace(&mut client).await;
    let by = served.serving.unwrap();
    assert_eq!(
        (by.version.as_str(), by.approval_mode(), by.features.len()),
        ("1.2.3", v1::ApprovalMode::Auto, FEATURES.len())
    );
    assert_eq!((served.roots, served.last_served_time), (vec!["app".to_owned()], None));
    serving.abort();
    wait_until_unserved(&mut client).await;
    let after = workspace(&mut client).await;
    assert_eq!(after.roots, ["app"]);
    let (ended, began) = (after.last_served_time.unwrap(), by.since_time.unwrap());
    assert!((ended.seconds, ended.nanos) >= (began.seconds, began.nanos));
}

/// Ranges by line and by byte, and several files in one call, are the same from the cloud copy and from the disk.
#[tokio::test]
async fn parts_and_several_files_are_read_from_either_source() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let text = "aaa\nbbb\nccc\nddd\n";
    with_cloud_file(&mut agent, text).await;
    let disk = Disk::default();
    disk.write("src/A.txt", text.as_bytes());
    let _serving = disk.serve(&mut agent).await;
    let cases: [(Option<v1::Range>, &str, u64, u64); 4] = [
        (None, text, 0, 1),
        (lines(2, 3), "bbb\nccc\n", 4, 2),
        (bytes(5, 4), "bb\nc", 5, 2),
        (bytes(99, 4), "", 16, 5),
    ];
    for source in [v1::Source::Cloud, v1::Source::Active] {
        let part = |range| v1::FilePart { file: selector("src/A.txt"), range };
        let mut files: Vec<_> = cases.iter().map(|(range, ..)| part(*range)).collect();
        files.push(v1::FilePart { file: selector("none"), range: None });
        let request =
            v1::ReadFilesRequest { workspace_id: "w".to_owned(), files: files.clone(), source: source.into() };
        let results = client.files.read_files(request).await.unwrap().into_inner().results;
        assert_eq!(results.len(), cases.len() + 1);
        for (result, (range, text, offset, first_line)) in results.iter().zip(&cases) {
            let Some(v1::file_result::Result::File(file)) = &result.result else { panic!("{result:?}") };
            assert_eq!(file.content.as_deref(), Some(text.as_bytes()), "{source:?} {range:?}");
            assert_eq!((file.offset, file.first_line), (*offset, *first_line), "{source:?} {range:?}");
        }
        let Some(v1::file_result::Result::Failure(failure)) = &results[4].result else { panic!("{results:?}") };
        assert_eq!(failure.reason, "NOT_FOUND");
        let files = files.into_iter().filter_map(|part| part.file).collect();
        let request = v1::StatFilesRequest { workspace_id: "w".to_owned(), files, source: source.into() };
        let results = client.files.stat_files(request).await.unwrap().into_inner().results;
        let Some(v1::file_result::Result::File(file)) = &results[0].result else { panic!("{results:?}") };
        assert_eq!((file.content.as_ref(), file.file.as_ref().unwrap().size_bytes), (None, 16));
    }
}

/// Lists come from the disk or from the cloud copy, page by page, and a token goes on where its page came from.
#[tokio::test]
async fn lists_come_from_either_source() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    with_cloud_file(&mut agent, "text\n").await;
    wait_until_unserved(&mut client).await;
    let asked = |directory: &str, page_token: &str, source: v1::Source| v1::ListFilesRequest {
        workspace_id: "w".to_owned(),
        directory: directory.to_owned(),
        page_token: page_token.to_owned(),
        source: source.into(),
        ..v1::ListFilesRequest::default()
    };
    let any = v1::Source::Unspecified;
    for (directory, expected) in [("", 1), ("src", 1), ("src/A.txt", 0), ("sr", 0), ("other", 0)] {
        let page = client.files.list_files(asked(directory, "", any)).await.unwrap().into_inner();
        assert_eq!(page.files.len(), expected, "{directory}");
    }
    let disk = Disk::default();
    disk.write("src/A.txt", b"text\n");
    disk.write("src/B.txt", b"other\n");
    let _serving = disk.serve(&mut agent).await;
    let page = client.files.list_files(asked("src", "", any)).await.unwrap().into_inner();
    assert_eq!((page.files.len(), page.next_page_token.as_str()), (2, "disk:x"));
    let cloud = client.files.list_files(asked("", "fapp/a", any)).await.unwrap().into_inner();
    assert_eq!((cloud.files.len(), cloud.files[0].source()), (1, v1::Source::Cloud));
    let crossed = client.files.list_files(asked("", "disk:x", v1::Source::Cloud)).await;
    assert_refused(crossed.map(drop), Code::InvalidArgument, "INVALID_REQUEST", "PAGE");
    let search = v1::SearchFilesRequest {
        workspace_id: "w".to_owned(),
        pattern: "two".to_owned(),
        context_lines: 1,
        ..v1::SearchFilesRequest::default()
    };
    let found = client.files.search_files(search).await.unwrap().into_inner();
    assert_eq!(found.matches[0].line, 2);
}

/// What is wrong with a call is named before anyone is asked.
#[tokio::test]
async fn a_call_that_makes_no_sense_asks_nobody() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    let _serving = disk.serve(&mut agent).await;
    let unknown = v1::ReadFileRequest {
        workspace_id: "w".to_owned(),
        file: selector("a"),
        source: 9,
        ..v1::ReadFileRequest::default()
    };
    let refused = client.files.read_file(unknown).await.unwrap_err();
    assert_eq!((refusal(&refused).2.as_str(), fields(&refused)), ("UNKNOWN_ENUM", vec!["source".to_owned()]));
    for (path, range, field) in
        [("../a", None, "file.path"), ("a", lines(3, 2), "range.lines"), ("a", lines(0, 1), "range.lines")]
    {
        let refused = read(&mut client, path, range, v1::Source::Active).await.unwrap_err();
        assert_eq!((refused.code(), fields(&refused)), (Code::InvalidArgument, vec![field.to_owned()]));
    }
    let parts = vec![v1::FilePart::default(); 101];
    let many = v1::ReadFilesRequest { workspace_id: "w".to_owned(), files: parts, ..v1::ReadFilesRequest::default() };
    assert_refused(client.files.read_files(many).await, Code::InvalidArgument, "TOO_LARGE", "");
    let none = v1::SearchFilesRequest { workspace_id: "w".to_owned(), ..v1::SearchFilesRequest::default() };
    assert_refused(client.files.search_files(none).await, Code::InvalidArgument, "INVALID_REQUEST", "MISSING");
    assert_eq!(disk.asked.load(Ordering::SeqCst), 0);
}

/// A caller that goes takes its question back; one whose agent goes hears of it at once.
#[tokio::test]
async fn a_question_ends_with_its_caller_and_with_its_agent() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let features = FEATURES.map(str::to_owned).to_vec();
    let (_, mut feed) = agent.serve(v1::Hello { features, ..hello("w", "agent") }).await.unwrap();
    let mut asking = client.clone();
    let (mut asked, mut taken_back) = (None, None);
    {
        let reading = read(&mut asking, "src/A.txt", None, v1::Source::Active);
        tokio::pin!(reading);
        while asked.is_none() {
            tokio::select! {
                answer = &mut reading => panic!("nobody answers, found {answer:?}"),
                message = crate::server::next(&mut feed.stream) => match message.unwrap().message {
                    Some(serve_response::Message::Question(question)) => asked = Some(question.question_id),
                    other => panic!("expected a question, found {other:?}"),
                }
            }
        }
    }
    while taken_back.is_none() {
        if let Some(serve_response::Message::QuestionCancelled(cancelled)) =
            crate::server::next(&mut feed.stream).await.unwrap().message
        {
            taken_back = Some(cancelled.question_id);
        }
    }
    assert_eq!(taken_back, asked);
    let reading = read(&mut client, "src/A.txt", None, v1::Source::Active);
    let (answer, ()) = tokio::join!(reading, async move {
        crate::server::next(&mut feed.stream).await.unwrap();
        drop(feed);
    });
    assert_refused(answer, Code::Unavailable, "UNAVAILABLE", "AGENT_LOST");
}

/// A read of 10 KB costs one question and one answer; the store writes and flushes nothing.
#[tokio::test]
async fn a_live_read_costs_one_question_and_no_write() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::over(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Options::default());
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    disk.write("src/A.txt", &b"0123456789abcde\n".repeat(640));
    let _serving = disk.serve(&mut agent).await;
    // Each commit writes the number of the newest one to this file before it is flushed.
    let mark = || std::fs::read(dir.path().join("acknowledged")).unwrap();
    let before = mark();
    for number in 1..=20 {
        let file = read(&mut client, "src/A.txt", None, v1::Source::Unspecified).await.unwrap();
        assert_eq!((file.content.unwrap().len(), disk.asked.load(Ordering::SeqCst)), (10_240, number));
    }
    assert!(mark() == before, "a read commits nothing");
    client.submit(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    assert!(mark() != before, "a write does");
}

/// A preview is held against the batch as a report is; content in blobs has none.
#[tokio::test]
async fn a_preview_is_a_report_of_that_batch() {
    let server = Server::start();
    let mut client = server.connect().await;
    let disk = Disk::default();
    let agent = disk.serve(&mut client).await;
    let file = || v1::FilePatch { key: "a.txt".to_owned(), ..create_text("a.txt", "") };
    let request = |files| v1::SubmitBatchRequest { validate_only: true, ..submit("w", "r1", files) };
    let misfit = client.submit(request(vec![file()])).await;
    assert_refused(misfit, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        if let Answer::Preview(report) = answer {
            report.files[0].sha256 = Some(crate::server::sha256(b""));
            report.files[0].size_bytes = Some(0);
        }
    }));
    let answer = client.batches.submit_batch(request(vec![file()])).await.unwrap().into_inner();
    assert_eq!(answer.preview.unwrap().outcome(), v1::Outcome::Applied);
    agent.abort();
}
