//! What an agent replies to calls of tools that read: what `aptix mcp` answers, under the policy for servers.

use std::time::Duration;

use aptix_client::agent::FromDisk;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::connection::question::{Answering, Wanted};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_model::batch::{Batch, Content, CreateFile, FileEdit, FilePatch, Origin, Target};
use aptix_model::question::{Question, ToolCall};
use aptix_model::wire::v1::answer::Answer;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Scene, put};

/// The answer to a call: its object, which has its texts in it as `text` if there is no such key.
fn call(scene: &Scene, tool: &str, arguments: &str) -> Value {
    let directories =
        scene.workspace.roots().iter().map(|root| scene.place.path().join("as/written").join(root.name()));
    let answering = FromDisk { workspace: None, directories: directories.collect() };
    let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
    let ask = Question::Tool(ToolCall { tool, arguments, origin: Origin::default() });
    let wanted = Wanted::for_time(Duration::from_secs(60), CancellationToken::new());
    let Answer::CallTool(answer) = answering.answer(&scene.workspace, &scene.policies, &ask, &wanted).0 else {
        panic!("no answer of a tool")
    };
    let object: Value = serde_json::from_str(&answer.structured).unwrap();
    assert_eq!(answer.is_error, object.get("success").or(object.get("successful")) == Some(&Value::Bool(false)));
    assert!(!answer.text.is_empty());
    let shown = format!("{answer:?}");
    assert!(!shown.contains(scene.place.path().to_str().unwrap()), "{shown}");
    object
}

/// The code of the first error.
fn refused(answer: &Value) -> String {
    let error = &answer["errors"][0];
    assert!(error["message"].is_string() && error["hint"].is_string(), "{answer}");
    let words = [&error["code"], &error["detail"]].map(|word| word.as_str().unwrap_or_default());
    words.join(".").trim_end_matches('.').to_owned()
}

fn paths(answer: &Value) -> Vec<&str> {
    answer["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

fn created(path: &str, text: &str) -> FilePatch {
    let content = Content::Text(text.to_owned());
    let edit = FileEdit::CreateFile(CreateFile { content, overwrite: true, content_format: None });
    FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit }
}

/// Applies a batch as the user at their shell.
fn apply_here(scene: &Scene, files: Vec<FilePatch>) {
    let policy = PolicyFiles::new(&scene.place.path().join("config"), Caller::Shell).read(&scene.workspace).unwrap();
    let batch = Batch { files, ..Batch::default() };
    let options = ApplyOptions::new(&policy, Mode::Commit);
    apply(&scene.workspace, &batch, options, &mut |_| Decision::Apply).unwrap();
}

#[test]
fn each_tool_that_reads_is_answered() {
    let scene = Scene::set();
    scene.put("src/a.txt", "one\ntwo\n");
    scene.put("b.txt", "three\n");
    let read = call(&scene, "read_file", r#"{"path":"src/a.txt"}"#);
    assert_eq!((&read["text"], &read["docPath"]), (&"one\ntwo\n".into(), &"ws/src/a.txt".into()));
    for directory in [scene.at(""), scene.place.path().join("as/written/ws")] {
        let arguments = serde_json::json!({ "path": directory.join("src/a.txt") }).to_string();
        assert_eq!(call(&scene, "read_file", &arguments), read);
        let view = serde_json::json!({ "command": "view", "path": directory }).to_string();
        assert_eq!(paths(&call(&scene, "str_replace_based_edit_tool", &view)), ["b.txt", "src/a.txt"]);
    }
    assert_eq!(paths(&call(&scene, "list_directory", r#"{"path":"src"}"#)), ["src/a.txt"]);
    assert_eq!(paths(&call(&scene, "ripgrep_files", r#"{"pattern":"","glob":"*.txt"}"#)), ["b.txt", "src/a.txt"]);
    assert_eq!(paths(&call(&scene, "ripgrep_content", r#"{"pattern":"tw"}"#)), ["src/a.txt"]);
    assert_eq!(call(&scene, "history", "{}")["batches"], serde_json::json!([]));
    apply_here(&scene, vec![created("b.txt", "four\n")]);
    let history = call(&scene, "history", r#"{"path":"b.txt"}"#);
    let id = history["batches"][0]["batchId"].as_str().unwrap();
    let shown = call(&scene, "get_patch_change", &format!(r#"{{"id":"{id}"}}"#));
    assert!(shown["diff"].as_str().unwrap().contains("-three\n+four\n"), "{shown}");
}

/// With several roots every path begins with a root's name, and an absolute path in one is the path in it.
#[test]
fn paths_begin_with_the_root_where_there_are_several() {
    let scene = Scene::of_roots(&["ws", "other"]);
    scene.put("a.txt", "zebra\n");
    let other = scene.place.path().join("other");
    put(&other.join("b.txt"), "zebra\n");
    for path in ["other/b.txt".to_owned(), other.join("b.txt").display().to_string()] {
        let read = call(&scene, "read_file", &serde_json::json!({ "path": path }).to_string());
        assert_eq!((&read["path"], &read["docPath"]), (&"other/b.txt".into(), &"other/b.txt".into()), "{read}");
    }
    assert_eq!(refused(&call(&scene, "read_file", r#"{"path":"b.txt"}"#)), "INVALID_PATH.UNKNOWN_ROOT");
    assert_eq!(paths(&call(&scene, "ripgrep_content", r#"{"pattern":"zebra"}"#)), ["other/b.txt", "ws/a.txt"]);
    assert_eq!(paths(&call(&scene, "ripgrep_files", r#"{"pattern":"","path":"other"}"#)), ["other/b.txt"]);
    assert_eq!(refused(&call(&scene, "ripgrep_files", r#"{"path":"none"}"#)), "INVALID_PATH.UNKNOWN_ROOT");
    put(&other.join("deep/c.txt"), "");
    for (arguments, files, directories) in [
        (r#"{"path":"ws"}"#, json!(["ws/a.txt"]), json!(null)),
        (r#"{"path":"other"}"#, json!(["other/b.txt"]), json!(["other/deep"])),
        (r#"{}"#, json!([]), json!(["other", "ws"])),
        (r#"{"page_token":"disk:other"}"#, json!([]), json!(["ws"])),
        (r#"{"page_token":"disk:ws"}"#, json!([]), json!(null)),
        (r#"{"path":"other","page_token":"disk:other/b.txt"}"#, json!([]), json!(["other/deep"])),
    ] {
        let listed = call(&scene, "list_directory", arguments);
        assert_eq!((json!(paths(&listed)), &listed["directories"]), (files, &directories), "{arguments}");
    }
    let first = call(&scene, "list_directory", r#"{"max_files":1}"#);
    assert_eq!((&first["directories"], &first["nextPageToken"]), (&json!(["other"]), &json!("disk:other")));
    apply_here(&scene, vec![created("ws/a.txt", "x\n"), created("other/b.txt", "y\n")]);
    let batches = call(&scene, "history", r#"{"path":"other"}"#);
    let batch = &batches["batches"][0];
    assert_eq!(paths(batch), ["ws/a.txt", "other/b.txt"]);
    let shown = call(&scene, "get_patch_change", &serde_json::json!({ "id": batch["batchId"] }).to_string());
    assert_eq!((shown["files"][0]["docPath"].as_str(), paths(&shown)[1]), (Some("ws/a.txt"), "other/b.txt"), "{shown}");
}

/// An absolute path leads into a root by the directory itself and by the one that the user wrote, as behind a link; into a file of
/// it, or nowhere. What is there makes no difference.
#[test]
fn absolute_paths_are_resolved_to_files_of_the_roots() {
    for (roots, prefix) in [(["ws"].as_slice(), ""), (["ws", "other"].as_slice(), "ws/")] {
        let scene = Scene::of_roots(roots);
        let at = |path: &str| scene.place.path().join(path).display().to_string();
        let mut cases = vec![
            (at("ws/src/A.txt"), Some("src/A.txt")),
            (at("as/written/ws/src/A.txt"), Some("src/A.txt")),
            (at("ws/.env"), Some(".env")),
            (at("ws"), None),
            (at("ws/"), None),
            (at("ws/../x"), None),
            (at("ws/src/../a.txt"), None),
            (at("ws2/a.txt"), None),
            (at("as/written/a.txt"), None),
            ("/etc/passwd".to_owned(), None),
            ("src/A.txt".to_owned(), None),
        ];
        let directories = roots.iter().map(|root| scene.place.path().join("as/written").join(root)).collect();
        let answering = FromDisk { workspace: None, directories };
        let ask = Question::Paths(cases.iter().map(|(path, _)| path.clone()).collect());
        let wanted = Wanted::for_time(Duration::from_secs(60), CancellationToken::new());
        let Answer::ResolvePaths(answer) = answering.answer(&scene.workspace, &scene.policies, &ask, &wanted).0 else {
            panic!("no paths")
        };
        assert_eq!(answer.paths.len(), cases.len());
        for ((asked, expected), found) in cases.drain(..).zip(answer.paths) {
            let path = expected.map(|path| format!("{prefix}{path}")).unwrap_or_default();
            let doc_path = expected.map(|path| format!("ws/{}", path.to_lowercase())).unwrap_or_default();
            assert_eq!((found.path, found.doc_path), (path, doc_path), "{asked}");
        }
    }
}

/// Nothing of a file that servers are not shown is read, found or listed; what the path alone decides is the same whether there
/// is such a file or not.
#[test]
fn a_server_is_shown_no_more_than_by_other_questions() {
    let scene = Scene::set();
    scene.put(".gitignore", "ignored/\n*.log\n");
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n", "zebra");
    for (path, text) in [
        ("ignored/a.txt", "zebra\n"),
        ("b.log", "zebra\n"),
        (".env", "zebra\n"),
        (".git/config", "zebra\n"),
        ("k.txt", &key),
        ("keys/k.txt", &key),
    ] {
        scene.put(path, text);
    }
    scene.put("open.txt", "zebra\n");
    scene.put("linked.txt", "zebra\n");
    std::fs::hard_link(scene.at("linked.txt"), scene.place.path().join("elsewhere")).unwrap();
    for (path, absent, word) in [
        ("ignored/a.txt", "ignored/none.txt", "IGNORED"),
        ("b.log", "none.log", "IGNORED"),
        (".env", "src/.env", "SECRET"),
        (".git/config", ".git/none", "PROTECTED"),
    ] {
        for tool in ["read_file", "str_replace_based_edit_tool"] {
            let ask = |path: &str| {
                let command = if tool == "read_file" { "" } else { r#""command":"view","# };
                let answer = call(&scene, tool, &format!(r#"{{{command}"path":"{path}"}}"#));
                (refused(&answer), answer["errors"][0]["message"].clone())
            };
            assert_eq!(ask(path).0, format!("POLICY_DENIED.{word}"), "{tool} {path}");
            assert_eq!(ask(path), ask(absent), "{tool} {path}");
        }
        for tool in ["ripgrep_files", "ripgrep_content"] {
            let ask = |path: &str| {
                let answer = call(&scene, tool, &format!(r#"{{"pattern":"zebra","path":"{path}"}}"#));
                refused(&answer)
            };
            assert_eq!(ask(path), ask(absent), "{tool} {path}");
            assert!(ask(path).starts_with("POLICY_DENIED"), "{tool} {path}: {}", ask(path));
        }
    }
    for (path, word) in [("k.txt", "SECRET"), ("linked.txt", "HARD_LINKED")] {
        let answer = call(&scene, "read_file", &format!(r#"{{"path":"{path}"}}"#));
        assert_eq!(refused(&answer), format!("POLICY_DENIED.{word}"));
    }
    assert_eq!(paths(&call(&scene, "ripgrep_content", r#"{"pattern":"zebra"}"#)), ["open.txt"]);
    assert_eq!(paths(&call(&scene, "ripgrep_files", r#"{"pattern":"zebra"}"#)), ["open.txt"]);
    for tool in ["ripgrep_files", "list_directory"] {
        assert_eq!(paths(&call(&scene, tool, "{}")), [".gitignore", "open.txt"], "{tool}");
    }
    // Nor the name of a directory in which nothing is shown.
    assert_eq!(call(&scene, "list_directory", "{}")["directories"], json!(null));
    assert_eq!(refused(&call(&scene, "read_file", r#"{"path":"none.txt"}"#)), "FILE_MISSING");
}

/// A batch with a file that servers are not shown is listed, as it is reported, and its lines are not shown; a policy that
/// reports nothing of the workstation lists nothing either.
#[test]
fn the_history_shows_a_server_what_it_may_be_told() {
    let scene = Scene::set();
    scene.put(".gitignore", "ignored.txt\n");
    apply_here(&scene, vec![created("ignored.txt", "zebra\n"), created("open.txt", "x\n")]);
    let history = call(&scene, "history", "{}");
    let batch = &history["batches"][0];
    assert_eq!(paths(batch), ["ignored.txt", "open.txt"]);
    let show = || call(&scene, "get_patch_change", &serde_json::json!({ "id": batch["batchId"] }).to_string());
    assert_eq!(refused(&show()), "POLICY_DENIED.IGNORED");
    // Content that was withheld when it was written stays so, whatever the rules are now.
    scene.put("k.txt", "open\n");
    apply_here(&scene, vec![created("k.txt", "-----BEGIN PRIVATE KEY-----\nzebra\n")]);
    apply_here(&scene, vec![created("k.txt", "open\n")]);
    let batches = call(&scene, "history", r#"{"path":"k.txt"}"#);
    for batch in batches["batches"].as_array().unwrap() {
        let shown = call(&scene, "get_patch_change", &serde_json::json!({ "id": batch["batchId"] }).to_string());
        assert!(refused(&shown).starts_with("POLICY_DENIED") && !shown.to_string().contains("zebra"), "{shown}");
    }
    scene.put_policy("report_local = 'off'");
    for answer in [call(&scene, "history", "{}"), show()] {
        assert_eq!(refused(&answer), "POLICY_DENIED.WITHHELD");
    }
}

/// A server that asks for more than reading, and a model that asks for nothing, get a refusal in the tool's form.
#[test]
fn what_does_not_only_read_is_refused() {
    let scene = Scene::set();
    scene.put("a.txt", "one\n");
    for (tool, arguments, expected) in [
        ("undo", r#"{"batch_id":"018f6d2e-7c1a-7b3e-9d55-0123456789ab"}"#, "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("edit", r#"{"file_path":"a.txt","old_string":"one","new_string":"two"}"#, "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("delete_file", r#"{"path":"a.txt"}"#, "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("no_tool", "{}", "INVALID_REQUEST.UNKNOWN_OPERATION"),
        ("read_file", r#"{"path":"../a"}"#, "INVALID_PATH.TRAVERSAL"),
        ("read_file", r#"{"path":"/etc/passwd"}"#, "INVALID_PATH.ABSOLUTE"),
    ] {
        assert_eq!(refused(&call(&scene, tool, arguments)), expected, "{tool} {arguments}");
    }
    for arguments in ["", "x", "{", "[]", r#"{"path":7}"#, r#"{"path":"a.txt","path":"a.txt"}"#, r#"{"file":"a.txt"}"#]
    {
        let answer = call(&scene, "read_file", arguments);
        assert_eq!(answer["errors"][0]["code"], "INVALID_REQUEST", "{arguments}: {answer}");
    }
    assert_eq!(std::fs::read_to_string(scene.at("a.txt")).unwrap(), "one\n");
}
