//! What the completion scripts offer, in a bash on a terminal, where a user presses Tab.

use std::process::Command;

use crate::dist::HIDDEN;
use crate::person::Terminal;
use crate::processes::{Machine, binary, served, unused_address, write};

/// A bash that has sourced the script.
struct Bash(Terminal);

impl Bash {
    fn of(machine: &Machine) -> Self {
        let script = machine.aptix(&["completions", "bash"]).output().unwrap();
        assert!(script.status.success(), "{script:?}");
        let tell = "tell() { printf '<%s>' \"$@\"; echo :told; }\nPS1='$ '\n";
        write(&machine.path("aptix.bash"), &format!("{}{tell}", String::from_utf8(script.stdout).unwrap()));
        let programs = binary("aptix").parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--rcfile", "aptix.bash", "-i"]).current_dir(machine.path(""));
        bash.env("PATH", path).env("HOME", machine.path("")).env("TERM", "dumb");
        bash.env("XDG_STATE_HOME", machine.path("state")).env("XDG_CONFIG_HOME", machine.path("config"));
        Self(Terminal::running(&bash))
    }

    /// The words that the line consists of once all that is offered for its last word was put in its place.
    fn completed(&mut self, line: &str) -> Vec<String> {
        // Escape and * insert all that Tab would show; then the line becomes one that tells its words.
        self.0.answer(&format!("{line}\x1b*\x01tell "));
        let shown = self.0.until(":told");
        let told = shown.rsplit('\n').next().unwrap().trim_end_matches(":told");
        told.trim_start_matches('<').trim_end_matches('>').split("><").map(str::to_owned).collect()
    }

    /// What is offered for the last word.
    fn offered(&mut self, line: &str) -> Vec<String> {
        let before = line.split(' ').count() - 1;
        let mut words = self.completed(line);
        let offered = words.split_off(before);
        let untouched = line.rsplit(' ').next().unwrap();
        if offered == [untouched] { Vec::new() } else { offered }
    }
}

#[test]
fn words_of_the_command_line_are_completed_and_nothing_that_help_hides() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = machine.aptix(&["completions", shell]).output().unwrap().stdout;
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("APTIX_COMPLETE") && script.contains("aptix"), "{shell}: {script}");
    }
    let mut bash = Bash::of(&machine);
    let dialects = ["search-patch", "structured-patch", "search-replace", "str-replace"];
    assert_eq!(bash.offered("aptix apply --dialect s"), dialects);
    assert_eq!(bash.offered("aptix apply --dialect=cha"), ["--dialect=chat"]);
    assert_eq!(bash.offered("aptix doc"), ["doctor"]);
    assert_eq!(bash.offered("aptix ma"), Vec::<String>::new(), "a hidden command");
    let options = bash.offered("aptix --");
    assert!(options.iter().any(|option| option == "--color"), "{options:?}");
    for hidden in HIDDEN {
        assert!(options.iter().all(|option| !option.contains(hidden.trim())), "{hidden}: {options:?}");
    }
    machine.put("$(touch hit) it's.md", "text\n");
    assert_eq!(bash.offered("aptix apply project/"), ["project/$(touch hit) it's.md"], "a name is a word");
    // The variable alone, which a shell may have left, asks for nothing.
    let ran = machine.aptix(&["tools"]).env("APTIX_COMPLETE", "bash").output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stdout).contains("workspace_write_patch"), "{ran:?}");
}

#[test]
fn the_batches_that_a_command_can_take_are_completed() {
    let (machine, server, _agent) = served("auto");
    let edit = |old: &str, new: &str| format!("a.txt\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
    machine.put("a.txt", "one\n");
    let (sent, _) = machine.submit(&server, &edit("one", "two"));
    let (refused, _) = machine.submit(&server, &edit("absent", "two"));
    let id = |batch: &serde_json::Value| vec![batch["batchId"].as_str().unwrap().to_owned()];
    let nothing = Vec::<String>::new();
    let mut bash = Bash::of(&machine);
    let there = format!("--server {} --workspace", server.url());
    assert_eq!(bash.offered(&format!("aptix revert {there} demo 0")), id(&sent));
    assert_eq!(bash.offered(&format!("aptix cancel {there} demo 0")), nothing, "both have ended");
    assert_eq!(bash.offered(&format!("aptix show {there} demo 0")), [id(&refused), id(&sent)].concat());
    let joined = format!("aptix show --server={} --workspace=demo 0", server.url());
    assert_eq!(bash.offered(&joined), [id(&refused), id(&sent)].concat());
    assert_eq!(bash.offered(&format!("aptix show {there} d")), ["demo"], "the workspace");
    let unreachable = format!("aptix show --server http://{} --workspace demo 0", unused_address());
    assert_eq!(bash.offered(&unreachable), nothing, "a server that is out of reach");

    assert_eq!(bash.offered("aptix undo --root project 0"), id(&sent));
    assert_eq!(bash.offered("aptix undo --root=here=project 0"), id(&sent));
    assert_eq!(bash.offered("aptix show --root project 0"), id(&sent), "the server keeps what it had refused");
    assert_eq!(bash.offered(&format!("aptix undo --root project {}", &id(&sent)[0][..30])), id(&sent));
    assert_eq!(bash.offered("aptix undo --root project ffff"), nothing);
    assert_eq!(bash.offered("aptix undo --redo --root project 0"), nothing);
    assert!(machine.aptix(&["undo", "--root", "project"]).output().unwrap().status.success());
    assert_eq!(bash.offered("aptix undo --redo --root project 0"), id(&sent));
    let undo = bash.offered("aptix undo --root project 0");
    assert!(undo.len() == 1 && undo != id(&sent), "the undo can be undone: {undo:?}");
}
