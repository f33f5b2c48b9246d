//! The question that is open on the terminal: what is logged meanwhile neither hides it nor poses as a part of it.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aptix_model::failure::Visible;

use super::rows::{Line, rows};
use crate::present::untrusted::Untrusted;

/// Characters of a log line that are shown while a dialog is open.
const LOGGED_CHARS: usize = 1000;

/// The open dialog. There is one terminal, and one dialog on it at a time.
static DIALOG: Mutex<Option<Dialog>> = Mutex::new(None);

#[derive(Debug)]
struct Dialog {
    columns: usize,
    /// The open question; empty while there is none.
    question: String,
}

fn dialog() -> MutexGuard<'static, Option<Dialog>> {
    DIALOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dialog is open until this is dropped.
#[derive(Debug)]
pub(super) struct Held;

/// Begins a dialog on a terminal of so many columns.
pub(super) fn hold(columns: usize) -> Held {
    *dialog() = Some(Dialog { columns, question: String::new() });
    Held
}

impl Drop for Held {
    fn drop(&mut self) {
        *dialog() = None;
    }
}

/// Shows a person a text without untrusted parts.
pub(crate) fn say(text: &str) {
    let mut terminal = anstream::stderr().lock();
    // A terminal that is gone is noticed when the answer does not come.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// Shows a person a line while a dialog may be open, as what is logged is shown.
pub(crate) fn aside(line: &str) {
    let _ = Aside.write_all(line.as_bytes());
}

/// A question is open until this is dropped.
#[derive(Debug)]
pub(super) struct Prompt;

/// Shows a question.
pub(super) fn show(question: &str, columns: usize) -> Prompt {
    let mut dialog = dialog();
    say(question);
    *dialog = Some(Dialog { columns, question: question.to_owned() });
    Prompt
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if let Some(dialog) = dialog().as_mut() {
            dialog.question.clear();
        }
    }
}

/// Where a service writes its log: stderr, on lines of its own, with an open question shown again below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside;

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        beside(dialog().as_ref(), bytes, &mut io::stderr().lock()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes a log line. Its text is untrusted: in a dialog its rows are marked as what they are.
fn beside(dialog: Option<&Dialog>, bytes: &[u8], terminal: &mut impl Write) -> io::Result<()> {
    let Some(Dialog { columns, question }) = dialog else { return terminal.write_all(one_line(bytes).as_bytes()) };
    let plain = anstream::adapter::strip_bytes(bytes).into_vec();
    let shown = Untrusted(plain.strip_suffix(b"\n").unwrap_or(&plain)).to_string();
    let mut line: String = shown.chars().take(LOGGED_CHARS).collect();
    if line.len() < shown.len() {
        line.push_str("... (the rest is left out while a question is open)");
    }
    let begin = if question.is_empty() { "" } else { "\n" };
    let rows = rows(&[Line::ours(line)], *columns).concat();
    terminal.write_all(format!("{begin}{rows}{question}").as_bytes())
}

/// A log line with nothing in it but its own colours that steers a terminal, hides, or begins another line.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
    let mut parts = line.split('\x1b');
    let mut shown = parts.next().map(|part| Visible(part).to_string()).unwrap_or_default();
    for part in parts {
        let rest =
            part.strip_prefix('[').map(|rest| rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == ';'));
        let (style, rest) = match rest.and_then(|rest| rest.strip_prefix('m')) {
            Some(rest) => ('\x1b'.to_string() + part.strip_suffix(rest).unwrap_or_default(), rest),
            None => (Visible("\x1b").to_string(), part),
        };
        shown.push_str(&style);
        shown.push_str(&Visible(rest).to_string());
    }
    shown + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_is_on_its_own_lines_and_the_question_is_shown_again() {
        let shown = |question: Option<&str>, bytes: &[u8]| {
            let dialog = question.map(|question| Dialog { columns: 20, question: question.to_owned() });
            let mut terminal = Vec::new();
            beside(dialog.as_ref(), bytes, &mut terminal).unwrap();
            String::from_utf8(terminal).unwrap()
        };
        assert_eq!(shown(None, b"\x1b[32mINFO\x1b[0m x\n"), "\x1b[32mINFO\x1b[0m x\n");
        let forged = "\x1b[32mINFO\x1b[0m x\n| +y\rz\u{202e}\x1b[2J \x1b]0;t\n";
        assert_eq!(
            shown(None, forged.as_bytes()),
            "\x1b[32mINFO\x1b[0m x\\u{a}| +y\\u{d}z\\u{202e}\\u{1b}[2J \\u{1b}]0;t\n"
        );
        assert_eq!(shown(Some("Apply? "), b"\x1b[32mINFO\x1b[0m x\n"), "\nINFO x\nApply? ");
        assert_eq!(shown(Some(""), b"INFO x\n"), "INFO x\n");
        let long = shown(Some("Apply? "), "INFO 12345678901234567890\nApply? y\u{202e}\n".as_bytes());
        assert_eq!(long, "\nINFO 12345678901234\n: 567890\\u{a}Apply?\n:  y\\u{202e}\nApply? ");
        assert!(shown(Some("?"), &[b'x'; 5000]).len() < 1300);
    }
}
