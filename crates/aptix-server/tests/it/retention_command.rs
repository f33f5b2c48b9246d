//! What workspaces keep, as the configuration of the program says it: removed by the running server, or by the command.

use std::path::Path;
use std::process::Command;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::wire::v1;
use aptix_server::mint;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::{Store, UploadId};
use tempfile::NamedTempFile;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::process::Program;
use crate::server::{Clients, SOON, applied, create_text, refusal, submit};
use crate::store_contract::workspace;

const ONE: &str = "[retention]\ncontent_batches = 1\n";

fn config(text: &str) -> NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).unwrap();
    file
}

/// The command's exit code, and what it prints.
fn retention(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.arg("retention").args(arguments).arg("--data-dir").arg(data_dir);
    let output = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), format!("{printed}{said}"))
}

async fn connect(program: &Program) -> Clients {
    let endpoint = Endpoint::new(format!("http://{}", program.address)).unwrap();
    Clients::over(endpoint.connect().await.unwrap())
}

/// Applies batches in a workspace; answers their ids.
async fn apply(clients: &mut Clients, workspace: &str, requests: &[&str]) -> Vec<String> {
    clients.upload(workspace, b"").await.unwrap();
    let (epoch, _feed) = clients.lease(workspace, "agent", 0).await.unwrap();
    let mut ids = Vec::new();
    for request in requests {
        let batch = clients.submit(submit(workspace, request, vec![create_text(request, "")])).await.unwrap();
        clients.report(workspace, &batch.batch_id, epoch, applied(&[("app", request, b"")])).await.unwrap();
        ids.push(batch.batch_id);
    }
    ids
}

/// Whether each batch has its content.
async fn have_content(clients: &mut Clients, workspace: &str, ids: &[String]) -> Vec<bool> {
    let mut have = Vec::new();
    for batch_id in ids {
        let batch = clients.get(workspace, batch_id).await.unwrap();
        have.push(batch.removed_content_sha256.is_empty());
    }
    have
}

/// The rounds of a running server remove what is past the limits of each workspace, and no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_removes_what_its_configuration_keeps_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{ONE}interval_seconds = 1\n[workspaces.all.retention]\ncontent_batches = 9\n");
    let file = config(&text);
    let program = Program::start(dir.path(), &["--config", file.path().to_str().unwrap()]);
    let mut clients = connect(&program).await;
    let of_all = apply(&mut clients, "all", &["1", "2"]).await;
    let of_w = apply(&mut clients, "w", &["1", "2", "3"]).await;
    let open = clients.submit(submit("w", "4", vec![create_text("4", "")])).await.unwrap();
    timeout(SOON, async { while have_content(&mut clients, "w", &of_w[..2]).await != [false, false] {} })
        .await
        .unwrap();
    assert_eq!(have_content(&mut clients, "w", &[open.batch_id]).await, [true], "what is open is kept whole");
    assert_eq!(have_content(&mut clients, "all", &of_all).await, [true, true]);
}

/// A dry run prints what would be removed by the running server's limits or by others, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_counts_first_and_removes_then() {
    let dir = tempfile::tempdir().unwrap();
    let (none, one) = (config(""), config(ONE));
    let [none, one] = [&none, &one].map(|file| file.path().to_str().unwrap());
    let program = Program::start(dir.path(), &["--config", none]);
    let mut clients = connect(&program).await;
    let ids = apply(&mut clients, "w", &["1", "2", "3"]).await;
    let (code, said) = retention(dir.path(), &[]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "w: keeps everything: it has no limit; events 1 to 6 and 0 open batches stay\n")
    );
    let (code, said) = retention(dir.path(), &["--dry-run", "--config", one]);
    let would = "w: would remove the content of 2 batches (";
    assert!(code == Some(0) && said.starts_with(would) && said.contains("; events 1 to 6 and 0 open"), "{said}");
    let (_, object) = retention(dir.path(), &["--dry-run", "--config", one, "--workspace", "w", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!((&object["isDryRun"], &object["workspaces"][0]["contents"]), (&true.into(), &2.into()), "{object}");
    let (code, said) = retention(dir.path(), &["--workspace", "absent"]);
    assert!(code == Some(1) && said.contains("there is no workspace absent"), "{said}");
    assert_eq!(have_content(&mut clients, "w", &ids).await, [true; 3]);
    let (_, said) = retention(dir.path(), &["--config", one]);
    assert!(said.contains("keeps everything"), "a running server removes by its own configuration: {said}");
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));

    assert!(retention(dir.path(), &["--dry-run", "--config", one]).1.starts_with(would));
    let (code, said) = retention(dir.path(), &["--config", one]);
    assert!(code == Some(0) && said.starts_with("w: removed the content of 2 batches ("), "{said}");
    assert!(retention(dir.path(), &["--config", one]).1.starts_with("w: has nothing to remove; "));
    let program = Program::start(dir.path(), &[]);
    let mut clients = connect(&program).await;
    assert_eq!(have_content(&mut clients, "w", &ids).await, [false, false, true]);
}

/// Limits that are not configured are only tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_removes_by_the_configuration_alone() {
    let server = crate::server::Server::start();
    let clients = server.connect().await;
    let limits = Some(v1::RetentionLimits { content_batches: Some(0), ..v1::RetentionLimits::default() });
    let request = v1::RetainWorkspaceRequest { workspace_id: "w".to_owned(), dry_run: false, limits };
    let operator = crate::identity::admin(&clients).retain_workspace(request).await.unwrap_err();
    assert_eq!(refusal(&operator).1, "PERMISSION_DENIED", "without a token only the owner of the data administers");
    let (store, registry) = crate::identity::store_with_workspaces().await;
    let role = aptix_model::token::Role::Operator;
    let token = crate::identity::new("operator", role, aptix_model::token::Scope::All, None);
    let token = crate::identity::make(&registry, token).await;
    let server = crate::server::Server::over(store, aptix_server::options::Options::default());
    let mut admin = crate::identity::admin(&server.connect().await);
    let request = v1::RetainWorkspaceRequest { workspace_id: "own".to_owned(), dry_run: false, limits };
    let refused = admin.retain_workspace(crate::identity::with(&token, request.clone())).await.unwrap_err();
    assert_eq!((refused.code(), refusal(&refused).1.as_str()), (Code::InvalidArgument, "INVALID_REQUEST"));
    let request = v1::RetainWorkspaceRequest { dry_run: true, ..request };
    let counted = admin.retain_workspace(crate::identity::with(&token, request.clone())).await.unwrap().into_inner();
    assert_eq!((counted.limits, counted.contents, counted.newest_revision), (limits, 0, 0));
    let absent = v1::RetainWorkspaceRequest { workspace_id: "absent".to_owned(), ..request };
    let refused = admin.retain_workspace(crate::identity::with(&token, absent)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
}

/// The command removes blobs that nothing names, if they are older than the configuration keeps them; a dry run does not, nor a command
/// that knows no configuration.
#[tokio::test]
async fn the_command_frees_what_nothing_names() {
    let dir = tempfile::tempdir().unwrap();
    let (w, blob) = (workspace("w"), BlobRef { sha256: Sha256Digest::from_bytes([7; 32]), size_bytes: 3 });
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for (upload, sha256) in [(UploadId(Uuid::from_u128(5)), blob.sha256), (UploadId(mint::uuid()), Sha256Digest::EMPTY)]
    {
        store.put_chunk(upload, 0, b"abc".as_slice().into()).await.unwrap();
        store.commit_upload(upload, w.clone(), BlobRef { sha256, ..blob }).await.unwrap();
    }
    store.create_workspace(w.clone()).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let configuration = config("blob_retention_seconds = 86400\n");
    let configured = ["--config", configuration.path().to_str().unwrap()];
    for (arguments, left) in [(&["--dry-run"][..], 6), (&[], 6), (&configured, 3)] {
        assert_eq!(retention(dir.path(), arguments).0, Some(0));
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.used_bytes(w.clone()).await, Ok(left), "{arguments:?}");
        store.close().await.unwrap();
    }
}
