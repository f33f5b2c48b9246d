//! Every message writes the path of a file in one way: relative to the only root, with the root's name in front where the agent
//! has several; over gRPC, and in what the command line prints.

use std::process::{Child, Command};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use crate::processes::{Machine, Server, connected, eventually, json as output, wait_until_served, write};

/// An agent, ended with the test.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent with these roots, whatever was agreed to before.
fn agent(machine: &Machine, server: &Server, roots: &[&str]) -> Agent {
    let url = server.url();
    let mut command: Command = machine.aptix(&["agent", "--server", &url, "--workspace", "demo", "--approve", "auto"]);
    command.arg("--agree").args(roots.iter().flat_map(|root| ["--root", root]));
    let agent = Agent(command.spawn().unwrap());
    wait_until_served(server);
    agent
}

/// The batch with all that became of it.
fn stored(server: &Server, id: &Value) -> v1::Batch {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(server.url()).unwrap().connect().await.unwrap();
        let request = v1::GetBatchRequest {
            workspace_id: "demo".to_owned(),
            view: v1::BatchView::Full.into(),
            batch: Some(v1::get_batch_request::Batch::BatchId(id.as_str().unwrap().to_owned())),
        };
        BatchServiceClient::new(channel).get_batch(request).await.unwrap().into_inner().batch.unwrap()
    })
}

/// A patch that renames one file and changes it, and changes another.
fn patch(renamed: &str, to: &str, changed: &str, old: &str) -> String {
    format!(
        "*** Begin Patch\n*** Update File: {renamed}\n*** Move to: {to}\n@@\n-a\n+b\n*** Update File: {changed}\n@@\n-{old}\n\
         +new\n*** End Patch\n"
    )
}

fn check(roots: &[&str], prefix: &str) {
    let (machine, name) = (Machine::new(), |path: &str| format!("{prefix}{path}"));
    for (path, text) in [("project/src/A.txt", "a\n"), ("project/Same.txt", "old\n"), ("second/Same.txt", "other\n")] {
        write(&machine.path(path), text);
    }
    let server = machine.server();
    let _agent = agent(&machine, &server, roots);

    // Refused: the failure names the file as the author may, with the key beside it.
    let wrong = patch(&name("src/A.txt"), &name("src/B.txt"), &name("Same.txt"), "nothing like it");
    let (answer, exit) = machine.submit(&server, &wrong);
    assert_eq!(exit, Some(1), "{answer}");
    let failure = &stored(&server, &answer["batchId"]).report.unwrap().failures[0];
    assert_eq!((&failure.path, failure.doc_path.as_str()), (&name("Same.txt"), "project/same.txt"), "{failure:?}");
    assert_eq!(
        [&answer["errors"][0]["path"], &answer["errors"][0]["docPath"]],
        [&name("Same.txt"), "project/same.txt"]
    );

    // Applied: the report, its diff, and what the command line prints.
    let right = patch(&name("src/A.txt"), &name("src/B.txt"), &name("Same.txt"), "old");
    let (answer, exit) = machine.submit(&server, &right);
    assert_eq!(exit, Some(0), "{answer}");
    let report = stored(&server, &answer["batchId"]).report.unwrap();
    let files: Vec<_> = report.files.iter().map(|file| [&file.path, &file.doc_path]).collect();
    let expected = [(name("src/A.txt"), "project/src/a.txt"), (name("Same.txt"), "project/same.txt")];
    assert_eq!(files, expected.each_ref().map(|(path, key)| [path.as_str(), key]));
    assert_eq!(report.files[0].renamed_to, Some(name("src/B.txt")));
    let heads: Vec<_> = report.diff.lines().filter(|line| line.starts_with("diff --git ")).collect();
    let head = |old: &str, new: &str| format!("diff --git a/{prefix}{old} b/{prefix}{new}");
    assert_eq!(heads, [head("src/A.txt", "src/B.txt"), head("Same.txt", "Same.txt")]);
    let printed = |answer: &Value| json!([answer["files"][0]["path"], answer["files"][0]["renamedTo"], answer["diff"]]);
    let told = json!([name("src/A.txt"), name("src/B.txt"), report.diff]);
    let (shown, _) = machine.ask(&server, "show", &[answer["batchId"].as_str().unwrap()]);
    let roots: Vec<_> = roots.iter().flat_map(|root| ["--root", root]).collect();
    let here = |command: &[&str]| output(&machine.aptix(&[command, &roots, &["--json"]].concat()).output().unwrap()).0;
    let shown_here = here(&["show", answer["batchId"].as_str().unwrap()]);
    for answer in [&answer, &shown, &shown_here] {
        assert_eq!(printed(answer), told, "{answer}");
    }

    // What is done on the workstation itself: its own answer, its history, and the batch that the server gets.
    let undone = here(&["undo"]);
    assert_eq!(
        (&undone["success"], &undone["files"][0]["path"]),
        (&json!(true), &json!(name("src/B.txt"))),
        "{undone}"
    );
    assert_eq!(undone["files"][0]["renamedTo"], json!(name("src/A.txt")), "{undone}");
    let listed = here(&["log"])["batches"][1]["files"][0].clone();
    let renamed = json!({"path": name("src/A.txt"), "docPath": "project/src/a.txt", "renamedTo": name("src/B.txt"), "status": "renamed"});
    assert_eq!(listed, renamed);
}

#[test]
fn with_one_root_paths_are_relative_to_it() {
    check(&["project"], "");
}

#[test]
fn with_several_roots_paths_begin_with_the_name_of_one() {
    check(&["project", "second"], "project/");
}

/// The key of a root that the agent has no more: the agent that is connected refuses it by name, and the cloud copy is read where
/// it is demanded.
#[test]
fn the_key_of_a_removed_root_is_read_from_the_cloud_copy_alone() {
    let machine = Machine::new();
    write(&machine.path("project/a.txt"), "a\n");
    write(&machine.path("second/B.txt"), "old\n");
    let server = machine.server();
    let both = agent(&machine, &server, &["project", "second"]);
    let (answer, exit) =
        machine.submit(&server, "*** Begin Patch\n*** Update File: second/B.txt\n@@\n-old\n+new\n*** End Patch\n");
    assert_eq!(exit, Some(0), "{answer}");
    drop(both);
    let _one = agent(&machine, &server, &["project"]);
    let (runtime, channel) = connected(&server);
    let (mut files, mut workspaces) = (FileServiceClient::new(channel.clone()), WorkspaceServiceClient::new(channel));
    eventually("the agent with one root serves", || {
        let asked = v1::GetWorkspaceRequest { workspace_id: "demo".to_owned() };
        let found = runtime.block_on(workspaces.get_workspace(asked)).unwrap().into_inner().workspace.unwrap();
        found.serving.is_some() && found.roots == ["project"]
    });
    let mut read = |source: v1::Source| {
        let file = v1::file_selector::File::DocPath("second/b.txt".to_owned());
        let request = v1::ReadFileRequest {
            workspace_id: "demo".to_owned(),
            file: Some(v1::FileSelector { file: Some(file) }),
            range: None,
            source: source.into(),
        };
        runtime.block_on(files.read_file(request)).map(|answer| answer.into_inner().file.unwrap())
    };
    for source in [v1::Source::Unspecified, v1::Source::Active] {
        let refused = read(source).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains("no root of this workspace is named \"second\""), "{refused:?}");
    }
    let copy = read(v1::Source::Cloud).unwrap();
    assert_eq!(
        (copy.content.as_deref(), copy.file.unwrap().path.as_str()),
        (Some(b"new\n".as_slice()), "second/B.txt")
    );
}
