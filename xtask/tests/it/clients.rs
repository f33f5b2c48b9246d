//! Clients in other languages, which know the address of a server and the name of a workspace: real processes, real files.

use std::process::{Command, Output};

use crate::processes::{Machine, Server, binary, node, python_with, wait_until_served, with_input};
use crate::skip::skip;

/// How each example is called: with the server and the arguments; `None` where the language is missing.
type Call = fn(&Server, &str, &[&str], &str) -> Option<Output>;

fn in_python(server: &Server, script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let script = format!("{}.py", script.replace('-', "_"));
    Some(python_with(&[&[script.as_str(), &server.address, "demo"], arguments].concat(), input))
}

fn in_typescript(server: &Server, script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    node(&format!("{script}.js"), &[&[server.url().as_str(), "demo"], arguments].concat(), input)
}

fn in_go(server: &Server, script: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let program = binary("aptix").parent()?.parent()?.join("go").join(script);
    if !program.exists() {
        skip(&format!("{} is missing, so the example client in Go was not tried", program.display()));
        return None;
    }
    Some(with_input(Command::new(program).args([&server.address, "demo"]).args(arguments), input))
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

/// A model lists the tools, reads a file, edits it, patches the version that it read, and makes the call that the refusal names.
#[test]
fn a_model_calls_tools_until_its_task_is_done() {
    for call in [in_python, in_typescript, in_go] as [Call; 3] {
        let machine = Machine::new();
        machine.put("notes/today.txt", "one\ntwo\nthree\n");
        let server = machine.server();
        let _agent = machine.agent(&server);
        wait_until_served(&server);
        let Some(output) = call(&server, "tool-loop", &["notes/today.txt"], "") else { continue };
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        let said = shown(&output);
        for part in
            ["read_file", "edit was done", "workspace_write_patch was refused SHA_MISMATCH", "-two\n+two (second)\n"]
        {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        let edited = "one (first)\ntwo (second)\nthree\n".to_owned();
        assert_eq!(machine.files(), [("notes/today.txt".to_owned(), edited)]);
    }
}
