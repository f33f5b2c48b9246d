//! What the user agreed to have served, through the real agent: it is kept for every root, and anything else is asked about.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::person::Terminal;
use crate::processes::{Machine, Running, Server, eventually, make, write};

/// The arguments of an agent that asks nobody about batches.
fn arguments<'a>(url: &'a str, workspace: &'a str, roots: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["agent", "--server", url, "--workspace", workspace, "--approve", "auto"];
    all.extend(roots.iter().flat_map(|root| ["--root", root]));
    all.extend(more);
    all
}

/// Starts an agent that has to serve; returns it once it does.
#[track_caller]
fn serving(machine: &Machine, arguments: &[&str]) -> Running {
    const LOG: &str = "serving.log";
    write(&machine.path(LOG), "");
    let agent = Running(machine.aptix(arguments).stderr(machine.log(LOG)).spawn().unwrap());
    eventually(&format!("{arguments:?} serves"), || machine.logged(LOG).contains("serving http"));
    agent
}

#[track_caller]
fn serves(machine: &Machine, arguments: &[&str]) {
    assert_eq!(serving(machine, arguments).terminate(), Some(0));
}

/// What an agent prints that has to end before it serves.
#[track_caller]
fn refused(machine: &Machine, arguments: &[&str]) -> String {
    let mut agent = Running(machine.aptix(arguments).stderr(Stdio::piped()).spawn().unwrap());
    let mut code = None;
    eventually(&format!("{arguments:?} ends"), || {
        code = agent.0.try_wait().unwrap();
        code.is_some()
    });
    let mut said = String::new();
    agent.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(code.unwrap().code(), Some(1), "{said}");
    assert!(!said.contains("serving http"), "{said}");
    said
}

/// The same server under another name.
fn other_name(server: &Server) -> String {
    server.url().replace("127.0.0.1", "localhost")
}

/// The files that keep agreements on a machine.
fn kept(machine: &Machine) -> Vec<PathBuf> {
    let states = std::fs::read_dir(machine.path("state/aptix/roots")).unwrap();
    states.map(|state| state.unwrap().path().join("agent/agreement")).filter(|file| file.exists()).collect()
}

fn machine_with(roots: &[&str]) -> (Machine, Server) {
    let machine = Machine::new();
    roots.iter().for_each(|root| make(&machine.path(root)));
    let server = machine.server();
    (machine, server)
}

#[test]
fn without_a_terminal_another_server_workspace_or_root_needs_agree() {
    let (machine, server) = machine_with(&["a", "b", "c"]);
    let (url, other) = (server.url(), other_name(&server));
    // The root `a` comes before `b`: the state that agents of both keep together is that of `a`.
    let first = arguments(&url, "demo", &["b"], &[]);
    serves(&machine, &first);
    serves(&machine, &first);
    for (changed, shown) in [
        (arguments(&other, "demo", &["b"], &[]), other.as_str()),
        (arguments(&url, "other", &["b"], &[]), "workspace other"),
        (arguments(&url, "demo", &["lib=b"], &[]), "lib="),
        (arguments(&url, "demo", &["a", "b"], &[]), "a="),
        (arguments(&url, "demo", &["b", "c"], &[]), "c="),
    ] {
        let said = refused(&machine, &changed);
        let expected = [shown, "--agree", &format!("agreed to workspace demo of {url} from b=")];
        assert!(expected.iter().all(|text| said.contains(text)), "{expected:?} in {said}");
    }
    serves(&machine, &first);
    assert_eq!(kept(&machine).len(), 1, "a refusal leaves nothing");

    let both = arguments(&url, "demo", &["b", "a"], &[]);
    serves(&machine, &arguments(&url, "demo", &["a", "b"], &["--agree"]));
    serves(&machine, &both);
    // What was agreed to for both is compared with what is served from either.
    for root in ["a", "b"] {
        let said = refused(&machine, &arguments(&url, "demo", &[root], &[]));
        assert!(said.contains("/a, b="), "{said}");
    }
}

#[test]
fn agents_of_other_roots_are_independent() {
    let (machine, server) = machine_with(&["a", "b"]);
    let (url, other) = (server.url(), other_name(&server));
    let (one, two) = (arguments(&url, "one", &["a"], &[]), arguments(&other, "two", &["b"], &[]));
    let running = serving(&machine, &one);
    serves(&machine, &two);
    drop(running);
    serves(&machine, &one);
    serves(&machine, &two);
    refused(&machine, &arguments(&other, "two", &["a"], &[]));
}

#[test]
fn on_a_terminal_the_person_sees_both_and_decides() {
    let (machine, server) = machine_with(&["b"]);
    let (url, other) = (server.url(), other_name(&server));
    let changed = arguments(&other, "demo", &["b"], &[]);
    serves(&machine, &arguments(&url, "demo", &["b"], &[]));
    for answer in ["n", "y"] {
        let mut terminal = Terminal::running(&machine.aptix(&changed));
        let shown = terminal.until("Serve this from now on? [y/n] ");
        assert!(!shown.contains("serving"), "{shown}");
        for line in
            [format!("agreed to: workspace demo of {url} from b="), format!("now:       workspace demo of {other}")]
        {
            assert!(shown.contains(&line), "{line:?} in {shown}");
        }
        terminal.answer("perhaps");
        terminal.until("Serve this from now on? [y/n] ");
        terminal.answer(answer);
        if answer == "n" {
            terminal.until("did not agree");
            assert!(!terminal.ended());
        } else {
            terminal.until("serving workspace");
            terminal.signal("-TERM");
            assert!(terminal.ended());
        }
    }
    serves(&machine, &changed);
    refused(&machine, &arguments(&url, "demo", &["b"], &[]));
}

/// A signal ends an agent that waits for the answer, and nothing is agreed to.
#[test]
fn an_agent_that_asks_can_be_stopped() {
    let (machine, server) = machine_with(&["b"]);
    let (url, other) = (server.url(), other_name(&server));
    serves(&machine, &arguments(&url, "demo", &["b"], &[]));
    let mut terminal = Terminal::running(&machine.aptix(&arguments(&other, "demo", &["b"], &[])));
    terminal.until("Serve this from now on? [y/n] ");
    terminal.signal("-TERM");
    assert!(terminal.ended());
    serves(&machine, &arguments(&url, "demo", &["b"], &[]));
}

#[test]
fn what_is_kept_may_be_put_back_deleted_or_damaged() {
    let (machine, server) = machine_with(&["b"]);
    let (url, other) = (server.url(), other_name(&server));
    let (old, new) = (arguments(&url, "demo", &["b"], &[]), arguments(&other, "demo", &["b"], &[]));
    serves(&machine, &old);
    let [file] = &kept(&machine)[..] else { panic!("{:?}", kept(&machine)) };
    let backup = std::fs::read(file).unwrap();
    serves(&machine, &arguments(&other, "demo", &["b"], &["--agree"]));
    serves(&machine, &new);
    put(file, &backup);
    assert!(refused(&machine, &new).contains(&format!("agreed to workspace demo of {url}")));
    serves(&machine, &old);

    // Without one it is a first start.
    remove(file);
    serves(&machine, &new);
    refused(&machine, &old);

    let mut flipped = backup.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [&flipped[..], &backup[..backup.len() / 2], b"", b"{}"] {
        put(file, damaged);
        for start in [&old, &new] {
            let said = refused(&machine, start);
            assert!(said.contains(&file.display().to_string()) && said.contains("--agree"), "{said}");
        }
        serves(&machine, &arguments(&url, "demo", &["b"], &["--agree"]));
        refused(&machine, &new);
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn put(file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn remove(file: &Path) {
    std::fs::remove_file(file).unwrap();
}
