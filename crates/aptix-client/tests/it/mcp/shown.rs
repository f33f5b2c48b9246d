//! What the tools answer of a batch is what the command line shows of it afterwards.

use serde_json::{Value, json};

use super::client::Client;
use crate::command_line::{aptix, text};

/// A refused call lists the file that was tried, with the change that failed. What was applied and what was refused is found by
/// the ids of the answer.
#[test]
fn an_answer_names_what_failed_and_what_the_history_knows() {
    let mut client = Client::start(|ws| std::fs::write(ws.join("a.txt"), "one\ntwo\n").unwrap());
    let change = |old: &str| json!({ "operation": "replace", "oldText": old, "newText": "new" });
    let patch = |old: &str| json!({ "path": "a.txt", "patches": [change("one"), change(old)] });
    let refused = client.call("patch", &patch("three")).structured;
    assert_eq!(
        (&refused["success"], &refused["state"], &refused["diff"]),
        (&json!(false), &json!("FAILED"), &json!(""))
    );
    let (file, error) = (&refused["files"][0], &refused["errors"][0]);
    assert_eq!((&file["status"], &file["docPath"]), (&json!("failed"), &json!("ws/a.txt")), "{refused}");
    assert_eq!((&error["fileIndex"], &error["changeIndex"]), (&json!(0), &json!(1)), "{refused}");
    assert_eq!((&error["filePatchId"], &error["changeId"]), (&file["filePatchId"], &file["changes"][1]["changeId"]));
    assert_eq!(
        (&file["changes"][0]["failure"], &file["changes"][1]["failure"]),
        (&Value::Null, &json!(0)),
        "{refused}"
    );

    let done = client.done("patch", &patch("two")).structured;
    let prepared = client.done("prepare_file_append", &json!({ "path": "a.txt", "content": "end\n" })).structured;
    let hunk = prepared["hunkId"].as_str().unwrap().to_owned();
    client.done("apply_file_modification", &json!({ "hunk_id": hunk }));
    let (place, _) = client.end();
    let show = |id: &Value| aptix(place.path(), &["show", "--json", id.as_str().unwrap()], "");
    let shown: Value = serde_json::from_slice(&show(&done["batchId"]).stdout).unwrap();
    assert_eq!(shown["files"], done["files"]);
    let change: Value = serde_json::from_slice(&show(&done["files"][0]["changes"][1]["changeId"]).stdout).unwrap();
    assert_eq!(change["files"][0]["changes"], json!([done["files"][0]["changes"][1]]));
    let shown = text(&aptix(place.path(), &["show", &hunk], "").stdout);
    assert!(shown.contains("\n+end\n") && shown.ends_with("modified a.txt\n"), "{shown}");
    let shown: Value = serde_json::from_slice(&show(&refused["batchId"]).stdout).unwrap();
    assert_eq!(
        (&shown["state"], &shown["files"], &shown["success"]),
        (&json!("FAILED"), &refused["files"], &json!(false))
    );
    assert!(shown["asked"].as_str().unwrap().contains("\n-three\n+new\n"), "{shown}");
}
