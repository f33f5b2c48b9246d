//! The commands `backup` and `restore`, beside a server that works, and killed at any moment.

#![expect(clippy::disallowed_methods, reason = "the tests read and make files of their own")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_server::store::backup;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use crate::identity::{authorize, bearer};
use crate::process::{Program, noise};
use crate::server::{Clients, create_text, refusal, submit};

const WRITERS: usize = 6;

/// How long anything here may take.
const SOON: Duration = Duration::from_secs(120);

fn server(arguments: &[&str], paths: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(arguments);
    for (option, path) in paths {
        command.arg(option).arg(path);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The exit code of a command, and all that it printed.
fn run(arguments: &[&str], paths: &[(&str, &Path)]) -> (Option<i32>, String) {
    let output = server(arguments, paths).output().unwrap();
    (output.status.code(), [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat())
}

#[track_caller]
fn done(arguments: &[&str], paths: &[(&str, &Path)]) -> String {
    let (code, printed) = run(arguments, paths);
    assert_eq!(code, Some(0), "{arguments:?}: {printed}");
    printed
}

async fn connect(program: &Program) -> BatchServiceClient<Channel> {
    BatchServiceClient::new(Endpoint::new(format!("http://{}", program.address)).unwrap().connect().await.unwrap())
}

async fn get(client: &mut BatchServiceClient<Channel>, kept: &v1::Batch) -> v1::Batch {
    let which = Some(v1::get_batch_request::Batch::BatchId(kept.batch_id.clone()));
    let (workspace_id, view) = (kept.workspace_id.clone(), v1::BatchView::Full.into());
    let request = v1::GetBatchRequest { workspace_id, batch: which, view };
    client.get_batch(request).await.unwrap().into_inner().batch.unwrap()
}

/// Polls until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// Files of unfinished backups in a directory.
fn partial(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().contains(".partial-"))
}

/// Stores batches of two workspaces until it is stopped; answers what was acknowledged.
async fn write(address: String, writer: usize, stop: Arc<AtomicBool>) -> Vec<v1::Batch> {
    let channel = Endpoint::new(format!("http://{address}")).unwrap().connect().await.unwrap();
    let (mut client, mut kept) = (BatchServiceClient::new(channel), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let request = request(writer, kept.len());
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
    }
    kept
}

fn request(writer: usize, number: usize) -> v1::SubmitBatchRequest {
    let workspace = ["w", "v"][writer % 2];
    submit(workspace, &format!("r{writer}-{number}"), vec![create_text("a", &noise(500, (writer + number) as u64))])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_a_backup_began_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, restored) = (dir.path().join("data"), dir.path().join("backup"), dir.path().join("restored"));
    let program = Program::start(&data, &[]);
    let before = write_some(&program, 20).await;
    // The writers repeat these: each of the workspaces is there when the backup begins.
    let mut client = connect(&program).await;
    for writer in [0, 1] {
        client.submit_batch(request(writer, 0)).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| write(program.address.clone(), writer, Arc::clone(&stop))).collect();
    let mut writers = writers.into_iter().collect::<tokio::task::JoinSet<_>>();
    let (to, of) = (file.clone(), data.clone());
    let made =
        tokio::task::spawn_blocking(move || done(&["backup"], &[("--to", &to), ("--data-dir", &of)])).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let mut kept = Vec::new();
    while let Some(written) = writers.join_next().await {
        kept.extend(written.unwrap());
    }
    assert!(kept.len() > WRITERS, "there was load");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(done(&["verify"], &[("--backup", &file)]).contains(" is whole: workspaces 3,"), "{made}");
    let (code, refused) = run(&["backup"], &[("--to", &file), ("--data-dir", &data)]);
    assert_eq!(code, Some(3), "{refused}");
    assert!(refused.contains("--force"), "{refused}");
    done(&["backup", "--force"], &[("--to", &file), ("--data-dir", &data)]);
    program.signal("-KILL");
    program.end();

    done(&["restore"], &[("--from", &file), ("--data-dir", &restored)]);
    done(&["verify"], &[("--data-dir", &restored)]);
    let program = Program::start(&restored, &[]);
    let mut client = connect(&program).await;
    for batch in before.iter().chain(&kept) {
        assert_eq!(get(&mut client, batch).await, *batch, "the second backup began after all of them");
    }
    // Revisions go on without a gap, and a retry is answered with what is stored.
    for (workspace, writer) in [("w", 0), ("v", 1)] {
        let newest = kept.iter().filter(|batch| batch.workspace_id == workspace).map(|batch| batch.revision).max();
        let count = kept.iter().filter(|batch| batch.workspace_id == workspace).count() as u64;
        assert_eq!(newest, Some(count), "{workspace}");
        let stored = client.submit_batch(request(writer, 0)).await.unwrap().into_inner().batch.unwrap();
        assert!(kept.iter().any(|batch| batch.batch_id == stored.batch_id && batch.revision == stored.revision));
        let next = client.submit_batch(submit(workspace, "next", vec![create_text("a", "")])).await.unwrap();
        assert_eq!(next.into_inner().batch.unwrap().revision, count + 1);
    }
}

/// Stores so many batches.
async fn write_some(program: &Program, count: usize) -> Vec<v1::Batch> {
    let (mut client, mut kept) = (connect(program).await, Vec::new());
    for number in 0..count {
        let request = submit("before", &format!("r{number}"), vec![create_text("a", &noise(2000, number as u64))]);
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
    }
    kept
}

/// The backup that is made while batches are stored has all that was acknowledged before it began, and a beginning of the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_of_one_instant() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, restored) = (dir.path().join("data"), dir.path().join("backup"), dir.path().join("restored"));
    let program = Program::start(&data, &[]);
    let before = write_some(&program, 20).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers = (0..WRITERS).map(|writer| write(program.address.clone(), writer, Arc::clone(&stop)));
    let mut writers = writers.collect::<tokio::task::JoinSet<_>>();
    let (to, of) = (file.clone(), data.clone());
    tokio::task::spawn_blocking(move || done(&["backup"], &[("--to", &to), ("--data-dir", &of)])).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let mut kept = Vec::new();
    while let Some(written) = writers.join_next().await {
        kept.extend(written.unwrap());
    }
    drop(program);
    done(&["restore"], &[("--from", &file), ("--data-dir", &restored)]);
    done(&["verify"], &[("--data-dir", &restored)]);
    let program = Program::start(&restored, &[]);
    let mut client = connect(&program).await;
    for batch in &before {
        assert_eq!(get(&mut client, batch).await, *batch);
    }
    for workspace in ["w", "v"] {
        let next = submit(workspace, "next", vec![create_text("a", "")]);
        let next = client.submit_batch(next).await.unwrap().into_inner().batch.unwrap().revision;
        for batch in kept.iter().filter(|batch| batch.workspace_id == workspace && batch.revision < next) {
            assert_eq!(get(&mut client, batch).await, *batch, "all that came before the instant");
        }
    }
}

/// A data directory with so many megabytes of blobs.
async fn large(data: &Path, megabytes: u64) -> Program {
    let program = Program::start(data, &[]);
    let channel = Endpoint::new(format!("http://{}", program.address)).unwrap().connect().await.unwrap();
    let mut clients = Clients::over(channel);
    for number in 0..megabytes / 4 {
        clients.upload("w", noise(4 << 20, number + 1).as_bytes()).await.unwrap();
    }
    program
}

/// Starts a command, and waits until there is what it makes first.
fn begin(arguments: &[&str], paths: &[(&str, &Path)], what: impl Fn() -> bool) -> Child {
    let mut child = server(arguments, paths).spawn().unwrap();
    until("it begins or ends", || what() || child.try_wait().unwrap().is_some());
    child
}

/// Whether there is no backup; if there is one, it is whole, and is removed.
fn is_absent(file: &Path) -> bool {
    if !file.exists() {
        return true;
    }
    backup::verify(file).unwrap();
    std::fs::remove_file(file).unwrap();
    false
}

/// Tries, since it may have ended already, until something was seen.
fn seen(what: &str, mut attempt: impl FnMut() -> bool) {
    assert!((0..20).any(|_| attempt()), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_killed_leaves_no_file_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
    let mut program = Some(large(&data, 24).await);
    let paths = [("--to", file.as_path()), ("--data-dir", data.as_path())];
    let has_begun = || partial(dir.path()).is_some_and(|partial| partial.metadata().is_ok_and(|found| found.len() > 0));
    seen("the command was killed", || {
        let mut child = begin(&["backup"], &paths, has_begun);
        child.kill().unwrap();
        child.wait().unwrap();
        partial(dir.path()).inspect(|left| std::fs::remove_file(left).unwrap());
        is_absent(&file)
    });
    for _ in 0..3 {
        let child = begin(&["backup"], &paths, has_begun);
        // Once all bytes are there it goes on to its end; it may have come to that already.
        Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(partial(dir.path()), None, "{ended:?}");
        assert_eq!(ended.status.success(), !is_absent(&file), "{ended:?}");
    }
    for _ in 0..3 {
        let server = program.take().unwrap_or_else(|| Program::start(&data, &[]));
        let child = begin(&["backup"], &paths, has_begun);
        server.signal("-KILL");
        server.end();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(partial(dir.path()), None);
        assert_eq!(ended.status.code(), Some(if is_absent(&file) { 3 } else { 0 }), "{ended:?}");
    }
    // Without a server the command opens the directory itself.
    done(&["backup"], &paths);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_killed_leaves_what_no_server_opens_and_can_be_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, restored) = (dir.path().join("data"), dir.path().join("backup"), dir.path().join("restored"));
    drop(large(&data, 24).await);
    done(&["backup"], &[("--to", &file), ("--data-dir", &data)]);
    let paths = [("--from", file.as_path()), ("--data-dir", restored.as_path())];
    for name in ["format", "keyspaces", "0.jnl"] {
        seen(name, || {
            let mut child = begin(&["restore"], &paths, || restored.join(name).exists());
            child.kill().unwrap();
            if child.wait().unwrap().code().is_some() {
                std::fs::remove_dir_all(&restored).unwrap();
                return false;
            }
            true
        });
        let (code, refused) = run(&["--listen", "127.0.0.1:0"], &[("--data-dir", &restored)]);
        assert_eq!(code, Some(3), "{refused}");
        assert!(refused.contains("aptix-server restore"), "{refused}");
        for command in [&["verify"][..], &["workspace", "create", "x"], &["token", "list"]] {
            assert_eq!(run(command, &[("--data-dir", &restored)]).0, Some(3), "{command:?}");
        }
    }
    done(&["restore"], &paths);
    done(&["verify"], &[("--data-dir", &restored)]);
    let (code, refused) = run(&["restore"], &paths);
    assert_eq!(code, Some(3), "{refused}");
    assert!(refused.contains("is not empty"), "{refused}");
}

/// A data directory in use is neither verified nor restored into, and one without a store is not verified; each says what to do.
#[test]
fn a_directory_that_cannot_be_used_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
    let program = Program::start(&data, &[]);
    done(&["backup"], &[("--to", &file), ("--data-dir", &data)]);
    for (command, paths) in [
        ("verify", &[("--data-dir", data.as_path())][..]),
        ("restore", &[("--from", file.as_path()), ("--data-dir", data.as_path())]),
    ] {
        let (code, refused) = run(&[command], paths);
        assert_eq!(code, Some(3), "{command}: {refused}");
        let expected = "hint: stop the server or command that uses it, or name another --data-dir";
        assert!(refused.contains(expected), "{command}: {refused}");
    }
    drop(program);
    let (code, refused) = run(&["verify"], &[("--data-dir", dir.path())]);
    assert_eq!(code, Some(3), "{refused}");
    assert!(refused.contains("has no store in it; hint: name the directory of one with --data-dir"), "{refused}");
}

/// The database that a restore or a migration does not reach is named, without its password.
#[cfg(feature = "postgres")]
#[test]
fn a_database_that_cannot_be_reached_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
    std::fs::write(&file, "").unwrap();
    let store = "postgres://ann:secret@127.0.0.1:1/batches";
    for (command, path) in [
        (&["restore", "--store", store][..], ("--from", file.as_path())),
        (&["migrate", "--from", "postgres", "--to", "embedded", "--store", store], ("--data-dir", data.as_path())),
    ] {
        let (code, refused) = run(command, &[path]);
        assert_eq!(code, Some(3), "{refused}");
        assert!(refused.contains("hint: check the address postgres://ann:***@127.0.0.1:1/batches"), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_those_of_the_backup_or_all_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
    let (kept, revoked) = (dir.path().join("kept"), dir.path().join("revoked"));
    done(&["workspace", "create", "w"], &[("--data-dir", &data)]);
    let create = ["token", "create", "--workspace", "w", "--role", "orchestrator", "--name", "service"];
    let printed = done(&create, &[("--data-dir", &data)]);
    let token =
        printed.lines().find(|line| line.starts_with("aptix_")).unwrap_or_else(|| panic!("{printed}")).to_owned();
    done(&["backup"], &[("--to", &file), ("--data-dir", &data)]);
    done(&["token", "revoke", "service"], &[("--data-dir", &data)]);
    assert!(done(&["restore"], &[("--from", &file), ("--data-dir", &kept)]).contains("revoke again"));
    let printed = done(&["restore", "--revoke-tokens"], &[("--from", &file), ("--data-dir", &revoked)]);
    assert!(printed.contains("every token is revoked"), "{printed}");
    for (data, expected) in [(&kept, Code::Ok), (&revoked, Code::Unauthenticated)] {
        let program = Program::start(data, &[]);
        let mut client = connect(&program).await;
        let bare = client.submit_batch(submit("w", "bare", vec![create_text("a", "")])).await.unwrap_err();
        assert_eq!(bare.code(), Code::Unauthenticated);
        let mut request = Request::new(submit("w", "r", vec![create_text("a", "")]));
        authorize(request.metadata_mut(), &bearer(&token));
        let answered = client.submit_batch(request).await;
        assert_eq!(answered.as_ref().err().map_or(Code::Ok, tonic::Status::code), expected, "{answered:?}");
        // No token of whatever role gets a backup over the network.
        let create = ["token", "create", "--workspace", "*", "--role", "operator", "--name", "operator"];
        let printed = done(&create, &[("--data-dir", data)]);
        let operator = printed.lines().find(|line| line.starts_with("aptix_")).unwrap().to_owned();
        let channel = Endpoint::new(format!("http://{}", program.address)).unwrap().connect().await.unwrap();
        let mut admin = v1::admin_service_client::AdminServiceClient::new(channel);
        let mut request = Request::new(v1::BackupRequest {});
        authorize(request.metadata_mut(), &bearer(&operator));
        let refused = admin.backup(request).await.unwrap_err();
        assert_eq!(refusal(&refused).1, "PERMISSION_DENIED");
    }
}
