//! What models are shown of unsaved buffers by `aptix mcp`, which asks the agent of its root.

use serde_json::{Value, json};

use super::Scene;
use crate::documents::insert;
use crate::tool_calls::mcp::Model;

/// TUL-002-3.3: over MCP as over gRPC, unsaved text is what is read and found, and a batch against it is refused; nothing is
/// prepared on it either. Once the editor has left, everything is as on disk.
#[test]
fn models_are_shown_unsaved_text_and_write_nothing_over_it() {
    let scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    scene.machine.put(".env", "disk\n");
    let mut model = Model::start(&scene.machine);
    let read = |model: &mut Model| model.call("read_file", &json!({"path": "a.txt"}));
    let before = read(&mut model);
    assert_eq!((&before["text"], &before["unsaved"]), (&json!("disk\n"), &Value::Null), "{before}");
    let mut editor = scene.editor();
    editor.announce("a.txt", "typed zebra\n");
    editor.announce(".env", "zebra\n");
    editor.announce("New.txt", "zebra\n");
    let shown = read(&mut model);
    assert_eq!((&shown["text"], &shown["unsaved"]), (&json!("typed zebra\n"), &json!(true)), "{shown}");
    let new = model.call("read_file", &json!({"path": "New.txt"}));
    assert_eq!((&new["text"], &new["unsaved"]), (&json!("zebra\n"), &json!(true)), "{new}");
    let withheld = model.call("read_file", &json!({"path": ".env"}));
    assert!(!withheld.to_string().contains("zebra") && withheld["success"] == false, "{withheld}");
    let found = model.call("ripgrep_content", &json!({"pattern": "zebra"}));
    let files: Vec<_> =
        found["files"].as_array().unwrap().iter().map(|file| (&file["path"], &file["unsaved"])).collect();
    assert_eq!(files, [(&json!("a.txt"), &json!(true))], "{found}");
    let patch: Value = serde_json::from_str(&insert(&[("a.txt", "typed zebra\n")], 1, "x")).unwrap();
    let refused = model.call("workspace_write_patch", &patch);
    assert_eq!(refused["errors"][0]["code"], "UNSAVED_BUFFER", "{refused}");
    let refused = model.call("prepare_file_append", &json!({"path": "a.txt", "content": "x\n"}));
    assert_eq!(refused["errors"][0]["code"], "UNSAVED_BUFFER", "{refused}");
    drop(editor);
    crate::processes::eventually("the buffers are gone", || read(&mut model)["text"] == "disk\n");
    let patch: Value = serde_json::from_str(&insert(&[("a.txt", "disk\n")], 1, "x")).unwrap();
    let applied = model.call("workspace_write_patch", &patch);
    assert_eq!(applied["successful"], true, "{applied}");
    assert_eq!(scene.machine.files()[1], ("a.txt".to_owned(), "disk\nx\n".to_owned()));
}

/// An agent that is stopped, and one that has died, are no agent that says there are no buffers: of the first nothing is known.
#[test]
fn an_agent_that_does_not_answer_is_not_taken_for_none() {
    let scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    let mut model = Model::start(&scene.machine);
    let agent = rustix::process::Pid::from_child(&scene.agent.0);
    drop(scene.editor());
    rustix::process::kill_process(agent, rustix::process::Signal::STOP).unwrap();
    let refused = model.call("read_file", &json!({"path": "a.txt"}));
    assert_eq!(refused["errors"][0]["code"], "UNAVAILABLE", "{refused}");
    let patch: Value = serde_json::from_str(&insert(&[("a.txt", "disk\n")], 1, "x")).unwrap();
    let refused = model.call("workspace_write_patch", &patch);
    assert_eq!(refused["errors"][0]["code"], "UNAVAILABLE", "{refused}");
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    crate::processes::eventually("the agent is gone", || {
        model.call("read_file", &json!({"path": "a.txt"}))["text"] == "disk\n"
    });
}
