//! The deletion of a workspace over the protocol and by the command, with an agent, readers and tokens of it; and after a kill.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::verify::verify;
use tokio::time::timeout;
use tonic::transport::Endpoint;
use tonic::{Code, Status, Streaming};

use crate::identity::{admin, make, new, one, store_with_workspaces, with};
use crate::process::Program;
use crate::server::{Clients, SOON, Server, connect_agent, create_text, hello, next, refusal, submit};
use crate::store_contract::{append, batch};

fn request(workspace: &str) -> v1::DeleteWorkspaceRequest {
    v1::DeleteWorkspaceRequest { workspace_id: workspace.to_owned(), dry_run: false, resume: false }
}

fn workspace(id: &str) -> v1::GetWorkspaceRequest {
    v1::GetWorkspaceRequest { workspace_id: id.to_owned() }
}

/// How a stream ends; what it has before is passed over.
async fn end<T>(stream: &mut Streaming<T>) -> Status {
    loop {
        match timeout(SOON, stream.message()).await.expect("it ends in time") {
            Ok(message) => assert!(message.is_some(), "it ends with an error"),
            Err(status) => return status,
        }
    }
}

/// One that an agent serves is not deleted. Otherwise its readers and its tokens end with it, and a workspace that is created anew
/// knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn readers_and_tokens_end_with_their_workspace() {
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let author = make(&registry, new("author", Role::Orchestrator, Scope::All, None)).await;
    let own = make(&registry, new("own-author", Role::Orchestrator, one("own"), None)).await;
    let agent = make(&registry, new("agent", Role::Agent, one("other"), None)).await;
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut clients = server.connect().await;
    let stored =
        clients.batches.submit_batch(with(&own, submit("own", "r1", vec![create_text("a", "")]))).await.unwrap();
    let stored = stored.into_inner().batch.unwrap();

    let (_sender, mut feed) = connect_agent(&mut clients.agent, with(&agent, hello("other", "agent"))).await.unwrap();
    next(&mut feed).await.unwrap();
    let served = admin(&clients).delete_workspace(with(&operator, request("other"))).await.unwrap_err();
    assert_eq!((served.code(), refusal(&served).1.as_str()), (Code::FailedPrecondition, "INVALID_STATE"));

    let dry = v1::DeleteWorkspaceRequest { dry_run: true, ..request("own") };
    let preview = admin(&clients).delete_workspace(with(&operator, dry)).await.unwrap().into_inner();
    assert_eq!(
        (preview.open_batches, &preview.open_batch_ids, preview.has_begun),
        (1, &vec![stored.batch_id.clone()], false)
    );

    let watch = v1::WatchWorkspaceRequest { workspace_id: "own".to_owned(), ..Default::default() };
    let mut events = clients.workspaces.watch_workspace(with(&author, watch.clone())).await.unwrap().into_inner();
    let Some(v1::watch_workspace_response::Message::Event(first)) = next(&mut events).await.unwrap().message else {
        panic!("the event comes first")
    };
    let states = v1::WatchBatchRequest {
        workspace_id: "own".to_owned(),
        batch_id: stored.batch_id.clone(),
        ..Default::default()
    };
    let mut states = clients.batches.watch_batch(with(&author, states)).await.unwrap().into_inner();
    next(&mut states).await.unwrap();

    let deleted = admin(&clients).delete_workspace(with(&operator, request("own"))).await.unwrap().into_inner();
    assert_eq!((deleted.batches, deleted.bytes, deleted.has_more), (1, preview.bytes, false));
    assert_eq!((deleted.open_batches, deleted.tokens), (1, vec!["own-author".to_owned()]));
    assert_eq!(end(&mut events).await.code(), Code::NotFound);
    assert_eq!(end(&mut states).await.code(), Code::NotFound);
    let ended = clients.workspaces.get_workspace(with(&own, workspace("own"))).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unauthenticated);
    let absent = clients.workspaces.get_workspace(with(&author, workspace("own"))).await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
    let again = admin(&clients).delete_workspace(with(&operator, request("own"))).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);

    let anew =
        clients.batches.submit_batch(with(&author, submit("own", "r1", vec![create_text("a", "")]))).await.unwrap();
    assert_eq!(anew.into_inner().batch.unwrap().revision, 1);
    let resumed = v1::WatchWorkspaceRequest { after: first.cursor, ..watch };
    let refused = clients.workspaces.watch_workspace(with(&author, resumed)).await.unwrap_err();
    assert_eq!((refused.code(), refusal(&refused).1.as_str()), (Code::FailedPrecondition, "HISTORY_CHANGED"));
    // One that goes on with a deletion which another call has finished leaves the new workspace alone.
    let resumed = v1::DeleteWorkspaceRequest { resume: true, ..request("own") };
    let done = admin(&clients).delete_workspace(with(&operator, resumed)).await.unwrap_err();
    assert_eq!(done.code(), Code::NotFound);
    clients.workspaces.get_workspace(with(&author, workspace("own"))).await.expect("the new one stays");
}

/// The command's exit code, and what it prints.
fn command(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.arg("workspace").args(arguments).arg("--data-dir").arg(data_dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), format!("{printed}{said}"))
}

async fn connect(program: &Program) -> Clients {
    let endpoint = Endpoint::new(format!("http://{}", program.address)).unwrap();
    Clients::over(endpoint.connect().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_ends_with_0_once_it_is_deleted_1_if_refused_and_2_unconfirmed() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::start(dir.path(), &[]);
    let mut clients = connect(&program).await;
    clients.submit(submit("w", "r1", vec![create_text("a", "")])).await.unwrap();
    let (code, said) = command(dir.path(), &["delete", "w"]);
    assert!(code == Some(2) && said.contains("--yes"), "{said}");
    let (code, said) = command(dir.path(), &["delete", "absent", "--yes"]);
    let expected = "there is no workspace absent; hint: see `aptix-server workspace list`";
    assert!(code == Some(1) && said.contains(expected), "{said}");
    let (_, feed) = clients.lease("w", "agent", 0).await.unwrap();
    let (code, said) = command(dir.path(), &["delete", "w", "--yes"]);
    assert!(code == Some(1) && said.contains("while an agent serves it"), "{said}");
    drop(feed);
    let free = async {
        while clients
            .workspaces
            .get_workspace(workspace("w"))
            .await
            .unwrap()
            .into_inner()
            .workspace
            .unwrap()
            .serving
            .is_some()
        {}
    };
    timeout(SOON, free).await.unwrap();
    let (code, said) = command(dir.path(), &["delete", "w", "--yes"]);
    assert!(code == Some(0) && said.starts_with("deleted workspace w: 1 batches, 1 of them open, and "), "{said}");
    assert_eq!(command(dir.path(), &["list"]), (Some(0), String::new()));
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
    assert_eq!(command(dir.path(), &["create", "w"]).0, Some(0));
    assert_eq!(command(dir.path(), &["delete", "w", "--yes"]).0, Some(0), "without a server");
    assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
}

/// A server that is killed in the middle removes the rest when it is started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_removes_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    for number in 0..1500 {
        let (name, request) = (if number == 0 { "v" } else { "w" }, format!("r{number}"));
        append(&store, batch(number + 1, name, &request)).await;
    }
    store.close().await.unwrap();
    drop(store);
    let program = Program::start(dir.path(), &[]);
    let clients = connect(&program).await;
    let mut deleting = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    deleting.args(["workspace", "delete", "w", "--yes", "--data-dir"]).arg(dir.path());
    let mut deleting = deleting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut workspaces = clients.workspaces.clone();
    let begun = async { while workspaces.get_workspace(workspace("w")).await.is_ok() {} };
    timeout(SOON, begun).await.unwrap();
    program.signal("-KILL");
    assert_eq!(program.end(), None);
    deleting.wait().unwrap();
    let found = verify(dir.path()).unwrap();
    assert_eq!(found.damages, Vec::<String>::new());
    // The journal may end in what was being written as it was killed.
    let others = found.notes.iter().filter(|note| !note.contains("a batch is cut off")).collect::<Vec<_>>();
    let [note] = others.as_slice() else { panic!("it was killed in the middle: {:?}", found.notes) };
    assert!(note.contains("workspace w is being deleted"), "{note}");

    let program = Program::start(dir.path(), &[]);
    let mut clients = connect(&program).await;
    // Refused until the rest is removed.
    let anew = async {
        loop {
            match clients.submit(submit("w", "r1", vec![create_text("a", "")])).await {
                Ok(batch) => return batch,
                Err(status) => assert_eq!(status.code(), Code::NotFound),
            }
        }
    };
    assert_eq!(timeout(SOON, anew).await.unwrap().revision, 1);
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
    let found = verify(dir.path()).unwrap();
    assert_eq!((found.damages, found.notes), (Vec::new(), Vec::new()));
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let v = store.events("v".parse().unwrap(), aptix_model::id::Revision(0), 10).await.unwrap();
    assert_eq!(v.len(), 1, "another workspace");
    store.close().await.unwrap();
}
