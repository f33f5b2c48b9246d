//! What a refused call is answered with to be sent again. Calls as models get them wrong are among the scenarios of tool calls.

use serde_json::{Value, json};

use super::client::Client;

/// A corrected call is of a tool that the client has.
#[test]
fn a_corrected_call_is_of_a_tool_that_is_served() {
    let call = json!({ "file_path": "a.txt", "old_string": "one  two", "new_string": "x" });
    let corrected = |tools: &str| {
        let mut client = Client::with_tools(tools, |ws| std::fs::write(ws.join("a.txt"), "  one two\n").unwrap());
        let answer = client.call("edit", &call);
        assert!(answer.is_error, "{}", answer.text);
        assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.structured);
        client.end();
        answer.structured["errors"][0]["nextAction"].clone()
    };
    assert_eq!(corrected("all")["tool"], "str_replace_based_edit_tool");
    assert_eq!(corrected("core"), Value::Null);
}
