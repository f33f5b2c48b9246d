//! The person at the terminal: is shown a change, and decides about it.

mod keyboard;
mod shown;

use std::io::IsTerminal;

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;
use tokio::sync::mpsc;

use self::keyboard::Keyboard;
use crate::cli::diff::Paths;
use crate::proposal::Proposal;
use crate::workspace::terminal::Terminal;

/// Characters of a person's reason that reach the author.
const REASON_CHARS: usize = 2000;

/// Somebody who sees what is written to stderr, and types on the terminal.
#[derive(Debug)]
pub(crate) struct Person(Keyboard);

/// What somebody answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Do it.
    Yes,
    /// Do not; the failure says why.
    No(Box<Failure>),
}

impl Person {
    /// The person of this process, if there can be one.
    pub(crate) fn present() -> Option<Self> {
        let sees = std::io::stderr().is_terminal();
        Some(Self(Keyboard::of(Terminal::open().filter(|_| sees)?)))
    }

    /// Shows a proposal and waits for the answer, for as long as that takes.
    pub(crate) async fn decide(&self, name: &str, proposal: &Proposal<'_>, paths: Paths) -> Answer {
        say(&shown::about(name, proposal, paths));
        // What was typed before the whole change was shown was not meant for it.
        let mut open = self.0.open();
        ask(&mut open.lines, &mut say).await
    }
}

async fn ask(lines: &mut mpsc::Receiver<String>, say: &mut (dyn FnMut(&str) + Send)) -> Answer {
    loop {
        say("Apply this batch? [y/n] ");
        let Some(answer) = lines.recv().await else {
            let message = "a person has to agree, and the terminal was closed";
            return Answer::No(Box::new(Failure::new(Reason::ApprovalRequired, message)));
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Answer::Yes,
            "n" | "no" => break,
            _ => {}
        }
    }
    say("Why not? (one line for the author, or nothing) ");
    let why = lines.recv().await.unwrap_or_default();
    Answer::No(Box::new(refusal(why.trim())))
}

fn refusal(why: &str) -> Failure {
    let mut message = "a person looked at the batch and said no".to_owned();
    if !why.is_empty() {
        message.push_str(": ");
        message.extend(why.chars().take(REASON_CHARS));
    }
    Failure::new(Reason::Rejected, Visible(&message).to_string())
}

/// Shows a person a text that nothing can hide in.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let mut terminal = anstream::stderr().lock();
    // A terminal that is gone is noticed when the answer does not come.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(typed: &[&str]) -> Answer {
        let (sender, mut lines) = mpsc::channel(8);
        for line in typed {
            sender.send((*line).to_owned()).await.unwrap();
        }
        drop(sender);
        let mut said = String::new();
        let answer = ask(&mut lines, &mut |text: &str| said.push_str(text)).await;
        assert!(said.starts_with("Apply this batch? [y/n] "), "{said}");
        answer
    }

    #[tokio::test]
    async fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]).await, Answer::Yes);
        assert_eq!(answered(&["", "perhaps", " YES "]).await, Answer::Yes);
        let Answer::No(failure) = answered(&["n", "wrong \u{1b}[2Jfile"]).await else { panic!("a no is a no") };
        assert_eq!(failure.reason, Reason::Rejected);
        assert!(failure.message.ends_with("said no: wrong \\u{1b}[2Jfile"), "{}", failure.message);
        let Answer::No(failure) = answered(&[]).await else { panic!("no answer is a no") };
        assert_eq!(failure.reason, Reason::ApprovalRequired);
    }
}
