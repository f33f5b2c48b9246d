//! Documents as authors would write them about files as they are.

use aptix_engine::digest::sha256;
use serde_json::{Value, json};

/// Inserts one line into each of these files, given with their content, after the line of that number.
pub(crate) fn insert(files: &[(&str, &str)], after: usize, line: &str) -> String {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, content)| {
            json!({
                "docPath": format!("project/{path}"),
                "originalSha256": sha256(content.as_bytes()).to_string(),
                "changes": [{"operation": "insert", "afterLine": after, "newLines": [line]}],
            })
        })
        .collect();
    json!({"batchLabel": line, "files": files}).to_string()
}

/// Creates a file.
pub(crate) fn create(path: &str, content: &str) -> String {
    json!({"path": path, "content": content, "overwrite": false}).to_string()
}
