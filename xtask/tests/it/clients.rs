//! Clients in other languages, which know the address of a server and the name of a workspace: real processes, real files.

use std::process::Output;

use crate::processes::{Machine, Server, node, python_with, wait_until_served};

/// How each example is called: with the server and the arguments; `None` where the language is missing.
type Call = fn(&Server, &str, &[&str], &str) -> Option<Output>;

fn in_python(server: &Server, script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let script = format!("{}.py", script.replace('-', "_"));
    Some(python_with(&[&[script.as_str(), &server.address, "demo"], arguments].concat(), input))
}

fn in_typescript(server: &Server, script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    node(&format!("{script}.js"), &[&[server.url().as_str(), "demo"], arguments].concat(), input)
}

const CLIENTS: [Call; 2] = [in_python, in_typescript];

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What a model answered is applied as it came, chat around it included; what cannot be applied is said.
#[test]
fn a_model_s_raw_answer_is_applied() {
    const ANSWER: &str = "Sure! I changed the greeting:\n\n```diff\n--- a/greeting.txt\n+++ b/greeting.txt\n@@ -1,2 +1,2 @@\n \
                          one\n-two\n+three\n```\n\nAnything else?\n";
    for call in CLIENTS {
        let machine = Machine::new();
        machine.put("greeting.txt", "one\ntwo\n");
        let server = machine.server();
        let _agent = machine.agent(&server);
        wait_until_served(&server);
        let Some(output) = call(&server, "apply-answer", &[], ANSWER) else { continue };
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        assert!(shown(&output).contains("-two\n+three"), "{}", shown(&output));
        assert_eq!(machine.files(), [("greeting.txt".to_owned(), "one\nthree\n".to_owned())]);

        let no_edit = call(&server, "apply-answer", &[], "I would rather not.").unwrap();
        assert_ne!(no_edit.status.code(), Some(0));
        assert!(shown(&no_edit).contains("NO_EDIT_FOUND"), "{}", shown(&no_edit));
    }
}

/// A file that the server has never heard of: read as it is on the machine, changed, refused for the version that was read,
/// and changed by what the refusal offered.
#[test]
fn a_file_that_aptix_has_never_seen_is_read_and_edited() {
    for call in CLIENTS {
        let machine = Machine::new();
        machine.put("notes/today.txt", "one\ntwo\nthree\n");
        let server = machine.server();
        let _agent = machine.agent(&server);
        wait_until_served(&server);
        let Some(output) = call(&server, "edit-live-file", &["notes/today.txt"], "") else { continue };
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        assert_eq!(shown(&output).matches("APPLIED").count(), 2, "{}", shown(&output));
        assert!(shown(&output).contains("+two (second)"), "{}", shown(&output));
        let edited = "one (first)\ntwo (second)\nthree\n".to_owned();
        assert_eq!(machine.files(), [("notes/today.txt".to_owned(), edited)]);
    }
}
