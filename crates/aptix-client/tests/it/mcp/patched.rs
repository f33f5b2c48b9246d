//! What the tool `patch` answers a model with.

use serde_json::json;

use super::client::Client;

/// REQ-PATCH-007.1, REQ-PATCH-007.2, REQ-PATCH-007.3, REQ-PATCH-007.4, REQ-PATCH-007.5, WS-MOD-2.1.1.2: one call writes, and success is confirmed with the file, its
/// diff and every warning: that programs make the file, and that a clipboard holds other text than was given.
#[test]
fn a_patch_that_was_made_is_confirmed_with_its_diff_and_warnings() {
    let before = "// @generated\n\tone\n\ttwo\nend\n";
    let mut client = Client::start(|ws| {
        std::fs::write(ws.join("a.rs"), before).unwrap();
        std::fs::write(ws.join("b.rs"), "one\n").unwrap();
    });
    let change = json!({ "operation": "replace", "oldText": "one\ntwo\n", "newText": "1\n", "toClipboard": "c" });
    let answer = client.done("patch", &json!({ "path": "a.rs", "patches": [change] }));
    assert_eq!(client.read("a.rs"), "// @generated\n\t1\nend\n");
    let file = &answer.structured["files"][0];
    assert_eq!(
        (&answer.structured["success"], &file["path"], &file["status"]),
        (&true.into(), &"a.rs".into(), &"modified".into())
    );
    let mut codes: Vec<_> =
        file["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["CLIPBOARD_MODIFIED", "GENERATED_FILE"]);
    let diff = "@@ -1,4 +1,3 @@\n // @generated\n-\tone\n-\ttwo\n+\t1\n end\n";
    assert!(answer.structured["diff"].as_str().unwrap().ends_with(diff), "{}", answer.structured);
    let change = json!({ "operation": "replace", "oldText": "one", "newText": "1" });
    let answer = client.done("patch", &json!({ "path": "b.rs", "patches": [change] }));
    assert_eq!(answer.structured["files"][0]["warnings"], json!([]));
    client.end();
}
