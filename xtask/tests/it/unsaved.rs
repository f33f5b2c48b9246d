//! Unsaved buffers of editors, announced to a real agent on its socket: what is read, and which batches wait for a save.

mod bounds;
mod editor;
mod sockets;
mod tools;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use serde_json::json;
use tonic::transport::Channel;
use tonic::{Code, Status};

use self::editor::Editor;
use crate::documents::{create, insert};
use crate::processes::{Machine, Running, Server, connected, python_command, served, wait_until_served};

/// A machine whose agent listens to editors, and a client of its server.
struct Scene {
    machine: Machine,
    server: Server,
    agent: Running,
    runtime: tokio::runtime::Runtime,
    files: FileServiceClient<Channel>,
}

impl Scene {
    fn set() -> Self {
        let (machine, server, agent) = served("auto");
        wait_until_served(&server);
        let (runtime, channel) = connected(&server);
        Self { machine, server, agent, runtime, files: FileServiceClient::new(channel) }
    }

    fn editor(&self) -> Editor {
        Editor::connect(&self.machine)
    }

    fn read(&mut self, path: &str) -> Result<v1::FileContent, Status> {
        let request = v1::ReadFileRequest {
            workspace_id: "demo".to_owned(),
            file: Some(selector(path)),
            source: v1::Source::Active.into(),
            range: None,
        };
        Ok(self.runtime.block_on(self.files.read_file(request))?.into_inner().file.unwrap())
    }

    /// The text that is read, and whether it is unsaved.
    #[track_caller]
    fn shown(&mut self, path: &str) -> (String, bool) {
        let file = self.read(path).unwrap();
        let (state, content) = (file.file.unwrap(), file.content.unwrap());
        assert_eq!(state.source(), v1::Source::Active);
        assert_eq!((state.sha256, state.size_bytes), (sha256(&content).to_string(), content.len() as u64));
        (String::from_utf8(content.into()).unwrap(), state.is_unsaved)
    }

    fn search(&mut self, pattern: &str) -> Vec<(String, u32, bool)> {
        let request = v1::SearchFilesRequest {
            workspace_id: "demo".to_owned(),
            pattern: pattern.to_owned(),
            ..Default::default()
        };
        let found = self.runtime.block_on(self.files.search_files(request)).unwrap().into_inner();
        found.matches.into_iter().map(|matched| (matched.path, matched.line, matched.is_unsaved)).collect()
    }

    /// What a file is without its content: its digest, and whether that is of unsaved text.
    fn described(&mut self, path: &str) -> (String, bool) {
        let request = v1::StatFilesRequest {
            workspace_id: "demo".to_owned(),
            files: vec![selector(path)],
            source: v1::Source::Active.into(),
        };
        let mut answer = self.runtime.block_on(self.files.stat_files(request)).unwrap().into_inner();
        let Some(v1::file_result::Result::File(file)) = answer.results.remove(0).result else { panic!("{path}") };
        let state = file.file.unwrap();
        (state.sha256, state.is_unsaved)
    }

    /// The code of what a batch is refused for; empty if it is applied.
    fn outcome(&self, document: &str) -> String {
        let (answer, _) = self.machine.submit(&self.server, document);
        answer["errors"][0]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn selector(path: &str) -> v1::FileSelector {
    v1::FileSelector { file: Some(v1::file_selector::File::Path(path.to_owned())) }
}

/// What lists and searches leave out of the disk reaches the caller of the server.
#[test]
fn a_server_s_caller_sees_what_was_left_out() {
    let mut scene = Scene::set();
    let deep = format!("deep{}", "/d".repeat(63));
    scene.machine.put(&format!("{deep}/d/x.txt"), "x\n");
    let workspace_id = || "demo".to_owned();
    let list = v1::ListFilesRequest { workspace_id: workspace_id(), ..Default::default() };
    let listed = scene.runtime.block_on(scene.files.list_files(list)).unwrap().into_inner();
    let expected = Some(v1::Skipped { too_deep: 1, paths: vec![deep], ..Default::default() });
    assert_eq!(listed.skipped, expected);
    let search = v1::SearchFilesRequest { workspace_id: workspace_id(), pattern: "x".to_owned(), ..Default::default() };
    let found = scene.runtime.block_on(scene.files.search_files(search)).unwrap().into_inner();
    assert_eq!((found.matches.len(), found.skipped), (0, expected));
}

/// TUL-002-3.3: a file that an editor holds is read as its unsaved text, marked so; a batch against it is refused by name, with a
/// hint for the model, until it is saved, and then made for the saved text.
#[test]
fn a_batch_waits_until_the_buffer_is_saved() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    assert_eq!(scene.shown("a.txt"), ("disk\n".to_owned(), false));
    let mut editor = scene.editor();
    let announced = editor.announce("a.txt", "typed zebra\n");
    assert_eq!((&announced["ok"], &announced["unsaved"]), (&json!(true), &json!(true)), "{announced}");
    assert_eq!(scene.shown("a.txt"), ("typed zebra\n".to_owned(), true));
    assert_eq!(scene.described("a.txt"), (sha256(b"typed zebra\n").to_string(), true));
    assert_eq!(scene.search("zebra|disk"), [("a.txt".to_owned(), 1, true)]);
    for text in ["disk\n", "typed zebra\n"] {
        let (answer, exit) = scene.machine.submit(&scene.server, &insert(&[("a.txt", text)], 1, "more"));
        let error = &answer["errors"][0];
        assert_eq!(
            (exit, &error["code"], &error["path"]),
            (Some(1), &json!("UNSAVED_BUFFER"), &json!("a.txt")),
            "{answer}"
        );
        assert!(error["hint"].as_str().unwrap().contains("save or discard it in the editor"), "{answer}");
    }
    assert_eq!(scene.machine.files(), [("a.txt".to_owned(), "disk\n".to_owned())]);
    scene.machine.put("a.txt", "typed zebra\n");
    // What was saved is no longer unsaved, even before the editor says so.
    assert_eq!(scene.shown("a.txt"), ("typed zebra\n".to_owned(), false));
    assert_eq!(editor.withdraw("a.txt")["ok"], true);
    assert_eq!(scene.outcome(&insert(&[("a.txt", "typed zebra\n")], 1, "more")), "");
    assert_eq!(scene.shown("a.txt"), ("typed zebra\nmore\n".to_owned(), false));
}

/// A buffer that equals the disk is not held, so that it does not look unsaved once a batch has changed the file.
#[test]
fn a_buffer_that_equals_the_disk_is_not_unsaved() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "one\n");
    let mut editor = scene.editor();
    assert_eq!(editor.announce("a.txt", "one\n")["unsaved"], false);
    assert_eq!(scene.outcome(&insert(&[("a.txt", "one\n")], 1, "two")), "");
    assert_eq!(scene.shown("a.txt"), ("one\ntwo\n".to_owned(), false));
    // Text that was typed and taken back again.
    assert_eq!(editor.announce("a.txt", "typed\n")["unsaved"], true);
    assert_eq!(editor.announce("a.txt", "one\ntwo\n")["unsaved"], false);
    assert_eq!(scene.outcome(&insert(&[("a.txt", "one\ntwo\n")], 2, "three")), "");
}

/// The person at their own shell knows their editor: nothing holds them back.
#[test]
fn a_local_apply_is_not_held_back() {
    let scene = Scene::set();
    scene.machine.put("a.txt", "one\n");
    let mut editor = scene.editor();
    editor.announce("a.txt", "typed\n");
    crate::processes::write(&scene.machine.path("edit.json"), &insert(&[("a.txt", "one\n")], 1, "two"));
    let applied = scene.machine.aptix(&["apply", "--root", "project", "edit.json"]).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    assert_eq!(scene.machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())]);
}

/// Whatever a batch does with the file of a buffer, and by whatever name: it makes, removes, renames, copies or replaces it.
#[test]
#[expect(clippy::disallowed_methods, reason = "a link in a test's own directory")]
fn whatever_a_batch_does_with_the_file_is_refused() {
    let mut scene = Scene::set();
    for name in ["a.txt", "b.txt", "dir/c.txt"] {
        scene.machine.put(name, "disk\n");
    }
    std::os::unix::fs::symlink("dir", scene.machine.path("project/link")).unwrap();
    let mut editor = scene.editor();
    for name in ["a.txt", "New.txt", "link/c.txt"] {
        assert_eq!(editor.announce(name, "typed\n")["unsaved"], true, "{name}");
        assert_eq!(scene.shown(name), ("typed\n".to_owned(), true));
    }
    assert_eq!(scene.shown("dir/c.txt"), ("typed\n".to_owned(), true));
    let git = |text: &str| format!("diff --git {text}");
    let replaced = json!({"path": "a.txt", "content": "x\n", "overwrite": true}).to_string();
    for (what, document) in [
        ("create", create("New.txt", "x\n")),
        ("create in another case", create("new.txt", "x\n")),
        ("replace", replaced),
        ("edit by its real path", insert(&[("dir/c.txt", "disk\n")], 1, "x")),
        (
            "delete",
            git("a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-disk\n"),
        ),
        ("rename from", git("a/a.txt b/z.txt\nsimilarity index 100%\nrename from a.txt\nrename to z.txt\n")),
        ("rename to", git("a/b.txt b/New.txt\nsimilarity index 100%\nrename from b.txt\nrename to New.txt\n")),
        ("copy", git("a/a.txt b/z.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to z.txt\n")),
        ("one of two", insert(&[("b.txt", "disk\n"), ("a.txt", "disk\n")], 1, "x")),
    ] {
        assert_eq!(scene.outcome(&document), "UNSAVED_BUFFER", "{what}");
    }
    assert_eq!(scene.outcome(&insert(&[("b.txt", "disk\n")], 1, "x")), "", "no buffer of it");
}

/// A buffer of a file that servers are not shown is as little shown as the file, and so is a key that was only typed.
#[test]
fn a_buffer_is_withheld_as_its_file_is() {
    let mut scene = Scene::set();
    scene.machine.put(".gitignore", "ignored.txt\n");
    for name in ["ignored.txt", ".env", "open.txt", "notes.txt"] {
        scene.machine.put(name, "disk\n");
    }
    let mut editor = scene.editor();
    for name in ["ignored.txt", ".env"] {
        assert_eq!(editor.announce(name, "typed zebra\n")["unsaved"], true);
    }
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nzebra\n";
    assert_eq!(editor.announce("open.txt", key)["unsaved"], true);
    for name in ["ignored.txt", ".env", "open.txt"] {
        let status = scene.read(name).unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{name}: {status}");
        assert!(!format!("{status:?}").contains("zebra"), "{status:?}");
    }
    assert_eq!(scene.search("zebra"), []);
    let refused = editor.announce(".git/config", "typed\n");
    assert_eq!((&refused["ok"], &refused["reason"]), (&json!(false), &json!("POLICY_DENIED")), "{refused}");
    assert_eq!(scene.shown("notes.txt"), ("disk\n".to_owned(), false));
}

/// The example announces each line that is typed, until its input ends.
#[test]
fn the_example_in_python_is_an_editor() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "one\n");
    drop(scene.editor());
    let [root, file] = ["project", "project/a.txt"].map(|name| scene.machine.path(name).to_str().unwrap().to_owned());
    let mut command = python_command(&["announce_buffer.py", &root, &file]);
    command.env("XDG_STATE_HOME", scene.machine.path("state")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut example = Running(command.spawn().unwrap());
    let mut keys = example.0.stdin.take().unwrap();
    let mut answers = BufReader::new(example.0.stdout.take().unwrap()).lines();
    writeln!(keys, "one").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "saved");
    writeln!(keys, "two").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "unsaved");
    assert_eq!(scene.shown("a.txt"), ("one\ntwo\n".to_owned(), true));
    drop(keys);
    assert!(example.0.wait().unwrap().success());
    assert_eq!(scene.shown("a.txt"), ("one\n".to_owned(), false));
}

/// Buffers last as long as the connection: an editor that crashes holds nothing back. Where two editors hold a file, the text
/// announced last is shown, and each of them holds batches back.
#[test]
fn buffers_go_with_their_editor() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    let (mut one, mut other) = (scene.editor(), scene.editor());
    one.announce("a.txt", "one\n");
    other.announce("a.txt", "other\n");
    assert_eq!(scene.shown("a.txt"), ("other\n".to_owned(), true));
    one.announce("a.txt", "one again\n");
    assert_eq!(scene.shown("a.txt"), ("one again\n".to_owned(), true));
    assert_eq!(other.withdraw("a.txt")["ok"], true);
    assert_eq!(scene.shown("a.txt"), ("one again\n".to_owned(), true), "nobody withdraws another editor's buffer");
    assert_eq!(scene.outcome(&insert(&[("a.txt", "disk\n")], 1, "x")), "UNSAVED_BUFFER");
    one.crash();
    crate::processes::eventually("the buffers are gone", || !scene.shown("a.txt").1);
    assert_eq!(scene.outcome(&insert(&[("a.txt", "disk\n")], 1, "x")), "");
}
