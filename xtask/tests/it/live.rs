//! Files as they are on a real agent's disk, read through a real server.

use std::process::Output;

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::documents::insert;
use crate::processes::{Machine, Server, eventually, served};

/// A client of the server's file service, without anything but its address and a workspace's name.
struct Reader {
    runtime: tokio::runtime::Runtime,
    client: FileServiceClient<Channel>,
}

impl Reader {
    fn of(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let channel = runtime.block_on(Endpoint::from_shared(server.url()).unwrap().connect()).unwrap();
        Self { runtime, client: FileServiceClient::new(channel) }
    }

    fn read(&mut self, path: &str, source: v1::Source) -> Result<v1::FileContent, Status> {
        let file = Some(v1::FileSelector { file: Some(v1::file_selector::File::Path(path.to_owned())) });
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
