//! Paths are written in one way: relative to the only root, with a root's name in front where there are several. Whether a
//! path has it is determined by the key beside it. What a workspace's roots were before stays readable.

use aptix_model::wire::v1;
use aptix_model::wire::v1::file_patch::{Action, Target};
use aptix_model::wire::v1::file_selector::File;
use tonic::Code;

use crate::server::{Clients, Server, applied, assert_refused, create_text, fields, hello, submit};

/// Serves the workspace with these roots; answers the epoch of the lease.
async fn serve(client: &mut Clients, roots: &[&str]) -> u64 {
    let roots = roots.iter().map(|root| (*root).to_owned()).collect();
    let hello = v1::Hello { roots, lease_secret: client.secret("w"), ..hello("w", "agent") };
    client.serve(hello).await.unwrap().0
}

async fn cloud_paths(client: &mut Clients, directory: &str) -> Vec<(String, String)> {
    let request = v1::ListFilesRequest {
        workspace_id: "w".to_owned(),
        directory: directory.to_owned(),
        source: v1::Source::Cloud.into(),
        ..v1::ListFilesRequest::default()
    };
    let page = client.files.list_files(request).await.unwrap().into_inner();
    page.files.into_iter().map(|file| (file.path, file.doc_path)).collect()
}

/// The cloud copy that a path names.
async fn cloud(client: &mut Clients, path: &str) -> Option<String> {
    let read = client.read("w", File::Path(path.to_owned())).await;
    match read {
        Ok(file) => Some(String::from_utf8(file.content.unwrap().into()).unwrap()),
        Err(status) => {
            assert_eq!(status.code(), Code::NotFound, "{status}");
            None
        }
    }
}

fn named(mut report: v1::Report, paths: &[&str]) -> v1::Report {
    for (file, path) in report.files.iter_mut().zip(paths) {
        (file.path, file.renamed_to) = ((*path).to_owned(), file.renamed_to.take());
    }
    report
}

/// A report of several roots has their names, and so has where a renamed file is now; a path with the name of another root than
/// the key's is refused.
#[tokio::test]
async fn reports_of_several_roots_have_their_names() {
    let server = Server::start();
    let mut client = server.connect().await;
    let epoch = serve(&mut client, &["app", "lib"]).await;
    for bytes in [&b"one"[..], b"two", b"text"] {
        client.upload("w", bytes).await.unwrap();
    }
    let files = vec![create_text("app/A.txt", "one"), create_text("lib/A.txt", "two")];
    let batch = client.submit(submit("w", "r1", files)).await.unwrap();
    let report = applied(&[("app", "A.txt", b"one"), ("lib", "A.txt", b"two")]);
    for wrong in [["lib/A.txt", "lib/A.txt"], ["App/A.txt", "lib/A.txt"], ["app/app/A.txt", "lib/A.txt"]] {
        let report = named(report.clone(), &wrong);
        let status = client.report("w", &batch.batch_id, epoch, report).await.unwrap_err();
        assert!(fields(&status)[0].starts_with("report.files[0]."), "{wrong:?}: {status}");
    }
    let report = named(report, &["app/A.txt", "lib/A.txt"]);
    let stored = client.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
    assert_eq!(client.get("w", &stored.batch_id).await.unwrap().report, Some(report));

    let rename = v1::ContextPatch { move_to: Some("lib/b/C.txt".to_owned()), chunks: Vec::new() };
    let patch = v1::FilePatch {
        target: Some(Target::Path("lib/A.txt".to_owned())),
        action: Some(Action::ContextPatch(rename)),
        ..v1::FilePatch::default()
    };
    let batch = client.submit(submit("w", "r2", vec![patch])).await.unwrap();
    let mut report = named(applied(&[("lib", "A.txt", b"two")]), &["lib/A.txt"]);
    report.files[0].status = v1::FileStatus::Renamed.into();
    for (to, is_right) in [("b/C.txt", false), ("app/b/C.txt", false), ("lib/b/C.txt", true)] {
        report.files[0].renamed_to = Some(to.to_owned());
        let answer = client.report("w", &batch.batch_id, epoch, report.clone()).await;
        assert_eq!(answer.is_ok(), is_right, "{to}: {answer:?}");
    }
    let all = cloud_paths(&mut client, "").await;
    let pair = |path: &str| (path.to_owned(), path.to_lowercase());
    assert_eq!(all, [pair("app/A.txt"), pair("lib/b/C.txt")]);
    assert_eq!(cloud_paths(&mut client, "lib").await, [pair("lib/b/C.txt")]);
}

/// The cloud files of a root that was renamed or removed are listed and read under its name, by path and by key, whatever
/// roots the workspace has since; a file of the present root goes before one of a former root with the same path.
#[tokio::test]
async fn files_of_former_roots_stay_readable() {
    let server = Server::start();
    let mut client = server.connect().await;
    let store = async |client: &mut Clients, roots: &[&str], root: &str, path: &str, text: &str| {
        let epoch = serve(client, roots).await;
        client.upload("w", text.as_bytes()).await.unwrap();
        let (request, name) = (format!("r-{root}-{}", text.len()), format!("{root}/{path}"));
        let asked = if roots.len() > 1 { &name } else { path };
        let batch = client.submit(submit("w", &request, vec![create_text(asked, text)])).await.unwrap();
        let mut report = applied(&[(root, path, text.as_bytes())]);
        report.files[0].path = asked.to_owned();
        client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    };
    store(&mut client, &["app"], "app", "src/A.txt", "first").await;
    assert_eq!(cloud(&mut client, "src/A.txt").await.as_deref(), Some("first"));
    // Renamed: the only root is another one.
    store(&mut client, &["new"], "new", "src/A.txt", "second").await;
    let pair = |path: &str, key: &str| (path.to_owned(), key.to_owned());
    let expected = [pair("app/src/A.txt", "app/src/a.txt"), pair("src/A.txt", "new/src/a.txt")];
    assert_eq!(cloud_paths(&mut client, "").await, expected);
    assert_eq!(cloud_paths(&mut client, "app/src").await, expected[..1]);
    assert_eq!(cloud_paths(&mut client, "src").await, expected[1..]);
    assert_eq!(cloud(&mut client, "src/A.txt").await.as_deref(), Some("second"));
    assert_eq!(cloud(&mut client, "app/src/A.txt").await.as_deref(), Some("first"));
    let by_key = client.read("w", File::DocPath("app/src/a.txt".to_owned())).await.unwrap();
    assert_eq!(by_key.file.unwrap().path, "app/src/A.txt");
    // The present root has a file at the same path.
    store(&mut client, &["new"], "new", "app/src/A.txt", "of the present root").await;
    assert_eq!(cloud(&mut client, "app/src/A.txt").await.as_deref(), Some("of the present root"));
    let by_key = client.read("w", File::DocPath("app/src/a.txt".to_owned())).await.unwrap();
    assert_eq!(by_key.content.as_deref(), Some(b"first".as_slice()));
    // Several roots: every path has a root's name, and a removed root is as readable as the others.
    serve(&mut client, &["new", "lib"]).await;
    assert_eq!(cloud(&mut client, "app/src/A.txt").await.as_deref(), Some("first"));
    assert_eq!(cloud(&mut client, "new/src/A.txt").await.as_deref(), Some("second"));
    assert_eq!(cloud(&mut client, "src/A.txt").await, None);
    let missing = client.read("w", File::DocPath("app/src/b.txt".to_owned())).await;
    assert_refused(missing, Code::NotFound, "NOT_FOUND", "");
}
