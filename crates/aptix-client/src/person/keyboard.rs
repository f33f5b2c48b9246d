//! What a person types while a question is open; what is typed at any other time is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::sync::mpsc;

use super::prompt;
use super::rows::Size;
use crate::workspace::fs::terminal::{Input, Terminal};

/// Something that was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-D: no answer.
    Nothing,
}

/// Why a question has no answer.
pub(super) type NoAnswer = Box<Failure>;

/// What a dialog needs of a terminal.
pub(super) trait Talk {
    /// Its size at this moment.
    fn size(&self) -> Size;
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Drops what was typed before this moment: it was not meant for the next question.
    fn forget(&mut self);
    /// Shows a question, and waits for what is typed next; nothing if the terminal is gone.
    async fn ask(&mut self, question: &str) -> Option<Typed>;
}

/// Asks a question: the answer in lower case, or why there is none.
pub(super) async fn ask(question: &str, talk: &mut impl Talk) -> Result<String, NoAnswer> {
    let (message, hint) = match talk.ask(question).await {
        Some(Typed::Line(line)) => return Ok(line.trim().to_lowercase()),
        Some(Typed::Nothing) => {
            talk.say("\nNo answer: the batch is refused.\n");
            let message = "a person has to agree, and the one at the terminal gave no answer";
            (message, "send the batch again to have it asked about again")
        }
        None => {
            let message = "a person has to agree, and the terminal was closed";
            (message, "start the program again on a terminal, then send the batch again")
        }
    };
    Err(Box::new(Failure::new(Reason::ApprovalRequired, message).hint(hint)))
}

/// Lines that may wait while one question is open.
const LINES: usize = 16;
/// Bytes of a line that count.
const LINE_BYTES: usize = 16 << 10;

/// The keyboard of the person at the terminal.
#[derive(Clone, Debug)]
pub(super) struct Keyboard {
    typing: Arc<Mutex<Typing>>,
    /// The terminal; none in tests.
    terminal: Option<Arc<Terminal>>,
}

#[derive(Debug, Default)]
struct Typing {
    /// The open question, if there is one.
    asked: Option<mpsc::Sender<Typed>>,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// Whether the terminal is gone.
    ended: bool,
}

/// An open question: the lines typed since it was opened. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    keyboard: Keyboard,
    pub(super) lines: mpsc::Receiver<Typed>,
}

impl Keyboard {
    /// The keyboard of a terminal, read as long as the process lives.
    pub(super) fn of(terminal: Terminal) -> Self {
        let terminal = Arc::new(terminal);
        let keyboard = Self { typing: Arc::default(), terminal: Some(Arc::clone(&terminal)) };
        let typed = keyboard.clone();
        std::thread::spawn(move || typed.read(&terminal));
        keyboard
    }

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
            // Lines beyond the channel's capacity are dropped.
            let _ = asked.try_send(typed);
        }
    }
}

impl Talk for Open {
    fn size(&self) -> Size {
        self.keyboard.size()
    }

    fn say(&mut self, text: &str) {
        prompt::say(text);
    }

    fn forget(&mut self) {
        let mut typing = self.keyboard.typing();
        self.keyboard.discard(&mut typing);
        while self.lines.try_recv().is_ok() {}
    }

    async fn ask(&mut self, question: &str) -> Option<Typed> {
        let _asked = prompt::show(question, self.size().columns);
        self.lines.recv().await
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

    fn untyped() -> Keyboard {
        Keyboard { typing: Arc::default(), terminal: None }
    }

    #[test]
    fn only_what_is_typed_while_a_question_is_open_answers_it() {
        let keyboard = untyped();
        let types = |text: &str| keyboard.typing().take(text.as_bytes());
        let line = |text: &str| Typed::Line(text.to_owned());
        types(&"y\n".repeat(100));
        types("ye");
        let mut open = keyboard.open();
        assert!(open.lines.try_recv().is_err());
        types("n\r\nno\n");
        assert_eq!(open.lines.try_recv(), Ok(line("n\r")));
        assert_eq!(open.lines.try_recv(), Ok(line("no")));
        types("y\nperha");
        open.forget();
        types("ps\n");
        assert_eq!(open.lines.try_recv(), Ok(line("ps")));
        types("y\n");
        drop(open);
        types("y\n");
        assert!(keyboard.open().lines.try_recv().is_err());
    }

    #[test]
    fn who_has_nothing_to_say_to_one_question_can_answer_the_next() {
        let keyboard = untyped();
        let types = |text: &str| keyboard.typing().take(text.as_bytes());
        keyboard.typing().end();
        let mut open = keyboard.open();
        types("ye");
        keyboard.typing().end();
        types("s\n");
        assert_eq!(open.lines.try_recv(), Ok(Typed::Nothing));
        assert_eq!(open.lines.try_recv(), Ok(Typed::Line("s".to_owned())));
        drop(open);
        let mut open = keyboard.open();
        types("y\n");
        assert_eq!(open.lines.try_recv(), Ok(Typed::Line("y".to_owned())));
    }
}
