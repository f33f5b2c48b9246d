//! The prompt as a security boundary: real programs on a pseudo-terminal of a known size, read from the cells of an
//! emulator. Whatever a batch says, the rows above the question are ours.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::json;

use crate::documents::insert;
use crate::person::on_terminal;
use crate::processes::{Machine, Running, Server, eventually, write};

const WHOLE: &str = "Apply this batch? [y,n,q,f,s,ever,?]";
/// Beginning of the prompt below a page.
const MORE: &str = "--more--";
/// Rows and columns.
const SIZES: [(u16, u16); 2] = [(24, 80), (50, 200)];

/// A program on a terminal of a size.
struct Screen {
    program: Running,
    keyboard: ChildStdin,
    shown: Receiver<Vec<u8>>,
    emulator: vt100::Parser,
    /// Everything that was shown, on a terminal that never scrolls.
    all: vt100::Parser,
    raw: Vec<u8>,
}

impl Screen {
    fn of(program: &Command, (rows, columns): (u16, u16)) -> Self {
        let mut child = on_terminal(program, rows, columns).env("TERM", "xterm-256color").spawn().unwrap();
        let (keyboard, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, shown) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = output.read(&mut buffer)
                && count > 0
                && sender.send(buffer[..count].to_vec()).is_ok()
            {}
        });
        let (emulator, all) = (emulator(rows, columns), emulator(6000, columns));
        Self { program: Running(child), keyboard, shown, emulator, all, raw: Vec::new() }
    }

    fn of_agent(machine: &Machine, server: &Server, size: (u16, u16)) -> Self {
        let url = server.url();
        let options = ["agent", "-v", "--server", &url, "--workspace", "demo", "--root", "project", "--approve", "ask"];
        Self::of(&machine.aptix(&options), size)
    }

    /// Applies a document, with all that is asked about it.
    fn of_apply(machine: &Machine, document: &[u8], size: (u16, u16)) -> Self {
        put_bytes(machine, "document", document);
        Self::of(&machine.aptix(&["apply", "--root", "project", "document"]), size)
    }

    /// Shows on until the last row that is not empty begins with this; returns the rows of the screen.
    #[track_caller]
    fn until(&mut self, last: &str) -> Vec<String> {
        self.until_one_of(&[last])
    }

    /// Reads page after page to the question; returns the rows of the last screen.
    #[track_caller]
    fn read_on(&mut self) -> Vec<String> {
        loop {
            let rows = self.until_one_of(&[MORE, WHOLE]);
            if rows.last().is_some_and(|row| row.starts_with(WHOLE)) {
                return rows;
            }
            self.types("");
        }
    }

    #[track_caller]
    fn until_one_of(&mut self, ends: &[&str]) -> Vec<String> {
        loop {
            let rows = rows(&self.emulator);
            let is_there = rows.last().is_some_and(|row| ends.iter().any(|end| row.starts_with(end)));
            if is_there && !self.raw.ends_with(b"\n") {
                return rows;
            }
            self.show(|| format!("none of {ends:?} came, but\n{}", rows.join("\n")));
        }
    }

    /// Shows what comes next.
    #[track_caller]
    fn show(&mut self, missing: impl Fn() -> String) {
        let bytes = self.shown.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| panic!("{}", missing()));
        self.emulator.process(&bytes);
        self.all.process(&bytes);
        self.raw.extend(bytes);
    }

    /// Types a line, and waits for its echo.
    #[track_caller]
    fn types(&mut self, line: &str) {
        let before = self.raw.len();
        writeln!(self.keyboard, "{line}").unwrap();
        self.keyboard.flush().unwrap();
        while !self.raw[before..].contains(&b'\n') {
            self.show(|| "what is typed is not echoed".to_owned());
        }
    }

    /// No, and nothing more.
    #[track_caller]
    fn refuse(&mut self) {
        self.types("n");
        self.until("Why not?");
        self.types("");
    }

    /// Every row since the program began.
    fn all(&self) -> Vec<String> {
        rows(&self.all)
    }
}

/// The lines that rows show: what goes on in a marked row is one line.
fn lines(rows: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        match (row.strip_prefix(": "), lines.last_mut()) {
            (Some(rest), Some(line)) => line.push_str(rest),
            _ => lines.push(row.clone()),
        }
    }
    lines
}

fn emulator(rows: u16, columns: u16) -> vt100::Parser {
    vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0)
}

fn rows(emulator: &vt100::Parser) -> Vec<String> {
    let width = emulator.screen().size().1.get();
    let mut rows: Vec<_> = emulator.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    rows
}

#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn put_bytes(machine: &Machine, name: &str, bytes: &[u8]) {
    let file = machine.path(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// Whether a row is the last of our own above the question: the batch's totals.
fn assert_ours(rows: &[String], totals: &str) {
    let [.., digest, found, question] = rows else { panic!("{rows:?}") };
    assert_eq!(question, WHOLE, "{}", rows.join("\n"));
    assert_eq!(found, totals, "{}", rows.join("\n"));
    let digits = digest.strip_prefix("digest sha256:");
    let is_digest = |digits: &str| digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(digits.is_some_and(is_digest), "{}", rows.join("\n"));
}

/// 64 KiB that paint these rows over and over, whatever row they begin on.
fn painted(rows: &[&str], columns: u16) -> String {
    let columns = usize::from(columns);
    let mut text = "harmless".to_owned();
    while text.len() < 64 << 10 {
        text.extend(rows.iter().map(|row| format!("{row:columns$}")));
        text.push_str("  ");
    }
    text.truncate(64 << 10);
    text
}

const FAKE: [&str; 4] =
    ["| +nothing to see here", "digest sha256:0000", "1 file, +0 -0", "Apply this batch? [y,n,q,f,s,ever,?]"];

/// None of the rows before the question is a painted one.
fn assert_not_painted(rows: &[String]) {
    let before = &rows[..rows.len() - 1];
    for row in before {
        let is_painted = FAKE.iter().any(|fake| row.trim_start() == *fake || row.starts_with(fake));
        assert!(!is_painted, "{row:?} in\n{}", rows.join("\n"));
    }
}

#[test]
fn a_label_of_64_kib_cannot_paint_the_rows_above_the_question() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        machine.put("AGENTS.md", "one\n");
        let server = machine.server();
        let mut screen = Screen::of_agent(&machine, &server, (rows, columns));
        let label = painted(&FAKE, columns);
        let document = json!({
            "batchKey": label, "batchLabel": label,
            "files": [{
                "fileKey": label, "fileLabel": label, "docPath": "project/agents.md",
                "originalSha256": aptix_engine::digest::sha256(b"one\n").to_string(),
                "changes": [{
                    "changeKey": label, "description": label, "operation": "insert", "afterLine": 1, "newLines": ["two"],
                }],
            }],
        });
        write(&machine.path("a.json"), &document.to_string());
        let (stored, code) = machine.ask(&server, "submit", &["a.json"]);
        assert_eq!(code, Some(0), "{stored}");
        let shown = screen.read_on();
        assert_ours(&shown, "1 file, +1 -0, 1 needs attention");
        assert_not_painted(&screen.all());
        let all = lines(&screen.all()).join("\n");
        assert!(all.contains("65,416 more characters"), "what is cut is counted\n{all}");
        assert!(all.contains("attention: AGENTS.md: the file tells an editor"), "{all}");
        screen.refuse();
        eventually("the batch is refused", || {
            machine.ask(&server, "show", &[stored["batchId"].as_str().unwrap()]).0["state"] == "REJECTED"
        });
        assert_eq!(machine.files(), [("AGENTS.md".to_owned(), "one\n".to_owned())]);
    }
}

/// A long line goes on in rows that are marked, so that none looks like a line of its own.
#[test]
fn a_wrapped_line_cannot_pose_as_another() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        let width = usize::from(columns);
        // Each of these would begin a new row exactly where the terminal wraps, had it no mark of ours.
        let wide = "\u{8a9e}".repeat(width / 2);
        let mut lines = vec![format!("{:>fill$}| +nothing to see here", "x", fill = width - 1)];
        for lead in 0..4 {
            lines.push(format!("{}{}", "y".repeat(lead), painted(&FAKE, columns).split_at(width * 6).0));
            lines.push(format!("{}{wide}{}", "y".repeat(lead), FAKE[2]));
        }
        let content = lines.join("\n") + "\n";
        let document = json!({"path": ".vscode/tasks.json", "content": content, "overwrite": false}).to_string();
        let mut screen = Screen::of_apply(&machine, document.as_bytes(), (rows, columns));
        let shown = screen.read_on();
        assert_ours(&shown, "1 file, +9 -0, 1 needs attention");
        let all = screen.all();
        assert_not_painted(&all);
        let rows_of_content = all.iter().filter(|row| row.contains("yy") || row.contains("nothing to see"));
        for row in rows_of_content {
            assert!(row.starts_with("| +") || row.starts_with(": "), "{row:?}");
        }
        screen.refuse();
    }
}

/// Names are quoted where they could be taken for words of ours, and the one that is risky is named first and last.
#[test]
fn hostile_names_are_quoted_and_the_risky_file_comes_first() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        let fill = |text: &str| format!("{text:.<width$}z", width = usize::from(columns) - 20);
        let posing = format!("a/{}/1 file, +0 -0", fill("z"));
        let files: Vec<_> = ["safe.txt", &posing, "docs/b.txt", ".vscode/tasks.json"]
            .iter()
            .map(|path| json!({"path": path, "content": "x\n", "operation": "create"}))
            .collect();
        let bundle = json!({"files": files}).to_string();
        let mut screen = Screen::of_apply(&machine, bundle.as_bytes(), (rows, columns));
        let shown = screen.read_on();
        assert_ours(&shown, "4 files, +4 -0, 1 needs attention");
        assert_not_painted(&screen.all());
        let all = screen.all();
        let place =
            |text: &str| all.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}: {all:#?}"));
        assert!(place("created .vscode/tasks.json") < place("created safe.txt"), "{all:#?}");
        assert!(place("created \"a/z") > 0, "{all:#?}");
        assert_eq!(
            shown.iter().filter(|row| row.starts_with("attention: .vscode/tasks.json: ")).count(),
            1,
            "{shown:#?}"
        );
        screen.refuse();
    }
}

/// What is not the same never looks the same, and nothing in a file steers the terminal.
#[test]
fn contents_are_shown_as_they_are() {
    for size in SIZES {
        let machine = Machine::new();
        put_bytes(&machine, "project/AGENTS.md", b"caf\xe9\n\tx = 1\nend\r\n");
        let patch = b"--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1,3 +1,6 @@\n-caf\xe9\n-\tx = 1\n-end\r\n+caf\xe8\n+        x = 1\n+end\n\
            +\x1b[2J\x1b[1;1Hgone\n+a\xe2\x80\xaeb\xe2\x80\x8bc\n+=\xcc\xb8 o\xcc\x81\xcc\x81\xcc\x81\xcc\x81 \\u{202e} \\xff \n";
        let mut screen = Screen::of_apply(&machine, patch, size);
        let shown = screen.read_on();
        assert_ours(&shown, "1 file, +6 -3, 1 needs attention");
        for expected in [
            "| -caf\\xe9",
            "| +caf\\xe8",
            "| -\\u{9}x = 1",
            "| +        x = 1",
            "| -end\\u{d}",
            "| +end",
            "| +\\u{1b}[2J\\u{1b}[1;1Hgone",
            "| +a\\u{202e}b\\u{200b}c",
            "| +=\\u{338} o\u{301}\u{301}\\u{301}\\u{301} \\u{5c}u{202e} \\u{5c}xff\\u{20}",
        ] {
            assert!(shown.iter().any(|row| row == expected), "{expected:?} in\n{}", shown.join("\n"));
        }
        screen.refuse();
    }
}

/// More than a screen is shown page by page. No approval is accepted before the end was shown or explicitly skipped.
#[test]
fn the_question_comes_after_the_end() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        let content: String = (0..400).map(|line| format!("line {line}\n")).collect();
        let document = json!({"path": ".vscode/tasks.json", "content": content, "overwrite": false}).to_string();
        let mut screen = Screen::of_apply(&machine, document.as_bytes(), (rows, columns));
        let first = screen.until(MORE);
        assert_eq!(first.len(), usize::from(rows), "a page fills the screen");
        assert!(!first.join("\n").contains("line 399"), "{first:#?}");
        screen.types("y");
        let second = screen.until(MORE);
        assert!(!second.join("\n").contains(WHOLE), "an answer to a page is none to the batch");
        let shown = screen.read_on();
        assert_ours(&shown, "1 file, +400 -0, 1 needs attention");
        let all = screen.all();
        for line in 0..400 {
            let row = format!("| +line {line}");
            assert!(all.contains(&row), "{row} in\n{}", all.join("\n"));
        }
        screen.types("s");
        screen.until(MORE);
        screen.types("skip");
        let shown = screen.until(WHOLE);
        assert_ours(&shown, "1 file, +400 -0, 1 needs attention");
        assert!(shown.iter().any(|row| row.contains("rows were not shown")), "{shown:#?}");
        screen.types("y");
        assert!(screen.program.0.wait().unwrap().success());
        assert_eq!(machine.files(), [(".vscode/tasks.json".to_owned(), content)]);
    }
}

/// What is logged while a question is open carries words of other batches: the rows above the question stay ours.
#[test]
fn a_log_line_cannot_pose_as_the_totals() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        let server = machine.server();
        let mut screen = Screen::of_agent(&machine, &server, (rows, columns));
        write(&machine.path("a.json"), &json!({"path": "a.txt", "content": "x\n", "overwrite": false}).to_string());
        let (stored, _) = machine.ask(&server, "submit", &["a.json"]);
        screen.until(WHOLE);
        let name = |row: &str| format!("{:.<width$}z", row.replace('?', ""), width = usize::from(columns) - 2);
        let path = FAKE[1..3].iter().cycle().take(12).map(|row| name(row)).collect::<Vec<_>>().join("/");
        write(&machine.path("b.json"), &insert(&[(&path.replace(':', "_"), "1\n")], 1, "x"));
        let (refused, _) = machine.ask(&server, "submit", &["--wait", "b.json"]);
        assert_eq!(refused["state"], "FAILED", "{refused}");
        while !lines(&screen.all()).join("\n").contains("Batch.Refused") {
            screen.show(|| "nothing was logged".to_owned());
        }
        let shown = screen.until(WHOLE);
        let [.., totals, question] = shown.as_slice() else { panic!("{shown:?}") };
        assert_eq!((totals.as_str(), question.as_str()), ("1 file, +1 -0", WHOLE), "{}", shown.join("\n"));
        for row in screen.all() {
            let is_fake = row.starts_with("digest sha256:0000") || row.starts_with("1 file, +0 -0");
            assert!(!is_fake, "{row:?}");
        }
        screen.types("y");
        let id = stored["batchId"].as_str().unwrap();
        eventually("it is applied", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    }
}

/// The question about files that their author is not shown is as safe as the other one.
#[test]
fn a_name_cannot_pose_in_the_question_before_a_comparison() {
    for (rows, columns) in SIZES {
        let machine = Machine::new();
        let server = machine.server();
        let mut screen = Screen::of_agent(&machine, &server, (rows, columns));
        let posing = format!("private/{:.<width$}z/9 files", "x", width = usize::from(columns) - 12);
        machine.put(".gitignore", "private/\n");
        machine.put(&posing, "1\n");
        write(&machine.path("a.json"), &insert(&[(&posing, "1\n")], 1, "two"));
        let (stored, _) = machine.ask(&server, "submit", &["a.json"]);
        let shown = screen.until("Compare the batch with these files? [y/n]");
        let [.., totals, _] = shown.as_slice() else { panic!("{shown:?}") };
        assert_eq!(totals, "1 file", "{}", shown.join("\n"));
        assert!(shown.iter().all(|row| !row.starts_with("9 files")), "{}", shown.join("\n"));
        assert!(lines(&shown).iter().any(|line| line.starts_with("attention: \"project/private/x")), "{shown:#?}");
        screen.types("y");
        let shown = screen.read_on();
        assert_ours(&shown, "1 file, +1 -0, 1 needs attention");
        screen.types("y");
        let id = stored["batchId"].as_str().unwrap();
        eventually("it is applied", || machine.ask(&server, "show", &[id]).0["state"] == "APPLIED");
    }
}
