//! A person at a terminal, played by a program behind a pseudo-terminal.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::documents::{create, insert};
use crate::processes::{Machine, Running, Server, eventually, write};

/// The question about a batch.
pub(crate) const WHOLE: &str = "Apply this batch? [y,n,q,f,s,ever,?] ";

/// A program that asks, and the terminal it asks on.
pub(crate) struct Terminal {
    program: Running,
    keyboard: ChildStdin,
    screen: Receiver<u8>,
    seen: String,
}

/// Gives its child a terminal and passes on what is typed and shown.
const PSEUDO_TERMINAL: &str = "
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
";

/// A program on a terminal of so many rows and columns.
pub(crate) fn on_terminal(program: &Command, rows: u16, columns: u16) -> Command {
    let mut command = Command::new("python3");
    let sized = format!("stty rows {rows} columns {columns}; exec \"$0\" \"$@\"");
    command.args(["-c", PSEUDO_TERMINAL, "sh", "-c", &sized]).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(program.get_current_dir().unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Terminal {
    pub(crate) fn open(machine: &Machine, server: &Server) -> Self {
        Self::of_agent(machine, server, "ask")
    }

    pub(crate) fn of_agent(machine: &Machine, server: &Server, approve: &str) -> Self {
        let url = server.url();
        let options = ["--server", &url, "--workspace", "demo", "--root", "project", "--approve", approve];
        // What is logged must not hide a question: it comes as often as it can.
        Self::running(&machine.aptix(&[&["agent", "-v"][..], &options].concat()))
    }

    pub(crate) fn running(program: &Command) -> Self {
        // Larger than anything that is shown here: no row goes on in another, and there is one page.
        let mut child = on_terminal(program, 100, 400).env("NO_COLOR", "1").spawn().unwrap();
        let (keyboard, mut shown) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, screen) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            while let Ok(bytes) = shown.fill_buf() {
                let count = bytes.len();
                if count == 0 || bytes.iter().any(|byte| sender.send(*byte).is_err()) {
                    return;
                }
                shown.consume(count);
            }
        });
        Self { program: Running(child), keyboard, screen, seen: String::new() }
    }

    /// What is shown up to and with this text.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        self.seen.clear();
        while !self.seen.ends_with(text) {
            let byte = self.screen.recv_timeout(Duration::from_secs(120));
            let byte = byte.unwrap_or_else(|_| panic!("{text:?} was not shown, but {:?}", self.seen));
            self.seen.push(char::from(byte));
        }
        self.seen.clone()
    }

    /// Ctrl-D.
    fn type_end(&mut self) {
        self.keyboard.write_all(b"\x04").unwrap();
        self.keyboard.flush().unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let parent = self.program.0.id().to_string();
        assert!(Command::new("pkill").args([signal, "--parent", &parent]).status().unwrap().success());
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.program.0.wait().unwrap().success()
    }

    pub(crate) fn answer(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
        self.keyboard.flush().unwrap();
    }

    /// No, and why not.
    #[track_caller]
    pub(crate) fn refuse(&mut self, reason: &str) {
        self.answer("n");
        self.until("(one line for the author, or nothing) ");
        self.answer(reason);
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
        let shown = terminal.until(WHOLE);
        assert!(shown.contains("+two \\u{1b}[2J"), "{shown}");
        terminal.answer("perhaps");
        terminal.until(WHOLE);
        terminal.refuse("not on a Friday");
        let (refused, code) = refused.join().unwrap();
        assert_eq!(
            (code, &refused["state"], &refused["errors"][0]["code"]),
            (Some(1), &"REJECTED".into(), &"REJECTED".into())
        );
        assert!(refused["errors"][0]["message"].as_str().unwrap().ends_with("not on a Friday"), "{refused}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n".to_owned())]);

        let applied = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        terminal.until(WHOLE);
        terminal.answer("y");
        assert_eq!(applied.join().unwrap().1, Some(0));
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())]);
    });
}

/// TUL-004-7.6.3: a file is created once a person has seen it whole and agreed, and not before.
#[test]
fn a_person_decides_whether_a_file_is_created() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        for (answer, code, state) in [("n", 1, "REJECTED"), ("y", 0, "APPLIED")] {
            let asked = scope.spawn(|| machine.submit(&server, &create("docs/new.txt", "hello")));
            let shown = terminal.until(WHOLE);
            assert!(shown.contains("+hello"), "{shown}");
            assert!(machine.files().is_empty(), "nothing is made before the answer");
            if answer == "n" {
                terminal.refuse("");
            } else {
                terminal.answer(answer);
            }
            let (done, found) = asked.join().unwrap();
            assert_eq!((found, &done["state"]), (Some(code), &state.into()), "{done}");
        }
    });
    assert_eq!(machine.files(), [("docs/new.txt".to_owned(), "hello".to_owned())]);
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
            terminal.until(WHOLE);
            terminal.refuse("");
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
        terminal.until(WHOLE);
        machine.put("a.txt", "one\nmine\n");
        terminal.answer("y");
        let (stale, code) = stale.join().unwrap();
        assert_eq!((code, &stale["errors"][0]["code"]), (Some(1), &"FILE_CHANGED".into()), "{stale}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nmine\n".to_owned())]);
    });
}

/// The answer is held against the policy as it is when it comes; one that says nothing against the change asks nobody again.
#[test]
fn a_policy_that_changed_while_a_person_thought_holds() {
    let machine = Machine::new().with_policy("");
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        terminal.until(WHOLE);
        machine.set_policy("deny = [\"a.txt\"]\n");
        terminal.answer("y");
        let (denied, code) = submitted.join().unwrap();
        assert_eq!((code, &denied["errors"][0]["code"]), (Some(1), &"POLICY_DENIED".into()), "{denied}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n".to_owned())]);

        machine.set_policy("");
        let submitted = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "again")));
        // The question before may have been shown again below a line of the log.
        terminal.until("+again");
        terminal.until(WHOLE);
        machine.set_policy("deny = [\"b.txt\"]\n");
        terminal.answer("y");
        let (applied, code) = submitted.join().unwrap();
        assert_eq!((code, &applied["state"]), (Some(0), &"APPLIED".into()), "{applied}");
    });

    write(&machine.path("a.json"), &create(".vscode/tasks.json", "{}"));
    let mut terminal = Terminal::running(&machine.aptix(&["apply", "--root", "project", "a.json"]));
    terminal.until(WHOLE);
    machine.set_policy("deny = [\".vscode/**\"]\n");
    terminal.answer("y");
    terminal.until("APPROVAL_REQUIRED (CHANGED): the policy changed");
    assert!(!terminal.ended());
    assert_eq!(machine.files().len(), 1);
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: what a person is being asked about goes on; what waits behind it is refused.
#[test]
fn a_batch_in_flight_is_finished_when_the_mode_becomes_restricted() {
    let machine = Machine::new().with_policy("mode = \"unrestricted\"\n");
    machine.put("a.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        let in_flight = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        terminal.until(WHOLE);
        write(&machine.path("b.json"), &insert(&[("a.txt", "one\ntwo\n")], 2, "three"));
        let (queued, _) = machine.ask(&server, "submit", &["b.json"]);
        write(&machine.path("config/aptix/policy.toml"), "mode = \"restricted\"\n");
        terminal.answer("y");
        assert_eq!(in_flight.join().unwrap().1, Some(0));
        let state = || machine.ask(&server, "show", &[queued["batchId"].as_str().unwrap()]).0;
        eventually("the queued batch ends", || state()["state"] != "APPROVED");
        let error = &state()["errors"][0];
        assert_eq!((&error["code"], &error["detail"]), (&"POLICY_DENIED".into(), &"RESTRICTED_MODE".into()), "{error}");
        let words = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";
        assert_eq!(error["message"], words);
    });
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())]);
}

#[test]
fn a_question_about_a_withdrawn_batch_is_void() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &create("a.txt", ""));
    let (stored, _) = machine.ask(&server, "submit", &["a.json"]);
    terminal.until(WHOLE);
    assert!(machine.call(&server, "cancel", &[stored["batchId"].as_str().unwrap()]).status.success());
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
    terminal.until(WHOLE);
    terminal.signal("-TERM");
    terminal.until("The question is void");
    assert!(terminal.ended());
    assert_eq!(machine.files(), []);
    Terminal::open(&machine, &server).until(WHOLE);
}

#[test]
fn each_file_is_seen_and_refused_by_itself_and_its_author_gets_the_reason() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    machine.put("b.txt", "one\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    std::thread::scope(|scope| {
        let files = [("a.txt", "one\n"), ("b.txt", "one\n")];
        let refused = scope.spawn(move || machine.submit(&server, &insert(&files, 1, "two")));
        terminal.until(WHOLE);
        terminal.answer("f");
        let shown = terminal.until("Is the change of a.txt right? [y,n,a,d,q,b,ever,?] ");
        assert!(shown.contains("+two") && !shown.contains("b.txt"), "{shown}");
        terminal.answer("y");
        terminal.until("Is the change of b.txt right? [y,n,a,d,q,b,ever,?] ");
        terminal.refuse("b is generated");
        let (refused, code) = refused.join().unwrap();
        let error = &refused["errors"][0];
        assert_eq!((code, &refused["state"]), (Some(1), &"REJECTED".into()), "{refused}");
        assert!(error["path"].as_str().unwrap().ends_with("b.txt"), "{error}");
        assert!(error["message"].as_str().unwrap().ends_with("said no: b is generated"), "{error}");
    });
}

#[test]
fn who_applies_a_document_on_a_terminal_is_asked_there() {
    let machine = Machine::new();
    write(&machine.path("a.json"), &create(".vscode/tasks.json", "{}"));
    let apply = || Terminal::running(&machine.aptix(&["apply", "--root", "project", "a.json"]));
    let mut terminal = apply();
    terminal.until(WHOLE);
    terminal.refuse("no");
    terminal.until("REJECTED");
    assert_eq!(terminal.program.0.wait().unwrap().code(), Some(1));
    assert_eq!(machine.files(), []);
    let mut terminal = apply();
    terminal.until(WHOLE);
    terminal.answer("y");
    terminal.until("created .vscode/tasks.json\r\n");
    assert!(terminal.program.0.wait().unwrap().success());
    assert_eq!(machine.files().len(), 1);
}

/// Another process holds the lock: the command waits, reports that after a second, and clears it from the terminal.
#[test]
fn a_long_wait_is_shown_on_the_terminal_until_it_is_over() {
    let machine = Machine::new();
    write(&machine.path("a.json"), &create("a.txt", ""));
    write(&machine.path("b.json"), &create(".vscode/tasks.json", "{}"));
    let apply = |file| Terminal::running(&machine.aptix(&["apply", "--root", "project", file]));
    let seen = apply("a.json").until("created a.txt\r\n");
    assert!(!seen.contains(" s\r"), "what is over soon is not worth a line: {seen:?}");
    let roots = std::fs::read_dir(machine.path("state/aptix/roots")).unwrap();
    let lock = std::fs::File::open(roots.map(|root| root.unwrap().path().join("lock")).next().unwrap()).unwrap();
    lock.lock().unwrap();
    let mut terminal = apply("b.json");
    terminal.until("\ropening the workspace, 1 s");
    lock.unlock().unwrap();
    let seen = terminal.until(WHOLE);
    assert!(seen.contains(&format!("\r{}\r", " ".repeat("opening the workspace, 1 s".len()))), "{seen:?}");
    lock.lock().unwrap();
    terminal.answer("y");
    terminal.until("\rwriting 1 file, 1 s");
    lock.unlock().unwrap();
    let seen = terminal.until("created .vscode/tasks.json\r\n");
    assert!(seen.contains(&format!("\r{}\r", " ".repeat("writing 1 file, 1 s".len()))), "{seen:?}");
}

#[test]
fn a_question_that_nobody_answers_in_time_is_a_no() {
    let machine = Machine::new().with_policy("approval_seconds = 1\n");
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    let (refused, code) = machine.submit(&server, &create("a.txt", ""));
    terminal.until("Too late");
    assert_eq!((code, &refused["errors"][0]["code"]), (Some(1), &"APPROVAL_REQUIRED".into()), "{refused}");
    assert_eq!(machine.files(), []);
}

/// An interrupted wait prints the batch's id: the batch stays on the server.
#[test]
fn an_interrupted_wait_prints_the_batch_id() {
    let machine = Machine::new();
    let server = machine.server();
    write(&machine.path("a.json"), &create("a.txt", ""));
    let url = server.url();
    let arguments = ["submit", "--server", &url, "--workspace", "demo", "--wait", "--json", "a.json"];
    let mut terminal = Terminal::running(&machine.aptix(&arguments));
    terminal.until("\rwaiting for the batch to end, 1 s");
    terminal.keyboard.write_all(b"\x03").unwrap();
    let answer = terminal.until("\"code\": \"INTERRUPTED\"");
    let (listed, _) = machine.ask(&server, "batches", &[]);
    let id = listed["batches"][0]["batchId"].as_str().unwrap();
    assert!(answer.contains(&format!("\"batchId\": \"{id}\"")), "{answer}");
    assert_eq!(terminal.program.0.wait().unwrap().code(), Some(130));
}

/// Ctrl-D says nothing to the question that is open, and means nothing where there is none.
#[test]
fn who_says_nothing_to_one_question_is_asked_the_next() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    terminal.until("serving ");
    terminal.type_end();
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| machine.submit(&server, &create("a.txt", "x")));
        terminal.until(WHOLE);
        terminal.type_end();
        terminal.until("No answer: the batch is refused.");
        let (refused, _) = refused.join().unwrap();
        let error = &refused["errors"][0];
        assert!(error["message"].as_str().unwrap().ends_with("gave no answer"), "{refused}");
        assert!(error["hint"].is_string(), "{refused}");
        let applied = scope.spawn(|| machine.submit(&server, &create("a.txt", "x")));
        terminal.until(WHOLE);
        terminal.answer("y");
        assert_eq!(applied.join().unwrap().1, Some(0));
    });
}

#[test]
fn what_is_logged_while_a_question_is_open_does_not_hide_it() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    write(&machine.path("a.json"), &create("a.txt", ""));
    write(&machine.path("b.json"), &create("b.txt", ""));
    machine.ask(&server, "submit", &["a.json"]);
    terminal.until(WHOLE);
    machine.ask(&server, "submit", &["b.json"]);
    let logged = terminal.until(WHOLE);
    assert!(logged.starts_with("\r\n") && logged.contains("Batch.Received"), "{logged:?}");
    assert!(logged.ends_with(&format!("\n{WHOLE}")), "{logged:?}");
}

/// The user sees, before agreeing, all that the author's result will contain.
#[test]
#[expect(clippy::disallowed_methods, reason = "a person links to a file")]
fn the_question_shows_the_file_written_and_the_warnings_for_its_author() {
    let machine = Machine::new();
    machine.put("src/main.c", "a  \nb\nk\nk\n");
    machine.put("docs/notes", "x\n");
    std::os::unix::fs::symlink("../src/main.c", machine.path("project/docs/readme.txt")).unwrap();
    let edit = r#"{"path":"docs/readme.txt","patches":[{"operation":"replace","oldText":"a\nb","newText":"A \nB"}]}"#;
    write(&machine.path("a.json"), edit);
    let machine = machine.with_policy("ask = [\"docs/\"]\n");
    let mut terminal = Terminal::running(&machine.aptix(&["apply", "--root", "project", "a.json"]));
    let shown = terminal.until(WHOLE);
    assert!(shown.contains("modified docs/readme.txt (a link leads to src/main.c)\r\n"), "{shown}");
    assert!(shown.contains("differs from the file's in white space at the ends of lines\r\n"), "{shown}");
    assert!(shown.contains("+A\\u{20}\r\n"), "{shown}");
    terminal.answer("n");
}

/// An edit of a withheld file gets one answer, whether the user lets nothing be compared,
/// refuses what fits, or agrees to what does not fit; an agent that approves everything asks, too.
#[test]
fn who_edits_a_withheld_file_cannot_tell_a_refusal_from_a_misfit() {
    const COMPARE: &str = "Compare the batch with these files? [y/n] ";
    for approve in ["auto", "ask"] {
        let machine = Machine::new();
        machine.put(".gitignore", "notes.txt\n");
        machine.put("notes.txt", "one\n");
        let server = machine.server();
        let mut terminal = Terminal::of_agent(&machine, &server, approve);
        terminal.until("serving");
        let mut submitted = |base: &str, answers: &[(&str, &str)]| {
            std::thread::scope(|scope| {
                let answer = scope.spawn(|| machine.submit(&server, &insert(&[("notes.txt", base)], 1, "two")));
                for (question, answer) in answers {
                    terminal.until(question);
                    terminal.answer(answer);
                }
                answer.join().unwrap()
            })
        };
        let refusals = [
            submitted("one\n", &[(COMPARE, "n")]),
            submitted("other\n", &[(COMPARE, "y")]),
            submitted("one\n", &[(COMPARE, "y"), (WHOLE, "n")]),
        ];
        let shown = |(answer, code): &(serde_json::Value, Option<i32>)| {
            // Each batch has ids of its own.
            let mut errors = answer["errors"].clone();
            errors.as_array_mut().unwrap().iter_mut().for_each(|error| error["filePatchId"] = serde_json::Value::Null);
            format!("{code:?} {errors}")
        };
        assert_eq!([0, 1, 2].map(|index| shown(&refusals[index])), [0; 3].map(|index| shown(&refusals[index])));
        assert_eq!(refusals[0].0["errors"][0]["detail"], "WITHHELD", "{}", refusals[0].0);
        assert!(refusals.iter().all(|(answer, _)| answer["state"] == "FAILED"), "{refusals:?}");
        let (applied, code) = submitted("one\n", &[(COMPARE, "y"), (WHOLE, "y")]);
        assert_eq!((code, &applied["files"][0]["sha256"]), (Some(0), &serde_json::Value::Null), "{applied}");
        assert_eq!(machine.files()[1].1, "one\ntwo\n");
    }
}
