//! A person at the agent's terminal, played by a program behind a pseudo-terminal.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::documents::{create, insert};
use crate::processes::{Machine, Running, Server, write};

/// An agent that asks, and the terminal it asks on.
struct Terminal {
    agent: Running,
    keyboard: ChildStdin,
    screen: Receiver<u8>,
    seen: String,
}

/// Gives its child a terminal and passes on what is typed and shown.
const PSEUDO_TERMINAL: &str = "
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
";

impl Terminal {
    fn open(machine: &Machine, server: &Server) -> Self {
        let url = server.url();
        let agent = machine.aptix(&["agent", "--server", &url, "--workspace", "demo", "--root", "project"]);
        let mut command = Command::new("python3");
        command.args(["-c", PSEUDO_TERMINAL]).arg(agent.get_program()).args(agent.get_args());
        command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(agent.get_current_dir().unwrap()).env("NO_COLOR", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keyboard, mut shown) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            while let Ok(bytes) = shown.fill_buf() {
                let count = bytes.len();
                if count == 0 || bytes.iter().any(|byte| sender.send(*byte).is_err()) {
                    return;
                }
                shown.consume(count);
            }
        });
        Self { agent: Running(child), keyboard, screen, seen: String::new() }
    }

    /// What is shown up to and with this text.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        self.seen.clear();
        while !self.seen.ends_with(text) {
            let byte = self.screen.recv_timeout(Duration::from_secs(30));
            let byte = byte.unwrap_or_else(|_| panic!("{text:?} was not shown, but {:?}", self.seen));
            self.seen.push(char::from(byte));
        }
        self.seen.clone()
    }

    fn answer(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
        self.keyboard.flush().unwrap();
    }
}

#[test]
fn a_person_sees_the_whole_change_and_decides() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &insert(&[("a.txt", "one\n")], 1, "two \\u001b[2J"));

    std::thread::scope(|scope| {
        let refused = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two \u{1b}[2J")));
        let shown = terminal.until("Apply this batch? [y/n] ");
        assert!(shown.contains("+two \\u{1b}[2J"), "{shown}");
        terminal.answer("perhaps");
        terminal.until("Apply this batch? [y/n] ");
        terminal.answer("n");
        terminal.until("(one line for the author, or nothing) ");
        terminal.answer("not on a Friday");
        let (refused, code) = refused.join().unwrap();
        assert_eq!(
            (code, &refused["state"], &refused["errors"][0]["code"]),
            (Some(1), &"REJECTED".into(), &"REJECTED".into())
        );
        assert!(refused["errors"][0]["message"].as_str().unwrap().ends_with("not on a Friday"), "{refused}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n".to_owned())]);

        let applied = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        terminal.until("Apply this batch? [y/n] ");
        terminal.answer("y");
        assert_eq!(applied.join().unwrap().1, Some(0));
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())]);
    });
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    terminal.until("serving");
    std::thread::scope(|scope| {
        for word in ["first", "second"] {
            for _ in 0..100 {
                terminal.answer("y");
            }
            terminal.answer(word);
            terminal.until(word);
            let refused = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
            terminal.until("Apply this batch? [y/n] ");
            terminal.answer("n");
            terminal.until("(one line for the author, or nothing) ");
            terminal.answer("");
            let (refused, code) = refused.join().unwrap();
            assert_eq!((code, &refused["state"]), (Some(1), &"REJECTED".into()), "{refused}");
        }
    });
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n".to_owned())]);
}

#[test]
fn what_changed_while_a_person_thought_is_checked_again() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        let stale = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        terminal.until("Apply this batch? [y/n] ");
        machine.put("a.txt", "one\nmine\n");
        terminal.answer("y");
        let (stale, code) = stale.join().unwrap();
        assert_eq!((code, &stale["errors"][0]["code"]), (Some(1), &"FILE_CHANGED".into()), "{stale}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nmine\n".to_owned())]);
    });
}

#[test]
fn a_question_about_a_withdrawn_batch_is_void() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &create("a.txt", ""));
    let (stored, _) = machine.ask(&server, "submit", &["a.json"]);
    terminal.until("Apply this batch? [y/n] ");
    let (url, id) = (server.url(), stored["batchId"].as_str().unwrap());
    assert!(machine.aptix(&["cancel", "--server", &url, "--workspace", "demo", id]).status().unwrap().success());
    terminal.until("The question is void");
    terminal.answer("y");
    assert_eq!(machine.files(), []);
}

#[test]
fn an_agent_that_asks_can_be_stopped_and_asks_again() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &create("a.txt", ""));
    machine.ask(&server, "submit", &["a.json"]);
    terminal.until("Apply this batch? [y/n] ");
    let parent = terminal.agent.0.id().to_string();
    assert!(Command::new("pkill").args(["-TERM", "--parent", &parent]).status().unwrap().success());
    terminal.until("The question is void");
    assert!(terminal.agent.0.wait().unwrap().success());
    assert_eq!(machine.files(), []);
    Terminal::open(&machine, &server).until("Apply this batch? [y/n] ");
}
