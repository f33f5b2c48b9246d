//! The main job on a small real project: a batch is sent over gRPC to the server, the agent applies it, the
//! report and the new cloud text come back; then a stale batch is refused and nothing changes.
//!
//! Started by `cargo xtask demo`, which builds the two binaries first. Exits 0 only if all of that held.

#![expect(clippy::print_stdout, reason = "a demo shows what happens")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Target};
use aptix_model::report::{FileReport, Report};
use aptix_model::wire::v1::{self, batch_service_client::BatchServiceClient, file_service_client::FileServiceClient};
use tonic::transport::Channel;

const WORKSPACE: &str = "demo";
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("demo_project/README.md")),
    ("src/count.rs", include_str!("demo_project/src/count.rs")),
    ("src/main.rs", include_str!("demo_project/src/main.rs")),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let held = tokio::time::timeout(Duration::from_secs(120), run()).await;
    held.context("the demo did not get through in two minutes")??;
    say("All of it held.");
    Ok(())
}

async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("wordcount");
    lay_out(&project)?;
    say(&format!("1. A small project lies in {}", project.display()));

    let (server, url) = start_server(&folder.path().join("data"))?;
    say(&format!("2. aptix-server keeps its store beside it and listens on {url}"));
    let agent = start_agent(&url, &project, &folder.path().join("state"))?;
    say("3. aptix agent serves the workspace 'demo' and applies without asking (--approve auto)");
    let _processes = (server, agent);

    let channel = Channel::from_shared(url)?.connect().await?;
    let (mut batches, mut files) = (BatchServiceClient::new(channel.clone()), FileServiceClient::new(channel));

    say("4. Over gRPC: one batch of two line patches and a new file");
    let first = submit(&mut batches, "demo-1", word_splitting()).await?;
    ensure!(first.state() == v1::BatchState::Applied, "the batch ended as {:?}, expected APPLIED", first.state());
    let report = Report::try_from(first.report.context("an applied batch has a report")?)
        .map_err(|failures| anyhow::anyhow!("the report does not read: {failures:?}"))?;
    println!("\n{}", report.diff);
    ensure!(report.files.len() == 3, "the report names {} files, expected 3", report.files.len());

    say("5. The report, and the cloud text read back by its SHA-256");
    for file in &report.files {
        let content = check_cloud_text(&mut files, &project, file).await?;
        println!(
            "   {:<9} {:<20} {:>4} bytes, sha256 {}",
            file.status.word(),
            file.path,
            content.len(),
            sha256(&content)
        );
    }

    say("6. The same patch again, now with a stale SHA-256: refused, and nothing changes");
    let before = tree(&project)?;
    let second = submit(&mut batches, "demo-2", stale()).await?;
    ensure!(second.state() == v1::BatchState::Failed, "the batch ended as {:?}, expected FAILED", second.state());
    let report = second.report.context("a failed batch has a report")?;
    for failure in &report.failures {
        println!("   {}: {}: {}", failure.reason, failure.path, failure.message);
        println!("   hint: {}", failure.hint);
    }
    ensure!(
        report.failures.iter().any(|failure| failure.reason == "SHA_MISMATCH"),
        "expected SHA_MISMATCH among {:?}",
        report.failures
    );
    ensure!(tree(&project)? == before, "the refused batch changed a file");
    Ok(())
}

fn say(step: &str) {
    println!("\n== {step}");
}

fn lay_out(project: &Path) -> Result<()> {
    for (path, content) in PROJECT {
        write(&project.join(path), content)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "lays out the demo's own project in a temporary folder")]
fn write(path: &Path, content: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    Ok(std::fs::write(path, content)?)
}

/// A process that does not outlive the demo.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_server(data: &Path) -> Result<(Owned, String)> {
    let mut command = Command::new(binary("aptix-server")?);
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    let mut server = Owned(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
    let stdout = server.0.stdout.take().context("the server's output is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let Some(address) = line.trim().strip_prefix("listening on ") else {
        bail!("the server said {line:?}, expected \"listening on ADDR:PORT\"");
    };
    Ok((server, format!("http://{address}")))
}

fn start_agent(url: &str, project: &Path, state: &Path) -> Result<Owned> {
    let mut command = Command::new(binary("aptix")?);
    command.args(["agent", "--server", url, "--workspace", WORKSPACE, "--approve", "auto", "--root"]).arg(project);
    command
        .env("XDG_STATE_HOME", state)
        .env("XDG_CONFIG_HOME", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(Owned(command.spawn()?))
}

/// The binary beside this program's own folder, where cargo puts both.
fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.ancestors().nth(2).context("an example lies two folders deep")?.join(name);
    ensure!(path.exists(), "{} is not built; start the demo with 'cargo xtask demo'", path.display());
    Ok(path)
}

/// Submits a batch and waits until it has ended.
async fn submit(batches: &mut BatchServiceClient<Channel>, request_id: &str, batch: Batch) -> Result<v1::Batch> {
    let request = v1::SubmitBatchRequest {
        workspace_id: WORKSPACE.into(),
        request_id: request_id.into(),
        content: Some(v1::submit_batch_request::Content::Edit(batch.into())),
        origin: None,
        ..v1::SubmitBatchRequest::default()
    };
    let stored = batches.submit_batch(request).await?.into_inner().batch.context("the answer has the batch")?;
    println!("   stored as {}", stored.batch_id);
    let request = v1::WatchBatchRequest {
        workspace_id: WORKSPACE.into(),
        batch_id: stored.batch_id,
        view: v1::BatchView::Full.into(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = batches.watch_batch(request).await?.into_inner();
    let mut latest = None;
    while let Some(message) = states.message().await? {
        let batch = message.batch.context("a state comes with its batch")?;
        println!("   {}", batch.state().as_str_name());
        latest = Some(batch);
    }
    latest.context("the stream ended without a state")
}

/// Reads a file's cloud text and holds it against the report and the disk.
async fn check_cloud_text(
    files: &mut FileServiceClient<Channel>,
    project: &Path,
    reported: &FileReport,
) -> Result<Vec<u8>> {
    let file = Some(v1::file_selector::File::DocPath(reported.doc_path.clone()));
    let file = Some(v1::FileSelector { file });
    let request = v1::ReadFileRequest { workspace_id: WORKSPACE.into(), file, ..v1::ReadFileRequest::default() };
    let content = files
        .read_file(request)
        .await?
        .into_inner()
        .file
        .and_then(|file| file.content)
        .context("a small file comes inline")?;
    ensure!(
        reported.written.is_some_and(|written| written.sha256 == sha256(&content)),
        "{}: the cloud text has another SHA-256",
        reported.path
    );
    ensure!(std::fs::read(project.join(&reported.path))? == content, "{}: disk and cloud differ", reported.path);
    Ok(content.into())
}

/// Every file of the project with its bytes.
fn tree(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(tree(&path)?);
        } else {
            let content = std::fs::read(&path)?;
            found.insert(path, content);
        }
    }
    Ok(found)
}

fn line_patch(path: &str, content: &str, changes: Vec<Operation>) -> FilePatch {
    let changes = changes.into_iter().map(|operation| Change { key: None, description: None, operation });
    FilePatch {
        target: Target::DocPath(format!("wordcount/{}", path.to_lowercase())),
        key: None,
        label: None,
        edit: FileEdit::LinePatch(LinePatch {
            original_sha256: sha256(content.as_bytes()).to_string(),
            changes: changes.collect(),
        }),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(Into::into).collect()
}

/// Splits at any white space, tests that, and documents it in the README.
fn word_splitting() -> Batch {
    let count = line_patch(
        "src/count.rs",
        PROJECT[1].1,
        vec![
            Operation::Replace {
                start_line: 5,
                end_line: 5,
                expected_original_lines: lines("    text.split(' ').count()"),
                new_lines: lines("    text.split_whitespace().count()"),
            },
            Operation::Insert {
                after_line: 6,
                new_lines: lines("\n#[cfg(test)]\n#[path = \"count_tests.rs\"]\nmod tests;"),
            },
        ],
    );
    let readme = line_patch(
        "README.md",
        PROJECT[0].1,
        vec![Operation::Insert { after_line: 3, new_lines: lines("Words are what white space separates.") }],
    );
    let test = "#[test]\nfn white_space_separates_words() {\n    assert_eq!(super::words(\" a\\tb\\n\"), 2);\n}\n";
    let tests = FilePatch {
        target: Target::Path("src/count_tests.rs".into()),
        key: None,
        label: None,
        edit: FileEdit::CreateFile(CreateFile {
            content: Content::Text(test.into()),
            overwrite: false,
            content_format: None,
        }),
    };
    Batch {
        label: Some("Split words at any white space".into()),
        files: vec![count, readme, tests],
        ..Batch::default()
    }
}

/// Changes a file by the SHA-256 it had before the first batch.
fn stale() -> Batch {
    let change = Operation::Delete { start_line: 1, end_line: 1, expected_original_lines: lines("//! Counting.") };
    Batch { files: vec![line_patch("src/count.rs", PROJECT[1].1, vec![change])], ..Batch::default() }
}
