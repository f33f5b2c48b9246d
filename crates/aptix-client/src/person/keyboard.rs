//! What a person types while a question is open. Whatever is typed at any other time is nobody's answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::rows::Size;
use crate::workspace::fs::terminal::{Input, Terminal};

/// Something that was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-D: there is nothing to be said.
    Nothing,
}

/// Lines that may wait while one question is open.
const LINES: usize = 16;
/// Bytes of a line that count.
const LINE_BYTES: usize = 16 << 10;

/// The keyboard of the person at the terminal.
#[derive(Clone, Debug)]
pub(super) struct Keyboard {
    typing: Arc<Mutex<Typing>>,
    /// What is typed on; absent where a test types.
    terminal: Option<Arc<Terminal>>,
}

#[derive(Debug, Default)]
struct Typing {
    /// Where lines go; nowhere while no question is open.
    asked: Option<mpsc::Sender<Typed>>,
    /// What was typed of the present line.
    line: Vec<u8>,
    /// Whether nobody will ever type again.
    ended: bool,
}

/// An open question: the lines typed since it was opened. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    keyboard: Keyboard,
    pub(super) lines: mpsc::Receiver<Typed>,
}

impl Keyboard {
    /// The terminal's, read for as long as the process lives.
    pub(super) fn of(terminal: Terminal) -> Self {
        let terminal = Arc::new(terminal);
        let keyboard = Self { typing: Arc::default(), terminal: Some(Arc::clone(&terminal)) };
        let typed = keyboard.clone();
        std::thread::spawn(move || typed.read(&terminal));
        keyboard
    }

    /// The size of the terminal.
    pub(super) fn size(&self) -> Size {
        let (rows, columns) = self.terminal.as_ref().map_or((0, 0), |terminal| terminal.size());
        Size::of(rows, columns)
    }

    /// Opens a question: throws away what was typed before, and takes what is typed from now on.
    pub(super) fn open(&self) -> Open {
        let (sender, lines) = mpsc::channel(LINES);
        let mut typing = self.typing();
        self.discard(&mut typing);
        typing.asked = Some(sender).filter(|_| !typing.ended);
        drop(typing);
        Open { keyboard: self.clone(), lines }
    }

    fn discard(&self, typing: &mut Typing) {
        if let Some(terminal) = &self.terminal {
            terminal.discard_input();
        }
        typing.line.clear();
    }

    #[cfg(test)]
    pub(super) fn without_terminal() -> Self {
        Self { typing: Arc::default(), terminal: None }
    }

    #[cfg(test)]
    pub(super) fn types_end(&self) {
        self.typing().end();
    }

    #[cfg(test)]
    pub(super) fn types(&self, text: &str) {
        self.typing().take(text.as_bytes());
    }

    fn typing(&self) -> MutexGuard<'_, Typing> {
        self.typing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, terminal: &Terminal) {
        let mut buffer = [0; 4096];
        loop {
            terminal.await_input();
            // Read and passed on under one lock: nothing read before a question is passed on after it was opened.
            let mut typing = self.typing();
            match terminal.read_input(&mut buffer) {
                Input::Bytes(count) => typing.take(buffer.split_at(count.min(buffer.len())).0),
                Input::Nothing => {}
                Input::End => typing.end(),
                Input::Gone => {
                    typing.ended = true;
                    typing.asked = None;
                    return;
                }
            }
        }
    }
}

impl Typing {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte != b'\n' {
                if self.line.len() < LINE_BYTES {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            self.pass_on(Typed::Line(line));
        }
    }

    fn end(&mut self) {
        self.line.clear();
        self.pass_on(Typed::Nothing);
    }

    fn pass_on(&self, typed: Typed) {
        if let Some(asked) = &self.asked {
            // Who types more lines than a question has answers is not heard.
            let _ = asked.try_send(typed);
        }
    }
}

impl Open {
    /// The size of the terminal.
    pub(super) fn size(&self) -> Size {
        self.keyboard.size()
    }

    /// Throws away what was typed so far.
    pub(super) fn discard(&mut self) {
        let mut typing = self.keyboard.typing();
        self.keyboard.discard(&mut typing);
        while self.lines.try_recv().is_ok() {}
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.keyboard.typing().asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_typed_while_a_question_is_open_answers_it() {
        let keyboard = Keyboard::without_terminal();
        let types = |text: &str| keyboard.types(text);
        let line = |text: &str| Typed::Line(text.to_owned());
        types(&"y\n".repeat(100));
        types("ye");
        let mut open = keyboard.open();
        assert!(open.lines.try_recv().is_err());
        types("n\r\nno\n");
        assert_eq!(open.lines.try_recv(), Ok(line("n\r")));
        assert_eq!(open.lines.try_recv(), Ok(line("no")));
        types("y\nperha");
        open.discard();
        types("ps\n");
        assert_eq!(open.lines.try_recv(), Ok(line("ps")));
        types("y\n");
        drop(open);
        types("y\n");
        assert!(keyboard.open().lines.try_recv().is_err());
    }

    #[test]
    fn who_has_nothing_to_say_to_one_question_can_answer_the_next() {
        let keyboard = Keyboard::without_terminal();
        keyboard.types_end();
        let mut open = keyboard.open();
        keyboard.types("ye");
        keyboard.types_end();
        keyboard.types("s\n");
        assert_eq!(open.lines.try_recv(), Ok(Typed::Nothing));
        assert_eq!(open.lines.try_recv(), Ok(Typed::Line("s".to_owned())));
        drop(open);
        let mut open = keyboard.open();
        keyboard.types("y\n");
        assert_eq!(open.lines.try_recv(), Ok(Typed::Line("y".to_owned())));
    }
}
