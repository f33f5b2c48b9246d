//! Files that a server may not read, with the real server, the real agent and the real commands.

use serde_json::json;

use crate::documents::insert;
use crate::processes::Machine;

const TEXT: &str = "unique zebra\nsecond zebra\n";

#[test]
fn nothing_of_an_ignored_file_reaches_the_server() {
    let machine = Machine::new();
    machine.put(".gitignore", "notes.txt\n");
    machine.put("notes.txt", TEXT);
    let server = machine.server();
    let _agent = machine.agent(&server);
    let copy = "diff --git a/notes.txt b/taken.txt\nsimilarity index 100%\ncopy from notes.txt\ncopy to taken.txt\n";
    let find = json!({ "path": "notes.txt", "patches": [{ "operation": "replace", "oldText": "second zebr", "newText": "x" }] });
    let cases = [
        (insert(&[("notes.txt", "another version\n")], 1, "x"), "APPROVAL_REQUIRED"),
        (insert(&[("notes.txt", TEXT)], 1, "x"), "APPROVAL_REQUIRED"),
        (find.to_string(), "APPROVAL_REQUIRED"),
        (copy.to_owned(), "POLICY_DENIED"),
    ];
    for (document, code) in cases {
        let (answer, exit) = machine.submit(&server, &document);
        let error = &answer["errors"][0];
        assert_eq!((exit, &error["code"], &error["detail"]), (Some(1), &code.into(), &"WITHHELD".into()), "{answer}");
        assert!(!answer.to_string().contains("unique zebra"), "{answer}");
        assert_eq!((&error["nearest"], &error["currentSha256"]), (&json!([]), &json!(null)), "{answer}");
    }
    assert_eq!(machine.files()[1], ("notes.txt".to_owned(), TEXT.to_owned()));

    // The whole content is the author's, and so is what is reported and kept of it.
    let whole = json!({ "path": "notes.txt", "content": "mine\n", "overwrite": true }).to_string();
    let (answer, exit) = machine.submit(&server, &whole);
    let file = &answer["files"][0];
    assert_eq!((exit, &file["status"], &file["sha256Before"]), (Some(0), &"modified".into(), &json!(null)), "{answer}");
    assert_eq!((&file["warnings"][0]["code"], &answer["diff"]), (&"WITHHELD".into(), &"".into()), "{answer}");
    assert_eq!(machine.files()[1], ("notes.txt".to_owned(), "mine\n".to_owned()));
}
