//! The question that stands on the terminal, so that what is logged meanwhile does not hide it.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::say;

/// The open question. There is one terminal, and one question on it at a time.
static ASKED: Mutex<Option<String>> = Mutex::new(None);

fn asked() -> MutexGuard<'static, Option<String>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question stands on the terminal until this is dropped.
#[derive(Debug)]
pub(super) struct Prompt;

/// Shows a question.
pub(super) fn show(question: &str) -> Prompt {
    let mut asked = asked();
    say(question);
    *asked = Some(question.to_owned());
    Prompt
}

impl Drop for Prompt {
    fn drop(&mut self) {
        *asked() = None;
    }
}

/// Where a service writes its log: stderr, on lines of its own, with an open question shown again below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside;

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        beside(asked().as_deref(), bytes, &mut io::stderr().lock()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn beside(asked: Option<&str>, bytes: &[u8], terminal: &mut impl Write) -> io::Result<()> {
    let Some(question) = asked else { return terminal.write_all(bytes) };
    terminal.write_all(&[b"\n", bytes, question.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_stands_on_its_own_lines_and_the_question_is_shown_again() {
        let mut terminal = Vec::new();
        for asked in [None, Some("Apply? "), None] {
            beside(asked, b"INFO x\n", &mut terminal).unwrap();
        }
        assert_eq!(String::from_utf8(terminal).unwrap(), "INFO x\n\nINFO x\nApply? INFO x\n");
    }
}
