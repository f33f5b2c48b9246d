//! Files as they are on a real agent's disk, read through a real server.

use std::process::Output;
use std::time::{Duration, Instant};

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::documents::insert;
use crate::odd_files;
use crate::processes::{Machine, Server, connected, eventually, served};

/// A client of the server's file service, without anything but its address and a workspace's name.
struct Reader {
    runtime: tokio::runtime::Runtime,
    client: FileServiceClient<Channel>,
}

impl Reader {
    fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, client: FileServiceClient::new(channel) }
    }

    fn read(&mut self, path: &str, source: v1::Source) -> Result<v1::FileContent, Status> {
        let file = match path.strip_prefix("key:") {
            Some(key) => v1::file_selector::File::DocPath(key.to_owned()),
            None => v1::file_selector::File::Path(path.to_owned()),
        };
        let file = Some(v1::FileSelector { file: Some(file) });
        let request = v1::ReadFileRequest { workspace_id: "demo".to_owned(), file, source: source.into(), range: None };
        let answer = self.runtime.block_on(self.client.read_file(request))?;
        Ok(answer.into_inner().file.unwrap())
    }

    /// What is on the workstation's disk.
    fn active(&mut self, path: &str) -> Result<String, Status> {
        let file = self.read(path, v1::Source::Active)?;
        let state = file.file.unwrap();
        assert_eq!((state.source(), state.path.as_str()), (v1::Source::Active, path));
        let text = String::from_utf8(file.content.unwrap().into()).unwrap();
        assert_eq!(state.sha256, sha256(text.as_bytes()).to_string());
        Ok(text)
    }

    /// The paths of the first page of all files on the workstation's disk.
    fn listed(&mut self) -> Vec<String> {
        let request = v1::ListFilesRequest {
            workspace_id: "demo".to_owned(),
            source: v1::Source::Active.into(),
            ..v1::ListFilesRequest::default()
        };
        let page = self.runtime.block_on(self.client.list_files(request)).unwrap().into_inner();
        page.files.into_iter().map(|file| file.path).collect()
    }

    /// Waits until the agent answers.
    fn wait_for(&mut self, path: &str) {
        eventually("the agent answers", || self.active(path).is_ok());
    }
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A file that Aptix has never seen is read, edited with the digest that came along, and read again as it then is; an edit
/// for the older version is refused.
#[test]
fn a_file_never_seen_before_is_read_and_edited() {
    let (machine, server, _agent) = served("auto");
    machine.put("src/Main.rs", "fn main() {}\n");
    let mut reader = Reader::of(&server);
    reader.wait_for("src/Main.rs");
    let seen = reader.active("src/Main.rs").unwrap();
    let (answer, exit) = machine.submit(&server, &insert(&[("src/main.rs", &seen)], 0, "// new"));
    assert_eq!(exit, Some(0), "{answer}");
    assert_eq!(reader.active("src/Main.rs").unwrap(), "// new\nfn main() {}\n");
    let (answer, exit) = machine.submit(&server, &insert(&[("src/main.rs", &seen)], 0, "// stale"));
    assert_eq!((exit, &answer["errors"][0]["code"]), (Some(1), &"SHA_MISMATCH".into()), "{answer}");
    // Nobody tells the server of a local edit: the next read sees it all the same.
    machine.put("src/Main.rs", "fn other() {}\n");
    assert_eq!(reader.active("src/Main.rs").unwrap(), "fn other() {}\n");
}

/// Whatever was saved last is what is read next, a thousand times; and after a local apply and an undo.
#[test]
fn every_read_equals_the_disk() {
    let (machine, server, _agent) = served("auto");
    machine.put("a.txt", "begin\n");
    let mut reader = Reader::of(&server);
    reader.wait_for("a.txt");
    for edit in 0..1000 {
        let text = format!("edit {edit}\n").repeat(edit % 5);
        machine.put("a.txt", &text);
        assert_eq!(reader.active("a.txt").unwrap(), text, "{edit}");
    }
    machine.put("a.txt", "old\n");
    crate::processes::write(&machine.path("edit.json"), &insert(&[("a.txt", "old\n")], 1, "new"));
    succeeded(&machine.aptix(&["apply", "--root", "project", "edit.json"]).output().unwrap());
    assert_eq!(reader.active("a.txt").unwrap(), "old\nnew\n");
    succeeded(&machine.aptix(&["undo", "--root", "project"]).output().unwrap());
    assert_eq!(reader.active("a.txt").unwrap(), "old\n");
}

/// What the workstation does not show is refused by its word, over the whole way.
#[test]
fn what_is_not_shown_is_refused_by_its_word() {
    let (machine, server, _agent) = served("auto");
    machine.put("open.txt", "open\n");
    machine.put(".gitignore", "ignored.txt\n");
    machine.put("ignored.txt", "unique zebra\n");
    machine.put(".env", "unique zebra\n");
    machine.put(".git/config", "unique zebra\n");
    let mut reader = Reader::of(&server);
    reader.wait_for("open.txt");
    for (path, code, words) in [
        ("ignored.txt", Code::PermissionDenied, "POLICY_DENIED (IGNORED)"),
        (".env", Code::PermissionDenied, "POLICY_DENIED (SECRET)"),
        (".git/config", Code::PermissionDenied, "POLICY_DENIED (PROTECTED)"),
        ("nowhere.txt", Code::NotFound, "NOT_FOUND"),
        ("../open.txt", Code::InvalidArgument, "INVALID_PATH (TRAVERSAL)"),
    ] {
        let status = reader.active(path).unwrap_err();
        assert_eq!(status.code(), code, "{path}: {status}");
        assert!(status.message().starts_with(&format!("{words}: ")), "{path}: {status}");
        assert!(!format!("{status:?}").contains("zebra"), "{status:?}");
    }
}

/// Without an agent the disk is not there to be asked; once one has connected again, it is.
#[test]
fn a_read_of_the_disk_needs_an_agent() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut reader = Reader::of(&server);
    let agent = machine.agent(&server);
    reader.wait_for("a.txt");
    drop(agent);
    eventually("the agent is missed", || {
        reader.active("a.txt").is_err_and(|status| status.code() == Code::Unavailable)
    });
    machine.put("a.txt", "two\n");
    let _agent = machine.agent(&server);
    reader.wait_for("a.txt");
    assert_eq!(reader.active("a.txt").unwrap(), "two\n");
}

/// Whatever a path leads to: over gRPC a read and a write are refused by name at once, and a list leaves it out.
#[test]
fn what_is_no_file_is_refused_by_name_over_grpc() {
    let (machine, server, _agent) = served("auto");
    let cases = odd_files::lay_out(&machine.path("project"), &machine.path("elsewhere"));
    let mut reader = Reader::of(&server);
    reader.wait_for("a.txt");
    for (path, expected) in &cases {
        let path = path.replace("ws/", "project/");
        let begun = Instant::now();
        let status = reader.read(&path, v1::Source::Active).unwrap_err();
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        let words = [Some(info.reason.as_str()), info.metadata.get("detail").map(String::as_str)];
        let words = words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(".");
        assert_eq!(words, *expected, "{path}: {status:?}");
        assert!(status.message().contains("\nhint: "), "{path}: {status:?}");
        assert!(begun.elapsed() < Duration::from_secs(120), "{path} took {:?}", begun.elapsed());
        // What is not there yet could be created.
        if *expected != "NOT_FOUND" && !path.starts_with("key:") {
            let create = serde_json::json!({ "path": path, "content": "new\n", "overwrite": true });
            let (answer, exit) = machine.submit(&server, &create.to_string());
            assert_eq!((exit, &answer["state"]), (Some(1), &"FAILED".into()), "{path}: {answer}");
            assert!(answer["errors"][0]["code"].is_string(), "{path}: {answer}");
        }
    }
    assert_eq!(reader.listed(), odd_files::LISTED);
    assert_eq!(std::fs::read_to_string(machine.path("elsewhere/x.txt")).unwrap(), odd_files::TEXT);
    assert!(std::fs::metadata(machine.path("project/sparse.bin")).unwrap().len() == 10 << 30);
}
